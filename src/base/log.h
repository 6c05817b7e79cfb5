/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's log: one line a message, to stderr or, once detached, to syslog. */
#pragma once

#include <stdbool.h>

#include "macros.h"

enum stfs_log_level {
	STFS_LOG_ERROR,
	STFS_LOG_WARNING,
	STFS_LOG_INFO,
};

struct stfs_log; /* opaque; shared by threads, each call is one write */

/*
 * A log that writes to stderr, or to syslog when `to_syslog`. `prefix` (borrowed, must outlive the log) stands before
 * each line. Returns 0 or -ENOMEM; the caller owns *ret_log.
 */
int stfs_log_new(const char *prefix, bool to_syslog, struct stfs_log **ret_log) STFS_MUST_CHECK;

/* Frees the log; takes NULL. */
void stfs_log_free(struct stfs_log *log);

/* Writes one line. Does nothing when `log` is NULL. Foreign text must have been escaped (stfs_quote). */
void stfs_log(struct stfs_log *log, enum stfs_log_level level, const char *fmt, ...) STFS_PRINTF(3, 4);
