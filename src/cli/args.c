/* SPDX-License-Identifier: Apache-2.0 */
#include "args.h"

#include <stdbool.h>
#include <string.h>

#define LONG_BASE 256 /* a long switch of row n is answered as LONG_BASE + n, apart from any letter */

/* The letter of a row, or 0. */
static char row_letter(const char *name)
{
	return name[0] == '-' && name[1] != '-' ? name[1] : '\0';
}

static bool row_has_value(const char *name)
{
	const char *last = strrchr(name, ' ');

	return last && last[1] != '-';
}

static void add_long(struct stfs_args *args, int row, size_t *n_longs)
{
	const char *name = args->command->options[row].name;
	const char *word = strstr(name, "--");
	char *copy = args->names[row];

	if (!word)
		return;
	word += 2;
	snprintf(copy, sizeof(args->names[row]), "%.*s", (int)strcspn(word, " "), word);
	args->longs[(*n_longs)++] = (struct option){
		.name = copy,
		.has_arg = row_has_value(name) ? required_argument : no_argument,
		.val = LONG_BASE + row,
	};
}

static void add_letter(struct stfs_args *args, int row, size_t *n_shorts)
{
	const char *name = args->command->options[row].name;

	if (!row_letter(name))
		return;
	args->shorts[(*n_shorts)++] = row_letter(name);
	if (row_has_value(name))
		args->shorts[(*n_shorts)++] = ':';
}

void stfs_args_init(struct stfs_args *args, const struct stfs_command *command, int argc, char **argv)
{
	size_t n_longs = 0, n_shorts = 0;

	*args = (struct stfs_args){ .command = command, .argc = argc, .argv = argv };
	args->shorts[n_shorts++] = ':'; /* a missing value is told apart from an unknown letter */
	for (int row = 0; row < STFS_ARGS_MAX && command->options[row].name; row++) {
		add_letter(args, row, &n_shorts);
		add_long(args, row, &n_longs);
	}
	optind = 1;
	opterr = 0;
}

int stfs_args_next(struct stfs_args *args)
{
	int answer = getopt_long(args->argc, args->argv, args->shorts, args->longs, NULL);

	if (answer == -1)
		return STFS_ARGS_END;
	if (answer == '?' || answer == ':') {
		stfs_getopt_error(args->command, answer, args->argv);
		return STFS_ARGS_ERROR;
	}
	if (answer >= LONG_BASE)
		return answer - LONG_BASE;
	for (int row = 0; args->command->options[row].name; row++)
		if (row_letter(args->command->options[row].name) == answer)
			return row;
	return STFS_ARGS_ERROR;
}
