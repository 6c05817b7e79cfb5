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
