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
int stfs_text_tensors_tsv(struct stfs_buf *buf, const struct stfs_model *model, enum stfs_layout layout) STFS_MUST_CHECK;

/* The header as a commit would write it now and a newline; sharded: an object of file name to header. */
int stfs_text_header_json(struct stfs_buf *buf, const struct stfs_model *model) STFS_MUST_CHECK;
