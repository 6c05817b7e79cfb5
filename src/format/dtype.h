/* SPDX-License-Identifier: Apache-2.0 */
/* The 22 dtypes of the format, one row each. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "slice.h"

/* In the order of the reference writer, which puts larger rows first: sorting by this number descending gives its order. */
enum stfs_dtype {
	STFS_BOOL,
	STFS_F4,
	STFS_F6_E2M3,
	STFS_F6_E3M2,
	STFS_U8,
	STFS_I8,
	STFS_F8_E5M2,
	STFS_F8_E4M3,
	STFS_F8_E8M0,
	STFS_F8_E4M3FNUZ,
	STFS_F8_E5M2FNUZ,
	STFS_I16,
	STFS_U16,
	STFS_F16,
	STFS_BF16,
	STFS_I32,
	STFS_U32,
	STFS_F32,
	STFS_C64,
	STFS_F64,
	STFS_I64,
	STFS_U64,
	STFS_DTYPE_COUNT,
};

struct stfs_dtype_info {
	const char *name; /* as written in a header, "BF16" */
	/* NumPy's descr, "<f4"; "<V2", "|V1" where NumPy has no such type; NULL for sub-byte types */
	const char *descr;
	uint8_t bits; /* of one element */
};

/* The row of a dtype; static storage. */
const struct stfs_dtype_info *stfs_dtype_info(enum stfs_dtype dtype);

/* Finds a dtype by its exact name. Returns false, and leaves *ret alone, when there is none. */
bool stfs_dtype_parse(struct stfs_slice name, enum stfs_dtype *ret);
