/* SPDX-License-Identifier: Apache-2.0 */
/* What a power cut leaves of staged bytes: a file of the right size that does not have all of them. */
#include <fcntl.h>
#include <glob.h>

#include "edit_fixture.h"
#include "run_tests.h"

#define BEGIN 10000
#define END 40000
#define HOLE_BEGIN 16384
#define HOLE_END 24576

static uint64_t another_boot(void *user)
{
	(void)user;
	return 77;
}

/* Makes a hole in the only staged file of the closed view. Returns false where the filesystem has none. */
static bool make_hole(void)
{
	char pattern[300];
	glob_t found;
	int fd, r;

	snprintf(pattern, sizeof(pattern), "%s/.m.stage/bytes.*", fixture_dir);
	ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
	ck_assert_uint_eq(found.gl_pathc, 1);
	fd = open(found.gl_pathv[0], O_WRONLY);
	ck_assert_int_ge(fd, 0);
	r = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, HOLE_BEGIN, HOLE_END - HOLE_BEGIN);
	close(fd);
	globfree(&found);
	return r == 0;
}

/* The tensor is as the model has it but for what was written, and in the hole `model` (or zeros). */
static void expect_data(const struct stfs_buf *old, bool model)
{
	struct stfs_buf now = bytes_of("model/big/data");

	ck_assert_uint_eq(now.len, old->len);
	for (size_t i = 0; i < now.len; i++) {
		bool in_hole = i >= HOLE_BEGIN && i < HOLE_END, written = i >= BEGIN && i < END;
		char want = in_hole ? (model ? old->data[i] : 0) : written ? 'x' : old->data[i];

		ck_assert_msg(now.data[i] == want, "byte %zu is %d", i, now.data[i]);
	}
	stfs_buf_fini(&now);
}

/* _i: whether they were synced. Then a hole is what somebody wrote, whatever else is damaged. */
START_TEST(a_hole_is_no_edit)
{
	struct stfs_buf old = bytes_of("model/big/data");
	struct stfs_os os = *stfs_os_real();
	char bytes[END - BEGIN];

	os.boot = another_boot;
	memset(bytes, 'x', sizeof(bytes));
	ck_assert_int_eq(write_at("model/big/data", false, bytes, sizeof(bytes), BEGIN), 0);
	if (_i) {
		ck_assert_int_eq(stfs_view_sync(view), 0);
		ck_assert_int_eq(write_at("model/big/data", false, old.data, 10, 0), 0);
	}
	close_view();
	if (make_hole()) {
		view_os = &os;
		open_view(STFS_NESTED);
		for (int i = 0; i < 2; i++) {
			expect_data(&old, !_i);
			expect_status("! model.big: a power cut may have taken bytes that were never synced\n"
				      "# 0 changes, 1 incomplete, 0 scratch files\n");
			reopen();
		}
		close_view();
		view_os = NULL;
	}
	open_view(STFS_NESTED);
	stfs_buf_fini(&old);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, a_hole_is_no_edit, 0, 2);
	return run_tests("edit_power", tcase);
}
