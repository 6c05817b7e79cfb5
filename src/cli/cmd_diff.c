/* SPDX-License-Identifier: Apache-2.0 */
/* diff: what is staged for a model, as it was and as it will be. */
#include "show_changes.h"
#include "source.h"

static const struct stfs_option_help diff_options[] = { STFS_SHOW_CHANGES_ROWS };

static int run_diff(int argc, char **argv)
{
	static const struct stfs_change_text text = { stfs_changes_diff, "diff" },
					     json = { stfs_changes_diff_json, "diff.json" };

	return stfs_show_changes(&stfs_cmd_diff, argc, argv, &text, &json);
}

const struct stfs_command stfs_cmd_diff = {
	.name = "diff",
	.usage = "diff [--json] [-o OPTIONS] SOURCE|MOUNT",
	.summary = "Shows what is staged for a model, as it was and as it will be",
	.options = diff_options,
	.notes =
		"Below the line of each changed tensor, as status prints it, stand its old and new dtype and shape, and how many\n"
		"of its bytes were written; for an entry of __metadata__ its old and new value.\n",
	.print_more = stfs_edit_print_help,
	.run = run_diff,
};
