/* SPDX-License-Identifier: Apache-2.0 */
/* commit: makes what is staged part of the model, or writes the result somewhere else. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "committing.h"
#include "editing.h"
#include "mounted.h"
#include "mounted_commit.h"
#include "path.h"
#include "quote.h"

#define QUOTED(s) (stfs_quote(stfs_slice_of(s)).text)

enum { OPT_OUTPUT, OPT_DRY_RUN, OPT_PLAN };

static const struct stfs_option_help commit_options[] = {
	[OPT_OUTPUT] = { "--output PATH",
			 "write a new file or directory; the model and what is staged stay as they are" },
	[OPT_DRY_RUN] = { "--dry-run", "judge and count, write nothing" },
	[OPT_PLAN] = STFS_PLAN_ROWS,
	{ "-q, --quiet", "no progress bar, and no line about what was written" },
	STFS_SOURCE_ROWS,
};

/* The same options as a line for the mount. */
static int append_line(struct stfs_buf *line, const struct stfs_commit_options *options, bool format_pt)
{
	const struct stfs_plan_options *plan = &options->plan;
	_cleanup_free_ char *output = NULL;
	int r = stfs_buf_printf(line, "commit%s%s%s", plan->sort ? " sort" : "", format_pt ? " format=pt" : "",
				options->dry_run ? " dry-run" : "");

	if (r == 0 && plan->reshape)
		r = plan->max_shard_size ? stfs_buf_printf(line, " max-shard-size=%" PRIu64, plan->max_shard_size) :
					   stfs_buf_append_str(line, " single");
	if (r == 0 && options->output) {
		size_t len = strlen(options->output);

		if (strchr(options->output, '\n'))
			return -EINVAL;
		r = stfs_path_anchor(options->output, &output);
		if (r == 0)
			r = stfs_buf_printf(line, " output=%s%s", output,
					    len && options->output[len - 1] == '/' ? "/" : "");
	}
	return r < 0 ? r : stfs_buf_append_char(line, '\n');
}

static int commit_mount(const struct stfs_editing *editing, const struct stfs_commit_options *options,
			const char *point)
{
	_cleanup_buf_ struct stfs_buf line = { 0 };
	int r = append_line(&line, options, editing->options.format_pt);

	if (r < 0)
		return stfs_exit_with(STFS_EXIT_OTHER, "%s: %s", QUOTED(options->output ? options->output : point),
				      strerror(-r));
	return stfs_mounted_commit(point, line.data, editing->quiet);
}

static int commit(struct stfs_editing *editing, struct stfs_commit_options *options, const char *source)
{
	_cleanup_free_ char *point = NULL;
	int code = stfs_editing_look(editing, source, &point);

	if (point)
		return commit_mount(editing, options, point);
	/* Nothing is staged for what cannot be edited, but it can be written anew. */
	if (code == STFS_EXIT_OK && !(editing->workspace.state == STFS_WORKSPACE_UNFIT && options->output))
		code = stfs_editing_refuse(editing);
	options->plan.format_pt = editing->options.format_pt;
	return code == STFS_EXIT_OK ? stfs_commit_run(editing->workspace.view, options, editing->quiet) : code;
}

static int run_commit(int argc, char **argv)
{
	_cleanup_(stfs_editing_fini) struct stfs_editing editing = { .quiet = false };
	struct stfs_commit_options options = { .dry_run = false };
	struct stfs_args args;
	int row, code;

	stfs_args_init(&args, &stfs_cmd_commit, argc, argv);
	while ((row = stfs_editing_next(&args, &editing, &code)) >= 0) {
		if (row == OPT_OUTPUT)
			options.output = optarg;
		options.dry_run |= row == OPT_DRY_RUN;
		code = stfs_plan_option(&args, row, &options.plan);
		if (code != STFS_EXIT_OK)
			return code;
	}
	if (row == STFS_ARGS_ERROR)
		return code;
	if (argc - optind != 1)
		return stfs_usage_error(&stfs_cmd_commit, "commit needs one model, or one mount");
	return commit(&editing, &options, argv[optind]);
}

const struct stfs_command stfs_cmd_commit = {
	.name = "commit",
	.usage =
		"commit [--output PATH] [--dry-run] [--sort] [--max-shard-size SIZE|--single] [-q] [-o OPTIONS] SOURCE|MOUNT",
	.summary = "Makes what is staged part of the model",
	.options = commit_options,
	.notes =
		"The model is built anew beside the old one, which it replaces in one step: after a crash there is the old model\n"
		"or the new one. When anything that is staged cannot be committed, all that stands in the way is named and\n"
		"nothing is changed. --max-shard-size and --single need --output, but for the first commit of a new\n"
		"directory. PATH must not be there.\n",
	.print_more = stfs_edit_print_help,
	.run = run_commit,
};
