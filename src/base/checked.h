/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on sizes that come from outside: every function returns false on overflow and then leaves *ret alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "macros.h"

static inline bool STFS_MUST_CHECK stfs_add(uint64_t a, uint64_t b, uint64_t *ret)
{
	uint64_t v;

	if (__builtin_add_overflow(a, b, &v))
		return false;
	*ret = v;
	return true;
}

static inline bool STFS_MUST_CHECK stfs_mul(uint64_t a, uint64_t b, uint64_t *ret)
{
	uint64_t v;

	if (__builtin_mul_overflow(a, b, &v))
		return false;
	*ret = v;
	return true;
}
