/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of names and attributes. The kernel itself refuses them in a read-only mount, but root can take that flag away with a
 * remount: then the view answers EROFS.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "ops.h"

static struct stfs_owner owner_of(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	return (struct stfs_owner){ ctx->uid, ctx->gid };
}

/* Answers a request that has nothing else to say; -EBUSY is left to the caller. */
static int finish(const struct stfs_edit *edit, int result)
{
	if (result == -EBUSY)
		return result;
	stfs_reply(edit->req, result);
	return 0;
}

static int run_mkdir(struct stfs_front *front, const struct stfs_edit *edit)
{
	struct fuse_entry_param entry;
	struct stfs_attr attr;
	int r = stfs_view_mkdir(front->view, edit->ino, stfs_slice_of(edit->name), edit->mode, owner_of(edit->req),
				&attr);

	if (r < 0)
		return finish(edit, r);
	stfs_attr_to_entry(front, &attr, &entry);
	fuse_reply_entry(edit->req, &entry);
	return 0;
}

void stfs_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	stfs_edit_run(stfs_front_of(req),
		      &(struct stfs_edit){ .req = req, .run = run_mkdir, .ino = parent, .name = name, .mode = mode });
}

static int run_unlink(struct stfs_front *front, const struct stfs_edit *edit)
{
	return finish(edit, stfs_view_unlink(front->view, edit->ino, stfs_slice_of(edit->name)));
}

void stfs_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	stfs_edit_run(stfs_front_of(req),
		      &(struct stfs_edit){ .req = req, .run = run_unlink, .ino = parent, .name = name });
}

static int run_rmdir(struct stfs_front *front, const struct stfs_edit *edit)
{
	return finish(edit, stfs_view_rmdir(front->view, edit->ino, stfs_slice_of(edit->name)));
}

void stfs_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	stfs_edit_run(stfs_front_of(req),
		      &(struct stfs_edit){ .req = req, .run = run_rmdir, .ino = parent, .name = name });
}

static int run_rename(struct stfs_front *front, const struct stfs_edit *edit)
{
	return finish(edit, stfs_view_rename(front->view, edit->ino, stfs_slice_of(edit->name), edit->new_parent,
					     stfs_slice_of(edit->new_name), edit->no_replace));
}

void stfs_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
		    unsigned flags)
{
	/* Exchanging: tools do without when they are told so. */
	if (flags & ~(unsigned)RENAME_NOREPLACE) {
		stfs_reply(req, -EINVAL);
		return;
	}
	stfs_edit_run(stfs_front_of(req), &(struct stfs_edit){
						  .req = req,
						  .run = run_rename,
						  .ino = parent,
						  .name = name,
						  .new_parent = new_parent,
						  .new_name = new_name,
						  .no_replace = flags & RENAME_NOREPLACE,
					  });
}

/* What exists after all, though the kernel did not know of it. */
static int open_existing(struct stfs_front *front, const struct stfs_edit *edit, struct stfs_attr *ret_attr,
			 struct stfs_file **ret_file)
{
	int r = stfs_view_lookup(front->view, edit->ino, stfs_slice_of(edit->name), ret_attr);

	if (r < 0)
		return r;
	if (ret_attr->type == STFS_NODE_LINK) {
		stfs_view_forget(front->view, ret_attr->ino, 1);
		return -EEXIST;
	}
	return stfs_view_open_write(front->view, ret_attr->ino, edit->fi.flags & O_TRUNC, ret_file);
}

static int run_create(struct stfs_front *front, const struct stfs_edit *edit)
{
	struct fuse_file_info fi = edit->fi;
	struct stfs_handle init = { .writable = true };
	struct stfs_attr attr;
	int r = stfs_view_create(front->view, edit->ino, stfs_slice_of(edit->name), edit->mode, owner_of(edit->req),
				 &attr, &init.file);

	if (r == -EEXIST && !(fi.flags & O_EXCL))
		r = open_existing(front, edit, &attr, &init.file);
	if (r < 0)
		return finish(edit, r);
	init.ino = attr.ino;
	stfs_reply_opened(edit->req, &init, &attr, &fi);
	return 0;
}

void stfs_op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	stfs_edit_run(stfs_front_of(req), &(struct stfs_edit){
						  .req = req,
						  .run = run_create,
						  .ino = parent,
						  .name = name,
						  .mode = mode,
						  .fi = *fi,
					  });
}

/* By number, or for a file that has no name any more by whoever has it open. */
static int set_attributes(struct stfs_front *front, const struct stfs_edit *edit, struct stfs_attr *ret)
{
	struct stfs_handle *handle = edit->handle;
	int r;

	/* Who empties an open file gets back what was in it when the new text is refused. */
	if (handle && !stfs_file_is_generated(handle->file))
		return stfs_file_setattr(handle->file, &edit->change, ret);
	r = stfs_view_setattr(front->view, edit->ino, &edit->change, ret);
	if (r != -ESTALE)
		return r;
	handle = stfs_handle_find(front, edit->ino);
	if (!handle)
		return r;
	r = stfs_file_setattr(handle->file, &edit->change, ret);
	stfs_handle_unref(front, handle);
	return r;
}

static int run_setattr(struct stfs_front *front, const struct stfs_edit *edit)
{
	struct stfs_attr attr;
	struct stat st;
	int r = set_attributes(front, edit, &attr);

	if (r < 0)
		return finish(edit, r);
	stfs_attr_to_stat(&attr, &st);
	fuse_reply_attr(edit->req, &st, stfs_attr_keep(front, &attr));
	return 0;
}

static struct stfs_attr_change change_of(const struct stat *attr, int to_set)
{
	struct stfs_attr_change change = {
		.set_perm = to_set & FUSE_SET_ATTR_MODE,
		.set_uid = to_set & FUSE_SET_ATTR_UID,
		.set_gid = to_set & FUSE_SET_ATTR_GID,
		.set_mtime = to_set & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW),
		.set_size = to_set & FUSE_SET_ATTR_SIZE,
		.perm = attr->st_mode & 07777,
		.uid = attr->st_uid,
		.gid = attr->st_gid,
		.mtime = attr->st_mtim,
		.size = (uint64_t)attr->st_size,
	};

	if (to_set & FUSE_SET_ATTR_MTIME_NOW)
		clock_gettime(CLOCK_REALTIME, &change.mtime);
	return change;
}

void stfs_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
	struct stfs_front *front = stfs_front_of(req);
	struct stfs_attr_change change = change_of(attr, to_set);
	enum stfs_control_kind kind = stfs_view_control_kind(front->view, ino);

	/* Tools truncate and touch the control files on their way; the words that follow are what counts. */
	if (kind == STFS_CONTROL_TEXT) {
		stfs_reply(req, -EACCES);
		return;
	}
	/* A time of access is not kept. */
	if (kind != STFS_CONTROL_NONE || (front->writable && !change.set_perm && !change.set_uid && !change.set_gid &&
					  !change.set_mtime && !change.set_size)) {
		stfs_op_getattr(req, ino, fi);
		return;
	}
	stfs_edit_run(front, &(struct stfs_edit){
				     .req = req,
				     .run = run_setattr,
				     .ino = ino,
				     .change = change,
				     .handle = fi && change.set_size && change.size == 0 ? stfs_handle_of(fi) : NULL,
			     });
}

/* What a mount never has, but for its own links. */
static void refuse(fuse_req_t req)
{
	stfs_reply(req, stfs_front_of(req)->writable ? -EPERM : -EROFS);
}

void stfs_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev)
{
	(void)parent, (void)name, (void)mode, (void)dev;
	refuse(req);
}

void stfs_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	(void)target, (void)parent, (void)name;
	refuse(req);
}

void stfs_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	(void)ino, (void)parent, (void)name;
	refuse(req);
}
