/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a structure takes, for tests that hold it to its promise. */
#pragma once

#include <malloc.h>
#include <stddef.h>

/* Bytes handed out by malloc. A sanitizer's allocator reports nothing here. */
static inline size_t heap_in_use(void)
{
#if __GLIBC_PREREQ(2, 33)
	struct mallinfo2 info = mallinfo2();
#else
	struct mallinfo info = mallinfo(); /* wraps at 4 GiB */
#endif

	return (size_t)info.uordblks + (size_t)info.hblkhd;
}
