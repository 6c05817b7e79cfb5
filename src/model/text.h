/* SPDX-License-Identifier: Apache-2.0 */
/* The small texts of the tree: dtype, shape, metadata values, and the tables under .safetensors. */
#pragma once

#include "buf.h"
#include "model.h"
#include "name.h"

/* Each appends to `buf` and returns 0 or -ENOMEM. */

/* "BF16\n" */
int stfs_text_dtype(struct stfs_buf *buf, const struct stfs_tensor *tensor) STFS_MUST_CHECK;

/* "11008 4096\n"; a scalar is an empty line. */
int stfs_text_shape(struct stfs_buf *buf, const struct stfs_tensor *tensor) STFS_MUST_CHECK;

/* The value and one newline. */
int stfs_text_metadata(struct stfs_buf *buf, const struct stfs_metadata_entry *entry) STFS_MUST_CHECK;

/*
 * One line a tensor, in the order of the model, after a line of column names that starts with '#': name, dtype, shape
 * ("11008,4096"; a scalar is "-"), bytes, file, offset, path in the mount. Tabs, newlines and control bytes of a name
 * are written as in a path component (%XX).
 */
int stfs_text_tensors_tsv(struct stfs_buf *buf, const struct stfs_model *model, enum stfs_layout layout)
	STFS_MUST_CHECK;

/* A line of that table. Strings are borrowed. */
struct stfs_text_row {
	struct stfs_slice name;
	enum stfs_dtype dtype;
	struct stfs_dims dims;
	uint64_t size;    /* bytes */
	const char *file; /* as shown; NULL: "-" stands for it and the offset */
	uint64_t offset;  /* in the file */
};

/* The parts of that table: the line of column names, and one line. */
int stfs_text_tensors_head(struct stfs_buf *buf) STFS_MUST_CHECK;
int stfs_text_tensors_row(struct stfs_buf *buf, const struct stfs_text_row *row, enum stfs_layout layout)
	STFS_MUST_CHECK;

/* The header as a commit would write it now and a newline; sharded: an object of file name to header. */
int stfs_text_header_json(struct stfs_buf *buf, const struct stfs_model *model) STFS_MUST_CHECK;
