/* SPDX-License-Identifier: Apache-2.0 */
/* A plan in the making; private to the model layer. */
#pragma once

#include "plan.h"

struct stfs_planning {
	const struct stfs_model *model;
	const struct stfs_changes *changes;
	const struct stfs_plan_options *options;
	struct stfs_report *report;
	struct stfs_plan *plan;
	bool index_changed; /* names, sizes or places of tensors are not what the index says */
};

/* Reports everything that stands in the way of any plan. */
int stfs_plan_judge(struct stfs_planning *planning);

/* Decides which files there will be and which tensors go where. */
int stfs_plan_assign(struct stfs_planning *planning);

/* Whether no old file that stays has that key: it is new, or the file that had it goes. */
bool stfs_plan_key_is_homeless(const struct stfs_planning *planning, const struct stfs_staged_key *key);

/* Builds header and copies of a file that changes. Returns 0, -EINVAL after a violation, -ENOMEM. */
int stfs_plan_fill_file(struct stfs_planning *planning, struct stfs_plan_file *file);

/* Builds the text of the index. */
int stfs_plan_write_index(struct stfs_planning *planning);

/* The tensors of a model by their names. Embedded, all zero at first. */
struct stfs_nearest {
	const struct stfs_changes *changes; /* borrowed */
	/*
	 * Of 2n: from n on the tensors of the model, as places in `changes`, in the order of their names; in front of them a tree, i
	 * above 2i and 2i + 1, of the largest below. So it takes few steps to find the last of many that stand together.
	 */
	uint32_t *latest;
	uint32_t *by_name; /* latest + n */
	uint32_t n;
};

/* Sorts the tensors of the model. Returns 0 or -ENOMEM. */
int stfs_nearest_init(struct stfs_nearest *nearest, const struct stfs_changes *changes) STFS_MUST_CHECK;

/* Releases the memory; takes an all-zero one too. */
void stfs_nearest_fini(struct stfs_nearest *nearest);

/*
 * The tensor of the model whose name has the most pieces between dots in common with `name` at its start, the last in the order of
 * the model, as a place in the changes; UINT32_MAX when none has one.
 */
uint32_t stfs_nearest_find(const struct stfs_nearest *nearest, struct stfs_slice name);
