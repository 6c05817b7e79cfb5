/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler annotations and small constants shared by every layer. */
#pragma once

#include <stddef.h>

#define STFS_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define STFS_MUST_CHECK __attribute__((warn_unused_result))

#define STFS_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Each of the two is looked at once: it may be a size that another thread changes. */
#define STFS_MIN(a, b) STFS_PICK(a, <, b, STFS_NEW_NAME(__COUNTER__), STFS_NEW_NAME(__COUNTER__))
#define STFS_MAX(a, b) STFS_PICK(a, >, b, STFS_NEW_NAME(__COUNTER__), STFS_NEW_NAME(__COUNTER__))

/* Names of their own, so that one can stand within another. */
#define STFS_NEW_NAME(number) STFS_JOIN(picked_, number)
#define STFS_JOIN(a, b) a##b
#define STFS_PICK(a, op, b, x, y)                           \
	({                                                  \
		__typeof__(1 ? (a) : (b)) x = (a), y = (b); \
		(x) op(y) ? (x) : (y);                      \
	})
