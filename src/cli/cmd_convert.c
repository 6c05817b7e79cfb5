/* SPDX-License-Identifier: Apache-2.0 */
/* convert: a model written anew in another place, in other files. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "committing.h"
#include "editing.h"
#include "mounted.h"
#include "quote.h"

#define QUOTED(s) (stfs_quote(stfs_slice_of(s)).text)

static const struct stfs_option_help convert_options[] = {
	STFS_PLAN_ROWS,
	{ "-q, --quiet", "no progress bar, and no line about what was written" },
	STFS_SOURCE_ROWS,
};

/* What is staged for the model plays no part: it is opened as it lies there. */
static int open_view(const char *source, const struct stfs_edit_options *options, struct stfs_view **ret_view)
{
	const struct stfs_view_options view_options = { .layout = STFS_NESTED };
	struct stfs_model_options model_options = options->model;
	_cleanup_free_ char *point = NULL;
	struct stfs_diag diag = { 0 };
	struct stfs_model *model;
	int code, r;

	if (stfs_mounted_find(source, &point, NULL) == 0)
		return stfs_exit_with(STFS_EXIT_SOURCE,
				      "%s is a mount: convert what it was mounted from, or use commit --output",
				      QUOTED(source));
	model_options.io = STFS_IO_PREAD;
	code = stfs_source_open(source, &model_options, &model);
	if (code != STFS_EXIT_OK)
		return code;
	r = stfs_view_new(model, &view_options, NULL, &diag, ret_view);
	return r == 0 ? STFS_EXIT_OK :
			stfs_exit_with(stfs_exit_of_open(r), "%s", *diag.text ? diag.text : strerror(-r));
}

static int convert(const char *source, const struct stfs_edit_options *options, struct stfs_commit_options *commit,
		   bool quiet)
{
	_cleanup_(stfs_view_freep) struct stfs_view *view = NULL;
	int code = open_view(source, options, &view);

	commit->plan.format_pt = options->format_pt;
	return code == STFS_EXIT_OK ? stfs_commit_run(view, commit, quiet) : code;
}

static int run_convert(int argc, char **argv)
{
	struct stfs_commit_options commit = { .dry_run = false };
	struct stfs_edit_options options = { .stage = NULL };
	struct stfs_args args;
	bool quiet = false;
	int row, code;

	stfs_args_init(&args, &stfs_cmd_convert, argc, argv);
	while ((row = stfs_edit_next(&args, &options, &code)) >= 0) {
		quiet |= strcmp(convert_options[row].name, "-q, --quiet") == 0;
		code = stfs_plan_option(&args, row, &commit.plan);
		if (code != STFS_EXIT_OK)
			return code;
	}
	if (row == STFS_ARGS_ERROR)
		return code;
	if (argc - optind != 2)
		return stfs_usage_error(&stfs_cmd_convert, "convert needs a model, and the name of the new one");
	if (options.stage || options.create)
		return stfs_usage_error(&stfs_cmd_convert, "convert takes neither -o stage nor -o new");
	commit.output = argv[optind + 1];
	return convert(argv[optind], &options, &commit, quiet);
}

const struct stfs_command stfs_cmd_convert = {
	.name = "convert",
	.usage = "convert [--sort] [--max-shard-size SIZE|--single] [-q] [-o OPTIONS] SOURCE OUTPUT",
	.summary = "Writes a model anew: in another order, in shards, or in one file",
	.options = convert_options,
	.notes =
		"OUTPUT must not be there. It becomes a file, or a directory when it ends with '/' or takes more than one file.\n"
		"Without --max-shard-size or --single the model is divided as it was. What is staged for it is not looked at.\n"
		"Of the options for edits it takes format=pt.\n",
	.print_more = stfs_edit_print_help,
	.run = run_convert,
};
