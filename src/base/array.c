/* SPDX-License-Identifier: Apache-2.0 */
#include "array.h"

#include <errno.h>
#include <stdlib.h>

int stfs_array_grow(void **array, uint32_t n, uint32_t *cap, uint32_t max, size_t size)
{
	uint64_t wanted;
	void *p;

	if (n < *cap)
		return 0;
	if (n >= max)
		return -EFBIG;
	wanted = *cap ? (uint64_t)*cap * 2 : 64;
	wanted = STFS_MIN(wanted, max);
	p = reallocarray(*array, wanted, size);
	if (!p)
		return -ENOMEM;
	*array = p;
	*cap = (uint32_t)wanted;
	return 0;
}
