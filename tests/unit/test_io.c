/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "io.h"
#include "run_tests.h"

#define PIPE_BYTES 1000000

static int scratch_file(void)
{
	char name[] = "/tmp/stfs-unit-io-XXXXXX";
	int fd = mkstemp(name);

	ck_assert_int_ge(fd, 0);
	unlink(name);
	return fd;
}

START_TEST(test_pread)
{
	_cleanup_close_ int fd = scratch_file();
	char data[8] = "xxxxxxx";

	ck_assert_int_eq(stfs_write_full(fd, "0123456789", 10), 0);
	ck_assert_int_eq(stfs_pread_full(fd, data, 4, 3), 0);
	ck_assert_str_eq(data, "3456xxx");
	ck_assert_int_eq(stfs_pread_full(fd, data, 0, 99), 0);
	/* Short is an error, never a short success. */
	ck_assert_int_eq(stfs_pread_full(fd, data, 4, 7), -EIO);
	ck_assert_int_eq(stfs_pread_full(fd, data, 1, 10), -EIO);
	ck_assert_int_lt(stfs_pread_full(fd, data, 1, UINT64_MAX), 0);
	ck_assert_int_eq(stfs_pread_full(-1, data, 1, 0), -EBADF);
}
END_TEST

static void *drain(void *arg)
{
	static char sink[4096];
	size_t total = 0;
	ssize_t n;

	while ((n = read(*(int *)arg, sink, sizeof(sink))) > 0)
		total += (size_t)n;
	return (void *)total;
}

/* A pipe takes part of what is written: the rest follows. */
START_TEST(test_write_to_pipe)
{
	_cleanup_free_ char *data = calloc(1, PIPE_BYTES);
	pthread_t reader;
	void *total;
	int fds[2];

	ck_assert_ptr_nonnull(data);
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(pthread_create(&reader, NULL, drain, &fds[0]), 0);
	ck_assert_int_eq(stfs_write_full(fds[1], data, PIPE_BYTES), 0);
	close(fds[1]);
	ck_assert_int_eq(pthread_join(reader, &total), 0);
	ck_assert_uint_eq((size_t)total, PIPE_BYTES);
	close(fds[0]);
}
END_TEST

START_TEST(test_write_fails)
{
	int fds[2];

	ck_assert_int_eq(stfs_write_full(-1, "x", 1), -EBADF);
	signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(pipe(fds), 0);
	close(fds[0]);
	ck_assert_int_eq(stfs_write_full(fds[1], "x", 1), -EPIPE);
	close(fds[1]);
}
END_TEST

START_TEST(test_empty_directory)
{
	char path[] = "/tmp/stfs-unit-io-XXXXXX";
	bool empty = false;
	int fd;

	ck_assert_ptr_nonnull(mkdtemp(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(stfs_dir_is_empty(fd, ".", 0, &empty), 0);
	ck_assert(empty);
	ck_assert_int_eq(mkdirat(fd, ".hidden", 0700), 0);
	ck_assert_int_eq(symlinkat(".hidden", fd, "link"), 0);
	ck_assert_int_eq(stfs_dir_is_empty(fd, ".", 0, &empty), 0);
	ck_assert(!empty);
	ck_assert_int_eq(stfs_dir_is_empty(fd, "link", 0, &empty), 0);
	ck_assert(empty);
	/* What fails says nothing. */
	ck_assert_int_eq(stfs_dir_is_empty(fd, "link", O_NOFOLLOW, &empty), -ENOTDIR);
	ck_assert_int_eq(stfs_dir_is_empty(fd, "nowhere", 0, &empty), -ENOENT);
	ck_assert(empty);
	unlinkat(fd, "link", 0);
	unlinkat(fd, ".hidden", AT_REMOVEDIR);
	close(fd);
	ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("io");

	tcase_add_test(tcase, test_pread);
	tcase_add_test(tcase, test_write_to_pipe);
	tcase_add_test(tcase, test_write_fails);
	tcase_add_test(tcase, test_empty_directory);
	return run_tests("io", tcase);
}
