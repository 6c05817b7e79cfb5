/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>

#include "idmap.h"
#include "run_tests.h"

#define N 5000u

static char values[2];

START_TEST(empty)
{
	struct stfs_idmap map = { 0 };

	ck_assert_ptr_null(stfs_idmap_get(&map, 0));
	ck_assert_ptr_null(stfs_idmap_get(&map, UINT64_MAX));
	stfs_idmap_fini(&map);
}
END_TEST

/* Numbers that differ in their low or their high bits only, and 0. */
START_TEST(holds_many)
{
	struct stfs_idmap map = { 0 };

	for (uint64_t i = 0; i < N; i++) {
		ck_assert_int_eq(stfs_idmap_put(&map, i, &values[0]), 0);
		ck_assert_int_eq(stfs_idmap_put(&map, i << 40 | 1u << 31, &values[1]), 0);
	}
	ck_assert_uint_eq(map.n, 2 * N);
	for (uint64_t i = 0; i < N; i++) {
		ck_assert_ptr_eq(stfs_idmap_get(&map, i), &values[0]);
		ck_assert_ptr_eq(stfs_idmap_get(&map, i << 40 | 1u << 31), &values[1]);
		ck_assert_ptr_null(stfs_idmap_get(&map, i + N));
	}
	stfs_idmap_fini(&map);
	ck_assert_ptr_null(stfs_idmap_get(&map, 1));
}
END_TEST

/* Each second one is taken out; those that stood behind it are found all the same. */
START_TEST(takes_out)
{
	struct stfs_idmap map = { 0 };

	ck_assert_ptr_null(stfs_idmap_take(&map, 0));
	for (uint64_t i = 0; i < N; i++)
		ck_assert_int_eq(stfs_idmap_put(&map, i, &values[0]), 0);
	for (uint64_t i = 0; i < N; i += 2)
		ck_assert_ptr_eq(stfs_idmap_take(&map, i), &values[0]);
	ck_assert_uint_eq(map.n, N / 2);
	for (uint64_t i = 0; i < N; i++)
		ck_assert_ptr_eq(stfs_idmap_get(&map, i), i % 2 ? &values[0] : NULL);
	ck_assert_ptr_null(stfs_idmap_take(&map, 0));
	ck_assert_uint_eq(map.n, N / 2);
	stfs_idmap_fini(&map);
}
END_TEST

START_TEST(last_word_counts)
{
	struct stfs_idmap map = { 0 };

	ck_assert_int_eq(stfs_idmap_put(&map, 7, &values[0]), 0);
	ck_assert_int_eq(stfs_idmap_put(&map, 7, &values[1]), 0);
	ck_assert_ptr_eq(stfs_idmap_get(&map, 7), &values[1]);
	ck_assert_uint_eq(map.n, 1);
	stfs_idmap_fini(&map);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("idmap");

	tcase_add_test(tcase, empty);
	tcase_add_test(tcase, holds_many);
	tcase_add_test(tcase, takes_out);
	tcase_add_test(tcase, last_word_counts);
	return run_tests("idmap", tcase);
}
