/* SPDX-License-Identifier: Apache-2.0 */
/* Commits to another place: the source and what is staged stay as they are. */
#include "run_tests.h"
#include "shard_fixture.h"

#define NAME "m.safetensors"
#define JSON                                                                             \
	"{" PT ",\"a.w\":{\"dtype\":\"U8\",\"shape\":[1000],\"data_offsets\":[0,1000]}," \
	"\"a.b\":{\"dtype\":\"U8\",\"shape\":[10],\"data_offsets\":[1000,1010]}}"

static struct stfs_view *view;
static struct wanted wanted;
static struct said said;
static struct stfs_commit_result result;

static void setup(void)
{
	struct maker maker = { 0 };

	fixture_setup();
	maker_metadata(&maker, "{\"format\":\"pt\"}");
	maker_tensor(&maker, "a.w", "U8", "1000", 1000);
	maker_tensor(&maker, "a.b", "U8", "10", 10);
	maker_write(&maker, NAME);
	view = editing(NAME);
	umask(022);
}

static void teardown(void)
{
	editing_teardown(view);
}

/* Instead of the model of one file. */
static void use_shards(const char *prefix)
{
	stfs_view_free(view);
	ck_assert_int_eq(unlink(fixture_path(NAME)), 0);
	if (*prefix)
		ck_assert_int_eq(mkdir(fixture_path(prefix), 0755), 0);
	shards_make(prefix);
	view = editing("");
}

static int output_options(const char *name, struct stfs_commit_options options)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", fixture_dir, name);
	options.output = path;
	return commit_options(view, &options, &said, &result);
}

static int output(const char *name)
{
	return output_options(name, (struct stfs_commit_options){ 0 });
}

static void want_edited(void)
{
	want_old(&wanted, 0, 1000);
	want_bytes(&wanted, "0123456789", 10);
}

START_TEST(a_file)
{
	struct stat before, after;

	ck_assert_int_eq(lstat(fixture_path(NAME), &before), 0);
	edit_put(view, "a/b/data", "0123456789");
	edit_put(view, "notes", "scratch");
	ck_assert_int_eq(output("new.safetensors"), 0);
	ck_assert_uint_eq(result.files, 1);
	ck_assert(!result.nothing && !result.not_durable);
	want_edited();
	expect_file("new.safetensors", JSON, &wanted);
	ck_assert_str_eq(folder_names(""), FIXTURE_STAGE " " NAME " new.safetensors");
	ck_assert_int_eq(lstat(fixture_path(NAME), &after), 0);
	ck_assert_uint_eq(after.st_ino, before.st_ino);
	ck_assert_int_eq(lstat(fixture_path("new.safetensors"), &after), 0);
	ck_assert_uint_eq(after.st_mode & 07777, 0644);
	ck_assert_uint_eq((uint64_t)after.st_size, result.bytes);
	edit_expect(view, "notes", "scratch");
	commit(view);
	want_edited();
	expect_file(NAME, JSON, &wanted);
}
END_TEST

/* The copy of what few may read is not for all. */
START_TEST(permissions_are_not_widened)
{
	struct stat st;

	stfs_view_free(view);
	ck_assert_int_eq(chmod(fixture_path(NAME), 0660), 0);
	view = editing(NAME);
	ck_assert_int_eq(output("new.safetensors"), 0);
	ck_assert_int_eq(lstat(fixture_path("new.safetensors"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0640);
}
END_TEST

START_TEST(a_read_only_view_can_be_written_out)
{
	struct stfs_view_options options = { 0 };

	stfs_view_free(view);
	ck_assert_int_eq(stfs_view_new(fixture_open(NAME), &options, NULL, NULL, &view), 0);
	ck_assert_int_eq(output("new.safetensors"), 0);
	want_old(&wanted, 0, 1010);
	expect_file("new.safetensors", JSON, &wanted);
	ck_assert_str_eq(folder_names(""), NAME " new.safetensors");
}
END_TEST

START_TEST(nothing_is_replaced)
{
	file_put("there", "precious");
	ck_assert_int_eq(output("there"), -EEXIST);
	ck_assert_ptr_nonnull(strstr(said.text, "never replaces"));
	ck_assert_int_eq(output("there/"), -EEXIST);
	ck_assert_int_eq(output(NAME), -EEXIST);
	ck_assert_int_eq(mkdir(fixture_path("dir"), 0755), 0);
	file_put("dir/there", "precious");
	ck_assert_int_eq(output("dir"), -EEXIST);
	ck_assert_int_eq(output("dir/"), -EEXIST);
	ck_assert_int_eq(symlink("nowhere", fixture_path("link")), 0);
	ck_assert_int_eq(output("link"), -EEXIST);
	ck_assert_int_eq(output("link/"), -EEXIST);
	ck_assert_int_eq(output("missing/new.safetensors"), -ENOENT);
	ck_assert_int_eq(output("dir/.."), -EINVAL);
	ck_assert_str_eq(folder_names(""), "dir link " NAME " there");
	ck_assert_str_eq(folder_names("dir"), "there");
}
END_TEST

static int make_file(void *user, uint64_t done, uint64_t total)
{
	(void)done;
	(void)total;
	file_put(user, "precious");
	return 0;
}

START_TEST(what_appears_meanwhile_stays)
{
	char name[] = "new.safetensors", in_dir[] = "new";
	struct stfs_buf buf;

	ck_assert_int_eq(output_options(name, (struct stfs_commit_options){ .progress = make_file, .user = name }),
			 -EEXIST);
	buf = file_bytes(name);
	ck_assert_str_eq(buf.data, "precious");
	stfs_buf_fini(&buf);
	ck_assert_int_eq(output_options("new/", (struct stfs_commit_options){ .progress = make_file, .user = in_dir }),
			 -EEXIST);
	ck_assert_str_eq(folder_names(""), NAME " new new.safetensors");
}
END_TEST

START_TEST(a_directory_for_one_file)
{
	struct stat st;

	edit_put(view, "a/b/data", "0123456789");
	ck_assert_int_eq(output("out/"), 0);
	ck_assert_str_eq(folder_names("out"), NAME);
	want_edited();
	expect_file("out/" NAME, JSON, &wanted);
	ck_assert_int_eq(lstat(fixture_path("out"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0755);
	/* An empty one that is there is meant too. */
	ck_assert_int_eq(mkdir(fixture_path("empty"), 0755), 0);
	ck_assert_int_eq(output("empty"), 0);
	ck_assert_str_eq(folder_names("empty"), NAME);
	ck_assert_str_eq(folder_names(""), FIXTURE_STAGE " empty " NAME " out");
}
END_TEST

START_TEST(a_directory_for_shards)
{
	use_shards("");
	edit_put(view, "l1/b/data", "0123456789");
	edit_mv(view, "head", "top");
	ck_assert_int_eq(output("out"), 0);
	ck_assert_uint_eq(result.files, 4);
	ck_assert_str_eq(folder_names("out"), SHARDS);
	ck_assert_str_eq(folder_names(""), FIXTURE_STAGE " " SHARDS " out");
	want_old(&wanted, 0, 1010);
	expect_file("out/" SHARD_1, JSON_1, &wanted);
	want_edited();
	expect_file("out/" SHARD_2, JSON_2, &wanted);
	want_old(&wanted, 0, 64);
	expect_file("out/" SHARD_3, "{" PT ",\"top\":{\"dtype\":\"U8\",\"shape\":[64],\"data_offsets\":[0,64]}}",
		    &wanted);
	stfs_view_free(view);
	view = NULL;
	{
		struct stfs_model *model = fixture_open("out");

		ck_assert_uint_eq(model->n_entries, 5);
		ck_assert_uint_eq(stfs_model_find(model, stfs_slice_of("head")), STFS_ENTRY_NONE);
		stfs_model_free(model);
	}
}
END_TEST

START_TEST(folders_of_shards_are_made)
{
	use_shards("weights/");
	ck_assert_int_eq(output("out"), 0);
	ck_assert_str_eq(folder_names("out"), INDEX " weights");
	ck_assert_str_eq(folder_names("out/weights"), SHARD_1 " " SHARD_2 " " SHARD_3);
}
END_TEST

static char synced[4096];

/* Notes the folders that are synced, by their places below the fixture's; the output has another name by then. */
static int note_fsync(void *user, int fd)
{
	char link[64], path[PATH_MAX + 1], *below;
	struct stat st;
	ssize_t n;

	(void)user;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	ck_assert_int_gt(n, 0);
	path[n] = '\0';
	below = strstr(path, ".stfs-commit");
	if (below && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		snprintf(synced + strlen(synced), sizeof(synced) - strlen(synced), "<%s>",
			 below + strlen(".stfs-commit"));
	return fsync(fd);
}

/* A power cut must not take a folder away of which only what is in it was synced. */
START_TEST(folders_in_folders_are_synced)
{
	struct stfs_os os = *stfs_os_real();

	os.fsync = note_fsync;
	ck_assert_int_eq(mkdir(fixture_path("all"), 0755), 0);
	use_shards("all/weights/");
	stfs_view_free(view);
	said_init(&said);
	ck_assert_int_eq(editing_open("", &os, &said, &view), 0);
	ck_assert_int_eq(output("out"), 0);
	ck_assert_str_eq(folder_names("out"), "all " INDEX);
	ck_assert_msg(strstr(synced, "<>") && strstr(synced, "</all>") && strstr(synced, "</all/weights>"), "%s",
		      synced);
	stfs_view_free(view);
	view = editing("");
}
END_TEST

START_TEST(one_file_becomes_shards)
{
	struct stfs_commit_options options = { .plan = { .reshape = true, .max_shard_size = 1000 } };

	edit_put(view, "a/b/data", "0123456789");
	ck_assert_int_eq(output_options("out", options), 0);
	ck_assert_str_eq(folder_names("out"), "m-00001-of-00002.safetensors m-00002-of-00002.safetensors "
					      "m.safetensors.index.json");
	want_bytes(&wanted, "0123456789", 10);
	expect_file("out/m-00002-of-00002.safetensors",
		    "{" PT ",\"a.b\":{\"dtype\":\"U8\",\"shape\":[10],\"data_offsets\":[0,10]}}", &wanted);
}
END_TEST

START_TEST(shards_become_one_file)
{
	struct stfs_commit_options options = { .plan = { .reshape = true, .sort = true } };

	use_shards("");
	ck_assert_int_eq(output_options("new.safetensors", options), 0);
	want_old(&wanted, 0, 1000);
	want_old(&wanted, 0, 1000);
	want_old(&wanted, 0, 64);
	want_old(&wanted, 1000, 10);
	want_old(&wanted, 1000, 10);
	expect_file("new.safetensors",
		    "{" PT ",\"l0.w\":{\"dtype\":\"F32\",\"shape\":[250],\"data_offsets\":[0,1000]},"
		    "\"l1.w\":{\"dtype\":\"F32\",\"shape\":[250],\"data_offsets\":[1000,2000]},"
		    "\"head\":{\"dtype\":\"U8\",\"shape\":[64],\"data_offsets\":[2000,2064]},"
		    "\"l0.b\":{\"dtype\":\"U8\",\"shape\":[10],\"data_offsets\":[2064,2074]},"
		    "\"l1.b\":{\"dtype\":\"U8\",\"shape\":[10],\"data_offsets\":[2074,2084]}}",
		    &wanted);
}
END_TEST

static int stop_late(void *user, uint64_t done, uint64_t total)
{
	(void)user;
	return done == total;
}

START_TEST(what_is_stopped_leaves_nothing)
{
	struct stfs_commit_options options = { .progress = stop_late };

	ck_assert_int_eq(output_options("new.safetensors", options), -ECANCELED);
	ck_assert_int_eq(output_options("out/", options), -ECANCELED);
	ck_assert_str_eq(folder_names(""), NAME);
	use_shards("weights/");
	ck_assert_int_eq(output_options("out", options), -ECANCELED);
	ck_assert_str_eq(folder_names(""), INDEX " weights");
}
END_TEST

/* What is staged was made for the file that is open, whatever has its name now. */
START_TEST(a_source_that_was_replaced_serves)
{
	edit_put(view, "a/b/data", "0123456789");
	file_put("other", "something else");
	file_rename("other", NAME);
	ck_assert_int_eq(output("new.safetensors"), 0);
	want_edited();
	expect_file("new.safetensors", JSON, &wanted);
	ck_assert_int_eq(output_options("dry", (struct stfs_commit_options){ .dry_run = true }), 0);
	ck_assert_str_eq(folder_names(""), FIXTURE_STAGE " " NAME " new.safetensors");
}
END_TEST

START_TEST(a_source_that_was_written_does_not)
{
	int fd = open(fixture_path(NAME), O_WRONLY);

	ck_assert_int_eq(pwrite(fd, "?", 1, 500), 1);
	close(fd);
	ck_assert_int_eq(output("new.safetensors"), -ESTALE);
	ck_assert_str_eq(folder_names(""), NAME);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("commit_output");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, a_file);
	tcase_add_test(tcase, permissions_are_not_widened);
	tcase_add_test(tcase, a_read_only_view_can_be_written_out);
	tcase_add_test(tcase, nothing_is_replaced);
	tcase_add_test(tcase, what_appears_meanwhile_stays);
	tcase_add_test(tcase, a_directory_for_one_file);
	tcase_add_test(tcase, a_directory_for_shards);
	tcase_add_test(tcase, folders_of_shards_are_made);
	tcase_add_test(tcase, folders_in_folders_are_synced);
	tcase_add_test(tcase, one_file_becomes_shards);
	tcase_add_test(tcase, shards_become_one_file);
	tcase_add_test(tcase, what_is_stopped_leaves_nothing);
	tcase_add_test(tcase, a_source_that_was_replaced_serves);
	tcase_add_test(tcase, a_source_that_was_written_does_not);
	return run_tests("commit_output", tcase);
}
