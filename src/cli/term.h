/* SPDX-License-Identifier: Apache-2.0 */
/* What stdout can show. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "slice.h"

struct stfs_term {
	bool tty;
	bool colour; /* a terminal that does escapes, and NO_COLOR is not set */
	bool utf8;   /* the locale's characters are UTF-8 */
	unsigned columns, rows;
};

/* Looks at stdout, the locale and the environment (COLUMNS, LINES, NO_COLOR, TERM). */
void stfs_term_init(struct stfs_term *term);

/* How many columns of a terminal `s` takes; `s` must have gone through stfs_append_printable. */
size_t stfs_term_width(struct stfs_slice s);

/*
 * Appends foreign text with its escapes, cut to `columns` with an ellipsis when it is longer. Returns 0 or -ENOMEM.
 */
int stfs_term_append_cut(const struct stfs_term *term, struct stfs_buf *buf, struct stfs_slice s, size_t columns)
	STFS_MUST_CHECK;
