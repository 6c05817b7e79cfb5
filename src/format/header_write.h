/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a header: compact, `__metadata__` first and sorted, padded with spaces to a multiple of 8. */
#pragma once

#include "buf.h"
#include "header.h"

/* Appends the text of `entries` (borrowed, any order) as the `__metadata__` object. Returns 0 or -ENOMEM. */
int stfs_header_write_metadata(struct stfs_buf *buf, const struct stfs_metadata_entry *entries, uint32_t n)
	STFS_MUST_CHECK;

/* Appends the numbers of a shape, with `separator` between them: "2,3"; nothing for a scalar. Returns 0 or -ENOMEM. */
int stfs_dims_write(struct stfs_buf *buf, struct stfs_dims dims, const char *separator) STFS_MUST_CHECK;

/* Appends one tensor as `"name":{"dtype":…,"shape":[…],"data_offsets":[…]}`. Returns 0 or -ENOMEM. */
int stfs_header_write_tensor(struct stfs_buf *buf, const struct stfs_tensor *tensor) STFS_MUST_CHECK;

/*
 * Appends the JSON (without the length word) that a writer of ours makes of `header`: tensors in the order of the data,
 * metadata only when has_metadata. Returns 0 or -ENOMEM.
 */
int stfs_header_write(struct stfs_buf *buf, const struct stfs_header *header) STFS_MUST_CHECK;
