/* SPDX-License-Identifier: Apache-2.0 */
/* info: what a model is, in one screen. */
#include <stdbool.h>
#include <string.h>

#include "checked.h"
#include "info_text.h"
#include "json_out.h"
#include "source.h"

enum { OPT_JSON };

static const struct stfs_option_help info_options[] = {
	[OPT_JSON] = { "--json", "one object, for programs" },
	STFS_SOURCE_ROWS,
};

/* Sparse files may hold anything: a sum that does not fit stays at the top. */
static void add_to(uint64_t *sum, uint64_t value)
{
	if (!stfs_add(*sum, value, sum))
		*sum = UINT64_MAX;
}

static struct stfs_info gather(const struct stfs_model *model)
{
	struct stfs_info info = { .model = model };

	for (uint32_t i = 0; i < model->n_files; i++)
		add_to(&info.file_bytes, stfs_snapshot_identity(model->files[i])->size);
	for (uint32_t i = 0; i < model->n_entries; i++) {
		const struct stfs_tensor *tensor = stfs_model_tensor(model, i);
		struct stfs_info_dtype *dtype = &info.dtypes[tensor->dtype];

		dtype->tensors++;
		add_to(&dtype->elements, stfs_tensor_elements(tensor));
		add_to(&dtype->bytes, tensor->end - tensor->begin);
		add_to(&info.elements, stfs_tensor_elements(tensor));
	}
	return info;
}

static void add_files(struct stfs_json_out *out, const struct stfs_model *model)
{
	stfs_json_out_key(out, stfs_slice_of("files"));
	stfs_json_out_open(out, '[');
	for (uint32_t i = 0; i < model->n_files; i++) {
		stfs_json_out_open(out, '{');
		stfs_json_out_text_member(out, "file", stfs_slice_of(stfs_snapshot_name(model->files[i])));
		stfs_json_out_number_member(out, "bytes", stfs_snapshot_identity(model->files[i])->size);
		stfs_json_out_close(out, '}');
	}
	stfs_json_out_close(out, ']');
}

static void add_dtypes(struct stfs_json_out *out, const struct stfs_info *info)
{
	stfs_json_out_key(out, stfs_slice_of("dtypes"));
	stfs_json_out_open(out, '{');
	for (int i = STFS_DTYPE_COUNT - 1; i >= 0; i--) {
		if (info->dtypes[i].tensors == 0)
			continue;
		stfs_json_out_key(out, stfs_slice_of(stfs_dtype_info((enum stfs_dtype)i)->name));
		stfs_json_out_open(out, '{');
		stfs_json_out_number_member(out, "tensors", info->dtypes[i].tensors);
		stfs_json_out_number_member(out, "parameters", info->dtypes[i].elements);
		stfs_json_out_number_member(out, "bytes", info->dtypes[i].bytes);
		stfs_json_out_close(out, '}');
	}
	stfs_json_out_close(out, '}');
}

static void add_metadata(struct stfs_json_out *out, const struct stfs_model *model)
{
	stfs_json_out_key(out, stfs_slice_of("metadata"));
	stfs_json_out_open(out, '{');
	for (uint32_t i = 0; i < model->n_metadata; i++) {
		stfs_json_out_key(out, model->metadata[i].key);
		stfs_json_out_string(out, model->metadata[i].value);
	}
	stfs_json_out_close(out, '}');
}

static int print_json(const struct stfs_info *info)
{
	_cleanup_json_out_ struct stfs_json_out out = { 0 };
	const struct stfs_model *model = info->model;

	stfs_json_out_open(&out, '{');
	stfs_json_out_text_member(&out, "source", stfs_slice_of(model->name));
	stfs_json_out_bool_member(&out, "sharded", model->sharded);
	stfs_json_out_bool_member(&out, "damaged", model->damaged);
	stfs_json_out_number_member(&out, "tensors", model->n_entries);
	stfs_json_out_number_member(&out, "parameters", info->elements);
	stfs_json_out_number_member(&out, "bytes", model->data_size);
	stfs_json_out_number_member(&out, "file_bytes", info->file_bytes);
	add_files(&out, model);
	add_dtypes(&out, info);
	add_metadata(&out, model);
	stfs_json_out_close(&out, '}');
	return stfs_json_out_print_line(&out);
}

static int show(const char *source, const struct stfs_model_options *options, bool json)
{
	_cleanup_(stfs_model_freep) struct stfs_model *model = NULL;
	struct stfs_info info;
	int r, code = stfs_source_open(source, options, &model);

	if (code != STFS_EXIT_OK)
		return code;
	info = gather(model);
	r = json ? print_json(&info) : stfs_info_print_text(&info);
	if (r < 0)
		return stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(-r));
	return (int)stfs_finish_stdout();
}

static int run_info(int argc, char **argv)
{
	struct stfs_model_options options = { .io = STFS_IO_PREAD };
	struct stfs_args args;
	bool json = false;
	int option, code;

	stfs_args_init(&args, &stfs_cmd_info, argc, argv);
	while ((option = stfs_source_next(&args, &options, &code)) >= 0)
		json |= option == OPT_JSON;
	if (option == STFS_ARGS_ERROR)
		return code;
	if (argc - optind != 1)
		return stfs_usage_error(&stfs_cmd_info, "info needs one model");
	return show(argv[optind], &options, json);
}

const struct stfs_command stfs_cmd_info = {
	.name = "info",
	.usage = "info [--json] [-o OPTIONS] SOURCE",
	.summary = "Shows what a model is: sizes, dtypes, metadata and modules, on one screen",
	.options = info_options,
	.notes =
		"Siblings that differ in a number only are one line, such as layers.{0..31}. COLUMNS and LINES set the\n"
		"screen's size; NO_COLOR, when set, turns colours off.\n",
	.print_more = stfs_source_print_help,
	.run = run_info,
};
