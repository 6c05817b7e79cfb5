/* SPDX-License-Identifier: Apache-2.0 */
/* Commits that do not come about: what they say, and that everything is as it was. */
#include "view_publish.h" /* before the fixture, whose view its arguments would shadow */

#include "one_file_fixture.h"
#include "run_tests.h"

START_TEST(incomplete_tensors_refuse_the_whole)
{
	struct stat before = stat_of(NAME);
	struct stfs_commit_options options = { 0 };
	struct stfs_commit_result result;

	edit_put(view, "a/b/data", "vwxyz");
	edit_resize(view, "a/w/data", 12);
	edit_mkdir(view, "n");
	edit_put(view, "n/data", "123");
	ck_assert_int_eq(commit_options(view, &options, &said, &result), -EINVAL);
	ck_assert_ptr_nonnull(strstr(said.text, "\"a.w\""));
	ck_assert_ptr_nonnull(strstr(said.text, "\"n\""));
	ck_assert_ptr_null(strstr(said.text, "\"a.b\""));
	ck_assert_uint_eq(stat_of(NAME).st_ino, before.st_ino);
	ck_assert_str_eq(folder_names(""), STAGED);
	edit_resize(view, "a/w/data", 24);
	edit_rm(view, "n/data");
	remount();
	commit(view);
	want_old(&wanted, 0, 12);
	want_zeros(&wanted, 12);
	want_bytes(&wanted, "vwxyz", 5);
	want_old(&wanted, 29, BIG_SIZE);
	expect_file(NAME, ALL, &wanted);
}
END_TEST

START_TEST(a_dry_run_writes_nothing)
{
	struct stfs_commit_options options = { .dry_run = true };
	struct stat before = stat_of(NAME);
	struct stfs_commit_result result;

	edit_mv(view, "a", "z");
	edit_put(view, "notes", "scratch");
	ck_assert_int_eq(commit_options(view, &options, &said, &result), 0);
	ck_assert(!result.nothing);
	ck_assert_uint_eq(result.files, 1);
	ck_assert_uint_eq(stat_of(NAME).st_ino, before.st_ino);
	ck_assert_str_eq(folder_names(""), STAGED);
	edit_resize(view, "z/w/data", 2);
	refused_by(&options, -EINVAL, "\"z.w\"");
	edit_resize(view, "z/w/data", 24);
	ck_assert_uint_eq(commit(view).bytes, result.bytes);
	ck_assert_uint_eq((uint64_t)stat_of(NAME).st_size, result.bytes);
}
END_TEST

struct seen {
	uint64_t last, total;
	unsigned n, stop_at;
};

static int see(void *user, uint64_t done, uint64_t total)
{
	struct seen *seen = user;

	ck_assert_uint_ge(done, seen->last);
	ck_assert_uint_le(done, total);
	seen->last = done;
	seen->total = total;
	return ++seen->n == seen->stop_at;
}

START_TEST(progress_is_told_and_can_stop_it)
{
	struct seen seen = { .stop_at = 2 };
	struct stfs_commit_options options = { .progress = see, .user = &seen };
	struct stfs_commit_result result;

	edit_mkdir(view, "n");
	edit_put(view, "n/dtype", "U8");
	edit_put(view, "n/shape", "50000000");
	edit_write(view, "n/data", true, "x", 1, 49999999);
	refused_by(&options, -ECANCELED, "stopped");
	ck_assert_str_eq(folder_names(""), STAGED);
	seen = (struct seen){ 0 };
	ck_assert_int_eq(commit_options(view, &options, &said, &result), 0);
	ck_assert_uint_eq(seen.last, seen.total);
	ck_assert_uint_eq(seen.total, result.bytes);
	ck_assert_uint_ge(seen.n, 2);
	ck_assert_uint_le(seen.n, 6);
}
END_TEST

START_TEST(one_commit_at_a_time)
{
	struct stfs_file *file = edit_open(view, "scratch", true);
	struct stfs_attr attr;

	edit_put(view, "a/b/data", "vwxyz");
	ck_assert_int_eq(stfs_view_freeze(view), 0);
	ck_assert_int_eq(stfs_file_sync(file), -EBUSY);
	refused(-EBUSY, "another commit");
	ck_assert_int_eq(stfs_view_mkdir(view, STFS_INO_ROOT, stfs_slice_of("x"), 0755, (struct stfs_owner){ 0 },
					 &attr),
			 -EBUSY);
	stfs_view_thaw(view);
	ck_assert_int_eq(stfs_file_sync(file), 0);
	stfs_file_close(file);
	commit(view);
}
END_TEST

START_TEST(a_read_only_view_commits_nothing)
{
	struct stfs_view_options options = { 0 };

	stfs_view_free(view);
	ck_assert_int_eq(stfs_view_new(fixture_open(NAME), &options, NULL, NULL, &view), 0);
	refused(-EROFS, "reading only");
}
END_TEST

START_TEST(a_source_that_was_written_is_stale)
{
	int fd = open(fixture_path(NAME), O_WRONLY);

	edit_put(view, "a/b/data", "vwxyz");
	ck_assert_int_eq(pwrite(fd, "?", 1, 500), 1);
	close(fd);
	refused(-ESTALE, "was written to");
	ck_assert_str_eq(folder_names(""), STAGED);
	edit_expect(view, "a/b/data", "vwxyz");
}
END_TEST

START_TEST(a_source_that_was_cut_is_stale)
{
	edit_put(view, "a/b/data", "vwxyz");
	ck_assert_int_eq(truncate(fixture_path(NAME), 50000), 0);
	refused(-ESTALE, "was truncated");
}
END_TEST

START_TEST(a_source_that_was_replaced_is_stale)
{
	edit_put(view, "a/b/data", "vwxyz");
	file_rename(NAME, "elsewhere");
	refused(-ESTALE, "not there any more");
	make_model();
	refused(-ESTALE, "another file has taken its place");
	ck_assert_str_eq(folder_names(""), FIXTURE_STAGE " elsewhere " NAME);
}
END_TEST

static int change_source(void *user, uint64_t done, uint64_t total)
{
	int fd = open(fixture_path(NAME), O_WRONLY);

	(void)user;
	(void)done;
	(void)total;
	ck_assert_int_eq(pwrite(fd, "?", 1, 500), 1);
	return close(fd);
}

START_TEST(a_source_that_changes_meanwhile_is_stale)
{
	struct stfs_commit_options options = { .progress = change_source };

	edit_put(view, "a/b/data", "vwxyz");
	refused_by(&options, -ESTALE, "was written to");
	ck_assert_str_eq(folder_names(""), STAGED);
}
END_TEST

START_TEST(more_than_the_disk_holds_is_said_before)
{
	edit_resize(view, "big/data", UINT64_C(1) << 43);
	edit_put(view, "big/shape", "8796093022208");
	refused(-ENOSPC, "bytes are to be written");
	ck_assert_str_eq(folder_names(""), STAGED);
}
END_TEST

START_TEST(reshaping_needs_another_place)
{
	struct stfs_commit_options options = { .plan = { .reshape = true, .max_shard_size = 1000 } };

	edit_put(view, "a/b/data", "vwxyz");
	refused_by(&options, -EINVAL, "another place");
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("commit");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, incomplete_tensors_refuse_the_whole);
	tcase_add_test(tcase, a_dry_run_writes_nothing);
	tcase_add_test(tcase, progress_is_told_and_can_stop_it);
	tcase_add_test(tcase, one_commit_at_a_time);
	tcase_add_test(tcase, a_read_only_view_commits_nothing);
	tcase_add_test(tcase, a_source_that_was_written_is_stale);
	tcase_add_test(tcase, a_source_that_was_cut_is_stale);
	tcase_add_test(tcase, a_source_that_was_replaced_is_stale);
	tcase_add_test(tcase, a_source_that_changes_meanwhile_is_stale);
	tcase_add_test(tcase, more_than_the_disk_holds_is_said_before);
	tcase_add_test(tcase, reshaping_needs_another_place);
	return run_tests("commit_refused", tcase);
}
