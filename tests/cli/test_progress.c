/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "progress.h"

static int terminal, old_stderr;

/* A terminal of 80 columns in the place of stderr; what it shows is read from `terminal`. */
static void setup(void)
{
	const struct winsize size = { .ws_row = 24, .ws_col = 80 };
	int slave;

	terminal = posix_openpt(O_RDWR | O_NOCTTY);
	ck_assert_int_ge(terminal, 0);
	ck_assert_int_eq(grantpt(terminal) | unlockpt(terminal), 0);
	slave = open(ptsname(terminal), O_RDWR | O_NOCTTY);
	ck_assert_int_ge(slave, 0);
	ck_assert_int_eq(ioctl(slave, TIOCSWINSZ, &size), 0);
	old_stderr = dup(STDERR_FILENO);
	ck_assert_int_eq(dup2(slave, STDERR_FILENO), STDERR_FILENO);
	close(slave);
}

static void teardown(void)
{
	dup2(old_stderr, STDERR_FILENO);
	close(old_stderr);
	close(terminal);
}

/* What a terminal shows comes a moment later. */
static const char *shown(void)
{
	struct pollfd ready = { .fd = terminal, .events = POLLIN };
	static char text[1000];
	size_t len = 0;

	while (poll(&ready, 1, 100) == 1) {
		ssize_t n = read(terminal, text + len, sizeof(text) - 1 - len);

		ck_assert_int_gt(n, 0);
		len += (size_t)n;
	}
	text[len] = '\0';
	return text;
}

/* Half of a gigabyte after half a second. */
static void half_way(struct stfs_progress *progress, bool quiet)
{
	stfs_progress_init(progress, quiet);
	stfs_progress_update(progress, 1, 1000000000);
	ck_assert_str_eq(shown(), "");
	usleep(500000);
	stfs_progress_update(progress, 500000000, 1000000000);
}

/* Bytes, rate and time left; it goes away at the end. */
START_TEST(a_bar_on_a_terminal)
{
	struct stfs_progress progress;
	const char *text;
	regex_t regex;

	half_way(&progress, false);
	text = shown();
	ck_assert_int_eq(
		regcomp(&regex,
			"^\r\\[#+\\.+\\]   50%  500(\\.0)? MB of 1\\.0 GB  ([1-9][0-9]{2}(\\.[0-9])? MB|1\\.0 GB)/s  "
			"0:0[0-9] left\x1b\\[K$",
			REG_EXTENDED | REG_NOSUB),
		0);
	ck_assert_msg(regexec(&regex, text, 0, NULL, 0) == 0, "%s", text);
	regfree(&regex);
	stfs_progress_fini(&progress);
	ck_assert_str_eq(shown(), "\r\x1b[K");
}
END_TEST

START_TEST(nothing_where_it_is_quiet)
{
	struct stfs_progress progress;

	half_way(&progress, true);
	stfs_progress_fini(&progress);
	ck_assert_str_eq(shown(), "");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("progress");
	TCase *tcase = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_bar_on_a_terminal);
	tcase_add_test(tcase, nothing_where_it_is_quiet);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
