/* SPDX-License-Identifier: Apache-2.0 */
/* Two who work on one file at once. */
#include <pthread.h>
#include <stdatomic.h>

#include "edit_fixture.h"
#include "run_tests.h"

static atomic_bool over;

static void *allocate_on_and_on(void *arg)
{
	while (!atomic_load(&over)) {
		if (stfs_file_allocate(arg, 64) < 0)
			return arg;
	}
	return NULL;
}

/* Taking room cuts nothing off that somebody else has just written. */
START_TEST(allocating_never_shrinks)
{
	struct stfs_file *one = open_write("scratch", true), *other = open_write("scratch", false);
	struct stfs_attr_change empty = { .set_size = true };
	struct stfs_attr attr;
	pthread_t allocator;
	char bytes[128] = "";
	size_t written;
	void *failed;

	ck_assert_int_eq(pthread_create(&allocator, NULL, allocate_on_and_on, other), 0);
	for (int i = 0; i < 30000; i++) {
		ck_assert_int_eq(stfs_file_setattr(one, &empty, &attr), 0);
		ck_assert_int_eq(stfs_file_write(one, bytes, sizeof(bytes), 0, &written), 0);
		for (int k = 0; k < 3; k++) {
			ck_assert_int_eq(stfs_file_getattr(one, &attr), 0);
			ck_assert_uint_eq(attr.size, sizeof(bytes));
		}
	}
	atomic_store(&over, true);
	pthread_join(allocator, &failed);
	ck_assert_ptr_null(failed);
	stfs_file_close(one);
	stfs_file_close(other);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, allocating_never_shrinks);
	tcase_set_timeout(tcase, 60);
	return run_tests("edit_threads", tcase);
}
