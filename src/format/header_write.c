/* SPDX-License-Identifier: Apache-2.0 */
#include "header_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "json_write.h"

static int compare_keys(const void *a, const void *b)
{
	const struct stfs_metadata_entry *const *x = a, *const *y = b;

	return stfs_slice_compare((*x)->key, (*y)->key);
}

int stfs_header_write_metadata(struct stfs_buf *buf, const struct stfs_metadata_entry *entries, uint32_t n)
{
	_cleanup_free_ const struct stfs_metadata_entry **sorted = calloc(n ? n : 1, sizeof(*sorted));
	int r = stfs_buf_append_str(buf, "\"__metadata__\":{");

	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		sorted[i] = &entries[i];
	qsort(sorted, n, sizeof(*sorted), compare_keys);
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		r = i ? stfs_buf_append_char(buf, ',') : 0;
		if (r == 0)
			r = stfs_json_write_string(buf, sorted[i]->key);
		if (r == 0)
			r = stfs_buf_append_char(buf, ':');
		if (r == 0)
			r = stfs_json_write_string(buf, sorted[i]->value);
	}
	return r < 0 ? r : stfs_buf_append_char(buf, '}');
}

int stfs_dims_write(struct stfs_buf *buf, struct stfs_dims dims, const char *separator)
{
	const char *before = "";
	uint64_t dim;
	int r = 0;

	for (; r == 0 && stfs_dims_next(&dims, &dim); before = separator)
		r = stfs_buf_printf(buf, "%s%" PRIu64, before, dim);
	return r;
}

int stfs_header_write_tensor(struct stfs_buf *buf, const struct stfs_tensor *tensor)
{
	int r = stfs_json_write_string(buf, tensor->name);

	if (r == 0)
		r = stfs_buf_printf(buf, ":{\"dtype\":\"%s\",\"shape\":[", stfs_dtype_info(tensor->dtype)->name);
	if (r == 0)
		r = stfs_dims_write(buf, stfs_tensor_dims(tensor), ",");
	if (r < 0)
		return r;
	return stfs_buf_printf(buf, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", tensor->begin, tensor->end);
}

/* Pads with spaces until what was written since `start` is a multiple of 8, so that the data start is aligned. */
static int pad(struct stfs_buf *buf, size_t start)
{
	int r = 0;

	while (r == 0 && (buf->len - start) % 8 != 0)
		r = stfs_buf_append_char(buf, ' ');
	return r;
}

int stfs_header_write(struct stfs_buf *buf, const struct stfs_header *header)
{
	size_t start = buf->len;
	bool first = true;
	int r = stfs_buf_append_char(buf, '{');

	if (r == 0 && header->has_metadata) {
		r = stfs_header_write_metadata(buf, header->metadata, header->n_metadata);
		first = false;
	}
	for (uint32_t i = 0; r == 0 && i < header->n_tensors; i++) {
		r = first ? 0 : stfs_buf_append_char(buf, ',');
		if (r == 0)
			r = stfs_header_write_tensor(buf, &header->tensors[i]);
		first = false;
	}
	if (r == 0)
		r = stfs_buf_append_char(buf, '}');
	return r < 0 ? r : pad(buf, start);
}
