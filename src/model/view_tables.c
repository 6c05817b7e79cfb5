/* SPDX-License-Identifier: Apache-2.0 */
#include "view_tables.h"

#include <errno.h>

#include "changes_private.h"
#include "json_write.h"
#include "header_write.h"
#include "plan.h"
#include "quote.h"
#include "text.h"

/* Where the bytes of a staged tensor are: those of the model that nobody touched are where they were. */
static void locate(const struct stfs_model *model, const struct stfs_staged_tensor *tensor, struct stfs_text_row *row)
{
	struct stfs_run run;

	if (!tensor->data) {
		row->file = stfs_snapshot_name(stfs_model_file(model, tensor->entry));
		row->offset = stfs_model_offset(model, tensor->entry);
	} else if (stfs_content_run(tensor->data, &run)) {
		row->file = stfs_snapshot_name(run.file);
		row->offset = run.begin;
	}
}

static int write_rows(struct stfs_buf *buf, const struct stfs_view *view, const struct stfs_changes *changes)
{
	int r = stfs_text_tensors_head(buf);

	for (uint32_t i = 0; r == 0 && i < changes->n_tensors; i++) {
		const struct stfs_staged_tensor *tensor = &changes->tensors[i];
		struct stfs_text_row row = {
			.name = tensor->name,
			.dtype = tensor->dtype,
			.dims = tensor->dims,
			.size = tensor->size,
		};

		if (tensor->problem)
			continue;
		locate(view->model, tensor, &row);
		r = stfs_text_tensors_row(buf, &row, view->options.layout);
	}
	return r;
}

/* Collects what is staged; *ret is NULL when the model stands as it is. */
static int collect(struct stfs_view *view, struct stfs_changes **ret)
{
	_cleanup_(stfs_changes_freep) struct stfs_changes *changes = NULL;
	int r = 0;

	if (view->stage && stfs_stage_exists(view->stage))
		r = stfs_changes_collect_locked(view, &changes);
	if (r < 0)
		return r;
	*ret = changes && (changes->n_changed || changes->n_problems) ? stfs_steal(changes) : NULL;
	return 0;
}

int stfs_view_write_tensors(struct stfs_buf *buf, struct stfs_view *view)
{
	_cleanup_(stfs_changes_freep) struct stfs_changes *changes = NULL;
	int r = collect(view, &changes);

	if (r < 0)
		return r;
	return changes ? write_rows(buf, view, changes) : stfs_text_tensors_tsv(buf, view->model, view->options.layout);
}

/* The JSON of a planned file without its padding; of one that stays, what it has. */
static int append_header(struct stfs_buf *buf, const struct stfs_model *model, const struct stfs_plan_file *file)
{
	size_t begin = 8, end = file->header.len;

	if (!file->changed)
		return stfs_header_write(buf, stfs_snapshot_header(model->files[file->old_file]));
	while (end > begin && file->header.data[end - 1] == ' ')
		end--;
	return stfs_buf_append(buf, file->header.data + begin, end - begin);
}

static int append_named(struct stfs_buf *buf, const struct stfs_model *model, const struct stfs_plan_file *file)
{
	_cleanup_buf_ struct stfs_buf shown = { 0 };
	int r = stfs_append_printable(&shown, file->name);

	if (r == 0)
		r = stfs_json_write_string(buf, stfs_buf_slice(&shown));
	if (r == 0)
		r = stfs_buf_append_char(buf, ':');
	return r < 0 ? r : append_header(buf, model, file);
}

static int append_plan(struct stfs_buf *buf, const struct stfs_model *model, const struct stfs_plan *plan)
{
	int r;

	if (!model->sharded && plan->n_files == 1) {
		r = append_header(buf, model, &plan->files[0]);
		return r < 0 ? r : stfs_buf_append_char(buf, '\n');
	}
	r = stfs_buf_append_char(buf, '{');
	for (uint32_t i = 0; r == 0 && i < plan->n_files; i++) {
		r = i ? stfs_buf_append_char(buf, ',') : 0;
		if (r == 0)
			r = append_named(buf, model, &plan->files[i]);
	}
	return r < 0 ? r : stfs_buf_append_str(buf, "}\n");
}

int stfs_view_write_header(struct stfs_buf *buf, struct stfs_view *view)
{
	_cleanup_(stfs_changes_freep) struct stfs_changes *changes = NULL;
	_cleanup_(stfs_plan_freep) struct stfs_plan *plan = NULL;
	struct stfs_plan_options options = { .all = false };
	struct stfs_report report = { 0 };
	int r = collect(view, &changes);

	if (r == 0 && changes)
		r = stfs_plan_make(view->model, changes, &options, &report, &plan);
	if (r < 0 && r != -EINVAL)
		return r;
	return plan ? append_plan(buf, view->model, plan) : stfs_text_header_json(buf, view->model);
}
