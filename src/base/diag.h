/* SPDX-License-Identifier: Apache-2.0 */
/* One sentence for a human, beside the errno of a failed call. Never allocates. */
#pragma once

#include "macros.h"

/* Embedded; all zero is "nothing said". */
struct stfs_diag {
	char text[1024];
};

/* Stores a sentence, cut to fit; does nothing when `diag` is NULL. Foreign text must have been escaped (stfs_quote). */
void stfs_diag_set(struct stfs_diag *diag, const char *fmt, ...) STFS_PRINTF(2, 3);

/* stfs_diag_set that returns `error` (negative errno), so that a check fails in one line. */
int stfs_fail(struct stfs_diag *diag, int error, const char *fmt, ...) STFS_PRINTF(3, 4);
