/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"

#include <stdbool.h>
#include <string.h>

#include "findings.h"
#include "quote.h"

#define MAX_VIOLATIONS 10 /* `check` prints all of them */
#define MAX_WARNINGS 5

static bool take_lax(const char *value, struct stfs_edit_options *options)
{
	options->model.lax = true;
	return !value;
}

static bool take_partial(const char *value, struct stfs_edit_options *options)
{
	options->model.partial = true;
	return !value;
}

static bool take_index(const char *value, struct stfs_edit_options *options)
{
	options->model.index = value;
	return value && *value && !strchr(value, '/');
}

static bool take_stage(const char *value, struct stfs_edit_options *options)
{
	options->stage = value;
	return value && *value;
}

static bool take_new(const char *value, struct stfs_edit_options *options)
{
	options->create = true;
	return !value;
}

static bool take_format(const char *value, struct stfs_edit_options *options)
{
	options->format_pt = true;
	return value && strcmp(value, "pt") == 0;
}

static const struct source_option {
	struct stfs_option_help help;
	bool (*take)(const char *value, struct stfs_edit_options *options);
	bool edits; /* only for commands that edit */
} source_options[] = {
	{ { "lax", "accept NUL padding and trailing bytes" }, take_lax, false },
	{ { "partial", "read what is whole of a damaged set of shards" }, take_partial, false },
	{ { "index=NAME", "the index or single file of a directory to take" }, take_index, false },
	{ { "stage=DIR", "where changes are staged (default: beside the model)" }, take_stage, true },
	{ { "new", "a source that is not there begins empty; the first commit makes it" }, take_new, true },
	{ { "format=pt", "write the metadata entry format, \"pt\", where there is none" }, take_format, true },
};

static void print_rows(FILE *out, const char *title, bool edits)
{
	fputs(title, out);
	for (size_t i = 0; i < STFS_ARRAY_SIZE(source_options); i++) {
		const struct stfs_option_help row[] = { source_options[i].help, { NULL, NULL } };

		if (source_options[i].edits == edits)
			stfs_print_options(out, row);
	}
}

void stfs_source_print_help(FILE *out)
{
	print_rows(out, "\nWhat -o takes:\n", false);
}

void stfs_edit_print_help(FILE *out)
{
	stfs_source_print_help(out);
	print_rows(out, "\nAnd for edits:\n", true);
}

static const struct source_option *find_option(const char *name, bool edits)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < STFS_ARRAY_SIZE(source_options); i++) {
		const char *own = source_options[i].help.name;

		if (len == strcspn(own, "=") && memcmp(own, name, len) == 0 && (edits || !source_options[i].edits))
			return &source_options[i];
	}
	return NULL;
}

/* Takes the next word off `*text`, in place; as for a mount, `\,` and `\\` stand for a comma and a backslash. */
static char *next_word(char **text)
{
	char *word = *text, *from = word, *to = word;

	for (; *from && *from != ','; from++) {
		if (*from == '\\' && from[1])
			from++;
		*to++ = *from;
	}
	*text = *from ? from + 1 : from;
	*to = '\0';
	return word;
}

/* Adds the options in `text`, which is changed, to *options. Returns an enum stfs_exit. */
static int parse_options(const struct stfs_command *command, char *text, bool edits, struct stfs_edit_options *options)
{
	while (*text) {
		char *word = next_word(&text), *value = strchr(word, '=');
		const struct source_option *option;

		if (!*word)
			continue;
		if (value)
			*value++ = '\0';
		option = find_option(word, edits);
		if (!option)
			return stfs_usage_error(command, "unknown option -o %s", stfs_quote(stfs_slice_of(word)).text);
		if (!option->take(value, options))
			return stfs_usage_error(command, "option -o is written %s", option->help.name);
	}
	return STFS_EXIT_OK;
}

/* Both kinds of commands. */
static int next_switch(struct stfs_args *args, bool edits, struct stfs_edit_options *options, int *ret_code)
{
	const struct stfs_command *command = args->command;
	int row, code = STFS_EXIT_OK;

	while ((row = stfs_args_next(args)) >= 0) {
		const char *name = command->options[row].name;

		if (strcmp(name, "--help") == 0) {
			*ret_code = stfs_print_command_help(command);
			return STFS_ARGS_ERROR;
		}
		if (strcmp(name, "-o OPTIONS") != 0)
			return row;
		code = parse_options(command, optarg, edits, options);
		if (code != STFS_EXIT_OK)
			break;
	}
	if (row == STFS_ARGS_END)
		return row;
	*ret_code = STFS_EXIT_USAGE;
	return STFS_ARGS_ERROR;
}

int stfs_source_next(struct stfs_args *args, struct stfs_model_options *options, int *ret_code)
{
	struct stfs_edit_options all = { .model = *options };
	int row = next_switch(args, false, &all, ret_code);

	*options = all.model;
	return row;
}

int stfs_edit_next(struct stfs_args *args, struct stfs_edit_options *options, int *ret_code)
{
	return next_switch(args, true, options, ret_code);
}

int stfs_source_open(const char *source, const struct stfs_model_options *options, struct stfs_model **ret_model)
{
	struct stfs_findings findings;
	int r;

	stfs_findings_init(&findings, stderr, MAX_VIOLATIONS, MAX_WARNINGS);
	r = stfs_model_open(source, options, &findings.report, ret_model);
	stfs_findings_finish(&findings);
	if (r < 0 && findings.report.violations == 0)
		return stfs_exit_with(stfs_exit_of_open(r), "%s: %s", stfs_quote(stfs_slice_of(source)).text,
				      strerror(-r));
	return stfs_exit_of_open(r);
}

int stfs_source_check(const struct stfs_model *model)
{
	for (uint32_t i = 0; i < model->n_files; i++) {
		struct stfs_diag diag = { 0 };

		if (stfs_snapshot_check(model->files[i], &diag, NULL) < 0)
			return stfs_exit_with(STFS_EXIT_SOURCE, "%s changed while it was read: %s",
					      stfs_snapshot_name(model->files[i]), diag.text);
	}
	return STFS_EXIT_OK;
}
