/* SPDX-License-Identifier: Apache-2.0 */
/* What the main of each program of unit tests ends with. */
#pragma once

#include <check.h>
#include <stdlib.h>

/* Runs `tcase`, which is handed over, as the suite `name`. Returns what main is to return. */
static inline int run_tests(const char *name, TCase *tcase)
{
	Suite *suite = suite_create(name);
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
