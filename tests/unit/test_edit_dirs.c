/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes that were set of a directory: how long they last, and what takes them away. */
#include "shard_fixture.h"
#include "edit_fixture.h"
#include "run_tests.h"

#define SET_SEC 1000000000
#define SET_NSEC 123456789

static struct stfs_attr attr_of(const char *path)
{
	struct stfs_attr attr;

	ck_assert_int_eq(stfs_view_getattr(view, ino_of(path), &attr), 0);
	return attr;
}

static int change_dir(const char *path, mode_t perm)
{
	struct stfs_attr_change change = {
		.set_perm = true,
		.set_uid = true,
		.set_gid = true,
		.set_mtime = true,
		.perm = perm,
		.uid = 4711,
		.gid = 815,
		.mtime = { SET_SEC, SET_NSEC },
	};
	struct stfs_attr attr;

	return stfs_view_setattr(view, ino_of(path), &change, &attr);
}

static void set_dir(const char *path, mode_t perm)
{
	ck_assert_int_eq(change_dir(path, perm), 0);
}

/* All of it is as set_dir() made it, but for the time when an edit moved that. */
static void expect_mode(const char *path, mode_t perm)
{
	struct stfs_attr attr = attr_of(path);

	ck_assert_msg(attr.perm == perm, "%s: mode %o", path, attr.perm);
	ck_assert_uint_eq(attr.uid, 4711);
	ck_assert_uint_eq(attr.gid, 815);
}

static void expect_set(const char *path, mode_t perm)
{
	struct stfs_attr attr = attr_of(path);

	expect_mode(path, perm);
	ck_assert_int_eq(attr.mtime.tv_sec, SET_SEC);
	ck_assert_int_eq(attr.mtime.tv_nsec, SET_NSEC);
}

static void expect_not_set(const char *path)
{
	struct stfs_attr attr = attr_of(path);

	ck_assert_msg(attr.perm == 0755, "%s: mode %o", path, attr.perm);
	ck_assert_uint_ne(attr.uid, 4711);
	ck_assert_int_ne(attr.mtime.tv_sec, SET_SEC);
}

static bool has_stage(void)
{
	return access(fixture_path(".m.stage"), F_OK) == 0;
}

START_TEST(set_attributes_outlive_the_view)
{
	ck_assert_int_eq(do_mkdir("new"), 0);
	set_dir("new", 0700);
	set_dir("model", 0710);
	set_dir("model/a/w", 01777);
	set_dir("__metadata__", 0701);
	close_view();
	open_view(STFS_NESTED);
	for (int i = 0; i < 2; i++) {
		expect_set("new", 0700);
		expect_set("model", 0710);
		expect_set("model/a/w", 01777);
		expect_set("__metadata__", 0701);
		expect_not_set("model/a");
		reopen();
	}
	/* The last word counts, and what it leaves out stays. */
	ck_assert_int_eq(stfs_view_setattr(view, ino_of("new"),
					   &(struct stfs_attr_change){ .set_perm = true, .perm = 0750 },
					   &(struct stfs_attr){ 0 }),
			 0);
	reopen();
	expect_set("new", 0750);
}
END_TEST

START_TEST(the_root_and_a_flat_tree)
{
	close_view();
	open_view(STFS_FLAT);
	set_dir("", 0700);
	set_dir("model.a.w", 0711);
	ck_assert_int_eq(do_mkdir("new.x"), 0);
	set_dir("new.x", 0701);
	reopen();
	expect_set("", 0700);
	expect_set("model.a.w", 0711);
	expect_set("new.x", 0701);
}
END_TEST

START_TEST(nothing_is_staged_by_them)
{
	ck_assert(!has_stage());
	set_dir("model/a", 0700);
	expect_status("# nothing is staged\n");
	ck_assert(!stfs_view_has_staged(view));
	/* Not the end of a mount: a killed one. */
	reopen();
	expect_set("model/a", 0700);
	expect_status("# nothing is staged\n");
	stfs_view_tidy(view);
	ck_assert(!has_stage());
	reopen();
	expect_not_set("model/a");
}
END_TEST

START_TEST(renamed_and_removed)
{
	set_dir("model/a", 0700);
	set_dir("model/a/w", 0701);
	ck_assert_int_eq(do_rename("model/a", "other"), 0);
	ck_assert_int_eq(do_mkdir("gone"), 0);
	set_dir("gone", 0710);
	ck_assert_int_eq(do_rmdir("gone"), 0);
	ck_assert_int_eq(do_mkdir("gone"), 0);
	ck_assert_int_eq(do_mkdir("replaced"), 0);
	set_dir("replaced", 0711);
	ck_assert_int_eq(do_mkdir("replacing"), 0);
	set_dir("replacing", 0770);
	ck_assert_int_eq(do_rename("replacing", "replaced"), 0);
	for (int i = 0; i < 2; i++) {
		expect_set("other", 0700);
		expect_set("other/w", 0701);
		expect_not_set("gone");
		expect_set("replaced", 0770);
		reopen();
	}
}
END_TEST

static void discard(const char *path)
{
	struct stfs_diag diag = { 0 };

	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of(path), &diag), 0);
}

START_TEST(discarded_with_the_rest)
{
	ck_assert_int_eq(put("__metadata__/note", "y"), 0);
	set_dir("", 0711);
	set_dir("model", 0700);
	set_dir("model/a", 0701);
	set_dir("model/a/w", 0710);
	set_dir("__metadata__", 0711);
	discard("model/a");
	for (int i = 0; i < 2; i++) {
		expect_set("model", 0700);
		expect_not_set("model/a");
		expect_not_set("model/a/w");
		expect_set("__metadata__", 0711);
		reopen();
	}
	discard("__metadata__");
	for (int i = 0; i < 2; i++) {
		expect_set("", 0711);
		expect_set("model", 0700);
		expect_not_set("__metadata__");
		reopen();
	}
	set_dir("__metadata__", 0711);
	discard("");
	ck_assert_int_eq(put("__metadata__/note", "y"), 0);
	for (int i = 0; i < 2; i++) {
		expect_not_set("");
		expect_not_set("model");
		expect_not_set("__metadata__");
		reopen();
	}
}
END_TEST

/* A tensor of one byte. */
static void put_tensor(const char *dir)
{
	char path[100];

	ck_assert_int_eq(do_mkdir(dir), 0);
	snprintf(path, sizeof(path), "%s/data", dir);
	ck_assert_int_eq(put(path, "x"), 0);
	snprintf(path, sizeof(path), "%s/dtype", dir);
	ck_assert_int_eq(put(path, "U8"), 0);
	snprintf(path, sizeof(path), "%s/shape", dir);
	ck_assert_int_eq(put(path, "1"), 0);
}

static void reopen_editing(void)
{
	stfs_view_free(view);
	view = editing("m.safetensors");
}

/* Of what a commit leaves staged, and of what it made the model's, also where that has another path from then on. */
START_TEST(a_commit_with_scratch_files)
{
	close_view();
	view = editing("m.safetensors");
	ck_assert_int_eq(do_mkdir("scratch"), 0);
	ck_assert_int_eq(put("scratch/file", "x"), 0);
	ck_assert_int_eq(do_mkdir("empty"), 0);
	put_tensor("dotted.name");
	put_tensor("noted.name");
	ck_assert_int_eq(put("noted.name/notes", "x"), 0);
	set_dir("noted.name", 0750);
	set_dir("scratch", 0700);
	set_dir("empty", 0770);
	set_dir("model/a", 0710);
	set_dir("dotted.name", 0711);
	commit(view);
	for (int i = 0; i < 3; i++) {
		expect_set("scratch", 0700);
		expect_set("model/a", 0710);
		expect_set("dotted/name", 0711);
		/* Its notes stay where they were. */
		expect_set("noted/name", 0750);
		expect_set("noted.name", 0750);
		ck_assert(!is_there("empty"));
		reopen_editing();
	}
}
END_TEST

/* A directory shows the mode that it was made with as long as it is staged, like one that was set. */
START_TEST(made_before_a_commit)
{
	struct stfs_attr attr;

	close_view();
	view = editing("m.safetensors");
	ck_assert_int_eq(stfs_view_mkdir(view, STFS_INO_ROOT, stfs_slice_of("scratch"), 0700, owner, &attr), 0);
	ck_assert_int_eq(put("scratch/file", "x"), 0);
	ck_assert_int_eq(put("__metadata__/note", "y"), 0);
	commit(view);
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(attr_of("scratch").perm, 0700);
		ck_assert_uint_eq(attr_of("scratch").uid, owner.uid);
		reopen_editing();
	}
}
END_TEST

/* Nothing stays staged, and the mount goes on to show them: what is staged next keeps them too. */
START_TEST(a_commit_of_everything)
{
	close_view();
	view = editing("m.safetensors");
	put_tensor("dotted.name");
	set_dir("dotted.name", 0711);
	set_dir("model/a", 0710);
	commit(view);
	ck_assert_int_ne(access(fixture_path(FIXTURE_STAGE), F_OK), 0);
	expect_set("dotted/name", 0711);
	ck_assert_int_eq(put("__metadata__/note", "z"), 0);
	for (int i = 0; i < 2; i++) {
		expect_set("dotted/name", 0711);
		expect_set("model/a", 0710);
		reopen_editing();
	}
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, set_attributes_outlive_the_view);
	tcase_add_test(tcase, the_root_and_a_flat_tree);
	tcase_add_test(tcase, nothing_is_staged_by_them);
	tcase_add_test(tcase, renamed_and_removed);
	tcase_add_test(tcase, discarded_with_the_rest);
	tcase_add_test(tcase, a_commit_with_scratch_files);
	tcase_add_test(tcase, made_before_a_commit);
	tcase_add_test(tcase, a_commit_of_everything);
	tcase_set_timeout(tcase, 60);
	return run_tests("edit_dirs", tcase);
}
