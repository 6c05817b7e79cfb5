/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "args.h"
#include "command.h"
#include "diag.h"
#include "quote.h"
#include "unmount.h"

enum { ROW_LAZY, ROW_HELP };

static const struct stfs_option_help umount_rows[] = {
	[ROW_LAZY] = { "-l, --lazy", "take it out of sight at once, and let those who still use it finish" },
	[ROW_HELP] = { "-h, --help", "this text" },
	{ NULL, NULL },
};

static int unmount(const char *path, bool lazy)
{
	struct stfs_diag diag = { 0 };
	int r = stfs_unmount(path, lazy, &diag);

	return r < 0 ? stfs_exit_with(STFS_EXIT_MOUNTPOINT, "%s", diag.text) : STFS_EXIT_OK;
}

static int run_umount(int argc, char **argv)
{
	struct stfs_args args;
	bool lazy = false, help = false;
	int row;

	stfs_args_init(&args, &stfs_cmd_umount, argc, argv);
	while ((row = stfs_args_next(&args)) >= 0) {
		lazy |= row == ROW_LAZY;
		help |= row == ROW_HELP;
	}
	if (row == STFS_ARGS_ERROR)
		return STFS_EXIT_USAGE;
	if (help)
		return stfs_print_command_help(&stfs_cmd_umount);
	if (optind >= argc)
		return stfs_usage_error(&stfs_cmd_umount, "the mountpoint is missing");
	if (argc - optind > 1)
		return stfs_usage_error(&stfs_cmd_umount, "too many arguments: %s",
					stfs_quote(stfs_slice_of(argv[optind + 1])).text);
	return unmount(argv[optind], lazy);
}

const struct stfs_command stfs_cmd_umount = {
	.name = "umount",
	.usage = "umount [-l] MOUNTPOINT",
	.summary = "Unmounts a model, also one whose daemon is dead",
	.options = umount_rows,
	.run = run_umount,
};
