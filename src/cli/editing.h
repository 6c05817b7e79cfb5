/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands that change a model without a mount share: opening it, and staging or committing what they did. */
#pragma once

#include "source.h"
#include "workspace.h"

/* The rows these commands have in common, at the end of their tables. */
#define STFS_EDIT_ROWS                                                                                   \
	{ "--commit", "commit at once, with all that was staged before" },                               \
		{ "-q, --quiet", "with --commit: no progress bar, and no line about what was written" }, \
		STFS_SOURCE_ROWS

/* A model being edited. Embedded, released with stfs_editing_fini. */
struct stfs_editing {
	const struct stfs_command *command; /* borrowed */
	struct stfs_edit_options options;
	bool commit, quiet;
	const char *source; /* borrowed */
	struct stfs_workspace workspace;
	char *holder;
	struct stfs_log *log; /* on stderr */
};

/* Releases what it holds; takes one that was never opened. */
void stfs_editing_fini(struct stfs_editing *editing);

/* stfs_edit_next that takes the rows above itself. */
int stfs_editing_next(struct stfs_args *args, struct stfs_editing *editing, int *ret_code);

/*
 * Opens `source` (borrowed) whatever state it is in: for commands that look at what is staged, or get rid of it. Returns an
 * enum stfs_exit, after saying why not. STFS_EXIT_MOUNTPOINT without a word: it is mounted at *ret_point, which the caller
 * frees, and is to be asked there.
 */
int stfs_editing_look(struct stfs_editing *editing, const char *source, char **ret_point);

/* Opens `source` (borrowed) for changes. Returns an enum stfs_exit, after saying why not. */
int stfs_editing_open(struct stfs_editing *editing, const char *source);

/* Says why the workspace cannot be changed. Returns an enum stfs_exit, STFS_EXIT_OK when it can. */
int stfs_editing_refuse(const struct stfs_editing *editing);

/* Says that `what` (escaped) cannot be done, and why: -errno. Returns an enum stfs_exit. */
int stfs_editing_fail(int error, const char *what);

/* Makes what was staged durable, or commits it when that was asked for. Returns an enum stfs_exit. */
int stfs_editing_end(struct stfs_editing *editing);
