/* SPDX-License-Identifier: Apache-2.0 */
/* What people write into dtype and shape. Contract: docs/TREE.md, section 3. */
#pragma once

#include <stdbool.h>

#include "buf.h"
#include "dtype.h"
#include "slice.h"

/* The value of a file: its text without one newline at the end. */
struct stfs_slice stfs_value_of_text(struct stfs_slice text);

/* Understands a dtype: one of the 22 names, blanks around it allowed. Returns false when it is none. */
bool stfs_dtype_of_text(struct stfs_slice text, enum stfs_dtype *ret);

/*
 * Understands a shape: "2 3", "2,3", "[2, 3]", "(2, 3)", "2x3"; an empty line, "[]" or "()" is a scalar. Appends the numbers to
 * `dims` as they stand in a header ("2,3") and counts them. Returns 0, -EINVAL when it is none, or -ENOMEM.
 */
int stfs_shape_of_text(struct stfs_slice text, struct stfs_buf *dims, uint32_t *ret_rank);
