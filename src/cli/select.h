/* SPDX-License-Identifier: Apache-2.0 */
/* Picks tensors by the beginning of their name, as the user typed it. */
#pragma once

#include <stdbool.h>

#include "buf.h"
#include "slice.h"

/* Whether `name` is `prefix` or lies below it; pieces count whole, and '/' parts them as '.' does. */
bool stfs_name_is_below(struct stfs_slice name, struct stfs_slice prefix);

/* One operand. Embedded. */
struct stfs_selector {
	struct stfs_slice typed; /* borrowed from the command line */
	struct stfs_buf decoded; /* the name it spells as a path of the tree */
	bool is_path;            /* `decoded` counts */
	bool used;               /* has matched something */
};

/* Takes `text` (borrowed), a dotted prefix or a path in the tree, with or without a final '/'. Returns 0 or -ENOMEM. */
int stfs_selector_init(struct stfs_selector *selector, const char *text) STFS_MUST_CHECK;

/* Releases the memory. */
void stfs_selector_fini(struct stfs_selector *selector);

/* Whether `name` is the selected name or lies below it; pieces count whole, so "layers.1" does not select "layers.10". */
bool stfs_selector_match(struct stfs_selector *selector, struct stfs_slice name);
