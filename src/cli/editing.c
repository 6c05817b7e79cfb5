/* SPDX-License-Identifier: Apache-2.0 */
#include "editing.h"

#include <errno.h>
#include <string.h>

#include "committing.h"
#include "findings.h"
#include "mounted.h"
#include "mountinfo.h"
#include "quote.h"

#define QUOTED(s) (stfs_quote(stfs_slice_of(s)).text)
#define MAX_VIOLATIONS 10 /* `check` prints all of them */
#define MAX_WARNINGS 5

void stfs_editing_fini(struct stfs_editing *editing)
{
	stfs_workspace_fini(&editing->workspace);
	stfs_log_free(editing->log);
	free(editing->holder);
}

int stfs_editing_next(struct stfs_args *args, struct stfs_editing *editing, int *ret_code)
{
	int row;

	editing->command = args->command;
	while ((row = stfs_edit_next(args, &editing->options, ret_code)) >= 0) {
		const char *name = args->command->options[row].name;

		if (strcmp(name, "--commit") == 0)
			editing->commit = true;
		else if (strcmp(name, "-q, --quiet") == 0)
			editing->quiet = true;
		else
			break;
	}
	return row;
}

static int open_workspace(struct stfs_editing *editing)
{
	const struct stfs_edit_options *options = &editing->options;
	struct stfs_workspace_options workspace = {
		.model = options->model,
		.view = { .layout = STFS_NESTED },
		.stage = options->stage,
		.any_layout = true,
		.stays = stfs_mounted_stays,
		.create = options->create,
		.os = stfs_os_real(),
	};
	struct stfs_findings findings;
	int r;

	if (asprintf(&editing->holder, "safetensorsfs %s", editing->command->name) < 0) {
		editing->holder = NULL;
		return stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(ENOMEM));
	}
	r = stfs_log_new("safetensorsfs", false, &editing->log);
	if (r < 0)
		return stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(-r));
	workspace.holder = editing->holder;
	workspace.log = editing->log;
	/* Bytes pass through this process, where a page that is gone would be a SIGBUS. */
	workspace.model.io = STFS_IO_PREAD;
	stfs_findings_init(&findings, stderr, MAX_VIOLATIONS, MAX_WARNINGS);
	r = stfs_workspace_open(editing->source, &workspace, &findings.report, &editing->workspace);
	stfs_findings_finish(&findings);
	if (r < 0 && findings.report.violations == 0)
		return stfs_exit_with(stfs_exit_of_open(r), "%s: %s", QUOTED(editing->source), strerror(-r));
	return (int)stfs_exit_of_open(r);
}

int stfs_editing_look(struct stfs_editing *editing, const char *source, char **ret_point)
{
	int code;

	editing->source = source;
	if (stfs_mounted_find(source, ret_point, NULL) == 0)
		return STFS_EXIT_MOUNTPOINT;
	code = open_workspace(editing);
	if (code != STFS_EXIT_OK || editing->workspace.state != STFS_WORKSPACE_HELD)
		return code;
	if (stfs_mountinfo_find_writable(source, ret_point) == 0)
		return STFS_EXIT_MOUNTPOINT;
	return stfs_exit_with(STFS_EXIT_MOUNTPOINT, "%s: %s", QUOTED(source), editing->workspace.why.text);
}

int stfs_editing_refuse(const struct stfs_editing *editing)
{
	static const enum stfs_exit codes[] = {
		[STFS_WORKSPACE_WRITABLE] = STFS_EXIT_OK,   [STFS_WORKSPACE_READ_ONLY] = STFS_EXIT_OTHER,
		[STFS_WORKSPACE_UNFIT] = STFS_EXIT_USAGE,   [STFS_WORKSPACE_HELD] = STFS_EXIT_MOUNTPOINT,
		[STFS_WORKSPACE_STALE] = STFS_EXIT_MODEL,   [STFS_WORKSPACE_LAYOUT] = STFS_EXIT_MODEL,
		[STFS_WORKSPACE_DAMAGED] = STFS_EXIT_MODEL, [STFS_WORKSPACE_UNUSABLE] = STFS_EXIT_OTHER,
	};
	enum stfs_workspace_state state = editing->workspace.state;

	if (state == STFS_WORKSPACE_WRITABLE)
		return STFS_EXIT_OK;
	if (editing->workspace.stage)
		return stfs_exit_with(codes[state], "%s: %s ('safetensorsfs discard' drops what is staged)",
				      QUOTED(editing->source), editing->workspace.why.text);
	return stfs_exit_with(codes[state], "%s: %s", QUOTED(editing->source), editing->workspace.why.text);
}

int stfs_editing_open(struct stfs_editing *editing, const char *source)
{
	_cleanup_free_ char *point = NULL;
	int code = stfs_editing_look(editing, source, &point);

	if (point)
		return stfs_exit_with(
			STFS_EXIT_MOUNTPOINT,
			"%s is mounted at %s: change it there, with mv, rm, cp and the like, or unmount it first",
			QUOTED(source), QUOTED(point));
	return code != STFS_EXIT_OK ? code : stfs_editing_refuse(editing);
}

int stfs_editing_fail(int error, const char *what)
{
	return stfs_exit_with(STFS_EXIT_OTHER, "%s: %s", what, strerror(-error));
}

int stfs_editing_end(struct stfs_editing *editing)
{
	const struct stfs_commit_options options = { .plan.format_pt = editing->options.format_pt };
	int r;

	if (editing->commit)
		return stfs_commit_run(editing->workspace.view, &options, editing->quiet);
	r = stfs_view_sync(editing->workspace.view);
	stfs_view_tidy(editing->workspace.view);
	return r < 0 ? stfs_editing_fail(r, "what is staged may not survive a power cut") : STFS_EXIT_OK;
}
