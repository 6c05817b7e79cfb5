/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler annotations and small constants shared by every layer. */
#pragma once

#include <stddef.h>

#define STFS_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define STFS_MUST_CHECK __attribute__((warn_unused_result))

#define STFS_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define STFS_MIN(a, b) ((a) < (b) ? (a) : (b))
#define STFS_MAX(a, b) ((a) > (b) ? (a) : (b))
