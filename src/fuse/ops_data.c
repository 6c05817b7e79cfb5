/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "cleanup.h"
#include "ops.h"

void stfs_op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	stfs_handle_unref(stfs_front_of(req), stfs_handle_of(fi));
	stfs_reply(req, 0);
}

/* Says that the bytes of an open file cannot be had. The client gets EIO, whatever the source's filesystem calls it. */
static int complain(struct stfs_log *log, struct stfs_handle *handle, int error)
{
	if (!atomic_flag_test_and_set(&handle->complained))
		stfs_log(log, STFS_LOG_ERROR,
			 "bytes of the source cannot be read: %s "
			 "(it was cut short while being read, or its disk or server failed)",
			 strerror(-error));
	return -EIO;
}

/* Sends the bytes from where they are: the kernel copies them out of the mapping, this process never looks at them. */
static void reply_extents(fuse_req_t req, struct stfs_handle *handle, const struct stfs_reading *reading)
{
	struct stfs_log *log = stfs_front_of(req)->log;
	struct iovec iov[STFS_EXTENTS_MAX];

	for (int i = 0; i < reading->n; i++)
		iov[i] = (struct iovec){ (void *)(uintptr_t)reading->extents[i].mem, reading->extents[i].len };
	/* A page that is gone is EFAULT here, and the kernel has then answered EIO to the client itself. */
	if (fuse_reply_iov(req, iov, reading->n) == -EFAULT)
		complain(log, handle, -EIO);
}

/* Whether all that was asked for has an address. */
static bool is_in_memory(const struct stfs_reading *reading)
{
	for (int i = 0; i < reading->n; i++)
		if (!reading->extents[i].mem)
			return false;
	return reading->n < STFS_EXTENTS_MAX;
}

/* Reads into a buffer what has no address: a source that is not mapped, staged bytes, holes. */
static void reply_read(fuse_req_t req, struct stfs_handle *handle, uint64_t offset, size_t size)
{
	_cleanup_free_ char *data = malloc(size ? size : 1);
	size_t n = 0;
	int r = data ? stfs_file_read(handle->file, offset, data, size, &n) : -ENOMEM;

	if (r < 0 && r != -ENOMEM)
		r = complain(stfs_front_of(req)->log, handle, r);
	if (r < 0)
		stfs_reply(req, r);
	else
		fuse_reply_buf(req, data, n);
}

void stfs_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	_cleanup_(stfs_reading_fini) struct stfs_reading reading = { .n = 0 };
	struct stfs_front *front = stfs_front_of(req);
	struct stfs_handle *handle = stfs_handle_of(fi);
	int r;

	(void)ino;
	stfs_handle_ref(handle);
	r = stfs_file_map(handle->file, (uint64_t)offset, size, &reading);
	if (r < 0)
		stfs_reply(req, r);
	else if (is_in_memory(&reading))
		reply_extents(req, handle, &reading);
	else
		reply_read(req, handle, (uint64_t)offset, size);
	stfs_handle_unref(front, handle);
}
