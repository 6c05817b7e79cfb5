/* SPDX-License-Identifier: Apache-2.0 */
/* Edits that tools make seldom, and what must come back of them. */
#include "shard_fixture.h"
#include "edit_fixture.h"
#include "faulty_os.h"
#include "journal.h"
#include "record.h"

#define NPY_HEAD 128

/* A NumPy file of `n` bytes (dtype U1), each of them `fill`. Owned by the caller. */
static char *make_npy(size_t n, char fill)
{
	char *npy = malloc(NPY_HEAD + n);
	int len;

	ck_assert_ptr_nonnull(npy);
	memset(npy, ' ', NPY_HEAD);
	memcpy(npy, "\x93NUMPY\x01\x00v\x00", 10);
	len = snprintf(npy + 10, 100, "{'descr': '|u1', 'fortran_order': False, 'shape': (%zu,), }", n);
	npy[10 + len] = ' ';
	npy[NPY_HEAD - 1] = '\n';
	memset(npy + NPY_HEAD, fill, n);
	return npy;
}

static void expect_fill(const char *path, size_t n, char fill)
{
	struct stfs_buf buf = bytes_of(path);

	ck_assert_uint_eq(buf.len, n);
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(buf.data[i] == fill, "%s: byte %zu is %d", path, i, buf.data[i]);
	stfs_buf_fini(&buf);
}

static struct timespec mtime_of(const char *path)
{
	struct stfs_attr attr;

	ck_assert_int_eq(stfs_view_getattr(view, ino_of(path), &attr), 0);
	return attr.mtime;
}

static void set_mtime(const char *path, time_t sec)
{
	struct stfs_attr_change change = { .set_mtime = true, .mtime = { .tv_sec = sec } };
	struct stfs_attr attr;

	ck_assert_int_eq(stfs_view_setattr(view, ino_of(path), &change, &attr), 0);
}

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

START_TEST(large_numpy_file_comes_back)
{
	char *npy = make_npy(50000, 'n');

	ck_assert_int_eq(write_at("model/a/w/data.npy", true, npy, NPY_HEAD + 50000, 0), 0);
	for (int i = 0; i < 3; i++) {
		expect_fill("model/a/w/data", 50000, 'n');
		expect("model/a/w/shape", "50000\n");
		expect("model/a/w/dtype", "U8\n");
		reopen();
	}
	free(npy);
}
END_TEST

/* np.lib.format.open_memmap(mode='w+'): the file is complete, and taken, before its bytes are stored through the map. */
static void write_after_effect(size_t n)
{
	char *npy = make_npy(n, 0);
	struct stfs_file *file = open_write("model/a/w/data.npy", true);
	size_t written;

	ck_assert_int_eq(stfs_file_write(file, npy, NPY_HEAD + n, 0, &written), 0);
	ck_assert_int_eq(stfs_file_flush(file), 0);
	expect_fill("model/a/w/data", n, 0);
	memset(npy, 'm', n);
	ck_assert_int_eq(stfs_file_write(file, npy, n, NPY_HEAD, &written), 0);
	/* It cannot be made longer or shorter any more: its bytes are the tensor's. */
	ck_assert_int_eq(stfs_file_write(file, npy, 1, NPY_HEAD + n, &written), -ESTALE);
	ck_assert_int_eq(stfs_file_allocate(file, NPY_HEAD + n + 1), -ESTALE);
	stfs_file_close(file);
	for (int i = 0; i < 2; i++) {
		expect_fill("model/a/w/data", n, 'm');
		reopen();
	}
	free(npy);
}

START_TEST(numpy_file_that_is_written_on)
{
	write_after_effect(20000);
	write_after_effect(10);
}
END_TEST

/* Under the same inode number it is the same file to the kernel, and so it is here. */
START_TEST(handle_of_a_replaced_file_is_that_of_the_new_one)
{
	struct stfs_file *old = open_write("model/a/b/data", false);
	char *npy = make_npy(4, 'n');
	size_t written;

	ck_assert_int_eq(stfs_file_write(old, "1", 1, 0, &written), 0);
	ck_assert_int_eq(write_at("model/a/b/data.npy", true, npy, NPY_HEAD + 4, 0), 0);
	ck_assert_int_eq(stfs_file_write(old, "old", 3, 0, &written), 0);
	/* The same with a discard between. */
	stfs_file_close(old);
	old = open_write("model/a/w/data", false);
	ck_assert_int_eq(stfs_file_write(old, "12345", 5, 0, &written), 0);
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model/a/w"), NULL), 0);
	ck_assert_int_eq(write_at("model/a/w/data", false, "new", 3, 0), 0);
	ck_assert_int_eq(stfs_file_write(old, "o", 1, 0, &written), 0);
	stfs_file_close(old);
	for (int i = 0; i < 2; i++) {
		struct stfs_buf w = bytes_of("model/a/w/data");

		expect("model/a/b/data", "oldn");
		ck_assert(w.len == 24 && memcmp(w.data, "oew\3\4", 5) == 0);
		stfs_buf_fini(&w);
		reopen();
	}
	free(npy);
}
END_TEST

START_TEST(metadata_cannot_be_replaced)
{
	ck_assert_int_eq(do_unlink("__metadata__/format"), 0);
	ck_assert_int_eq(do_unlink("__metadata__/note"), 0);
	ck_assert_int_eq(do_mkdir("x"), 0);
	ck_assert_int_eq(do_rename("x", "__metadata__"), -EBUSY);
	ck_assert_int_eq(do_mkdir("y"), 0);
	ck_assert_int_eq(put("__metadata__/k", "v"), 0);
	reopen();
	expect("__metadata__/k", "v");
	ck_assert(is_there("x") && is_there("y"));
}
END_TEST

START_TEST(discard_with_a_file_in_the_way)
{
	ck_assert_int_eq(do_rename("model/a", "model/z"), 0);
	ck_assert_int_eq(put("model/a", "scratch"), 0);
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model/a/w"), NULL), -EEXIST);
	reopen();
	expect("model/a", "scratch");
	expect("model/z/w/dtype", "F32\n");
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model/a"), NULL), 0);
	expect("model/a/w/dtype", "F32\n");
	reopen();
	expect("model/a/w/dtype", "F32\n");
}
END_TEST

/* What was moved to a place is where the model has it again when the place is discarded, unless something else is there by now. */
START_TEST(discard_of_where_it_was_moved)
{
	ck_assert_int_eq(do_mkdir("new"), 0);
	ck_assert_int_eq(do_rename("model/big", "new/big"), 0);
	ck_assert_int_eq(do_rename("model/a/w", "new/w"), 0);
	ck_assert_int_eq(put("model/a/w", "in the way"), 0);
	ck_assert_int_eq(do_rename("model/a/b", "new/b"), 0);
	ck_assert_int_eq(do_mkdir("model/a/b"), 0);
	ck_assert_int_eq(put("model/a/b/shape", "1\n"), 0);
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("new"), NULL), 0);
	for (int i = 0; i < 2; i++) {
		struct stfs_buf big = bytes_of("model/big/data");

		ck_assert_uint_eq(big.len, 100000);
		stfs_buf_fini(&big);
		expect("model/a/w", "in the way");
		expect("model/a/b/shape", "1\n");
		ck_assert(!is_there("new"));
		ck_assert(!is_there("model/a/b/data"));
		reopen();
	}
}
END_TEST

START_TEST(discard_of_one_slot)
{
	ck_assert_int_eq(put("model/a/w/shape", "6\n"), 0);
	ck_assert_int_eq(put("model/a/w/dtype", "I32\n"), 0);
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model/a/w/shape"), NULL), 0);
	ck_assert_int_eq(do_unlink("model/a/b/data"), 0);
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model/a/b/data"), NULL), 0);
	/* With the file it was under another name. */
	ck_assert_int_eq(do_rename("model/big/data", "model/big/data~"), 0);
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model/big/data"), NULL), 0);
	for (int i = 0; i < 2; i++) {
		expect("model/a/w/shape", "2 3\n");
		expect("model/a/w/dtype", "I32\n");
		expect_status("M model.a.w (dtype)\n? model/big/data~\n# 1 changes, 0 incomplete, 1 scratch files\n");
		reopen();
	}
}
END_TEST

START_TEST(discard_of_a_name_that_was_moved_away)
{
	ck_assert_int_eq(do_rename("model/big", "model/large"), 0);
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model/big"), NULL), 0);
	for (int i = 0; i < 2; i++) {
		struct stfs_buf a = bytes_of("model/big/data"), b = bytes_of("model/large/data");

		ck_assert(a.len == 100000 && b.len == a.len && memcmp(a.data, b.data, a.len) == 0);
		stfs_buf_fini(&a);
		stfs_buf_fini(&b);
		expect_status("A model.large\n# 1 changes, 0 incomplete, 0 scratch files\n");
		reopen();
	}
}
END_TEST

START_TEST(numpy_file_of_a_type_without_one)
{
	char *npy = make_npy(3, 'q');
	struct maker maker = { 0 };
	struct stfs_listing *list;

	close_view();
	maker_tensor(&maker, "t", "F8_E8M0", "2", 2);
	maker_tensor(&maker, "s", "F4", "4", 2);
	maker_write(&maker, "m.safetensors");
	open_view(STFS_NESTED);
	ck_assert_int_eq(write_at("s/data.npy", true, npy, NPY_HEAD + 3, 0), 0);
	ck_assert_int_eq(put("t/notes", "scratch"), 0);
	for (int i = 0; i < 2; i++) {
		expect_fill("s/data", 3, 'q');
		ck_assert_int_eq(stfs_view_list(view, ino_of("s"), &list), 0);
		ck_assert_uint_eq(list->n, 5);
		stfs_listing_free(list);
		expect_status("M s (data, dtype, shape)\n? t/notes\n# 1 changes, 0 incomplete, 1 scratch files\n");
		reopen();
	}
	free(npy);
}
END_TEST

START_TEST(half_a_numpy_file_under_another_name)
{
	char *npy = make_npy(3, 'q');

	ck_assert_int_eq(write_at("model/a/w/data.npy", true, npy, NPY_HEAD + 1, 0), 0);
	ck_assert_int_eq(do_rename("model/a/w/data.npy", "model/a/w/half"), 0);
	ck_assert(!is_there("model/a/w/data.npy") || ino_of("model/a/w/data.npy") != ino_of("model/a/w/half"));
	ck_assert_int_eq(write_at("model/a/w/data.npy", true, npy, NPY_HEAD + 3, 0), 0);
	for (int i = 0; i < 2; i++) {
		struct stfs_buf half = bytes_of("model/a/w/half");

		ck_assert_uint_eq(half.len, NPY_HEAD + 1);
		stfs_buf_fini(&half);
		expect_fill("model/a/w/data", 3, 'q');
		reopen();
	}
	free(npy);
}
END_TEST

START_TEST(numpy_file_open_for_writing_is_itself)
{
	struct stfs_attr shown, open;
	struct stfs_file *file;

	ck_assert_int_eq(stfs_view_getattr(view, ino_of("model/a/w/data.npy"), &shown), 0);
	ck_assert_int_eq(stfs_view_open_write(view, shown.ino, false, &file), 0);
	ck_assert_int_eq(stfs_file_getattr(file, &open), 0);
	ck_assert_uint_eq(open.ino, shown.ino);
	ck_assert_uint_eq(open.size, shown.size);
	stfs_file_close(file);
}
END_TEST

START_TEST(numpy_file_takes_times_and_modes)
{
	char *npy = make_npy(3, 'q');

	/* As shutil.copy2 does: written and closed, then touched by name. */
	ck_assert_int_eq(write_at("model/a/w/data.npy", true, npy, NPY_HEAD + 3, 0), 0);
	set_mtime("model/a/w/data.npy", 1000000000);
	ck_assert_int_eq(mtime_of("model/a/w/data.npy").tv_sec, 1000000000);
	/* What is written to data shows. */
	ck_assert_int_eq(put("model/a/w/data", "xyz"), 0);
	ck_assert_int_gt(mtime_of("model/a/w/data.npy").tv_sec, 1000000000);
	free(npy);
}
END_TEST

START_TEST(copying_takes_what_is_shown)
{
	struct stfs_file *from, *to;
	uint64_t copied = 0;
	int r;

	/* A NumPy file has more in it than the tensor's bytes. */
	ck_assert_int_eq(put("model/big/dtype", "I8\n"), 0);
	ck_assert_int_eq(stfs_view_open(view, ino_of("model/big/data.npy"), &from), 0);
	to = open_write("copy.npy", true);
	ck_assert_int_eq(stfs_file_copy(from, 0, to, 0, 200000, &copied), -EOPNOTSUPP);
	stfs_file_close(from);
	stfs_file_close(to);
	/* Opened before the edit, read after it. */
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model"), NULL), 0);
	ck_assert_int_eq(stfs_view_open(view, ino_of("model/big/data"), &from), 0);
	ck_assert_int_eq(write_at("model/big/data", false, "XYZ", 3, 0), 0);
	to = open_write("copy", true);
	r = stfs_file_copy(from, 0, to, 0, 100000, &copied);
	ck_assert_int_eq(r, -EOPNOTSUPP);
	stfs_file_close(from);
	stfs_file_close(to);
}
END_TEST

START_TEST(copying_over_a_tensor_is_a_reference)
{
	struct stfs_file *from, *to;
	uint64_t copied = 0;

	ck_assert_int_eq(do_mkdir("model/c"), 0);
	ck_assert_int_eq(stfs_view_open(view, ino_of("model/big/data"), &from), 0);
	to = open_write("model/a/w/data", true);
	ck_assert_int_eq(stfs_file_copy(from, 0, to, 0, 100000, &copied), 0);
	ck_assert_uint_eq(copied, 100000);
	stfs_file_close(from);
	stfs_file_close(to);
	for (int i = 0; i < 2; i++) {
		struct stfs_buf a = bytes_of("model/big/data"), b = bytes_of("model/a/w/data");

		ck_assert(b.len == a.len && memcmp(a.data, b.data, a.len) == 0);
		stfs_buf_fini(&a);
		stfs_buf_fini(&b);
		reopen();
	}
}
END_TEST

START_TEST(times_come_back)
{
	struct stfs_file *from, *to;
	uint64_t copied = 0;
	struct timespec before;
	char *bytes = calloc(1, 20000);

	/* cp -p of something large. */
	ck_assert_int_eq(write_at("large", true, bytes, 20000, 0), 0);
	set_mtime("large", 1000000000);
	/* A copy by reference. */
	ck_assert_int_eq(stfs_view_open(view, ino_of("model/big/data"), &from), 0);
	to = open_write("copy", true);
	ck_assert_int_eq(stfs_file_copy(from, 0, to, 0, 100000, &copied), 0);
	stfs_file_close(from);
	stfs_file_close(to);
	before = mtime_of("copy");
	usleep(1100000);
	reopen();
	ck_assert_int_eq(mtime_of("large").tv_sec, 1000000000);
	ck_assert_int_eq(mtime_of("copy").tv_sec, before.tv_sec);
	/* And what is written on is newer. */
	ck_assert_int_eq(write_at("large", false, "x", 1, 19999), 0);
	reopen();
	ck_assert_int_gt(mtime_of("large").tv_sec, 1000000000);
	free(bytes);
}
END_TEST

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

/* Writes more than the journal takes to a small file, with a fault in the sync of bytes. Returns how often those were synced. */
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

START_TEST(one_name_has_one_place)
{
	ck_assert_int_eq(do_mkdir("new.a.b"), 0);
	ck_assert_int_eq(put("new.a.b/shape", "\n"), 0);
	ck_assert_int_eq(do_mkdir("new"), 0);
	ck_assert_int_eq(do_mkdir("new/a"), 0);
	ck_assert_int_eq(do_mkdir("new/a/b"), -EEXIST);
	ck_assert_int_eq(do_mkdir("new/a.b"), -EEXIST);
	ck_assert_int_eq(do_mkdir("new/a.c"), 0);
	ck_assert_int_eq(do_mkdir("new/a/x"), 0);
	ck_assert_int_eq(do_rename("new/a/x", "new/a/b"), -EEXIST);
	/* Below the tensor there is room; and it may be spelt in another way. */
	ck_assert_int_eq(do_mkdir("new.a"), -EEXIST);
	ck_assert_int_eq(do_rename("new.a.b", "new/a/b"), 0);
	ck_assert_int_eq(do_mkdir("new/a.b"), -EEXIST);
	/* Empty pieces, and those that go on without a dot. */
	ck_assert_int_eq(do_mkdir("e..f"), 0);
	ck_assert_int_eq(put("e..f/shape", "\n"), 0);
	ck_assert_int_eq(do_mkdir("e"), 0);
	ck_assert_int_eq(do_mkdir("e/%_"), 0);
	ck_assert_int_eq(do_mkdir("e/%_/f"), -EEXIST);
	ck_assert_int_eq(do_mkdir("g%+"), 0);
	ck_assert_int_eq(do_mkdir("g%+/h.i"), 0);
	ck_assert_int_eq(put("g%+/h.i/shape", "\n"), 0);
	ck_assert_int_eq(do_mkdir("g%+/h"), 0);
	ck_assert_int_eq(do_mkdir("g%+/h/i"), -EEXIST);
}
END_TEST

START_TEST(two_places_of_one_name_are_told)
{
	/* Neither was a tensor when the other one was made. */
	ck_assert_int_eq(do_mkdir("n.x"), 0);
	ck_assert_int_eq(do_mkdir("n"), 0);
	ck_assert_int_eq(do_mkdir("n/x"), 0);
	for (int i = 0; i < 2; i++) {
		const char *dir = i ? "n/x" : "n.x";
		char path[40];

		snprintf(path, sizeof(path), "%s/dtype", dir);
		ck_assert_int_eq(put(path, "U8\n"), 0);
		snprintf(path, sizeof(path), "%s/shape", dir);
		ck_assert_int_eq(put(path, "1\n"), 0);
		snprintf(path, sizeof(path), "%s/data", dir);
		ck_assert_int_eq(put(path, "1"), 0);
	}
	expect_status("A n.x\n! n.x: another directory spells the same name\n"
		      "# 1 changes, 1 incomplete, 0 scratch files\n");
}
END_TEST

START_TEST(nonsense_in_a_new_file)
{
	ck_assert_int_eq(do_mkdir("model/c"), 0);
	ck_assert_int_eq(put("model/c/dtype", "F33\n"), -EINVAL);
	ck_assert_int_eq(put("model/c/shape", "two\n"), -EINVAL);
	expect("model/c/shape", "");
}
END_TEST

START_TEST(long_shapes_stay_whole)
{
	_cleanup_buf_ struct stfs_buf text = { 0 };
	struct stfs_file *file;
	size_t written;

	for (int i = 0; i < 3000; i++)
		ck_assert_int_eq(stfs_buf_append_str(&text, i ? " 1" : "24"), 0);
	ck_assert_int_eq(put("model/a/w/dtype", "U8\n"), 0);
	ck_assert_int_eq(put("model/a/w/shape", text.data), 0);
	expect_status("M model.a.w (dtype, shape)\n# 1 changes, 0 incomplete, 0 scratch files\n");
	file = open_write("model/a/w/shape", true);
	ck_assert_int_eq(stfs_file_write(file, "two\n", 4, 0, &written), -EINVAL);
	stfs_file_close(file);
	expect("model/a/w/shape", text.data);
	ck_assert(!is_there("model/a/w/data.npy"));
	reopen();
	expect("model/a/w/shape", text.data);
}
END_TEST

/* What is wrong at the end of a text of more than a MiB is seen too. */
START_TEST(long_shapes_are_read_to_their_end)
{
	_cleanup_buf_ struct stfs_buf text = { 0 };

	for (int i = 0; i < 700000; i++)
		ck_assert_int_eq(stfs_buf_append_str(&text, i ? " 1" : "6"), 0);
	ck_assert_int_eq(stfs_buf_append_str(&text, " 5\n"), 0);
	ck_assert_int_eq(write_at("model/a/w/shape", true, text.data, text.len, 0), 0);
	stfs_buf_fini(&text);
	text = bytes_of(".safetensors/status");
	ck_assert_ptr_nonnull(strstr(text.data, "! model.a.w: 24 bytes, but F32 [6,1,1,"));
	ck_assert_ptr_nonnull(strstr(text.data, ",1,1,\xe2\x80\xa6] needs 120\n"));
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

/* The rest commits. */
START_TEST(scratch_of_a_cut_tensor)
{
	struct stfs_buf buf;

	close_view();
	view = editing("m.safetensors");
	edit_write(view, "model/big/data", false, "XYZ", 3, 50000);
	edit_resize(view, "model/big/data", 10000);
	edit_resize(view, "model/big/data", 60000);
	edit_mv(view, "model/big/data", "model/big/data~");
	edit_rm(view, "model/big/dtype");
	edit_rm(view, "model/big/shape");
	commit(view);
	buf = edit_bytes(view, "model/big/data~");
	ck_assert_uint_eq(buf.len, 60000);
	for (size_t i = 10000; i < buf.len; i++)
		ck_assert_msg(buf.data[i] == 0, "byte %zu is %d", i, buf.data[i]);
	stfs_buf_fini(&buf);
}
END_TEST

START_TEST(large_key_as_scratch)
{
	static char value[10001];
	struct maker maker = { 0 };
	struct stfs_buf metadata = { 0 }, buf;

	memset(value, 'v', sizeof(value) - 1);
	close_view();
	ck_assert_int_eq(stfs_buf_printf(&metadata, "{\"big\":\"%s\"}", value), 0);
	maker_metadata(&maker, metadata.data);
	maker_tensor(&maker, "t", "U8", "2", 2);
	maker_write(&maker, "m.safetensors");
	stfs_buf_fini(&metadata);
	view = editing("m.safetensors");
	edit_mv(view, "__metadata__/big", "__metadata__/.big");
	commit(view);
	stfs_view_free(view);
	view = editing("m.safetensors");
	buf = edit_bytes(view, "__metadata__/.big");
	ck_assert_uint_eq(buf.len, 10001);
	stfs_buf_fini(&buf);
}
END_TEST

START_TEST(keys_outlive_the_shard_they_were_in)
{
	struct maker maker = { 0 };

	close_view();
	ck_assert_int_eq(unlink(fixture_path("m.safetensors")), 0);
	shards_make("");
	maker_metadata(&maker, "{\"format\":\"pt\",\"only\":\"here\"}");
	maker_tensor(&maker, "l0.w", "F32", "250", 1000);
	maker_tensor(&maker, "l0.b", "U8", "10", 10);
	maker_write(&maker, SHARD_1);
	view = editing("");
	edit_rm_tensor(view, "l0/w");
	edit_rm_tensor(view, "l0/b");
	edit_put(view, "__metadata__/new", "key");
	commit(view);
	for (int i = 0; i < 2; i++) {
		ck_assert(!edit_there(view, "l0"));
		edit_expect(view, "__metadata__/only", "here\n");
		edit_expect(view, "__metadata__/new", "key\n");
		edit_expect(view, "__metadata__/format", "pt\n");
		stfs_view_free(view);
		view = editing("");
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("edit_more");
	TCase *tcase = tcase_create("all");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, large_numpy_file_comes_back);
	tcase_add_test(tcase, numpy_file_that_is_written_on);
	tcase_add_test(tcase, handle_of_a_replaced_file_is_that_of_the_new_one);
	tcase_add_test(tcase, metadata_cannot_be_replaced);
	tcase_add_test(tcase, discard_with_a_file_in_the_way);
	tcase_add_test(tcase, discard_of_where_it_was_moved);
	tcase_add_test(tcase, discard_of_one_slot);
	tcase_add_test(tcase, discard_of_a_name_that_was_moved_away);
	tcase_add_test(tcase, numpy_file_of_a_type_without_one);
	tcase_add_test(tcase, half_a_numpy_file_under_another_name);
	tcase_add_test(tcase, numpy_file_open_for_writing_is_itself);
	tcase_add_test(tcase, numpy_file_takes_times_and_modes);
	tcase_add_test(tcase, copying_takes_what_is_shown);
	tcase_add_test(tcase, copying_over_a_tensor_is_a_reference);
	tcase_add_test(tcase, times_come_back);
	tcase_add_test(tcase, power_cut_is_remembered);
	tcase_add_test(tcase, synced_text_outlives_its_growth);
	tcase_add_loop_test(tcase, synced_numpy_file_outlives_a_power_cut, 0, 4);
	tcase_add_test(tcase, lost_bytes_leave_the_rest);
	tcase_add_test(tcase, synced_bytes_outlive_their_name);
	tcase_add_test(tcase, sync_after_replay_is_about_the_same_file);
	tcase_add_test(tcase, one_name_has_one_place);
	tcase_add_test(tcase, two_places_of_one_name_are_told);
	tcase_add_test(tcase, nonsense_in_a_new_file);
	tcase_add_test(tcase, long_shapes_stay_whole);
	tcase_add_test(tcase, long_shapes_are_read_to_their_end);
	tcase_add_test(tcase, hostile_records_are_refused);
	tcase_add_test(tcase, many_files_come_and_go);
	tcase_add_test(tcase, scratch_of_a_cut_tensor);
	tcase_add_test(tcase, large_key_as_scratch);
	tcase_add_test(tcase, keys_outlive_the_shard_they_were_in);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
