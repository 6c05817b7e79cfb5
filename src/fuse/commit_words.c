/* SPDX-License-Identifier: Apache-2.0 */
#include "commit_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHARD_SIZE "max-shard-size="

static int take_shard_size(const char *digits, struct stfs_plan_options *plan)
{
	size_t n = strspn(digits, "0123456789");

	if (n == 0 || n > 18 || digits[n])
		return -EINVAL;
	plan->reshape = true;
	plan->max_shard_size = strtoull(digits, NULL, 10);
	return plan->max_shard_size ? 0 : -EINVAL;
}

static int take_word(const char *word, struct stfs_commit_options *options)
{
	struct stfs_plan_options *plan = &options->plan;

	if (strcmp(word, "sort") == 0)
		plan->sort = true;
	else if (strcmp(word, "single") == 0)
		plan->reshape = true;
	else if (strcmp(word, "format=pt") == 0)
		plan->format_pt = true;
	else if (strcmp(word, "dry-run") == 0)
		options->dry_run = true;
	else if (strncmp(word, SHARD_SIZE, strlen(SHARD_SIZE)) == 0)
		return take_shard_size(word + strlen(SHARD_SIZE), plan);
	else
		return -EINVAL;
	return 0;
}

int stfs_commit_words_parse(char *line, struct stfs_commit_options *ret_options)
{
	struct stfs_commit_options options = { .dry_run = false };
	size_t len = strlen(line);
	char *rest = line, *word;
	int r;

	if (len && line[len - 1] == '\n')
		line[--len] = '\0';
	if (strchr(line, '\n'))
		return -EINVAL;
	word = strsep(&rest, " ");
	r = strcmp(word, "commit") == 0 ? 0 : -EINVAL;
	while (r == 0 && rest) {
		if (strncmp(rest, "output=", strlen("output=")) == 0) {
			options.output = rest + strlen("output=");
			r = options.output[0] == '/' ? 0 : -EINVAL;
			break;
		}
		word = strsep(&rest, " ");
		if (*word)
			r = take_word(word, &options);
	}
	if (r == 0)
		*ret_options = options;
	return r;
}
