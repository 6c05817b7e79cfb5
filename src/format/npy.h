/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a NumPy .npy file (versions 1.0 and 2.0 of the NPY format, NumPy's documentation). */
#pragma once

#include <stdint.h>

#include "buf.h"
#include "diag.h"
#include "dtype.h"
#include "header.h"

/*
 * Appends the .npy header that describes a tensor: magic, version 1.0 (2.0 when longer than 65535 bytes), padded so
 * that the data starts at a multiple of 64. Returns 0, -EOPNOTSUPP for a dtype without a descr (sub-byte), or -ENOMEM.
 */
int stfs_npy_write(struct stfs_buf *buf, enum stfs_dtype dtype, struct stfs_dims dims) STFS_MUST_CHECK;

/* What a .npy header says. */
struct stfs_npy {
	uint64_t header_size; /* bytes before the data */
	bool has_dtype;       /* false for "|V1", which names no dtype of ours */
	enum stfs_dtype dtype;
	uint64_t shape[64]; /* NumPy's own limit is 64 dimensions */
	uint32_t rank;
};

/*
 * Reads the .npy header at the start of `data`. "V2" of any byte order is BF16, "<f1" is F8_E5M2, "V1" leaves has_dtype
 * false. Returns 0, -EAGAIN when `len` bytes are too few to tell, -EBADMSG (bad magic or text), -EOPNOTSUPP (big-endian,
 * Fortran order, a type the format lacks) with the sentence in `diag`.
 */
int stfs_npy_parse(const uint8_t *data, size_t len, struct stfs_diag *diag, struct stfs_npy *ret);
