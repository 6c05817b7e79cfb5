/* SPDX-License-Identifier: Apache-2.0 */
#include "show_changes.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "editing.h"
#include "mounted.h"

static int print_changes(struct stfs_view *view, const struct stfs_change_text *form)
{
	_cleanup_(stfs_changes_freep) struct stfs_changes *changes = NULL;
	_cleanup_buf_ struct stfs_buf text = { 0 };
	int r = stfs_changes_collect(view, &changes);

	if (r < 0)
		return stfs_editing_fail(r, "what is staged cannot be read");
	r = form->append(changes, stfs_view_model(view), &text);
	if (r < 0)
		return stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(-r));
	fwrite(text.data, 1, text.len, stdout);
	return (int)stfs_finish_stdout();
}

int stfs_show_changes(const struct stfs_command *command, int argc, char **argv, const struct stfs_change_text *text,
		      const struct stfs_change_text *json)
{
	_cleanup_(stfs_editing_fini) struct stfs_editing editing = { .command = command };
	_cleanup_free_ char *point = NULL;
	const struct stfs_change_text *form = text;
	struct stfs_args args;
	int row, code;

	stfs_args_init(&args, command, argc, argv);
	while ((row = stfs_edit_next(&args, &editing.options, &code)) >= 0)
		form = json;
	if (row == STFS_ARGS_ERROR)
		return code;
	if (argc - optind != 1)
		return stfs_usage_error(command, "%s needs one model, or one mount", command->name);
	code = stfs_editing_look(&editing, argv[optind], &point);
	if (point)
		return stfs_mounted_print(point, form->control);
	if (code == STFS_EXIT_OK)
		code = stfs_editing_refuse(&editing);
	return code == STFS_EXIT_OK ? print_changes(editing.workspace.view, form) : code;
}
