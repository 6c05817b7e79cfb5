/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>

#include "parse_size.h"
#include "run_tests.h"

/* 0 bytes: refused. */
static const struct {
	const char *text;
	uint64_t bytes;
} cases[] = {
	{ "1", 1 },
	{ "500000", 500000 },
	{ "5GB", 5000000000 },
	{ "5gb", 5000000000 },
	{ "5 GB", 5000000000 },
	{ "500MB", 500000000 },
	{ "1.5kb", 1500 },
	{ "0.5KB", 500 },
	{ ".5KB", 0 },
	{ "12B", 12 },
	{ "1KiB", 1024 },
	{ "1.5MiB", 1572864 },
	{ "2gib", UINT64_C(2) << 30 },
	{ "1TiB", UINT64_C(1) << 40 },
	{ "3PB", UINT64_C(3000000000000000) },
	{ "1PiB", UINT64_C(1) << 50 },
	{ "", 0 },
	{ "0", 0 },
	{ "0.5", 0 },
	{ "GB", 0 },
	{ "-5GB", 0 },
	{ "+5GB", 0 },
	{ "5G", 0 },
	{ "5GBs", 0 },
	{ "5 GB ", 0 },
	{ "1e3", 0 },
	{ "0x10", 0 },
	{ "nan", 0 },
	{ "1.2.3MB", 0 },
	{ "99999999999PB", 0 },
};

START_TEST(test_sizes)
{
	uint64_t bytes = 0;

	ck_assert_int_eq(stfs_parse_size(cases[_i].text, &bytes), cases[_i].bytes != 0);
	ck_assert_uint_eq(bytes, cases[_i].bytes);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, test_sizes, 0, (int)(sizeof(cases) / sizeof(cases[0])));
	return run_tests("parse_size", tcase);
}
