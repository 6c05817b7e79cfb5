/* SPDX-License-Identifier: Apache-2.0 */
/* cat: the bytes of a tensor, or of any other file of the tree, as a mount would give them. */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "io.h"
#include "quote.h"
#include "source.h"
#include "term.h"
#include "walk.h"

#define CHUNK (1u << 20) /* bytes read at once */

static const struct stfs_option_help cat_options[] = {
	STFS_SOURCE_ROWS,
};

struct cat {
	struct stfs_model_options model_options;
	struct stfs_view *view;
	bool escape; /* stdout is a terminal: it gets no control bytes from a stranger */
	char *chunk; /* CHUNK bytes */
};

static void cat_fini(struct cat *cat)
{
	stfs_view_free(cat->view);
	free(cat->chunk);
}

/*
 * Finds what PATH means. A tensor's exact name comes first, so that every tensor can be had by its name, also one that
 * looks like a path; a directory with `data` in it stands for that.
 */
static int resolve(struct stfs_view *view, struct stfs_slice path, struct stfs_attr *ret_attr)
{
	_cleanup_buf_ struct stfs_buf tree_path = { 0 };
	struct stfs_attr attr;
	int r;

	if (stfs_model_find(stfs_view_model(view), path) != STFS_ENTRY_NONE) {
		r = stfs_name_encode(&tree_path, path, STFS_NESTED);
		if (r < 0)
			return r;
		path = stfs_buf_slice(&tree_path);
	}
	r = stfs_walk(view, path, &attr);
	if (r >= 0 && attr.type == STFS_NODE_DIR) {
		r = stfs_view_lookup(view, attr.ino, stfs_slice_of("data"), &attr);
		if (r == -ENOENT || (r >= 0 && attr.type != STFS_NODE_FILE))
			return -EISDIR;
	}
	if (r >= 0)
		*ret_attr = attr;
	return r;
}

/* Lines and tabs are kept, everything else a terminal would obey is escaped. */
static int write_escaped(const char *data, size_t len)
{
	_cleanup_buf_ struct stfs_buf shown = { 0 };
	int r = 0;

	while (r >= 0 && len > 0) {
		size_t n = 0;

		while (n < len && data[n] != '\n' && data[n] != '\t')
			n++;
		r = stfs_append_printable(&shown, (struct stfs_slice){ data, n });
		if (r >= 0 && n < len)
			r = stfs_buf_append_char(&shown, data[n++]);
		data += n;
		len -= n;
	}
	return r < 0 ? r : stfs_write_full(STDOUT_FILENO, shown.data, shown.len);
}

/* A reader that has seen enough (head) is no reason for a sentence. */
static int write_failed(int error)
{
	if (error == -EPIPE)
		return STFS_EXIT_OTHER;
	return stfs_exit_with(STFS_EXIT_OTHER, "cannot write the output: %s", strerror(-error));
}

/* Only private memory is written: the file may be cut while it is read, and must not be cut silently. */
static int copy_file(struct cat *cat, const char *path, struct stfs_file *file)
{
	uint64_t offset = 0;
	size_t n = 0;
	int code, r;

	while ((r = stfs_file_read(file, offset, cat->chunk, CHUNK, &n)) == 0 && n > 0) {
		r = cat->escape ? write_escaped(cat->chunk, n) : stfs_write_full(STDOUT_FILENO, cat->chunk, n);
		if (r < 0)
			return write_failed(r);
		offset += n;
	}
	/* Also after the last byte: what was read before a change that went unnoticed is no version of the file. */
	code = stfs_source_check(stfs_view_model(cat->view));
	if (code == STFS_EXIT_OK && r < 0)
		return stfs_exit_with(STFS_EXIT_SOURCE, "cannot read %s: %s", stfs_quote(stfs_slice_of(path)).text,
				      strerror(-r));
	return code;
}

static int cat_path(struct cat *cat, const char *path)
{
	const char *name = stfs_view_model(cat->view)->name;
	struct stfs_quoted shown = stfs_quote(stfs_slice_of(path));
	struct stfs_file *file;
	struct stfs_attr attr;
	int r, code;

	r = resolve(cat->view, stfs_slice_of(path), &attr);
	if (r == -EISDIR)
		return stfs_exit_with(STFS_EXIT_MODEL, "%s is a module of %s, not a tensor", shown.text, name);
	if (r >= 0)
		r = stfs_view_open(cat->view, attr.ino, &file);
	if (r == -ENOMEM)
		return stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(-r));
	if (r < 0)
		return stfs_exit_with(STFS_EXIT_MODEL, "%s has no tensor or file %s", name, shown.text);
	code = copy_file(cat, path, file);
	stfs_file_close(file);
	return code;
}

static int cat_open(struct cat *cat, const char *source)
{
	const struct stfs_view_options options = { .layout = STFS_NESTED };
	struct stfs_model *model;
	struct stfs_diag diag = { 0 };
	struct stfs_term term;
	int code, r;

	code = stfs_source_open(source, &cat->model_options, &model);
	if (code != STFS_EXIT_OK)
		return code;
	stfs_term_init(&term);
	cat->escape = term.tty;
	r = stfs_view_new(model, &options, NULL, &diag, &cat->view);
	if (r >= 0) {
		cat->chunk = malloc(CHUNK);
		r = cat->chunk ? 0 : -ENOMEM;
	}
	if (r < 0)
		return stfs_exit_with(stfs_exit_of_open(r), "%s", *diag.text ? diag.text : strerror(-r));
	return STFS_EXIT_OK;
}

static int run_cat(int argc, char **argv)
{
	/* Never mapped: bytes pass through this process, where a page that is gone would be a SIGBUS. */
	_cleanup_(cat_fini) struct cat cat = { .model_options.io = STFS_IO_PREAD };
	struct stfs_args args;
	int code, worst = STFS_EXIT_OK;

	stfs_args_init(&args, &stfs_cmd_cat, argc, argv);
	if (stfs_source_next(&args, &cat.model_options, &code) == STFS_ARGS_ERROR)
		return code;
	if (argc - optind < 2)
		return stfs_usage_error(&stfs_cmd_cat, "cat needs a model and the name of a tensor");
	code = cat_open(&cat, argv[optind]);
	if (code != STFS_EXIT_OK)
		return code;
	for (int i = optind + 1; i < argc && code != STFS_EXIT_OTHER; i++) {
		code = cat_path(&cat, argv[i]);
		worst = STFS_MAX(worst, code);
	}
	return worst;
}

const struct stfs_command stfs_cmd_cat = {
	.name = "cat",
	.usage = "cat [-o OPTIONS] SOURCE PATH...",
	.summary = "Writes the bytes of tensors, or other files of the tree, to the standard output",
	.options = cat_options,
	.notes =
		"PATH is a tensor's name (its raw bytes), a name with /data, /dtype, /shape or /data.npy after it, or any\n"
		"path of the tree a mount shows: __metadata__/KEY, .safetensors/tensors.tsv, .safetensors/header.json.\n"
		"A terminal is shown control characters as \\x escapes; files and pipes get the bytes as they are.\n",
	.print_more = stfs_source_print_help,
	.run = run_cat,
};
