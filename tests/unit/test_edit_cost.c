/* SPDX-License-Identifier: Apache-2.0 */
/* What an edit costs follows what it touches, not what else is staged or was staged before. */
#include "view_private.h"

#include "edit_fixture.h"
#include "run_tests.h"

#define MANY 100

static unsigned notices;

static void count_change(void *user, uint64_t ino)
{
	(void)user, (void)ino;
	notices++;
}

static void count_rename(void *user, uint64_t parent, struct stfs_slice name)
{
	(void)user, (void)parent, (void)name;
	notices++;
}

static const char *numbered(const char *start, int i)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s%d", start, i);
	return path;
}

/* Discarding many paths one by one must not tell of all the others each time. */
START_TEST(a_discard_tells_of_its_path)
{
	const struct stfs_view_watcher watcher = { count_change, count_rename, NULL };

	stfs_view_set_watcher(view, &watcher);
	ck_assert_int_eq(do_mkdir("model/x"), 0);
	for (int i = 0; i < MANY; i++)
		ck_assert_int_eq(put(numbered("model/x/", i), "scratch"), 0);
	notices = 0;
	for (int i = 0; i < MANY; i++)
		ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of(numbered("model/x/", i)), NULL), 0);
	ck_assert_uint_lt(notices, 10 * MANY);
	expect_status("# nothing is staged\n");
}
END_TEST

static bool told;
static uint64_t expected;

static void note_change(void *user, uint64_t ino)
{
	(void)user;
	told |= ino == expected;
}

static void note_rename(void *user, uint64_t parent, struct stfs_slice name)
{
	(void)user, (void)parent, (void)name;
}

/* All that is below the path, and the directories above it, whose times and links are others. */
START_TEST(a_discard_tells_of_all_that_changes)
{
	const struct stfs_view_watcher watcher = { note_change, note_rename, NULL };
	const char *const paths[] = {
		"model", "model/a", "model/a/w", "model/a/w/shape", "model/a/new", "model/a/moved"
	};

	stfs_view_set_watcher(view, &watcher);
	for (size_t i = 0; i < STFS_ARRAY_SIZE(paths); i++) {
		ck_assert_int_eq(put("model/new", "x"), 0);
		ck_assert_int_eq(put("model/a/w/shape", "6\n"), 0);
		ck_assert_int_eq(put("model/a/new", "x"), 0);
		ck_assert_int_eq(do_rename("model/big", "model/a/moved"), 0);
		expected = ino_of(paths[i]);
		told = false;
		ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model/a"), NULL), 0);
		ck_assert_msg(told, "%s", paths[i]);
		reopen();
		expect("model/a/w/shape", "2 3\n");
		ck_assert(is_there("model/big/data"));
		stfs_view_set_watcher(view, &watcher);
	}
}
END_TEST

/* A tensor that was moved to the path goes back, into a directory whose links are others then, too. */
START_TEST(a_discard_tells_of_where_a_tensor_goes_back_to)
{
	const struct stfs_view_watcher watcher = { note_change, note_rename, NULL };

	stfs_view_set_watcher(view, &watcher);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(do_mkdir("other"), 0);
		ck_assert_int_eq(do_rename("model/a/w", "other/w"), 0);
		expected = ino_of("model/a");
		told = false;
		ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of(i ? "other" : "other/w"), NULL), 0);
		ck_assert(told);
		ck_assert(is_there("model/a/w/data"));
		ck_assert_int_eq(stfs_view_discard(view, (struct stfs_slice){ 0 }, NULL), 0);
	}
}
END_TEST

/* Editors write a new file and give it the old one's name: places of what is gone must be used again, whatever stays. */
START_TEST(files_that_come_and_go_leave_no_places)
{
	ck_assert_int_eq(put("first", "1"), 0);
	ck_assert_int_eq(put("target", "t"), 0);
	for (int i = 0; i < MANY; i++) {
		ck_assert_int_eq(put("temporary", numbered("", i)), 0);
		ck_assert_int_eq(do_rename("temporary", "target"), 0);
		ck_assert_int_eq(put("__metadata__/note", numbered("", i)), 0);
		ck_assert_int_eq(do_unlink("__metadata__/note"), 0);
	}
	ck_assert_uint_le(view->n_contents, 3);
	expect("first", "1");
	expect("target", "99");
	ck_assert_int_eq(do_unlink("first"), 0);
	expect("target", "99");
	reopen();
	expect("target", "99");
}
END_TEST

START_TEST(directories_that_come_and_go_leave_no_places)
{
	struct stfs_attr_change change = { .set_perm = true, .perm = 0700 };
	struct stfs_attr attr;

	ck_assert_int_eq(do_mkdir("stays"), 0);
	ck_assert_int_eq(stfs_view_setattr(view, ino_of("stays"), &change, &attr), 0);
	for (int i = 0; i < MANY; i++) {
		ck_assert_int_eq(do_mkdir("one"), 0);
		ck_assert_int_eq(do_mkdir("two"), 0);
		ck_assert_int_eq(do_rmdir("one"), 0);
		ck_assert_int_eq(do_rmdir("two"), 0);
	}
	ck_assert_uint_le(view->n_dir_attrs, 4);
	ck_assert_int_eq(stfs_view_getattr(view, ino_of("stays"), &attr), 0);
	ck_assert_int_eq(attr.perm, 0700);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_discard_tells_of_its_path);
	tcase_add_test(tcase, a_discard_tells_of_all_that_changes);
	tcase_add_test(tcase, a_discard_tells_of_where_a_tensor_goes_back_to);
	tcase_add_test(tcase, files_that_come_and_go_leave_no_places);
	tcase_add_test(tcase, directories_that_come_and_go_leave_no_places);
	tcase_set_timeout(tcase, 60);
	return run_tests("edit_cost", tcase);
}
