/* SPDX-License-Identifier: Apache-2.0 */
/* What is staged, as it was and as it will be. */
#include <errno.h>
#include <inttypes.h>

#include "changes.h"
#include "header_write.h"
#include "json_write.h"
#include "quote.h"

/* "[11008, 4096]" */
static int append_dims(struct stfs_buf *buf, struct stfs_dims dims)
{
	int r = stfs_buf_append_char(buf, '[');

	if (r == 0)
		r = stfs_dims_write(buf, dims, ", ");
	return r < 0 ? r : stfs_buf_append_char(buf, ']');
}

/* Bytes of a tensor that differ from the model's, its whole size when they came anew. */
static uint64_t changed_bytes(const struct stfs_staged_tensor *tensor)
{
	uint64_t changed = stfs_content_changed_bytes(tensor->data);

	/* A run of another place in the model has no byte of its own, and all of them are others. */
	return changed == 0 || changed > tensor->size ? tensor->size : changed;
}

static int append_start(struct stfs_buf *buf, const char *start, struct stfs_slice name)
{
	int r = stfs_buf_append_str(buf, start);

	return r < 0 ? r : stfs_append_printable(buf, name);
}

static int append_data(struct stfs_buf *buf, const struct stfs_staged_tensor *tensor, const struct stfs_tensor *old)
{
	uint64_t changed = changed_bytes(tensor), before = old->end - old->begin;

	if (changed < tensor->size)
		return stfs_buf_printf(buf, "    data   %" PRIu64 " of %" PRIu64 " bytes changed\n", changed,
				       tensor->size);
	if (before != tensor->size)
		return stfs_buf_printf(buf, "    data   %" PRIu64 " bytes -> %" PRIu64 " bytes\n", before,
				       tensor->size);
	return stfs_buf_printf(buf, "    data   replaced: %" PRIu64 " bytes\n", tensor->size);
}

static int append_differences(struct stfs_buf *buf, const struct stfs_staged_tensor *tensor,
			      const struct stfs_tensor *old)
{
	int r = 0;

	if (tensor->new_dtype)
		r = stfs_buf_printf(buf, "    dtype  %s -> %s\n", stfs_dtype_info(old->dtype)->name,
				    stfs_dtype_info(tensor->dtype)->name);
	if (r == 0 && tensor->new_shape) {
		r = stfs_buf_append_str(buf, "    shape  ");
		if (r == 0)
			r = append_dims(buf, stfs_tensor_dims(old));
		if (r == 0)
			r = stfs_buf_append_str(buf, " -> ");
		if (r == 0)
			r = append_dims(buf, tensor->dims);
		if (r == 0)
			r = stfs_buf_append_char(buf, '\n');
	}
	return r == 0 && tensor->new_data ? append_data(buf, tensor, old) : r;
}

static int append_whole(struct stfs_buf *buf, enum stfs_dtype dtype, struct stfs_dims dims, uint64_t size)
{
	int r = stfs_buf_printf(buf, "    %s ", stfs_dtype_info(dtype)->name);

	if (r == 0)
		r = append_dims(buf, dims);
	return r < 0 ? r : stfs_buf_printf(buf, ", %" PRIu64 " bytes\n", size);
}

static int append_problem(struct stfs_buf *buf, const char *start, struct stfs_slice name, const char *problem)
{
	int r = append_start(buf, start, name);

	return r < 0 ? r : stfs_buf_printf(buf, ": %s\n", problem);
}

static int append_tensor(struct stfs_buf *buf, const struct stfs_staged_tensor *tensor, const struct stfs_model *model)
{
	const struct stfs_tensor *old = tensor->entry == STFS_ENTRY_NONE ? NULL :
									   stfs_model_tensor(model, tensor->entry);
	int r;

	if (tensor->problem)
		return append_problem(buf, "! ", tensor->name, tensor->problem);
	if (old && tensor->new_name) {
		r = append_start(buf, "R ", old->name);
		if (r == 0)
			r = append_start(buf, " -> ", tensor->name);
	} else {
		r = append_start(buf, old ? "M " : "A ", tensor->name);
	}
	if (r == 0)
		r = stfs_buf_append_char(buf, '\n');
	if (r == 0)
		r = old ? append_differences(buf, tensor, old) :
			  append_whole(buf, tensor->dtype, tensor->dims, tensor->size);
	return r;
}

static int append_deleted(struct stfs_buf *buf, const struct stfs_tensor *old)
{
	int r = append_start(buf, "D ", old->name);

	if (r == 0)
		r = stfs_buf_append_char(buf, '\n');
	return r < 0 ? r : append_whole(buf, old->dtype, stfs_tensor_dims(old), old->end - old->begin);
}

/* Values are cut where a message would cut them. */
static int append_key(struct stfs_buf *buf, const struct stfs_staged_key *key)
{
	int r;

	if (key->problem)
		return append_problem(buf, "! __metadata__/", key->key, key->problem);
	if (key->in_model && stfs_slice_equal(key->value, key->before))
		return 0;
	r = append_start(buf, key->in_model ? "M __metadata__/" : "A __metadata__/", key->key);
	if (r == 0 && key->in_model)
		r = stfs_buf_printf(buf, "\n    %s ->", stfs_quote(key->before).text);
	return r < 0 ? r : stfs_buf_printf(buf, "%s %s\n", key->in_model ? "" : "\n   ", stfs_quote(key->value).text);
}

static int append_deleted_key(struct stfs_buf *buf, const struct stfs_metadata_entry *old)
{
	int r = append_start(buf, "D __metadata__/", old->key);

	return r < 0 ? r : stfs_buf_printf(buf, "\n    %s\n", stfs_quote(old->value).text);
}

int stfs_changes_diff(const struct stfs_changes *changes, const struct stfs_model *model, struct stfs_buf *buf)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < changes->n_tensors; i++) {
		if (changes->tensors[i].problem || stfs_staged_tensor_changed(&changes->tensors[i]))
			r = append_tensor(buf, &changes->tensors[i], model);
	}
	for (uint32_t i = 0; r == 0 && i < changes->n_deleted; i++)
		r = append_deleted(buf, stfs_model_tensor(model, changes->deleted[i]));
	for (uint32_t i = 0; r == 0 && i < changes->n_keys; i++)
		r = append_key(buf, &changes->keys[i]);
	for (uint32_t i = 0; r == 0 && i < changes->n_deleted_keys; i++)
		r = append_deleted_key(buf, &model->metadata[changes->deleted_keys[i]]);
	/* A control file that says nothing looks like one that failed. */
	return r == 0 && buf->len == 0 ? stfs_buf_append_str(buf, "# nothing is staged\n") : r;
}

/* A member's name, and its value with the given function. */
static int json_name(struct stfs_buf *buf, const char *field, struct stfs_slice name)
{
	int r = stfs_buf_printf(buf, "\"%s\":", field);

	return r < 0 ? r : stfs_json_write_string(buf, name);
}

static int json_dims(struct stfs_buf *buf, const char *field, struct stfs_dims dims)
{
	int r = stfs_buf_printf(buf, ",\"%s\":", field);

	return r < 0 ? r : append_dims(buf, dims);
}

/* What a tensor is, under names that end in `suffix`. */
static int json_facts(struct stfs_buf *buf, const char *suffix, enum stfs_dtype dtype, struct stfs_dims dims,
		      uint64_t size)
{
	char field[32];
	int r = stfs_buf_printf(buf, ",\"dtype%s\":\"%s\"", suffix, stfs_dtype_info(dtype)->name);

	snprintf(field, sizeof(field), "shape%s", suffix);
	if (r == 0)
		r = json_dims(buf, field, dims);
	return r < 0 ? r : stfs_buf_printf(buf, ",\"bytes%s\":%" PRIu64, suffix, size);
}

static int json_old(struct stfs_buf *buf, const struct stfs_tensor *old)
{
	int r = stfs_buf_append_char(buf, ',');

	if (r == 0)
		r = json_name(buf, "name_before", old->name);
	return r < 0 ? r : json_facts(buf, "_before", old->dtype, stfs_tensor_dims(old), old->end - old->begin);
}

static int json_tensor(struct stfs_buf *buf, const struct stfs_staged_tensor *tensor, const struct stfs_model *model)
{
	int r = json_name(buf, "tensor", tensor->name);

	if (r == 0 && tensor->problem) {
		r = stfs_buf_append_char(buf, ',');
		return r < 0 ? r : json_name(buf, "problem", stfs_slice_of(tensor->problem));
	}
	if (r == 0)
		r = json_facts(buf, "", tensor->dtype, tensor->dims, tensor->size);
	if (r == 0)
		r = stfs_buf_printf(buf, ",\"bytes_changed\":%" PRIu64,
				    tensor->new_data || tensor->entry == STFS_ENTRY_NONE ? changed_bytes(tensor) : 0);
	return r == 0 && tensor->entry != STFS_ENTRY_NONE ? json_old(buf, stfs_model_tensor(model, tensor->entry)) : r;
}

static int json_key(struct stfs_buf *buf, const struct stfs_staged_key *key)
{
	int r = json_name(buf, "key", key->key);

	if (r == 0)
		r = stfs_buf_append_char(buf, ',');
	if (r == 0 && key->problem)
		return json_name(buf, "problem", stfs_slice_of(key->problem));
	if (r == 0)
		r = json_name(buf, "value", key->value);
	if (r == 0 && key->in_model)
		r = stfs_buf_append_char(buf, ',');
	return r == 0 && key->in_model ? json_name(buf, "value_before", key->before) : r;
}

/* Begins an item of the list. */
static int json_item(struct stfs_buf *buf, const char **separator)
{
	int r = stfs_buf_printf(buf, "%s\n{", *separator);

	*separator = ",";
	return r;
}

static int json_present(const struct stfs_changes *changes, const struct stfs_model *model, struct stfs_buf *buf,
			const char **separator)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < changes->n_tensors; i++) {
		if (!changes->tensors[i].problem && !stfs_staged_tensor_changed(&changes->tensors[i]))
			continue;
		r = json_item(buf, separator);
		if (r == 0)
			r = json_tensor(buf, &changes->tensors[i], model);
		if (r == 0)
			r = stfs_buf_append_char(buf, '}');
	}
	for (uint32_t i = 0; r == 0 && i < changes->n_keys; i++) {
		const struct stfs_staged_key *key = &changes->keys[i];

		if (!key->problem && key->in_model && stfs_slice_equal(key->value, key->before))
			continue;
		r = json_item(buf, separator);
		if (r == 0)
			r = json_key(buf, key);
		if (r == 0)
			r = stfs_buf_append_char(buf, '}');
	}
	return r;
}

static int json_gone(const struct stfs_changes *changes, const struct stfs_model *model, struct stfs_buf *buf,
		     const char **separator)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < changes->n_deleted; i++) {
		const struct stfs_tensor *old = stfs_model_tensor(model, changes->deleted[i]);

		r = json_item(buf, separator);
		if (r == 0)
			r = stfs_buf_append_str(buf, "\"tensor\":null");
		if (r == 0)
			r = json_old(buf, old);
		if (r == 0)
			r = stfs_buf_append_char(buf, '}');
	}
	for (uint32_t i = 0; r == 0 && i < changes->n_deleted_keys; i++) {
		r = json_item(buf, separator);
		if (r == 0)
			r = json_name(buf, "key", model->metadata[changes->deleted_keys[i]].key);
		if (r == 0)
			r = stfs_buf_append_str(buf, ",\"value\":null}");
	}
	return r;
}

int stfs_changes_diff_json(const struct stfs_changes *changes, const struct stfs_model *model, struct stfs_buf *buf)
{
	const char *separator = "";
	int r = stfs_buf_append_str(buf, "{\"changes\":[");

	if (r == 0)
		r = json_present(changes, model, buf, &separator);
	if (r == 0)
		r = json_gone(changes, model, buf, &separator);
	return r < 0 ? r : stfs_buf_append_str(buf, "]}\n");
}
