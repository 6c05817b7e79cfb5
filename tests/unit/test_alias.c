/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>

#include "alias.h"
#include "run_tests.h"
#include "tree.h"

static struct stfs_aliases aliases;

static void setup(void)
{
	aliases = (struct stfs_aliases){ 0 };
}

static void teardown(void)
{
	stfs_aliases_fini(&aliases);
}

static uint64_t take(uint64_t dir, uint64_t node)
{
	uint64_t id = 0;

	if (stfs_aliases_take(&aliases, dir, node, &id) < 0)
		ck_abort_msg("out of memory");
	return id;
}

START_TEST(counts_lookups)
{
	uint64_t id = take(1, 2);
	const struct stfs_alias *alias;

	ck_assert_uint_eq(take(1, 2), id);
	ck_assert_uint_eq(take(1, 2), id);
	alias = stfs_aliases_find(&aliases, id);
	ck_assert_ptr_nonnull(alias);
	ck_assert_uint_eq(alias->dir, 1);
	ck_assert_uint_eq(alias->node, 2);
	ck_assert_uint_eq(alias->count, 3);
	stfs_aliases_drop(&aliases, id, 2);
	ck_assert_ptr_nonnull(stfs_aliases_find(&aliases, id));
	stfs_aliases_drop(&aliases, id, 1);
	ck_assert_ptr_null(stfs_aliases_find(&aliases, id));
	ck_assert_uint_eq(aliases.by_id.n, 0);
	ck_assert_uint_eq(take(1, 2), id);
}
END_TEST

START_TEST(unknown_numbers_are_let_pass)
{
	uint64_t id;

	ck_assert_ptr_null(stfs_aliases_find(&aliases, 77));
	stfs_aliases_drop(&aliases, 77, 1);
	id = take(1, 2);
	stfs_aliases_drop(&aliases, id + 1, 1);
	ck_assert_ptr_nonnull(stfs_aliases_find(&aliases, id));
	stfs_aliases_drop(&aliases, id, UINT64_MAX);
	ck_assert_ptr_null(stfs_aliases_find(&aliases, id));
}
END_TEST

START_TEST(where_and_whereto_both_count)
{
	ck_assert_uint_ne(take(1, 2), take(1, 3));
	ck_assert_uint_ne(take(1, 2), take(2, 2));
	ck_assert_uint_ne(take(1, 2), take(2, 1));
	ck_assert_uint_eq(aliases.by_id.n, 4);
}
END_TEST

/* Two pairs of one number: the second gets the next, and both are found until they are forgotten. */
START_TEST(a_taken_number_is_passed_over)
{
	uint64_t id = take(5, 6), other;
	struct stfs_alias *alias = stfs_idmap_get(&aliases.by_id, id);

	alias->dir = 4; /* somebody else's now */
	other = take(5, 6);
	ck_assert_uint_eq(other, stfs_tree_next_id(id));
	ck_assert_uint_eq(stfs_aliases_find(&aliases, id)->dir, 4);
	ck_assert_uint_eq(stfs_aliases_find(&aliases, other)->dir, 5);
	stfs_aliases_drop(&aliases, id, 1);
	ck_assert_ptr_null(stfs_aliases_find(&aliases, id));
	ck_assert_uint_eq(stfs_aliases_find(&aliases, other)->dir, 5);
}
END_TEST

/* Takes and drops at random beside a plain array of counts. */
START_TEST(agrees_with_a_plain_array)
{
	enum { N = 300 };
	uint64_t counts[N] = { 0 }, ids[N];
	size_t n = 0;

	srand(1);
	for (uint64_t i = 0; i < N; i++) {
		ids[i] = take(i, 1000 + i);
		stfs_aliases_drop(&aliases, ids[i], 1);
	}
	for (int step = 0; step < 100000; step++) {
		int i = rand() % N;

		if (rand() % 2) {
			if (take((uint64_t)i, 1000 + (uint64_t)i) != ids[i])
				ck_abort_msg("%d got another number", i);
			counts[i]++;
		} else {
			uint64_t k = (uint64_t)(rand() % 4);

			stfs_aliases_drop(&aliases, ids[i], k);
			counts[i] -= STFS_MIN(counts[i], k);
		}
	}
	for (int i = 0; i < N; i++) {
		const struct stfs_alias *alias = stfs_aliases_find(&aliases, ids[i]);

		n += counts[i] > 0;
		ck_assert_uint_eq(alias ? alias->count : 0, counts[i]);
	}
	ck_assert_uint_eq(aliases.by_id.n, n);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("alias");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, counts_lookups);
	tcase_add_test(tcase, unknown_numbers_are_let_pass);
	tcase_add_test(tcase, where_and_whereto_both_count);
	tcase_add_test(tcase, a_taken_number_is_passed_over);
	tcase_add_test(tcase, agrees_with_a_plain_array);
	return run_tests("alias", tcase);
}
