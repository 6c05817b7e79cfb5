/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the program: each is one file, cmd_NAME.c, and one row of the table in main.c. */
#pragma once

#include <stdio.h>

#include "macros.h"

/* What the program exits with; --help and the man page list them. */
enum stfs_exit {
	STFS_EXIT_OK = 0,
	STFS_EXIT_MODEL = 1,      /* the model breaks the format, or cannot be committed */
	STFS_EXIT_USAGE = 2,      /* the command line is wrong */
	STFS_EXIT_SOURCE = 3,     /* the source cannot be read */
	STFS_EXIT_MOUNTPOINT = 4, /* the mountpoint cannot be used, or is no mount, or is busy, as a model can be */
	STFS_EXIT_FUSE = 5,       /* FUSE refused the mount */
	STFS_EXIT_OTHER = 6,      /* anything else: memory, an output that cannot be written */
};

/* One line of a command's --help: "  NAME  TEXT". */
struct stfs_option_help {
	const char *name; /* "-l, --long"; NULL ends a list */
	const char *text;
};

/* A command. All strings are static. */
struct stfs_command {
	const char *name;                       /* the word that calls it */
	const char *usage;                      /* what stands after the program's name: "ls [-l] SOURCE" */
	const char *summary;                    /* one line, without a full stop */
	const struct stfs_option_help *options; /* its switches, ending with a NULL name; may be NULL */
	const char *notes;                      /* more lines for --help, each with its newline; may be NULL */
	void (*print_more)(FILE *out);          /* prints what a string cannot hold; may be NULL */

	/*
	 * Runs it. argv[0] is the command's name, so that getopt_long works as it stands (args.h). Returns an enum
	 * stfs_exit. "--help" before any other argument was handled already.
	 */
	int (*run)(int argc, char **argv);
};

extern const struct stfs_command stfs_cmd_cat, stfs_cmd_check, stfs_cmd_commit, stfs_cmd_convert, stfs_cmd_diff,
	stfs_cmd_discard, stfs_cmd_info, stfs_cmd_ls, stfs_cmd_mount, stfs_cmd_mv, stfs_cmd_put, stfs_cmd_rm,
	stfs_cmd_rm_metadata, stfs_cmd_set_metadata, stfs_cmd_status, stfs_cmd_umount;

/* Prints "safetensorsfs: SENTENCE" and where to find help, to stderr. Returns STFS_EXIT_USAGE. */
int stfs_usage_error(const struct stfs_command *command, const char *fmt, ...) STFS_PRINTF(2, 3);

/*
 * The usage error for what getopt_long answered with '?' or ':', when `opterr` is 0 and the short options start with
 * ':'; to be called directly after getopt_long. Returns STFS_EXIT_USAGE.
 */
int stfs_getopt_error(const struct stfs_command *command, int answer, char **argv);

/* Prints "safetensorsfs: SENTENCE" to stderr and returns `code`. Foreign text must have been escaped (stfs_quote). */
int stfs_exit_with(enum stfs_exit code, const char *fmt, ...) STFS_PRINTF(2, 3);

/* The exit code for what stfs_model_open returned: 0, or -errno. */
enum stfs_exit stfs_exit_of_open(int error);

/* Prints a list of options, one line each, names padded to one column. */
void stfs_print_options(FILE *out, const struct stfs_option_help *options);

/* Prints what each exit code means, one line each. */
void stfs_print_exit_codes(FILE *out);

/* Prints a command's --help to stdout; for a command that met it among its options. Returns an enum stfs_exit. */
int stfs_print_command_help(const struct stfs_command *command);

/* Flushes stdout and tells whether all of it was written: STFS_EXIT_OK, or STFS_EXIT_OTHER after saying so. */
enum stfs_exit stfs_finish_stdout(void);
