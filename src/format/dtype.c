/* SPDX-License-Identifier: Apache-2.0 */
#include "dtype.h"

#include "macros.h"

/* NumPy has no type for "<V2" and "|V1": it loads them as raw bytes, which ml_dtypes can name. */
static const struct stfs_dtype_info dtypes[STFS_DTYPE_COUNT] = {
	[STFS_BOOL] = { "BOOL", "|b1", 8 },
	[STFS_F4] = { "F4", NULL, 4 },
	[STFS_F6_E2M3] = { "F6_E2M3", NULL, 6 },
	[STFS_F6_E3M2] = { "F6_E3M2", NULL, 6 },
	[STFS_U8] = { "U8", "|u1", 8 },
	[STFS_I8] = { "I8", "|i1", 8 },
	[STFS_F8_E5M2] = { "F8_E5M2", "|V1", 8 },
	[STFS_F8_E4M3] = { "F8_E4M3", "|V1", 8 },
	[STFS_F8_E8M0] = { "F8_E8M0", "|V1", 8 },
	[STFS_F8_E4M3FNUZ] = { "F8_E4M3FNUZ", "|V1", 8 },
	[STFS_F8_E5M2FNUZ] = { "F8_E5M2FNUZ", "|V1", 8 },
	[STFS_I16] = { "I16", "<i2", 16 },
	[STFS_U16] = { "U16", "<u2", 16 },
	[STFS_F16] = { "F16", "<f2", 16 },
	[STFS_BF16] = { "BF16", "<V2", 16 },
	[STFS_I32] = { "I32", "<i4", 32 },
	[STFS_U32] = { "U32", "<u4", 32 },
	[STFS_F32] = { "F32", "<f4", 32 },
	[STFS_C64] = { "C64", "<c8", 64 },
	[STFS_F64] = { "F64", "<f8", 64 },
	[STFS_I64] = { "I64", "<i8", 64 },
	[STFS_U64] = { "U64", "<u8", 64 },
};

const struct stfs_dtype_info *stfs_dtype_info(enum stfs_dtype dtype)
{
	return &dtypes[dtype];
}

bool stfs_dtype_parse(struct stfs_slice name, enum stfs_dtype *ret)
{
	for (unsigned i = 0; i < STFS_DTYPE_COUNT; i++) {
		/* The second character tells most rows apart: a header may have a million of them. */
		if (name.len > 1 && name.p[1] == dtypes[i].name[1] && stfs_slice_is(name, dtypes[i].name)) {
			*ret = (enum stfs_dtype)i;
			return true;
		}
	}
	return false;
}
