/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of a view as they are now, staged changes included, and what an operand picks among them. */
#pragma once

#include "changes.h"
#include "table.h"

/* Embedded, released with stfs_names_fini. As it was when it was taken: edits made since are not in it. */
struct stfs_names {
	struct stfs_view *view; /* borrowed */
	struct stfs_changes *changes;
	struct stfs_table by_name; /* of changes->tensors */
};

/* Collects the names of `view`. Returns 0 or -errno. */
int stfs_names_init(struct stfs_names *names, struct stfs_view *view);

/* Releases the memory; takes an all-zero one too. */
void stfs_names_fini(struct stfs_names *names);

/* The tensor called `name`, as its place in changes->tensors, or STFS_TABLE_NONE. */
uint32_t stfs_names_find(const struct stfs_names *names, struct stfs_slice name);

/* Appends the path in the tree of a tensor. Returns 0 or -ENOMEM. */
int stfs_names_path(const struct stfs_names *names, uint32_t tensor, struct stfs_buf *buf) STFS_MUST_CHECK;

/* What an operand names. Embedded, released with stfs_operand_fini. */
struct stfs_operand {
	struct stfs_buf name; /* of a tensor, or the beginning of names */
	struct stfs_buf path; /* where the tree has it, or would have it */
	bool is_dir;          /* it has: a tensor or a module */
	uint32_t *tensors;    /* those of that name or below it, as places in changes->tensors */
	uint32_t n_tensors;
};

/*
 * Takes `typed` as the name of a tensor or module, "model.layers.0", or else as a path in the tree, "model/layers/0".
 * Returns 0, -ENOENT when there is no such thing, -ENOMEM. The caller releases *ret.
 */
int stfs_names_resolve(const struct stfs_names *names, const char *typed, struct stfs_operand *ret);

/*
 * The name that `typed` gives to something new, appended to `buf`. With a '/' in it it is a path of the tree, "a/b" or
 * "./a%2Fb"; otherwise it is the name. Returns 0, -EINVAL for an empty one and for what is no path, -ENOMEM.
 */
int stfs_names_spell(const char *typed, struct stfs_buf *buf) STFS_MUST_CHECK;

/* Releases the memory. */
void stfs_operand_fini(struct stfs_operand *operand);
