/* SPDX-License-Identifier: Apache-2.0 */
/* Edits told by path that may fail: each returns 0 or what the first call answered that failed. */
#pragma once

#include <errno.h>

#include "view_edit.h"

/* The inode at a path, 0 when it is not there; *ret_parent and *ret_name say where it would be. */
static inline int act_find(struct stfs_view *view, const char *path, uint64_t *ret_ino, uint64_t *ret_parent,
			   struct stfs_slice *ret_name)
{
	struct stfs_attr attr = { .ino = STFS_INO_ROOT };

	while (*path) {
		size_t n = strcspn(path, "/");
		int r;

		*ret_parent = attr.ino;
		*ret_name = (struct stfs_slice){ path, n };
		path += n + (path[n] == '/');
		r = stfs_view_lookup(view, *ret_parent, *ret_name, &attr);
		if (r < 0 && (r != -ENOENT || *path))
			return r;
		if (r < 0)
			attr.ino = 0;
	}
	*ret_ino = attr.ino;
	return 0;
}

static inline int act_mkdir(struct stfs_view *view, const char *path)
{
	struct stfs_attr attr;
	struct stfs_slice name;
	uint64_t ino, parent = 0;
	int r = act_find(view, path, &ino, &parent, &name);

	return r < 0 ? r : stfs_view_mkdir(view, parent, name, 0755, (struct stfs_owner){ 0 }, &attr);
}

/* What `open` with O_CREAT and maybe O_TRUNC does. */
static inline int act_open(struct stfs_view *view, const char *path, bool truncate, struct stfs_file **ret)
{
	struct stfs_attr attr;
	struct stfs_slice name;
	uint64_t ino, parent = 0;
	int r = act_find(view, path, &ino, &parent, &name);

	if (r < 0)
		return r;
	return ino ? stfs_view_open_write(view, ino, truncate, ret) :
		     stfs_view_create(view, parent, name, 0644, (struct stfs_owner){ 0 }, &attr, ret);
}

static inline int act_close(struct stfs_file *file)
{
	int r = stfs_file_flush(file);

	stfs_file_close(file);
	return r;
}

static inline int act_create(struct stfs_view *view, const char *path, bool truncate)
{
	struct stfs_file *file;
	int r = act_open(view, path, truncate, &file);

	return r < 0 ? r : act_close(file);
}

static inline int act_write(struct stfs_view *view, const char *path, bool truncate, const void *data, size_t size,
			    uint64_t offset)
{
	struct stfs_file *file;
	size_t written = 0;
	int r = act_open(view, path, truncate, &file);

	if (r < 0)
		return r;
	r = stfs_file_write(file, data, size, offset, &written);
	if (r == 0 && written != size)
		r = -EIO;
	if (r < 0) {
		stfs_file_close(file);
		return r;
	}
	return act_close(file);
}

static inline int act_put(struct stfs_view *view, const char *path, const char *text)
{
	return act_write(view, path, true, text, strlen(text), 0);
}

static inline int act_unlink(struct stfs_view *view, const char *path)
{
	struct stfs_slice name;
	uint64_t ino, parent = 0;
	int r = act_find(view, path, &ino, &parent, &name);

	return r < 0 ? r : stfs_view_unlink(view, parent, name);
}

static inline int act_rmdir(struct stfs_view *view, const char *path)
{
	struct stfs_slice name;
	uint64_t ino, parent = 0;
	int r = act_find(view, path, &ino, &parent, &name);

	return r < 0 ? r : stfs_view_rmdir(view, parent, name);
}

static inline int act_mv(struct stfs_view *view, const char *from, const char *to)
{
	struct stfs_slice name, new_name;
	uint64_t ino, parent = 0, new_parent = 0;
	int r = act_find(view, from, &ino, &parent, &name);

	if (r == 0)
		r = act_find(view, to, &ino, &new_parent, &new_name);
	return r < 0 ? r : stfs_view_rename(view, parent, name, new_parent, new_name, false);
}

static inline int act_setattr(struct stfs_view *view, const char *path, const struct stfs_attr_change *change)
{
	struct stfs_attr attr;
	struct stfs_slice name;
	uint64_t ino, parent = 0;
	int r = act_find(view, path, &ino, &parent, &name);

	return r < 0 ? r : stfs_view_setattr(view, ino, change, &attr);
}

static inline int act_resize(struct stfs_view *view, const char *path, uint64_t size)
{
	return act_setattr(view, path, &(struct stfs_attr_change){ .set_size = true, .size = size });
}

static inline int act_chmod(struct stfs_view *view, const char *path, mode_t perm)
{
	return act_setattr(view, path, &(struct stfs_attr_change){ .set_perm = true, .perm = perm });
}

/* Copies a whole file, as cp asks for it. */
static inline int act_copy(struct stfs_view *view, const char *from, const char *to)
{
	struct stfs_file *source, *target;
	struct stfs_slice name;
	uint64_t ino, parent = 0, copied = 0;
	int r = act_find(view, from, &ino, &parent, &name);

	if (r == 0)
		r = stfs_view_open(view, ino, &source);
	if (r < 0)
		return r;
	r = act_open(view, to, true, &target);
	if (r == 0) {
		r = stfs_file_copy(source, 0, target, 0, UINT64_MAX / 2, &copied);
		if (r == 0)
			r = act_close(target);
		else
			stfs_file_close(target);
	}
	stfs_file_close(source);
	return r;
}
