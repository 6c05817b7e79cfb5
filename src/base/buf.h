/* SPDX-License-Identifier: Apache-2.0 */
/* A growable byte buffer. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "cleanup.h"
#include "macros.h"
#include "slice.h"

/* Embedded; all zero is an empty buffer. `data` has a NUL after `len` bytes once anything was appended. */
struct stfs_buf {
	char *data;
	size_t len;
	size_t cap;
};

/* Releases the memory and leaves an empty buffer. */
void stfs_buf_fini(struct stfs_buf *buf);

/* Makes room for `extra` more bytes and a NUL. Returns 0 or -ENOMEM. */
int stfs_buf_reserve(struct stfs_buf *buf, size_t extra) STFS_MUST_CHECK;

/* Appends `len` bytes of `data` (borrowed). Returns 0 or -ENOMEM, in which case the buffer is as before. */
int stfs_buf_append(struct stfs_buf *buf, const void *data, size_t len) STFS_MUST_CHECK;

/* Appends one byte. Returns 0 or -ENOMEM. */
int stfs_buf_append_char(struct stfs_buf *buf, char c) STFS_MUST_CHECK;

/* Appends a C string (borrowed). Returns 0 or -ENOMEM. */
int stfs_buf_append_str(struct stfs_buf *buf, const char *s) STFS_MUST_CHECK;

/* Appends formatted text. Returns 0 or -ENOMEM. */
int stfs_buf_printf(struct stfs_buf *buf, const char *fmt, ...) STFS_PRINTF(2, 3) STFS_MUST_CHECK;

/* The content as a slice, valid until the buffer changes. */
static inline struct stfs_slice stfs_buf_slice(const struct stfs_buf *buf)
{
	return (struct stfs_slice){ buf->data, buf->len };
}

#define _cleanup_buf_ _cleanup_(stfs_buf_fini)
