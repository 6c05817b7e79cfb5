/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy files that are written whole, in parts, or beside the files they stand for. */
#include "edit_fixture.h"
#include "run_tests.h"

START_TEST(large_numpy_file_comes_back)
{
	char *npy = make_npy(50000, 'n');

	ck_assert_int_eq(write_at("model/a/w/data.npy", true, npy, NPY_HEAD + 50000, 0), 0);
	for (int i = 0; i < 3; i++) {
		expect_fill("model/a/w/data", 50000, 'n');
		expect("model/a/w/shape", "50000\n");
		expect("model/a/w/dtype", "U8\n");
		reopen();
	}
	free(npy);
}
END_TEST

/* np.lib.format.open_memmap(mode='w+'): the file is complete, and taken, before its bytes are stored through the map. */
static void write_after_effect(size_t n)
{
	char *npy = make_npy(n, 0);
	struct stfs_file *file = open_write("model/a/w/data.npy", true);
	size_t written;

	ck_assert_int_eq(stfs_file_write(file, npy, NPY_HEAD + n, 0, &written), 0);
	ck_assert_int_eq(stfs_file_flush(file), 0);
	expect_fill("model/a/w/data", n, 0);
	memset(npy, 'm', n);
	ck_assert_int_eq(stfs_file_write(file, npy, n, NPY_HEAD, &written), 0);
	/* It cannot be made longer or shorter any more: its bytes are the tensor's. */
	ck_assert_int_eq(stfs_file_write(file, npy, 1, NPY_HEAD + n, &written), -ESTALE);
	ck_assert_int_eq(stfs_file_allocate(file, NPY_HEAD + n + 1), -ESTALE);
	stfs_file_close(file);
	for (int i = 0; i < 2; i++) {
		expect_fill("model/a/w/data", n, 'm');
		reopen();
	}
	free(npy);
}

START_TEST(numpy_file_that_is_written_on)
{
	write_after_effect(20000);
	write_after_effect(10);
}
END_TEST

/* Under the same inode number it is the same file to the kernel, and so it is here. */
START_TEST(handle_of_a_replaced_file_is_that_of_the_new_one)
{
	struct stfs_file *old = open_write("model/a/b/data", false);
	char *npy = make_npy(4, 'n');
	size_t written;

	ck_assert_int_eq(stfs_file_write(old, "1", 1, 0, &written), 0);
	ck_assert_int_eq(write_at("model/a/b/data.npy", true, npy, NPY_HEAD + 4, 0), 0);
	ck_assert_int_eq(stfs_file_write(old, "old", 3, 0, &written), 0);
	/* The same with a discard between. */
	stfs_file_close(old);
	old = open_write("model/a/w/data", false);
	ck_assert_int_eq(stfs_file_write(old, "12345", 5, 0, &written), 0);
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model/a/w"), NULL), 0);
	ck_assert_int_eq(write_at("model/a/w/data", false, "new", 3, 0), 0);
	ck_assert_int_eq(stfs_file_write(old, "o", 1, 0, &written), 0);
	stfs_file_close(old);
	for (int i = 0; i < 2; i++) {
		struct stfs_buf w = bytes_of("model/a/w/data");

		expect("model/a/b/data", "oldn");
		ck_assert(w.len == 24 && memcmp(w.data, "oew\3\4", 5) == 0);
		stfs_buf_fini(&w);
		reopen();
	}
	free(npy);
}
END_TEST

START_TEST(numpy_file_of_a_type_without_one)
{
	char *npy = make_npy(3, 'q');
	struct maker maker = { 0 };
	struct stfs_listing *list;

	close_view();
	maker_tensor(&maker, "t", "F8_E8M0", "2", 2);
	maker_tensor(&maker, "s", "F4", "4", 2);
	maker_write(&maker, "m.safetensors");
	open_view(STFS_NESTED);
	ck_assert_int_eq(write_at("s/data.npy", true, npy, NPY_HEAD + 3, 0), 0);
	ck_assert_int_eq(put("t/notes", "scratch"), 0);
	for (int i = 0; i < 2; i++) {
		expect_fill("s/data", 3, 'q');
		ck_assert_int_eq(stfs_view_list(view, ino_of("s"), &list), 0);
		ck_assert_uint_eq(list->n, 5);
		stfs_listing_free(list);
		expect_status("M s (data, dtype, shape)\n? t/notes\n# 1 changes, 0 incomplete, 1 scratch files\n");
		reopen();
	}
	free(npy);
}
END_TEST

START_TEST(half_a_numpy_file_under_another_name)
{
	char *npy = make_npy(3, 'q');

	ck_assert_int_eq(write_at("model/a/w/data.npy", true, npy, NPY_HEAD + 1, 0), 0);
	ck_assert_int_eq(do_rename("model/a/w/data.npy", "model/a/w/half"), 0);
	ck_assert(!is_there("model/a/w/data.npy") || ino_of("model/a/w/data.npy") != ino_of("model/a/w/half"));
	ck_assert_int_eq(write_at("model/a/w/data.npy", true, npy, NPY_HEAD + 3, 0), 0);
	for (int i = 0; i < 2; i++) {
		struct stfs_buf half = bytes_of("model/a/w/half");

		ck_assert_uint_eq(half.len, NPY_HEAD + 1);
		stfs_buf_fini(&half);
		expect_fill("model/a/w/data", 3, 'q');
		reopen();
	}
	free(npy);
}
END_TEST

START_TEST(numpy_file_open_for_writing_is_itself)
{
	struct stfs_attr shown, open;
	struct stfs_file *file;

	ck_assert_int_eq(stfs_view_getattr(view, ino_of("model/a/w/data.npy"), &shown), 0);
	ck_assert_int_eq(stfs_view_open_write(view, shown.ino, false, &file), 0);
	ck_assert_int_eq(stfs_file_getattr(file, &open), 0);
	ck_assert_uint_eq(open.ino, shown.ino);
	ck_assert_uint_eq(open.size, shown.size);
	stfs_file_close(file);
}
END_TEST

START_TEST(numpy_file_takes_times_and_modes)
{
	char *npy = make_npy(3, 'q');

	/* As shutil.copy2 does: written and closed, then touched by name. */
	ck_assert_int_eq(write_at("model/a/w/data.npy", true, npy, NPY_HEAD + 3, 0), 0);
	set_mtime("model/a/w/data.npy", 1000000000);
	ck_assert_int_eq(mtime_of("model/a/w/data.npy").tv_sec, 1000000000);
	/* What is written to data shows. */
	ck_assert_int_eq(put("model/a/w/data", "xyz"), 0);
	ck_assert_int_gt(mtime_of("model/a/w/data.npy").tv_sec, 1000000000);
	free(npy);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, large_numpy_file_comes_back);
	tcase_add_test(tcase, numpy_file_that_is_written_on);
	tcase_add_test(tcase, handle_of_a_replaced_file_is_that_of_the_new_one);
	tcase_add_test(tcase, numpy_file_of_a_type_without_one);
	tcase_add_test(tcase, half_a_numpy_file_under_another_name);
	tcase_add_test(tcase, numpy_file_open_for_writing_is_itself);
	tcase_add_test(tcase, numpy_file_takes_times_and_modes);
	tcase_set_timeout(tcase, 60);
	return run_tests("edit_npy", tcase);
}
