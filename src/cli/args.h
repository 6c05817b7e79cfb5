/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The switches of a command, read straight from its help table: what --help prints is what getopt_long is given, so the
 * two cannot drift apart.
 */
#pragma once

#include <getopt.h>

#include "command.h"

#define STFS_ARGS_MAX 16 /* rows of one command's table */

/* What stfs_args_next returns besides rows. */
enum {
	STFS_ARGS_END = -1,
	STFS_ARGS_ERROR = -2,
};

/* Embedded. A row's name is "-l", "--long", "-l, --long", and with a value "-o OPTIONS" or "-w, --width COLUMNS". */
struct stfs_args {
	const struct stfs_command *command; /* borrowed */
	int argc;
	char **argv; /* borrowed; getopt_long moves its operands to the end */
	char names[STFS_ARGS_MAX][32];
	struct option longs[STFS_ARGS_MAX + 1];
	char shorts[2 * STFS_ARGS_MAX + 2];
};

/* Starts at argv[1]. */
void stfs_args_init(struct stfs_args *args, const struct stfs_command *command, int argc, char **argv);

/*
 * The next switch, as the number of its row in command->options; its value is in `optarg`. STFS_ARGS_END when only
 * operands are left (from argv[optind]), STFS_ARGS_ERROR after a usage error was printed.
 */
int stfs_args_next(struct stfs_args *args);
