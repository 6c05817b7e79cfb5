/* SPDX-License-Identifier: Apache-2.0 */
#include "info_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "format_size.h"
#include "modules.h"
#include "term.h"

#define METADATA_LINES 8
#define MODULE_LINES_MIN 5
#define KEY_COLUMNS 24 /* for a metadata key */
#define BAR_COLUMNS 20

/* The screen being filled. */
struct screen {
	struct stfs_term term;
	const struct stfs_info *info;
	unsigned rows; /* used so far */
};

static void begin_section(struct screen *s, const char *title)
{
	printf("\n%s%s%s\n", s->term.colour ? "\033[1m" : "", title, s->term.colour ? "\033[0m" : "");
	s->rows += 2;
}

static void end_row(struct screen *s)
{
	putchar('\n');
	s->rows++;
}

/* A bar of `part` in `whole`, as long as `columns` when they are equal. */
static void print_bar(const struct screen *s, double share, unsigned columns)
{
	static const char *const eighths[] = { " ", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	unsigned filled = (unsigned)(share * columns * 8 + 0.5);

	fputs(s->term.colour ? "\033[36m" : "", stdout);
	for (unsigned i = 0; i < columns; i++, filled -= STFS_MIN(filled, 8u))
		if (s->term.utf8)
			fputs(filled >= 8 ? "█" : eighths[filled], stdout);
		else
			putchar(filled >= 4 ? '#' : ' ');
	fputs(s->term.colour ? "\033[0m" : "", stdout);
}

/* The end of a row: how much of the model it is. Bars are for terminals. */
static void print_share(struct screen *s, uint64_t bytes, unsigned bar_columns)
{
	uint64_t whole = s->info->model->data_size;
	double share = whole ? (double)bytes / (double)whole : 0;

	fputs("  ", stdout);
	if (s->term.tty && bar_columns > 0) {
		print_bar(s, share, bar_columns);
		putchar(' ');
	}
	printf("%5.1f%%", 100 * share);
	end_row(s);
}

/* Prints foreign text, escaped, cut and padded to `columns`. */
static int print_cut(const struct screen *s, struct stfs_slice text, size_t columns, bool pad)
{
	_cleanup_buf_ struct stfs_buf shown = { 0 };
	int r = stfs_term_append_cut(&s->term, &shown, text, columns);

	if (r < 0)
		return r;
	if (shown.len > 0)
		fwrite(shown.data, 1, shown.len, stdout);
	for (size_t w = stfs_term_width(stfs_buf_slice(&shown)); pad && w < columns; w++)
		putchar(' ');
	return 0;
}

static void print_head(struct screen *s)
{
	const struct stfs_info *info = s->info;
	const struct stfs_model *model = info->model;

	printf("%s%s%s: ", s->term.colour ? "\033[1m" : "", model->name, s->term.colour ? "\033[0m" : "");
	if (model->sharded)
		printf("%" PRIu32 " shard%s", model->n_files, model->n_files == 1 ? "" : "s");
	else
		fputs("one file", stdout);
	fputs(model->damaged ? ", damaged: parts are left out\n" : "\n", stdout);
	printf("  size        %s (%" PRIu64 " bytes)\n", stfs_format_size(info->file_bytes).text, info->file_bytes);
	printf("  tensors     %" PRIu32 "\n", model->n_entries);
	printf("  parameters  %s", stfs_format_count(info->elements).text);
	if (info->elements >= 1000)
		printf(" (%" PRIu64 ")", info->elements);
	s->rows += 3;
	end_row(s);
}

static void print_dtypes(struct screen *s)
{
	unsigned bar = s->term.columns >= 80 ? BAR_COLUMNS : 0;

	begin_section(s, "dtypes");
	/* Wide ones first, as writers put them. */
	for (int i = STFS_DTYPE_COUNT - 1; i >= 0; i--) {
		const struct stfs_info_dtype *dtype = &s->info->dtypes[i];

		if (dtype->tensors == 0)
			continue;
		printf("  %-11s %7" PRIu64 " tensor%s %9s", stfs_dtype_info((enum stfs_dtype)i)->name, dtype->tensors,
		       dtype->tensors == 1 ? " " : "s", stfs_format_size(dtype->bytes).text);
		print_share(s, dtype->bytes, bar);
	}
}

static int print_metadata(struct screen *s)
{
	const struct stfs_model *model = s->info->model;
	uint32_t n = STFS_MIN(model->n_metadata, (uint32_t)METADATA_LINES);

	begin_section(s, "metadata");
	for (uint32_t i = 0; i < n; i++) {
		int r;

		fputs("  ", stdout);
		r = print_cut(s, model->metadata[i].key, KEY_COLUMNS, true);
		fputs("  ", stdout);
		if (r >= 0)
			r = print_cut(s, model->metadata[i].value, s->term.columns - KEY_COLUMNS - 5, false);
		if (r < 0)
			return r;
		end_row(s);
	}
	if (n < model->n_metadata) {
		printf("  and %" PRIu32 " more", model->n_metadata - n);
		end_row(s);
	}
	return 0;
}

struct times {
	char text[64];
};

/* "32 × 12.3 MB" */
static struct times format_times(const struct screen *s, const struct stfs_module *module)
{
	struct times f = { 0 };

	if (module->count > 1)
		snprintf(f.text, sizeof(f.text), "%" PRIu64 " %s %s", module->count, s->term.utf8 ? "×" : "x",
			 stfs_format_size(module->bytes).text);
	return f;
}

/* Columns that the widest name and the widest count take. */
static int measure_modules(const struct screen *s, const struct stfs_modules *modules, size_t *ret_name,
			   size_t *ret_times)
{
	size_t name = 0, times = 0;

	for (size_t i = 0; i < modules->n; i++) {
		const struct stfs_module *m = &modules->lines[i];
		struct times f = format_times(s, m);
		_cleanup_buf_ struct stfs_buf shown = { 0 };
		int r = stfs_term_append_cut(&s->term, &shown, stfs_buf_slice(&m->name), s->term.columns);

		if (r < 0)
			return r;
		name = STFS_MAX(name, (size_t)2 * m->depth + stfs_term_width(stfs_buf_slice(&shown)));
		times = STFS_MAX(times, stfs_term_width(stfs_slice_of(f.text)));
	}
	*ret_name = STFS_MIN(name, (size_t)s->term.columns / 2);
	*ret_times = times;
	return 0;
}

static int print_module(struct screen *s, const struct stfs_module *module, size_t name_columns, size_t times_columns)
{
	struct times times = format_times(s, module);
	size_t indent = STFS_MIN(2 * (size_t)module->depth, name_columns / 2);
	size_t used = name_columns + times_columns + 22; /* with blanks, total and per cent */
	size_t rest = s->term.columns > used ? s->term.columns - used : 0;
	int r;

	printf("  %*s", (int)indent, "");
	r = print_cut(s, module->name.len ? stfs_buf_slice(&module->name) : stfs_slice_of("\"\""),
		      name_columns - indent, true);
	if (r < 0)
		return r;
	printf("  %s%*s %9s", times.text, (int)(times_columns - stfs_term_width(stfs_slice_of(times.text))), "",
	       stfs_format_size(module->count * module->bytes).text);
	print_share(s, module->count * module->bytes, (unsigned)STFS_MIN(rest, (size_t)BAR_COLUMNS));
	return 0;
}

static int print_modules(struct screen *s)
{
	_cleanup_(stfs_modules_fini) struct stfs_modules modules = { 0 };
	unsigned room = MODULE_LINES_MIN, title_and_prompt = 4;
	size_t name_columns, times_columns;
	int r;

	if (s->term.rows > s->rows + title_and_prompt + room)
		room = s->term.rows - s->rows - title_and_prompt;
	r = stfs_modules_init(s->info->model, room, &modules);
	if (r >= 0)
		r = measure_modules(s, &modules, &name_columns, &times_columns);
	if (r < 0)
		return r;
	begin_section(s, "modules");
	for (size_t i = 0; i < modules.n && r >= 0; i++)
		r = print_module(s, &modules.lines[i], name_columns, times_columns);
	if (r >= 0 && modules.more > 0) {
		printf("  and %" PRIu64 " more, %s", modules.more, stfs_format_size(modules.more_bytes).text);
		end_row(s);
	}
	return r;
}

int stfs_info_print_text(const struct stfs_info *info)
{
	struct screen s = { .info = info };
	int r = 0;

	stfs_term_init(&s.term);
	print_head(&s);
	if (info->model->n_entries > 0)
		print_dtypes(&s);
	if (info->model->n_metadata > 0)
		r = print_metadata(&s);
	if (r >= 0 && info->model->n_entries > 0)
		r = print_modules(&s);
	return r;
}
