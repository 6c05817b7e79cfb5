/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <string.h>

#include "quote.h"

#define OPTION_COLUMN 24 /* width of the names in --help */

static const struct stfs_option_help exit_codes[] = {
	{ "0", "done: mounted, sound, or committed" },
	{ "1", "the model breaks the format, has no such tensor, or cannot be committed" },
	{ "2", "the command line is wrong" },
	{ "3", "the source cannot be read, or was changed" },
	{ "4", "the mountpoint cannot be used, is no mount, or is busy; the model is edited elsewhere" },
	{ "5", "FUSE refused the mount (no /dev/fuse, no permission)" },
	{ "6", "anything else (memory, an output that cannot be written)" },
	{ NULL, NULL },
};

STFS_PRINTF(1, 0) static void print_sentence(const char *fmt, va_list args)
{
	fputs("safetensorsfs: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
}

int stfs_usage_error(const struct stfs_command *command, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print_sentence(fmt, args);
	va_end(args);
	if (command)
		fprintf(stderr, "Try 'safetensorsfs %s --help'.\n", command->name);
	else
		fputs("Try 'safetensorsfs --help'.\n", stderr);
	return STFS_EXIT_USAGE;
}

int stfs_getopt_error(const struct stfs_command *command, int answer, char **argv)
{
	/* A wrong long option is the argument before optind; a short one may stand anywhere in a cluster. */
	const char *given = argv[optind - 1];
	char letter[] = { '-', (char)optopt, '\0' };
	struct stfs_quoted shown;

	shown = stfs_quote(stfs_slice_of(optopt > 0 && strncmp(given, "--", 2) != 0 ? letter : given));
	if (answer == ':')
		return stfs_usage_error(command, "option %s needs a value", shown.text);
	return stfs_usage_error(command, "unknown option %s", shown.text);
}

int stfs_exit_with(enum stfs_exit code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print_sentence(fmt, args);
	va_end(args);
	return (int)code;
}

enum stfs_exit stfs_exit_of_open(int error)
{
	switch (error) {
	case 0:
		return STFS_EXIT_OK;
	case -EBADMSG:
	case -EFBIG:
	case -EOPNOTSUPP:
		return STFS_EXIT_MODEL;
	case -ENOMEM:
		return STFS_EXIT_OTHER;
	default:
		return STFS_EXIT_SOURCE;
	}
}

void stfs_print_options(FILE *out, const struct stfs_option_help *options)
{
	for (; options && options->name; options++)
		fprintf(out, "  %-*s  %s\n", OPTION_COLUMN, options->name, options->text);
}

enum stfs_exit stfs_finish_stdout(void)
{
	/* A reader that has seen enough (head) closes the pipe: nothing to complain about. */
	if (fflush(stdout) == 0 && !ferror(stdout))
		return STFS_EXIT_OK;
	if (errno == EPIPE)
		return STFS_EXIT_OK;
	return (enum stfs_exit)stfs_exit_with(STFS_EXIT_OTHER, "cannot write the output: %s", strerror(errno));
}

void stfs_print_exit_codes(FILE *out)
{
	stfs_print_options(out, exit_codes);
}

int stfs_print_command_help(const struct stfs_command *command)
{
	printf("Usage: safetensorsfs %s\n\n%s.\n", command->usage, command->summary);
	if (command->options) {
		puts("\nOptions:");
		stfs_print_options(stdout, command->options);
	}
	if (command->print_more)
		command->print_more(stdout);
	if (command->notes)
		printf("\n%s", command->notes);
	puts("\nExit status:");
	stfs_print_exit_codes(stdout);
	return (int)stfs_finish_stdout();
}
