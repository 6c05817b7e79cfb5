/* SPDX-License-Identifier: Apache-2.0 */
#include "model_open.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "buf.h"
#include "io.h"
#include "open_regular.h"
#include "quote.h"
#include "shard_name.h"

/* Torch's distributed checkpoints say so in the metadata: each file then holds slices, not whole tensors. */
#define DCP_KEY "DCP_SHARDING_INFO"

void stfs_opening_fini(struct stfs_opening *opening)
{
	free(opening->index_file);
}

/* The path of a file of the model as shown in messages; owned by the caller, NULL without memory. */
static char *shown_path(const struct stfs_opening *opening, const char *name)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };
	const char *folder = opening->model->folder;

	if (!folder)
		return strdup(opening->model->name);
	if (stfs_append_printable(&buf, stfs_slice_of(folder)) < 0 ||
	    (*folder && !stfs_slice_ends(stfs_slice_of(folder), "/") && stfs_buf_append_char(&buf, '/') < 0) ||
	    stfs_append_printable(&buf, stfs_slice_of(name)) < 0)
		return NULL;
	return stfs_steal(buf.data);
}

/* A report that passes violations on as warnings: what is damaged is left out, not refused. */
static void emit_demoted(void *user, enum stfs_severity severity, const char *file, const char *sentence)
{
	struct stfs_report *outer = user;
	const char *saved = outer->file;

	outer->file = file;
	stfs_warn(outer, "%s%s", sentence, severity == STFS_VIOLATION ? "; the file is left out" : "");
	outer->file = saved;
}

static int read_index_text(int fd, uint64_t size, struct stfs_report *report, char **ret_text, size_t *ret_len)
{
	_cleanup_free_ char *text = NULL;
	int r;

	if (size > STFS_INDEX_MAX) {
		stfs_violation(report, "index too large: %" PRIu64 " bytes, the limit is %" PRIu64, size,
			       STFS_INDEX_MAX);
		return -EFBIG;
	}
	text = malloc((size_t)size + 1);
	if (!text)
		return -ENOMEM;
	r = stfs_pread_full(fd, text, (size_t)size, 0);
	if (r < 0) {
		stfs_violation(report, "cannot be read: %s", strerror(-r));
		return r;
	}
	text[size] = '\0';
	*ret_text = stfs_steal(text);
	*ret_len = (size_t)size;
	return 0;
}

static int open_index(struct stfs_opening *opening)
{
	const char *name = opening->model->index_name;
	_cleanup_free_ char *shown = shown_path(opening, name), *text = NULL;
	struct stfs_report *report = opening->report;
	_cleanup_close_ int fd = -1;
	size_t len = 0;
	struct stat st;
	int r;

	if (!shown)
		return -ENOMEM;
	report->file = shown;
	fd = r = stfs_open_regular(opening->model->dir_fd, name, report, &st);
	if (fd >= 0)
		r = read_index_text(fd, (uint64_t)st.st_size, report, &text, &len);
	if (r == 0)
		r = stfs_index_parse(text, len, report, &opening->model->index);
	if (r == 0)
		text = NULL; /* the index's from here */
	report->file = opening->model->name;
	return r;
}

/* Says that a shard is not there, and in which way. Returns true when that is the case. */
static bool is_missing(const struct stfs_opening *opening, const char *name, struct stfs_report *report)
{
	struct stat st;

	if (fstatat(opening->model->dir_fd, name, &st, 0) == 0 || errno != ENOENT)
		return false;
	if (fstatat(opening->model->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		stfs_violation(report, "shard is a link to a file that is not there (a pruned cache?)");
	else
		stfs_violation(report, "shard is missing (an incomplete download?)");
	return true;
}

/* Opens one file of the model. Returns 1 when it was opened, 0 when it was left out, or an error. */
static int open_file(struct stfs_opening *opening, const char *name, struct stfs_snapshot **ret)
{
	const struct stfs_model_options *options = opening->options;
	struct stfs_report demoted = { .emit = emit_demoted, .user = opening->report };
	/* Of one file nothing can be left out. */
	bool optional = options->partial && opening->is_set;
	struct stfs_report *report = optional ? &demoted : opening->report;
	_cleanup_free_ char *shown = shown_path(opening, name);
	int r;

	if (!shown)
		return -ENOMEM;
	report->file = shown;
	if (opening->is_set && is_missing(opening, name, report))
		r = -EBADMSG;
	else
		r = stfs_snapshot_open(opening->model->dir_fd, name, shown, options->lax ? STFS_LAX : 0, options->io,
				       report, ret);
	report->file = opening->model->name;
	if (r == 0)
		return 1;
	return optional && r != -ENOMEM ? 0 : r;
}

/* The names of the files to open, from the index or the location; sorted, so that shards come in their numbers' order. */
static int list_files(struct stfs_opening *opening, struct stfs_buf *names, uint32_t *ret_n)
{
	const struct stfs_index *index = opening->model->index;
	uint32_t n = index ? index->n_files : opening->location->n_files;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < n; i++) {
		struct stfs_slice name = index ? index->files[i] : stfs_slice_of(opening->location->files[i]);

		r = stfs_buf_append(names, name.p, name.len);
		if (r == 0)
			r = stfs_buf_append_char(names, '\0');
	}
	*ret_n = n;
	return r;
}

struct file_name {
	const char *name;
	uint32_t index_file;
};

static int compare_file_names(const void *a, const void *b)
{
	return stfs_shard_name_compare(((const struct file_name *)a)->name, ((const struct file_name *)b)->name);
}

/* Opens all files of `list`; those left out are not counted. The first error is returned after all have been tried. */
static int open_list(struct stfs_opening *opening, const struct file_name *list, uint32_t n)
{
	struct stfs_model *model = opening->model;
	int error = 0;

	for (uint32_t i = 0; i < n; i++) {
		char *copy = strdup(list[i].name);
		int r = copy ? open_file(opening, copy, &model->files[model->n_files]) : -ENOMEM;

		if (r > 0)
			model->file_names[model->n_files] = stfs_steal(copy);
		free(copy);
		if (r > 0)
			opening->index_file[model->n_files++] = opening->model->index ? list[i].index_file : UINT32_MAX;
		else if (r == 0)
			model->damaged = true;
		else if (error == 0)
			error = r;
	}
	if (error == 0 && model->n_files == 0) {
		stfs_violation(opening->report, "none of its %u files can be used", n);
		error = -EBADMSG;
	}
	return error;
}

/* True when the index names the weight file `other` of its folder. */
static bool is_named(const struct stfs_index *index, struct stfs_slice other)
{
	for (uint32_t i = 0; i < index->n_files; i++) {
		struct stfs_slice name = index->files[i];

		while (stfs_slice_starts(name, "./"))
			name = (struct stfs_slice){ name.p + 2, name.len - 2 };
		if (stfs_slice_equal(name, other))
			return true;
	}
	return false;
}

/*
 * Says which weight files of the index's stem it does not name: a second split, a stray single file. Another stem is
 * another model ("consolidated" beside "model" in Mistral's folders).
 */
static int warn_of_others(struct stfs_opening *opening)
{
	const struct stfs_location *location = opening->location;
	struct stfs_shard_name index_name = { 0 }, name;
	_cleanup_buf_ struct stfs_buf buf = { 0 };
	uint32_t left = 0;

	stfs_index_name_parse(stfs_slice_of(opening->model->index_name), &index_name);
	for (uint32_t i = 0; i < location->n_others; i++) {
		struct stfs_slice other = stfs_slice_of(location->others[i]);

		if (!stfs_shard_name_parse(other, &name) || !stfs_slice_equal(name.stem, index_name.stem) ||
		    is_named(opening->model->index, other))
			continue;
		if (left++ < 8 && stfs_buf_printf(&buf, "%s%s", left > 1 ? ", " : "", stfs_quote(other).text) < 0)
			return -ENOMEM;
	}
	if (left)
		stfs_warn(opening->report, "the index %s is taken, and %u files it does not name are left out: %s%s",
			  stfs_quote(stfs_slice_of(opening->model->index_name)).text, left, buf.data,
			  left > 8 ? " …" : "");
	return 0;
}

int stfs_opening_files(struct stfs_opening *opening)
{
	_cleanup_buf_ struct stfs_buf names = { 0 };
	_cleanup_free_ struct file_name *list = NULL;
	struct stfs_model *model = opening->model;
	const char *name;
	uint32_t n = 0;
	int r = opening->model->index_name ? open_index(opening) : 0;

	if (r == 0)
		r = list_files(opening, &names, &n);
	if (r == 0 && opening->model->index)
		r = warn_of_others(opening);
	if (r < 0)
		return r;
	list = calloc(n, sizeof(*list));
	model->files = calloc(n, sizeof(*model->files));
	model->file_names = calloc(n, sizeof(*model->file_names));
	opening->index_file = calloc(n, sizeof(*opening->index_file));
	if (!list || !model->files || !model->file_names || !opening->index_file)
		return -ENOMEM;
	name = names.data;
	for (uint32_t i = 0; i < n; i++, name += strlen(name) + 1)
		list[i] = (struct file_name){ name, i };
	qsort(list, n, sizeof(*list), compare_file_names);
	model->sharded = opening->model->index || n > 1;
	return open_list(opening, list, n);
}

/* A tensor met on the way through the files; its name comes first, for the table. */
struct seen {
	struct stfs_slice name;
	uint32_t file;
};

struct joining {
	struct stfs_opening *opening;
	struct seen *seen;
	struct stfs_table by_name;
	uint32_t *model_file; /* file of the index → file of the model, UINT32_MAX for one left out */
	uint64_t listed_bytes;
};

static void joining_fini(struct joining *joining)
{
	free(joining->seen);
	free(joining->model_file);
	stfs_table_fini(&joining->by_name);
}

static const char *file_name(const struct joining *joining, uint32_t file)
{
	return stfs_snapshot_name(joining->opening->model->files[file]);
}

/*
 * Judges a tensor against the index. Returns true when it is shown: the index takes it from this file, or no better copy is
 * known.
 */
static bool judge_listed(struct joining *joining, const struct stfs_tensor *tensor, uint32_t file)
{
	struct stfs_opening *opening = joining->opening;
	const struct stfs_index_entry *entry = stfs_index_find(opening->model->index, tensor->name);
	struct stfs_quoted name = stfs_quote(tensor->name);
	uint32_t other;

	if (!entry) {
		stfs_warn(opening->report, "tensor %s of %s is not listed by the index", name.text,
			  file_name(joining, file));
		return true;
	}
	if (entry->file == opening->index_file[file]) {
		joining->listed_bytes += tensor->end - tensor->begin;
		return true;
	}
	other = joining->model_file[entry->file];
	if (other != UINT32_MAX && stfs_header_find(stfs_snapshot_header(opening->model->files[other]), tensor->name)) {
		stfs_warn(opening->report, "tensor %s is in %s and in %s: the index takes the latter", name.text,
			  file_name(joining, file), file_name(joining, other));
		return false;
	}
	stfs_warn(opening->report, "tensor %s is in %s, the index says %s", name.text, file_name(joining, file),
		  stfs_quote(opening->model->index->files[entry->file]).text);
	return true;
}

/* Notes the name of the next entry. Returns 0, -ENOMEM, or -EEXIST after telling that an earlier file has it too. */
static int note_name(struct joining *joining, const struct stfs_tensor *tensor, uint32_t file)
{
	struct stfs_opening *opening = joining->opening;
	struct stfs_table_items items = { joining->seen, sizeof(*joining->seen) };
	uint32_t next = opening->model->n_entries, at;
	int r;

	/* In one file no name is there twice: its header was judged. */
	if (opening->model->n_files == 1)
		return 0;
	joining->seen[next] = (struct seen){ tensor->name, file };
	r = stfs_table_insert(&joining->by_name, items, next);
	if (r == -EEXIST) {
		at = stfs_table_find(&joining->by_name, items, tensor->name);
		stfs_report_add(opening->report, opening->model->index ? STFS_WARNING : STFS_VIOLATION,
				"tensor %s is in %s and in %s%s", stfs_quote(tensor->name).text,
				file_name(joining, joining->seen[at].file), file_name(joining, file),
				opening->model->index ? ": the first is shown" :
							": slices or copies are never merged, mount one file");
	}
	return r;
}

/* Enters a tensor as the model's, unless one of that name is there. */
static int add_entry(struct joining *joining, const struct stfs_tensor *tensor, uint32_t file, uint32_t row)
{
	struct stfs_model *model = joining->opening->model;
	int r;

	if (model->index && !judge_listed(joining, tensor, file))
		return 0;
	r = note_name(joining, tensor, file);
	if (r < 0)
		return r == -EEXIST ? 0 : r;
	model->entries[model->n_entries++] = (struct stfs_entry){ file, row };
	model->data_size += tensor->end - tensor->begin;
	return 0;
}

/* Says which tensors of the index no file has. */
static void check_index(struct joining *joining)
{
	struct stfs_opening *opening = joining->opening;
	const struct stfs_index *index = opening->model->index;

	for (uint32_t i = 0; i < index->n_entries; i++) {
		const struct stfs_index_entry *entry = &index->entries[i];
		uint32_t file = joining->model_file[entry->file];

		if (file == UINT32_MAX ||
		    stfs_header_find(stfs_snapshot_header(opening->model->files[file]), entry->tensor))
			continue;
		stfs_warn(opening->report, "the index lists tensor %s in %s, which has no such tensor",
			  stfs_quote(entry->tensor).text, file_name(joining, file));
	}
	if (index->has_total_size && !opening->model->damaged && index->total_size != (double)joining->listed_bytes)
		stfs_warn(opening->report, "the index says total_size %.0f, its tensors have %" PRIu64 " bytes",
			  index->total_size, joining->listed_bytes);
}

/* Without an index only whole tensors of one numbered set may be joined. */
static int check_guess(struct stfs_opening *opening)
{
	struct stfs_model *model = opening->model;

	for (uint32_t i = 0; i < model->n_files; i++) {
		const struct stfs_header *header = stfs_snapshot_header(model->files[i]);

		if (model->n_files > 1 && stfs_header_metadata(header, stfs_slice_of(DCP_KEY))) {
			stfs_violation(opening->report,
				       "%s holds slices of a distributed checkpoint (" DCP_KEY
				       "): they are never merged, mount one file",
				       stfs_snapshot_name(model->files[i]));
			return -EBADMSG;
		}
	}
	if (opening->location->unrelated) {
		stfs_violation(
			opening->report,
			"%u .safetensors files and no index that says which belong together: pick one with -o index=NAME "
			"(such as %s)",
			model->n_files, stfs_snapshot_name(model->files[0]));
		return -EBADMSG;
	}
	return 0;
}

static int prepare_joining(struct joining *joining)
{
	struct stfs_opening *opening = joining->opening;
	struct stfs_model *model = opening->model;
	uint32_t n_index_files = opening->model->index ? opening->model->index->n_files : 0;
	uint64_t n = 0;

	for (uint32_t i = 0; i < model->n_files; i++)
		n += stfs_snapshot_header(model->files[i])->n_tensors;
	if (n > STFS_MODEL_TENSORS_MAX) {
		stfs_violation(opening->report, "too many tensors: %" PRIu64 ", at most %u are read", n,
			       STFS_MODEL_TENSORS_MAX);
		return -EFBIG;
	}
	joining->seen = calloc(model->n_files == 1 ? 1 : n + 1, sizeof(*joining->seen));
	model->entries = calloc(n + 1, sizeof(*model->entries));
	joining->model_file = calloc(n_index_files + 1, sizeof(*joining->model_file));
	if (!joining->seen || !model->entries || !joining->model_file)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_index_files; i++)
		joining->model_file[i] = UINT32_MAX;
	for (uint32_t i = 0; opening->model->index && i < model->n_files; i++)
		joining->model_file[opening->index_file[i]] = i;
	return 0;
}

int stfs_opening_entries(struct stfs_opening *opening)
{
	_cleanup_(joining_fini) struct joining joining = { .opening = opening };
	struct stfs_model *model = opening->model;
	int r = prepare_joining(&joining);

	for (uint32_t i = 0; r == 0 && i < model->n_files; i++) {
		const struct stfs_header *header = stfs_snapshot_header(model->files[i]);

		for (uint32_t k = 0; r == 0 && k < header->n_tensors; k++)
			r = add_entry(&joining, &header->tensors[k], i, k);
	}
	if (r == 0 && opening->model->index)
		check_index(&joining);
	else if (r == 0)
		r = check_guess(opening);
	return r;
}
