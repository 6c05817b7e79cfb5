/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands that need no mount share: -o, and opening the model. */
#pragma once

#include "args.h"
#include "model.h"

/* The rows these commands have in common, at the end of their tables. */
#define STFS_SOURCE_ROWS                                                                               \
	{ "-o OPTIONS", "how to open the model, joined with ',' (below)" }, { "--help", "this text" }, \
	{                                                                                              \
		NULL, NULL                                                                             \
	}

/* What -o says to commands that edit. Embedded; strings are borrowed from the command line. */
struct stfs_edit_options {
	struct stfs_model_options model;
	const char *stage; /* directory of what is staged, NULL: beside the model */
	bool create;       /* a source that is not there is an empty model */
	bool format_pt;    /* commits write {"format":"pt"} where there is no format */
};

/* Print what -o takes; for stfs_command.print_more of commands that look, and of those that edit. */
void stfs_source_print_help(FILE *out);
void stfs_edit_print_help(FILE *out);

/*
 * stfs_args_next for these commands: takes the common rows itself, so that only the command's own are returned. Values in
 * *options are borrowed from the command line. STFS_ARGS_ERROR means to exit with *ret_code.
 */
int stfs_source_next(struct stfs_args *args, struct stfs_model_options *options, int *ret_code);

/* The same for commands that edit. */
int stfs_edit_next(struct stfs_args *args, struct stfs_edit_options *options, int *ret_code);

/*
 * Opens a model for a command that shows it: findings go to stderr, a few of them. Returns STFS_EXIT_OK, or another code
 * after saying why. The caller frees *ret_model.
 */
int stfs_source_open(const char *source, const struct stfs_model_options *options, struct stfs_model **ret_model);

/*
 * Looks once more whether all files of the model are what was opened, so that nothing read from them was a mixture.
 * Returns STFS_EXIT_OK, or STFS_EXIT_SOURCE after saying which file changed.
 */
int stfs_source_check(const struct stfs_model *model);
