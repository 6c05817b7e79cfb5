/* SPDX-License-Identifier: Apache-2.0 */
/* status: what is staged for a model, one line a change. */
#include "show_changes.h"
#include "source.h"

static const struct stfs_option_help status_options[] = { STFS_SHOW_CHANGES_ROWS };

static int run_status(int argc, char **argv)
{
	static const struct stfs_change_text text = { stfs_changes_text, "status" },
					     json = { stfs_changes_json, "status.json" };

	return stfs_show_changes(&stfs_cmd_status, argc, argv, &text, &json);
}

const struct stfs_command stfs_cmd_status = {
	.name = "status",
	.usage = "status [--json] [-o OPTIONS] SOURCE|MOUNT",
	.summary = "Shows what is staged for a model, one line a change",
	.options = status_options,
	.notes =
		"A line begins with A for added, M for changed, D for deleted, R for renamed, ! for what cannot be committed,\n"
		"with the reason, and ? for a file that is never committed. The last line, which begins with #, counts them.\n",
	.print_more = stfs_edit_print_help,
	.run = run_status,
};
