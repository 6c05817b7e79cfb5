/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "run_tests.h"
#include "view_fixture.h"

static struct maker maker;
static struct stfs_view *view;
static char x300[301];

static void setup(void)
{
	fixture_setup();
	memset(x300, 'x', 300);
	maker_scalar(&maker, "m.b.c");
	maker_scalar(&maker, "m.b");
	maker_scalar(&maker, "m.data");
	maker_scalar(&maker, "data.npy");
	maker_scalar(&maker, ".hidden..name");
	maker_scalar(&maker, "50%");
	maker_scalar(&maker, "bell\\u0007");
	maker_scalar(&maker, "p.%64ata");
	maker_scalar(&maker, "__metadata__.x");
	maker_scalar(&maker, "m.__metadata__.y");
	maker_scalar(&maker, x300);
	x300[250] = '\0';
	maker_scalar(&maker, x300);
	maker_metadata(&maker, "{\"a.b\":\"\", \"50%\":\"\"}");
	maker_write(&maker, "m.safetensors");
	view = view_open_default("m.safetensors");
}

static void teardown(void)
{
	stfs_view_free(view);
	fixture_teardown();
}

static void reopen_flat(void)
{
	stfs_view_free(view);
	view = view_open("m.safetensors", (struct stfs_view_options){ .layout = STFS_FLAT });
}

START_TEST(dotted_names_lead_to_their_place)
{
	ck_assert_str_eq(view_link(view, "m.b.c"), "m/b/c");
	ck_assert_str_eq(view_link(view, "m.b"), "m/b");
	ck_assert_str_eq(view_link(view, "m/b.c"), "b/c");
	ck_assert_str_eq(view_link(view, "m/data"), "%64ata");
	ck_assert_str_eq(view_link(view, "data"), "%64ata");
	ck_assert_str_eq(view_link(view, "data.npy"), "%64ata/npy");
	ck_assert_str_eq(view_link(view, ".hidden..name"), "%_/hidden/%_/name");
	ck_assert_str_eq(view_link(view, "50%"), "50%25");
	ck_assert_int_eq(view_stat(view, "p/%2564ata").type, STFS_NODE_DIR);
	ck_assert_str_eq(view_link(view, "bell\a"), "bell%07");
	ck_assert_str_eq(view_link(view, "__metadata__.x"), "%5F_metadata__/x");
	ck_assert_str_eq(view_link(view, "m/__metadata__.y"), "__metadata__/y");
}
END_TEST

START_TEST(flat_names_lead_where_they_are_escaped)
{
	struct stfs_attr attr;

	reopen_flat();
	ck_assert_int_eq(view_stat(view, "m.b.c").type, STFS_NODE_DIR);
	ck_assert_str_eq(view_link(view, ".hidden..name"), "%2Ehidden..name");
	ck_assert_str_eq(view_link(view, "data.npy"), "%64ata.npy");
	ck_assert_str_eq(view_link(view, "50%"), "50%25");
	ck_assert_int_eq(view_walk(view, "m", &attr), -ENOENT);
}
END_TEST

/* 250 bytes: a name that a lookup can carry, of a piece that is cut. */
START_TEST(cut_names_lead_below_the_cut)
{
	char expected[300], path[600];

	snprintf(expected, sizeof(expected), "%.240s%%+/xxxxxxxxxx", x300);
	ck_assert_str_eq(view_link(view, x300), expected);
	reopen_flat();
	ck_assert_str_eq(view_link(view, x300), expected);
	ck_assert_int_eq(view_stat(view, expected).type, STFS_NODE_DIR);
	snprintf(path, sizeof(path), "%s/data", expected);
	ck_assert_uint_eq(view_stat(view, path).size, 4);
}
END_TEST

START_TEST(what_leads_nowhere_is_not_there)
{
	static const char *const paths[] = {
		".git",
		".Trash-1000",
		"autorun.inf",
		"m.c",
		"m.b.c.d",
		"m.",
		".m",
		"..m",
		"m/m.b",
		"m/b/c/m",
		"bell%07x",
		"p/%64ata", /* where p.data would be, not p.%64ata */
		"p.%64ata",
		"__metadata__/m.b",
		"__metadata__/50%",
		"__metadata__.y",
		".safetensors/m.b",
		".safetensors/data",
	};
	struct stfs_attr attr;

	for (size_t i = 0; i < STFS_ARRAY_SIZE(paths); i++)
		ck_assert_msg(view_walk(view, paths[i], &attr) == -ENOENT, "%s", paths[i]);
}
END_TEST

START_TEST(links_are_0777_and_the_owners_own)
{
	struct stfs_attr link = view_stat(view, "m.b"), again;

	ck_assert_uint_eq(link.perm, 0777);
	ck_assert_uint_eq(link.nlink, 1);
	ck_assert_uint_eq(link.size, strlen("m/b"));
	ck_assert_uint_eq(link.uid, view_stat(view, "").uid);
	ck_assert_int_eq(stfs_view_getattr(view, link.ino, &again), 0);
	ck_assert_mem_eq(&link.mtime, &again.mtime, sizeof(link.mtime));
	ck_assert_uint_eq(again.ino, link.ino);
	ck_assert_uint_eq(again.size, link.size);
	ck_assert_int_eq(again.type, STFS_NODE_LINK);
	ck_assert_ptr_null(strstr(view_names(view, ""), "m.b"));
}
END_TEST

START_TEST(links_last_until_forgotten)
{
	uint64_t ino = view_ino(view, "m.b"), other;
	struct stfs_attr attr;
	struct stfs_buf buf = { 0 };

	ck_assert_uint_eq(view_ino(view, "m.b"), ino);
	ck_assert_uint_eq(view_ino(view, "m.b"), ino);
	stfs_view_forget(view, ino, 2);
	ck_assert_int_eq(stfs_view_getattr(view, ino, &attr), 0);
	stfs_view_forget(view, ino, 1);
	ck_assert_int_eq(stfs_view_getattr(view, ino, &attr), -ESTALE);
	ck_assert_int_eq(stfs_view_readlink(view, ino, &buf), -ESTALE);
	ck_assert_int_eq(stfs_view_lookup(view, ino, stfs_slice_of("x"), &attr), -ENOTDIR);
	/* The same place has the same number, now and on the next mount; another one has not. */
	ck_assert_uint_eq(view_ino(view, "m.b"), ino);
	other = view_ino(view, "m/b.c");
	ck_assert_uint_ne(other, view_ino(view, "m.b.c"));
	stfs_view_free(view);
	view = view_open_default("m.safetensors");
	ck_assert_int_eq(stfs_view_getattr(view, ino, &attr), -ESTALE);
	ck_assert_uint_eq(view_ino(view, "m.b"), ino);
	ck_assert_uint_eq(view_ino(view, "m/b.c"), other);
}
END_TEST

START_TEST(forgetting_anything_else_does_nothing)
{
	uint64_t data = view_ino(view, "m/b/data"), m = view_ino(view, "m");
	struct stfs_attr attr;

	stfs_view_forget(view, data, 1);
	stfs_view_forget(view, m, 1000);
	stfs_view_forget(view, STFS_INO_ROOT, 1);
	stfs_view_forget(view, UINT64_MAX, 1);
	ck_assert_int_eq(stfs_view_getattr(view, data, &attr), 0);
	ck_assert_int_eq(stfs_view_getattr(view, m, &attr), 0);
	ck_assert_int_eq(stfs_view_getattr(view, STFS_INO_ROOT, &attr), 0);
}
END_TEST

START_TEST(only_links_can_be_read_as_links)
{
	struct stfs_buf buf = { 0 };

	ck_assert_int_eq(stfs_view_readlink(view, STFS_INO_ROOT, &buf), -EINVAL);
	ck_assert_int_eq(stfs_view_readlink(view, view_ino(view, "m/b/data"), &buf), -EINVAL);
	ck_assert_int_eq(stfs_view_readlink(view, 12345678, &buf), -ESTALE);
	ck_assert_uint_eq(buf.len, 0);
}
END_TEST

/* Looks up, reads and forgets the same links as its siblings do. */
static void *use_links(void *arg)
{
	static const char *const names[] = { "m.b", "m.b.c", "data", "50%", "m.data" };
	int *failures = arg;

	for (int i = 0; i < 5000; i++) {
		struct stfs_slice name = stfs_slice_of(names[i % 5]);
		_cleanup_buf_ struct stfs_buf buf = { 0 };
		struct stfs_attr attr;

		if (stfs_view_lookup(view, STFS_INO_ROOT, name, &attr) < 0 ||
		    stfs_view_readlink(view, attr.ino, &buf) < 0 || buf.len != attr.size) {
			(*failures)++;
			continue;
		}
		stfs_view_forget(view, attr.ino, 1);
	}
	return NULL;
}

START_TEST(threads_may_use_the_same_links)
{
	uint64_t ino = view_ino(view, "m.b");
	int failures[4] = { 0 };
	pthread_t threads[4];
	struct stfs_attr attr;

	stfs_view_forget(view, ino, 1);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, use_links, &failures[i]), 0);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		ck_assert_int_eq(failures[i], 0);
	}
	ck_assert_int_eq(stfs_view_getattr(view, ino, &attr), -ESTALE);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("view_link");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, dotted_names_lead_to_their_place);
	tcase_add_test(tcase, flat_names_lead_where_they_are_escaped);
	tcase_add_test(tcase, cut_names_lead_below_the_cut);
	tcase_add_test(tcase, what_leads_nowhere_is_not_there);
	tcase_add_test(tcase, links_are_0777_and_the_owners_own);
	tcase_add_test(tcase, links_last_until_forgotten);
	tcase_add_test(tcase, forgetting_anything_else_does_nothing);
	tcase_add_test(tcase, only_links_can_be_read_as_links);
	tcase_add_test(tcase, threads_may_use_the_same_links);
	return run_tests("view_link", tcase);
}
