/* SPDX-License-Identifier: Apache-2.0 */
/* Commits of a model of one file: what is in it afterwards, put together by hand, byte for byte. */
#include "commit_fixture.h"
#include "view_publish.h"

#define NAME "m.safetensors"
#define METADATA "\"__metadata__\":{\"format\":\"pt\",\"note\":\"x\"}"
#define A_W "\"a.w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}"
#define A_B "\"a.b\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[24,29]}"
#define BIG "\"big\":{\"dtype\":\"U8\",\"shape\":[100000],\"data_offsets\":[29,100029]}"
#define ALL "{" METADATA "," A_W "," A_B "," BIG "}"
#define STAGED FIXTURE_STAGE " " NAME
#define BIG_SIZE 100000

static struct stfs_view *view;
static struct wanted wanted;
static struct said said;

static void make_model(void)
{
	struct maker maker = { 0 };

	maker_metadata(&maker, "{\"note\":\"x\",\"format\":\"pt\"}");
	maker_tensor(&maker, "a.w", "F32", "2,3", 24);
	maker_tensor(&maker, "a.b", "U8", "5", 5);
	maker_tensor(&maker, "big", "U8", "100000", BIG_SIZE);
	maker_write(&maker, NAME);
}

static void setup(void)
{
	fixture_setup();
	make_model();
	view = editing(NAME);
}

static void teardown(void)
{
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0) | setegid(0), 0);
	editing_teardown(view);
}

static void remount(void)
{
	stfs_view_free(view);
	view = editing(NAME);
}

static void want_all(void)
{
	want_old(&wanted, 0, 29 + BIG_SIZE);
}

static struct stat stat_of(const char *name)
{
	struct stat st;

	ck_assert_int_eq(lstat(fixture_path(name), &st), 0);
	return st;
}

/* A commit that must fail: with this error, a sentence with these words, and everything as it was. */
static void refused_by(const struct stfs_commit_options *options, int error, const char *words)
{
	struct stfs_commit_result result;
	int r = commit_options(view, options, &said, &result);

	ck_assert_msg(r == error, "%s: %s", strerror(-r), said.text);
	ck_assert_msg(strstr(said.text, words) != NULL, "%s", said.text);
	ck_assert_int_eq(access(fixture_path("." NAME ".stfs-commit"), F_OK), -1);
	ck_assert_int_eq(access(fixture_path(FIXTURE_STAGE "/journal.next"), F_OK), -1);
}

static void refused(int error, const char *words)
{
	struct stfs_commit_options options = { 0 };

	refused_by(&options, error, words);
}

START_TEST(a_rename_changes_the_header_only)
{
	uint64_t ino = edit_ino(view, "a/w/data"), big = edit_ino(view, "big");
	struct stfs_commit_result result;

	edit_mv(view, "a", "z");
	result = commit(view);
	ck_assert(!result.nothing && !result.link_replaced && !result.not_durable);
	ck_assert_uint_eq(result.files, 1);
	ck_assert_uint_eq(result.bytes, (uint64_t)stat_of(NAME).st_size);
	ck_assert_uint_eq(result.stats.cloned + result.stats.in_kernel + result.stats.buffered, 29 + BIG_SIZE);
	want_all();
	expect_file(NAME,
		    "{" METADATA ",\"z.w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
		    "\"z.b\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[24,29]}," BIG "}",
		    &wanted);
	ck_assert_str_eq(folder_names(""), NAME);
	ck_assert_uint_eq(edit_ino(view, "z/w/data"), ino);
	ck_assert_uint_eq(edit_ino(view, "big"), big);
	ck_assert(!edit_there(view, "a"));
	remount();
	edit_expect(view, "z/b/data", "\x18\x19\x1a\x1b\x1c");
	ck_assert(!edit_there(view, "a"));
}
END_TEST

START_TEST(deleted_tensors_are_gone)
{
	edit_rm_tensor(view, "a/b");
	edit_rm_tensor(view, "a/w");
	commit(view);
	want_old(&wanted, 29, BIG_SIZE);
	expect_file(NAME, "{" METADATA ",\"big\":{\"dtype\":\"U8\",\"shape\":[100000],\"data_offsets\":[0,100000]}}",
		    &wanted);
	ck_assert(!edit_there(view, "a"));
	edit_rm_tensor(view, "big");
	commit(view);
	expect_file(NAME, "{" METADATA "}", &wanted);
}
END_TEST

START_TEST(new_tensors_follow_the_old_ones)
{
	edit_mkdir(view, "n");
	edit_mkdir(view, "n/x");
	edit_put(view, "n/x/shape", "2 2\n");
	edit_put(view, "n/x/dtype", "I16\n");
	edit_put(view, "n/x/data", "12345678");
	edit_mkdir(view, "empty");
	edit_put(view, "empty/dtype", "BF16");
	edit_put(view, "empty/shape", "[0, 4]");
	edit_put(view, "empty/data", "");
	commit(view);
	want_all();
	want_bytes(&wanted, "12345678", 8);
	expect_file(NAME,
		    "{" METADATA "," A_W "," A_B "," BIG
		    ",\"n.x\":{\"dtype\":\"I16\",\"shape\":[2,2],\"data_offsets\":[100029,100037]},"
		    "\"empty\":{\"dtype\":\"BF16\",\"shape\":[0,4],\"data_offsets\":[100037,100037]}}",
		    &wanted);
	edit_expect(view, "n/x/shape", "2 2\n");
	edit_expect(view, "empty/shape", "0 4\n"); /* as any mount shows it */
	edit_expect(view, "n/x/data", "12345678");
}
END_TEST

START_TEST(replaced_data_keeps_dtype_and_shape)
{
	edit_put(view, "a/w/data", "ABCDEFGHIJKLMNOPQRSTUVWX");
	edit_rm(view, "a/b/data");
	edit_put(view, "a/b/data", "vwxyz");
	commit(view);
	want_bytes(&wanted, "ABCDEFGHIJKLMNOPQRSTUVWXvwxyz", 29);
	want_old(&wanted, 29, BIG_SIZE);
	expect_file(NAME, ALL, &wanted);
	edit_expect(view, "a/b/data", "vwxyz");
	ck_assert_str_eq(folder_names(""), NAME);
}
END_TEST

/* Some bytes in the middle, some at the end: the rest is the old file's. */
START_TEST(data_over_a_run_is_mixed)
{
	edit_write(view, "big/data", false, "hello", 5, 50000);
	edit_write(view, "big/data", false, "there", 5, BIG_SIZE - 5);
	remount();
	edit_write(view, "big/data", false, "!", 1, 50005);
	commit(view);
	want_old(&wanted, 0, 29 + 50000);
	want_bytes(&wanted, "hello!", 6);
	want_old(&wanted, 29 + 50006, BIG_SIZE - 5 - 50006);
	want_bytes(&wanted, "there", 5);
	expect_file(NAME, ALL, &wanted);
}
END_TEST

START_TEST(cut_and_grown_data_with_its_shape)
{
	edit_resize(view, "big/data", 120000);
	edit_put(view, "big/shape", "2 60000");
	edit_resize(view, "a/w/data", 8);
	edit_put(view, "a/w/shape", "2 1");
	edit_resize(view, "a/b/data", 6);
	edit_put(view, "a/b/shape", "6");
	commit(view);
	want_old(&wanted, 0, 8);
	want_old(&wanted, 24, 5);
	want_zeros(&wanted, 1);
	want_old(&wanted, 29, BIG_SIZE);
	want_zeros(&wanted, 20000);
	expect_file(NAME,
		    "{" METADATA ",\"a.w\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
		    "\"a.b\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[8,14]},"
		    "\"big\":{\"dtype\":\"U8\",\"shape\":[2,60000],\"data_offsets\":[14,120014]}}",
		    &wanted);
}
END_TEST

/* Zeros in the middle of new data are zeros, also where a hole is all there is. */
START_TEST(holes_are_zeros)
{
	edit_mkdir(view, "n");
	edit_put(view, "n/dtype", "U8");
	edit_put(view, "n/shape", "300000");
	edit_write(view, "n/data", true, "a", 1, 0);
	edit_write(view, "n/data", false, "z", 1, 299999);
	commit(view);
	want_all();
	want_bytes(&wanted, "a", 1);
	want_zeros(&wanted, 299998);
	want_bytes(&wanted, "z", 1);
	expect_file(NAME,
		    "{" METADATA "," A_W "," A_B "," BIG
		    ",\"n\":{\"dtype\":\"U8\",\"shape\":[300000],\"data_offsets\":[100029,400029]}}",
		    &wanted);
}
END_TEST

START_TEST(metadata_is_set_and_deleted)
{
	edit_put(view, "__metadata__/note", "two\nlines\n");
	edit_put(view, "__metadata__/author", "me\n");
	edit_rm(view, "__metadata__/format");
	commit(view);
	want_all();
	expect_file(NAME, "{\"__metadata__\":{\"author\":\"me\",\"note\":\"two\\nlines\"}," A_W "," A_B "," BIG "}",
		    &wanted);
	edit_expect(view, "__metadata__/author", "me\n");
	ck_assert(!edit_there(view, "__metadata__/format"));
	edit_rm(view, "__metadata__/author");
	edit_rm(view, "__metadata__/note");
	commit(view);
	want_all();
	expect_file(NAME, "{" A_W "," A_B "," BIG "}", &wanted);
}
END_TEST

/* They are never committed, and still there after it, here and on the next mount. */
START_TEST(scratch_is_kept)
{
	static const char *const paths[] = { "notes.txt", "a/w/data~", "__metadata__/.note.swp", "m/notes" };

	edit_mkdir(view, "m");
	edit_put(view, "notes.txt", "remember\n");
	edit_put(view, "a/w/data~", "backup");
	edit_put(view, "__metadata__/.note.swp", "swap");
	edit_put(view, "m/notes", "more");
	edit_resize(view, "notes.txt", 200000);
	edit_put(view, "a/b/data", "vwxyz");
	edit_mv(view, "a", "c");
	commit(view);
	ck_assert_str_eq(folder_names(""), STAGED);
	for (int i = 0; i < 2; i++) {
		struct stfs_buf buf = edit_bytes(view, "notes.txt");

		ck_assert_uint_eq(buf.len, 200000);
		ck_assert_int_eq(memcmp(buf.data, "remember\n\0", 10), 0);
		stfs_buf_fini(&buf);
		edit_expect(view, "c/w/data~", "backup");
		edit_expect(view, "c/b/data", "vwxyz");
		edit_expect(view, "__metadata__/.note.swp", "swap");
		edit_expect(view, "m/notes", "more");
		remount();
	}
	edit_put(view, "c/b/data", "12345");
	commit(view);
	for (int i = 0; i < 4; i++)
		edit_rm(view, i == 1 ? "c/w/data~" : paths[i]);
	edit_put(view, "c/b/data", "abcde");
	commit(view);
	ck_assert_str_eq(folder_names(""), NAME);
}
END_TEST

/* What was moved out of the model into a scratch file is still in there when the model is gone. */
START_TEST(scratch_does_not_lean_on_the_old_model)
{
	struct stfs_buf buf;

	edit_mv(view, "big/data", "saved");
	edit_rm(view, "big/dtype");
	edit_rm(view, "big/shape");
	commit(view);
	remount();
	buf = edit_bytes(view, "saved");
	want_old(&wanted, 29, BIG_SIZE);
	ck_assert_uint_eq(buf.len, BIG_SIZE);
	ck_assert_int_eq(memcmp(buf.data, wanted.data.data, BIG_SIZE), 0);
	stfs_buf_fini(&buf);
	stfs_buf_fini(&wanted.data);
}
END_TEST

START_TEST(nothing_staged_leaves_the_file_alone)
{
	struct stat before = stat_of(NAME), after;
	struct stfs_commit_result result = commit(view);

	ck_assert(result.nothing);
	ck_assert_uint_eq(result.files, 0);
	edit_put(view, "notes.txt", "scratch only");
	ck_assert(commit(view).nothing);
	edit_mv(view, "a", "b");
	edit_mv(view, "b", "a");
	ck_assert(commit(view).nothing);
	after = stat_of(NAME);
	ck_assert_uint_eq(after.st_ino, before.st_ino);
	ck_assert_int_eq(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	edit_expect(view, "notes.txt", "scratch only");
}
END_TEST

/* By dtype, the widest first, then by name; also when nothing is staged. */
START_TEST(sorting_rewrites)
{
	struct stfs_commit_options options = { .plan = { .sort = true } };
	struct stfs_commit_result result;

	ck_assert_int_eq(commit_options(view, &options, &said, &result), 0);
	ck_assert(!result.nothing);
	want_all();
	expect_file(NAME, ALL, &wanted);
	ck_assert_str_eq(folder_names(""), NAME);
	edit_mv(view, "big", "a/a");
	edit_mkdir(view, "n");
	edit_put(view, "n/dtype", "F64");
	edit_put(view, "n/shape", "");
	edit_put(view, "n/data", "12345678");
	ck_assert_int_eq(commit_options(view, &options, &said, &result), 0);
	want_bytes(&wanted, "12345678", 8);
	want_old(&wanted, 0, 24);
	want_old(&wanted, 29, BIG_SIZE);
	want_old(&wanted, 24, 5);
	expect_file(NAME,
		    "{" METADATA ",\"n\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},"
		    "\"a.w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]},"
		    "\"a.a\":{\"dtype\":\"U8\",\"shape\":[100000],\"data_offsets\":[32,100032]},"
		    "\"a.b\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[100032,100037]}}",
		    &wanted);
}
END_TEST

START_TEST(commits_follow_one_another)
{
	for (int i = 0; i < 5; i++) {
		char text[6];

		snprintf(text, sizeof(text), "%05d", i);
		edit_put(view, "a/b/data", text);
		edit_write(view, "big/data", false, text, 5, (uint64_t)i * 1000);
		commit(view);
		want_all();
		want_over(&wanted, 24, text, 5);
		for (int k = 0; k <= i; k++) {
			snprintf(text, sizeof(text), "%05d", k);
			want_over(&wanted, 29 + (uint64_t)k * 1000, text, 5);
		}
		expect_file(NAME, ALL, &wanted);
		if (i % 2)
			remount();
	}
}
END_TEST

/* A file that was open for writing before goes on: what it writes now is staged for the next commit. */
START_TEST(a_handle_goes_on_after_the_commit)
{
	struct stfs_file *big = edit_open(view, "big/data", false), *small = edit_open(view, "a/b/data", false);
	size_t written;

	ck_assert_int_eq(stfs_file_write(big, "one", 3, 10, &written), 0);
	ck_assert_int_eq(stfs_file_write(small, "1", 1, 0, &written), 0);
	commit(view);
	ck_assert_str_eq(folder_names(""), NAME);
	ck_assert_int_eq(stfs_file_write(big, "two", 3, 20000, &written), 0);
	ck_assert_int_eq(stfs_file_write(small, "2", 1, 1, &written), 0);
	ck_assert_str_eq(folder_names(""), STAGED);
	ck_assert_int_eq(stfs_file_sync(big), 0);
	stfs_file_close(big);
	stfs_file_close(small);
	remount();
	commit(view);
	want_old(&wanted, 0, 24);
	want_bytes(&wanted, "12\x1a\x1b\x1c", 5);
	want_old(&wanted, 29, 10);
	want_bytes(&wanted, "one", 3);
	want_old(&wanted, 42, 20000 - 13);
	want_bytes(&wanted, "two", 3);
	want_old(&wanted, 29 + 20003, BIG_SIZE - 20003);
	expect_file(NAME, ALL, &wanted);
}
END_TEST

START_TEST(a_reader_keeps_the_old_bytes)
{
	struct stfs_file *file;
	char data[5];
	size_t n;

	ck_assert_int_eq(stfs_view_open(view, edit_ino(view, "big/data"), &file), 0);
	edit_write(view, "big/data", true, "12345", 5, 0);
	edit_put(view, "big/shape", "5");
	edit_mv(view, "a", "c");
	commit(view);
	/* The handle is of the file whose bytes were replaced: it never reads past what that now holds. */
	ck_assert_int_eq(stfs_file_read(file, 0, data, 5, &n), 0);
	ck_assert_uint_eq(n, 5);
	stfs_file_close(file);
	edit_expect(view, "big/data", "12345");
}
END_TEST

/* The bytes an answer points to are those of when it was made, however many commits go by before they are sent. */
START_TEST(an_answer_outlives_commits)
{
	struct stfs_file *file = edit_open(view, "big/data", false);
	struct stfs_reading staged = { .n = 0 }, run = { .n = 0 };
	char data[8];
	size_t written;

	ck_assert_int_eq(stfs_file_write(file, "first", 5, 100, &written), 0);
	ck_assert_int_eq(stfs_file_map(file, 100, 5, &staged), 0);
	ck_assert(staged.n == 1 && staged.extents[0].fd >= 0 && !staged.extents[0].mem);
	commit(view);
	ck_assert_int_eq(stfs_file_map(file, 100, 5, &run), 0);
	ck_assert(run.n == 1 && run.extents[0].mem);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(stfs_file_write(file, "later", 5, 100, &written), 0);
		commit(view);
	}
	ck_assert_int_eq(pread(staged.extents[0].fd, data, 5, (off_t)staged.extents[0].offset), 5);
	ck_assert_mem_eq(data, "first", 5);
	ck_assert_mem_eq(run.extents[0].mem, "first", 5);
	stfs_reading_fini(&staged);
	stfs_reading_fini(&run);
	stfs_file_close(file);
}
END_TEST

START_TEST(incomplete_tensors_refuse_the_whole)
{
	struct stat before = stat_of(NAME);
	struct stfs_commit_options options = { 0 };
	struct stfs_commit_result result;

	edit_put(view, "a/b/data", "vwxyz");
	edit_resize(view, "a/w/data", 12);
	edit_mkdir(view, "n");
	edit_put(view, "n/data", "123");
	ck_assert_int_eq(commit_options(view, &options, &said, &result), -EINVAL);
	ck_assert_ptr_nonnull(strstr(said.text, "\"a.w\""));
	ck_assert_ptr_nonnull(strstr(said.text, "\"n\""));
	ck_assert_ptr_null(strstr(said.text, "\"a.b\""));
	ck_assert_uint_eq(stat_of(NAME).st_ino, before.st_ino);
	ck_assert_str_eq(folder_names(""), STAGED);
	edit_resize(view, "a/w/data", 24);
	edit_rm(view, "n/data");
	remount();
	commit(view);
	want_old(&wanted, 0, 12);
	want_zeros(&wanted, 12);
	want_bytes(&wanted, "vwxyz", 5);
	want_old(&wanted, 29, BIG_SIZE);
	expect_file(NAME, ALL, &wanted);
}
END_TEST

START_TEST(a_dry_run_writes_nothing)
{
	struct stfs_commit_options options = { .dry_run = true };
	struct stat before = stat_of(NAME);
	struct stfs_commit_result result;

	edit_mv(view, "a", "z");
	edit_put(view, "notes", "scratch");
	ck_assert_int_eq(commit_options(view, &options, &said, &result), 0);
	ck_assert(!result.nothing);
	ck_assert_uint_eq(result.files, 1);
	ck_assert_uint_eq(stat_of(NAME).st_ino, before.st_ino);
	ck_assert_str_eq(folder_names(""), STAGED);
	edit_resize(view, "z/w/data", 2);
	refused_by(&options, -EINVAL, "\"z.w\"");
	edit_resize(view, "z/w/data", 24);
	ck_assert_uint_eq(commit(view).bytes, result.bytes);
	ck_assert_uint_eq((uint64_t)stat_of(NAME).st_size, result.bytes);
}
END_TEST

struct seen {
	uint64_t last, total;
	unsigned n, stop_at;
};

static int see(void *user, uint64_t done, uint64_t total)
{
	struct seen *seen = user;

	ck_assert_uint_ge(done, seen->last);
	ck_assert_uint_le(done, total);
	seen->last = done;
	seen->total = total;
	return ++seen->n == seen->stop_at;
}

START_TEST(progress_is_told_and_can_stop_it)
{
	struct seen seen = { .stop_at = 2 };
	struct stfs_commit_options options = { .progress = see, .user = &seen };
	struct stfs_commit_result result;

	edit_mkdir(view, "n");
	edit_put(view, "n/dtype", "U8");
	edit_put(view, "n/shape", "50000000");
	edit_write(view, "n/data", true, "x", 1, 49999999);
	refused_by(&options, -ECANCELED, "stopped");
	ck_assert_str_eq(folder_names(""), STAGED);
	seen = (struct seen){ 0 };
	ck_assert_int_eq(commit_options(view, &options, &said, &result), 0);
	ck_assert_uint_eq(seen.last, seen.total);
	ck_assert_uint_eq(seen.total, result.bytes);
	ck_assert_uint_ge(seen.n, 2);
	ck_assert_uint_le(seen.n, 6);
}
END_TEST

START_TEST(one_commit_at_a_time)
{
	struct stfs_file *file = edit_open(view, "scratch", true);
	struct stfs_attr attr;

	edit_put(view, "a/b/data", "vwxyz");
	ck_assert_int_eq(stfs_view_freeze(view), 0);
	ck_assert_int_eq(stfs_file_sync(file), -EBUSY);
	refused(-EBUSY, "another commit");
	ck_assert_int_eq(stfs_view_mkdir(view, STFS_INO_ROOT, stfs_slice_of("x"), 0755, (struct stfs_owner){ 0 },
					 &attr),
			 -EBUSY);
	stfs_view_thaw(view);
	ck_assert_int_eq(stfs_file_sync(file), 0);
	stfs_file_close(file);
	commit(view);
}
END_TEST

START_TEST(a_read_only_view_commits_nothing)
{
	struct stfs_view_options options = { 0 };

	stfs_view_free(view);
	ck_assert_int_eq(stfs_view_new(fixture_open(NAME), &options, NULL, NULL, &view), 0);
	refused(-EROFS, "reading only");
}
END_TEST

START_TEST(a_source_that_was_written_is_stale)
{
	int fd = open(fixture_path(NAME), O_WRONLY);

	edit_put(view, "a/b/data", "vwxyz");
	ck_assert_int_eq(pwrite(fd, "?", 1, 500), 1);
	close(fd);
	refused(-ESTALE, "was written to");
	ck_assert_str_eq(folder_names(""), STAGED);
	edit_expect(view, "a/b/data", "vwxyz");
}
END_TEST

START_TEST(a_source_that_was_cut_is_stale)
{
	edit_put(view, "a/b/data", "vwxyz");
	ck_assert_int_eq(truncate(fixture_path(NAME), 50000), 0);
	refused(-ESTALE, "was truncated");
}
END_TEST

START_TEST(a_source_that_was_replaced_is_stale)
{
	edit_put(view, "a/b/data", "vwxyz");
	file_rename(NAME, "elsewhere");
	refused(-ESTALE, "not there any more");
	make_model();
	refused(-ESTALE, "another file has taken its place");
	ck_assert_str_eq(folder_names(""), FIXTURE_STAGE " elsewhere " NAME);
}
END_TEST

static int change_source(void *user, uint64_t done, uint64_t total)
{
	int fd = open(fixture_path(NAME), O_WRONLY);

	(void)user;
	(void)done;
	(void)total;
	ck_assert_int_eq(pwrite(fd, "?", 1, 500), 1);
	return close(fd);
}

START_TEST(a_source_that_changes_meanwhile_is_stale)
{
	struct stfs_commit_options options = { .progress = change_source };

	edit_put(view, "a/b/data", "vwxyz");
	refused_by(&options, -ESTALE, "was written to");
	ck_assert_str_eq(folder_names(""), STAGED);
}
END_TEST

/* Touching permissions alone is no change of the model, and the new file has the new ones. */
START_TEST(permissions_are_kept)
{
	struct stat st;

	edit_put(view, "a/b/data", "vwxyz");
	ck_assert_int_eq(chmod(fixture_path(NAME), 0640), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(chown(fixture_path(NAME), 1234, 4321), 0);
	umask(0);
	commit(view);
	st = stat_of(NAME);
	ck_assert_uint_eq(st.st_mode & 07777, 0640);
	if (geteuid() == 0) {
		ck_assert_uint_eq(st.st_uid, 1234);
		ck_assert_uint_eq(st.st_gid, 4321);
	}
}
END_TEST

/* Goes on as another user, who owns the folder. */
static void become_nobody(void)
{
	if (geteuid() != 0)
		return;
	ck_assert_int_eq(chown(fixture_dir, 65534, 65534), 0);
	ck_assert_int_eq(setegid(65534), 0);
	ck_assert_int_eq(seteuid(65534), 0);
}

START_TEST(what_cannot_be_given_away_opens_to_nobody)
{
	struct stat st;

	if (geteuid() != 0)
		return; /* takes a file of somebody else */
	stfs_view_free(view);
	ck_assert_int_eq(chmod(fixture_path(NAME), 0664), 0);
	become_nobody();
	view = editing(NAME);
	edit_put(view, "a/b/data", "vwxyz");
	commit(view);
	st = stat_of(NAME);
	ck_assert_uint_eq(st.st_uid, 65534);
	ck_assert_uint_eq(st.st_gid, 65534);
	/* The group is another one now: what the old group might, the new one may not. */
	ck_assert_uint_eq(st.st_mode & 07777, 0644);
}
END_TEST

START_TEST(a_read_only_folder_refuses)
{
	stfs_view_free(view);
	ck_assert_int_eq(chmod(fixture_path(NAME), 0644), 0);
	become_nobody();
	view = editing(NAME);
	edit_put(view, "a/b/data", "vwxyz");
	ck_assert_int_eq(chmod(fixture_dir, 0555), 0);
	refused(-EACCES, "cannot be made");
	ck_assert_int_eq(chmod(fixture_dir, 0755), 0);
	ck_assert_str_eq(folder_names(""), STAGED);
	commit(view);
	ck_assert_str_eq(folder_names(""), NAME);
}
END_TEST

START_TEST(more_than_the_disk_holds_is_said_before)
{
	edit_resize(view, "big/data", UINT64_C(1) << 43);
	edit_put(view, "big/shape", "8796093022208");
	refused(-ENOSPC, "bytes are to be written");
	ck_assert_str_eq(folder_names(""), STAGED);
}
END_TEST

/* As in a Hugging Face cache: the link becomes a file, the blob stays what its name says. */
START_TEST(a_link_is_replaced_and_the_blob_is_not)
{
	struct stat blob, st;

	stfs_view_free(view);
	ck_assert_int_eq(mkdir(fixture_path("blobs"), 0755), 0);
	file_rename(NAME, "blobs/abc");
	ck_assert_int_eq(symlink("blobs/abc", fixture_path(NAME)), 0);
	blob = stat_of("blobs/abc");
	view = editing(NAME);
	edit_put(view, "a/b/data", "vwxyz");
	ck_assert(commit(view).link_replaced);
	st = stat_of(NAME);
	ck_assert(S_ISREG(st.st_mode));
	ck_assert_uint_eq(st.st_mode & 07777, 0644);
	st = stat_of("blobs/abc");
	ck_assert_uint_eq(st.st_ino, blob.st_ino);
	ck_assert_int_eq(st.st_mtim.tv_nsec, blob.st_mtim.tv_nsec);
	edit_put(view, "a/b/data", "12345");
	ck_assert(!commit(view).link_replaced);
	edit_expect(view, "a/b/data", "12345");
}
END_TEST

START_TEST(another_name_of_the_file_keeps_it)
{
	struct stfs_buf before = file_bytes(NAME), after;

	file_link(NAME, "other");
	edit_put(view, "a/b/data", "vwxyz");
	commit(view);
	after = file_bytes("other");
	ck_assert(stfs_slice_equal(stfs_buf_slice(&before), stfs_buf_slice(&after)));
	stfs_buf_fini(&before);
	stfs_buf_fini(&after);
	ck_assert_uint_eq(stat_of(NAME).st_nlink, 1);
}
END_TEST

/* The lock is on the new file, and nobody got in between. */
START_TEST(the_lock_goes_with_the_name)
{
	int old = open(fixture_path(NAME), O_RDONLY), new;

	edit_put(view, "a/b/data", "vwxyz");
	commit(view);
	new = open(fixture_path(NAME), O_RDONLY);
	ck_assert_int_eq(flock(new, LOCK_EX | LOCK_NB), -1);
	ck_assert_int_eq(errno, EWOULDBLOCK);
	ck_assert_int_eq(flock(old, LOCK_EX | LOCK_NB), 0);
	close(old);
	stfs_view_free(view);
	view = NULL;
	ck_assert_int_eq(flock(new, LOCK_EX | LOCK_NB), 0);
	close(new);
}
END_TEST

/* A leftover of the deterministic name is ours, and goes. */
START_TEST(a_leftover_is_no_obstacle)
{
	file_put("." NAME ".stfs-commit", "half a file");
	edit_put(view, "a/b/data", "vwxyz");
	commit(view);
	ck_assert_str_eq(folder_names(""), NAME);
}
END_TEST

/* The longest name a folder takes has a temporary one too. */
START_TEST(the_longest_name_can_be_committed)
{
	char name[256] = { 0 };

	stfs_view_free(view);
	memset(name, 'n', 255);
	memcpy(name + 255 - 12, ".safetensors", 12);
	file_rename(NAME, name);
	view = editing(name);
	edit_put(view, "a/b/data", "vwxyz");
	commit(view);
	ck_assert_str_eq(folder_names(""), name);
}
END_TEST

START_TEST(a_handle_of_a_removed_file_lives_on)
{
	struct stfs_file *file = edit_open(view, "big/data", false);
	char data[3];
	size_t n;

	ck_assert_int_eq(stfs_file_write(file, "one", 3, 50, &n), 0);
	edit_rm_tensor(view, "big");
	commit(view);
	ck_assert_int_eq(stfs_file_read(file, 50, data, 3, &n), 0);
	ck_assert_uint_eq(n, 3);
	ck_assert_int_eq(memcmp(data, "one", 3), 0);
	stfs_file_close(file);
	ck_assert_str_eq(folder_names(""), NAME);
}
END_TEST

/* Clones as a filesystem that can: whole blocks only. */
static int clone_by_copy(void *user, int to, uint64_t to_offset, int from, uint64_t from_offset, uint64_t len)
{
	char block[4096];

	(void)user;
	ck_assert_uint_eq((to_offset | from_offset | len) % sizeof(block), 0);
	for (uint64_t at = 0; at < len; at += sizeof(block)) {
		ck_assert_int_eq(pread(from, block, sizeof(block), (off_t)(from_offset + at)), sizeof(block));
		ck_assert_int_eq(pwrite(to, block, sizeof(block), (off_t)(to_offset + at)), sizeof(block));
	}
	return 0;
}

static int allocate_nothing(void *user, int fd, int mode, off_t offset, off_t len)
{
	(void)user, (void)fd, (void)mode, (void)offset, (void)len;
	ck_abort_msg("room is taken for what is shared");
}

/* The header is padded so that data lies in its block as before, and no room is taken for what is shared. */
START_TEST(blocks_are_shared_where_that_can_be)
{
	struct stfs_os os = *stfs_os_real();
	struct stfs_commit_result result;

	edit_put(view, "a/b/data", "12345");
	commit(view);
	stfs_view_free(view);
	os.clone_range = clone_by_copy;
	os.fallocate = allocate_nothing;
	said_init(&said);
	ck_assert_int_eq(editing_open(NAME, &os, &said, &view), 0);
	edit_put(view, "__metadata__/note", "a much longer note than the one there was");
	edit_put(view, "a/b/data", "vwxyz");
	result = commit(view);
	ck_assert_uint_ge(result.stats.cloned, BIG_SIZE - 2 * 4096);
	want_all();
	want_over(&wanted, 24, "vwxyz", 5);
	expect_file(NAME,
		    "{\"__metadata__\":{\"format\":\"pt\",\"note\":\"a much longer note than the one there was\"}," A_W
		    "," A_B "," BIG "}",
		    &wanted);
	remount();
}
END_TEST

START_TEST(reshaping_needs_another_place)
{
	struct stfs_commit_options options = { .plan = { .reshape = true, .max_shard_size = 1000 } };

	edit_put(view, "a/b/data", "vwxyz");
	refused_by(&options, -EINVAL, "another place");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("commit");
	TCase *tcase = tcase_create("commit");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, a_rename_changes_the_header_only);
	tcase_add_test(tcase, deleted_tensors_are_gone);
	tcase_add_test(tcase, new_tensors_follow_the_old_ones);
	tcase_add_test(tcase, replaced_data_keeps_dtype_and_shape);
	tcase_add_test(tcase, data_over_a_run_is_mixed);
	tcase_add_test(tcase, cut_and_grown_data_with_its_shape);
	tcase_add_test(tcase, holes_are_zeros);
	tcase_add_test(tcase, metadata_is_set_and_deleted);
	tcase_add_test(tcase, scratch_is_kept);
	tcase_add_test(tcase, scratch_does_not_lean_on_the_old_model);
	tcase_add_test(tcase, nothing_staged_leaves_the_file_alone);
	tcase_add_test(tcase, sorting_rewrites);
	tcase_add_test(tcase, commits_follow_one_another);
	tcase_add_test(tcase, a_handle_goes_on_after_the_commit);
	tcase_add_test(tcase, a_reader_keeps_the_old_bytes);
	tcase_add_test(tcase, an_answer_outlives_commits);
	tcase_add_test(tcase, incomplete_tensors_refuse_the_whole);
	tcase_add_test(tcase, a_dry_run_writes_nothing);
	tcase_add_test(tcase, progress_is_told_and_can_stop_it);
	tcase_add_test(tcase, one_commit_at_a_time);
	tcase_add_test(tcase, a_read_only_view_commits_nothing);
	tcase_add_test(tcase, a_source_that_was_written_is_stale);
	tcase_add_test(tcase, a_source_that_was_cut_is_stale);
	tcase_add_test(tcase, a_source_that_was_replaced_is_stale);
	tcase_add_test(tcase, a_source_that_changes_meanwhile_is_stale);
	tcase_add_test(tcase, permissions_are_kept);
	tcase_add_test(tcase, what_cannot_be_given_away_opens_to_nobody);
	tcase_add_test(tcase, a_read_only_folder_refuses);
	tcase_add_test(tcase, more_than_the_disk_holds_is_said_before);
	tcase_add_test(tcase, a_link_is_replaced_and_the_blob_is_not);
	tcase_add_test(tcase, another_name_of_the_file_keeps_it);
	tcase_add_test(tcase, the_lock_goes_with_the_name);
	tcase_add_test(tcase, a_leftover_is_no_obstacle);
	tcase_add_test(tcase, the_longest_name_can_be_committed);
	tcase_add_test(tcase, a_handle_of_a_removed_file_lives_on);
	tcase_add_test(tcase, blocks_are_shared_where_that_can_be);
	tcase_add_test(tcase, reshaping_needs_another_place);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
