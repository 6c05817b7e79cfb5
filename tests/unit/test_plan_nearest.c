/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest name among many, against a look at each of them. */
#include "plan_private.h"
#include "run_tests.h"

#define MODEL 60
#define NEW 40

static char names[MODEL + NEW][64];
static struct stfs_staged_tensor tensors[MODEL + NEW];
static struct stfs_changes changes;

/* Names of few letters, so that many begin alike. */
static void make_names(unsigned seed)
{
	srand(seed);
	for (uint32_t i = 0; i < MODEL + NEW; i++) {
		size_t len = 0, pieces = 1 + (size_t)rand() % 5;

		for (size_t k = 0; k < pieces; k++)
			len += (size_t)snprintf(names[i] + len, sizeof(names[i]) - len, "%s%.*s", k ? "." : "",
						rand() % 3, &"ab"[rand() % 2]);
		tensors[i] = (struct stfs_staged_tensor){ .name = stfs_slice_of(names[i]),
							  .entry = i < MODEL ? i : STFS_ENTRY_NONE };
	}
	changes = (struct stfs_changes){ .tensors = tensors, .n_tensors = MODEL + NEW };
}

static unsigned common_dots(const char *a, const char *b)
{
	unsigned n = 0;

	for (; *a && *a == *b; a++, b++)
		n += *a == '.';
	return n;
}

static uint32_t look_at_each(const char *name, uint32_t n)
{
	uint32_t found = UINT32_MAX;
	unsigned best = 1;

	for (uint32_t i = 0; i < n; i++) {
		if (common_dots(name, names[i]) >= best) {
			best = common_dots(name, names[i]);
			found = i;
		}
	}
	return found;
}

START_TEST(the_last_of_the_nearest)
{
	struct stfs_nearest nearest;

	make_names((unsigned)_i);
	ck_assert_int_eq(stfs_nearest_init(&nearest, &changes), 0);
	for (uint32_t i = MODEL; i < MODEL + NEW; i++)
		ck_assert_msg(stfs_nearest_find(&nearest, tensors[i].name) == look_at_each(names[i], MODEL), "%s",
			      names[i]);
	stfs_nearest_fini(&nearest);
}
END_TEST

/* Models of few tensors, or of none. */
START_TEST(few)
{
	make_names(7);
	for (uint32_t n = 0; n < 20; n++) {
		struct stfs_nearest nearest;

		tensors[n].entry = STFS_ENTRY_NONE;
		ck_assert_int_eq(stfs_nearest_init(&nearest, &changes), 0);
		for (uint32_t i = 0; i < MODEL + NEW; i++)
			ck_assert_uint_eq(stfs_nearest_find(&nearest, tensors[i].name), look_at_each(names[i], n));
		stfs_nearest_fini(&nearest);
		tensors[n].entry = n;
	}
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, the_last_of_the_nearest, 0, 200);
	tcase_add_test(tcase, few);
	return run_tests("plan_nearest", tcase);
}
