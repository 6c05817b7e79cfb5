/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_tests.h"
#include "table.h"

#define N 5000

/* An item: found by its name, as the table demands. */
struct item {
	struct stfs_slice name;
	char text[16];
	uint32_t value;
};

static struct item items[N];

static struct stfs_table_items all(void)
{
	return (struct stfs_table_items){ items, sizeof(items[0]) };
}

static void make_items(void)
{
	for (uint32_t i = 0; i < N; i++) {
		snprintf(items[i].text, sizeof(items[i].text), "item.%u", i);
		items[i].name = stfs_slice_of(items[i].text);
		items[i].value = i;
	}
}

static void fill(struct stfs_table *table)
{
	make_items();
	for (uint32_t i = 0; i < N; i++)
		ck_assert_int_eq(stfs_table_insert(table, all(), i), 0);
	ck_assert_uint_eq(table->n, N);
}

static void all_are_found(const struct stfs_table *table)
{
	for (uint32_t i = 0; i < N; i++)
		ck_assert_uint_eq(stfs_table_find(table, all(), items[i].name), i);
}

START_TEST(test_empty)
{
	struct stfs_table table = { 0 };

	ck_assert_uint_eq(stfs_table_find(&table, all(), stfs_slice_of("x")), STFS_TABLE_NONE);
	stfs_table_fini(&table);
}
END_TEST

START_TEST(test_find)
{
	struct stfs_table table = { 0 };

	fill(&table);
	all_are_found(&table);
	/* Found by what it says, not by where it lies; a part of a name or more than it is another name. */
	ck_assert_uint_eq(stfs_table_find(&table, all(), stfs_slice_of("item.4321")), 4321);
	ck_assert_uint_eq(stfs_table_find(&table, all(), stfs_slice_of("item.")), STFS_TABLE_NONE);
	ck_assert_uint_eq(stfs_table_find(&table, all(), stfs_slice_of("item.5000")), STFS_TABLE_NONE);
	ck_assert_uint_eq(stfs_table_find(&table, all(), (struct stfs_slice){ "item.7\0", 7 }), STFS_TABLE_NONE);
	ck_assert_uint_eq(stfs_table_find(&table, all(), (struct stfs_slice){ NULL, 0 }), STFS_TABLE_NONE);
	stfs_table_fini(&table);
	ck_assert_ptr_null(table.slots);
}
END_TEST

START_TEST(test_twice)
{
	struct stfs_table table = { 0 };
	struct item again[2] = { { .name = { "same\0name", 9 } }, { .name = { "same\0name", 9 } } };
	struct stfs_table_items two = { again, sizeof(again[0]) };

	ck_assert_int_eq(stfs_table_insert(&table, two, 0), 0);
	ck_assert_int_eq(stfs_table_insert(&table, two, 1), -EEXIST);
	ck_assert_uint_eq(table.n, 1);
	ck_assert_uint_eq(stfs_table_find(&table, two, again[1].name), 0);
	stfs_table_fini(&table);
}
END_TEST

/* A name may be empty: it is a name like any other. */
START_TEST(test_empty_name)
{
	struct stfs_table table = { 0 };
	struct item one = { .name = { "", 0 } };
	struct stfs_table_items of_one = { &one, sizeof(one) };

	ck_assert_int_eq(stfs_table_insert(&table, of_one, 0), 0);
	ck_assert_uint_eq(stfs_table_find(&table, of_one, (struct stfs_slice){ NULL, 0 }), 0);
	ck_assert_int_eq(stfs_table_insert(&table, of_one, 0), -EEXIST);
	stfs_table_fini(&table);
}
END_TEST

static int by_text_down(const void *a, const void *b)
{
	return strcmp(((const struct item *)b)->text, ((const struct item *)a)->text);
}

START_TEST(test_rebuild)
{
	struct stfs_table table = { 0 };

	fill(&table);
	qsort(items, N, sizeof(items[0]), by_text_down);
	/* The items moved, and with them the text that their names point to. */
	for (uint32_t i = 0; i < N; i++)
		items[i].name = stfs_slice_of(items[i].text);
	ck_assert_uint_ne(items[0].value, 0);
	stfs_table_rebuild(&table, all());
	all_are_found(&table);
	ck_assert_uint_eq(table.n, N);
	stfs_table_fini(&table);
}
END_TEST

/* What the header promises of its cost. */
START_TEST(test_cost)
{
	struct stfs_table table = { 0 };

	fill(&table);
	ck_assert_uint_le((size_t)table.n_slots * sizeof(*table.slots), (size_t)24 * N);
	stfs_table_fini(&table);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("table");

	tcase_add_test(tcase, test_empty);
	tcase_add_test(tcase, test_find);
	tcase_add_test(tcase, test_twice);
	tcase_add_test(tcase, test_empty_name);
	tcase_add_test(tcase, test_rebuild);
	tcase_add_test(tcase, test_cost);
	return run_tests("table", tcase);
}
