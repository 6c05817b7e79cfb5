/* SPDX-License-Identifier: Apache-2.0 */
/* Commits of a model of one file: what is in it afterwards, put together by hand, byte for byte. */
#include "one_file_fixture.h"
#include "run_tests.h"

START_TEST(a_rename_changes_the_header_only)
{
	uint64_t ino = edit_ino(view, "a/w/data"), big = edit_ino(view, "big");
	struct stfs_commit_result result;

	edit_mv(view, "a", "z");
	result = commit(view);
	ck_assert(!result.nothing && !result.link_replaced && !result.not_durable);
	ck_assert_uint_eq(result.files, 1);
	ck_assert_uint_eq(result.bytes, (uint64_t)stat_of(NAME).st_size);
	ck_assert_uint_eq(result.stats.cloned + result.stats.in_kernel + result.stats.buffered, 29 + BIG_SIZE);
	want_all();
	expect_file(NAME,
		    "{" METADATA ",\"z.w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
		    "\"z.b\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[24,29]}," BIG "}",
		    &wanted);
	ck_assert_str_eq(folder_names(""), NAME);
	ck_assert_uint_eq(edit_ino(view, "z/w/data"), ino);
	ck_assert_uint_eq(edit_ino(view, "big"), big);
	ck_assert(!edit_there(view, "a"));
	remount();
	edit_expect(view, "z/b/data", "\x18\x19\x1a\x1b\x1c");
	ck_assert(!edit_there(view, "a"));
}
END_TEST

START_TEST(deleted_tensors_are_gone)
{
	edit_rm_tensor(view, "a/b");
	edit_rm_tensor(view, "a/w");
	commit(view);
	want_old(&wanted, 29, BIG_SIZE);
	expect_file(NAME, "{" METADATA ",\"big\":{\"dtype\":\"U8\",\"shape\":[100000],\"data_offsets\":[0,100000]}}",
		    &wanted);
	ck_assert(!edit_there(view, "a"));
	edit_rm_tensor(view, "big");
	commit(view);
	expect_file(NAME, "{" METADATA "}", &wanted);
}
END_TEST

START_TEST(new_tensors_follow_the_old_ones)
{
	edit_mkdir(view, "n");
	edit_mkdir(view, "n/x");
	edit_put(view, "n/x/shape", "2 2\n");
	edit_put(view, "n/x/dtype", "I16\n");
	edit_put(view, "n/x/data", "12345678");
	edit_mkdir(view, "empty");
	edit_put(view, "empty/dtype", "BF16");
	edit_put(view, "empty/shape", "[0, 4]");
	edit_put(view, "empty/data", "");
	commit(view);
	want_all();
	want_bytes(&wanted, "12345678", 8);
	expect_file(NAME,
		    "{" METADATA "," A_W "," A_B "," BIG
		    ",\"n.x\":{\"dtype\":\"I16\",\"shape\":[2,2],\"data_offsets\":[100029,100037]},"
		    "\"empty\":{\"dtype\":\"BF16\",\"shape\":[0,4],\"data_offsets\":[100037,100037]}}",
		    &wanted);
	edit_expect(view, "n/x/shape", "2 2\n");
	edit_expect(view, "empty/shape", "0 4\n"); /* as any mount shows it */
	edit_expect(view, "n/x/data", "12345678");
}
END_TEST

START_TEST(replaced_data_keeps_dtype_and_shape)
{
	edit_put(view, "a/w/data", "ABCDEFGHIJKLMNOPQRSTUVWX");
	edit_rm(view, "a/b/data");
	edit_put(view, "a/b/data", "vwxyz");
	commit(view);
	want_bytes(&wanted, "ABCDEFGHIJKLMNOPQRSTUVWXvwxyz", 29);
	want_old(&wanted, 29, BIG_SIZE);
	expect_file(NAME, ALL, &wanted);
	edit_expect(view, "a/b/data", "vwxyz");
	ck_assert_str_eq(folder_names(""), NAME);
}
END_TEST

/* Some bytes in the middle, some at the end: the rest is the old file's. */
START_TEST(data_over_a_run_is_mixed)
{
	edit_write(view, "big/data", false, "hello", 5, 50000);
	edit_write(view, "big/data", false, "there", 5, BIG_SIZE - 5);
	remount();
	edit_write(view, "big/data", false, "!", 1, 50005);
	commit(view);
	want_old(&wanted, 0, 29 + 50000);
	want_bytes(&wanted, "hello!", 6);
	want_old(&wanted, 29 + 50006, BIG_SIZE - 5 - 50006);
	want_bytes(&wanted, "there", 5);
	expect_file(NAME, ALL, &wanted);
}
END_TEST

START_TEST(cut_and_grown_data_with_its_shape)
{
	edit_resize(view, "big/data", 120000);
	edit_put(view, "big/shape", "2 60000");
	edit_resize(view, "a/w/data", 8);
	edit_put(view, "a/w/shape", "2 1");
	edit_resize(view, "a/b/data", 6);
	edit_put(view, "a/b/shape", "6");
	commit(view);
	want_old(&wanted, 0, 8);
	want_old(&wanted, 24, 5);
	want_zeros(&wanted, 1);
	want_old(&wanted, 29, BIG_SIZE);
	want_zeros(&wanted, 20000);
	expect_file(NAME,
		    "{" METADATA ",\"a.w\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
		    "\"a.b\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[8,14]},"
		    "\"big\":{\"dtype\":\"U8\",\"shape\":[2,60000],\"data_offsets\":[14,120014]}}",
		    &wanted);
}
END_TEST

/* Zeros in the middle of new data are zeros, also where a hole is all there is. */
START_TEST(holes_are_zeros)
{
	edit_mkdir(view, "n");
	edit_put(view, "n/dtype", "U8");
	edit_put(view, "n/shape", "300000");
	edit_write(view, "n/data", true, "a", 1, 0);
	edit_write(view, "n/data", false, "z", 1, 299999);
	commit(view);
	want_all();
	want_bytes(&wanted, "a", 1);
	want_zeros(&wanted, 299998);
	want_bytes(&wanted, "z", 1);
	expect_file(NAME,
		    "{" METADATA "," A_W "," A_B "," BIG
		    ",\"n\":{\"dtype\":\"U8\",\"shape\":[300000],\"data_offsets\":[100029,400029]}}",
		    &wanted);
}
END_TEST

START_TEST(metadata_is_set_and_deleted)
{
	edit_put(view, "__metadata__/note", "two\nlines\n");
	edit_put(view, "__metadata__/author", "me\n");
	edit_rm(view, "__metadata__/format");
	commit(view);
	want_all();
	expect_file(NAME, "{\"__metadata__\":{\"author\":\"me\",\"note\":\"two\\nlines\"}," A_W "," A_B "," BIG "}",
		    &wanted);
	edit_expect(view, "__metadata__/author", "me\n");
	ck_assert(!edit_there(view, "__metadata__/format"));
	edit_rm(view, "__metadata__/author");
	edit_rm(view, "__metadata__/note");
	commit(view);
	want_all();
	expect_file(NAME, "{" A_W "," A_B "," BIG "}", &wanted);
}
END_TEST

/* They are never committed, and still there after it, here and on the next mount. */
START_TEST(scratch_is_kept)
{
	static const char *const paths[] = { "notes.txt", "a/w/data~", "__metadata__/.note.swp", "m/notes" };

	edit_mkdir(view, "m");
	edit_put(view, "notes.txt", "remember\n");
	edit_put(view, "a/w/data~", "backup");
	edit_put(view, "__metadata__/.note.swp", "swap");
	edit_put(view, "m/notes", "more");
	edit_resize(view, "notes.txt", 200000);
	edit_put(view, "a/b/data", "vwxyz");
	edit_mv(view, "a", "c");
	commit(view);
	ck_assert_str_eq(folder_names(""), STAGED);
	for (int i = 0; i < 2; i++) {
		struct stfs_buf buf = edit_bytes(view, "notes.txt");

		ck_assert_uint_eq(buf.len, 200000);
		ck_assert_int_eq(memcmp(buf.data, "remember\n\0", 10), 0);
		stfs_buf_fini(&buf);
		edit_expect(view, "c/w/data~", "backup");
		edit_expect(view, "c/b/data", "vwxyz");
		edit_expect(view, "__metadata__/.note.swp", "swap");
		edit_expect(view, "m/notes", "more");
		remount();
	}
	edit_put(view, "c/b/data", "12345");
	commit(view);
	for (int i = 0; i < 4; i++)
		edit_rm(view, i == 1 ? "c/w/data~" : paths[i]);
	edit_put(view, "c/b/data", "abcde");
	commit(view);
	ck_assert_str_eq(folder_names(""), NAME);
}
END_TEST

/* What was moved out of the model into a scratch file is still in there when the model is gone. */
START_TEST(scratch_does_not_lean_on_the_old_model)
{
	struct stfs_buf buf;

	edit_mv(view, "big/data", "saved");
	edit_rm(view, "big/dtype");
	edit_rm(view, "big/shape");
	commit(view);
	remount();
	buf = edit_bytes(view, "saved");
	want_old(&wanted, 29, BIG_SIZE);
	ck_assert_uint_eq(buf.len, BIG_SIZE);
	ck_assert_int_eq(memcmp(buf.data, wanted.data.data, BIG_SIZE), 0);
	stfs_buf_fini(&buf);
	stfs_buf_fini(&wanted.data);
}
END_TEST

START_TEST(nothing_staged_leaves_the_file_alone)
{
	struct stat before = stat_of(NAME), after;
	struct stfs_commit_result result = commit(view);

	ck_assert(result.nothing);
	ck_assert_uint_eq(result.files, 0);
	edit_put(view, "notes.txt", "scratch only");
	ck_assert(commit(view).nothing);
	edit_mv(view, "a", "b");
	edit_mv(view, "b", "a");
	ck_assert(commit(view).nothing);
	after = stat_of(NAME);
	ck_assert_uint_eq(after.st_ino, before.st_ino);
	ck_assert_int_eq(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	edit_expect(view, "notes.txt", "scratch only");
}
END_TEST

/* By dtype, the widest first, then by name; also when nothing is staged. */
START_TEST(sorting_rewrites)
{
	struct stfs_commit_options options = { .plan = { .sort = true } };
	struct stfs_commit_result result;

	ck_assert_int_eq(commit_options(view, &options, &said, &result), 0);
	ck_assert(!result.nothing);
	want_all();
	expect_file(NAME, ALL, &wanted);
	ck_assert_str_eq(folder_names(""), NAME);
	edit_mv(view, "big", "a/a");
	edit_mkdir(view, "n");
	edit_put(view, "n/dtype", "F64");
	edit_put(view, "n/shape", "");
	edit_put(view, "n/data", "12345678");
	ck_assert_int_eq(commit_options(view, &options, &said, &result), 0);
	want_bytes(&wanted, "12345678", 8);
	want_old(&wanted, 0, 24);
	want_old(&wanted, 29, BIG_SIZE);
	want_old(&wanted, 24, 5);
	expect_file(NAME,
		    "{" METADATA ",\"n\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},"
		    "\"a.w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]},"
		    "\"a.a\":{\"dtype\":\"U8\",\"shape\":[100000],\"data_offsets\":[32,100032]},"
		    "\"a.b\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[100032,100037]}}",
		    &wanted);
}
END_TEST

START_TEST(commits_follow_one_another)
{
	for (int i = 0; i < 5; i++) {
		char text[6];

		snprintf(text, sizeof(text), "%05d", i);
		edit_put(view, "a/b/data", text);
		edit_write(view, "big/data", false, text, 5, (uint64_t)i * 1000);
		commit(view);
		want_all();
		want_over(&wanted, 24, text, 5);
		for (int k = 0; k <= i; k++) {
			snprintf(text, sizeof(text), "%05d", k);
			want_over(&wanted, 29 + (uint64_t)k * 1000, text, 5);
		}
		expect_file(NAME, ALL, &wanted);
		if (i % 2)
			remount();
	}
}
END_TEST

/* Clones as a filesystem that can: whole blocks only. */
static int clone_by_copy(void *user, int to, uint64_t to_offset, int from, uint64_t from_offset, uint64_t len)
{
	char block[4096];

	(void)user;
	ck_assert_uint_eq((to_offset | from_offset | len) % sizeof(block), 0);
	for (uint64_t at = 0; at < len; at += sizeof(block)) {
		ck_assert_int_eq(pread(from, block, sizeof(block), (off_t)(from_offset + at)), sizeof(block));
		ck_assert_int_eq(pwrite(to, block, sizeof(block), (off_t)(to_offset + at)), sizeof(block));
	}
	return 0;
}

static int allocate_nothing(void *user, int fd, int mode, off_t offset, off_t len)
{
	(void)user, (void)fd, (void)mode, (void)offset, (void)len;
	ck_abort_msg("room is taken for what is shared");
}

/* The header is padded so that data lies in its block as before, and no room is taken for what is shared. */
START_TEST(blocks_are_shared_where_that_can_be)
{
	struct stfs_os os = *stfs_os_real();
	struct stfs_commit_result result;

	edit_put(view, "a/b/data", "12345");
	commit(view);
	stfs_view_free(view);
	os.clone_range = clone_by_copy;
	os.fallocate = allocate_nothing;
	said_init(&said);
	ck_assert_int_eq(editing_open(NAME, &os, &said, &view), 0);
	edit_put(view, "__metadata__/note", "a much longer note than the one there was");
	edit_put(view, "a/b/data", "vwxyz");
	result = commit(view);
	ck_assert_uint_ge(result.stats.cloned, BIG_SIZE - 2 * 4096);
	want_all();
	want_over(&wanted, 24, "vwxyz", 5);
	expect_file(NAME,
		    "{\"__metadata__\":{\"format\":\"pt\",\"note\":\"a much longer note than the one there was\"}," A_W
		    "," A_B "," BIG "}",
		    &wanted);
	remount();
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("commit");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, a_rename_changes_the_header_only);
	tcase_add_test(tcase, deleted_tensors_are_gone);
	tcase_add_test(tcase, new_tensors_follow_the_old_ones);
	tcase_add_test(tcase, replaced_data_keeps_dtype_and_shape);
	tcase_add_test(tcase, data_over_a_run_is_mixed);
	tcase_add_test(tcase, cut_and_grown_data_with_its_shape);
	tcase_add_test(tcase, holes_are_zeros);
	tcase_add_test(tcase, metadata_is_set_and_deleted);
	tcase_add_test(tcase, scratch_is_kept);
	tcase_add_test(tcase, scratch_does_not_lean_on_the_old_model);
	tcase_add_test(tcase, nothing_staged_leaves_the_file_alone);
	tcase_add_test(tcase, sorting_rewrites);
	tcase_add_test(tcase, commits_follow_one_another);
	tcase_add_test(tcase, blocks_are_shared_where_that_can_be);
	return run_tests("commit", tcase);
}
