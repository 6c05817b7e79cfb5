/* SPDX-License-Identifier: Apache-2.0 */
/* JSON for programs: a writer that remembers its first failure, so that the callers read like the text they make. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "slice.h"

/* Embedded; all zero is an empty text. Once `error` (0 or -ENOMEM) is set, calls do nothing. */
struct stfs_json_out {
	struct stfs_buf buf;
	int error;
	bool comma_due;
};

/* Releases the memory. */
void stfs_json_out_fini(struct stfs_json_out *out);

/* Begins an object or array ('{', '['), with a comma before it where one is due. */
void stfs_json_out_open(struct stfs_json_out *out, char bracket);

/* Ends it ('}', ']'). */
void stfs_json_out_close(struct stfs_json_out *out, char bracket);

/* Adds a line break before a member or item, for people who look at it. */
void stfs_json_out_newline(struct stfs_json_out *out);

/* Adds a member's key: any text. A value must follow. */
void stfs_json_out_key(struct stfs_json_out *out, struct stfs_slice key);

/*
 * Adds a string: any text. File names may be no UTF-8, which JSON cannot hold: their broken bytes are written as \xNN, as
 * in messages.
 */
void stfs_json_out_string(struct stfs_json_out *out, struct stfs_slice s);

/* Adds a number, or true or false. */
void stfs_json_out_number(struct stfs_json_out *out, uint64_t value);
void stfs_json_out_bool(struct stfs_json_out *out, bool value);

/* A whole member. */
void stfs_json_out_text_member(struct stfs_json_out *out, const char *key, struct stfs_slice value);
void stfs_json_out_number_member(struct stfs_json_out *out, const char *key, uint64_t value);
void stfs_json_out_bool_member(struct stfs_json_out *out, const char *key, bool value);

/* Prints what there is to stdout (which tells of its own errors) and empties it. Returns 0 or `error`. */
int stfs_json_out_print(struct stfs_json_out *out) STFS_MUST_CHECK;

/* The same for the end of the text: with a newline. */
int stfs_json_out_print_line(struct stfs_json_out *out) STFS_MUST_CHECK;

#define _cleanup_json_out_ _cleanup_(stfs_json_out_fini)
