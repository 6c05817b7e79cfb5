/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of editing share; private to the model layer. */
#pragma once

#include "npy.h"
#include "record.h"
#include "view_change.h"

/* Locks the tree for a change and makes the staging area. Returns 0, -EROFS, -EBUSY during a commit, -errno; then unlocked. */
int stfs_edit_begin(struct stfs_view *view) STFS_MUST_CHECK;

/* Makes the staging area, with a journal that says which model it is about, unless it is there. With the tree locked. */
int stfs_edit_make_stage(struct stfs_view *view) STFS_MUST_CHECK;

/* Ends a change. */
void stfs_edit_end(struct stfs_view *view);

/* The directory of an inode number that may be changed. Called with the tree locked, as all that follow. */
int stfs_edit_find_dir(const struct stfs_view *view, uint64_t ino, uint32_t *ret);

/* The entry of a directory as a node of its own: what the model generates is made explicit. -EACCES for what cannot be. */
int stfs_edit_find_entry(struct stfs_view *view, uint32_t dir, struct stfs_slice name, uint32_t *ret);

/* The file node of an inode number, made explicit; -EISDIR, -EACCES, -ESTALE. */
int stfs_edit_file_node(struct stfs_view *view, uint64_t ino, uint32_t *ret);

/* Whether something new may have that name: 0, -EPERM, -EILSEQ, -ENAMETOOLONG, -EINVAL. */
int stfs_edit_check_name(const struct stfs_view *view, uint32_t parent, struct stfs_slice name, bool is_dir);

/* Adds an empty file, journaled. */
int stfs_edit_add_file(struct stfs_view *view, uint32_t dir, struct stfs_slice name, uint64_t ino,
		       const struct stfs_file_attr *attr, uint32_t *ret_node) STFS_MUST_CHECK;

/* Writes down something new, in the journal there is or the next: `type` is STFS_RECORD_MKDIR or STFS_RECORD_CREATE. */
int stfs_edit_journal_new(struct stfs_view *view, struct stfs_journal *journal, enum stfs_record_type type,
			  uint64_t ino, uint32_t dir, struct stfs_slice name, const struct stfs_file_attr *attr)
	STFS_MUST_CHECK;

/* Writes down that an entry moves. */
int stfs_edit_journal_rename(struct stfs_view *view, uint32_t dir, struct stfs_slice name, uint32_t new_dir,
			     struct stfs_slice new_name) STFS_MUST_CHECK;

/* Writes down the attributes of the directory that is, or will be, at `path` (relative to the root). */
int stfs_edit_journal_dir_at(struct stfs_journal *journal, struct stfs_slice path, const struct stfs_file_attr *attr)
	STFS_MUST_CHECK;

/* The same of a directory where it is now. */
int stfs_edit_journal_dir(struct stfs_view *view, struct stfs_journal *journal, uint32_t dir,
			  const struct stfs_file_attr *attr) STFS_MUST_CHECK;

/* Writes down the attributes of all directories that have some of that origin, or of one after it, in a new journal. */
int stfs_edit_dump_dirs(struct stfs_view *view, struct stfs_journal *journal, enum stfs_dir_attr_origin origin)
	STFS_MUST_CHECK;

/* Builds the payload of a record that says that an entry goes away. */
int stfs_edit_say_removed(struct stfs_view *view, uint32_t dir, struct stfs_slice name, struct stfs_buf *payload)
	STFS_MUST_CHECK;

/* Writes down that an entry goes away. */
int stfs_edit_journal_remove(struct stfs_view *view, uint32_t dir, struct stfs_slice name) STFS_MUST_CHECK;

/*
 * Writes down which file the records of `content` are about, unless the journal knows. To be called before its bytes are
 * changed; a read lock is enough.
 */
int stfs_edit_bind(struct stfs_view *view, struct stfs_content *content) STFS_MUST_CHECK;

void stfs_edit_apply_change(struct stfs_file_attr *attr, const struct stfs_attr_change *change);

/* Inode numbers whose bytes changed when a NumPy file took effect; told to the watcher after the lock is gone. */
struct stfs_npy_effect {
	uint64_t inos[3];
	uint64_t parent; /* inode of the directory whose data.npy went */
	unsigned n;
};

/* Lets the data.npy of a directory take effect if it is a complete NumPy file; never fails, never judges. */
void stfs_edit_take_npy(struct stfs_view *view, uint32_t dir, struct stfs_npy_effect *effect);

void stfs_edit_tell_npy(struct stfs_view *view, const struct stfs_npy_effect *effect);

/*
 * An open file over a content (referenced and opened by it) that has that role; `npy_dir` is the directory of a
 * generated data.npy that is opened for writing, else STFS_NODE_NONE.
 */
int stfs_file_new(struct stfs_view *view, struct stfs_content *content, enum stfs_role role, uint32_t npy_dir,
		  struct stfs_file **ret_file);
