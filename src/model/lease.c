/* SPDX-License-Identifier: Apache-2.0 */
#include "lease.h"

#include <stdlib.h>
#include <unistd.h>

struct stfs_shared_fd *stfs_shared_fd_new(int fd)
{
	struct stfs_shared_fd *shared = malloc(sizeof(*shared));

	if (!shared)
		return NULL;
	atomic_init(&shared->refs, 1);
	shared->fd = fd;
	return shared;
}

struct stfs_shared_fd *stfs_shared_fd_ref(struct stfs_shared_fd *shared)
{
	if (shared)
		atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
	return shared;
}

void stfs_shared_fd_unref(struct stfs_shared_fd *shared)
{
	if (!shared || atomic_fetch_sub_explicit(&shared->refs, 1, memory_order_acq_rel) != 1)
		return;
	close(shared->fd);
	free(shared);
}

void stfs_lease_fini(struct stfs_lease *lease)
{
	stfs_buf_fini(&lease->copied);
	stfs_snapshot_unref(lease->file);
	stfs_shared_fd_unref(lease->staged);
	*lease = (struct stfs_lease){ 0 };
}
