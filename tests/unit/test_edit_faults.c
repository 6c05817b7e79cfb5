/* SPDX-License-Identifier: Apache-2.0 */
/* Edits while calls of the system fail in passing. */
#include "edit_fixture.h"
#include "faulty_os.h"
#include "run_tests.h"

static int resize(const char *path, uint64_t size)
{
	struct stfs_attr_change change = { .set_size = true, .size = size };
	struct stfs_attr attr;

	return stfs_view_setattr(view, ino_of(path), &change, &attr);
}

/* Every kind of staged bytes, synced on the way from one to another. */
static void edit_all(void)
{
	char bytes[8192];

	memset(bytes, 'x', sizeof(bytes));
	ck_assert_int_eq(put("scratch", "small"), 0);
	ck_assert_int_eq(stfs_view_sync(view), 0);
	ck_assert_int_eq(write_at("scratch", false, bytes, sizeof(bytes), 0), 0);
	ck_assert_int_eq(write_at("model/big/data", false, bytes, sizeof(bytes), 50000), 0);
	ck_assert_int_eq(stfs_view_sync(view), 0);
	ck_assert_int_eq(resize("scratch", 6000), 0);
	ck_assert_int_eq(resize("model/big/data", 55000), 0);
	ck_assert_int_eq(resize("model/big/data", 100000), 0);
	ck_assert_int_eq(stfs_view_sync(view), 0);
}

/* A signal takes nothing from what is staged: the call is made again. */
START_TEST(an_interrupted_call_is_made_again)
{
	struct faulty_os faulty;
	bool fired = true;

	faulty_os_init(&faulty, stfs_os_real());
	view_os = &faulty.os;
	for (unsigned at = 1; fired; at++) {
		reopen();
		faulty_os_plant(&faulty, FAULTY_ONCE, at, EINTR);
		edit_all();
		fired = faulty.fired;
		faulty_os_plant(&faulty, FAULTY_NONE, 0, 0);
		expect_fill("scratch", 6000, 'x');
		expect_status("M model.big (data)\n? scratch\n# 1 changes, 0 incomplete, 1 scratch files\n");
		ck_assert_int_eq(stfs_view_discard(view, (struct stfs_slice){ 0 }, NULL), 0);
	}
	close_view();
	view_os = NULL;
}
END_TEST

/* The system tells only once that it lost bytes: whoever syncs again must not be told that they are on disk. */
START_TEST(a_sync_that_failed_does_not_succeed_later)
{
	struct faulty_os faulty;
	char bytes[8192];

	memset(bytes, 'x', sizeof(bytes));
	faulty_os_init(&faulty, stfs_os_real());
	view_os = &faulty.os;
	for (unsigned at = 1;; at++) {
		reopen();
		ck_assert_int_eq(write_at("model/big/data", false, bytes, sizeof(bytes), 50000), 0);
		faulty_os_plant_in(&faulty, FAULTY_FDATASYNC, FAULTY_ONCE, at, EIO);
		if (stfs_view_sync(view) == 0)
			break;
		faulty_os_plant(&faulty, FAULTY_NONE, 0, 0);
		ck_assert_msg(stfs_view_sync(view) < 0, "call %u", at);
		ck_assert_int_eq(stfs_view_discard(view, (struct stfs_slice){ 0 }, NULL), 0);
		ck_assert_int_eq(stfs_view_sync(view), 0);
	}
	ck_assert(!faulty.fired);
	close_view();
	view_os = NULL;
}
END_TEST

static int set_mode(const char *path, mode_t perm)
{
	struct stfs_attr_change change = { .set_perm = true, .perm = perm };
	struct stfs_attr attr;

	return stfs_view_setattr(view, ino_of(path), &change, &attr);
}

static mode_t mode_of(const char *path)
{
	struct stfs_attr attr;

	ck_assert_int_eq(stfs_view_getattr(view, ino_of(path), &attr), 0);
	return attr.perm;
}

/* What cannot be written down is refused, and not shown either: without a staging area, and with one. */
START_TEST(a_directory_on_a_full_disk)
{
	struct faulty_os faulty;

	faulty_os_init(&faulty, stfs_os_real());
	view_os = &faulty.os;
	reopen();
	for (int i = 0; i < 2; i++) {
		faulty_os_plant_in(&faulty, FAULTY_PWRITE, FAULTY_FROM, 1, ENOSPC);
		ck_assert_int_eq(set_mode("model", 0700), -ENOSPC);
		ck_assert_uint_eq(mode_of("model"), 0755);
		faulty_os_plant_in(&faulty, FAULTY_PWRITE, FAULTY_NONE, 0, 0);
		ck_assert_int_eq(put("scratch", "x"), 0);
		reopen();
		ck_assert_uint_eq(mode_of("model"), 0755);
	}
	ck_assert_int_eq(set_mode("model", 0700), 0);
	faulty_os_plant_in(&faulty, FAULTY_PWRITE, FAULTY_FROM, 1, ENOSPC);
	ck_assert_int_eq(set_mode("model", 0750), -ENOSPC);
	ck_assert_uint_eq(mode_of("model"), 0700);
	view_os = NULL;
	reopen();
	ck_assert_uint_eq(mode_of("model"), 0700);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, an_interrupted_call_is_made_again);
	tcase_add_test(tcase, a_sync_that_failed_does_not_succeed_later);
	tcase_add_test(tcase, a_directory_on_a_full_disk);
	tcase_set_timeout(tcase, 60);
	return run_tests("edit_faults", tcase);
}
