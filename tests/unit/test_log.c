/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "log.h"
#include "run_tests.h"

/* Tests run in a process of their own, so stderr can be taken. Packets: what one read gives is what one write wrote. */
static int take_stderr(void)
{
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_DIRECT), 0);
	ck_assert_int_eq(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	close(fds[1]);
	return fds[0];
}

static void next_line(int fd, char *ret, size_t size)
{
	ssize_t n = read(fd, ret, size - 1);

	ck_assert_int_ge(n, 0);
	ret[n] = '\0';
}

START_TEST(test_lines)
{
	_cleanup_close_ int fd = take_stderr();
	struct stfs_log *log;
	char line[4096];

	ck_assert_int_eq(stfs_log_new("prog", false, &log), 0);
	errno = EDOM;
	stfs_log(log, STFS_LOG_ERROR, "%s: %d", "first", 1);
	ck_assert_int_eq(errno, EDOM);
	stfs_log(log, STFS_LOG_INFO, "second");
	next_line(fd, line, sizeof(line));
	ck_assert_str_eq(line, "prog: first: 1\n");
	next_line(fd, line, sizeof(line));
	ck_assert_str_eq(line, "prog: second\n");
	stfs_log_free(log);
}
END_TEST

START_TEST(test_long_line_is_cut)
{
	_cleanup_close_ int fd = take_stderr();
	struct stfs_log *log;
	char line[4096], text[4000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(stfs_log_new("prog", false, &log), 0);
	stfs_log(log, STFS_LOG_WARNING, "%s", text);
	next_line(fd, line, sizeof(line));
	ck_assert_uint_gt(strlen(line), 1000);
	ck_assert_uint_lt(strlen(line), sizeof(text));
	ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
	stfs_log(log, STFS_LOG_WARNING, "after");
	next_line(fd, line, sizeof(line));
	ck_assert_str_eq(line, "prog: after\n");
	stfs_log_free(log);
	/* a prefix that fills the line alone */
	ck_assert_int_eq(stfs_log_new(text, false, &log), 0);
	stfs_log(log, STFS_LOG_WARNING, "unseen");
	next_line(fd, line, sizeof(line));
	ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
	stfs_log_free(log);
}
END_TEST

START_TEST(test_syslog_leaves_stderr_alone)
{
	_cleanup_close_ int fd = take_stderr();
	struct stfs_log *log;
	char line[64];

	ck_assert_int_eq(stfs_log_new("prog", true, &log), 0);
	stfs_log(log, STFS_LOG_INFO, "a unit test says %s", "hello");
	stfs_log_free(log);
	stfs_log(NULL, STFS_LOG_INFO, "nowhere");
	stfs_log_free(NULL);
	close(STDERR_FILENO);
	next_line(fd, line, sizeof(line));
	ck_assert_str_eq(line, "");
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("log");

	tcase_add_test(tcase, test_lines);
	tcase_add_test(tcase, test_long_line_is_cut);
	tcase_add_test(tcase, test_syslog_leaves_stderr_alone);
	return run_tests("log", tcase);
}
