/* SPDX-License-Identifier: Apache-2.0 */
/* Absolute names, and the kernel's list of mounts. */
#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cleanup.h"
#include "mountinfo.h"
#include "path.h"
#include "run_tests.h"

/* Anchors `path` with a fresh directory, holding "d" and the link "l" to it, as the working directory. */
static void check_anchor(const char *path, const char *want_tail)
{
	char top[] = "/tmp/stfs-path-XXXXXX", cwd[4096];
	_cleanup_free_ char *got = NULL, *want = NULL;

	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_int_eq(chdir(top), 0);
	ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
	ck_assert_int_eq(mkdir("d", 0700), 0);
	ck_assert_int_eq(symlink("d", "l"), 0);
	ck_assert_int_eq(stfs_path_anchor(path, &got), 0);
	ck_assert_int_ge(asprintf(&want, "%s%s", cwd, want_tail), 0);
	ck_assert_str_eq(got, want);
	ck_assert_int_eq(unlink("l"), 0);
	ck_assert_int_eq(rmdir("d"), 0);
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(rmdir(top), 0);
}

START_TEST(test_anchor)
{
	check_anchor("x", "/x");
	check_anchor("./x", "/x");
	check_anchor("x///", "/x");
	check_anchor("d/x", "/d/x");
	check_anchor("l", "/l");
	check_anchor("l/", "/l");
	check_anchor("l/x", "/d/x");
	check_anchor("d/../x", "/x");
	check_anchor(".", "");
	check_anchor("d/..", "");
	check_anchor("d/.", "/d");
	check_anchor("l/.", "/d");
}
END_TEST

START_TEST(test_anchor_top)
{
	static const char *const same[] = { "/", "/x", "/proc" };
	char *got = NULL;

	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(stfs_path_anchor(same[i], &got), 0);
		ck_assert_str_eq(got, same[i]);
		free(got);
	}
	ck_assert_int_eq(stfs_path_anchor("//", &got), 0);
	ck_assert_str_eq(got, "/");
	free(got);
	got = NULL;
	ck_assert_int_eq(stfs_path_anchor("/nowhere/x", &got), -ENOENT);
	ck_assert_int_eq(stfs_path_anchor("/dev/null/x/y", &got), -ENOTDIR);
	ck_assert_int_eq(stfs_path_anchor("", &got), -ENOENT);
	ck_assert_ptr_null(got);
}
END_TEST

START_TEST(test_within)
{
	ck_assert(stfs_path_is_within("/a/b", "/a"));
	ck_assert(stfs_path_is_within("/a", "/a"));
	ck_assert(stfs_path_is_within("/a", "/"));
	ck_assert(stfs_path_is_within("/", "/"));
	ck_assert(!stfs_path_is_within("/ab", "/a"));
	ck_assert(!stfs_path_is_within("/a", "/a/b"));
	ck_assert(!stfs_path_is_within("/", "/a"));
}
END_TEST

START_TEST(test_mounts)
{
	_cleanup_mount_ struct stfs_mount mount = { 0 };

	ck_assert_int_eq(stfs_mountinfo_find("/proc", &mount), 0);
	ck_assert_str_eq(mount.type, "proc");
	ck_assert_int_eq(stfs_mountinfo_find("/proc/self", &mount), -ENOENT);
	ck_assert_int_eq(stfs_mountinfo_find("proc", &mount), -ENOENT);
	ck_assert_str_eq(mount.type, "proc");
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("path");

	tcase_add_test(tcase, test_anchor);
	tcase_add_test(tcase, test_anchor_top);
	tcase_add_test(tcase, test_within);
	tcase_add_test(tcase, test_mounts);
	return run_tests("path", tcase);
}
