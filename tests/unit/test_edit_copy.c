/* SPDX-License-Identifier: Apache-2.0 */
/* Copies within the mount, and the times that copies keep. */
#include "edit_fixture.h"
#include "run_tests.h"

START_TEST(copying_takes_what_is_shown)
{
	struct stfs_file *from, *to;
	uint64_t copied = 0;
	int r;

	/* A NumPy file has more in it than the tensor's bytes. */
	ck_assert_int_eq(put("model/big/dtype", "I8\n"), 0);
	ck_assert_int_eq(stfs_view_open(view, ino_of("model/big/data.npy"), &from), 0);
	to = open_write("copy.npy", true);
	ck_assert_int_eq(stfs_file_copy(from, 0, to, 0, 200000, &copied), -EOPNOTSUPP);
	stfs_file_close(from);
	stfs_file_close(to);
	/* Opened before the edit, read after it. */
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model"), NULL), 0);
	ck_assert_int_eq(stfs_view_open(view, ino_of("model/big/data"), &from), 0);
	ck_assert_int_eq(write_at("model/big/data", false, "XYZ", 3, 0), 0);
	to = open_write("copy", true);
	r = stfs_file_copy(from, 0, to, 0, 100000, &copied);
	ck_assert_int_eq(r, -EOPNOTSUPP);
	stfs_file_close(from);
	stfs_file_close(to);
}
END_TEST

START_TEST(copying_over_a_tensor_is_a_reference)
{
	struct stfs_file *from, *to;
	uint64_t copied = 0;

	ck_assert_int_eq(do_mkdir("model/c"), 0);
	ck_assert_int_eq(stfs_view_open(view, ino_of("model/big/data"), &from), 0);
	to = open_write("model/a/w/data", true);
	ck_assert_int_eq(stfs_file_copy(from, 0, to, 0, 100000, &copied), 0);
	ck_assert_uint_eq(copied, 100000);
	stfs_file_close(from);
	stfs_file_close(to);
	for (int i = 0; i < 2; i++) {
		struct stfs_buf a = bytes_of("model/big/data"), b = bytes_of("model/a/w/data");

		ck_assert(b.len == a.len && memcmp(a.data, b.data, a.len) == 0);
		stfs_buf_fini(&a);
		stfs_buf_fini(&b);
		reopen();
	}
}
END_TEST

START_TEST(times_come_back)
{
	struct stfs_file *from, *to;
	uint64_t copied = 0;
	struct timespec before;
	char *bytes = calloc(1, 20000);

	/* cp -p of something large. */
	ck_assert_int_eq(write_at("large", true, bytes, 20000, 0), 0);
	set_mtime("large", 1000000000);
	/* A copy by reference. */
	ck_assert_int_eq(stfs_view_open(view, ino_of("model/big/data"), &from), 0);
	to = open_write("copy", true);
	ck_assert_int_eq(stfs_file_copy(from, 0, to, 0, 100000, &copied), 0);
	stfs_file_close(from);
	stfs_file_close(to);
	before = mtime_of("copy");
	usleep(1100000);
	reopen();
	ck_assert_int_eq(mtime_of("large").tv_sec, 1000000000);
	ck_assert_int_eq(mtime_of("copy").tv_sec, before.tv_sec);
	/* And what is written on is newer. */
	ck_assert_int_eq(write_at("large", false, "x", 1, 19999), 0);
	reopen();
	ck_assert_int_gt(mtime_of("large").tv_sec, 1000000000);
	free(bytes);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, copying_takes_what_is_shown);
	tcase_add_test(tcase, copying_over_a_tensor_is_a_reference);
	tcase_add_test(tcase, times_come_back);
	tcase_set_timeout(tcase, 60);
	return run_tests("edit_copy", tcase);
}
