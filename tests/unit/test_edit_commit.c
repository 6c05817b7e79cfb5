/* SPDX-License-Identifier: Apache-2.0 */
/* Edits that tools make seldom, as a commit leaves them. */
#include "shard_fixture.h"
#include "edit_fixture.h"
#include "run_tests.h"

START_TEST(scratch_of_a_cut_tensor)
{
	struct stfs_buf buf;

	close_view();
	view = editing("m.safetensors");
	edit_write(view, "model/big/data", false, "XYZ", 3, 50000);
	edit_resize(view, "model/big/data", 10000);
	edit_resize(view, "model/big/data", 60000);
	edit_mv(view, "model/big/data", "model/big/data~");
	edit_rm(view, "model/big/dtype");
	edit_rm(view, "model/big/shape");
	commit(view);
	buf = edit_bytes(view, "model/big/data~");
	ck_assert_uint_eq(buf.len, 60000);
	for (size_t i = 10000; i < buf.len; i++)
		ck_assert_msg(buf.data[i] == 0, "byte %zu is %d", i, buf.data[i]);
	stfs_buf_fini(&buf);
}
END_TEST

START_TEST(large_key_as_scratch)
{
	static char value[10001];
	struct maker maker = { 0 };
	struct stfs_buf metadata = { 0 }, buf;

	memset(value, 'v', sizeof(value) - 1);
	close_view();
	ck_assert_int_eq(stfs_buf_printf(&metadata, "{\"big\":\"%s\"}", value), 0);
	maker_metadata(&maker, metadata.data);
	maker_tensor(&maker, "t", "U8", "2", 2);
	maker_write(&maker, "m.safetensors");
	stfs_buf_fini(&metadata);
	view = editing("m.safetensors");
	edit_mv(view, "__metadata__/big", "__metadata__/.big");
	commit(view);
	stfs_view_free(view);
	view = editing("m.safetensors");
	buf = edit_bytes(view, "__metadata__/.big");
	ck_assert_uint_eq(buf.len, 10001);
	stfs_buf_fini(&buf);
}
END_TEST

/* Its number is that of a file of the tensor again, which the next mount shows. */
START_TEST(scratch_that_was_data)
{
	struct stfs_buf buf;

	close_view();
	view = editing("m.safetensors");
	edit_mv(view, "model/a/b/data", "model/scratch");
	edit_write(view, "model/a/b/data", true, "12345", 5, 0);
	commit(view);
	stfs_view_free(view);
	view = editing("m.safetensors");
	ck_assert_uint_ne(ino_of("model/a/b/data"), ino_of("model/scratch"));
	edit_write(view, "model/a/b/data", false, "54321", 5, 0);
	edit_rm(view, "model/scratch");
	buf = edit_bytes(view, "model/a/b/data");
	ck_assert_uint_eq(buf.len, 5);
	ck_assert_mem_eq(buf.data, "54321", 5);
	stfs_buf_fini(&buf);
}
END_TEST

START_TEST(keys_outlive_the_shard_they_were_in)
{
	struct maker maker = { 0 };

	close_view();
	ck_assert_int_eq(unlink(fixture_path("m.safetensors")), 0);
	shards_make("");
	maker_metadata(&maker, "{\"format\":\"pt\",\"only\":\"here\"}");
	maker_tensor(&maker, "l0.w", "F32", "250", 1000);
	maker_tensor(&maker, "l0.b", "U8", "10", 10);
	maker_write(&maker, SHARD_1);
	view = editing("");
	edit_rm_tensor(view, "l0/w");
	edit_rm_tensor(view, "l0/b");
	edit_put(view, "__metadata__/new", "key");
	commit(view);
	for (int i = 0; i < 2; i++) {
		ck_assert(!edit_there(view, "l0"));
		edit_expect(view, "__metadata__/only", "here\n");
		edit_expect(view, "__metadata__/new", "key\n");
		edit_expect(view, "__metadata__/format", "pt\n");
		stfs_view_free(view);
		view = editing("");
	}
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, scratch_of_a_cut_tensor);
	tcase_add_test(tcase, large_key_as_scratch);
	tcase_add_test(tcase, scratch_that_was_data);
	tcase_add_test(tcase, keys_outlive_the_shard_they_were_in);
	tcase_set_timeout(tcase, 60);
	return run_tests("edit_commit", tcase);
}
