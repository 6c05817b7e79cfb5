/* SPDX-License-Identifier: Apache-2.0 */
/* The `s` command of sed, for names. */
#pragma once

#include <regex.h>
#include <stdbool.h>

#include "buf.h"
#include "diag.h"
#include "slice.h"

/* A parsed expression. Embedded, released with stfs_substitute_fini. */
struct stfs_substitute {
	regex_t regex;
	bool compiled;               /* `regex` counts */
	struct stfs_buf replacement; /* as written, between the delimiters */
	bool all;                    /* every match, not the first only */
};

/*
 * Reads "s/REGEX/REPLACEMENT/FLAGS": an extended regular expression of POSIX; any character may stand for '/'. In the
 * replacement & and \0 are the match, \1 to \9 its groups, and a backslash takes the meaning from what follows. Flags:
 * g for every match, i for letters of either case. Returns 0, -EINVAL with a sentence, or -ENOMEM.
 */
int stfs_substitute_init(struct stfs_substitute *substitute, const char *expression, struct stfs_diag *diag);

/* Makes regular expressions of this process see characters of UTF-8, which names are, whatever the user's locale is. */
void stfs_use_utf8_names(void);

/* Releases the memory; takes an all-zero one too. */
void stfs_substitute_fini(struct stfs_substitute *substitute);

/*
 * Appends `text` as the expression makes it to `buf`. Returns 1 when it matched, 0 when it did not (nothing is appended;
 * so for a text with a NUL in it), or -ENOMEM.
 */
int stfs_substitute_apply(const struct stfs_substitute *substitute, struct stfs_slice text, struct stfs_buf *buf)
	STFS_MUST_CHECK;
