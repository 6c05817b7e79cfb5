/* SPDX-License-Identifier: Apache-2.0 */
/* Names that are taken, moved away, or spelt in two ways, and what a discard makes of them. */
#include "edit_fixture.h"
#include "run_tests.h"

START_TEST(metadata_cannot_be_replaced)
{
	ck_assert_int_eq(do_unlink("__metadata__/format"), 0);
	ck_assert_int_eq(do_unlink("__metadata__/note"), 0);
	ck_assert_int_eq(do_mkdir("x"), 0);
	ck_assert_int_eq(do_rename("x", "__metadata__"), -EBUSY);
	ck_assert_int_eq(do_mkdir("y"), 0);
	ck_assert_int_eq(put("__metadata__/k", "v"), 0);
	reopen();
	expect("__metadata__/k", "v");
	ck_assert(is_there("x") && is_there("y"));
}
END_TEST

START_TEST(discard_with_a_file_in_the_way)
{
	ck_assert_int_eq(do_rename("model/a", "model/z"), 0);
	ck_assert_int_eq(put("model/a", "scratch"), 0);
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model/a/w"), NULL), -EEXIST);
	reopen();
	expect("model/a", "scratch");
	expect("model/z/w/dtype", "F32\n");
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model/a"), NULL), 0);
	expect("model/a/w/dtype", "F32\n");
	reopen();
	expect("model/a/w/dtype", "F32\n");
}
END_TEST

/* What was moved to a place is back where the model has it when the place is discarded, unless something else is there. */
START_TEST(discard_of_where_it_was_moved)
{
	ck_assert_int_eq(do_mkdir("new"), 0);
	ck_assert_int_eq(do_rename("model/big", "new/big"), 0);
	ck_assert_int_eq(do_rename("model/a/w", "new/w"), 0);
	ck_assert_int_eq(put("model/a/w", "in the way"), 0);
	ck_assert_int_eq(do_rename("model/a/b", "new/b"), 0);
	ck_assert_int_eq(do_mkdir("model/a/b"), 0);
	ck_assert_int_eq(put("model/a/b/shape", "1\n"), 0);
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("new"), NULL), 0);
	for (int i = 0; i < 2; i++) {
		struct stfs_buf big = bytes_of("model/big/data");

		ck_assert_uint_eq(big.len, 100000);
		stfs_buf_fini(&big);
		expect("model/a/w", "in the way");
		expect("model/a/b/shape", "1\n");
		ck_assert(!is_there("new"));
		ck_assert(!is_there("model/a/b/data"));
		reopen();
	}
}
END_TEST

START_TEST(discard_of_one_slot)
{
	ck_assert_int_eq(put("model/a/w/shape", "6\n"), 0);
	ck_assert_int_eq(put("model/a/w/dtype", "I32\n"), 0);
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model/a/w/shape"), NULL), 0);
	ck_assert_int_eq(do_unlink("model/a/b/data"), 0);
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model/a/b/data"), NULL), 0);
	/* With the file it was under another name. */
	ck_assert_int_eq(do_rename("model/big/data", "model/big/data~"), 0);
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model/big/data"), NULL), 0);
	for (int i = 0; i < 2; i++) {
		expect("model/a/w/shape", "2 3\n");
		expect("model/a/w/dtype", "I32\n");
		expect_status("M model.a.w (dtype)\n? model/big/data~\n# 1 changes, 0 incomplete, 1 scratch files\n");
		reopen();
	}
}
END_TEST

START_TEST(discard_of_a_name_that_was_moved_away)
{
	ck_assert_int_eq(do_rename("model/big", "model/large"), 0);
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model/big"), NULL), 0);
	for (int i = 0; i < 2; i++) {
		struct stfs_buf a = bytes_of("model/big/data"), b = bytes_of("model/large/data");

		ck_assert(a.len == 100000 && b.len == a.len && memcmp(a.data, b.data, a.len) == 0);
		stfs_buf_fini(&a);
		stfs_buf_fini(&b);
		expect_status("A model.large\n# 1 changes, 0 incomplete, 0 scratch files\n");
		reopen();
	}
}
END_TEST

START_TEST(one_name_has_one_place)
{
	ck_assert_int_eq(do_mkdir("new.a.b"), 0);
	ck_assert_int_eq(put("new.a.b/shape", "\n"), 0);
	ck_assert_int_eq(do_mkdir("new"), 0);
	ck_assert_int_eq(do_mkdir("new/a"), 0);
	ck_assert_int_eq(do_mkdir("new/a/b"), -EEXIST);
	ck_assert_int_eq(do_mkdir("new/a.b"), -EEXIST);
	ck_assert_int_eq(do_mkdir("new/a.c"), 0);
	ck_assert_int_eq(do_mkdir("new/a/x"), 0);
	ck_assert_int_eq(do_rename("new/a/x", "new/a/b"), -EEXIST);
	/* Below the tensor there is room; and it may be spelt in another way. */
	ck_assert_int_eq(do_mkdir("new.a"), -EEXIST);
	ck_assert_int_eq(do_rename("new.a.b", "new/a/b"), 0);
	ck_assert_int_eq(do_mkdir("new/a.b"), -EEXIST);
	/* Empty pieces, and those that go on without a dot. */
	ck_assert_int_eq(do_mkdir("e..f"), 0);
	ck_assert_int_eq(put("e..f/shape", "\n"), 0);
	ck_assert_int_eq(do_mkdir("e"), 0);
	ck_assert_int_eq(do_mkdir("e/%_"), 0);
	ck_assert_int_eq(do_mkdir("e/%_/f"), -EEXIST);
	ck_assert_int_eq(do_mkdir("g%+"), 0);
	ck_assert_int_eq(do_mkdir("g%+/h.i"), 0);
	ck_assert_int_eq(put("g%+/h.i/shape", "\n"), 0);
	ck_assert_int_eq(do_mkdir("g%+/h"), 0);
	ck_assert_int_eq(do_mkdir("g%+/h/i"), -EEXIST);
}
END_TEST

START_TEST(two_places_of_one_name_are_told)
{
	/* Neither was a tensor when the other one was made. */
	ck_assert_int_eq(do_mkdir("n.x"), 0);
	ck_assert_int_eq(do_mkdir("n"), 0);
	ck_assert_int_eq(do_mkdir("n/x"), 0);
	for (int i = 0; i < 2; i++) {
		const char *dir = i ? "n/x" : "n.x";
		char path[40];

		snprintf(path, sizeof(path), "%s/dtype", dir);
		ck_assert_int_eq(put(path, "U8\n"), 0);
		snprintf(path, sizeof(path), "%s/shape", dir);
		ck_assert_int_eq(put(path, "1\n"), 0);
		snprintf(path, sizeof(path), "%s/data", dir);
		ck_assert_int_eq(put(path, "1"), 0);
	}
	expect_status("A n.x\n! n.x: another directory spells the same name\n"
		      "# 1 changes, 1 incomplete, 0 scratch files\n");
}
END_TEST

static void discard(const char *path)
{
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of(path), NULL), 0);
}

/* A number is that of one file: by it what is written finds its place. */
START_TEST(a_file_moved_out_of_what_is_discarded_keeps_its_number)
{
	uint64_t ino;

	ck_assert_int_eq(put("model/a/b/data", "moved"), 0);
	ino = ino_of("model/a/b/data");
	ck_assert_int_eq(do_rename("model/a/b/data", "model/scratch"), 0);
	discard("model/a/b");
	ck_assert_uint_eq(ino_of("model/scratch"), ino);
	ck_assert_uint_ne(ino_of("model/a/b/data"), ino);
	ck_assert_int_eq(put("model/a/b/data", "plain"), 0);
	expect("model/scratch", "moved");
	reopen();
	expect("model/scratch", "moved");
	expect("model/a/b/data", "plain");
	/* Files come and go, and the others stay what they are. */
	ck_assert_int_eq(do_unlink("model/a/b/shape"), 0);
	ck_assert_int_eq(do_unlink("model/a/b/dtype"), 0);
	expect("model/scratch", "moved");
	expect("model/a/b/data", "plain");
	ck_assert_int_eq(do_unlink("model/a/b/data"), 0);
	expect("model/scratch", "moved");
	/* Where nothing is in the way a directory has the number of its name again. */
	ck_assert_int_eq(do_unlink("model/scratch"), 0);
	discard("model/a/b");
	ck_assert_uint_eq(ino_of("model/a/b/data"), ino);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, metadata_cannot_be_replaced);
	tcase_add_test(tcase, discard_with_a_file_in_the_way);
	tcase_add_test(tcase, discard_of_where_it_was_moved);
	tcase_add_test(tcase, discard_of_one_slot);
	tcase_add_test(tcase, discard_of_a_name_that_was_moved_away);
	tcase_add_test(tcase, one_name_has_one_place);
	tcase_add_test(tcase, two_places_of_one_name_are_told);
	tcase_add_test(tcase, a_file_moved_out_of_what_is_discarded_keeps_its_number);
	tcase_set_timeout(tcase, 60);
	return run_tests("edit_names", tcase);
}
