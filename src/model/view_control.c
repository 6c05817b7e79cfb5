/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of .safetensors. */
#include "text.h"
#include "view_private.h"

static int write_tensors_tsv(struct stfs_buf *buf, struct stfs_view *view)
{
	return stfs_text_tensors_tsv(buf, view->model, view->options.layout);
}

static int write_header_json(struct stfs_buf *buf, struct stfs_view *view)
{
	return stfs_text_header_json(buf, view->model);
}

static int write_status(struct stfs_buf *buf, struct stfs_view *view)
{
	(void)view;
	return stfs_buf_append_str(buf, "read-only: nothing is staged\n");
}

static int write_commit_help(struct stfs_buf *buf, struct stfs_view *view)
{
	(void)view;
	return stfs_buf_append_str(buf, "Write the line \"commit\" here to build the model anew with all that is staged.\n");
}

static int write_discard_help(struct stfs_buf *buf, struct stfs_view *view)
{
	(void)view;
	return stfs_buf_append_str(buf, "Write \"all\", or paths, one a line, to drop what is staged there.\n");
}

static int write_nothing(struct stfs_buf *buf, struct stfs_view *view)
{
	(void)view;
	return stfs_buf_append_str(buf, "");
}

const struct stfs_control stfs_controls[STFS_N_CONTROLS] = {
	{ "tensors.tsv", write_tensors_tsv, false },
	{ "header.json", write_header_json, false },
	{ "status", write_status, false },
	{ "commit", write_commit_help, true },
	{ "discard", write_discard_help, true },
	{ "result", write_nothing, false },
	{ "progress", write_nothing, false },
};
