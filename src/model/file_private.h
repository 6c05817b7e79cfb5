/* SPDX-License-Identifier: Apache-2.0 */
/* An open file; private to the model layer. */
#pragma once

#include "edit_private.h"

/* A content that an open file had before: a read may still be under way in it. */
struct stfs_former {
	struct stfs_former *next;
	struct stfs_content *content; /* one reference, opened */
};

/*
 * A head of our own making, then the bytes of a content, or of the model as long as nothing was changed. Immutable but for
 * `content`, and `formers` with it, and `before`.
 */
struct stfs_file {
	struct stfs_view *view;
	uint64_t ino;
	struct stfs_buf head;
	struct stfs_snapshot *source;           /* one reference; NULL: all head */
	uint64_t begin, size;                   /* bytes of the source */
	_Atomic(struct stfs_content *) content; /* one reference, opened */
	struct stfs_former *formers;            /* let go when the file is closed; changed with the tree locked */
	bool fixed;                             /* the head stays when there is a content: data.npy, .safetensors */

	/* Of a file that is open for writing. */
	bool writable;
	enum stfs_role role;
	/* text of a dtype or shape that was emptied: put back when the new one is refused; under the view's lock */
	struct stfs_buf before;
};

/*
 * An open file is what its inode number stands for, as the kernel keeps one cache for both. One that the model still
 * generated when it was opened may have become a file of its own; what was edited may have been discarded, and is the
 * model's again. Returns 0 or -errno (then it is as before).
 */
int stfs_file_follow(struct stfs_file *file);

/* Whether that has to be called before the file is written. Called with the tree locked. */
bool stfs_file_is_left_behind(struct stfs_file *file);

/*
 * The content that the bytes of another one were handed on to, and how many were left out, or NULL when there is none any more.
 * Called with the tree locked.
 */
struct stfs_content *stfs_file_heir(const struct stfs_view *view, struct stfs_content *content, uint64_t *ret_skip);

/* An open file with nothing in it. */
int stfs_file_alloc(struct stfs_view *view, uint64_t ino, struct stfs_file **ret) STFS_MUST_CHECK;

/* Appends the NumPy header of a tensor whose files are nodes of their own. -EINVAL when dtype or shape are none. */
int stfs_view_npy_head(struct stfs_view *view, uint32_t dir, struct stfs_buf *buf);
