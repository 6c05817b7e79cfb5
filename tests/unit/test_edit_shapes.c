/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of dtype and shape that are nonsense, or long. */
#include "edit_fixture.h"
#include "run_tests.h"

START_TEST(nonsense_in_a_new_file)
{
	ck_assert_int_eq(do_mkdir("model/c"), 0);
	ck_assert_int_eq(put("model/c/dtype", "F33\n"), -EINVAL);
	ck_assert_int_eq(put("model/c/shape", "two\n"), -EINVAL);
	expect("model/c/shape", "");
}
END_TEST

START_TEST(long_shapes_stay_whole)
{
	_cleanup_buf_ struct stfs_buf text = { 0 };
	struct stfs_file *file;
	size_t written;

	for (int i = 0; i < 3000; i++)
		ck_assert_int_eq(stfs_buf_append_str(&text, i ? " 1" : "24"), 0);
	ck_assert_int_eq(put("model/a/w/dtype", "U8\n"), 0);
	ck_assert_int_eq(put("model/a/w/shape", text.data), 0);
	expect_status("M model.a.w (dtype, shape)\n# 1 changes, 0 incomplete, 0 scratch files\n");
	file = open_write("model/a/w/shape", true);
	ck_assert_int_eq(stfs_file_write(file, "two\n", 4, 0, &written), -EINVAL);
	stfs_file_close(file);
	expect("model/a/w/shape", text.data);
	ck_assert(!is_there("model/a/w/data.npy"));
	reopen();
	expect("model/a/w/shape", text.data);
}
END_TEST

/* What is wrong at the end of a text of more than a MiB is seen too. */
START_TEST(long_shapes_are_read_to_their_end)
{
	_cleanup_buf_ struct stfs_buf text = { 0 };

	for (int i = 0; i < 700000; i++)
		ck_assert_int_eq(stfs_buf_append_str(&text, i ? " 1" : "6"), 0);
	ck_assert_int_eq(stfs_buf_append_str(&text, " 5\n"), 0);
	ck_assert_int_eq(write_at("model/a/w/shape", true, text.data, text.len, 0), 0);
	stfs_buf_fini(&text);
	text = bytes_of(".safetensors/status");
	ck_assert_ptr_nonnull(strstr(text.data, "! model.a.w: 24 bytes, but F32 [6,1,1,"));
	ck_assert_ptr_nonnull(strstr(text.data, ",1,1,\xe2\x80\xa6] needs 120\n"));
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, nonsense_in_a_new_file);
	tcase_add_test(tcase, long_shapes_stay_whole);
	tcase_add_test(tcase, long_shapes_are_read_to_their_end);
	tcase_set_timeout(tcase, 60);
	return run_tests("edit_shapes", tcase);
}
