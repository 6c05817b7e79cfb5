/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of a view by paths, which are relative to its root: what a shell does with a mount, without one. */
#pragma once

#include "view_edit.h"

/*
 * Finds what `path` leads to; dotted names are followed to their place. Empty components and "." are passed over. Returns 0,
 * -ENOENT, -ENOTDIR, -errno.
 */
int stfs_walk(struct stfs_view *view, struct stfs_slice path, struct stfs_attr *ret_attr);

/* A path as the directory it lies in, and the name there. */
struct stfs_walk_parent {
	uint64_t ino;
	struct stfs_slice name; /* borrowed from the path */
};

/* Splits `path` and finds its directory; the name itself need not exist. Returns 0 or -errno. */
int stfs_walk_parent(struct stfs_view *view, struct stfs_slice path, struct stfs_walk_parent *ret);

/* Finds the directory `path`, and makes it and those above it where they are missing. Returns 0, -ENOTDIR, -errno. */
int stfs_walk_make_dirs(struct stfs_view *view, struct stfs_slice path, struct stfs_attr *ret_attr);

/* Finds a file of the directory `dir`, or makes an empty one, and opens it emptied. The caller closes *ret_file. */
int stfs_walk_open_empty(struct stfs_view *view, uint64_t dir, struct stfs_slice name, struct stfs_file **ret_file);

/* Writes all of `len` bytes at `offset`. Returns 0, -ENOSPC when only a part fitted, -errno. */
int stfs_walk_write(struct stfs_file *file, const void *data, size_t len, uint64_t offset);

/* Makes `text` all that the file `name` of the directory `dir` holds; one that holds it already is left alone. */
int stfs_walk_write_text(struct stfs_view *view, uint64_t dir, struct stfs_slice name, struct stfs_slice text);

/* Moves what is at `from` to `to`, where nothing may be, and makes the directories above `to`. Returns 0 or -errno. */
int stfs_walk_move(struct stfs_view *view, struct stfs_slice from, struct stfs_slice to);

/* Removes what is at `path`, with all that is below it. Returns 0 or -errno. */
int stfs_walk_remove(struct stfs_view *view, struct stfs_slice path);

/* Whether the directory `dir` has directories in it. Returns 0 or -errno. */
int stfs_walk_has_dirs(struct stfs_view *view, uint64_t dir, bool *ret);

/* Removes the files of the directory `dir`, and leaves what is below its directories. Returns 0 or -errno. */
int stfs_walk_remove_files(struct stfs_view *view, uint64_t dir);

/* Removes the directory `path` and those above it, as far up as they are empty. Returns 0 or -errno. */
int stfs_walk_prune(struct stfs_view *view, struct stfs_slice path);

/* The path without its last component; empty when it has one only. */
struct stfs_slice stfs_walk_above(struct stfs_slice path);

/* Whether `path` leads on to `other`: "a/b" to "a/b/c". */
bool stfs_walk_is_above(struct stfs_slice path, struct stfs_slice other);
