/* SPDX-License-Identifier: Apache-2.0 */
/* ls: the names of a model's tensors, and with -l what they are. */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "format_size.h"
#include "header_write.h"
#include "json_out.h"
#include "name.h"
#include "quote.h"
#include "select.h"
#include "source.h"
#include "term.h"

#define SHAPE_COLUMN_MAX 32 /* a shape that is longer moves its own line only */

enum { OPT_LONG, OPT_HUMAN, OPT_JSON };

static const struct stfs_option_help ls_options[] = {
	[OPT_LONG] = { "-l, --long", "dtype, shape and bytes before each name" },
	[OPT_HUMAN] = { "-h, --human-readable", "with -l: sizes such as 12.3 MB" },
	[OPT_JSON] = { "--json", "one array of objects, for programs" },
	STFS_SOURCE_ROWS,
};

struct listing {
	struct stfs_model *model;
	struct stfs_model_options model_options;
	bool details, human, json;
	struct stfs_selector *selectors;
	size_t n_selectors;
	struct stfs_term term;
	int shape_width, size_width;
	struct stfs_buf line;
	struct stfs_json_out json_out;
};

static void listing_fini(struct listing *ls)
{
	for (size_t i = 0; i < ls->n_selectors; i++)
		stfs_selector_fini(&ls->selectors[i]);
	free(ls->selectors);
	stfs_buf_fini(&ls->line);
	stfs_json_out_fini(&ls->json_out);
	stfs_model_free(ls->model);
}

/* Every selector is asked, so that each knows whether it was of use. */
static bool is_selected(struct listing *ls, const struct stfs_tensor *tensor)
{
	bool selected = ls->n_selectors == 0;

	for (size_t i = 0; i < ls->n_selectors; i++)
		selected |= stfs_selector_match(&ls->selectors[i], tensor->name);
	return selected;
}

static struct stfs_formatted format_bytes(const struct listing *ls, const struct stfs_tensor *tensor)
{
	struct stfs_formatted f;

	if (ls->human)
		return stfs_format_size(tensor->end - tensor->begin);
	snprintf(f.text, sizeof(f.text), "%" PRIu64, tensor->end - tensor->begin);
	return f;
}

/* The columns are as wide as their widest selected field. */
static int measure_columns(struct listing *ls)
{
	for (uint32_t i = 0; i < ls->model->n_entries; i++) {
		const struct stfs_tensor *tensor = stfs_model_tensor(ls->model, i);
		int r;

		if (!is_selected(ls, tensor))
			continue;
		ls->line.len = 0;
		r = stfs_dims_write(&ls->line, stfs_tensor_dims(tensor), ",");
		if (r < 0)
			return r;
		ls->shape_width = STFS_MAX(ls->shape_width, (int)STFS_MIN(ls->line.len, SHAPE_COLUMN_MAX));
		ls->size_width = STFS_MAX(ls->size_width, (int)strlen(format_bytes(ls, tensor).text));
	}
	return 0;
}

static int append_columns(struct listing *ls, const struct stfs_tensor *tensor)
{
	_cleanup_buf_ struct stfs_buf shape = { 0 };
	int r = stfs_dims_write(&shape, stfs_tensor_dims(tensor), ",");

	if (r < 0)
		return r;
	return stfs_buf_printf(&ls->line, "%-11s  %-*s  %*s  ", stfs_dtype_info(tensor->dtype)->name, ls->shape_width,
			       tensor->rank ? shape.data : "-", ls->size_width, format_bytes(ls, tensor).text);
}

/* A name is shown exactly, but a terminal gets no control bytes from a stranger. */
static int append_line(struct listing *ls, const struct stfs_tensor *tensor)
{
	int r = ls->details ? append_columns(ls, tensor) : 0;

	if (r < 0)
		return r;
	r = ls->term.tty ? stfs_append_printable(&ls->line, tensor->name) :
			   stfs_buf_append(&ls->line, tensor->name.p, tensor->name.len);
	return r < 0 ? r : stfs_buf_append_char(&ls->line, '\n');
}

static void append_json(struct listing *ls, uint32_t entry, const struct stfs_tensor *tensor)
{
	const char *file = stfs_snapshot_name(stfs_model_file(ls->model, entry));
	struct stfs_dims dims = stfs_tensor_dims(tensor);
	struct stfs_json_out *out = &ls->json_out;
	uint64_t dim;

	stfs_json_out_newline(out);
	stfs_json_out_open(out, '{');
	stfs_json_out_text_member(out, "name", tensor->name);
	stfs_json_out_text_member(out, "dtype", stfs_slice_of(stfs_dtype_info(tensor->dtype)->name));
	stfs_json_out_key(out, stfs_slice_of("shape"));
	stfs_json_out_open(out, '[');
	while (stfs_dims_next(&dims, &dim))
		stfs_json_out_number(out, dim);
	stfs_json_out_close(out, ']');
	stfs_json_out_number_member(out, "bytes", tensor->end - tensor->begin);
	stfs_json_out_text_member(out, "file", stfs_slice_of(file));
	stfs_json_out_number_member(out, "offset", stfs_model_offset(ls->model, entry));
	ls->line.len = 0;
	if (out->error == 0)
		out->error = stfs_name_encode(&ls->line, tensor->name, STFS_NESTED);
	stfs_json_out_text_member(out, "path", stfs_buf_slice(&ls->line));
	stfs_json_out_close(out, '}');
}

static int print_json(struct listing *ls)
{
	int r = 0;

	stfs_json_out_open(&ls->json_out, '[');
	for (uint32_t i = 0; r >= 0 && i < ls->model->n_entries && !ferror(stdout); i++) {
		if (!is_selected(ls, stfs_model_tensor(ls->model, i)))
			continue;
		append_json(ls, i, stfs_model_tensor(ls->model, i));
		r = stfs_json_out_print(&ls->json_out);
	}
	stfs_json_out_close(&ls->json_out, ']');
	return r < 0 ? r : stfs_json_out_print_line(&ls->json_out);
}

static int print_lines(struct listing *ls)
{
	int r = ls->details ? measure_columns(ls) : 0;

	for (uint32_t i = 0; r >= 0 && i < ls->model->n_entries && !ferror(stdout); i++) {
		const struct stfs_tensor *tensor = stfs_model_tensor(ls->model, i);

		if (!is_selected(ls, tensor))
			continue;
		ls->line.len = 0;
		r = append_line(ls, tensor);
		if (r >= 0)
			fwrite(ls->line.data, 1, ls->line.len, stdout);
	}
	return r;
}

static int take_prefixes(struct listing *ls, int argc, char **argv)
{
	ls->selectors = calloc((size_t)argc + 1, sizeof(*ls->selectors));
	if (!ls->selectors)
		return -ENOMEM;
	for (; ls->n_selectors < (size_t)argc; ls->n_selectors++) {
		int r = stfs_selector_init(&ls->selectors[ls->n_selectors], argv[ls->n_selectors]);

		if (r < 0)
			return r;
	}
	return 0;
}

static int complain_unused(const struct listing *ls)
{
	int code = STFS_EXIT_OK;

	for (size_t i = 0; i < ls->n_selectors; i++)
		if (!ls->selectors[i].used)
			code = stfs_exit_with(STFS_EXIT_MODEL, "%s has no tensor %s", ls->model->name,
					      stfs_quote(ls->selectors[i].typed).text);
	return code;
}

static int list(struct listing *ls, int argc, char **argv)
{
	int code, r;

	code = stfs_source_open(argv[0], &ls->model_options, &ls->model);
	if (code != STFS_EXIT_OK)
		return code;
	stfs_term_init(&ls->term);
	r = take_prefixes(ls, argc - 1, argv + 1);
	if (r >= 0)
		r = ls->json ? print_json(ls) : print_lines(ls);
	if (r < 0)
		return stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(-r));
	code = (int)stfs_finish_stdout();
	return code != STFS_EXIT_OK ? code : complain_unused(ls);
}

static int run_ls(int argc, char **argv)
{
	_cleanup_(listing_fini) struct listing ls = { .model_options.io = STFS_IO_PREAD };
	struct stfs_args args;
	int option, code;

	stfs_args_init(&args, &stfs_cmd_ls, argc, argv);
	while ((option = stfs_source_next(&args, &ls.model_options, &code)) >= 0) {
		ls.details |= option == OPT_LONG;
		ls.human |= option == OPT_HUMAN;
		ls.json |= option == OPT_JSON;
	}
	if (option == STFS_ARGS_ERROR)
		return code;
	if (optind == argc)
		return stfs_usage_error(&stfs_cmd_ls, "ls needs a model");
	return list(&ls, argc - optind, argv + optind);
}

const struct stfs_command stfs_cmd_ls = {
	.name = "ls",
	.usage = "ls [-lh] [--json] [-o OPTIONS] SOURCE [PREFIX...]",
	.summary = "Lists the tensors of a model, in the order of its bytes",
	.options = ls_options,
	.notes =
		"PREFIX, such as model.layers.0 or model/layers/0, selects that tensor or all below that module.\n"
		"A terminal is shown control characters of names as \\x escapes; files and pipes get names as they are.\n",
	.print_more = stfs_source_print_help,
	.run = run_ls,
};
