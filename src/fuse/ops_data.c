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

/* What is read, and in which way: an answer ends the request, which cannot be asked for it any more. */
struct asked {
	struct stfs_front *front;
	struct stfs_handle *handle;
	off_t offset;
	bool cached;
};

/*
 * The source may change while the kernel copies out of it. The one answer cannot be taken back, but the kernel must not keep it
 * for others. Nobody waits for the pages any more, so that this may be told right here.
 */
static void forget_changed(const struct asked *asked, size_t len)
{
	if (stfs_file_check(asked->handle->file) < 0 && asked->cached)
		fuse_lowlevel_notify_inval_inode(asked->front->fuse, asked->handle->ino, asked->offset, (off_t)len);
}

/* Sends the bytes from where they are: the kernel copies them out of the mapping, this process never looks at them. */
static void reply_extents(fuse_req_t req, const struct asked *asked, const struct stfs_reading *reading)
{
	struct iovec iov[STFS_EXTENTS_MAX];
	int r;

	for (int i = 0; i < reading->n; i++)
		iov[i] = (struct iovec){ (void *)(uintptr_t)reading->extents[i].mem, reading->extents[i].len };
	/* A page that is gone is EFAULT here, and the kernel has then answered EIO to the client itself. */
	r = fuse_reply_iov(req, iov, reading->n);
	if (r == -EFAULT)
		complain(asked->front->log, asked->handle, -EIO);
	else if (reading->len)
		forget_changed(asked, reading->len);
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

/* Sends what the words written to a control file led to. Returns false when none were. */
static bool reply_answer(fuse_req_t req, struct stfs_handle *handle, uint64_t offset, size_t size)
{
	struct stfs_front *front = stfs_front_of(req);
	_cleanup_free_ char *data = NULL;
	size_t n = 0;
	bool answered;

	pthread_mutex_lock(&front->lock);
	answered = handle->answered;
	if (offset < handle->answer.len)
		n = STFS_MIN(size, handle->answer.len - (size_t)offset);
	data = n ? malloc(n) : NULL;
	if (data)
		memcpy(data, handle->answer.data + offset, n);
	pthread_mutex_unlock(&front->lock);
	if (!answered)
		return false;
	if (n && !data)
		stfs_reply(req, -ENOMEM);
	else
		fuse_reply_buf(req, data, n);
	return true;
}

void stfs_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	_cleanup_(stfs_reading_fini) struct stfs_reading reading = { .n = 0 };
	struct stfs_front *front = stfs_front_of(req);
	struct stfs_handle *handle = stfs_handle_of(fi);
	const struct asked asked = { front, handle, offset, !front->direct_io && !(fi->flags & O_DIRECT) };
	int r;

	(void)ino;
	if (handle->control != STFS_CONTROL_NONE && reply_answer(req, handle, (uint64_t)offset, size))
		return;
	stfs_handle_ref(handle);
	r = stfs_file_map(handle->file, (uint64_t)offset, size, &reading);
	if (r < 0)
		stfs_reply(req, r);
	else if (is_in_memory(&reading))
		reply_extents(req, &asked, &reading);
	else
		reply_read(req, handle, (uint64_t)offset, size);
	stfs_handle_unref(front, handle);
}
