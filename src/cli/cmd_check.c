/* SPDX-License-Identifier: Apache-2.0 */
/* check: judges models by the format's rules and prints everything there is to say about them. */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "format_size.h"
#include "json_out.h"
#include "quote.h"
#include "source.h"

enum { OPT_JSON, OPT_QUIET };

static const struct stfs_option_help check_options[] = {
	[OPT_JSON] = { "--json", "one array with an object for each PATH, for programs" },
	[OPT_QUIET] = { "-q, --quiet", "no line for a PATH that is sound" },
	STFS_SOURCE_ROWS,
};

struct check {
	struct stfs_model_options model_options;
	bool json, quiet;
	struct stfs_json_out out;
};

/* The findings about one path. */
struct verdict {
	struct stfs_report report;
	struct check *check;
	const char *path;      /* as typed */
	struct stfs_buf shown; /* escaped */
	uint64_t printed[2];   /* by severity */
};

static const char *severity_word(enum stfs_severity severity)
{
	return severity == STFS_WARNING ? "warning" : "error";
}

static void print_finding(void *user, enum stfs_severity severity, const char *file, const char *sentence)
{
	struct verdict *v = user;
	struct stfs_json_out *out = &v->check->out;
	const char *where = file ? file : v->shown.data;

	v->printed[severity]++;
	if (!v->check->json) {
		printf("%s: %s: %s\n", where, severity_word(severity), sentence);
		return;
	}
	stfs_json_out_newline(out);
	stfs_json_out_open(out, '{');
	stfs_json_out_text_member(out, "severity", stfs_slice_of(severity_word(severity)));
	stfs_json_out_text_member(out, "file", stfs_slice_of(where));
	stfs_json_out_text_member(out, "message", stfs_slice_of(sentence));
	stfs_json_out_close(out, '}');
}

static void print_rest(const struct verdict *v, enum stfs_severity severity, uint64_t count)
{
	uint64_t rest = count - v->printed[severity];

	if (rest > 0)
		printf("%s: %s: and %" PRIu64 " more of this kind\n", v->shown.data, severity_word(severity), rest);
}

static void print_sound(const struct verdict *v, const struct stfs_model *model)
{
	uint64_t warnings = v->report.warnings;

	printf("%s: ok, %" PRIu32 " tensor%s, %s", v->shown.data, model->n_entries, model->n_entries == 1 ? "" : "s",
	       stfs_format_size(model->data_size).text);
	if (warnings > 0)
		printf(", %" PRIu64 " warning%s", warnings, warnings == 1 ? "" : "s");
	putchar('\n');
}

static void finish_text(const struct verdict *v, const struct stfs_model *model)
{
	print_rest(v, STFS_VIOLATION, v->report.violations);
	print_rest(v, STFS_WARNING, v->report.warnings);
	if (model && !v->check->quiet)
		print_sound(v, model);
}

static void begin_json(struct verdict *v)
{
	struct stfs_json_out *out = &v->check->out;

	stfs_json_out_newline(out);
	stfs_json_out_open(out, '{');
	stfs_json_out_text_member(out, "path", stfs_slice_of(v->path));
	stfs_json_out_key(out, stfs_slice_of("findings"));
	stfs_json_out_open(out, '[');
}

static void finish_json(struct verdict *v, int code, const struct stfs_model *model)
{
	struct stfs_json_out *out = &v->check->out;

	stfs_json_out_close(out, ']');
	stfs_json_out_number_member(out, "errors", v->report.violations);
	stfs_json_out_number_member(out, "warnings", v->report.warnings);
	stfs_json_out_bool_member(out, "ok", code == STFS_EXIT_OK);
	stfs_json_out_bool_member(out, "readable", code != STFS_EXIT_SOURCE && code != STFS_EXIT_OTHER);
	if (model) {
		stfs_json_out_number_member(out, "tensors", model->n_entries);
		stfs_json_out_number_member(out, "bytes", model->data_size);
	}
	stfs_json_out_close(out, '}');
}

/* Judges one path; returns the exit code it alone would give. */
static int check_path(struct check *check, const char *path)
{
	_cleanup_(stfs_model_freep) struct stfs_model *model = NULL;
	struct verdict v = { .report = { .emit = print_finding, .user = &v }, .check = check, .path = path };
	int r, code;

	r = stfs_buf_append_str(&v.shown, ""); /* so that an empty path has a text too */
	if (r >= 0)
		r = stfs_append_printable(&v.shown, stfs_slice_of(path));
	if (r < 0)
		return stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(-r));
	if (check->json)
		begin_json(&v);
	r = stfs_model_open(path, &check->model_options, &v.report, &model);
	if (r < 0 && v.report.violations == 0)
		stfs_violation(&v.report, "%s", strerror(-r));
	code = stfs_exit_of_open(r);
	if (check->json)
		finish_json(&v, code, model);
	else
		finish_text(&v, model);
	stfs_buf_fini(&v.shown);
	return code;
}

/* All paths are judged, whatever the first of them gave. */
static int check_paths(struct check *check, int n, char **paths)
{
	int worst = STFS_EXIT_OK, code;

	if (check->json)
		stfs_json_out_open(&check->out, '[');
	for (int i = 0; i < n && !ferror(stdout); i++) {
		code = check_path(check, paths[i]);
		worst = STFS_MAX(worst, code);
	}
	if (check->json) {
		stfs_json_out_close(&check->out, ']');
		if (stfs_json_out_print_line(&check->out) < 0)
			return stfs_exit_with(STFS_EXIT_OTHER, "out of memory");
	}
	code = (int)stfs_finish_stdout();
	return STFS_MAX(worst, code);
}

static int run_check(int argc, char **argv)
{
	struct check check = { .model_options.io = STFS_IO_PREAD };
	struct stfs_args args;
	int option, code;

	stfs_args_init(&args, &stfs_cmd_check, argc, argv);
	while ((option = stfs_source_next(&args, &check.model_options, &code)) >= 0) {
		check.json |= option == OPT_JSON;
		check.quiet |= option == OPT_QUIET;
	}
	if (option == STFS_ARGS_ERROR)
		return code;
	if (optind == argc)
		return stfs_usage_error(&stfs_cmd_check, "check needs at least one model");
	code = check_paths(&check, argc - optind, argv + optind);
	stfs_json_out_fini(&check.out);
	return code;
}

const struct stfs_command stfs_cmd_check = {
	.name = "check",
	.usage = "check [-q] [--json] [-o OPTIONS] PATH...",
	.summary = "Judges models by the rules of the format and prints everything it finds",
	.options = check_options,
	.notes =
		"PATH is a file, or the directory of a sharded model. Only headers and indexes are read. The exit status is\n"
		"the worst of all paths; warnings alone do not make it fail.\n",
	.print_more = stfs_source_print_help,
	.run = run_check,
};
