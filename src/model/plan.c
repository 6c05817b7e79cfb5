/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "plan_private.h"
#include "quote.h"

void stfs_plan_free(struct stfs_plan *plan)
{
	if (!plan)
		return;
	for (uint32_t i = 0; i < plan->n_files; i++) {
		stfs_buf_fini(&plan->files[i].header);
		free(plan->files[i].copies);
		free(plan->files[i].tensors);
	}
	free(plan->files);
	free(plan->removed);
	stfs_buf_fini(&plan->index);
	stfs_arena_fini(&plan->strings);
	free(plan);
}

static void judge_tensor(struct stfs_planning *planning, const struct stfs_staged_tensor *tensor)
{
	if (tensor->problem)
		stfs_violation(planning->report, "tensor %s: %s", stfs_quote(tensor->name).text, tensor->problem);
	else if (stfs_slice_is(tensor->name, "__metadata__"))
		stfs_violation(planning->report, "no tensor can be called __metadata__: the format keeps that name");
}

int stfs_plan_judge(struct stfs_planning *planning)
{
	const struct stfs_changes *changes = planning->changes;
	uint64_t before = planning->report->violations;

	for (uint32_t i = 0; i < changes->n_tensors; i++)
		judge_tensor(planning, &changes->tensors[i]);
	for (uint32_t i = 0; i < changes->n_keys; i++) {
		const struct stfs_staged_key *key = &changes->keys[i];

		if (key->problem)
			stfs_violation(planning->report, "__metadata__ key %s: %s", stfs_quote(key->key).text,
				       key->problem);
		else if (key->litter)
			stfs_warn(planning->report,
				  "__metadata__ key %s looks like a tool's leftover, and is committed",
				  stfs_quote(key->key).text);
	}
	return planning->report->violations > before ? -EINVAL : 0;
}

static int make_plan(struct stfs_planning *planning)
{
	struct stfs_plan *plan = planning->plan;
	int r = stfs_plan_judge(planning);

	if (r == 0)
		r = stfs_plan_assign(planning);
	for (uint32_t i = 0; r == 0 && i < plan->n_files; i++) {
		if (!plan->files[i].changed)
			continue;
		r = stfs_plan_fill_file(planning, &plan->files[i]);
		plan->bytes += plan->files[i].size;
	}
	if (r == 0 && plan->index_name.len)
		r = stfs_plan_write_index(planning);
	plan->bytes += plan->index.len;
	return r;
}

int stfs_plan_make(const struct stfs_model *model, const struct stfs_changes *changes,
		   const struct stfs_plan_options *options, struct stfs_report *report, struct stfs_plan **ret)
{
	_cleanup_(stfs_plan_freep) struct stfs_plan *plan = calloc(1, sizeof(*plan));
	struct stfs_planning planning = { model, changes, options, report, plan, false };
	int r;

	if (!plan)
		return -ENOMEM;
	r = make_plan(&planning);
	if (r < 0)
		return r;
	*ret = stfs_steal(plan);
	return 0;
}
