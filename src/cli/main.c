/* SPDX-License-Identifier: Apache-2.0 */
/* Picks the command; the first argument is one of their names, or a source to mount. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>

#include "command.h"
#include "quote.h"

static const struct stfs_command *const commands[] = {
	&stfs_cmd_mount,  &stfs_cmd_umount,  &stfs_cmd_ls,           &stfs_cmd_info,
	&stfs_cmd_cat,    &stfs_cmd_check,   &stfs_cmd_status,       &stfs_cmd_diff,
	&stfs_cmd_commit, &stfs_cmd_discard, &stfs_cmd_mv,           &stfs_cmd_rm,
	&stfs_cmd_put,    &stfs_cmd_convert, &stfs_cmd_set_metadata, &stfs_cmd_rm_metadata,
};

static const struct stfs_command *find_command(const char *name)
{
	for (size_t i = 0; i < STFS_ARRAY_SIZE(commands); i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static bool is_help(const char *arg)
{
	return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

static int print_help(void)
{
	puts("Usage: safetensorsfs SOURCE [MOUNTPOINT] [-o OPTIONS] [-f]\n"
	     "       safetensorsfs COMMAND ...\n\n"
	     "Mounts a .safetensors model (a file, or a directory of shards) as a tree of files, or looks into it.\n\n"
	     "Commands:");
	for (size_t i = 0; i < STFS_ARRAY_SIZE(commands); i++) {
		printf("  %s\n", commands[i]->usage);
		printf("      %s\n", commands[i]->summary);
	}
	puts("\nOptions:\n"
	     "  -h, --help                this text; 'safetensorsfs COMMAND --help' tells more of a command\n"
	     "  -V, --version             the version\n\n"
	     "A source that has the name of a command is written ./NAME.\n\n"
	     "Exit status:");
	stfs_print_exit_codes(stdout);
	return (int)stfs_finish_stdout();
}

static int print_version(void)
{
	printf("safetensorsfs %s\n", STFS_VERSION);
	return (int)stfs_finish_stdout();
}

/* `safetensorsfs help [COMMAND]` */
static int run_help(int argc, char **argv)
{
	const struct stfs_command *command;

	if (argc < 2)
		return print_help();
	command = find_command(argv[1]);
	if (!command)
		return stfs_usage_error(NULL, "there is no command %s", stfs_quote(stfs_slice_of(argv[1])).text);
	return stfs_print_command_help(command);
}

static int run_command(const struct stfs_command *command, int argc, char **argv)
{
	/* Not -h: it is an option of some commands. */
	if (argc > 1 && strcmp(argv[1], "--help") == 0)
		return stfs_print_command_help(command);
	if (argc > 1 && strcmp(argv[1], "--version") == 0)
		return print_version();
	return command->run(argc, argv);
}

/*
 * A model opened as descriptor 2 would get our messages: what a caller closed is opened as /dev/null. The wrong way round, so
 * that an output that goes nowhere is still an error.
 */
static bool open_standard_files(void)
{
	static const int modes[] = { O_WRONLY, O_RDONLY, O_RDONLY };

	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) != fd)
			return false;
	return true;
}

/* Each file of a model stays open, and a set may have more of them than a process is given for a start. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return; /* then fewer files it is */
}

int main(int argc, char **argv)
{
	const struct stfs_command *command;

	/* A file over the limit of its size is an error then, and not the end in the middle of a commit. */
	if (!open_standard_files() || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		return STFS_EXIT_OTHER;
	raise_file_limit();
	if (argc < 2)
		return stfs_usage_error(NULL, "nothing to do: name a model to mount, or a command");
	if (is_help(argv[1]))
		return print_help();
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
		return print_version();
	if (strcmp(argv[1], "help") == 0)
		return run_help(argc - 1, argv + 1);
	command = find_command(argv[1]);
	if (command)
		return run_command(command, argc - 1, argv + 1);
	return stfs_cmd_mount.run(argc, argv);
}
