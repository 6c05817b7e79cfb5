/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of the tree by node, without journal: what edits and their replay share. Private to the model layer; called with the
 * tree locked for writing.
 */
#pragma once

#include "view_private.h"

/*
 * The node at `path` (relative to the root; empty: the root), STFS_NODE_NONE when nothing is there. Returns 0, or -EEXIST when a
 * file stands where the path has a directory.
 */
int stfs_change_find_path(const struct stfs_view *view, struct stfs_slice path, uint32_t *ret);

/* A number for a node that is made; never 0. Taken numbers are passed over. */
uint64_t stfs_change_new_id(struct stfs_view *view);

/* The id of a node with that inode number. */
uint64_t stfs_change_id_of_ino(uint64_t ino);

/* The inode number of a file node with that id. */
uint64_t stfs_change_ino_of_id(uint64_t id);

/*
 * Turns the three generated files of a tensor's directory into nodes of their own, with the same inode numbers, so that they
 * can be changed. Does nothing for other directories. Returns 0, -EFBIG or -ENOMEM.
 */
int stfs_change_make_explicit(struct stfs_view *view, uint32_t dir);

/*
 * Makes a file of an explicit tensor directory, that has an entry, as the model has it (the caller owns *ret), and room for it.
 * Changes nothing yet. The other function puts it (handed over) in the place of what is there now, and does not fail after the
 * first.
 */
int stfs_change_make_slot(struct stfs_view *view, uint32_t dir, enum stfs_slot slot, struct stfs_content **ret);
void stfs_change_put_slot(struct stfs_view *view, uint32_t dir, enum stfs_slot slot, struct stfs_content *content);

/* Turns a key of the model into a file of its own. Does nothing for other nodes. */
int stfs_change_make_file(struct stfs_view *view, uint32_t node);

/*
 * Adds a file with `content` (handed over on success) to a directory, under the content's inode number.
 */
int stfs_change_add_file(struct stfs_view *view, uint32_t dir, struct stfs_slice name, struct stfs_content *content,
			 uint32_t *ret_node);

/* Replaces the content of a file node (handed over); the old one is let go, and dropped from disk unless `keep_bytes`. */
void stfs_change_set_content(struct stfs_view *view, uint32_t node, struct stfs_content *content, bool keep_bytes);

/* Adds a directory. */
int stfs_change_add_dir(struct stfs_view *view, uint32_t dir, struct stfs_slice name, uint64_t id,
			const struct stfs_file_attr *attr, uint32_t *ret_node);

/* Whether a directory has nothing in it. */
bool stfs_change_is_empty(const struct stfs_view *view, uint32_t dir);

/* Whether a directory is that of a tensor: of the model, or one that has some of its files. */
bool stfs_change_is_tensor(const struct stfs_view *view, uint32_t dir);

/* Removes a file node or an empty directory. */
void stfs_change_remove(struct stfs_view *view, uint32_t node);

/* Removes a node and all below it. */
void stfs_change_remove_tree(struct stfs_view *view, uint32_t top);

/* Whether a node may take the place of another: a file that of a file, a directory that of an empty one. */
bool stfs_change_may_replace(const struct stfs_view *view, uint32_t node, uint32_t target);

/* Takes the memory that a move to `name` needs: the next one does not fail. Returns 0, -EFBIG or -ENOMEM. */
int stfs_change_reserve_move(struct stfs_view *view, struct stfs_slice name);

/*
 * Moves a node over whatever stands there, which must be a file, or an empty directory. Returns 0, -EFBIG or -ENOMEM (nothing
 * changed).
 */
int stfs_change_move(struct stfs_view *view, uint32_t node, uint32_t dir, struct stfs_slice name);

/* Takes the memory that setting the attributes of a directory needs: that does not fail then. Returns 0, -EFBIG or -ENOMEM. */
int stfs_change_reserve_dir_attr(struct stfs_view *view, uint32_t dir) STFS_MUST_CHECK;

/* Sets the attributes of a directory. Returns 0, -EFBIG or -ENOMEM. */
int stfs_change_set_dir_attr(struct stfs_view *view, uint32_t dir, const struct stfs_file_attr *attr,
			     enum stfs_dir_attr_origin origin) STFS_MUST_CHECK;

/* The attributes that a directory was made with or that were set of it (borrowed), NULL when there are none. */
const struct stfs_dir_attr *stfs_change_own_dir_attr(const struct stfs_view *view, uint32_t dir);

/* Lets go of the attributes of a directory that were set: it shows those of the model again. */
void stfs_change_drop_dir_attr(struct stfs_view *view, uint32_t dir);

/* The attributes a directory shows. */
void stfs_change_get_dir_attr(struct stfs_view *view, uint32_t dir, struct stfs_file_attr *ret);

/* Sets the mtime of a directory to now, when something in it was added, removed or renamed. */
void stfs_change_touch_dir(struct stfs_view *view, uint32_t dir);

/*
 * Makes what is at `path` (relative to the root; empty: everything) what the model has there. Returns 0, -ENOENT when neither
 * has anything of that path, -EEXIST when a scratch file is in the way, -ENOMEM.
 */
int stfs_change_restore(struct stfs_view *view, struct stfs_slice path);
