/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays of plain items. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "macros.h"

/*
 * Makes room for one more item of `size` bytes in *array (heap, NULL at first), which holds `n` and has room for *cap;
 * it never grows beyond `max` items. Returns 0, -EFBIG when `max` are there already, -ENOMEM.
 */
int stfs_array_grow(void **array, uint32_t n, uint32_t *cap, uint32_t max, size_t size) STFS_MUST_CHECK;
