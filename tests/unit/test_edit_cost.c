/* SPDX-License-Identifier: Apache-2.0 */
/* What an edit costs follows what it touches, not what else is staged or was staged before. */
#include "edit_fixture.h"
#include "run_tests.h"

#define MANY 100

static unsigned notices;

static void count_change(void *user, uint64_t ino)
{
	(void)user, (void)ino;
	notices++;
}

static void count_rename(void *user, uint64_t parent, struct stfs_slice name, bool gone)
{
	(void)user, (void)parent, (void)name, (void)gone;
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

static void note_rename(void *user, uint64_t parent, struct stfs_slice name, bool gone)
{
	(void)user, (void)parent, (void)name, (void)gone;
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

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_discard_tells_of_its_path);
	tcase_add_test(tcase, a_discard_tells_of_all_that_changes);
	tcase_set_timeout(tcase, 60);
	return run_tests("edit_cost", tcase);
}
