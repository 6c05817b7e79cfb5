/* SPDX-License-Identifier: Apache-2.0 */
/* A commit as a command runs it: with a progress bar, every culprit on stderr, and a line about what was done. */
#pragma once

#include "args.h"
#include "commit.h"

/* The rows of a command that says how the new files look. */
#define STFS_PLAN_ROWS                                                                                    \
	{ "--sort", "order the tensors as the reference library does" },                                  \
		{ "--max-shard-size SIZE", "divide the model into shards of at most SIZE, such as 5GB" }, \
	{                                                                                                 \
		"--single", "join all shards into one file"                                               \
	}

/*
 * Takes a switch of STFS_PLAN_ROWS, just returned by stfs_args_next as `row`. Returns STFS_EXIT_OK, also for a row that is none
 * of these, or STFS_EXIT_USAGE after saying why.
 */
int stfs_plan_option(const struct stfs_args *args, int row, struct stfs_plan_options *plan);

/*
 * Commits what is staged in `view`. `options` needs no `progress`. With `quiet` there is neither bar nor line. Returns an enum
 * stfs_exit. An interrupt from the terminal stops it before anything is changed, and ends the process.
 */
int stfs_commit_run(struct stfs_view *view, const struct stfs_commit_options *options, bool quiet);

/* The exit code for what a commit returned: 0, or -errno. */
enum stfs_exit stfs_exit_of_commit(int error);
