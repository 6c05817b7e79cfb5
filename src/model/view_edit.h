/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing the tree of a view. Everything is staged (stage.h) before it is answered; the model files are not touched.
 * Contract: docs/TREE.md, sections 3 to 5. Functions may be called from any thread at once. In a view without a staging area
 * they answer -EROFS. While a commit runs they answer -EBUSY, and should be tried again when it is over.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/statvfs.h>

#include "stage.h"
#include "view.h"

/*
 * Makes a view writable: replays what is staged already. `stage` is the view's from then on (also on failure). Returns 0,
 * -ESTALE when what is staged was made for another version of the model (the sentence says so; nothing is changed), -EBADMSG
 * when the journal is damaged, -errno.
 */
int stfs_view_attach_stage(struct stfs_view *view, struct stfs_stage *stage, struct stfs_diag *diag) STFS_MUST_CHECK;

/* Whether edits are possible. */
bool stfs_view_is_writable(const struct stfs_view *view);

/* Who is told of changes that the kernel cannot know of. Called without any lock of the view; may be called from any thread. */
struct stfs_view_watcher {
	void (*changed)(void *user, uint64_t ino);                            /* bytes or attributes */
	void (*renamed)(void *user, uint64_t parent, struct stfs_slice name); /* an entry is another one, or gone */
	void *user;
};

/* Sets the watcher (copied), before the first request. */
void stfs_view_set_watcher(struct stfs_view *view, const struct stfs_view_watcher *watcher);

/* Who asks: owner of what is created. */
struct stfs_owner {
	uid_t uid;
	gid_t gid;
};

/*
 * Creates a directory. Returns 0, -EEXIST (also when the name spells a tensor that stands elsewhere), -EPERM for a name that
 * no tensor path has (bad escape, reserved) or below __metadata__, -EILSEQ, -ENAMETOOLONG, -ENOENT, -ENOTDIR, -errno.
 */
int stfs_view_mkdir(struct stfs_view *view, uint64_t parent, struct stfs_slice name, mode_t perm,
		    struct stfs_owner owner, struct stfs_attr *ret_attr);

/* Creates an empty file and opens it for reading and writing. Errors as stfs_view_mkdir. The caller closes *ret_file. */
int stfs_view_create(struct stfs_view *view, uint64_t parent, struct stfs_slice name, mode_t perm,
		     struct stfs_owner owner, struct stfs_attr *ret_attr, struct stfs_file **ret_file);

/* Removes a file. Returns 0, -ENOENT, -EISDIR, -EACCES for what is generated, -errno. */
int stfs_view_unlink(struct stfs_view *view, uint64_t parent, struct stfs_slice name);

/* Removes an empty directory. Returns 0, -ENOENT, -ENOTDIR, -ENOTEMPTY, -errno. */
int stfs_view_rmdir(struct stfs_view *view, uint64_t parent, struct stfs_slice name);

/*
 * Moves a file or directory, replacing a file, or an empty directory by a directory. With `no_replace` an existing target is
 * -EEXIST. A directory moves with all that is in it, in one step. Errors as stfs_view_mkdir, and -EINVAL for a directory
 * into itself.
 */
int stfs_view_rename(struct stfs_view *view, uint64_t parent, struct stfs_slice name, uint64_t new_parent,
		     struct stfs_slice new_name, bool no_replace);

/* What stfs_view_setattr changes. */
struct stfs_attr_change {
	bool set_perm, set_uid, set_gid, set_mtime, set_size;
	mode_t perm;
	uid_t uid;
	gid_t gid;
	struct timespec mtime;
	uint64_t size; /* bytes: cut, or grown with zeros */
};

/* Changes attributes of a file or directory, and the size of a file. Returns 0, -EACCES for what is generated, -errno. */
int stfs_view_setattr(struct stfs_view *view, uint64_t ino, const struct stfs_attr_change *change,
		      struct stfs_attr *ret_attr);

/* Opens a file for reading and writing, with `truncate` as an empty one. Errors as stfs_view_open, -EACCES. */
int stfs_view_open_write(struct stfs_view *view, uint64_t ino, bool truncate, struct stfs_file **ret_file);

/*
 * Writes. A first whole line into dtype or shape that can never be one is -EINVAL, and the old text stays. Returns 0 with
 * *ret_written (less than `size` when the disk filled up on the way), or -errno.
 */
int stfs_file_write(struct stfs_file *file, const void *data, size_t size, uint64_t offset, size_t *ret_written);

/*
 * stfs_view_getattr and stfs_view_setattr by an open file: they go on working when it was removed or replaced since. A file
 * that has no name any more has an nlink of 0.
 */
int stfs_file_getattr(struct stfs_file *file, struct stfs_attr *ret_attr);
int stfs_file_setattr(struct stfs_file *file, const struct stfs_attr_change *change, struct stfs_attr *ret_attr);

/* Whether the file's bytes are made from those of other files: what the kernel keeps of them goes stale by itself. */
bool stfs_file_is_generated(const struct stfs_file *file);

/* Grows a file to `size` bytes if it is smaller. */
int stfs_file_allocate(struct stfs_file *file, uint64_t size);

/*
 * Copies `len` bytes from one open file to another. A tensor that nobody edited, from its beginning, is staged as a reference. Returns 0
 * with *ret_copied, or -EOPNOTSUPP when the caller had better read and write.
 */
int stfs_file_copy(struct stfs_file *from, uint64_t from_offset, struct stfs_file *to, uint64_t to_offset, uint64_t len,
		   uint64_t *ret_copied);

/*
 * Says that a descriptor of the file was closed: a NumPy file that is complete takes effect now. Never judges. Returns 0, or
 * -EBUSY when that has to wait for a commit.
 */
int stfs_file_flush(struct stfs_file *file);

/* Makes what was accepted of this file survive a power cut. Returns 0, -EBUSY during a commit, -errno. */
int stfs_file_sync(struct stfs_file *file);

/* The same for all that is staged. */
int stfs_view_sync(struct stfs_view *view);

/* Makes names that were accepted (created, removed, moved) survive a power cut. */
int stfs_view_sync_names(struct stfs_view *view);

/* Whether anything is staged, scratch files included. When that cannot be told it is true. */
bool stfs_view_has_staged(struct stfs_view *view);

/* Removes the staging area when nothing is staged; to be called when no edit can come any more. */
void stfs_view_tidy(struct stfs_view *view);

/* Room for edits: what statvfs(3) says of the staging area's filesystem. Returns 0, -EROFS without a staging area, -errno. */
int stfs_view_space(struct stfs_view *view, struct statvfs *ret);

/*
 * Drops what is staged below `path` (relative to the root; empty: all of it). Tensors that were moved there go back to where
 * the model has them. Where there is nothing, the name of a tensor or module that is gone serves as well. Returns 0, -ENOENT
 * when there is nothing of that path, -errno.
 */
int stfs_view_discard(struct stfs_view *view, struct stfs_slice path, struct stfs_diag *diag);
