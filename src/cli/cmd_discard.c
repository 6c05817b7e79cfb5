/* SPDX-License-Identifier: Apache-2.0 */
/* discard: drops what is staged, all of it or below some paths. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "editing.h"
#include "mounted.h"
#include "names.h"
#include "quote.h"
#include "walk.h"

#define QUOTED(s) (stfs_quote(stfs_slice_of(s)).text)
#define PIECE 65536 /* bytes; the kernel cuts a write of more than it likes anywhere */

static const struct stfs_option_help discard_options[] = { STFS_SOURCE_ROWS };

static int not_staged(const char *path)
{
	return stfs_exit_with(STFS_EXIT_MODEL, "there is nothing called %s", QUOTED(path));
}

/* What waits for another version of the model, or cannot be read, goes as a whole. */
static int discard_area(struct stfs_editing *editing, int n)
{
	int r;

	if (!editing->workspace.stage)
		return stfs_editing_refuse(editing);
	if (n > 0)
		return stfs_exit_with(STFS_EXIT_MODEL, "%s: %s: it can only be dropped as a whole",
				      QUOTED(editing->source), editing->workspace.why.text);
	r = stfs_stage_clear(editing->workspace.stage);
	return r < 0 ? stfs_editing_fail(r, stfs_stage_path(editing->workspace.stage)) : STFS_EXIT_OK;
}

/* Directories above it that were made for it go too. */
static int discard_path(struct stfs_view *view, struct stfs_slice path)
{
	int r = stfs_view_discard(view, path, NULL);

	return r < 0 || stfs_walk_is_above(stfs_slice_of("__metadata__"), path) ?
		       r :
		       stfs_walk_prune(view, stfs_walk_above(path));
}

/* Drops what an operand picks among the tensors there are. */
static int discard_operand(const struct stfs_names *names, const struct stfs_operand *operand)
{
	int r = 0;

	if (operand->is_dir)
		return discard_path(names->view, stfs_buf_slice(&operand->path));
	for (uint32_t i = 0; r == 0 && i < operand->n_tensors; i++) {
		_cleanup_buf_ struct stfs_buf path = { 0 };

		r = stfs_names_path(names, operand->tensors[i], &path);
		if (r == 0)
			r = discard_path(names->view, stfs_buf_slice(&path));
	}
	return r;
}

static int discard_deleted(struct stfs_view *view, const char *typed)
{
	_cleanup_buf_ struct stfs_buf path = { 0 };
	int r = stfs_name_encode(&path, stfs_slice_of(typed), stfs_view_layout(view));

	return r < 0 ? r : discard_path(view, stfs_buf_slice(&path));
}

/* Drops what is below one path; tries what it may mean: a name there is, one that was deleted, a path. */
static int discard_one(const struct stfs_names *names, const char *typed)
{
	_cleanup_(stfs_operand_fini) struct stfs_operand operand = { 0 };
	int r = stfs_names_resolve(names, typed, &operand), deleted;

	if (r == 0 && stfs_slice_equal(stfs_buf_slice(&operand.name), stfs_slice_of(typed)))
		return discard_operand(names, &operand);
	if (r < 0 && r != -ENOENT)
		return r;
	deleted = discard_deleted(names->view, typed);
	if (deleted != -ENOENT)
		return deleted;
	return r == 0 ? discard_operand(names, &operand) : discard_path(names->view, stfs_slice_of(typed));
}

/*
 * The same for one of many. To take the names anew costs as much as the model is large: done only when nothing was found by those
 * from before, which *ret_fresh tells to be of now. When they cannot be taken there are none for the paths to come either.
 */
static int discard_next(struct stfs_names *names, const char *typed, bool *ret_fresh)
{
	struct stfs_view *view = names->view;
	int r = discard_one(names, typed);

	if (r == -ENOENT && !*ret_fresh) {
		stfs_names_fini(names);
		r = stfs_names_init(names, view);
		if (r == 0)
			r = discard_one(names, typed);
		else
			stfs_names_fini(names);
	}
	*ret_fresh = false;
	return r;
}

static int discard_paths(struct stfs_editing *editing, char **paths, int n)
{
	_cleanup_(stfs_names_fini) struct stfs_names names = { 0 };
	struct stfs_view *view = editing->workspace.view;
	int worst = STFS_EXIT_OK, code, r;
	bool fresh = true;

	if (n == 0 && stfs_view_has_staged(view)) {
		r = stfs_view_discard(view, (struct stfs_slice){ 0 }, NULL);
		return r < 0 ? stfs_editing_fail(r, QUOTED(editing->source)) : STFS_EXIT_OK;
	}
	r = stfs_names_init(&names, view);
	if (r < 0)
		return stfs_editing_fail(r, "what is staged cannot be read");
	for (int i = 0; i < n && names.changes; i++) {
		/* An empty path would mean all of it. */
		r = *paths[i] ? discard_next(&names, paths[i], &fresh) : -ENOENT;
		code = r == -ENOENT ? not_staged(paths[i]) :
		       r < 0        ? stfs_editing_fail(r, QUOTED(paths[i])) :
				      STFS_EXIT_OK;
		worst = STFS_MAX(worst, code);
	}
	code = stfs_editing_end(editing);
	return STFS_MAX(worst, code);
}

/* A symlink leads on from the directory it stands in. */
static int append_target(struct stfs_buf *text, const char *typed, struct stfs_slice target)
{
	const char *slash = strrchr(typed, '/');
	int r = slash ? stfs_buf_append(text, typed, (size_t)(slash - typed) + 1) : 0;

	return r < 0 ? r : stfs_buf_append(text, target.p, target.len);
}

/*
 * Appends the path that a mount knows `typed` by: its own path, or that of the symlink a dotted name is. The slash before it
 * tells what is called "all" from all there is.
 */
static int append_mounted(struct stfs_buf *text, const char *point, const char *typed)
{
	_cleanup_free_ char *path = NULL;
	char target[4096];
	ssize_t n;
	int r;

	if (asprintf(&path, "%s/%s", point, typed) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = stfs_buf_append_char(text, '/');
	if (r < 0)
		return r;
	n = readlink(path, target, sizeof(target));
	if (n > 0 && (size_t)n < sizeof(target))
		r = append_target(text, typed, (struct stfs_slice){ target, (size_t)n });
	else
		r = stfs_buf_append_str(text, typed);
	return r < 0 ? r : stfs_buf_append_char(text, '\n');
}

/* Some whole lines from the start of `text`, which is moved on. */
static struct stfs_slice cut_lines(struct stfs_slice *text)
{
	const char *end = text->len > PIECE ? memrchr(text->p, '\n', PIECE) : NULL;
	size_t n = end ? (size_t)(end - text->p) + 1 : text->len;
	struct stfs_slice lines = { text->p, n };

	*text = (struct stfs_slice){ text->p + n, text->len - n };
	return lines;
}

/* Writes all lines. Paths that are not there are told, and the others are dropped nevertheless. */
static int write_lines(const char *point, struct stfs_slice text, struct stfs_buf *answer)
{
	int error = 0, r = 0;

	while (text.len && (r == 0 || r == -ENOENT)) {
		r = stfs_mounted_write(point, "discard", cut_lines(&text), answer);
		if (error == 0)
			error = r;
	}
	return error;
}

static int discard_mounted(const char *point, const char *rest, char **paths, int n)
{
	_cleanup_buf_ struct stfs_buf text = { 0 }, answer = { 0 };
	int r = 0;

	if (*rest)
		r = append_mounted(&text, point, rest);
	for (int i = 0; r == 0 && i < n; i++) {
		if (!*paths[i] || strchr(paths[i], '\n'))
			return not_staged(paths[i]);
		r = append_mounted(&text, point, paths[i]);
	}
	if (r == 0 && text.len == 0)
		r = stfs_buf_append_str(&text, "all\n");
	if (r == 0)
		r = write_lines(point, stfs_buf_slice(&text), &answer);
	if (r == 0)
		return STFS_EXIT_OK;
	if (stfs_mounted_complain(&answer))
		return STFS_EXIT_MODEL;
	if (r == -ENOENT && stfs_mounted_is_read_only(point))
		return stfs_mounted_refuse(point);
	return stfs_exit_with(r == -ENOTCONN ? STFS_EXIT_MOUNTPOINT : STFS_EXIT_MODEL, "%s: %s", QUOTED(point),
			      strerror(-r));
}

static int discard(struct stfs_editing *editing, char **words, int n)
{
	_cleanup_free_ char *point = NULL, *rest = NULL;
	int code;

	if (stfs_mounted_find(words[0], &point, &rest) == 0)
		return discard_mounted(point, rest, words + 1, n - 1);
	code = stfs_editing_look(editing, words[0], &point);
	if (point)
		return discard_mounted(point, "", words + 1, n - 1);
	if (code != STFS_EXIT_OK)
		return code;
	if (editing->workspace.state != STFS_WORKSPACE_WRITABLE)
		return discard_area(editing, n - 1);
	return discard_paths(editing, words + 1, n - 1);
}

static int run_discard(int argc, char **argv)
{
	_cleanup_(stfs_editing_fini) struct stfs_editing editing = { .quiet = false };
	struct stfs_args args;
	int code;

	stfs_args_init(&args, &stfs_cmd_discard, argc, argv);
	if (stfs_editing_next(&args, &editing, &code) == STFS_ARGS_ERROR)
		return code;
	if (optind == argc)
		return stfs_usage_error(&stfs_cmd_discard, "discard needs a model, or a mount");
	return discard(&editing, argv + optind, argc - optind);
}

const struct stfs_command stfs_cmd_discard = {
	.name = "discard",
	.usage = "discard [-o OPTIONS] SOURCE|MOUNT [PATH...]",
	.summary = "Drops what is staged for a model",
	.options = discard_options,
	.notes =
		"Without PATH all of it goes; no question is asked. PATH is a name, such as model.layers.0, or a path of the tree,\n"
		"such as __metadata__/format. What waits for another version of the model can only be dropped as a whole.\n",
	.print_more = stfs_edit_print_help,
	.run = run_discard,
};
