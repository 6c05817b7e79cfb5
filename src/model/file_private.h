/* SPDX-License-Identifier: Apache-2.0 */
/* An open file; private to the model layer. */
#pragma once

#include "edit_private.h"

/*
 * A head of our own making, then the bytes of a content, or of the model as long as nothing was changed. Immutable but for
 * `content`, which is set once.
 */
struct stfs_file {
	struct stfs_view *view;
	uint64_t ino;
	struct stfs_buf head;
	struct stfs_snapshot *source;           /* one reference; NULL: all head */
	uint64_t begin, size;                   /* bytes of the source */
	_Atomic(struct stfs_content *) content; /* one reference, opened */
	bool fixed;                             /* the head stays when there is a content: data.npy, .safetensors */

	/* Of a file that is open for writing. */
	bool writable;
	enum stfs_role role;
	/* text of a dtype or shape that was cut by opening it: put back when the new one is refused */
	struct stfs_buf before;
};

/* A file that the model still generated when it was opened may have become one of its own: from then on it reads that. */
void stfs_file_follow(struct stfs_file *file);

/* An open file with nothing in it. */
int stfs_file_alloc(struct stfs_view *view, uint64_t ino, struct stfs_file **ret) STFS_MUST_CHECK;

STFS_DEFINE_CLEANUP(struct stfs_file, stfs_file_close)

/* Appends the NumPy header of a tensor whose files are nodes of their own. -EINVAL when dtype or shape are none. */
int stfs_view_npy_head(struct stfs_view *view, uint32_t dir, struct stfs_buf *buf);
