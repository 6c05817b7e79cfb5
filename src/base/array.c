/* SPDX-License-Identifier: Apache-2.0 */
#include "array.h"

#include <errno.h>
#include <stdlib.h>

int stfs_array_grow(void **array, uint32_t n, uint32_t *cap, uint32_t max, size_t size)
{
	uint64_t wanted, bytes;
	void *p;

	if (n < *cap)
		return 0;
	if (n >= max)
		return -EFBIG;
	wanted = *cap ? (uint64_t)*cap * 2 : 64;
	wanted = STFS_MIN(wanted, max);
	if (__builtin_mul_overflow(wanted, size, &bytes))
		return -ENOMEM;
	p = realloc(*array, bytes);
	if (!p)
		return -ENOMEM;
	*array = p;
	*cap = (uint32_t)wanted;
	return 0;
}
