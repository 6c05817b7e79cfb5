/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>

#include "ranges.h"
#include "run_tests.h"

static bool add(struct stfs_ranges *ranges, uint64_t begin, uint64_t end)
{
	bool grew;

	ck_assert_int_eq(stfs_ranges_add(ranges, begin, end, &grew), 0);
	return grew;
}

START_TEST(test_add)
{
	struct stfs_ranges ranges = { 0 };

	ck_assert_uint_eq(stfs_ranges_bytes(&ranges), 0);
	ck_assert(add(&ranges, 10, 20));
	ck_assert(add(&ranges, 30, 40));
	ck_assert_uint_eq(ranges.n, 2);
	ck_assert(!add(&ranges, 10, 20));
	ck_assert(!add(&ranges, 12, 15));
	ck_assert(!add(&ranges, 50, 50));
	ck_assert(!add(&ranges, 60, 50));
	ck_assert_uint_eq(ranges.n, 2);
	/* Touching merges, on either side and between two. */
	ck_assert(add(&ranges, 40, 41));
	ck_assert(add(&ranges, 9, 10));
	ck_assert_uint_eq(ranges.n, 2);
	ck_assert(add(&ranges, 20, 30));
	ck_assert_uint_eq(ranges.n, 1);
	ck_assert_uint_eq(ranges.items[0].begin, 9);
	ck_assert_uint_eq(ranges.items[0].end, 41);
	ck_assert_uint_eq(stfs_ranges_bytes(&ranges), 32);
	/* The ends of the space of offsets. */
	ck_assert(add(&ranges, 0, 1));
	ck_assert(add(&ranges, UINT64_MAX - 1, UINT64_MAX));
	ck_assert_uint_eq(ranges.n, 3);
	ck_assert(add(&ranges, 0, UINT64_MAX));
	ck_assert_uint_eq(ranges.n, 1);
	ck_assert_uint_eq(stfs_ranges_bytes(&ranges), UINT64_MAX);
	ck_assert_int_eq(stfs_ranges_add(&ranges, 1, 2, NULL), 0);
	stfs_ranges_fini(&ranges);
	ck_assert_uint_eq(ranges.n, 0);
	ck_assert_ptr_null(ranges.items);
}
END_TEST

START_TEST(test_at)
{
	struct stfs_ranges ranges = { 0 };
	uint64_t end;

	ck_assert(!stfs_ranges_at(&ranges, 0, &end));
	ck_assert_uint_eq(end, UINT64_MAX);
	add(&ranges, 10, 20);
	add(&ranges, 30, 40);
	ck_assert(!stfs_ranges_at(&ranges, 0, &end));
	ck_assert_uint_eq(end, 10);
	ck_assert(stfs_ranges_at(&ranges, 10, &end));
	ck_assert_uint_eq(end, 20);
	ck_assert(stfs_ranges_at(&ranges, 19, &end));
	ck_assert_uint_eq(end, 20);
	ck_assert(!stfs_ranges_at(&ranges, 20, &end));
	ck_assert_uint_eq(end, 30);
	ck_assert(!stfs_ranges_at(&ranges, 40, &end));
	ck_assert_uint_eq(end, UINT64_MAX);
	stfs_ranges_fini(&ranges);
}
END_TEST

START_TEST(test_cut)
{
	struct stfs_ranges ranges = { 0 };

	stfs_ranges_cut(&ranges, 0);
	add(&ranges, 10, 20);
	add(&ranges, 30, 40);
	stfs_ranges_cut(&ranges, 40);
	ck_assert_uint_eq(stfs_ranges_bytes(&ranges), 20);
	stfs_ranges_cut(&ranges, 35);
	ck_assert_uint_eq(ranges.items[1].end, 35);
	stfs_ranges_cut(&ranges, 30);
	ck_assert_uint_eq(ranges.n, 1);
	stfs_ranges_cut(&ranges, 15);
	ck_assert_uint_eq(stfs_ranges_bytes(&ranges), 5);
	stfs_ranges_cut(&ranges, 0);
	ck_assert_uint_eq(ranges.n, 0);
	ck_assert(add(&ranges, 0, 1));
	stfs_ranges_fini(&ranges);
}
END_TEST

#define SPACE 200

static bool same(const struct stfs_ranges *ranges, const bool set[SPACE])
{
	bool ok = true;
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < SPACE; i++) {
		uint64_t end, wanted = i;

		ok = ok && stfs_ranges_at(ranges, i, &end) == set[i];
		while (wanted < SPACE && set[wanted] == set[i])
			wanted++;
		ok = ok && end == (wanted == SPACE && !set[i] ? UINT64_MAX : wanted);
		bytes += set[i];
	}
	for (size_t i = 0; i < ranges->n; i++) {
		ok = ok && ranges->items[i].begin < ranges->items[i].end;
		ok = ok && (i == 0 || ranges->items[i].begin > ranges->items[i - 1].end);
	}
	return ok && stfs_ranges_bytes(ranges) == bytes;
}

/* Against one flag a byte. */
START_TEST(test_random)
{
	struct stfs_ranges ranges = { 0 };
	bool set[SPACE] = { false };

	srandom(1);
	for (unsigned step = 0; step < 20000; step++) {
		uint64_t begin = (uint64_t)random() % SPACE;
		uint64_t len = (uint64_t)random() % 12;
		uint64_t end = STFS_MIN(begin + len, SPACE);
		bool grew = false;

		if (step % 40 == 39) {
			stfs_ranges_cut(&ranges, begin);
			for (uint64_t i = begin; i < SPACE; i++)
				set[i] = false;
		} else if (step % 3 == 0) {
			ck_assert_int_eq(stfs_ranges_remove(&ranges, begin, end), 0);
			for (uint64_t i = begin; i < end; i++)
				set[i] = false;
		} else {
			for (uint64_t i = begin; i < end; i++) {
				grew |= !set[i];
				set[i] = true;
			}
			ck_assert(add(&ranges, begin, end) == grew);
		}
		ck_assert(same(&ranges, set));
	}
	stfs_ranges_fini(&ranges);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("ranges");

	tcase_add_test(tcase, test_add);
	tcase_add_test(tcase, test_at);
	tcase_add_test(tcase, test_cut);
	tcase_add_test(tcase, test_random);
	tcase_set_timeout(tcase, 60);
	return run_tests("ranges", tcase);
}
