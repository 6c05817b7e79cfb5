/* SPDX-License-Identifier: Apache-2.0 */
/* The new file takes the place of the old one: its owner and mode, links, names and the lock. */
#include "one_file_fixture.h"
#include "run_tests.h"

/* Touching permissions alone is no change of the model, and the new file has the new ones. */
START_TEST(permissions_are_kept)
{
	struct stat st;

	edit_put(view, "a/b/data", "vwxyz");
	ck_assert_int_eq(chmod(fixture_path(NAME), 0640), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(chown(fixture_path(NAME), 1234, 4321), 0);
	umask(0);
	commit(view);
	st = stat_of(NAME);
	ck_assert_uint_eq(st.st_mode & 07777, 0640);
	if (geteuid() == 0) {
		ck_assert_uint_eq(st.st_uid, 1234);
		ck_assert_uint_eq(st.st_gid, 4321);
	}
}
END_TEST

/* Goes on as another user, who owns the folder. */
static void become_nobody(void)
{
	if (geteuid() != 0)
		return;
	ck_assert_int_eq(chown(fixture_dir, 65534, 65534), 0);
	ck_assert_int_eq(setegid(65534), 0);
	ck_assert_int_eq(seteuid(65534), 0);
}

START_TEST(what_cannot_be_given_away_opens_to_nobody)
{
	struct stat st;

	if (geteuid() != 0)
		return; /* takes a file of somebody else */
	stfs_view_free(view);
	ck_assert_int_eq(chmod(fixture_path(NAME), 0664), 0);
	become_nobody();
	view = editing(NAME);
	edit_put(view, "a/b/data", "vwxyz");
	commit(view);
	st = stat_of(NAME);
	ck_assert_uint_eq(st.st_uid, 65534);
	ck_assert_uint_eq(st.st_gid, 65534);
	/* The group is another one now: what the old group might, the new one may not. */
	ck_assert_uint_eq(st.st_mode & 07777, 0644);
}
END_TEST

START_TEST(a_read_only_folder_refuses)
{
	stfs_view_free(view);
	ck_assert_int_eq(chmod(fixture_path(NAME), 0644), 0);
	become_nobody();
	view = editing(NAME);
	edit_put(view, "a/b/data", "vwxyz");
	ck_assert_int_eq(chmod(fixture_dir, 0555), 0);
	refused(-EACCES, "cannot be made");
	ck_assert_int_eq(chmod(fixture_dir, 0755), 0);
	ck_assert_str_eq(folder_names(""), STAGED);
	commit(view);
	ck_assert_str_eq(folder_names(""), NAME);
}
END_TEST

/* As in a Hugging Face cache: the link becomes a file, the blob stays what its name says. */
START_TEST(a_link_is_replaced_and_the_blob_is_not)
{
	struct stat blob, st;

	stfs_view_free(view);
	ck_assert_int_eq(mkdir(fixture_path("blobs"), 0755), 0);
	file_rename(NAME, "blobs/abc");
	ck_assert_int_eq(symlink("blobs/abc", fixture_path(NAME)), 0);
	blob = stat_of("blobs/abc");
	view = editing(NAME);
	edit_put(view, "a/b/data", "vwxyz");
	ck_assert(commit(view).link_replaced);
	st = stat_of(NAME);
	ck_assert(S_ISREG(st.st_mode));
	ck_assert_uint_eq(st.st_mode & 07777, 0644);
	st = stat_of("blobs/abc");
	ck_assert_uint_eq(st.st_ino, blob.st_ino);
	ck_assert_int_eq(st.st_mtim.tv_nsec, blob.st_mtim.tv_nsec);
	edit_put(view, "a/b/data", "12345");
	ck_assert(!commit(view).link_replaced);
	edit_expect(view, "a/b/data", "12345");
}
END_TEST

START_TEST(another_name_of_the_file_keeps_it)
{
	struct stfs_buf before = file_bytes(NAME), after;

	file_link(NAME, "other");
	edit_put(view, "a/b/data", "vwxyz");
	commit(view);
	after = file_bytes("other");
	ck_assert(stfs_slice_equal(stfs_buf_slice(&before), stfs_buf_slice(&after)));
	stfs_buf_fini(&before);
	stfs_buf_fini(&after);
	ck_assert_uint_eq(stat_of(NAME).st_nlink, 1);
}
END_TEST

/* The lock is on the new file, and nobody got in between. */
START_TEST(the_lock_goes_with_the_name)
{
	int old = open(fixture_path(NAME), O_RDONLY), new;

	edit_put(view, "a/b/data", "vwxyz");
	commit(view);
	new = open(fixture_path(NAME), O_RDONLY);
	ck_assert_int_eq(flock(new, LOCK_EX | LOCK_NB), -1);
	ck_assert_int_eq(errno, EWOULDBLOCK);
	ck_assert_int_eq(flock(old, LOCK_EX | LOCK_NB), 0);
	close(old);
	stfs_view_free(view);
	view = NULL;
	ck_assert_int_eq(flock(new, LOCK_EX | LOCK_NB), 0);
	close(new);
}
END_TEST

/* A leftover of the deterministic name is ours, and goes. */
START_TEST(a_leftover_is_no_obstacle)
{
	file_put("." NAME ".stfs-commit", "half a file");
	edit_put(view, "a/b/data", "vwxyz");
	commit(view);
	ck_assert_str_eq(folder_names(""), NAME);
}
END_TEST

/* The longest name a folder takes has a temporary one too. */
START_TEST(the_longest_name_can_be_committed)
{
	char name[256] = { 0 };

	stfs_view_free(view);
	memset(name, 'n', 255);
	memcpy(name + 255 - 12, ".safetensors", 12);
	file_rename(NAME, name);
	view = editing(name);
	edit_put(view, "a/b/data", "vwxyz");
	commit(view);
	ck_assert_str_eq(folder_names(""), name);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("commit");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, permissions_are_kept);
	tcase_add_test(tcase, what_cannot_be_given_away_opens_to_nobody);
	tcase_add_test(tcase, a_read_only_folder_refuses);
	tcase_add_test(tcase, a_link_is_replaced_and_the_blob_is_not);
	tcase_add_test(tcase, another_name_of_the_file_keeps_it);
	tcase_add_test(tcase, the_lock_goes_with_the_name);
	tcase_add_test(tcase, a_leftover_is_no_obstacle);
	tcase_add_test(tcase, the_longest_name_can_be_committed);
	return run_tests("commit_place", tcase);
}
