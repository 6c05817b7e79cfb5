/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <errno.h>
#include <inttypes.h>

#include "header_write.h"
#include "json_write.h"

int stfs_text_dtype(struct stfs_buf *buf, const struct stfs_tensor *tensor)
{
	return stfs_buf_printf(buf, "%s\n", stfs_dtype_info(tensor->dtype)->name);
}

int stfs_text_shape(struct stfs_buf *buf, const struct stfs_tensor *tensor)
{
	int r = stfs_dims_write(buf, stfs_tensor_dims(tensor), " ");

	return r < 0 ? r : stfs_buf_append_char(buf, '\n');
}

int stfs_text_metadata(struct stfs_buf *buf, const struct stfs_metadata_entry *entry)
{
	int r = stfs_buf_reserve(buf, entry->value.len + 1);

	if (r >= 0)
		r = stfs_buf_append(buf, entry->value.p, entry->value.len);
	return r < 0 ? r : stfs_buf_append_char(buf, '\n');
}

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

/* A name as a field of a table: nothing in it may end the field or the line. */
static int append_field(struct stfs_buf *buf, struct stfs_slice name)
{
	size_t done = 0;
	int r;

	for (size_t i = 0; i < name.len; i++) {
		if (!is_control(name.p[i]))
			continue;
		r = stfs_buf_append(buf, name.p + done, i - done);
		if (r < 0)
			return r;
		r = stfs_buf_printf(buf, "%%%02X", (unsigned)(unsigned char)name.p[i]);
		if (r < 0)
			return r;
		done = i + 1;
	}
	return stfs_buf_append(buf, name.p + done, name.len - done);
}

int stfs_text_tensors_head(struct stfs_buf *buf)
{
	return stfs_buf_append_str(buf, "#name\tdtype\tshape\tbytes\tfile\toffset\tpath\n");
}

int stfs_text_tensors_row(struct stfs_buf *buf, const struct stfs_text_row *row, enum stfs_layout layout)
{
	int r = append_field(buf, row->name);

	if (r == 0)
		r = stfs_buf_printf(buf, "\t%s\t", stfs_dtype_info(row->dtype)->name);
	if (r == 0)
		r = row->dims.left ? stfs_dims_write(buf, row->dims, ",") : stfs_buf_append_char(buf, '-');
	if (r == 0)
		r = stfs_buf_printf(buf, "\t%" PRIu64 "\t", row->size);
	if (r == 0 && row->file)
		r = stfs_buf_printf(buf, "%s\t%" PRIu64 "\t", row->file, row->offset);
	else if (r == 0)
		r = stfs_buf_append_str(buf, "-\t-\t");
	if (r == 0)
		r = stfs_name_encode(buf, row->name, layout);
	return r < 0 ? r : stfs_buf_append_char(buf, '\n');
}

int stfs_text_tensors_tsv(struct stfs_buf *buf, const struct stfs_model *model, enum stfs_layout layout)
{
	int r = stfs_text_tensors_head(buf);

	for (uint32_t i = 0; r == 0 && i < model->n_entries; i++) {
		const struct stfs_tensor *tensor = stfs_model_tensor(model, i);
		struct stfs_text_row row = {
			.name = tensor->name,
			.dtype = tensor->dtype,
			.dims = stfs_tensor_dims(tensor),
			.size = tensor->end - tensor->begin,
			.file = stfs_snapshot_name(stfs_model_file(model, i)),
			.offset = stfs_model_offset(model, i),
		};

		r = stfs_text_tensors_row(buf, &row, layout);
	}
	return r;
}

static int append_shard(struct stfs_buf *buf, const struct stfs_snapshot *file)
{
	int r = stfs_json_write_string(buf, stfs_slice_of(stfs_snapshot_name(file)));

	if (r >= 0)
		r = stfs_buf_append_char(buf, ':');
	return r < 0 ? r : stfs_header_write(buf, stfs_snapshot_header(file));
}

static int append_shards(struct stfs_buf *buf, const struct stfs_model *model)
{
	int r = stfs_buf_append_char(buf, '{');

	for (uint32_t i = 0; r >= 0 && i < model->n_files; i++) {
		if (i > 0)
			r = stfs_buf_append_char(buf, ',');
		if (r >= 0)
			r = append_shard(buf, model->files[i]);
	}
	return r < 0 ? r : stfs_buf_append_char(buf, '}');
}

int stfs_text_header_json(struct stfs_buf *buf, const struct stfs_model *model)
{
	int r;

	if (model->sharded || model->n_files != 1)
		r = append_shards(buf, model);
	else
		r = stfs_header_write(buf, stfs_snapshot_header(model->files[0]));
	return r < 0 ? r : stfs_buf_append_char(buf, '\n');
}
