/* SPDX-License-Identifier: Apache-2.0 */
/* New names for many tensors at once: judged as a whole before anything is changed. */
#pragma once

#include "arena.h"
#include "names.h"

/* One tensor's new name. */
struct stfs_rename {
	struct stfs_slice to; /* first, for the table */
	uint32_t tensor;      /* of the names */
};

/* Embedded, released with stfs_renames_fini. */
struct stfs_renames {
	const struct stfs_names *names; /* borrowed */
	struct stfs_rename *list;
	uint32_t n, cap;
	struct stfs_arena strings;
	bool *moves;  /* for each tensor of the names: it is given another name */
	bool *wanted; /* for each tensor: it must leave its place before others can take theirs */
};

/* Starts an empty list over `names` (borrowed). Returns 0 or -ENOMEM. */
int stfs_renames_init(struct stfs_renames *renames, const struct stfs_names *names);

/* Releases the memory; takes an all-zero one too. */
void stfs_renames_fini(struct stfs_renames *renames);

/* Adds a new name (copied) for a tensor; one that is its name already is passed over. Returns 0 or -ENOMEM. */
int stfs_renames_add(struct stfs_renames *renames, uint32_t tensor, struct stfs_slice to);

/*
 * Judges the list: every name that cannot be, or that two tensors would have, is a violation in `report`. Returns 0, -EINVAL
 * after violations, -ENOMEM.
 */
int stfs_renames_check(struct stfs_renames *renames, struct stfs_report *report);

/* Appends "OLD -> NEW", one line each, printable. Returns 0 or -ENOMEM. */
int stfs_renames_text(const struct stfs_renames *renames, struct stfs_buf *buf);

/* Carries a judged list out, whatever order the names need (a swap, a chain). Returns 0, or -errno with a sentence. */
int stfs_renames_apply(const struct stfs_renames *renames, struct stfs_diag *diag);
