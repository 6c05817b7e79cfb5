/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensor goes into which file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_private.h"
#include "shard_name.h"

/* Makes `n` files in the plan. */
static int make_files(struct stfs_planning *planning, uint32_t n)
{
	struct stfs_plan *plan = planning->plan;

	plan->files = calloc(n ? n : 1, sizeof(*plan->files));
	if (!plan->files)
		return -ENOMEM;
	plan->n_files = n;
	for (uint32_t i = 0; i < n; i++)
		plan->files[i].old_file = UINT32_MAX;
	return 0;
}

/* Distributes the tensors by `where`, a file for each, keeping their order. */
static int distribute(struct stfs_planning *planning, const uint32_t *where)
{
	struct stfs_plan *plan = planning->plan;

	for (uint32_t i = 0; i < planning->changes->n_tensors; i++)
		plan->files[where[i]].n_tensors++;
	for (uint32_t i = 0; i < plan->n_files; i++) {
		plan->files[i].tensors = calloc(plan->files[i].n_tensors + 1u, sizeof(uint32_t));
		if (!plan->files[i].tensors)
			return -ENOMEM;
		plan->files[i].n_tensors = 0;
	}
	for (uint32_t i = 0; i < planning->changes->n_tensors; i++) {
		struct stfs_plan_file *file = &plan->files[where[i]];

		file->tensors[file->n_tensors++] = i;
	}
	return 0;
}

/* Whether the metadata that a file has of its own is changed by what is staged. */
static bool metadata_changes(const struct stfs_planning *planning, uint32_t file)
{
	const struct stfs_changes *changes = planning->changes;
	const struct stfs_header *header = stfs_snapshot_header(planning->model->files[file]);

	for (uint32_t i = 0; i < changes->n_deleted_keys; i++) {
		if (stfs_header_metadata(header, planning->model->metadata[changes->deleted_keys[i]].key))
			return true;
	}
	for (uint32_t i = 0; i < changes->n_keys; i++) {
		const struct stfs_staged_key *key = &changes->keys[i];

		/* A changed key goes into every file that has it. */
		if (key->in_model && !stfs_slice_equal(key->value, key->before) &&
		    stfs_header_metadata(header, key->key))
			return true;
	}
	return planning->options->format_pt && !stfs_header_metadata(header, stfs_slice_of("format"));
}

/* Marks the files that differ from what they were. */
static void mark_changed(struct stfs_planning *planning)
{
	const struct stfs_changes *changes = planning->changes;
	const struct stfs_model *model = planning->model;
	struct stfs_plan *plan = planning->plan;

	for (uint32_t i = 0; i < plan->n_files; i++) {
		struct stfs_plan_file *file = &plan->files[i];

		file->changed = planning->options->all || planning->options->sort || file->old_file == UINT32_MAX ||
				metadata_changes(planning, file->old_file);
		for (uint32_t k = 0; k < file->n_tensors; k++) {
			const struct stfs_staged_tensor *tensor = &changes->tensors[file->tensors[k]];

			file->changed |= stfs_staged_tensor_changed(tensor);
			planning->index_changed |= tensor->entry == STFS_ENTRY_NONE || tensor->new_name ||
						   tensor->new_shape || tensor->new_dtype;
		}
	}
	for (uint32_t i = 0; i < changes->n_deleted; i++)
		plan->files[model->entries[changes->deleted[i]].file].changed = planning->index_changed = true;
}

/* A shard without tensors goes, where an index tells who belongs to the set; the last one stays. */
static int remove_empty(struct stfs_planning *planning)
{
	struct stfs_plan *plan = planning->plan;
	uint32_t kept = 0, left = plan->n_files;

	plan->removed = calloc(plan->n_files + 1u, sizeof(*plan->removed));
	if (!plan->removed)
		return -ENOMEM;
	for (uint32_t i = 0; i < plan->n_files; i++) {
		struct stfs_plan_file *file = &plan->files[i];

		if (planning->model->index && file->n_tensors == 0 && left > 1) {
			plan->removed[plan->n_removed++] = file->old_file;
			free(file->tensors);
			left--;
			continue;
		}
		plan->files[kept++] = *file;
	}
	plan->n_files = kept;
	return 0;
}

/* Finds the file of each tensor: where it was, a new one with the tensor of the nearest name, else in the last file. */
static int find_files(const struct stfs_planning *planning, uint32_t *where)
{
	_cleanup_(stfs_nearest_fini) struct stfs_nearest nearest = { 0 };
	const struct stfs_changes *changes = planning->changes;
	const struct stfs_model *model = planning->model;
	uint32_t i;

	for (i = 0; i < changes->n_tensors && changes->tensors[i].entry != STFS_ENTRY_NONE; i++)
		where[i] = model->entries[changes->tensors[i].entry].file;
	if (i == changes->n_tensors || model->n_files == 1)
		return 0;
	if (stfs_nearest_init(&nearest, changes) < 0)
		return -ENOMEM;
	for (; i < changes->n_tensors; i++) {
		uint32_t sibling = stfs_nearest_find(&nearest, changes->tensors[i].name);

		where[i] = sibling == UINT32_MAX ? model->n_files - 1 : where[sibling];
	}
	return 0;
}

/* Every tensor stays in its file. */
static int keep_files(struct stfs_planning *planning)
{
	const struct stfs_model *model = planning->model;
	struct stfs_plan *plan = planning->plan;
	_cleanup_free_ uint32_t *where = calloc(planning->changes->n_tensors + 1u, sizeof(*where));
	int r = where ? make_files(planning, model->n_files) : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < plan->n_files; i++) {
		plan->files[i].old_file = i;
		plan->files[i].name = stfs_slice_of(model->file_names[i]);
	}
	if (r == 0)
		r = find_files(planning, where);
	if (r == 0)
		r = distribute(planning, where);
	if (r < 0)
		return r;
	mark_changed(planning);
	r = remove_empty(planning);
	for (uint32_t i = 0; r == 0 && i < planning->changes->n_keys; i++)
		plan->files[0].changed |= stfs_plan_key_is_homeless(planning, &planning->changes->keys[i]);
	if (r == 0 && model->index && (planning->index_changed || planning->options->all))
		plan->index_name = stfs_slice_of(model->index_name);
	return r;
}

/* Gives every tensor of the open shard its number. */
static void close_shard(uint32_t *where, uint32_t n_tensors, uint32_t number)
{
	for (uint32_t i = 0; i < n_tensors; i++) {
		if (where[i] == UINT32_MAX)
			where[i] = number;
	}
}

/*
 * The Hub's rule: in the given order; a tensor over the limit is a shard of its own at once; one that does not fit any more
 * closes the open shard. Shards are numbered as they are closed. Returns how many there are, at least one.
 */
static uint32_t split(const struct stfs_planning *planning, uint32_t *where)
{
	uint64_t limit = planning->options->max_shard_size, filled = 0;
	uint32_t n_tensors = planning->changes->n_tensors, n = 0;
	bool open = false;

	for (uint32_t i = 0; i < n_tensors; i++) {
		uint64_t size = planning->changes->tensors[i].size;

		if (limit && size > limit) {
			where[i] = n++;
			continue;
		}
		if (limit && open && filled + size > limit) {
			close_shard(where, i, n++);
			filled = 0;
		}
		where[i] = UINT32_MAX;
		open = true;
		filled += size;
	}
	if (open || n == 0)
		close_shard(where, n_tensors, n++);
	return n;
}

/* The stem of the model's names: that of its index, or of its first file, or "model". */
static struct stfs_slice find_stem(const struct stfs_model *model)
{
	struct stfs_shard_name name = { 0 };

	if (model->index_name && stfs_index_name_parse(stfs_slice_of(model->index_name), &name))
		return name.stem;
	if (model->n_files && stfs_shard_name_parse(stfs_slice_of(model->file_names[0]), &name) && name.stem.len &&
	    !memchr(name.stem.p, '/', name.stem.len))
		return name.stem;
	return stfs_slice_of("model");
}

static int name_files(struct stfs_planning *planning)
{
	struct stfs_slice stem = find_stem(planning->model);
	struct stfs_plan *plan = planning->plan;
	_cleanup_buf_ struct stfs_buf name = { 0 };
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < plan->n_files; i++) {
		name.len = 0;
		r = stfs_buf_append(&name, stem.p, stem.len);
		if (r == 0 && plan->n_files > 1)
			r = stfs_buf_printf(&name, "-%05u-of-%05u", i + 1, plan->n_files);
		if (r == 0)
			r = stfs_buf_append_str(&name, ".safetensors");
		if (r == 0)
			r = stfs_arena_copy(&plan->strings, stfs_buf_slice(&name), &plan->files[i].name);
	}
	if (r < 0 || plan->n_files == 1)
		return r;
	name.len = 0;
	r = stfs_buf_append(&name, stem.p, stem.len);
	if (r == 0)
		r = stfs_buf_append_str(&name, ".safetensors.index.json");
	return r < 0 ? r : stfs_arena_copy(&plan->strings, stfs_buf_slice(&name), &plan->index_name);
}

/* All files anew, in the Hub's sizes and names. */
static int new_files(struct stfs_planning *planning)
{
	_cleanup_free_ uint32_t *where = calloc(planning->changes->n_tensors + 1u, sizeof(*where));
	int r = where ? make_files(planning, split(planning, where)) : -ENOMEM;

	if (r == 0)
		r = distribute(planning, where);
	if (r == 0)
		r = name_files(planning);
	for (uint32_t i = 0; r == 0 && i < planning->plan->n_files; i++)
		planning->plan->files[i].changed = true;
	return r;
}

int stfs_plan_assign(struct stfs_planning *planning)
{
	const struct stfs_plan_options *options = planning->options;
	int r;

	if (planning->model->n_files && !options->reshape)
		return keep_files(planning);
	r = new_files(planning);
	if (r == 0 && planning->plan->n_files == 1 && options->new_name)
		planning->plan->files[0].name = stfs_slice_of(options->new_name);
	return r;
}
