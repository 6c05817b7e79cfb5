/* SPDX-License-Identifier: Apache-2.0 */
/* set-metadata and rm-metadata: entries of the header's __metadata__. */
#include <errno.h>
#include <string.h>

#include "editing.h"
#include "name.h"
#include "quote.h"
#include "utf8.h"
#include "walk.h"

static const struct stfs_option_help metadata_options[] = { STFS_EDIT_ROWS };

/* Appends the path of a key's file, __metadata__/KEY. Returns an enum stfs_exit, after saying why not. */
static int append_key_path(struct stfs_buf *path, struct stfs_slice key)
{
	int r = stfs_buf_append_str(path, "__metadata__/");

	if (stfs_utf8_invalid(key) != key.len)
		return stfs_exit_with(STFS_EXIT_USAGE, "the key %s is not UTF-8", stfs_quote(key).text);
	if (r == 0)
		r = stfs_key_encode(path, key);
	if (r == -ENAMETOOLONG)
		return stfs_exit_with(STFS_EXIT_USAGE, "the key %s is too long for the name of a file",
				      stfs_quote(key).text);
	return r < 0 ? stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(-r)) : STFS_EXIT_OK;
}

/* Splits "KEY=VALUE" at its first '='. Returns an enum stfs_exit, after saying why not. */
static int split_pair(const struct stfs_command *command, const char *pair, struct stfs_slice *ret_key,
		      struct stfs_slice *ret_value)
{
	const char *equals = strchr(pair, '=');

	if (!equals)
		return stfs_usage_error(command, "%s is not written KEY=VALUE", stfs_quote(stfs_slice_of(pair)).text);
	*ret_key = (struct stfs_slice){ pair, (size_t)(equals - pair) };
	*ret_value = stfs_slice_of(equals + 1);
	if (stfs_utf8_invalid(*ret_value) != ret_value->len)
		return stfs_exit_with(STFS_EXIT_USAGE, "the value of %s is not UTF-8", stfs_quote(*ret_key).text);
	return STFS_EXIT_OK;
}

/* Writes the value and the newline that a file of a value ends with. */
static int write_value(struct stfs_view *view, uint64_t dir, struct stfs_slice name, struct stfs_slice value)
{
	_cleanup_buf_ struct stfs_buf text = { 0 };
	int r = stfs_buf_append(&text, value.p, value.len);

	if (r == 0)
		r = stfs_buf_append_char(&text, '\n');
	return r < 0 ? r : stfs_walk_write_text(view, dir, name, stfs_buf_slice(&text));
}

static int set_one(struct stfs_editing *editing, struct stfs_slice key, struct stfs_slice value)
{
	struct stfs_view *view = editing->workspace.view;
	_cleanup_buf_ struct stfs_buf path = { 0 };
	struct stfs_walk_parent parent;
	int code = append_key_path(&path, key), r;

	if (code != STFS_EXIT_OK)
		return code;
	r = stfs_walk_parent(view, stfs_buf_slice(&path), &parent);
	if (r == 0)
		r = write_value(view, parent.ino, parent.name, value);
	return r < 0 ? stfs_editing_fail(r, stfs_quote(key).text) : STFS_EXIT_OK;
}

/* All pairs are looked at before the first of them is staged. */
static int set_pairs(struct stfs_editing *editing, char **pairs, int n)
{
	struct stfs_slice key, value;
	int code = STFS_EXIT_OK;

	for (int i = 0; code == STFS_EXIT_OK && i < n; i++) {
		_cleanup_buf_ struct stfs_buf path = { 0 };

		code = split_pair(editing->command, pairs[i], &key, &value);
		if (code == STFS_EXIT_OK)
			code = append_key_path(&path, key);
	}
	for (int i = 0; code == STFS_EXIT_OK && i < n; i++) {
		code = split_pair(editing->command, pairs[i], &key, &value);
		if (code == STFS_EXIT_OK)
			code = set_one(editing, key, value);
	}
	return code;
}

/* Finds the file of a key; says so when there is none. */
static int find_key(struct stfs_editing *editing, const char *key, struct stfs_buf *path)
{
	struct stfs_attr attr;
	int code = append_key_path(path, stfs_slice_of(key)), r;

	if (code != STFS_EXIT_OK)
		return code;
	r = stfs_walk(editing->workspace.view, stfs_buf_slice(path), &attr);
	if (r == -ENOENT)
		return stfs_exit_with(STFS_EXIT_MODEL, "there is no metadata entry %s",
				      stfs_quote(stfs_slice_of(key)).text);
	return r < 0 ? stfs_editing_fail(r, stfs_quote(stfs_slice_of(key)).text) : STFS_EXIT_OK;
}

static int remove_keys(struct stfs_editing *editing, char **keys, int n)
{
	int worst = STFS_EXIT_OK;

	for (int i = 0; i < n; i++) {
		_cleanup_buf_ struct stfs_buf path = { 0 };
		int code = find_key(editing, keys[i], &path);

		worst = STFS_MAX(worst, code);
	}
	for (int i = 0; worst == STFS_EXIT_OK && i < n; i++) {
		_cleanup_buf_ struct stfs_buf path = { 0 };
		int r;

		/* One that was named twice is gone by now, and that is right. */
		worst = append_key_path(&path, stfs_slice_of(keys[i]));
		r = worst == STFS_EXIT_OK ? stfs_walk_remove(editing->workspace.view, stfs_buf_slice(&path)) : 0;
		if (r < 0 && r != -ENOENT)
			worst = stfs_editing_fail(r, stfs_quote(stfs_slice_of(keys[i])).text);
	}
	return worst;
}

static int run_metadata(const struct stfs_command *command, int argc, char **argv, const char *needs,
			int (*change)(struct stfs_editing *editing, char **words, int n))
{
	_cleanup_(stfs_editing_fini) struct stfs_editing editing = { .quiet = false };
	struct stfs_args args;
	int code;

	stfs_args_init(&args, command, argc, argv);
	if (stfs_editing_next(&args, &editing, &code) == STFS_ARGS_ERROR)
		return code;
	if (argc - optind < 2)
		return stfs_usage_error(command, "%s", needs);
	code = stfs_editing_open(&editing, argv[optind]);
	if (code == STFS_EXIT_OK)
		code = change(&editing, argv + optind + 1, argc - optind - 1);
	return code == STFS_EXIT_OK ? stfs_editing_end(&editing) : code;
}

static int run_set(int argc, char **argv)
{
	return run_metadata(&stfs_cmd_set_metadata, argc, argv, "set-metadata needs a model and KEY=VALUE", set_pairs);
}

static int run_rm(int argc, char **argv)
{
	return run_metadata(&stfs_cmd_rm_metadata, argc, argv, "rm-metadata needs a model and a key", remove_keys);
}

const struct stfs_command stfs_cmd_set_metadata = {
	.name = "set-metadata",
	.usage = "set-metadata [--commit [-q]] [-o OPTIONS] SOURCE KEY=VALUE...",
	.summary = "Sets entries of a model's metadata",
	.options = metadata_options,
	.notes = "The change is staged, as in a mount: 'safetensorsfs commit SOURCE' makes it part of the model.\n",
	.print_more = stfs_edit_print_help,
	.run = run_set,
};

const struct stfs_command stfs_cmd_rm_metadata = {
	.name = "rm-metadata",
	.usage = "rm-metadata [--commit [-q]] [-o OPTIONS] SOURCE KEY...",
	.summary = "Removes entries of a model's metadata",
	.options = metadata_options,
	.notes = "The change is staged, as in a mount: 'safetensorsfs commit SOURCE' makes it part of the model.\n",
	.print_more = stfs_edit_print_help,
	.run = run_rm,
};
