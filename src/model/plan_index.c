/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of the new files, in the form transformers writes: indent 2, names sorted, a newline at the end. What the old
 * index says beside weight_map and the totals comes through as it stands.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "json_decode.h"
#include "json_scan.h"
#include "json_write.h"
#include "plan_private.h"

/* A tensor and its file. */
struct row {
	struct stfs_slice tensor, file;
};

static int compare_rows(const void *a, const void *b)
{
	return stfs_slice_compare(((const struct row *)a)->tensor, ((const struct row *)b)->tensor);
}

static int write_weight_map(struct stfs_planning *planning)
{
	const struct stfs_changes *changes = planning->changes;
	_cleanup_free_ struct row *rows = calloc(changes->n_tensors + 1u, sizeof(*rows));
	struct stfs_plan *plan = planning->plan;
	uint32_t n = 0;
	int r = stfs_buf_append_str(&plan->index, "\"weight_map\": {");

	if (!rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < plan->n_files; i++) {
		for (uint32_t k = 0; k < plan->files[i].n_tensors; k++)
			rows[n++] =
				(struct row){ changes->tensors[plan->files[i].tensors[k]].name, plan->files[i].name };
	}
	qsort(rows, n, sizeof(*rows), compare_rows);
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		r = stfs_buf_append_str(&plan->index, i ? ",\n    " : "\n    ");
		if (r == 0)
			r = stfs_json_write_string(&plan->index, rows[i].tensor);
		if (r == 0)
			r = stfs_buf_append_str(&plan->index, ": ");
		if (r == 0)
			r = stfs_json_write_string(&plan->index, rows[i].file);
	}
	return r < 0 ? r : stfs_buf_append_str(&plan->index, n ? "\n  }" : "}");
}

/* Bytes and elements of all tensors. */
static void sum_totals(const struct stfs_planning *planning, uint64_t *ret_size, uint64_t *ret_parameters)
{
	uint64_t size = 0, parameters = 0;

	for (uint32_t i = 0; i < planning->changes->n_tensors; i++) {
		const struct stfs_staged_tensor *tensor = &planning->changes->tensors[i];
		unsigned bits = stfs_dtype_info(tensor->dtype)->bits;

		size += tensor->size;
		parameters += tensor->size / bits * 8 + tensor->size % bits * 8 / bits;
	}
	*ret_size = size;
	*ret_parameters = parameters;
}

static int append_raw(struct stfs_buf *buf, const struct stfs_json_string *key, struct stfs_slice value, bool *first,
		      const char *indent)
{
	int r = stfs_buf_printf(buf, "%s\n%s\"", *first ? "" : ",", indent);

	*first = false;
	if (r == 0)
		r = stfs_buf_append(buf, key->raw.p, key->raw.len);
	if (r == 0)
		r = stfs_buf_append_str(buf, "\": ");
	return r < 0 ? r : stfs_buf_append(buf, value.p, value.len);
}

/* Reads one member: its key as it stands and decoded, and the text of its value. */
static int take_member(struct stfs_json *json, struct stfs_decoded *decoded, struct stfs_json_string *ret_raw,
		       struct stfs_slice *ret_key, struct stfs_slice *ret_value)
{
	int r = stfs_json_key(json, ret_raw);

	if (r == 0)
		r = stfs_json_decode(decoded, ret_raw, ret_key);
	if (r < 0)
		return r;
	stfs_json_peek(json);
	ret_value->p = json->p;
	r = stfs_json_skip(json);
	ret_value->len = (size_t)(json->p - ret_value->p);
	return r;
}

/* The members of the old metadata, the totals counted anew where they are there. */
static int write_old_metadata(struct stfs_planning *planning, struct stfs_decoded *decoded)
{
	uint64_t size, parameters;
	struct stfs_slice key, value;
	struct stfs_json_string raw;
	struct stfs_json json;
	bool first = true, start = true;
	char number[32];
	int r, more;

	sum_totals(planning, &size, &parameters);
	stfs_json_init(&json, planning->model->index->metadata);
	r = stfs_json_enter(&json, '{');
	while (r == 0 && (more = stfs_json_more(&json, '}', start)) > 0) {
		start = false;
		r = take_member(&json, decoded, &raw, &key, &value);
		if (r < 0)
			break;
		if (stfs_slice_is(key, "total_size") || stfs_slice_is(key, "total_parameters")) {
			snprintf(number, sizeof(number), "%" PRIu64,
				 stfs_slice_is(key, "total_size") ? size : parameters);
			value = stfs_slice_of(number);
		}
		r = append_raw(&planning->plan->index, &raw, value, &first, "    ");
	}
	return r;
}

static int write_metadata(struct stfs_planning *planning, struct stfs_decoded *decoded)
{
	struct stfs_buf *buf = &planning->plan->index;
	uint64_t size, parameters;
	int r = stfs_buf_append_str(buf, "\"metadata\": {");

	sum_totals(planning, &size, &parameters);
	if (r == 0 && planning->model->index)
		r = write_old_metadata(planning, decoded);
	else if (r == 0)
		r = stfs_buf_printf(buf, "\n    \"total_size\": %" PRIu64, size);
	return r < 0 ? r : stfs_buf_append_str(buf, "\n  }");
}

/* Members of the old index that are none of ours. */
static int write_others(struct stfs_planning *planning, struct stfs_decoded *decoded, bool *first)
{
	const struct stfs_index *index = planning->model->index;
	struct stfs_slice key, value;
	struct stfs_json_string raw;
	struct stfs_json json;
	bool start = true;
	int r, more;

	stfs_json_init(&json, (struct stfs_slice){ index->text, strlen(index->text) });
	r = stfs_json_enter(&json, '{');
	while (r == 0 && (more = stfs_json_more(&json, '}', start)) > 0) {
		start = false;
		r = take_member(&json, decoded, &raw, &key, &value);
		/* Metadata that is no object has no totals to count. */
		if (r == 0 && !stfs_slice_is(key, "weight_map") &&
		    !(stfs_slice_is(key, "metadata") && index->metadata.len))
			r = append_raw(&planning->plan->index, &raw, value, first, "  ");
	}
	return r;
}

int stfs_plan_write_index(struct stfs_planning *planning)
{
	_cleanup_(stfs_decoded_freep) struct stfs_decoded *decoded = NULL;
	struct stfs_buf *buf = &planning->plan->index;
	const struct stfs_index *old = planning->model->index;
	bool first = true;
	int r = stfs_decoded_new(&decoded);

	if (r == 0)
		r = stfs_buf_append_char(buf, '{');
	if (r == 0 && old)
		r = write_others(planning, decoded, &first);
	if (r == 0 && (!old || old->metadata.len)) {
		r = stfs_buf_append_str(buf, first ? "\n  " : ",\n  ");
		first = false;
		if (r == 0)
			r = write_metadata(planning, decoded);
	}
	if (r == 0)
		r = stfs_buf_append_str(buf, first ? "\n  " : ",\n  ");
	if (r == 0)
		r = write_weight_map(planning);
	return r < 0 ? r : stfs_buf_append_str(buf, "\n}\n");
}
