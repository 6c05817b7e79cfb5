/* SPDX-License-Identifier: Apache-2.0 */
/* Strict UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing over U+10FFFF. */
#pragma once

#include <stdint.h>

#include "slice.h"

/* Offset of the first byte that is not UTF-8, or `s.len` when all of it is. */
size_t stfs_utf8_invalid(struct stfs_slice s);

/* Length in bytes (1 to 4) of the character at the start of `s`, and its code point; 0 when broken or empty. */
size_t stfs_utf8_next(struct stfs_slice s, uint32_t *ret_code);
