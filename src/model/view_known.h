/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel may still believe of a tree that is about to change by itself: collected before, told to the watcher after.
 * Private to the model layer.
 */
#pragma once

#include "view_private.h"

/* Embedded; all zero is empty. */
struct stfs_known {
	uint64_t *inos, *parents;
	struct stfs_buf names; /* each with a NUL */
	size_t n, cap;
};

/* Releases the memory. */
void stfs_known_fini(struct stfs_known *known);

/*
 * Add nodes that are not generated from the model as it stands: `top` and all below it; a node and those that lead to it. Called
 * with the tree locked. Return 0 or -ENOMEM.
 */
int stfs_known_collect(struct stfs_view *view, uint32_t top, struct stfs_known *known) STFS_MUST_CHECK;
int stfs_known_collect_above(struct stfs_view *view, uint32_t node, struct stfs_known *known) STFS_MUST_CHECK;

/* Tells the watcher to forget them; called without locks. */
void stfs_known_tell(struct stfs_view *view, const struct stfs_known *known);
