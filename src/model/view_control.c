/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of .safetensors. Called with the tree locked, as it is while a file is opened or looked at. */
#include "view_control.h"

#include <errno.h>

#include "changes_private.h"
#include "text.h"
#include "view_tables.h"

/* What is staged, by one of the functions of changes.h. */
static int write_changes(struct stfs_buf *buf, struct stfs_view *view,
			 int (*append)(const struct stfs_changes *, const struct stfs_model *, struct stfs_buf *))
{
	_cleanup_(stfs_changes_freep) struct stfs_changes *changes = NULL;
	int r = stfs_changes_collect_locked(view, &changes);

	return r < 0 ? r : append(changes, view->model, buf);
}

static int write_status(struct stfs_buf *buf, struct stfs_view *view)
{
	if (!view->stage)
		return stfs_buf_append_str(buf, "read-only: what is staged is not shown\n");
	return write_changes(buf, view, stfs_changes_text);
}

static int write_status_json(struct stfs_buf *buf, struct stfs_view *view)
{
	return write_changes(buf, view, stfs_changes_json);
}

static int write_diff(struct stfs_buf *buf, struct stfs_view *view)
{
	return write_changes(buf, view, stfs_changes_diff);
}

static int write_diff_json(struct stfs_buf *buf, struct stfs_view *view)
{
	return write_changes(buf, view, stfs_changes_diff_json);
}

static int write_commit_help(struct stfs_buf *buf, struct stfs_view *view)
{
	(void)view;
	return stfs_buf_append_str(
		buf, "Write the line \"commit\" here to build the model anew with all that is staged.\n"
		     "After it may follow, parted by blanks: sort, format=pt, dry-run, single, max-shard-size=BYTES,\n"
		     "and at last output=PATH, an absolute path, to leave the model and what is staged as they are.\n");
}

static int write_discard_help(struct stfs_buf *buf, struct stfs_view *view)
{
	(void)view;
	return stfs_buf_append_str(buf, "Write \"all\", or paths, one a line, to drop what is staged there.\n"
					"The last line of a long list must have an end, too.\n");
}

static int write_result(struct stfs_buf *buf, struct stfs_view *view)
{
	int r;

	pthread_mutex_lock(&view->lock);
	r = stfs_buf_append(buf, view->result.data, view->result.len);
	pthread_mutex_unlock(&view->lock);
	return r;
}

static int write_progress(struct stfs_buf *buf, struct stfs_view *view)
{
	unsigned long long done, total;
	bool running;

	pthread_mutex_lock(&view->lock);
	running = view->progress.running;
	done = view->progress.done;
	total = view->progress.total;
	pthread_mutex_unlock(&view->lock);
	return running ? stfs_buf_printf(buf, "commit %llu %llu\n", done, total) : stfs_buf_append_str(buf, "idle\n");
}

const struct stfs_control stfs_controls[STFS_N_CONTROLS] = {
	{ "tensors.tsv", stfs_view_write_tensors, STFS_CONTROL_TEXT, true },
	{ "header.json", stfs_view_write_header, STFS_CONTROL_TEXT, true },
	{ "status", write_status, STFS_CONTROL_TEXT, true },
	{ "commit", write_commit_help, STFS_CONTROL_COMMIT, true },
	{ "discard", write_discard_help, STFS_CONTROL_DISCARD, true },
	{ "result", write_result, STFS_CONTROL_TEXT, false },
	{ "progress", write_progress, STFS_CONTROL_TEXT, false },
	{ "status.json", write_status_json, STFS_CONTROL_TEXT, true },
	{ "diff", write_diff, STFS_CONTROL_TEXT, true },
	{ "diff.json", write_diff_json, STFS_CONTROL_TEXT, true },
};

enum stfs_control_kind stfs_view_control_kind(const struct stfs_view *view, uint64_t ino)
{
	if (ino < STFS_INO_CONTROL_FIRST || ino - STFS_INO_CONTROL_FIRST >= stfs_view_n_controls(view))
		return STFS_CONTROL_NONE;
	return stfs_controls[ino - STFS_INO_CONTROL_FIRST].kind;
}

void stfs_view_set_result(struct stfs_view *view, struct stfs_slice text)
{
	pthread_mutex_lock(&view->lock);
	view->result.len = 0;
	(void)!stfs_buf_append(&view->result, text.p, text.len);
	pthread_mutex_unlock(&view->lock);
}

void stfs_view_set_progress(struct stfs_view *view, uint64_t done, uint64_t total)
{
	pthread_mutex_lock(&view->lock);
	view->progress.running = true;
	view->progress.done = done;
	view->progress.total = total;
	pthread_mutex_unlock(&view->lock);
}

void stfs_view_end_progress(struct stfs_view *view)
{
	pthread_mutex_lock(&view->lock);
	view->progress.running = false;
	pthread_mutex_unlock(&view->lock);
}
