/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cleanup.h"
#include "faulty_os.h"
#include "run_tests.h"

static int scratch(void)
{
	int fd = memfd_create("stfs-unit-os", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

START_TEST(test_full)
{
	const struct stfs_os *os = stfs_os_real();
	_cleanup_close_ int fd = scratch();
	char data[8] = "xxxxxxx";
	size_t written = 99;

	ck_assert_int_eq(stfs_os_write_full(os, fd, "0123456789", 10, 5, &written), 0);
	ck_assert_uint_eq(written, 10);
	ck_assert_int_eq(stfs_os_read_full(os, fd, data, 4, 8), 0);
	ck_assert_str_eq(data, "3456xxx");
	ck_assert_int_eq(stfs_os_read_full(os, fd, data, 4, 12), -EIO);
	ck_assert_int_eq(stfs_os_read_full(os, fd, data, 0, 99), 0);
	ck_assert_int_eq(stfs_os_read_full(os, fd, data, 1, UINT64_MAX), -EINVAL);
	ck_assert_int_eq(stfs_os_write_full(os, fd, "x", 1, UINT64_MAX, &written), -EINVAL);
	ck_assert_uint_eq(written, 0);
	ck_assert_int_eq(stfs_os_write_full(os, fd, NULL, 0, 0, NULL), 0);
}
END_TEST

/* Short and interrupted calls are made whole; an error says how far it got. */
START_TEST(test_faults)
{
	_cleanup_close_ int fd = scratch();
	struct faulty_os faulty;
	char data[10];
	size_t written;

	faulty_os_init(&faulty, stfs_os_real());
	/* The write is cut short, then interrupted; then the read. */
	for (unsigned i = 0; i < 4; i++) {
		faulty_os_plant(&faulty, i % 2 ? FAULTY_ONCE : FAULTY_SHORT, 1 + i / 2, EINTR);
		ck_assert_int_eq(stfs_os_write_full(&faulty.os, fd, "0123456789", 10, 0, &written), 0);
		ck_assert_uint_eq(written, 10);
		ck_assert_int_eq(stfs_os_read_full(&faulty.os, fd, data, 10, 0), 0);
		ck_assert_mem_eq(data, "0123456789", 10);
		ck_assert_uint_eq(faulty.fired, 1);
	}
	faulty_os_plant(&faulty, FAULTY_SHORT, 1, 0);
	ck_assert_int_eq(stfs_os_write_full(&faulty.os, fd, "0123456789", 10, 0, &written), 0);
	ck_assert_uint_eq(faulty.calls, 2);
	faulty_os_plant(&faulty, FAULTY_FROM, 1, ENOSPC);
	ck_assert_int_eq(stfs_os_write_full(&faulty.os, fd, "0123456789", 10, 0, &written), -ENOSPC);
	ck_assert_uint_eq(written, 0);
	ck_assert_int_eq(stfs_os_read_full(&faulty.os, fd, data, 10, 0), -ENOSPC);
	ck_assert_str_eq(faulty_call_name(faulty.struck), "pread");
}
END_TEST

/* Each entry of the table does what its name says. */
START_TEST(test_table)
{
	const struct stfs_os *os = stfs_os_real();
	char path[] = "/tmp/stfs-unit-os-XXXXXX";
	_cleanup_close_ int dir = -1, fd = -1;
	struct stat st;

	ck_assert_ptr_nonnull(mkdtemp(path));
	dir = os->openat(os->user, AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	ck_assert_int_ge(dir, 0);
	ck_assert_int_eq(os->mkdirat(os->user, dir, "d", 0700), 0);
	ck_assert_int_eq(os->unlinkat(os->user, dir, "d", AT_REMOVEDIR), 0);
	fd = os->openat(os->user, dir, "a", O_RDWR | O_CREAT | O_EXCL, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(os->ftruncate(os->user, fd, 5), 0);
	ck_assert_int_eq(os->fallocate(os->user, fd, 0, 0, 9), 0);
	ck_assert_int_eq(os->fchmod(os->user, fd, 0640), 0);
	ck_assert_int_eq(os->fchown(os->user, fd, geteuid(), getegid()), 0);
	ck_assert_int_eq(os->fsync(os->user, fd), 0);
	ck_assert_int_eq(os->fdatasync(os->user, fd), 0);
	ck_assert_int_eq(os->fstat(os->user, fd, &st), 0);
	ck_assert_int_eq(st.st_size, 9);
	ck_assert_uint_eq(st.st_mode & 07777, 0640);
	ck_assert_int_eq(os->renameat2(os->user, dir, "a", dir, "b", 0), 0);
	ck_assert_int_eq(os->unlinkat(os->user, dir, "a", 0), -1);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(os->unlinkat(os->user, dir, "b", 0), 0);
	ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("os");

	tcase_add_test(tcase, test_full);
	tcase_add_test(tcase, test_faults);
	tcase_add_test(tcase, test_table);
	return run_tests("os", tcase);
}
