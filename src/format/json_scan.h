/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict recogniser for JSON (RFC 8259): it decides validity alone, reads left to right, never recurses and never
 * allocates. Depth is limited to 127 levels, as in the reference reader.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag.h"
#include "slice.h"

#define STFS_JSON_DEPTH_MAX 127

/* Embedded. `text` is borrowed, must have passed stfs_utf8_invalid, and has a NUL after its last byte. */
struct stfs_json {
	const char *text, *p, *end;
	unsigned depth;
	struct stfs_diag error; /* what is wrong and where, once a call has returned -EBADMSG */
};

/* A string literal as it stands in the text, without its quotes. */
struct stfs_json_string {
	struct stfs_slice raw;
	bool escaped; /* has a backslash: decode it with stfs_json_decode */
};

/* Starts at the first byte of `text`, which must be followed by a NUL that is not part of it. */
void stfs_json_init(struct stfs_json *json, struct stfs_slice text);

/* Skips blanks (space, tab, CR, LF); the next byte, or -1 at the end. */
static inline int stfs_json_peek(struct stfs_json *json)
{
	while (json->p < json->end && (*json->p == ' ' || *json->p == '\n' || *json->p == '\r' || *json->p == '\t'))
		json->p++;
	return json->p < json->end ? (uint8_t)*json->p : -1;
}

/* Enters an object or array: `open` is '{' or '['. Returns 0 or -EBADMSG. */
int stfs_json_enter(struct stfs_json *json, char open);

/*
 * Steps to the next member or item: `close` is '}' or ']', `first` true before the first one. Returns 1 when there is
 * one, 0 when the container ended (it is left), or -EBADMSG.
 */
int stfs_json_more(struct stfs_json *json, char close, bool first);

/* Reads a string literal; its bytes stay in the text. Returns 0 or -EBADMSG. */
int stfs_json_string(struct stfs_json *json, struct stfs_json_string *ret);

/* Reads a member's key and its colon. Returns 0 or -EBADMSG. */
int stfs_json_key(struct stfs_json *json, struct stfs_json_string *ret);

/*
 * Reads a list of whole numbers (as stfs_json_uint): how many into *ret_n, the first two into `head`, and in *ret_text
 * where the first stands. Returns 1, 0 when the value is something else (the place is then unchanged), or -EBADMSG.
 */
int stfs_json_uint_list(struct stfs_json *json, uint64_t head[2], uint32_t *ret_n, const char **ret_text);

/* Reads plain digits without sign, fraction or exponent, 0 to 2^64-1. Returns 0, or -EBADMSG with the place unchanged. */
int stfs_json_uint(struct stfs_json *json, uint64_t *ret);

/* Skips one value of any kind, checking its grammar in full (a number out of double's range is an error). */
int stfs_json_skip(struct stfs_json *json);

/* Demands that only blanks are left. Returns 0 or -EBADMSG. */
int stfs_json_end(struct stfs_json *json);

/* What kind of value comes next, for messages: "a string", "a number", "null" …; static storage. */
const char *stfs_json_kind(struct stfs_json *json);

/* Records an error at the present place; returns -EBADMSG. */
int stfs_json_fail(struct stfs_json *json, const char *what);
