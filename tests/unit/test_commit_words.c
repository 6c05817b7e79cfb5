/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commit_words.h"
#include "run_tests.h"

static const struct {
	const char *line;
	struct stfs_commit_options want;
} good[] = {
	{ "commit", { .dry_run = false } },
	{ "commit\n", { .dry_run = false } },
	{ "commit sort format=pt\n", { .plan = { .sort = true, .format_pt = true } } },
	{ "commit  dry-run ", { .dry_run = true } },
	{ "commit single output=/a b/c d\n", { .plan = { .reshape = true }, .output = "/a b/c d" } },
	{ "commit max-shard-size=5000 output=/x/ sort",
	  { .plan = { .reshape = true, .max_shard_size = 5000 }, .output = "/x/ sort" } },
};

START_TEST(what_is_understood)
{
	const struct stfs_commit_options *want = &good[_i].want;
	struct stfs_commit_options options = { .output = "untouched" };
	char *line = strdup(good[_i].line);

	ck_assert_int_eq(stfs_commit_words_parse(line, &options), 0);
	ck_assert_int_eq(options.dry_run, want->dry_run);
	ck_assert_int_eq(options.plan.sort, want->plan.sort);
	ck_assert_int_eq(options.plan.reshape, want->plan.reshape);
	ck_assert_int_eq(options.plan.format_pt, want->plan.format_pt);
	ck_assert_uint_eq(options.plan.max_shard_size, want->plan.max_shard_size);
	ck_assert_int_eq(options.output != NULL, want->output != NULL);
	if (want->output)
		ck_assert_str_eq(options.output, want->output);
	free(line);
}
END_TEST

static const char *const bad[] = {
	"",
	"\n",
	"sort",
	" commit",
	"commits",
	"commit now",
	"commit\ncommit",
	"commit output=",
	"commit output=x",
	"commit max-shard-size=",
	"commit max-shard-size=0",
	"commit max-shard-size=1k",
	"commit max-shard-size=-1",
	"commit max-shard-size=9999999999999999999",
	"commit format=tf",
	"commit Sort",
};

START_TEST(what_is_not)
{
	struct stfs_commit_options options = { .output = "untouched" };
	char *line = strdup(bad[_i]);

	ck_assert_int_eq(stfs_commit_words_parse(line, &options), -EINVAL);
	ck_assert_str_eq(options.output, "untouched");
	free(line);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, what_is_understood, 0, (int)STFS_ARRAY_SIZE(good));
	tcase_add_loop_test(tcase, what_is_not, 0, (int)STFS_ARRAY_SIZE(bad));
	return run_tests("commit_words", tcase);
}
