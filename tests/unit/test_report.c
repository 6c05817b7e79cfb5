/* SPDX-License-Identifier: Apache-2.0 */
/* Findings, and the sentence beside an errno. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checked.h"
#include "diag.h"
#include "report.h"
#include "run_tests.h"

struct told {
	unsigned warnings, violations;
	char last[200];
};

static void tell(void *user, enum stfs_severity severity, const char *file, const char *sentence)
{
	struct told *told = user;

	if (severity == STFS_VIOLATION)
		told->violations++;
	else
		told->warnings++;
	snprintf(told->last, sizeof(told->last), "%s: %s", file, sentence);
}

START_TEST(test_findings)
{
	struct told told = { 0 };
	struct stfs_report report = { .emit = tell, .user = &told, .file = "m" };

	stfs_warn(&report, "%s is odd", "x");
	ck_assert_str_eq(told.last, "m: x is odd");
	stfs_violation(&report, "%d is wrong", 7);
	ck_assert_str_eq(told.last, "m: 7 is wrong");
	ck_assert_uint_eq(report.warnings, 1);
	ck_assert_uint_eq(report.violations, 1);
	report = (struct stfs_report){ 0 };
	stfs_violation(&report, "nobody is told");
	ck_assert_uint_eq(report.violations, 1);
	ck_assert_str_eq(told.last, "m: 7 is wrong");
}
END_TEST

static unsigned calls;

static unsigned count_call(void)
{
	return ++calls;
}

/* Beyond the limit findings are counted, and their arguments are not computed any more. */
START_TEST(test_limit)
{
	struct told told = { 0 };
	struct stfs_report report = { .emit = tell, .user = &told, .file = "m" };

	for (int i = 0; i < 3 * STFS_REPORT_MAX; i++)
		stfs_violation(&report, "%u", count_call());
	stfs_warn(&report, "%s", "its own limit");
	ck_assert_uint_eq(report.violations, 3 * STFS_REPORT_MAX);
	ck_assert_uint_eq(told.violations, STFS_REPORT_MAX);
	ck_assert_uint_eq(calls, STFS_REPORT_MAX);
	ck_assert_uint_eq(told.warnings, 1);
}
END_TEST

START_TEST(test_diag)
{
	struct stfs_diag diag = { "before" };
	char longer[2 * sizeof(diag.text)];

	ck_assert_int_eq(stfs_fail(&diag, -EIO, "%s broke", "it"), -EIO);
	ck_assert_str_eq(diag.text, "it broke");
	ck_assert_int_eq(stfs_fail(NULL, -EPERM, "%s", "nobody asks"), -EPERM);
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	stfs_diag_set(&diag, "%s", longer);
	ck_assert_uint_eq(strlen(diag.text), sizeof(diag.text) - 1);
}
END_TEST

START_TEST(test_checked)
{
	uint64_t v = 1;

	ck_assert(stfs_add(UINT64_MAX - 1, 1, &v) && v == UINT64_MAX);
	ck_assert(!stfs_add(UINT64_MAX, 1, &v) && v == UINT64_MAX);
	ck_assert(stfs_mul(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &v) && v == UINT64_MAX - UINT32_MAX);
	ck_assert(!stfs_mul(UINT64_C(1) << 32, UINT64_C(1) << 32, &v) && v == UINT64_MAX - UINT32_MAX);
	ck_assert(stfs_mul(UINT64_MAX, 0, &v) && v == 0);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("report");

	tcase_add_test(tcase, test_findings);
	tcase_add_test(tcase, test_limit);
	tcase_add_test(tcase, test_diag);
	tcase_add_test(tcase, test_checked);
	return run_tests("report", tcase);
}
