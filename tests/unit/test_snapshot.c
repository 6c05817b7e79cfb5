/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/time.h>

#include "findings.h"
#include "model_fixture.h"
#include "run_tests.h"
#include "snapshot.h"

static struct findings findings;

static struct stfs_snapshot *open_named(const char *name, enum stfs_io io)
{
	struct stfs_snapshot *snapshot = NULL;

	findings_init(&findings);
	ck_assert_int_eq(stfs_snapshot_open(AT_FDCWD, fixture_path(name), name, 0, io, &findings.report, &snapshot), 0);
	return snapshot;
}

static void make(const char *name)
{
	struct maker maker = { 0 };

	maker_tensor(&maker, "a", "U8", "5", 5);
	maker_write(&maker, name);
}

static int open_fails(const char *name)
{
	struct stfs_snapshot *snapshot = NULL;
	int r;

	findings_init(&findings);
	r = stfs_snapshot_open(AT_FDCWD, fixture_path(name), name, 0, STFS_IO_AUTO, &findings.report, &snapshot);
	ck_assert_ptr_null(snapshot);
	ck_assert_uint_gt(findings.report.violations, 0);
	return r;
}

START_TEST(test_open)
{
	struct stfs_snapshot *snapshot;

	make("m.safetensors");
	snapshot = open_named("m.safetensors", STFS_IO_MAP);
	ck_assert_ptr_nonnull(stfs_snapshot_map(snapshot));
	ck_assert_uint_eq(stfs_snapshot_header(snapshot)->n_tensors, 1);
	ck_assert_int_eq(stfs_snapshot_check(snapshot, NULL, NULL), 0);
	stfs_snapshot_ref(snapshot);
	stfs_snapshot_unref(snapshot);
	stfs_snapshot_unref(snapshot);
	snapshot = open_named("m.safetensors", STFS_IO_PREAD);
	ck_assert_ptr_null(stfs_snapshot_map(snapshot));
	stfs_snapshot_unref(snapshot);
}
END_TEST

START_TEST(test_other_kinds_of_file)
{
	ck_assert_int_eq(open_fails("none"), -ENOENT);
	ck_assert_int_eq(mkdir(fixture_path("d"), 0700), 0);
	ck_assert_int_eq(open_fails("d"), -EISDIR);
	ck_assert_ptr_nonnull(strstr(findings.text, "found a directory"));
	ck_assert_int_eq(rmdir(fixture_path("d")), 0);
	ck_assert_int_eq(mkfifo(fixture_path("p"), 0600), 0);
	ck_assert_int_eq(open_fails("p"), -EINVAL);
	ck_assert_ptr_nonnull(strstr(findings.text, "found a named pipe"));
	ck_assert_int_eq(symlink("loop", fixture_path("loop")), 0);
	ck_assert_int_eq(open_fails("loop"), -ELOOP);
}
END_TEST

/* Each of these changes the file under an open snapshot; says is NULL where that must be no trouble. */
static void change_truncate(const char *path)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(truncate(path, st.st_size - 1), 0);
}

static void change_grow(const char *path)
{
	FILE *file = fopen(path, "a");

	fputc('x', file);
	fclose(file);
}

static void change_write(const char *path)
{
	int fd = open(path, O_WRONLY);

	ck_assert_int_eq((int)pwrite(fd, "x", 1, 60), 1);
	close(fd);
}

/* Writes into the header and puts mtime back, as a careful forger does. */
static void change_header(const char *path)
{
	struct stat st;
	int fd = open(path, O_WRONLY);

	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq((int)pwrite(fd, "b", 1, 10), 1);
	ck_assert_int_eq(futimens(fd, (struct timespec[]){ st.st_atim, st.st_mtim }), 0);
	close(fd);
}

static void change_mode(const char *path)
{
	ck_assert_int_eq(chmod(path, 0600), 0);
}

static void change_link(const char *path)
{
	ck_assert_int_eq(link(path, fixture_path("second")), 0);
}

static void change_unlink(const char *path)
{
	ck_assert_int_eq(unlink(path), 0);
}

static void change_replace(const char *path)
{
	make("new.safetensors");
	ck_assert_int_eq(rename(fixture_path("new.safetensors"), path), 0);
}

static const struct {
	void (*change)(const char *path);
	const char *says;
} changes[] = {
	{ change_truncate, "was truncated" },
	{ change_grow, "grew" },
	{ change_write, "was written to" },
	{ change_header, "has another header" },
	{ change_mode, NULL },
	{ change_link, NULL },
	{ change_unlink, NULL },
	{ change_replace, NULL },
};

START_TEST(test_changes)
{
	struct stfs_snapshot *snapshot;
	struct stfs_diag diag = { 0 };
	char path[300];
	bool first;

	make("m.safetensors");
	snapshot = open_named("m.safetensors", STFS_IO_AUTO);
	snprintf(path, sizeof(path), "%s/m.safetensors", fixture_dir);
	usleep(20000); /* a coarse clock must have moved on */
	changes[_i].change(path);
	if (changes[_i].says) {
		ck_assert_int_eq(stfs_snapshot_check(snapshot, &diag, &first), -ESTALE);
		ck_assert(first);
		ck_assert_msg(strstr(diag.text, changes[_i].says), "%s", diag.text);
		ck_assert_int_eq(stfs_snapshot_check(snapshot, NULL, &first), -ESTALE);
		ck_assert(!first);
	} else {
		ck_assert_int_eq(stfs_snapshot_check(snapshot, NULL, NULL), 0);
		ck_assert_int_eq(stfs_snapshot_check(snapshot, NULL, NULL), 0);
	}
	stfs_snapshot_unref(snapshot);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_checked_fixture(tcase, fixture_setup, fixture_teardown);
	tcase_add_test(tcase, test_open);
	tcase_add_test(tcase, test_other_kinds_of_file);
	tcase_add_loop_test(tcase, test_changes, 0, sizeof(changes) / sizeof(changes[0]));
	return run_tests("snapshot", tcase);
}
