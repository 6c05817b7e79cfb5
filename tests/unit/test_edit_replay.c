/* SPDX-License-Identifier: Apache-2.0 */
/* What a journal brings back: after a power cut, with records nobody wrote, and after many edits. */
#include "edit_fixture.h"
#include "faulty_os.h"
#include "journal.h"
#include "record.h"
#include "run_tests.h"

static int ignore_record(void *user, const struct stfs_record *record)
{
	(void)user, (void)record;
	return 0;
}

/* Appends a record to the journal of the closed view, as one of that system. */
static void forge_on(const struct stfs_os *os, uint32_t type, const struct stfs_buf *payload)
{
	int dir_fd = open(fixture_path(".m.stage"), O_RDONLY | O_DIRECTORY);
	struct stfs_journal *journal;

	ck_assert_int_eq(stfs_journal_open(os, dir_fd, "journal", false, &journal), 0);
	ck_assert_int_eq(stfs_journal_replay(journal, ignore_record, NULL, NULL), 0);
	ck_assert_int_eq(stfs_journal_append(journal, type, stfs_buf_slice(payload)), 0);
	stfs_journal_close(journal);
	close(dir_fd);
}

static void forge(uint32_t type, const struct stfs_buf *payload)
{
	forge_on(stfs_os_real(), type, payload);
}

/* Opens what is staged again; returns what failed. */
static int try_open(void)
{
	struct stfs_view_options options = { .layout = STFS_NESTED };
	int fd = open(fixture_dir, O_RDONLY | O_DIRECTORY);
	struct stfs_stage_options stage_options = {
		.parent_fd = fd, .name = ".m.stage", .holder = "test", .os = stfs_os_real()
	};
	struct stfs_stage *stage = NULL;
	struct stfs_diag diag = { 0 };

	ck_assert_int_eq(stfs_view_new(fixture_open("m.safetensors"), &options, NULL, &diag, &view), 0);
	ck_assert_int_eq(stfs_stage_new(&stage_options, &diag, &stage), 0);
	close(fd);
	return stfs_view_attach_stage(view, stage, &diag);
}

static uint64_t another_boot(void *user)
{
	(void)user;
	return 77;
}

/* As if the machine had been started anew: what is staged was written by another boot. */
static void other_boot(void)
{
	const struct stfs_buf nothing = { 0 };
	struct stfs_os os = *stfs_os_real();

	os.boot = another_boot;
	forge_on(&os, STFS_RECORD_MARK, &nothing);
}

START_TEST(power_cut_is_remembered)
{
	char *bytes = calloc(1, 20000);

	ck_assert_int_eq(write_at("model/a/w/data", true, bytes, 20000, 0), 0);
	ck_assert_int_eq(put("model/a/w/shape", "20000\n"), 0);
	ck_assert_int_eq(put("model/a/w/dtype", "U8\n"), 0);
	close_view();
	other_boot();
	open_view(STFS_NESTED);
	for (int i = 0; i < 3; i++) {
		expect_status("! model.a.w: a power cut may have taken bytes that were never synced\n"
			      "# 0 changes, 1 incomplete, 0 scratch files\n");
		reopen();
	}
	/* Written anew it is whole. */
	ck_assert_int_eq(write_at("model/a/w/data", true, bytes, 20000, 0), 0);
	for (int i = 0; i < 2; i++) {
		expect_status("M model.a.w (data, dtype, shape)\n# 1 changes, 0 incomplete, 0 scratch files\n");
		reopen();
	}
	free(bytes);
}
END_TEST

/* Bytes that are synced before a NumPy file takes effect, or through it afterwards, are the tensor's. */
START_TEST(synced_numpy_file_outlives_a_power_cut)
{
	bool before = _i % 2 == 0;
	size_t n = _i < 2 ? 50000 : 3000; /* a file of its own from the beginning, or part of the journal at first */
	char *npy = make_npy(n, 'n');
	struct stfs_file *file = open_write("model/a/w/data.npy", true);
	size_t written;

	ck_assert_int_eq(stfs_file_write(file, npy, NPY_HEAD + n, 0, &written), 0);
	if (before)
		ck_assert_int_eq(stfs_file_sync(file), 0);
	ck_assert_int_eq(stfs_file_flush(file), 0);
	if (!before)
		ck_assert_int_eq(stfs_file_sync(file), 0);
	stfs_file_close(file);
	close_view();
	other_boot();
	open_view(STFS_NESTED);
	for (int i = 0; i < 2; i++) {
		expect_fill("model/a/w/data", n, 'n');
		expect_status("M model.a.w (data, dtype, shape)\n# 1 changes, 0 incomplete, 0 scratch files\n");
		reopen();
	}
	free(npy);
}
END_TEST

START_TEST(lost_bytes_leave_the_rest)
{
	char *bytes = calloc(1, 20000), command[300];

	ck_assert_int_eq(put("__metadata__/note", "kept"), 0);
	ck_assert_int_eq(write_at("model/a/w/data", true, bytes, 20000, 0), 0);
	close_view();
	snprintf(command, sizeof(command), "rm %s/.m.stage/bytes.*", fixture_dir);
	ck_assert_int_eq(system(command), 0);
	other_boot();
	open_view(STFS_NESTED);
	for (int i = 0; i < 2; i++) {
		expect("__metadata__/note", "kept");
		expect_status("! model.a.w: a power cut may have taken bytes that were never synced\n"
			      "M __metadata__/note\n# 1 changes, 1 incomplete, 0 scratch files\n");
		reopen();
	}
	ck_assert_int_eq(put("model/a/w/data", "abcdefghijklmnopqrstuvwx"), 0);
	for (int i = 0; i < 2; i++) {
		expect("model/a/w/data", "abcdefghijklmnopqrstuvwx");
		reopen();
	}
	ck_assert_int_eq(write_at("model/a/w/data", true, bytes, 20000, 0), 0);
	reopen();
	expect_fill("model/a/w/data", 20000, 0);
	free(bytes);
}
END_TEST

/* Removes a file of staged bytes, with a fault in the sync of the journal. Returns how often that was synced. */
static unsigned remove_staged(struct faulty_os *faulty, bool synced, int error)
{
	char *bytes = calloc(1, 20000);

	ck_assert_int_eq(write_at("scratch", true, bytes, 20000, 0), 0);
	if (synced)
		ck_assert_int_eq(stfs_view_sync(view), 0);
	faulty_os_plant_in(faulty, FAULTY_FDATASYNC, error ? FAULTY_ONCE : FAULTY_NONE, 1, error);
	ck_assert_int_eq(do_unlink("scratch"), 0);
	free(bytes);
	return faulty->calls;
}

static bool has_bytes(void)
{
	char command[200];

	snprintf(command, sizeof(command), "ls %s/.m.stage/bytes.* >/dev/null 2>&1", fixture_dir);
	return system(command) == 0;
}

START_TEST(synced_bytes_outlive_their_name)
{
	struct faulty_os faulty;

	faulty_os_init(&faulty, stfs_os_real());
	view_os = &faulty.os;
	reopen();
	/* Else a power cut could leave the name without what was synced under it. */
	ck_assert_uint_eq(remove_staged(&faulty, true, 0), 1);
	ck_assert(!has_bytes());
	ck_assert_uint_eq(remove_staged(&faulty, false, 0), 0);
	ck_assert(!has_bytes());
	ck_assert_uint_eq(remove_staged(&faulty, true, EIO), 1);
	ck_assert(has_bytes());
	/* The next one to read the journal knows that nobody needs them. */
	reopen();
	ck_assert(!has_bytes());
	view_os = NULL;
	reopen();
}
END_TEST

/* Makes a small file outgrow the journal, with a fault in the sync of its bytes. Returns how often those were synced. */
static unsigned outgrow_journal(struct faulty_os *faulty, const char *name, int error)
{
	char *bytes = calloc(1, 20000);

	faulty_os_plant_in(faulty, FAULTY_FDATASYNC, error ? FAULTY_ONCE : FAULTY_NONE, 1, error);
	ck_assert_int_eq(write_at(name, false, bytes, 20000, 4), -error);
	free(bytes);
	return faulty->calls;
}

static void sync_file(const char *name)
{
	struct stfs_file *file = open_write(name, false);

	ck_assert_int_eq(stfs_file_sync(file), 0);
	stfs_file_close(file);
}

START_TEST(synced_text_outlives_its_growth)
{
	struct faulty_os faulty;
	struct stfs_buf buf;

	faulty_os_init(&faulty, stfs_os_real());
	view_os = &faulty.os;
	reopen();
	ck_assert_int_eq(put("new", "text"), 0);
	ck_assert_uint_eq(outgrow_journal(&faulty, "new", 0), 0);
	/* The journal must not lead away from the text to a file that a power cut can take. */
	ck_assert_int_eq(put("synced", "text"), 0);
	sync_file("synced");
	ck_assert_uint_eq(outgrow_journal(&faulty, "synced", EIO), 1);
	expect("synced", "text");
	ck_assert_uint_eq(outgrow_journal(&faulty, "synced", 0), 1);
	ck_assert_int_eq(put("replayed", "text"), 0);
	reopen();
	ck_assert_uint_eq(outgrow_journal(&faulty, "replayed", 0), 1);
	buf = bytes_of("replayed");
	ck_assert(buf.len == 20004 && memcmp(buf.data, "text", 4) == 0);
	stfs_buf_fini(&buf);
	view_os = NULL;
	reopen();
}
END_TEST

/* Each sync is told of, be it of more bytes over a run of the model, or of more of a file that stands alone. */
START_TEST(synced_again_and_again)
{
	char *bytes = calloc(1, 20000);
	struct stfs_os os = *stfs_os_real();

	ck_assert_int_eq(put("model/a/w/shape", "60000\n"), 0);
	ck_assert_int_eq(put("model/a/w/dtype", "U8\n"), 0);
	ck_assert_int_eq(put("model/a/w/data", ""), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(write_at("model/big/data", false, bytes, 5000, (uint64_t)i * 20000), 0);
		sync_file("model/big/data");
		ck_assert_int_eq(write_at("model/a/w/data", false, bytes, 20000, (uint64_t)i * 20000), 0);
		sync_file("model/a/w/data");
	}
	os.boot = another_boot;
	view_os = &os;
	reopen();
	expect_status("M model.a.w (data, dtype, shape)\nM model.big (data)\n"
		      "# 2 changes, 0 incomplete, 0 scratch files\n");
	view_os = NULL;
	reopen();
	free(bytes);
}
END_TEST

/* A staging area that can be made and not begun is told of once, as one that cannot be made. */
START_TEST(an_area_that_cannot_be_begun_is_logged)
{
	FILE *log = fopen(fixture_path("log"), "w+");
	struct faulty_os faulty;
	struct stfs_attr attr;
	char line[500] = "";

	ck_assert_ptr_nonnull(log);
	ck_assert_int_eq(dup2(fileno(log), STDERR_FILENO), STDERR_FILENO);
	ck_assert_int_eq(stfs_log_new("test", false, &view_log), 0);
	faulty_os_init(&faulty, stfs_os_real());
	view_os = &faulty.os;
	reopen();
	/* The head of the journal and the note of the holder are written, the first record is not. */
	for (int i = 0; i < 2; i++) {
		faulty_os_plant_in(&faulty, FAULTY_PWRITE, FAULTY_ONCE, 3, ENOSPC);
		ck_assert_int_eq(stfs_view_mkdir(view, STFS_INO_ROOT, stfs_slice_of("x"), 0755,
						 (struct stfs_owner){ 0 }, &attr),
				 -ENOSPC);
	}
	rewind(log);
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), log));
	ck_assert_msg(strstr(line, "nothing can be edited: "), "%s", line);
	ck_assert_ptr_null(fgets(line, sizeof(line), log));
	ck_assert_int_eq(do_mkdir("x"), 0);
	view_os = NULL;
	reopen();
	close_view();
	stfs_log_free(stfs_steal(view_log));
	open_view(STFS_NESTED);
	fclose(log);
	unlink(fixture_path("log"));
}
END_TEST

/* A full disk takes no word of the new boot, and yet hides nothing that is staged on it. */
START_TEST(a_full_disk_hides_nothing)
{
	struct faulty_os faulty;

	ck_assert_int_eq(put("__metadata__/note", "kept"), 0);
	close_view();
	faulty_os_init(&faulty, stfs_os_real());
	faulty.os.boot = another_boot;
	view_os = &faulty.os;
	faulty_os_plant_in(&faulty, FAULTY_PWRITE, FAULTY_FROM, 1, ENOSPC);
	open_view(STFS_NESTED);
	ck_assert_uint_gt(faulty.calls, 0);
	expect("__metadata__/note", "kept");
	faulty_os_plant_in(&faulty, FAULTY_PWRITE, FAULTY_NONE, 0, 0);
	ck_assert_int_eq(put("__metadata__/other", "x"), 0);
	view_os = NULL;
	reopen();
	expect_status("M __metadata__/note\nA __metadata__/other\n# 2 changes, 0 incomplete, 0 scratch files\n");
}
END_TEST

START_TEST(sync_after_replay_is_about_the_same_file)
{
	char *bytes = calloc(1, 20000);
	struct stfs_file *file;

	ck_assert_int_eq(write_at("model/a/w/data", true, bytes, 20000, 0), 0);
	reopen();
	ck_assert_int_eq(stfs_view_open_write(view, ino_of("model/a/w/data"), false, &file), 0);
	ck_assert_int_eq(stfs_file_sync(file), 0);
	stfs_file_close(file);
	ck_assert_int_eq(stfs_view_sync(view), 0);
	close_view();
	other_boot();
	open_view(STFS_NESTED);
	expect_status("! model.a.w: 20000 bytes, but F32 [2,3] needs 24\n# 0 changes, 1 incomplete, 0 scratch files\n");
	free(bytes);
}
END_TEST

START_TEST(hostile_records_are_refused)
{
	static const struct {
		enum stfs_record_type type;
		const char *path;
	} records[] = {
		{ STFS_RECORD_MKDIR, "__metadata__/dir" }, { STFS_RECORD_CREATE, "__metadata__/bad%zz" },
		{ STFS_RECORD_CREATE, "model/a/w/data" },  { STFS_RECORD_MKDIR, "model/a/w/data" },
		{ STFS_RECORD_MKDIR, ".safetensors" },     { STFS_RECORD_CREATE, "model/a/w/data/x" },
		{ STFS_RECORD_MKDIR, "model/\xff" },       { STFS_RECORD_REMOVE, "__metadata__" },
		{ STFS_RECORD_REMOVE, "model" },           { STFS_RECORD_REMOVE, "model/a/w/data.npy" },
	};

	for (size_t i = 0; i < STFS_ARRAY_SIZE(records); i++) {
		_cleanup_buf_ struct stfs_buf payload = { 0 };
		bool is_new = records[i].type != STFS_RECORD_REMOVE;
		char command[300];
		int r;

		ck_assert_int_eq(put("__metadata__/note", "y"), 0);
		close_view();
		if (is_new)
			ck_assert_int_eq(stfs_payload_u64(&payload, 4711), 0);
		ck_assert_int_eq(stfs_payload_bytes(&payload, stfs_slice_of(records[i].path)), 0);
		for (int k = 0; is_new && k < 3; k++)
			ck_assert_int_eq(stfs_payload_u64(&payload, 0700), 0);
		forge(records[i].type, &payload);
		r = try_open();
		ck_assert_msg(r == -EBADMSG, "%s: %d", records[i].path, r);
		close_view();
		snprintf(command, sizeof(command), "rm -r %s/.m.stage", fixture_dir);
		ck_assert_int_eq(system(command), 0);
		open_view(STFS_NESTED);
	}
}
END_TEST

/* A record of the attributes of a directory with `n` numbers, at the end of the journal of the closed view. */
static void forge_dir_attr(const char *path, uint64_t nsec, size_t n)
{
	uint64_t numbers[] = { UINT64_MAX, 1, 1, UINT64_MAX, nsec, 0 };
	_cleanup_buf_ struct stfs_buf payload = { 0 };

	ck_assert_int_eq(stfs_payload_bytes(&payload, stfs_slice_of(path)), 0);
	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(stfs_payload_u64(&payload, numbers[i]), 0);
	forge(STFS_RECORD_DIR_ATTR, &payload);
}

START_TEST(hostile_attributes_of_directories)
{
	static const struct {
		const char *path;
		uint64_t nsec;
		size_t n;
		mode_t perm; /* that model shows then, 0: refused */
	} records[] = {
		{ "model", 999999999, 5, 07777 },
		{ "model/nothing", 0, 5, 0755 },
		{ "model/../model", 0, 5, 0755 },
		{ "/model", 0, 5, 0755 },
		{ "model", 1000000000, 5, 0 },
		{ "model", UINT64_MAX, 5, 0 },
		{ "model", 0, 4, 0 },
		{ "model", 0, 6, 0 },
		{ "__metadata__/note", 0, 5, 0 },
		{ "__metadata__/note/x", 0, 5, 0 },
		{ "__metadata__/format", 0, 5, 0 },
	};

	for (size_t i = 0; i < STFS_ARRAY_SIZE(records); i++) {
		struct stfs_attr attr;
		char command[300];
		int r;

		ck_assert_int_eq(put("__metadata__/note", "y"), 0);
		close_view();
		forge_dir_attr(records[i].path, records[i].nsec, records[i].n);
		r = try_open();
		ck_assert_msg(r == (records[i].perm ? 0 : -EBADMSG), "%zu, %s: %d", i, records[i].path, r);
		ck_assert(r < 0 || stfs_view_getattr(view, ino_of("model"), &attr) == 0);
		ck_assert_msg(r < 0 || attr.perm == records[i].perm, "%s: %o", records[i].path, attr.perm);
		close_view();
		snprintf(command, sizeof(command), "rm -r %s/.m.stage", fixture_dir);
		ck_assert_int_eq(system(command), 0);
		open_view(STFS_NESTED);
	}
}
END_TEST

START_TEST(many_files_come_and_go)
{
	char text[4000];

	/* A replay must not keep what is long gone. */
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < 2000; i++) {
		ck_assert_int_eq(put("scratch", text), 0);
		ck_assert_int_eq(do_rename("scratch", "other"), 0);
		if (i % 3 == 0)
			ck_assert_int_eq(do_unlink("other"), 0);
	}
	reopen();
	ck_assert(is_there("other"));
	expect("other", text);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, power_cut_is_remembered);
	tcase_add_test(tcase, synced_text_outlives_its_growth);
	tcase_add_test(tcase, synced_again_and_again);
	tcase_add_test(tcase, an_area_that_cannot_be_begun_is_logged);
	tcase_add_test(tcase, a_full_disk_hides_nothing);
	tcase_add_loop_test(tcase, synced_numpy_file_outlives_a_power_cut, 0, 4);
	tcase_add_test(tcase, lost_bytes_leave_the_rest);
	tcase_add_test(tcase, synced_bytes_outlive_their_name);
	tcase_add_test(tcase, sync_after_replay_is_about_the_same_file);
	tcase_add_test(tcase, hostile_records_are_refused);
	tcase_add_test(tcase, hostile_attributes_of_directories);
	tcase_add_test(tcase, many_files_come_and_go);
	tcase_set_timeout(tcase, 60);
	return run_tests("edit_replay", tcase);
}
