/* SPDX-License-Identifier: Apache-2.0 */
/* What `info` tells: gathered once, printed as one screen for people or as JSON. */
#pragma once

#include <stdint.h>

#include "dtype.h"
#include "model.h"

struct stfs_info {
	const struct stfs_model *model; /* borrowed */
	uint64_t file_bytes;            /* of all files, headers included */
	uint64_t elements;              /* of all tensors */
	struct stfs_info_dtype {
		uint64_t tensors, elements, bytes;
	} dtypes[STFS_DTYPE_COUNT];
};

/* Prints one screen to stdout: as wide and high as the terminal, with bars and colours where it has them. 0 or -ENOMEM. */
int stfs_info_print_text(const struct stfs_info *info) STFS_MUST_CHECK;
