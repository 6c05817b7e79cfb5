/* SPDX-License-Identifier: Apache-2.0 */
/* rm: takes tensors and modules out of a model. */
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "editing.h"
#include "names.h"
#include "quote.h"
#include "substitute.h"
#include "walk.h"

#define QUOTED(s) (stfs_quote(stfs_slice_of(s)).text)

enum { OPT_REGEX, OPT_DRY_RUN };

static const struct stfs_option_help rm_options[] = {
	[OPT_REGEX] = { "--regex REGEX", "every tensor whose name REGEX (extended) matches somewhere" },
	[OPT_DRY_RUN] = { "--dry-run", "change nothing, print the name of each tensor" },
	STFS_EDIT_ROWS,
};

struct rm {
	struct stfs_editing editing;
	const char *regex;
	bool dry_run;
	struct stfs_names names;
	struct stfs_operand *operands;
	size_t n_operands;
	bool *doomed; /* for each tensor of the names */
};

static void rm_fini(struct rm *rm)
{
	for (size_t i = 0; i < rm->n_operands; i++)
		stfs_operand_fini(&rm->operands[i]);
	free(rm->operands);
	free(rm->doomed);
	stfs_names_fini(&rm->names);
	stfs_editing_fini(&rm->editing);
}

static int out_of_memory(void)
{
	return stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(ENOMEM));
}

/* Every name that is not there is told. */
static int take_operands(struct rm *rm, char **words, int n)
{
	int worst = STFS_EXIT_OK;

	rm->operands = calloc((size_t)n + 1, sizeof(*rm->operands));
	if (!rm->operands)
		return out_of_memory();
	for (int i = 0; i < n; i++) {
		struct stfs_operand *operand = &rm->operands[rm->n_operands];
		int r = stfs_names_resolve(&rm->names, words[i], operand);

		if (r < 0 && r != -ENOENT)
			return stfs_editing_fail(r, QUOTED(words[i]));
		if (r == -ENOENT) {
			worst = stfs_exit_with(STFS_EXIT_MODEL, "%s has no tensor or module %s",
					       stfs_view_model(rm->names.view)->name, QUOTED(words[i]));
			continue;
		}
		rm->n_operands++;
		for (uint32_t k = 0; k < operand->n_tensors; k++)
			rm->doomed[operand->tensors[k]] = true;
	}
	return worst;
}

/* A name with a NUL in it is no C string, and matches nothing. */
static int matches(const regex_t *regex, struct stfs_slice name)
{
	_cleanup_buf_ struct stfs_buf text = { 0 };
	int r = stfs_buf_append_str(&text, "");

	if (r == 0)
		r = stfs_buf_append(&text, name.p, name.len);
	if (r < 0)
		return r;
	return strlen(text.data) == text.len && regexec(regex, text.data, 0, NULL, 0) == 0;
}

static int mark_matches(struct rm *rm, const regex_t *regex)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < rm->names.changes->n_tensors; i++) {
		int r = matches(regex, rm->names.changes->tensors[i].name);

		if (r < 0)
			return out_of_memory();
		rm->doomed[i] = r;
		n += (uint32_t)r;
	}
	return n ? STFS_EXIT_OK :
		   stfs_exit_with(STFS_EXIT_MODEL, "%s has no tensor that %s matches",
				  stfs_view_model(rm->names.view)->name, QUOTED(rm->regex));
}

static int take_regex(struct rm *rm)
{
	char why[200];
	regex_t regex;
	int code, r = regcomp(&regex, rm->regex, REG_EXTENDED | REG_NOSUB);

	if (r != 0) {
		regerror(r, &regex, why, sizeof(why));
		return stfs_usage_error(&stfs_cmd_rm, "bad regular expression %s: %s", QUOTED(rm->regex), why);
	}
	code = mark_matches(rm, &regex);
	regfree(&regex);
	return code;
}

static int print_doomed(const struct rm *rm)
{
	for (uint32_t i = 0; i < rm->names.changes->n_tensors; i++) {
		_cleanup_buf_ struct stfs_buf line = { 0 };

		if (!rm->doomed[i])
			continue;
		if (stfs_append_printable(&line, rm->names.changes->tensors[i].name) < 0)
			return out_of_memory();
		puts(line.len ? line.data : "");
	}
	return (int)stfs_finish_stdout();
}

/* Removes one tensor, and leaves those that live below its directory. */
static int remove_tensor(struct rm *rm, uint32_t tensor)
{
	struct stfs_view *view = rm->names.view;
	_cleanup_buf_ struct stfs_buf path = { 0 };
	struct stfs_attr attr;
	int r = stfs_names_path(&rm->names, tensor, &path);

	if (r < 0)
		return r;
	r = stfs_walk(view, stfs_buf_slice(&path), &attr);
	if (r == 0)
		r = stfs_walk_remove_files(view, attr.ino);
	if (r == 0 || r == -ENOENT) /* gone with its module */
		r = stfs_walk_prune(view, stfs_buf_slice(&path));
	return r;
}

/* A module goes as a whole: also what is in it but is no tensor. */
static int remove_module(struct rm *rm, const struct stfs_operand *operand)
{
	struct stfs_slice path = stfs_buf_slice(&operand->path);
	int r = operand->is_dir ? stfs_walk_remove(rm->names.view, path) : 0;

	return r == 0 || r == -ENOENT ? stfs_walk_prune(rm->names.view, stfs_walk_above(path)) : r;
}

static int apply(struct rm *rm)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < rm->n_operands; i++)
		r = remove_module(rm, &rm->operands[i]);
	for (uint32_t i = 0; r == 0 && i < rm->names.changes->n_tensors; i++) {
		if (rm->doomed[i])
			r = remove_tensor(rm, i);
	}
	return r < 0 ? stfs_editing_fail(r, "not everything could be removed") : STFS_EXIT_OK;
}

static int remove_all(struct rm *rm, char **words, int n)
{
	int code = stfs_editing_open(&rm->editing, words[0]), r;

	if (code != STFS_EXIT_OK)
		return code;
	r = stfs_names_init(&rm->names, rm->editing.workspace.view);
	if (r < 0)
		return stfs_editing_fail(r, "what is staged cannot be read");
	rm->doomed = calloc(rm->names.changes->n_tensors + 1u, sizeof(*rm->doomed));
	if (!rm->doomed)
		return out_of_memory();
	code = rm->regex ? take_regex(rm) : take_operands(rm, words + 1, n - 1);
	if (code != STFS_EXIT_OK)
		return code;
	if (rm->dry_run)
		return print_doomed(rm);
	code = apply(rm);
	return code == STFS_EXIT_OK ? stfs_editing_end(&rm->editing) : code;
}

static int run_rm(int argc, char **argv)
{
	_cleanup_(rm_fini) struct rm rm = { .dry_run = false };
	struct stfs_args args;
	int row, code;

	stfs_args_init(&args, &stfs_cmd_rm, argc, argv);
	while ((row = stfs_editing_next(&args, &rm.editing, &code)) >= 0) {
		if (row == OPT_REGEX)
			rm.regex = optarg;
		rm.dry_run |= row == OPT_DRY_RUN;
	}
	if (row == STFS_ARGS_ERROR)
		return code;
	if (rm.regex && argc - optind != 1)
		return stfs_usage_error(&stfs_cmd_rm, "with --regex, rm takes a model and nothing else");
	if (!rm.regex && argc - optind < 2)
		return stfs_usage_error(&stfs_cmd_rm, "rm needs a model and the name of a tensor or module");
	stfs_use_utf8_names();
	return remove_all(&rm, argv + optind, argc - optind);
}

const struct stfs_command stfs_cmd_rm = {
	.name = "rm",
	.usage = "rm [--dry-run] [--commit [-q]] [-o OPTIONS] SOURCE NAME...|--regex REGEX",
	.summary = "Removes tensors and modules",
	.options = rm_options,
	.notes =
		"NAME is a name, such as model.layers.0, or a path of the tree, such as model/layers/0. A module goes with all\n"
		"that is below it. When there is no such thing, nothing is changed.\n"
		"The change is staged, as in a mount: 'safetensorsfs commit SOURCE' makes it part of the model.\n",
	.print_more = stfs_edit_print_help,
	.run = run_rm,
};
