/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, writing, and what belongs to it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "ops.h"

void stfs_reply_opened(fuse_req_t req, struct stfs_handle *init, const struct stfs_attr *created,
		       struct fuse_file_info *fi)
{
	struct stfs_front *front = stfs_front_of(req);
	bool generated = stfs_file_is_generated(init->file);
	struct fuse_entry_param entry;
	struct stfs_handle *handle;
	int r = stfs_handle_new(front, init, &handle);

	if (r < 0) {
		stfs_reply(req, r);
		return;
	}
	fi->fh = (uintptr_t)handle;
	/* What is made from other files changes when nobody writes to it. */
	fi->keep_cache = !front->writable || !generated;
	fi->direct_io = front->direct_io || (front->writable && init->control != STFS_CONTROL_NONE);
#ifdef HAVE_FUSE_FILE_INFO_NOFLUSH
	/* With it, a killed reader of a stopped daemon could not die. */
	fi->noflush = !init->writable;
#endif
	if (created) {
		stfs_attr_to_entry(front, created, &entry);
		r = fuse_reply_create(req, &entry, fi);
	} else {
		r = fuse_reply_open(req, fi);
	}
	/* When the client was interrupted no RELEASE follows. */
	if (r == -ENOENT)
		stfs_handle_unref(front, handle);
}

static int run_open(struct stfs_front *front, const struct stfs_edit *edit)
{
	struct fuse_file_info fi = edit->fi;
	struct stfs_handle init = { .ino = edit->ino, .writable = true };
	int r = stfs_view_open_write(front->view, edit->ino, fi.flags & O_TRUNC, &init.file);

	if (r == -EBUSY)
		return r;
	if (r < 0)
		stfs_reply(edit->req, r);
	else
		stfs_reply_opened(edit->req, &init, NULL, &fi);
	return 0;
}

static void open_to_read(fuse_req_t req, fuse_ino_t ino, enum stfs_control_kind control, struct fuse_file_info *fi)
{
	struct stfs_handle init = { .ino = ino, .control = control };
	int r = stfs_view_open(stfs_front_of(req)->view, ino, &init.file);

	if (r < 0)
		stfs_reply(req, r);
	else
		stfs_reply_opened(req, &init, NULL, fi);
}

void stfs_op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stfs_front *front = stfs_front_of(req);
	enum stfs_control_kind control = stfs_view_control_kind(front->view, ino);
	bool writes = (fi->flags & O_ACCMODE) != O_RDONLY || (fi->flags & O_TRUNC);

	if (writes && !front->writable)
		stfs_reply(req, -EROFS);
	else if (writes && control == STFS_CONTROL_TEXT)
		stfs_reply(req, -EACCES);
	else if (!writes || control != STFS_CONTROL_NONE)
		open_to_read(req, ino, control, fi);
	else
		stfs_edit_run(front, &(struct stfs_edit){ .req = req, .run = run_open, .ino = ino, .fi = *fi });
}

static int run_write(struct stfs_front *front, const struct stfs_edit *edit)
{
	size_t written;
	int r = stfs_file_write(edit->handle->file, edit->data, edit->size, edit->offset, &written);

	(void)front;
	if (r == -EBUSY)
		return r;
	if (r < 0)
		stfs_reply(edit->req, r);
	else
		fuse_reply_write(edit->req, written);
	return 0;
}

void stfs_op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
		   struct fuse_file_info *fi)
{
	struct stfs_front *front = stfs_front_of(req);
	struct stfs_handle *handle = stfs_handle_of(fi);

	(void)ino;
	if (handle->control != STFS_CONTROL_NONE) {
		stfs_jobs_add(front, req, handle, data, size);
		return;
	}
	stfs_edit_run(front, &(struct stfs_edit){
				     .req = req,
				     .run = run_write,
				     .handle = handle,
				     .data = data,
				     .size = size,
				     .offset = (uint64_t)offset,
			     });
}

/* Only a NumPy file takes notice; nothing is judged here. */
static int run_flush(struct stfs_front *front, const struct stfs_edit *edit)
{
	(void)front;
	if (stfs_file_flush(edit->handle->file) == -EBUSY)
		return -EBUSY;
	stfs_reply(edit->req, 0);
	return 0;
}

void stfs_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stfs_handle *handle = stfs_handle_of(fi);

	(void)ino;
	if (handle->writable)
		stfs_edit_run(stfs_front_of(req),
			      &(struct stfs_edit){ .req = req, .run = run_flush, .handle = handle });
	else
		stfs_reply(req, 0);
}

static int run_fsync(struct stfs_front *front, const struct stfs_edit *edit)
{
	int r = stfs_file_sync(edit->handle->file);

	(void)front;
	if (r == -EBUSY)
		return r;
	stfs_reply(edit->req, r);
	return 0;
}

void stfs_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino, (void)datasync;
	stfs_edit_run(stfs_front_of(req),
		      &(struct stfs_edit){ .req = req, .run = run_fsync, .handle = stfs_handle_of(fi) });
}

static int run_fallocate(struct stfs_front *front, const struct stfs_edit *edit)
{
	int r = stfs_file_allocate(edit->handle->file, edit->len);

	(void)front;
	if (r == -EBUSY)
		return r;
	stfs_reply(edit->req, r);
	return 0;
}

void stfs_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length, struct fuse_file_info *fi)
{
	(void)ino;
	if (mode != 0) {
		stfs_reply(req, -EOPNOTSUPP);
		return;
	}
	/* The kernel has made sure that the end is the offset of a file. */
	stfs_edit_run(stfs_front_of(req), &(struct stfs_edit){
						  .req = req,
						  .run = run_fallocate,
						  .handle = stfs_handle_of(fi),
						  .len = (uint64_t)offset + (uint64_t)length,
					  });
}

static int run_copy(struct stfs_front *front, const struct stfs_edit *edit)
{
	uint64_t copied;
	int r = stfs_file_copy(edit->source->file, edit->source_offset, edit->handle->file, edit->offset, edit->len,
			       &copied);

	(void)front;
	if (r == -EBUSY)
		return r;
	if (r < 0)
		stfs_reply(edit->req, r);
	else
		fuse_reply_write(edit->req, (size_t)copied);
	return 0;
}

void stfs_op_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t offset_in, struct fuse_file_info *fi_in,
			     fuse_ino_t ino_out, off_t offset_out, struct fuse_file_info *fi_out, size_t len, int flags)
{
	(void)ino_in, (void)ino_out, (void)flags;
	stfs_edit_run(stfs_front_of(req), &(struct stfs_edit){
						  .req = req,
						  .run = run_copy,
						  .handle = stfs_handle_of(fi_out),
						  .source = stfs_handle_of(fi_in),
						  .offset = (uint64_t)offset_out,
						  .source_offset = (uint64_t)offset_in,
						  .len = len,
					  });
}
