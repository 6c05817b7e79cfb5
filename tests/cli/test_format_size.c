/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>

#include "format_size.h"
#include "run_tests.h"

static const struct {
	uint64_t value;
	const char *size, *count;
} cases[] = {
	{ 0, "0 B", "0" },
	{ 999, "999 B", "999" },
	{ 1000, "1.0 kB", "1.0K" },
	{ 1049, "1.0 kB", "1.0K" },
	{ 1050, "1.1 kB", "1.1K" },
	{ 99949, "99.9 kB", "99.9K" },
	{ 99950, "100 kB", "100K" },
	{ 999499, "999 kB", "999K" },
	{ 999500, "1.0 MB", "1.0M" },
	{ 7000000000, "7.0 GB", "7.0B" },
	{ UINT64_C(999500000000000), "1.0 PB", "1.0P" },
	{ UINT64_MAX, "18.4 EB", "18.4E" },
};

START_TEST(test_rounding)
{
	ck_assert_str_eq(stfs_format_size(cases[_i].value).text, cases[_i].size);
	ck_assert_str_eq(stfs_format_count(cases[_i].value).text, cases[_i].count);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, test_rounding, 0, (int)(sizeof(cases) / sizeof(cases[0])));
	return run_tests("format_size", tcase);
}
