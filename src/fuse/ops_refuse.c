/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel itself refuses changes to a read-only mount. Root can take the flag away with a remount; then these
 * answer, since a request without a handler would be ENOSYS, which no tool understands.
 */
#include <errno.h>

#include "ops.h"

void stfs_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
	(void)ino, (void)attr, (void)to_set, (void)fi;
	stfs_reply(req, -EROFS);
}

void stfs_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev)
{
	(void)parent, (void)name, (void)mode, (void)dev;
	stfs_reply(req, -EROFS);
}

void stfs_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	(void)parent, (void)name, (void)mode;
	stfs_reply(req, -EROFS);
}

void stfs_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	(void)parent, (void)name;
	stfs_reply(req, -EROFS);
}

void stfs_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	(void)parent, (void)name;
	stfs_reply(req, -EROFS);
}

void stfs_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	(void)target, (void)parent, (void)name;
	stfs_reply(req, -EROFS);
}

void stfs_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	(void)ino, (void)parent, (void)name;
	stfs_reply(req, -EROFS);
}

void stfs_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
		    unsigned flags)
{
	(void)parent, (void)name, (void)new_parent, (void)new_name, (void)flags;
	stfs_reply(req, -EROFS);
}

void stfs_op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	(void)parent, (void)name, (void)mode, (void)fi;
	stfs_reply(req, -EROFS);
}
