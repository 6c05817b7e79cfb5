/* SPDX-License-Identifier: Apache-2.0 */
/* A borrowed run of bytes: names and values of a model may hold NULs, so they are never C strings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Bytes owned by somebody else; valid as long as the owner says. `p` may be NULL only when `len` is 0. */
struct stfs_slice {
	const char *p;
	size_t len;
};

/* A slice over a C string, without its NUL. */
static inline struct stfs_slice stfs_slice_of(const char *s)
{
	return (struct stfs_slice){ s, strlen(s) };
}

static inline bool stfs_slice_equal(struct stfs_slice a, struct stfs_slice b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

static inline bool stfs_slice_is(struct stfs_slice a, const char *s)
{
	return stfs_slice_equal(a, stfs_slice_of(s));
}

static inline bool stfs_slice_starts(struct stfs_slice a, const char *s)
{
	size_t n = strlen(s);

	return a.len >= n && memcmp(a.p, s, n) == 0;
}

static inline bool stfs_slice_ends(struct stfs_slice a, const char *s)
{
	size_t n = strlen(s);

	return a.len >= n && memcmp(a.p + a.len - n, s, n) == 0;
}

/* Takes what stands before the next `separator` off *rest, and the separator with it; all that is left where there is none. */
static inline struct stfs_slice stfs_slice_cut(struct stfs_slice *rest, char separator)
{
	const char *end = rest->len ? memchr(rest->p, separator, rest->len) : NULL;
	struct stfs_slice piece = { rest->p, end ? (size_t)(end - rest->p) : rest->len };

	*rest = end ? (struct stfs_slice){ end + 1, rest->len - piece.len - 1 } : (struct stfs_slice){ 0 };
	return piece;
}

/* Byte order, as strcmp: negative, 0 or positive. */
static inline int stfs_slice_compare(struct stfs_slice a, struct stfs_slice b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int r = n ? memcmp(a.p, b.p, n) : 0;

	return r ? r : (a.len > b.len) - (a.len < b.len);
}
