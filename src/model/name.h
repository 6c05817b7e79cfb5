/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor name ⇄ path in the mount, total and inverse: every name has exactly one canonical path, and every canonical
 * path spells exactly one name. Contract: docs/TREE.md, section 2.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "slice.h"

#define STFS_COMPONENT_MAX 255 /* bytes, what the kernel and every filesystem allow */
#define STFS_PIECE_MAX 240     /* bytes of an escaped piece before it is cut */

enum stfs_layout {
	STFS_NESTED, /* split at each '.' */
	STFS_FLAT,   /* the whole name is one piece */
};

/*
 * Yields the path components of a tensor name one after the other, without allocating (a name may have millions of
 * them). Embedded; `name` is borrowed.
 */
struct stfs_name_walk {
	struct stfs_slice rest; /* what is left of the name */
	enum stfs_layout layout;
	bool done, in_piece, first;
	char component[STFS_COMPONENT_MAX + 1]; /* the component last yielded, with a NUL */
	size_t len;
};

/* Starts a walk at the root of the tree. */
void stfs_name_walk_init(struct stfs_name_walk *walk, struct stfs_slice name, enum stfs_layout layout);

/* Yields the next component into walk->component / walk->len; false at the end. Every name has at least one. */
bool stfs_name_walk_next(struct stfs_name_walk *walk);

/* Appends the whole path of a tensor name, components joined with '/'. Returns 0 or -ENOMEM. */
int stfs_name_encode(struct stfs_buf *buf, struct stfs_slice name, enum stfs_layout layout) STFS_MUST_CHECK;

/*
 * Appends the tensor name that a path spells. `path` is relative to the root, without empty components. Returns 0,
 * -EPERM when it is not the canonical path of any name (bad escape, wrong cut, reserved component), -EILSEQ when it is
 * not UTF-8, -ENAMETOOLONG for a component over 255 bytes, -ENOMEM. On failure `buf` is as before.
 */
int stfs_name_decode(struct stfs_buf *buf, struct stfs_slice path, enum stfs_layout layout) STFS_MUST_CHECK;

/*
 * The file name of a metadata key, one component, appended to `buf`: the escapes of a piece, and a leading '.', a
 * leading '#' and a trailing '~' escaped too. Never split: a key whose escaped form is over 255 bytes gives
 * -ENAMETOOLONG. Returns 0 or -ENOMEM otherwise.
 */
int stfs_key_encode(struct stfs_buf *buf, struct stfs_slice key) STFS_MUST_CHECK;

/* The metadata key that a file name spells; errors as stfs_name_decode. */
int stfs_key_decode(struct stfs_buf *buf, struct stfs_slice component) STFS_MUST_CHECK;
