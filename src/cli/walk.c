/* SPDX-License-Identifier: Apache-2.0 */
#include "walk.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "arena.h"
#include "array.h"

/* Takes the next component off *path; false at the end. */
static bool next_component(struct stfs_slice *path, struct stfs_slice *ret)
{
	while (path->len > 0) {
		*ret = stfs_slice_cut(path, '/');
		if (ret->len > 0 && !stfs_slice_is(*ret, "."))
			return true;
	}
	return false;
}

static int step_on(struct stfs_view *view, struct stfs_slice path, bool follow, struct stfs_attr *attr);

/* Goes on from the directory `attr` to where its symlink `link` leads: a path without further symlinks. */
static int follow_link(struct stfs_view *view, uint64_t link, struct stfs_attr *attr)
{
	_cleanup_buf_ struct stfs_buf target = { 0 };
	int r = stfs_view_readlink(view, link, &target);

	stfs_view_forget(view, link, 1);
	return r < 0 ? r : step_on(view, stfs_buf_slice(&target), false, attr);
}

/* Goes on from *attr to what `path` leads to. */
static int step_on(struct stfs_view *view, struct stfs_slice path, bool follow, struct stfs_attr *attr)
{
	struct stfs_slice name;

	while (next_component(&path, &name)) {
		struct stfs_attr found;
		int r = stfs_view_lookup(view, attr->ino, name, &found);

		if (r == 0 && found.type == STFS_NODE_LINK)
			r = follow ? follow_link(view, found.ino, attr) : -ELOOP;
		else if (r == 0)
			*attr = found;
		if (r < 0)
			return r;
	}
	return 0;
}

int stfs_walk(struct stfs_view *view, struct stfs_slice path, struct stfs_attr *ret_attr)
{
	struct stfs_attr attr;
	int r = stfs_view_getattr(view, STFS_INO_ROOT, &attr);

	if (r == 0)
		r = step_on(view, path, true, &attr);
	if (r == 0)
		*ret_attr = attr;
	return r;
}

struct stfs_slice stfs_walk_above(struct stfs_slice path)
{
	while (path.len > 0 && path.p[path.len - 1] == '/')
		path.len--;
	while (path.len > 0 && path.p[path.len - 1] != '/')
		path.len--;
	while (path.len > 0 && path.p[path.len - 1] == '/')
		path.len--;
	return path;
}

bool stfs_walk_is_above(struct stfs_slice path, struct stfs_slice other)
{
	return other.len > path.len && other.p[path.len] == '/' && memcmp(other.p, path.p, path.len) == 0;
}

/* The last component of a path. */
static struct stfs_slice last_component(struct stfs_slice path)
{
	size_t above = stfs_walk_above(path).len;
	struct stfs_slice rest = { path.p + above, path.len - above }, name = { 0 };

	next_component(&rest, &name);
	return name;
}

int stfs_walk_parent(struct stfs_view *view, struct stfs_slice path, struct stfs_walk_parent *ret)
{
	struct stfs_slice name = last_component(path);
	struct stfs_attr attr;
	int r = name.len ? stfs_walk(view, stfs_walk_above(path), &attr) : -EINVAL;

	if (r < 0)
		return r;
	if (attr.type != STFS_NODE_DIR)
		return -ENOTDIR;
	*ret = (struct stfs_walk_parent){ attr.ino, name };
	return 0;
}

static struct stfs_owner own_owner(void)
{
	return (struct stfs_owner){ geteuid(), getegid() };
}

int stfs_walk_make_dirs(struct stfs_view *view, struct stfs_slice path, struct stfs_attr *ret_attr)
{
	struct stfs_slice name;
	struct stfs_attr attr;
	int r = stfs_view_getattr(view, STFS_INO_ROOT, &attr);

	while (r == 0 && next_component(&path, &name)) {
		uint64_t parent = attr.ino;

		r = step_on(view, name, true, &attr);
		if (r == -ENOENT)
			r = stfs_view_mkdir(view, parent, name, 0755, own_owner(), &attr);
		if (r == 0 && attr.type != STFS_NODE_DIR)
			r = -ENOTDIR;
	}
	if (r == 0)
		*ret_attr = attr;
	return r;
}

int stfs_walk_open_empty(struct stfs_view *view, uint64_t dir, struct stfs_slice name, struct stfs_file **ret_file)
{
	struct stfs_attr attr;
	int r = stfs_view_lookup(view, dir, name, &attr);

	if (r == 0 && attr.type == STFS_NODE_LINK) {
		stfs_view_forget(view, attr.ino, 1);
		r = -ENOENT;
	}
	if (r == -ENOENT)
		return stfs_view_create(view, dir, name, 0644, own_owner(), &attr, ret_file);
	return r < 0 ? r : stfs_view_open_write(view, attr.ino, true, ret_file);
}

int stfs_walk_write(struct stfs_file *file, const void *data, size_t len, uint64_t offset)
{
	const char *p = data;

	while (len > 0) {
		size_t written = 0;
		int r = stfs_file_write(file, p, len, offset, &written);

		if (r < 0)
			return r;
		if (written == 0)
			return -ENOSPC;
		p += written;
		offset += written;
		len -= written;
	}
	return 0;
}

/* Whether a file holds exactly that. */
static bool holds(struct stfs_view *view, uint64_t dir, struct stfs_slice name, struct stfs_slice text)
{
	_cleanup_(stfs_file_closep) struct stfs_file *file = NULL;
	_cleanup_free_ char *present = malloc(text.len + 1);
	struct stfs_attr attr;
	size_t n;

	return present && stfs_view_lookup(view, dir, name, &attr) == 0 && attr.type == STFS_NODE_FILE &&
	       attr.size == text.len && stfs_view_open(view, attr.ino, &file) == 0 &&
	       stfs_file_read(file, 0, present, text.len, &n) == 0 &&
	       stfs_slice_equal((struct stfs_slice){ present, n }, text);
}

int stfs_walk_write_text(struct stfs_view *view, uint64_t dir, struct stfs_slice name, struct stfs_slice text)
{
	_cleanup_(stfs_file_closep) struct stfs_file *file = NULL;
	int r;

	if (holds(view, dir, name, text))
		return 0;
	r = stfs_walk_open_empty(view, dir, name, &file);
	return r < 0 ? r : stfs_walk_write(file, text.p, text.len, 0);
}

int stfs_walk_move(struct stfs_view *view, struct stfs_slice from, struct stfs_slice to)
{
	struct stfs_walk_parent old, new;
	struct stfs_attr attr;
	int r = stfs_walk_make_dirs(view, stfs_walk_above(to), &attr);

	if (r == 0)
		r = stfs_walk_parent(view, to, &new);
	if (r == 0)
		r = stfs_walk_parent(view, from, &old);
	return r < 0 ? r : stfs_view_rename(view, old.ino, old.name, new.ino, new.name, true);
}

static bool is_dots(struct stfs_slice name)
{
	return stfs_slice_is(name, ".") || stfs_slice_is(name, "..");
}

/* Directories to be removed. A name may have a million pieces: no recursion. */
struct removal {
	struct doomed {
		uint64_t parent, ino;
		struct stfs_slice name;
		bool emptied; /* what was in it stands above it in the list */
	} * dirs;
	uint32_t n, cap;
	struct stfs_arena names;
};

static void removal_fini(struct removal *removal)
{
	free(removal->dirs);
	stfs_arena_fini(&removal->names);
}

static int push_dir(struct removal *removal, uint64_t parent, uint64_t ino, struct stfs_slice name)
{
	struct doomed dir = { .parent = parent, .ino = ino };
	int r = stfs_array_grow((void **)&removal->dirs, removal->n, &removal->cap, UINT32_MAX, sizeof(*removal->dirs));

	if (r == 0)
		r = stfs_arena_copy(&removal->names, name, &dir.name);
	if (r == 0)
		removal->dirs[removal->n++] = dir;
	return r;
}

/* Removes the files of a directory, and puts its directories on the list; without a list they stay. */
static int empty_dir(struct stfs_view *view, struct removal *removal, uint64_t dir)
{
	_cleanup_(stfs_listing_freep) struct stfs_listing *listing = NULL;
	int r = stfs_view_list(view, dir, &listing);

	for (size_t i = 0; r == 0 && i < listing->n; i++) {
		const struct stfs_dirent *entry = &listing->entries[i];

		if (entry->type != STFS_NODE_DIR)
			r = stfs_view_unlink(view, dir, entry->name);
		else if (removal && !is_dots(entry->name))
			r = push_dir(removal, dir, entry->ino, entry->name);
	}
	return r;
}

int stfs_walk_remove_files(struct stfs_view *view, uint64_t dir)
{
	return empty_dir(view, NULL, dir);
}

int stfs_walk_has_dirs(struct stfs_view *view, uint64_t dir, bool *ret)
{
	_cleanup_(stfs_listing_freep) struct stfs_listing *listing = NULL;
	int r = stfs_view_list(view, dir, &listing);

	if (r < 0)
		return r;
	*ret = false;
	for (size_t i = 0; i < listing->n; i++)
		*ret |= listing->entries[i].type == STFS_NODE_DIR && !is_dots(listing->entries[i].name);
	return 0;
}

static int remove_dir(struct stfs_view *view, const struct stfs_walk_parent *parent, uint64_t ino)
{
	_cleanup_(removal_fini) struct removal removal = { 0 };
	int r = push_dir(&removal, parent->ino, ino, parent->name);

	while (r == 0 && removal.n > 0) {
		struct doomed *last = &removal.dirs[removal.n - 1];

		if (last->emptied) {
			r = stfs_view_rmdir(view, last->parent, last->name);
			removal.n--;
		} else {
			last->emptied = true;
			r = empty_dir(view, &removal, last->ino);
		}
	}
	return r;
}

int stfs_walk_remove(struct stfs_view *view, struct stfs_slice path)
{
	struct stfs_walk_parent parent;
	struct stfs_attr attr;
	int r = stfs_walk(view, path, &attr);

	if (r == 0)
		r = stfs_walk_parent(view, path, &parent);
	if (r < 0)
		return r;
	return attr.type == STFS_NODE_DIR ? remove_dir(view, &parent, attr.ino) :
					    stfs_view_unlink(view, parent.ino, parent.name);
}

int stfs_walk_prune(struct stfs_view *view, struct stfs_slice path)
{
	for (; path.len > 0; path = stfs_walk_above(path)) {
		struct stfs_walk_parent parent;
		int r = stfs_walk_parent(view, path, &parent);

		if (r == 0)
			r = stfs_view_rmdir(view, parent.ino, parent.name);
		if (r == -ENOTEMPTY)
			return 0;
		if (r < 0 && r != -ENOENT)
			return r;
	}
	return 0;
}
