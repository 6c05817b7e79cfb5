/* SPDX-License-Identifier: Apache-2.0 */
/* Commits of a sharded model: which shards are written, what the index says, what goes. */
#include "run_tests.h"
#include "shard_fixture.h"

static struct stfs_view *view;
static struct wanted wanted;
static struct stat before[4];
static const char *const names[] = { SHARD_1, SHARD_2, SHARD_3, INDEX };

static void remember(void)
{
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(lstat(fixture_path(names[i]), &before[i]), 0);
}

static void setup(void)
{
	fixture_setup();
	shards_make("");
	remember();
	view = editing("");
}

static void teardown(void)
{
	editing_teardown(view);
}

static void remount(void)
{
	stfs_view_free(view);
	view = editing("");
}

/* Which files are others than before: a digit for each, i for the index, - for one that is gone. */
static void expect_written(const char *expected)
{
	char text[5] = { 0 };
	struct stat st;

	for (int i = 0, at = 0; i < 4; i++) {
		if (lstat(fixture_path(names[i]), &st) < 0)
			text[at++] = '-';
		else if (st.st_ino != before[i].st_ino)
			text[at++] = "123i"[i];
	}
	ck_assert_str_eq(text, expected);
}

static void expect_index(const char *text)
{
	struct stfs_buf index = file_bytes(INDEX);

	ck_assert_str_eq(index.data, text);
	stfs_buf_fini(&index);
}

START_TEST(only_the_changed_shard_is_written)
{
	struct stfs_commit_result result;

	edit_put(view, "l1/b/data", "0123456789");
	result = commit(view);
	ck_assert_uint_eq(result.files, 1);
	expect_written("2");
	ck_assert_str_eq(folder_names(""), SHARDS);
	want_old(&wanted, 0, 1000);
	want_bytes(&wanted, "0123456789", 10);
	expect_file(SHARD_2, JSON_2, &wanted);
	remount();
	edit_expect(view, "l1/b/data", "0123456789");
}
END_TEST

START_TEST(a_rename_is_in_the_index)
{
	uint64_t ino = edit_ino(view, "l1/w/data");
	struct stfs_commit_result result;

	edit_mv(view, "l1", "m");
	result = commit(view);
	ck_assert_uint_eq(result.files, 2);
	expect_written("2i");
	ck_assert_uint_eq(edit_ino(view, "m/w/data"), ino);
	want_old(&wanted, 0, 1010);
	expect_file(SHARD_2,
		    "{" PT ",\"m.w\":{\"dtype\":\"F32\",\"shape\":[250],\"data_offsets\":[0,1000]},"
		    "\"m.b\":{\"dtype\":\"U8\",\"shape\":[10],\"data_offsets\":[1000,1010]}}",
		    &wanted);
	expect_index("{\n  \"metadata\": {\n    \"note\": [1, 2],\n    \"total_parameters\": 584,\n"
		     "    \"total_size\": 2084\n  },\n  \"weight_map\": {\n"
		     "    \"head\": \"" SHARD_3 "\",\n    \"l0.b\": \"" SHARD_1 "\",\n    \"l0.w\": \"" SHARD_1 "\",\n"
		     "    \"m.b\": \"" SHARD_2 "\",\n    \"m.w\": \"" SHARD_2 "\"\n  }\n}\n");
}
END_TEST

START_TEST(a_new_tensor_goes_to_its_siblings)
{
	edit_mkdir(view, "l0/n");
	edit_put(view, "l0/n/dtype", "I16");
	edit_put(view, "l0/n/shape", "3");
	edit_put(view, "l0/n/data", "abcdef");
	commit(view);
	expect_written("1i");
	want_old(&wanted, 0, 1010);
	want_bytes(&wanted, "abcdef", 6);
	expect_file(SHARD_1,
		    "{" PT ",\"l0.w\":{\"dtype\":\"F32\",\"shape\":[250],\"data_offsets\":[0,1000]},"
		    "\"l0.b\":{\"dtype\":\"U8\",\"shape\":[10],\"data_offsets\":[1000,1010]},"
		    "\"l0.n\":{\"dtype\":\"I16\",\"shape\":[3],\"data_offsets\":[1010,1016]}}",
		    &wanted);
	expect_index("{\n  \"metadata\": {\n    \"note\": [1, 2],\n    \"total_parameters\": 587,\n"
		     "    \"total_size\": 2090\n  },\n  \"weight_map\": {\n"
		     "    \"head\": \"" SHARD_3 "\",\n    \"l0.b\": \"" SHARD_1 "\",\n    \"l0.n\": \"" SHARD_1 "\",\n"
		     "    \"l0.w\": \"" SHARD_1 "\",\n    \"l1.b\": \"" SHARD_2 "\",\n    \"l1.w\": \"" SHARD_2
		     "\"\n  }\n}\n");
}
END_TEST

START_TEST(a_new_tensor_without_siblings_goes_to_the_last)
{
	edit_mkdir(view, "new");
	edit_put(view, "new/dtype", "U8");
	edit_put(view, "new/shape", "3");
	edit_put(view, "new/data", "abc");
	commit(view);
	expect_written("3i");
	want_old(&wanted, 0, 64);
	want_bytes(&wanted, "abc", 3);
	expect_file(SHARD_3,
		    "{" PT ",\"head\":{\"dtype\":\"U8\",\"shape\":[64],\"data_offsets\":[0,64]},"
		    "\"new\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[64,67]}}",
		    &wanted);
}
END_TEST

/* A total that the index does not have is not made up. */
START_TEST(totals_that_are_not_there_stay_away)
{
	stfs_view_free(view);
	file_put(INDEX,
		 "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {\"head\": \"" SHARD_3 "\", \"l0.b\": \"" SHARD_1
		 "\", \"l0.w\": \"" SHARD_1 "\", \"l1.b\": \"" SHARD_2 "\", \"l1.w\": \"" SHARD_2 "\"}}");
	view = editing("");
	edit_mv(view, "head", "top");
	commit(view);
	expect_index("{\n  \"metadata\": {\n    \"total_size\": 2084\n  },\n  \"weight_map\": {\n"
		     "    \"l0.b\": \"" SHARD_1 "\",\n    \"l0.w\": \"" SHARD_1 "\",\n    \"l1.b\": \"" SHARD_2 "\",\n"
		     "    \"l1.w\": \"" SHARD_2 "\",\n    \"top\": \"" SHARD_3 "\"\n  }\n}\n");
}
END_TEST

START_TEST(a_shard_without_tensors_goes)
{
	edit_rm_tensor(view, "l1/w");
	edit_rm_tensor(view, "l1/b");
	edit_put(view, "notes", "scratch");
	commit(view);
	expect_written("-i");
	ck_assert_str_eq(folder_names(""), FIXTURE_STAGE " " SHARD_1 " " SHARD_3 " " INDEX);
	expect_index("{\n  \"metadata\": {\n    \"note\": [1, 2],\n    \"total_parameters\": 324,\n"
		     "    \"total_size\": 1074\n  },\n  \"weight_map\": {\n    \"head\": \"" SHARD_3 "\",\n"
		     "    \"l0.b\": \"" SHARD_1 "\",\n    \"l0.w\": \"" SHARD_1 "\"\n  }\n}\n");
	remount();
	edit_expect(view, "notes", "scratch");
	ck_assert(!edit_there(view, "l1"));
	ck_assert(edit_there(view, "l0/w/data"));
}
END_TEST

START_TEST(a_model_without_tensors_is_refused)
{
	struct stfs_commit_options options = { 0 };
	struct stfs_commit_result result;
	struct said said;

	edit_rm_tensor(view, "l0/w");
	edit_rm_tensor(view, "l0/b");
	edit_rm_tensor(view, "l1/w");
	edit_rm_tensor(view, "l1/b");
	edit_rm_tensor(view, "head");
	ck_assert_int_eq(commit_options(view, &options, &said, &result), -EINVAL);
	ck_assert_ptr_nonnull(strstr(said.text, "no tensor would be left"));
	expect_written("");
	ck_assert_str_eq(folder_names(""), FIXTURE_STAGE " " SHARDS);
}
END_TEST

START_TEST(several_shards_at_once)
{
	edit_put(view, "l0/b/data", "0123456789");
	edit_mv(view, "head", "top");
	edit_put(view, "__metadata__/format", "np");
	commit(view);
	expect_written("123i");
	want_old(&wanted, 0, 1000);
	want_bytes(&wanted, "0123456789", 10);
	expect_file(
		SHARD_1,
		"{\"__metadata__\":{\"format\":\"np\"},\"l0.w\":{\"dtype\":\"F32\",\"shape\":[250],\"data_offsets\":[0,1000]},"
		"\"l0.b\":{\"dtype\":\"U8\",\"shape\":[10],\"data_offsets\":[1000,1010]}}",
		&wanted);
	want_old(&wanted, 0, 64);
	expect_file(
		SHARD_3,
		"{\"__metadata__\":{\"format\":\"np\"},\"top\":{\"dtype\":\"U8\",\"shape\":[64],\"data_offsets\":[0,64]}}",
		&wanted);
	ck_assert_str_eq(folder_names(""), SHARDS);
}
END_TEST

static struct {
	unsigned n, index_at; /* how many files took their names, and the index as which of them */
} renamed;

static int watch_rename(void *user, int old_dir, const char *old_name, int new_dir, const char *new_name,
			unsigned flags)
{
	const struct stfs_os *real = stfs_os_real();

	(void)user;
	if (strstr(new_name, ".safetensors"))
		renamed.n++;
	if (strcmp(new_name, INDEX) == 0)
		renamed.index_at = renamed.n;
	return real->renameat2(real->user, old_dir, old_name, new_dir, new_name, flags);
}

/* Whoever follows the index finds all that it lists, also half-way. */
START_TEST(the_index_comes_last)
{
	struct stfs_os os = *stfs_os_real();
	struct said said;

	stfs_view_free(view);
	os.renameat2 = watch_rename;
	said_init(&said);
	ck_assert_int_eq(editing_open("", &os, &said, &view), 0);
	edit_put(view, "l0/b/data", "0123456789");
	edit_mv(view, "l1", "m");
	edit_mv(view, "head", "top");
	renamed.n = 0;
	commit(view);
	expect_written("123i");
	ck_assert_uint_eq(renamed.n, 4);
	ck_assert_uint_eq(renamed.index_at, 4);
	stfs_view_free(view);
	view = NULL; /* it used this system */
}
END_TEST

static void refused_stale(const char *words)
{
	struct stfs_commit_options options = { 0 };
	struct stfs_commit_result result;
	struct said said;

	ck_assert_int_eq(commit_options(view, &options, &said, &result), -ESTALE);
	ck_assert_msg(strstr(said.text, words) != NULL, "%s", said.text);
	ck_assert_str_eq(folder_names(""), FIXTURE_STAGE " " SHARDS);
}

START_TEST(another_index_is_stale)
{
	struct stfs_buf index = file_bytes(INDEX);

	edit_put(view, "l0/b/data", "0123456789");
	index.data[index.len - 20] = '9';
	file_put(INDEX, index.data);
	stfs_buf_fini(&index);
	refused_stale("the index");
}
END_TEST

/* Also of a shard that is not written. */
START_TEST(another_shard_is_stale)
{
	edit_put(view, "l0/b/data", "0123456789");
	ck_assert_int_eq(truncate(fixture_path(SHARD_3), 100), 0);
	refused_stale("was truncated");
}
END_TEST

START_TEST(sorting_rewrites_all)
{
	struct stfs_commit_options options = { .plan = { .sort = true } };
	struct stfs_commit_result result;
	struct said said;

	ck_assert_int_eq(commit_options(view, &options, &said, &result), 0);
	ck_assert_uint_eq(result.files, 3);
	expect_written("123");
	ck_assert_str_eq(folder_names(""), SHARDS);
}
END_TEST

/* In a folder of their own, and with "./" before their names: scratch files are found again by the same names. */
static void names_of_another_form(const char *folder, const char *prefix, bool make)
{
	char path[200];

	stfs_view_free(view);
	for (int i = 0; i < 4; i++)
		unlink(fixture_path(names[i]));
	if (make)
		ck_assert_int_eq(mkdir(fixture_path(folder), 0755), 0);
	shards_make(prefix);
	view = editing("");
	edit_put(view, "l1/b/data", "0123456789");
	edit_mv(view, "head", "top");
	edit_put(view, "notes", "scratch");
	commit(view);
	remount();
	edit_expect(view, "notes", "scratch");
	edit_expect(view, "l1/b/data", "0123456789");
	ck_assert(edit_there(view, "top"));
	snprintf(path, sizeof(path), "%s" SHARD_2, prefix);
	want_old(&wanted, 0, 1000);
	want_bytes(&wanted, "0123456789", 10);
	expect_file(path, JSON_2, &wanted);
	ck_assert_str_eq(folder_names(folder), make ? SHARD_1 " " SHARD_2 " " SHARD_3 : FIXTURE_STAGE " " SHARDS);
	edit_rm_tensor(view, "top");
	edit_rm(view, "notes");
	commit(view);
	ck_assert_str_eq(folder_names(folder), make ? SHARD_1 " " SHARD_2 : SHARD_1 " " SHARD_2 " " INDEX);
}

START_TEST(shards_in_a_folder)
{
	names_of_another_form("weights", "weights/", true);
}
END_TEST

START_TEST(shards_with_a_dot)
{
	names_of_another_form("", "./", false);
}
END_TEST

/* After a crash nobody would follow the link, so that it is not begun. */
START_TEST(shards_behind_a_link_are_refused)
{
	struct stfs_commit_options options = { 0 };
	struct stfs_commit_result result;
	struct said said;

	stfs_view_free(view);
	ck_assert_int_eq(mkdir(fixture_path("real"), 0755), 0);
	ck_assert_int_eq(symlink("real", fixture_path("weights")), 0);
	shards_make("weights/");
	view = editing("");
	edit_put(view, "l1/b/data", "0123456789");
	ck_assert_int_eq(commit_options(view, &options, &said, &result), -EINVAL);
	ck_assert_ptr_nonnull(strstr(said.text, "a folder that is a link"));
	ck_assert_str_eq(folder_names("real"), SHARD_1 " " SHARD_2 " " SHARD_3);
}
END_TEST

/* A numbered set without an index stays one. */
START_TEST(a_set_without_index)
{
	stfs_view_free(view);
	ck_assert_int_eq(unlink(fixture_path(INDEX)), 0);
	view = editing("");
	edit_mv(view, "head", "top");
	edit_rm_tensor(view, "l1/w");
	edit_rm_tensor(view, "l1/b");
	commit(view);
	ck_assert_str_eq(folder_names(""), SHARD_1 " " SHARD_2 " " SHARD_3);
	expect_file(SHARD_2, "{" PT "}", &wanted);
	remount();
	ck_assert(edit_there(view, "top") && !edit_there(view, "l1"));
}
END_TEST

START_TEST(links_of_a_cache_are_replaced)
{
	struct stat st;

	stfs_view_free(view);
	ck_assert_int_eq(mkdir(fixture_path("blobs"), 0755), 0);
	for (int i = 0; i < 4; i++) {
		char blob[100];

		snprintf(blob, sizeof(blob), "blobs/%d", i);
		file_rename(names[i], blob);
		ck_assert_int_eq(symlink(blob, fixture_path(names[i])), 0);
	}
	view = editing("");
	edit_mv(view, "head", "top");
	ck_assert(commit(view).link_replaced);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(lstat(fixture_path(names[i]), &st), 0);
		ck_assert_int_eq(S_ISLNK(st.st_mode), i < 2);
	}
	ck_assert_str_eq(folder_names("blobs"), "0 1 2 3");
	want_old(&wanted, 0, 64);
	ck_assert_int_eq(stat(fixture_path("blobs/2"), &st), 0);
	ck_assert_uint_eq(st.st_ino, before[2].st_ino);
	expect_file(SHARD_3, "{" PT ",\"top\":{\"dtype\":\"U8\",\"shape\":[64],\"data_offsets\":[0,64]}}", &wanted);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("commit_shards");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, only_the_changed_shard_is_written);
	tcase_add_test(tcase, a_rename_is_in_the_index);
	tcase_add_test(tcase, a_new_tensor_goes_to_its_siblings);
	tcase_add_test(tcase, a_new_tensor_without_siblings_goes_to_the_last);
	tcase_add_test(tcase, totals_that_are_not_there_stay_away);
	tcase_add_test(tcase, a_shard_without_tensors_goes);
	tcase_add_test(tcase, a_model_without_tensors_is_refused);
	tcase_add_test(tcase, several_shards_at_once);
	tcase_add_test(tcase, the_index_comes_last);
	tcase_add_test(tcase, another_index_is_stale);
	tcase_add_test(tcase, another_shard_is_stale);
	tcase_add_test(tcase, sorting_rewrites_all);
	tcase_add_test(tcase, shards_in_a_folder);
	tcase_add_test(tcase, shards_with_a_dot);
	tcase_add_test(tcase, shards_behind_a_link_are_refused);
	tcase_add_test(tcase, a_set_without_index);
	tcase_add_test(tcase, links_of_a_cache_are_replaced);
	return run_tests("commit_shards", tcase);
}
