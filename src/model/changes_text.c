/* SPDX-License-Identifier: Apache-2.0 */
/* What is staged, in words: for people as git status --short has it, for programs as JSON. */
#include <errno.h>
#include <inttypes.h>

#include "changes.h"
#include "json_write.h"
#include "quote.h"

/* Names of what is new in a tensor, in the order they are told. */
static int append_what(struct stfs_buf *buf, const struct stfs_staged_tensor *tensor)
{
	const struct {
		bool is;
		const char *name;
	} what[] = { { tensor->new_data, "data" }, { tensor->new_dtype, "dtype" }, { tensor->new_shape, "shape" } };
	const char *separator = " (";
	int r = 0;

	for (size_t i = 0; r == 0 && i < STFS_ARRAY_SIZE(what); i++) {
		if (!what[i].is)
			continue;
		r = stfs_buf_printf(buf, "%s%s", separator, what[i].name);
		separator = ", ";
	}
	return r < 0 || separator[0] == ' ' ? r : stfs_buf_append_char(buf, ')');
}

static int append_tensor(struct stfs_buf *buf, const struct stfs_staged_tensor *tensor, const struct stfs_model *model)
{
	char code = tensor->entry == STFS_ENTRY_NONE ? 'A' : tensor->new_name ? 'R' : 'M';
	int r;

	if (tensor->problem) {
		r = stfs_buf_append_str(buf, "! ");
		if (r == 0)
			r = stfs_append_printable(buf, tensor->name);
		return r < 0 ? r : stfs_buf_printf(buf, ": %s\n", tensor->problem);
	}
	r = stfs_buf_printf(buf, "%c ", code);
	if (r == 0 && code == 'R') {
		r = stfs_append_printable(buf, stfs_model_tensor(model, tensor->entry)->name);
		if (r == 0)
			r = stfs_buf_append_str(buf, " -> ");
	}
	if (r == 0)
		r = stfs_append_printable(buf, tensor->name);
	if (r == 0 && code != 'A')
		r = append_what(buf, tensor);
	return r < 0 ? r : stfs_buf_append_char(buf, '\n');
}

static int append_line(struct stfs_buf *buf, const char *start, struct stfs_slice name, const char *end)
{
	int r = stfs_buf_append_str(buf, start);

	if (r == 0)
		r = stfs_append_printable(buf, name);
	return r < 0 ? r : stfs_buf_append_str(buf, end);
}

static int append_key(struct stfs_buf *buf, const struct stfs_staged_key *key)
{
	int r;

	if (key->problem) {
		r = append_line(buf, "! __metadata__/", key->key, ": ");
		return r < 0 ? r : stfs_buf_printf(buf, "%s\n", key->problem);
	}
	if (!key->in_model)
		return append_line(buf, "A __metadata__/", key->key,
				   key->litter ? " (looks like a tool's leftover)\n" : "\n");
	if (stfs_slice_equal(key->value, key->before))
		return 0;
	return append_line(buf, "M __metadata__/", key->key, "\n");
}

static int append_totals(struct stfs_buf *buf, const struct stfs_changes *changes)
{
	if (changes->n_changed == 0 && changes->n_problems == 0 && changes->n_scratch == 0)
		return stfs_buf_append_str(buf, "# nothing is staged\n");
	return stfs_buf_printf(buf, "# %u changes, %u incomplete, %u scratch files\n", changes->n_changed,
			       changes->n_problems, changes->n_scratch);
}

int stfs_changes_text(const struct stfs_changes *changes, const struct stfs_model *model, struct stfs_buf *buf)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < changes->n_tensors; i++) {
		if (changes->tensors[i].problem || stfs_staged_tensor_changed(&changes->tensors[i]))
			r = append_tensor(buf, &changes->tensors[i], model);
	}
	for (uint32_t i = 0; r == 0 && i < changes->n_deleted; i++)
		r = append_line(buf, "D ", stfs_model_tensor(model, changes->deleted[i])->name, "\n");
	for (uint32_t i = 0; r == 0 && i < changes->n_keys; i++)
		r = append_key(buf, &changes->keys[i]);
	for (uint32_t i = 0; r == 0 && i < changes->n_deleted_keys; i++)
		r = append_line(buf, "D __metadata__/", model->metadata[changes->deleted_keys[i]].key, "\n");
	for (uint32_t i = 0; r == 0 && i < changes->n_scratch; i++)
		r = append_line(buf, "? ", changes->scratch[i], "\n");
	return r < 0 ? r : append_totals(buf, changes);
}

/* An object of a list: {"change":…,"name":…} with what follows. */
static int json_start(struct stfs_buf *buf, bool *first, const char *change, const char *field, struct stfs_slice name)
{
	int r = stfs_buf_printf(buf, "%s{\"change\":\"%s\",\"%s\":", *first ? "" : ",", change, field);

	*first = false;
	return r < 0 ? r : stfs_json_write_string(buf, name);
}

static int json_string(struct stfs_buf *buf, const char *field, struct stfs_slice value)
{
	int r = stfs_buf_printf(buf, ",\"%s\":", field);

	return r < 0 ? r : stfs_json_write_string(buf, value);
}

static int json_tensor(struct stfs_buf *buf, const struct stfs_staged_tensor *tensor, const struct stfs_model *model,
		       bool *first)
{
	const char *change = tensor->problem                  ? "incomplete" :
			     tensor->entry == STFS_ENTRY_NONE ? "added" :
			     tensor->new_name                 ? "renamed" :
								"changed";
	int r = json_start(buf, first, change, "tensor", tensor->name);

	if (r == 0 && tensor->problem)
		r = json_string(buf, "problem", stfs_slice_of(tensor->problem));
	if (r == 0 && tensor->new_name)
		r = json_string(buf, "from", stfs_model_tensor(model, tensor->entry)->name);
	if (r == 0)
		r = stfs_buf_printf(buf, ",\"data\":%s,\"dtype\":%s,\"shape\":%s}", tensor->new_data ? "true" : "false",
				    tensor->new_dtype ? "true" : "false", tensor->new_shape ? "true" : "false");
	return r;
}

static int json_key(struct stfs_buf *buf, const struct stfs_staged_key *key, bool *first)
{
	const char *change = key->problem ? "incomplete" : key->in_model ? "changed" : "added";
	int r;

	if (!key->problem && key->in_model && stfs_slice_equal(key->value, key->before))
		return 0;
	r = json_start(buf, first, change, "key", key->key);
	if (r == 0 && key->problem)
		r = json_string(buf, "problem", stfs_slice_of(key->problem));
	else if (r == 0)
		r = json_string(buf, "value", key->value);
	if (r == 0 && key->in_model)
		r = json_string(buf, "before", key->before);
	return r < 0 ? r : stfs_buf_append_char(buf, '}');
}

static int json_deleted(const struct stfs_changes *changes, const struct stfs_model *model, struct stfs_buf *buf,
			bool *first)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < changes->n_deleted; i++) {
		r = json_start(buf, first, "deleted", "tensor", stfs_model_tensor(model, changes->deleted[i])->name);
		if (r == 0)
			r = stfs_buf_append_char(buf, '}');
	}
	for (uint32_t i = 0; r == 0 && i < changes->n_deleted_keys; i++) {
		r = json_start(buf, first, "deleted", "key", model->metadata[changes->deleted_keys[i]].key);
		if (r == 0)
			r = stfs_buf_append_char(buf, '}');
	}
	return r;
}

/* A name of a file may be any bytes; in JSON it is shown as on a terminal. */
static int json_scratch(const struct stfs_changes *changes, struct stfs_buf *buf)
{
	int r = stfs_buf_append_str(buf, "],\"scratch\":[");

	for (uint32_t i = 0; r == 0 && i < changes->n_scratch; i++) {
		_cleanup_buf_ struct stfs_buf shown = { 0 };

		r = i ? stfs_buf_append_char(buf, ',') : 0;
		if (r == 0)
			r = stfs_append_printable(&shown, changes->scratch[i]);
		if (r == 0)
			r = stfs_json_write_string(buf, stfs_buf_slice(&shown));
	}
	return r < 0 ? r : stfs_buf_append_str(buf, "]}\n");
}

int stfs_changes_json(const struct stfs_changes *changes, const struct stfs_model *model, struct stfs_buf *buf)
{
	bool first = true;
	int r = stfs_buf_printf(buf, "{\"changed\":%u,\"incomplete\":%u,\"changes\":[", changes->n_changed,
				changes->n_problems);

	for (uint32_t i = 0; r == 0 && i < changes->n_tensors; i++) {
		if (changes->tensors[i].problem || stfs_staged_tensor_changed(&changes->tensors[i]))
			r = json_tensor(buf, &changes->tensors[i], model, &first);
	}
	for (uint32_t i = 0; r == 0 && i < changes->n_keys; i++)
		r = json_key(buf, &changes->keys[i], &first);
	if (r == 0)
		r = json_deleted(changes, model, buf, &first);
	return r < 0 ? r : json_scratch(changes, buf);
}
