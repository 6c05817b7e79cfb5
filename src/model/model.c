/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "array.h"
#include "buf.h"
#include "locate.h"
#include "model_open.h"
#include "quote.h"

void stfs_model_free(struct stfs_model *model)
{
	if (!model)
		return;
	for (uint32_t i = 0; i < model->n_files; i++) {
		stfs_snapshot_unref(model->files[i]);
		free(model->file_names[i]);
	}
	free(model->files);
	free(model->file_names);
	free(model->new_name);
	stfs_index_free(model->index);
	free(model->index_name);
	stfs_closep(&model->dir_fd);
	free(model->entries);
	free(model->metadata);
	free(model->source);
	free(model->name);
	free(model->label);
	free(model->folder);
	free(model);
}

const struct stfs_tensor *stfs_model_tensor(const struct stfs_model *model, uint32_t entry)
{
	const struct stfs_entry *e = &model->entries[entry];

	return &stfs_snapshot_header(model->files[e->file])->tensors[e->tensor];
}

struct stfs_snapshot *stfs_model_file(const struct stfs_model *model, uint32_t entry)
{
	return model->files[model->entries[entry].file];
}

uint64_t stfs_model_offset(const struct stfs_model *model, uint32_t entry)
{
	return stfs_header_data_start(stfs_snapshot_header(stfs_model_file(model, entry))) +
	       stfs_model_tensor(model, entry)->begin;
}

/* Where an entry of that file and tensor is; entries are sorted by both. */
static uint32_t find_entry(const struct stfs_model *model, uint32_t file, uint32_t tensor)
{
	uint32_t low = 0, high = model->n_entries;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		const struct stfs_entry *e = &model->entries[mid];

		if (e->file < file || (e->file == file && e->tensor < tensor))
			low = mid + 1;
		else
			high = mid;
	}
	if (low < model->n_entries && model->entries[low].file == file && model->entries[low].tensor == tensor)
		return low;
	return STFS_ENTRY_NONE;
}

uint32_t stfs_model_find_near(const struct stfs_model *model, struct stfs_slice name, uint32_t near)
{
	uint32_t file = near < model->n_entries ? model->entries[near].file : 0;

	for (uint32_t i = 0; i < model->n_files; i++, file = file + 1 < model->n_files ? file + 1 : 0) {
		const struct stfs_header *header = stfs_snapshot_header(model->files[file]);
		const struct stfs_tensor *tensor = stfs_header_find(header, name);
		uint32_t entry;

		if (!tensor)
			continue;
		entry = find_entry(model, file, (uint32_t)(tensor - header->tensors));
		if (entry != STFS_ENTRY_NONE)
			return entry;
	}
	return STFS_ENTRY_NONE;
}

uint32_t stfs_model_find(const struct stfs_model *model, struct stfs_slice name)
{
	return stfs_model_find_near(model, name, STFS_ENTRY_NONE);
}

/* Adds one file's metadata; a key that is there already keeps its value. */
static int add_metadata(struct stfs_model *model, struct stfs_snapshot *file, struct stfs_table *keys, uint32_t *cap,
			struct stfs_report *report)
{
	const struct stfs_header *header = stfs_snapshot_header(file);

	for (uint32_t i = 0; i < header->n_metadata; i++) {
		const struct stfs_metadata_entry *entry = &header->metadata[i];
		struct stfs_table_items items = { model->metadata, sizeof(*model->metadata) };
		uint32_t at = stfs_table_find(keys, items, entry->key);
		int r;

		if (at != STFS_TABLE_NONE) {
			if (!stfs_slice_equal(model->metadata[at].value, entry->value))
				stfs_warn(report, "metadata %s has another value in %s: the first file's is shown",
					  stfs_quote(entry->key).text, stfs_snapshot_name(file));
			continue;
		}
		r = stfs_array_grow((void **)&model->metadata, model->n_metadata, cap, STFS_TENSORS_MAX,
				    sizeof(*model->metadata));
		if (r < 0)
			return r;
		items.base = model->metadata;
		model->metadata[model->n_metadata] = *entry;
		r = stfs_table_insert(keys, items, model->n_metadata);
		if (r < 0)
			return r;
		model->n_metadata++;
	}
	return 0;
}

static int merge_metadata(struct stfs_model *model, struct stfs_report *report)
{
	_cleanup_(stfs_table_fini) struct stfs_table keys = { 0 };
	uint32_t cap = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < model->n_files; i++)
		r = add_metadata(model, model->files[i], &keys, &cap, report);
	return r;
}

static int name_model(struct stfs_model *model, const char *source, const struct stfs_model_options *options)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };
	int r = stfs_append_printable(&buf, stfs_slice_of(source));

	if (r < 0)
		return r;
	model->name = stfs_steal(buf.data);
	model->source = strdup(source);
	model->options = *options;
	model->options.index = NULL;
	return model->name && model->source ? 0 : -ENOMEM;
}

static int open_located(struct stfs_model *model, const struct stfs_model_options *options,
			struct stfs_location *location, struct stfs_report *report)
{
	struct stfs_opening opening = {
		.model = model,
		.location = location,
		.options = options,
		.report = report,
		.is_set = model->index_name || location->n_files > 1,
	};
	int r = stfs_opening_files(&opening);

	if (r == 0)
		r = stfs_opening_entries(&opening);
	stfs_opening_fini(&opening);
	return r < 0 ? r : merge_metadata(model, report);
}

/* One with a name, and no files yet. */
static int new_model(const char *source, const struct stfs_model_options *options, struct stfs_model **ret)
{
	_cleanup_(stfs_model_freep) struct stfs_model *model = calloc(1, sizeof(*model));
	int r;

	if (!model)
		return -ENOMEM;
	model->dir_fd = -1;
	r = name_model(model, source, options);
	if (r < 0)
		return r;
	*ret = stfs_steal(model);
	return 0;
}

int stfs_model_open(const char *source, const struct stfs_model_options *options, struct stfs_report *report,
		    struct stfs_model **ret_model)
{
	_cleanup_(stfs_location_fini) struct stfs_location location = { .dir_fd = -1 };
	_cleanup_(stfs_model_freep) struct stfs_model *model = NULL;
	const char *caller_file = report->file;
	uint64_t before = report->violations;
	int r;

	r = new_model(source, options, &model);
	if (r < 0)
		return r;
	report->file = model->name;
	r = stfs_locate(source, options->index, options->partial, report, &location);
	if (r == 0) {
		model->label = stfs_steal(location.label);
		model->folder = stfs_steal(location.folder);
		model->dir_fd = stfs_steal_fd(&location.dir_fd);
		model->index_name = stfs_steal(location.index);
		model->damaged = location.incomplete;
		r = open_located(model, options, &location, report);
	}
	if (r == 0 && report->violations > before)
		r = -EBADMSG;
	report->file = caller_file;
	if (r < 0)
		return r;
	*ret_model = stfs_steal(model);
	return 0;
}

int stfs_model_new_empty(const char *source, const struct stfs_model_options *options,
			 const struct stfs_location *location, struct stfs_model **ret_model)
{
	_cleanup_(stfs_model_freep) struct stfs_model *model = NULL;
	int r;

	r = new_model(source, options, &model);
	if (r < 0)
		return r;
	model->label = strdup(location->label);
	model->folder = location->folder ? strdup(location->folder) : NULL;
	model->new_name = location->n_files ? strdup(location->files[0]) : NULL;
	if (!model->label || (location->folder && !model->folder) || (location->n_files && !model->new_name))
		return -ENOMEM;
	model->dir_fd = fcntl(location->dir_fd, F_DUPFD_CLOEXEC, 3);
	if (model->dir_fd < 0)
		return -errno;
	*ret_model = stfs_steal(model);
	return 0;
}

/* What stfs_locate would find, without looking: folder, label and index are the model's. */
static int take_place(struct stfs_model *model, const struct stfs_model *old, const char *index)
{
	model->label = strdup(old->label);
	model->folder = old->folder ? strdup(old->folder) : NULL;
	model->index_name = index ? strdup(index) : NULL;
	if (!model->label || (old->folder && !model->folder) || (index && !model->index_name))
		return -ENOMEM;
	model->dir_fd = fcntl(old->dir_fd, F_DUPFD_CLOEXEC, 3);
	return model->dir_fd < 0 ? -errno : 0;
}

int stfs_model_reopen(const struct stfs_model *old, const char *index, char *const *names, uint32_t n_names,
		      struct stfs_report *report, struct stfs_model **ret_model)
{
	struct stfs_location location = { .dir_fd = -1, .files = (char **)(uintptr_t)names, .n_files = n_names };
	_cleanup_(stfs_model_freep) struct stfs_model *model = NULL;
	const char *caller_file = report->file;
	uint64_t before = report->violations;
	int r;

	r = new_model(old->source, &old->options, &model);
	if (r == 0)
		r = take_place(model, old, index);
	if (r < 0)
		return r;
	report->file = model->name;
	r = open_located(model, &model->options, &location, report);
	if (r == 0 && report->violations > before)
		r = -EBADMSG;
	report->file = caller_file;
	if (r < 0)
		return r;
	*ret_model = stfs_steal(model);
	return 0;
}
