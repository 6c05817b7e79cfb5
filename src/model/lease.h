/* SPDX-License-Identifier: Apache-2.0 */
/* What the bytes of an answer rest on. Held while they are sent: a commit, or two, may take away where they were meanwhile. */
#pragma once

#include <stdatomic.h>

#include "buf.h"
#include "snapshot.h"

/* A descriptor that is counted, and closed with the last reference. */
struct stfs_shared_fd {
	atomic_uint refs;
	int fd;
};

/* Takes `fd` over. Returns it with one reference, or NULL with `fd` still the caller's. */
struct stfs_shared_fd *stfs_shared_fd_new(int fd);

/* Takes another reference; takes NULL. Safe from any thread. */
struct stfs_shared_fd *stfs_shared_fd_ref(struct stfs_shared_fd *shared);

/* Drops a reference; takes NULL. */
void stfs_shared_fd_unref(struct stfs_shared_fd *shared);

/* Embedded, all zero at first; released with stfs_lease_fini, after which it can be used again. */
struct stfs_lease {
	struct stfs_buf copied;        /* bytes that were only in memory */
	struct stfs_snapshot *file;    /* of the model, one reference, or NULL */
	struct stfs_shared_fd *staged; /* one reference, or NULL */
};

/* Lets go of what is held; takes an all-zero one too. */
void stfs_lease_fini(struct stfs_lease *lease);
#define _cleanup_lease_ _cleanup_(stfs_lease_fini)
