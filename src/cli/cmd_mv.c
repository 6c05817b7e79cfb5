/* SPDX-License-Identifier: Apache-2.0 */
/* mv: new names for tensors and modules. */
#include <errno.h>
#include <string.h>

#include "editing.h"
#include "findings.h"
#include "quote.h"
#include "rename_map.h"
#include "renames.h"
#include "substitute.h"
#include "walk.h"

#define QUOTED(s) (stfs_quote(stfs_slice_of(s)).text)

enum { OPT_REGEX, OPT_MAP, OPT_DRY_RUN };

static const struct stfs_option_help mv_options[] = {
	[OPT_REGEX] = { "--regex EXPRESSION", "change every name as sed's s/REGEX/NEW/ would (extended; g and i)" },
	[OPT_MAP] = { "--map FILE", "old and new names: two columns and a tab, or a JSON object" },
	[OPT_DRY_RUN] = { "--dry-run", "change nothing, print OLD -> NEW for each tensor" },
	STFS_EDIT_ROWS,
};

struct mv {
	struct stfs_editing editing;
	const char *regex, *map;
	bool dry_run;
	struct stfs_names names;
	struct stfs_renames renames;
	struct stfs_buf from, to; /* paths of a directory that moves as a whole; empty: tensors move one by one */
};

static void mv_fini(struct mv *mv)
{
	stfs_renames_fini(&mv->renames);
	stfs_names_fini(&mv->names);
	stfs_buf_fini(&mv->from);
	stfs_buf_fini(&mv->to);
	stfs_editing_fini(&mv->editing);
}

static int out_of_memory(void)
{
	return stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(ENOMEM));
}

/* The name that `typed` gives to what was called `old`. A name with slashes in it stays of that kind. */
static int spell_new(struct stfs_slice old, const char *typed, struct stfs_buf *buf)
{
	if (*typed && old.len && memchr(old.p, '/', old.len))
		return stfs_buf_append_str(buf, typed);
	return stfs_names_spell(typed, buf);
}

static int not_spelt(const char *typed)
{
	return stfs_exit_with(STFS_EXIT_USAGE, "%s is no name: neither dotted nor a path of the tree", QUOTED(typed));
}

/* Gives every tensor of the operand its new name: another beginning, the same end. */
static int add_operand(struct mv *mv, const struct stfs_operand *operand, struct stfs_slice new_name)
{
	for (uint32_t i = 0; i < operand->n_tensors; i++) {
		struct stfs_slice old = mv->names.changes->tensors[operand->tensors[i]].name;
		_cleanup_buf_ struct stfs_buf name = { 0 };
		int r = stfs_buf_append(&name, new_name.p, new_name.len);

		if (r == 0)
			r = stfs_buf_append(&name, old.p + operand->name.len, old.len - operand->name.len);
		if (r == 0)
			r = stfs_renames_add(&mv->renames, operand->tensors[i], stfs_buf_slice(&name));
		if (r < 0)
			return r;
	}
	return 0;
}

/* Adds what `from` names, under the name `to`. Returns an enum stfs_exit. */
static int add_pair(struct mv *mv, const char *from, const char *to, struct stfs_operand *operand,
		    struct stfs_buf *name)
{
	int r = stfs_names_resolve(&mv->names, from, operand);

	if (r == -ENOENT)
		return stfs_exit_with(STFS_EXIT_MODEL, "%s has no tensor or module %s",
				      stfs_view_model(mv->names.view)->name, QUOTED(from));
	if (r == 0)
		r = spell_new(stfs_buf_slice(&operand->name), to, name);
	if (r == -EINVAL)
		return not_spelt(to);
	if (r == 0)
		r = add_operand(mv, operand, stfs_buf_slice(name));
	return r < 0 ? stfs_editing_fail(r, QUOTED(from)) : STFS_EXIT_OK;
}

/* Whether all tensors of the operand live below its directory: then that can move in one step. */
static int moves_whole(struct mv *mv, const struct stfs_operand *operand, struct stfs_slice to, bool *ret)
{
	struct stfs_slice from = stfs_buf_slice(&operand->path);
	struct stfs_attr attr;

	*ret = operand->is_dir && stfs_walk(mv->names.view, to, &attr) == -ENOENT && !stfs_walk_is_above(from, to);
	for (uint32_t i = 0; *ret && i < operand->n_tensors; i++) {
		_cleanup_buf_ struct stfs_buf path = { 0 };
		int r = stfs_names_path(&mv->names, operand->tensors[i], &path);

		if (r < 0)
			return r;
		*ret = stfs_slice_equal(stfs_buf_slice(&path), from) || stfs_walk_is_above(from, stfs_buf_slice(&path));
	}
	return 0;
}

static int take_operands(struct mv *mv, const char *from, const char *to)
{
	_cleanup_(stfs_operand_fini) struct stfs_operand operand = { 0 };
	_cleanup_buf_ struct stfs_buf name = { 0 };
	bool whole = false;
	int code = add_pair(mv, from, to, &operand, &name), r;

	if (code != STFS_EXIT_OK)
		return code;
	r = stfs_name_encode(&mv->to, stfs_buf_slice(&name), stfs_view_layout(mv->names.view));
	if (r == 0)
		r = moves_whole(mv, &operand, stfs_buf_slice(&mv->to), &whole);
	if (r == 0 && whole)
		r = stfs_buf_append(&mv->from, operand.path.data, operand.path.len);
	return r < 0 ? stfs_editing_fail(r, QUOTED(from)) : STFS_EXIT_OK;
}

static int take_regex(struct mv *mv)
{
	_cleanup_(stfs_substitute_fini) struct stfs_substitute substitute = { 0 };
	struct stfs_diag diag = { 0 };
	uint32_t matched = 0;
	int r = stfs_substitute_init(&substitute, mv->regex, &diag);

	if (r == -EINVAL)
		return stfs_usage_error(&stfs_cmd_mv, "%s", diag.text);
	for (uint32_t i = 0; r >= 0 && i < mv->names.changes->n_tensors; i++) {
		_cleanup_buf_ struct stfs_buf name = { 0 };

		r = stfs_substitute_apply(&substitute, mv->names.changes->tensors[i].name, &name);
		if (r > 0) {
			matched++;
			r = stfs_renames_add(&mv->renames, i, stfs_buf_slice(&name));
		}
	}
	if (r < 0)
		return out_of_memory();
	return matched ? STFS_EXIT_OK :
			 stfs_exit_with(STFS_EXIT_MODEL, "%s has no tensor that %s matches",
					stfs_view_model(mv->names.view)->name, QUOTED(mv->regex));
}

/* A line of a map: a tensor of exactly that name, or else a module. */
static int take_line(struct mv *mv, const char *from, const char *to)
{
	_cleanup_(stfs_operand_fini) struct stfs_operand operand = { 0 };
	uint32_t tensor = stfs_names_find(&mv->names, stfs_slice_of(from));
	_cleanup_buf_ struct stfs_buf name = { 0 };
	int r;

	if (tensor == STFS_TABLE_NONE)
		return add_pair(mv, from, to, &operand, &name);
	r = spell_new(stfs_slice_of(from), to, &name);
	if (r == -EINVAL)
		return not_spelt(to);
	if (r == 0)
		r = stfs_renames_add(&mv->renames, tensor, stfs_buf_slice(&name));
	return r < 0 ? stfs_editing_fail(r, QUOTED(from)) : STFS_EXIT_OK;
}

/* Every name that is not there is told. */
static int take_map(struct mv *mv)
{
	_cleanup_(stfs_rename_map_fini) struct stfs_rename_map map = { 0 };
	struct stfs_diag diag = { 0 };
	int worst = STFS_EXIT_OK, r = stfs_rename_map_read(mv->map, &diag, &map);

	if (r < 0)
		return stfs_exit_with(r == -EINVAL ? STFS_EXIT_USAGE : STFS_EXIT_OTHER, "%s: %s", QUOTED(mv->map),
				      *diag.text ? diag.text : strerror(-r));
	for (uint32_t i = 0; i < map.n; i++) {
		_cleanup_free_ char *from = strndup(map.pairs[i].from.p, map.pairs[i].from.len);
		_cleanup_free_ char *to = strndup(map.pairs[i].to.p, map.pairs[i].to.len);
		int code = from && to ? take_line(mv, from, to) : out_of_memory();

		worst = STFS_MAX(worst, code);
	}
	return worst;
}

static int check_renames(struct mv *mv)
{
	struct stfs_findings findings;
	int r;

	stfs_findings_init(&findings, stderr, UINT64_MAX, 0);
	r = stfs_renames_check(&mv->renames, &findings.report);
	stfs_findings_finish(&findings);
	if (r == -ENOMEM)
		return out_of_memory();
	return r < 0 ? STFS_EXIT_MODEL : STFS_EXIT_OK;
}

static int print_renames(struct mv *mv)
{
	_cleanup_buf_ struct stfs_buf text = { 0 };

	if (stfs_renames_text(&mv->renames, &text) < 0)
		return out_of_memory();
	if (text.len)
		fwrite(text.data, 1, text.len, stdout);
	return (int)stfs_finish_stdout();
}

static int apply(struct mv *mv)
{
	struct stfs_view *view = mv->names.view;
	struct stfs_diag diag = { 0 };
	int r;

	if (mv->from.len) {
		r = stfs_walk_move(view, stfs_buf_slice(&mv->from), stfs_buf_slice(&mv->to));
		if (r == 0)
			r = stfs_walk_prune(view, stfs_walk_above(stfs_buf_slice(&mv->from)));
	} else {
		r = stfs_renames_apply(&mv->renames, &diag);
	}
	return r < 0 ? stfs_exit_with(STFS_EXIT_OTHER, "%s", *diag.text ? diag.text : strerror(-r)) : STFS_EXIT_OK;
}

static int move(struct mv *mv, char **words)
{
	int code = stfs_editing_open(&mv->editing, words[0]), r;

	if (code != STFS_EXIT_OK)
		return code;
	r = stfs_names_init(&mv->names, mv->editing.workspace.view);
	if (r == 0)
		r = stfs_renames_init(&mv->renames, &mv->names);
	if (r < 0)
		return stfs_editing_fail(r, "what is staged cannot be read");
	code = mv->regex ? take_regex(mv) : mv->map ? take_map(mv) : take_operands(mv, words[1], words[2]);
	if (code == STFS_EXIT_OK)
		code = check_renames(mv);
	if (code != STFS_EXIT_OK)
		return code;
	if (mv->dry_run)
		return print_renames(mv);
	code = apply(mv);
	return code == STFS_EXIT_OK ? stfs_editing_end(&mv->editing) : code;
}

static int run_mv(int argc, char **argv)
{
	_cleanup_(mv_fini) struct mv mv = { .dry_run = false };
	struct stfs_args args;
	int row, code, many;

	stfs_args_init(&args, &stfs_cmd_mv, argc, argv);
	while ((row = stfs_editing_next(&args, &mv.editing, &code)) >= 0) {
		if (row == OPT_REGEX)
			mv.regex = optarg;
		else if (row == OPT_MAP)
			mv.map = optarg;
		mv.dry_run |= row == OPT_DRY_RUN;
	}
	if (row == STFS_ARGS_ERROR)
		return code;
	if (mv.regex && mv.map)
		return stfs_usage_error(&stfs_cmd_mv, "mv takes --regex or --map, not both");
	many = mv.regex || mv.map;
	if (argc - optind != (many ? 1 : 3))
		return stfs_usage_error(&stfs_cmd_mv,
					many ? "with --regex or --map, mv takes a model and nothing else" :
					       "mv needs a model, a name and a new name");
	stfs_use_utf8_names();
	return move(&mv, argv + optind);
}

const struct stfs_command stfs_cmd_mv = {
	.name = "mv",
	.usage = "mv [--dry-run] [--commit [-q]] [-o OPTIONS] SOURCE OLD NEW|--regex EXPRESSION|--map FILE",
	.summary = "Renames tensors and modules",
	.options = mv_options,
	.notes =
		"OLD and NEW are names, such as model.layers.0, or paths of the tree, such as model/layers/0. A module moves\n"
		"with all that is below it. When two tensors would have one name, nothing is changed.\n"
		"The change is staged, as in a mount: 'safetensorsfs commit SOURCE' makes it part of the model.\n",
	.print_more = stfs_edit_print_help,
	.run = run_mv,
};
