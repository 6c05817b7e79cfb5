/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text made safe to print: names and values of a model are a stranger's. */
#pragma once

#include "buf.h"
#include "slice.h"

/* A quoted text of bounded length, to be used inside a message. */
struct stfs_quoted {
	char text[200];
};

/*
 * Quotes `s` as "…": control bytes, DEL, C1 controls, bidirectional and zero-width marks, line separators and broken
 * UTF-8 become \xNN or \u{N}; `"` and `\` get a backslash. Cut with … when it would not fit. Use as
 * `stfs_quote(name).text` within one expression.
 */
struct stfs_quoted stfs_quote(struct stfs_slice s);

/*
 * Appends `s` to `buf` with the same escapes, unquoted and uncut: for terminals, where a name is the whole field
 * (`"` stays as it is). Returns 0 or -ENOMEM.
 */
int stfs_append_printable(struct stfs_buf *buf, struct stfs_slice s) STFS_MUST_CHECK;
