/* SPDX-License-Identifier: Apache-2.0 */
/* Header and copies of one file. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "header_write.h"
#include "plan_private.h"
#include "quote.h"

#define CLONE_BLOCK 4096

static int compare_by_type(const void *a, const void *b, void *changes)
{
	const struct stfs_staged_tensor *tensors = ((const struct stfs_changes *)changes)->tensors;
	const struct stfs_staged_tensor *x = &tensors[*(const uint32_t *)a], *y = &tensors[*(const uint32_t *)b];

	/* Descending in the table of dtypes, then by bytes of the name: the reference writer's order. */
	if (x->dtype != y->dtype)
		return x->dtype > y->dtype ? -1 : 1;
	return stfs_slice_compare(x->name, y->name);
}

/* The header a file had, or NULL for a new one. */
static const struct stfs_header *old_header(const struct stfs_planning *planning, const struct stfs_plan_file *file)
{
	return file->old_file == UINT32_MAX ? NULL : stfs_snapshot_header(planning->model->files[file->old_file]);
}

/* What a key was in this file; NULL when it had none. */
static const struct stfs_metadata_entry *old_entry(const struct stfs_planning *planning,
						   const struct stfs_plan_file *file, const struct stfs_staged_key *key)
{
	const struct stfs_header *old = old_header(planning, file);

	return old && key->in_model ? stfs_header_metadata(old, key->key) : NULL;
}

bool stfs_plan_key_is_homeless(const struct stfs_planning *planning, const struct stfs_staged_key *key)
{
	for (uint32_t i = 0; i < planning->plan->n_files; i++) {
		if (old_entry(planning, &planning->plan->files[i], key))
			return false;
	}
	return true;
}

/* Whether a key is written into this file: new files get all, others keep those they had, the first gets those nobody has. */
static bool has_key(const struct stfs_planning *planning, const struct stfs_plan_file *file,
		    const struct stfs_staged_key *key)
{
	return !old_header(planning, file) || old_entry(planning, file, key) ||
	       (file == planning->plan->files && stfs_plan_key_is_homeless(planning, key));
}

/* The value of a key in this file: shards may differ in one that nobody touched. */
static struct stfs_slice value_of(const struct stfs_planning *planning, const struct stfs_plan_file *file,
				  const struct stfs_staged_key *key)
{
	const struct stfs_metadata_entry *old = old_entry(planning, file, key);

	return old && stfs_slice_equal(key->value, key->before) ? old->value : key->value;
}

static int write_metadata(struct stfs_planning *planning, struct stfs_plan_file *file, bool *ret_written)
{
	const struct stfs_changes *changes = planning->changes;
	const struct stfs_header *old = old_header(planning, file);
	_cleanup_free_ struct stfs_metadata_entry *entries = calloc(changes->n_keys + 1u, sizeof(*entries));
	bool has_format = false;
	uint32_t n = 0;

	if (!entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < changes->n_keys; i++) {
		if (!has_key(planning, file, &changes->keys[i]))
			continue;
		entries[n++] = (struct stfs_metadata_entry){ changes->keys[i].key,
							     value_of(planning, file, &changes->keys[i]) };
		has_format |= stfs_slice_is(changes->keys[i].key, "format");
	}
	if (planning->options->format_pt && !has_format)
		entries[n++] = (struct stfs_metadata_entry){ stfs_slice_of("format"), stfs_slice_of("pt") };
	/* An empty object that was there stays, as long as nobody emptied it. */
	*ret_written = n > 0 || (old && old->has_metadata && old->n_metadata == 0);
	return *ret_written ? stfs_header_write_metadata(&file->header, entries, n) : 0;
}

static int write_tensors(struct stfs_planning *planning, struct stfs_plan_file *file, bool first)
{
	const struct stfs_changes *changes = planning->changes;
	uint64_t offset = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < file->n_tensors; i++) {
		const struct stfs_staged_tensor *staged = &changes->tensors[file->tensors[i]];
		struct stfs_tensor tensor = {
			.name = staged->name,
			.begin = offset,
			.end = offset + staged->size,
			.dims = staged->dims.p,
			.rank = staged->dims.left,
			.dtype = (uint8_t)staged->dtype,
		};

		if (__builtin_add_overflow(offset, staged->size, &offset))
			return -EFBIG;
		r = first ? 0 : stfs_buf_append_char(&file->header, ',');
		if (r == 0)
			r = stfs_header_write_tensor(&file->header, &tensor);
		first = false;
	}
	return r;
}

/* Where data starts modulo a block in the old file, when the new one can have it there too. */
static bool wanted_offset(const struct stfs_planning *planning, const struct stfs_plan_file *file, uint64_t *ret)
{
	const struct stfs_header *old = old_header(planning, file);

	if (!planning->options->keep_offset || !old || stfs_header_data_start(old) % 8 != 0)
		return false;
	*ret = stfs_header_data_start(old) % CLONE_BLOCK;
	return true;
}

/* Pads with spaces so that data starts 8-aligned, or where clones want it. */
static int pad_header(struct stfs_planning *planning, struct stfs_plan_file *file)
{
	uint64_t wanted = 0;
	bool exact = wanted_offset(planning, file, &wanted);
	int r = 0;

	while (r == 0 && (exact ? file->header.len % CLONE_BLOCK != wanted : file->header.len % 8 != 0))
		r = stfs_buf_append_char(&file->header, ' ');
	return r;
}

static int write_header(struct stfs_planning *planning, struct stfs_plan_file *file)
{
	static const char length_word[8];
	bool metadata = false;
	uint64_t len;
	int r = stfs_buf_append(&file->header, length_word, sizeof(length_word));

	if (r == 0)
		r = stfs_buf_append_char(&file->header, '{');
	if (r == 0)
		r = write_metadata(planning, file, &metadata);
	if (r == 0)
		r = write_tensors(planning, file, !metadata);
	if (r == 0)
		r = stfs_buf_append_char(&file->header, '}');
	if (r == 0)
		r = pad_header(planning, file);
	if (r < 0)
		return r;
	len = file->header.len - sizeof(length_word);
	if (len > STFS_HEADER_MAX) {
		stfs_violation(planning->report, "the header of %s would have %" PRIu64 " bytes, the limit is %" PRIu64,
			       stfs_quote(file->name).text, len, STFS_HEADER_MAX);
		return -EINVAL;
	}
	for (unsigned i = 0; i < 8; i++)
		file->header.data[i] = (char)(len >> (8 * i));
	return 0;
}

static int list_copies(struct stfs_planning *planning, struct stfs_plan_file *file)
{
	uint64_t offset = file->header.len;

	file->copies = calloc(file->n_tensors + 1u, sizeof(*file->copies));
	if (!file->copies)
		return -ENOMEM;
	for (uint32_t i = 0; i < file->n_tensors; i++) {
		const struct stfs_staged_tensor *tensor = &planning->changes->tensors[file->tensors[i]];

		if (tensor->size)
			file->copies[file->n_copies++] = (struct stfs_plan_copy){
				.offset = offset,
				.size = tensor->size,
				.entry = tensor->data ? STFS_ENTRY_NONE : tensor->entry,
				.data = tensor->data,
			};
		if (__builtin_add_overflow(offset, tensor->size, &offset) || offset > INT64_MAX) {
			stfs_violation(planning->report, "%s would be larger than a file can be",
				       stfs_quote(file->name).text);
			return -EINVAL;
		}
	}
	file->size = offset;
	return 0;
}

int stfs_plan_fill_file(struct stfs_planning *planning, struct stfs_plan_file *file)
{
	void *changes = (void *)(uintptr_t)planning->changes;
	int r;

	if (file->n_tensors > STFS_TENSORS_MAX) {
		stfs_violation(planning->report, "%s would hold %u tensors: at most %u are read back",
			       stfs_quote(file->name).text, file->n_tensors, STFS_TENSORS_MAX);
		return -EINVAL;
	}
	if (planning->options->sort && file->n_tensors)
		qsort_r(file->tensors, file->n_tensors, sizeof(*file->tensors), compare_by_type, changes);
	r = write_header(planning, file);
	return r < 0 ? r : list_copies(planning, file);
}
