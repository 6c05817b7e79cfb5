/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON text, with the escapes of the reference writer. */
#pragma once

#include "buf.h"
#include "slice.h"

/*
 * Appends `s` (valid UTF-8) as a string literal with its quotes: \" \\ \b \f \n \r \t, other controls as \u00xx in lower
 * case, all else raw (what serde_json and so the reference writer does). Returns 0 or -ENOMEM.
 */
int stfs_json_write_string(struct stfs_buf *buf, struct stfs_slice s) STFS_MUST_CHECK;
