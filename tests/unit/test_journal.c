/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"
#include "faulty_os.h"
#include "journal.h"

STFS_DEFINE_CLEANUP(struct stfs_journal, stfs_journal_close)

#define _cleanup_journal_ _cleanup_(stfs_journal_closep)
#define MAX_RECORDS 64

static char dir_path[64];
static int dir_fd;
static struct faulty_os faulty;

/* What a replay handed over. */
struct seen {
	unsigned n, stop_at;
	uint32_t types[MAX_RECORDS];
	char texts[MAX_RECORDS][64];
	uint64_t lens[MAX_RECORDS];
};

static void setup(void)
{
	strcpy(dir_path, "/tmp/stfs-unit-journal-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir_path));
	dir_fd = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir_fd, 0);
	faulty_os_init(&faulty, stfs_os_real());
}

static void teardown(void)
{
	unlinkat(dir_fd, "j", 0);
	close(dir_fd);
	ck_assert_int_eq(rmdir(dir_path), 0);
}

static int open_journal(bool create, struct stfs_journal **ret)
{
	return stfs_journal_open(&faulty.os, dir_fd, "j", create, ret);
}

static struct stfs_journal *opened(bool create)
{
	struct stfs_journal *journal = NULL;

	ck_assert_int_eq(open_journal(create, &journal), 0);
	return journal;
}

static int append(struct stfs_journal *journal, uint32_t type, const char *text)
{
	return stfs_journal_append(journal, type, stfs_slice_of(text));
}

static int see(void *user, const struct stfs_record *record)
{
	struct seen *seen = user;

	ck_assert_uint_lt(seen->n, MAX_RECORDS);
	seen->types[seen->n] = record->type;
	seen->lens[seen->n] = record->payload.len;
	snprintf(seen->texts[seen->n], sizeof(seen->texts[0]), "%.*s", (int)STFS_MIN(record->payload.len, 63),
		 record->payload.p);
	return ++seen->n == seen->stop_at ? -ECANCELED : 0;
}

/* Opens, replays and closes. */
static int replay(struct seen *seen, struct stfs_diag *diag)
{
	_cleanup_journal_ struct stfs_journal *journal = opened(false);

	*seen = (struct seen){ 0 };
	return stfs_journal_replay(journal, see, seen, diag);
}

/* The records "one", "two", … up to `n` of them; *ret_ends gets where each ends, behind where the head does. */
static void make(unsigned n, uint64_t ends[])
{
	static const char *const texts[] = { "one", "two", "three--8", "", "five" };
	_cleanup_journal_ struct stfs_journal *journal = opened(true);

	ends[0] = stfs_journal_size(journal);
	for (unsigned i = 0; i < n; i++) {
		ck_assert_int_eq(append(journal, i, texts[i]), 0);
		ends[i + 1] = stfs_journal_size(journal);
	}
}

static void remove_journal(void)
{
	ck_assert_int_eq(unlinkat(dir_fd, "j", 0), 0);
}

static uint64_t file_size(void)
{
	struct stat st;

	ck_assert_int_eq(fstatat(dir_fd, "j", &st, AT_SYMLINK_NOFOLLOW), 0);
	return (uint64_t)st.st_size;
}

static void put_bytes(uint64_t offset, const void *data, size_t len)
{
	_cleanup_close_ int fd = openat(dir_fd, "j", O_RDWR | O_CREAT, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, data, len, (off_t)offset), (ssize_t)len);
}

static void get_bytes(uint64_t offset, void *data, size_t len)
{
	_cleanup_close_ int fd = openat(dir_fd, "j", O_RDONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, data, len, (off_t)offset), (ssize_t)len);
}

static void cut_file(uint64_t size)
{
	_cleanup_close_ int fd = openat(dir_fd, "j", O_RDWR);

	ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
}

START_TEST(test_payload)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };
	struct stfs_slice payload, bytes, before;
	uint64_t v;

	ck_assert_int_eq(stfs_payload_u64(&buf, 0x0102030405060708), 0);
	ck_assert_int_eq(stfs_payload_bytes(&buf, (struct stfs_slice){ "a\0b", 3 }), 0);
	ck_assert_int_eq(stfs_payload_bytes(&buf, (struct stfs_slice){ NULL, 0 }), 0);
	ck_assert_int_eq(stfs_payload_u64(&buf, UINT64_MAX), 0);
	ck_assert_uint_eq(buf.len, 8 + 11 + 8 + 8);
	ck_assert_mem_eq(buf.data, "\x08\x07\x06\x05\x04\x03\x02\x01\x03\0\0\0\0\0\0\0a\0b", 19);
	payload = stfs_buf_slice(&buf);
	ck_assert(stfs_payload_take_u64(&payload, &v));
	ck_assert_uint_eq(v, 0x0102030405060708);
	ck_assert(stfs_payload_take_bytes(&payload, &bytes));
	ck_assert(stfs_slice_equal(bytes, (struct stfs_slice){ "a\0b", 3 }));
	ck_assert(stfs_payload_take_bytes(&payload, &bytes));
	ck_assert_uint_eq(bytes.len, 0);
	/* A length of more than there is: nothing is taken. */
	before = payload;
	ck_assert(!stfs_payload_take_bytes(&payload, &bytes));
	ck_assert(stfs_slice_equal(payload, before));
	ck_assert(stfs_payload_take_u64(&payload, &v));
	ck_assert_uint_eq(v, UINT64_MAX);
	ck_assert(!stfs_payload_take_u64(&payload, &v));
	ck_assert(!stfs_payload_take_bytes(&payload, &bytes));
	payload = (struct stfs_slice){ "1234567", 7 };
	ck_assert(!stfs_payload_take_u64(&payload, &v));
}
END_TEST

START_TEST(test_append_and_replay)
{
	struct stfs_diag diag = { 0 };
	uint64_t ends[6];
	struct seen seen;

	make(5, ends);
	ck_assert_uint_eq(ends[0], 16);
	ck_assert_uint_eq(ends[1], 16 + 48);
	ck_assert_uint_eq(ends[4], ends[3] + 40);
	ck_assert_uint_eq(file_size(), ends[5]);
	for (int again = 0; again < 2; again++) {
		ck_assert_int_eq(replay(&seen, &diag), 0);
		ck_assert_uint_eq(seen.n, 5);
		ck_assert_str_eq(seen.texts[0], "one");
		ck_assert_str_eq(seen.texts[2], "three--8");
		ck_assert_str_eq(seen.texts[3], "");
		ck_assert_str_eq(seen.texts[4], "five");
		ck_assert_uint_eq(seen.types[4], 4);
	}
	ck_assert_str_eq(diag.text, "");
	ck_assert_uint_eq(file_size(), ends[5]);
}
END_TEST

/* The bytes on disk are those the header describes. */
START_TEST(test_layout)
{
	_cleanup_journal_ struct stfs_journal *journal = opened(true);
	struct timespec now;
	unsigned char b[64];
	uint64_t time = 0;

	ck_assert_int_eq(append(journal, 0x01020304, "abc"), 0);
	clock_gettime(CLOCK_REALTIME, &now);
	get_bytes(0, b, sizeof(b));
	ck_assert_mem_eq(b, "STFSJ1\n\0\0\0\0\0\0\0\0\0", 16);
	ck_assert_mem_eq(b + 16, "\x03\0\0\0", 4);
	ck_assert_mem_ne(b + 32, "\0\0\0\0\0\0\0\0", 8);
	ck_assert_mem_eq(b + 40, "\0\0\0\0\0\0\0\0\x04\x03\x02\x01\0\0\0\0abc\0\0\0\0\0", 24);
	for (int i = 7; i >= 0; i--)
		time = time << 8 | b[24 + i];
	ck_assert_uint_le(time / 1000000000, (uint64_t)now.tv_sec);
	ck_assert_uint_ge(time / 1000000000, (uint64_t)now.tv_sec - 60);
	ck_assert_uint_eq(file_size(), sizeof(b));
}
END_TEST

START_TEST(test_open)
{
	struct stfs_journal *journal = NULL;
	struct stat st;

	ck_assert_int_eq(open_journal(false, &journal), -ENOENT);
	umask(0277);
	stfs_journal_close(opened(true));
	umask(022);
	ck_assert_int_eq(fstatat(dir_fd, "j", &st, 0), 0);
	ck_assert_uint_eq(st.st_mode, S_IFREG | 0600);
	ck_assert_int_eq(open_journal(true, &journal), -EEXIST);
	put_bytes(0, "STFSJ2", 6);
	ck_assert_int_eq(open_journal(false, &journal), -EBADMSG);
	put_bytes(0, "STFSJ1\n\0\0\0\0\0\0\0\0x", 16);
	ck_assert_int_eq(open_journal(false, &journal), -EBADMSG);
	cut_file(0);
	put_bytes(0, "other", 5);
	ck_assert_int_eq(open_journal(false, &journal), -EBADMSG);
	remove_journal();
	ck_assert_int_eq(mkfifoat(dir_fd, "j", 0600), 0);
	ck_assert_int_eq(open_journal(false, &journal), -EBADMSG);
	remove_journal();
	ck_assert_int_eq(symlinkat("elsewhere", dir_fd, "j"), 0);
	ck_assert_int_eq(open_journal(false, &journal), -ELOOP);
	ck_assert_int_eq(open_journal(true, &journal), -EEXIST);
	ck_assert_ptr_null(journal);
	stfs_journal_close(NULL);
}
END_TEST

/* An opened journal is read back before it is added to. */
START_TEST(test_append_order)
{
	_cleanup_journal_ struct stfs_journal *journal = NULL;
	struct seen seen = { 0 };
	uint64_t ends[6];

	make(2, ends);
	journal = opened(false);
	ck_assert_int_eq(append(journal, 9, "x"), -EINVAL);
	ck_assert_int_eq(stfs_journal_replay(journal, see, &seen, NULL), 0);
	ck_assert_int_eq(append(journal, 9, "x"), 0);
	ck_assert_int_eq(replay(&seen, NULL), 0);
	ck_assert_uint_eq(seen.n, 3);
	ck_assert_uint_eq(seen.types[2], 9);
}
END_TEST

START_TEST(test_apply_stops)
{
	_cleanup_journal_ struct stfs_journal *journal = NULL;
	struct seen seen = { .stop_at = 2 };
	uint64_t ends[6];

	make(3, ends);
	put_bytes(ends[3], "garbage", 7);
	journal = opened(false);
	ck_assert_int_eq(stfs_journal_replay(journal, see, &seen, NULL), -ECANCELED);
	ck_assert_uint_eq(seen.n, 2);
	ck_assert_uint_eq(file_size(), ends[3] + 7);
	ck_assert_int_eq(append(journal, 1, "x"), -EINVAL);
}
END_TEST

/* Cut at every byte: what was whole is there, the rest is cut off, and the journal goes on. */
START_TEST(test_torn_anywhere)
{
	uint64_t ends[6];
	struct seen seen;

	make(4, ends);
	remove_journal();
	for (uint64_t size = 0; size <= ends[4]; size++) {
		_cleanup_journal_ struct stfs_journal *journal = NULL;
		unsigned whole = 0;

		make(4, ends);
		cut_file(size);
		while (whole < 4 && ends[whole + 1] <= size)
			whole++;
		ck_assert_int_eq(replay(&seen, NULL), 0);
		ck_assert_uint_eq(seen.n, whole);
		ck_assert_uint_eq(file_size(), ends[whole]);
		journal = opened(false);
		ck_assert_int_eq(stfs_journal_replay(journal, see, &seen, NULL), 0);
		ck_assert_int_eq(append(journal, 77, "after"), 0);
		ck_assert_int_eq(replay(&seen, NULL), 0);
		ck_assert_uint_eq(seen.n, whole + 1);
		ck_assert_str_eq(seen.texts[whole], "after");
		remove_journal();
	}
}
END_TEST

/* Every bit of the last record flipped: torn. Of an earlier one: damaged, refused, and left as it is. */
START_TEST(test_flipped_bits)
{
	uint64_t ends[6], size;
	struct seen seen;

	make(3, ends);
	size = ends[3];
	for (uint64_t bit = 16 * 8; bit < size * 8; bit++) {
		struct stfs_diag diag = { 0 };
		unsigned char was, now;
		unsigned whole = 0;
		int r;

		get_bytes(bit / 8, &was, 1);
		now = was ^ (unsigned char)(1 << bit % 8);
		put_bytes(bit / 8, &now, 1);
		while (ends[whole + 1] <= bit / 8)
			whole++;
		r = replay(&seen, &diag);
		ck_assert_uint_eq(seen.n, whole);
		if (whole < 2) {
			char place[64];

			ck_assert_int_eq(r, -EBADMSG);
			snprintf(place, sizeof(place), "damaged at byte %d,", (int)ends[whole]);
			ck_assert_ptr_nonnull(strstr(diag.text, place));
			ck_assert_uint_eq(file_size(), size);
			put_bytes(bit / 8, &was, 1);
		} else {
			ck_assert_int_eq(r, 0);
			ck_assert_uint_eq(file_size(), ends[2]);
			remove_journal();
			make(3, ends);
		}
	}
}
END_TEST

static uint64_t other_boot(void *user)
{
	(void)user;
	return 77;
}

/* Replays as after a new start of the machine. */
static int replay_later(struct seen *seen, struct stfs_diag *diag)
{
	struct stfs_os os = *stfs_os_real();
	_cleanup_journal_ struct stfs_journal *journal = NULL;

	os.boot = other_boot;
	ck_assert_int_eq(stfs_journal_open(&os, dir_fd, "j", false, &journal), 0);
	*seen = (struct seen){ 0 };
	return stfs_journal_replay(journal, see, seen, diag);
}

/* A power cut may take a page and leave the next one: what was never on disk as a whole is torn. */
START_TEST(test_hole_before_sync)
{
	char zeros[48] = { 0 };
	struct stfs_diag diag = { 0 };
	uint64_t ends[6];
	struct seen seen;

	make(4, ends);
	put_bytes(ends[1], zeros, ends[2] - ends[1]);
	/* Nothing of the kind happens to a process that was killed. */
	ck_assert_int_eq(replay(&seen, &diag), -EBADMSG);
	ck_assert_uint_eq(file_size(), ends[4]);
	ck_assert_int_eq(replay_later(&seen, NULL), 0);
	ck_assert_uint_eq(seen.n, 1);
	ck_assert_uint_eq(file_size(), ends[1]);
}
END_TEST

/* What a sync had vouched for is not lost in a power cut, but by something worse: nothing is cut off then. */
START_TEST(test_hole_before_a_later_word)
{
	char zeros[48] = { 0 };

	for (int sealed = 0; sealed < 2; sealed++) {
		struct stfs_journal *journal = opened(true);
		struct stfs_diag diag = { 0 };
		uint64_t end, size;
		struct seen seen;

		ck_assert_int_eq(append(journal, 1, "one"), 0);
		end = stfs_journal_size(journal);
		ck_assert_int_eq(append(journal, 2, "two"), 0);
		if (sealed) {
			ck_assert_int_eq(stfs_journal_seal(journal, 3), 0);
			size = stfs_journal_size(journal);
			ck_assert_int_eq(stfs_journal_seal(journal, 3), 0);
			ck_assert_uint_eq(stfs_journal_size(journal), size);
		} else {
			ck_assert_int_eq(stfs_journal_sync(journal), 0);
			ck_assert_int_eq(append(journal, 3, "after a sync"), 0);
			size = stfs_journal_size(journal);
		}
		stfs_journal_close(journal);
		ck_assert_int_eq(replay_later(&seen, &diag), 0);
		ck_assert_uint_eq(seen.n, 3);
		put_bytes(end, zeros, sizeof(zeros));
		ck_assert_int_eq(replay_later(&seen, &diag), -EBADMSG);
		ck_assert_ptr_nonnull(strstr(diag.text, "is whole"));
		ck_assert_uint_eq(file_size(), size);
		remove_journal();
	}
}
END_TEST

/* What is known to be on disk is known again after reading it back, and so is the seal. */
START_TEST(test_synced_comes_back)
{
	char zeros[48] = { 0 };
	struct stfs_journal *journal = opened(true);
	struct seen seen = { 0 };
	uint64_t sealed;

	ck_assert_int_eq(append(journal, 1, "one"), 0);
	ck_assert_int_eq(stfs_journal_seal(journal, 3), 0);
	sealed = stfs_journal_size(journal);
	stfs_journal_close(journal);
	journal = opened(false);
	ck_assert_int_eq(stfs_journal_replay(journal, see, &seen, NULL), 0);
	ck_assert_int_eq(stfs_journal_seal(journal, 3), 0);
	ck_assert_uint_eq(stfs_journal_size(journal), sealed);
	ck_assert_int_eq(append(journal, 2, "two"), 0);
	stfs_journal_close(journal);
	/* "one" and the seal are gone, and only "two", of a later session, is left to tell that they were on disk. */
	put_bytes(16, zeros, sizeof(zeros));
	put_bytes(64, zeros, 40);
	ck_assert_int_eq(replay_later(&seen, NULL), -EBADMSG);
}
END_TEST

/* What others append while a journal is sealed. */
static int append_and_sync(void *user, int fd)
{
	struct stfs_journal **journal = user;
	struct stfs_journal *once = *journal;

	*journal = NULL;
	if (once)
		ck_assert_int_eq(append(once, 1, "meanwhile"), 0);
	return fdatasync(fd);
}

START_TEST(test_seal_is_behind_all)
{
	struct stfs_os os = *stfs_os_real();
	_cleanup_journal_ struct stfs_journal *journal = NULL;
	struct stfs_journal *racing;
	uint64_t size;

	os.user = &racing;
	os.fdatasync = append_and_sync;
	ck_assert_int_eq(stfs_journal_open(&os, dir_fd, "j", true, &journal), 0);
	racing = journal;
	ck_assert_int_eq(append(journal, 1, "one"), 0);
	ck_assert_int_eq(stfs_journal_seal(journal, 3), 0);
	ck_assert_ptr_null(racing);
	size = stfs_journal_size(journal);
	/* The first seal does not speak of what came meanwhile. */
	ck_assert_int_eq(stfs_journal_seal(journal, 3), 0);
	ck_assert_uint_gt(stfs_journal_size(journal), size);
	size = stfs_journal_size(journal);
	ck_assert_int_eq(stfs_journal_seal(journal, 3), 0);
	ck_assert_uint_eq(stfs_journal_size(journal), size);
}
END_TEST

/* Filesystems leave zeros behind what was written, from any place on. */
START_TEST(test_zero_tail)
{
	char zeros[8192] = { 0 };
	uint64_t ends[6];
	struct seen seen;

	for (unsigned whole = 0; whole <= 3; whole++) {
		make(3, ends);
		put_bytes(ends[whole], zeros, sizeof(zeros) - whole);
		ck_assert_int_eq(replay(&seen, NULL), 0);
		ck_assert_uint_eq(seen.n, whole);
		ck_assert_uint_eq(file_size(), ends[whole]);
		remove_journal();
	}
}
END_TEST

/* What was cut off must not come back behind what is appended, as it could if only that got to the disk. */
START_TEST(test_cut_is_on_disk)
{
	uint64_t ends[6];
	struct seen seen;

	make(3, ends);
	cut_file(ends[3] - 1);
	faulty_os_plant_in(&faulty, FAULTY_FDATASYNC, FAULTY_ONCE, 1, EIO);
	ck_assert_int_eq(replay(&seen, NULL), -EIO);
	ck_assert_uint_eq(file_size(), ends[2]);
	faulty_os_plant_in(&faulty, FAULTY_FDATASYNC, FAULTY_NONE, 1, 0);
	ck_assert_int_eq(replay(&seen, NULL), 0);
	ck_assert_uint_eq(seen.n, 2);
	/* Nothing was torn this time. */
	ck_assert_uint_eq(faulty.calls, 0);
}
END_TEST

/* A crash right after the making leaves no head, or zeros; records without a head are damage. */
START_TEST(test_no_head)
{
	char zeros[8192] = { 0 };
	struct stfs_diag diag = { 0 };
	uint64_t ends[6];
	struct seen seen;

	put_bytes(0, zeros, sizeof(zeros));
	ck_assert_int_eq(replay(&seen, NULL), 0);
	ck_assert_uint_eq(seen.n, 0);
	ck_assert_uint_eq(file_size(), 16);
	remove_journal();
	make(3, ends);
	put_bytes(0, zeros, 20);
	ck_assert_int_eq(replay(&seen, &diag), -EBADMSG);
	ck_assert_uint_eq(seen.n, 0);
	ck_assert_ptr_nonnull(strstr(diag.text, "damaged at byte 0,"));
	ck_assert_uint_eq(file_size(), ends[3]);
}
END_TEST

/* What is whole but lies between two records is damage too: nothing may be cut off that holds a record. */
START_TEST(test_record_behind_gap)
{
	char zeros[4096] = { 0 }, record[48];
	struct stfs_diag diag = { 0 };
	uint64_t ends[6];
	struct seen seen;

	make(2, ends);
	get_bytes(ends[1], record, sizeof(record));
	put_bytes(ends[1], zeros, sizeof(zeros));
	put_bytes(8192, record, sizeof(record));
	ck_assert_int_eq(replay(&seen, &diag), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(diag.text, "from byte 8192 on"));
	ck_assert_uint_eq(file_size(), 8192 + sizeof(record));
	/* Records stand at multiples of 8 only. */
	cut_file(ends[1]);
	put_bytes(8196, record, sizeof(record));
	ck_assert_int_eq(replay(&seen, &diag), 0);
	ck_assert_uint_eq(seen.n, 1);
	ck_assert_uint_eq(file_size(), ends[1]);
}
END_TEST

/* A tail made of heads that each speak of half a megabyte is given up on, not worked at for an hour. */
START_TEST(test_costly_tail)
{
	const size_t bytes = 1024 * 1024;
	_cleanup_free_ uint64_t *heads = calloc(1, bytes);
	struct stfs_diag diag = { 0 };
	uint64_t ends[6];
	struct seen seen;

	ck_assert_ptr_nonnull(heads);
	for (size_t i = 0; i < bytes / 8; i++)
		heads[i] = bytes / 2;
	make(1, ends);
	put_bytes(ends[1], heads, bytes);
	ck_assert_int_eq(replay(&seen, &diag), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(diag.text, "cannot be told"));
	ck_assert_uint_eq(file_size(), ends[1] + bytes);
}
END_TEST

START_TEST(test_big_records)
{
	const size_t sizes[] = { 65536 - 40, 65536, 1000001, STFS_JOURNAL_RECORD_MAX };
	_cleanup_free_ char *data = calloc(1, STFS_JOURNAL_RECORD_MAX + 1);
	_cleanup_journal_ struct stfs_journal *journal = opened(true);
	struct seen seen = { 0 };

	ck_assert_ptr_nonnull(data);
	memset(data, 'x', STFS_JOURNAL_RECORD_MAX);
	for (size_t i = 0; i < STFS_ARRAY_SIZE(sizes); i++) {
		ck_assert_int_eq(stfs_journal_append(journal, 1, (struct stfs_slice){ data, sizes[i] }), 0);
		ck_assert_int_eq(append(journal, 2, "small"), 0);
	}
	ck_assert_int_eq(stfs_journal_append(journal, 1, (struct stfs_slice){ data, STFS_JOURNAL_RECORD_MAX + 1 }),
			 -EFBIG);
	ck_assert_int_eq(replay(&seen, NULL), 0);
	ck_assert_uint_eq(seen.n, 8);
	for (size_t i = 0; i < STFS_ARRAY_SIZE(sizes); i++) {
		ck_assert_uint_eq(seen.lens[2 * i], sizes[i]);
		ck_assert_str_eq(seen.texts[2 * i + 1], "small");
	}
}
END_TEST

/* After a failed append the file is as before, and the next one works. */
START_TEST(test_append_fails)
{
	_cleanup_journal_ struct stfs_journal *journal = opened(true);
	struct seen seen;

	ck_assert_int_eq(append(journal, 1, "first"), 0);
	faulty_os_plant(&faulty, FAULTY_ONCE, 1, ENOSPC);
	ck_assert_int_eq(append(journal, 2, "second"), -ENOSPC);
	ck_assert_uint_eq(stfs_journal_size(journal), file_size());
	faulty_os_plant(&faulty, FAULTY_SHORT, 1, 0);
	ck_assert_int_eq(append(journal, 3, "whole after all"), 0);
	ck_assert_uint_eq(faulty.calls, 2);
	ck_assert_int_eq(replay(&seen, NULL), 0);
	ck_assert_uint_eq(seen.n, 2);
	ck_assert_str_eq(seen.texts[1], "whole after all");
}
END_TEST

/* A disk that takes half a record and then says that it is full. */
static ssize_t write_half_then_fail(void *user, int fd, const void *data, size_t len, off_t offset)
{
	unsigned *calls = user;

	if (++*calls % 2 == 0) {
		errno = ENOSPC;
		return -1;
	}
	return pwrite(fd, data, len / 2, offset);
}

static int fail_to_truncate(void *user, int fd, off_t size)
{
	(void)user;
	(void)fd;
	(void)size;
	errno = EIO;
	return -1;
}

START_TEST(test_append_cut_back)
{
	struct stfs_os os = *stfs_os_real();
	_cleanup_journal_ struct stfs_journal *journal = NULL;
	unsigned calls = 0;
	struct seen seen;

	ck_assert_int_eq(stfs_journal_open(&os, dir_fd, "j", true, &journal), 0);
	ck_assert_int_eq(append(journal, 1, "first"), 0);
	os.user = &calls;
	os.pwrite = write_half_then_fail;
	ck_assert_int_eq(append(journal, 2, "second"), -ENOSPC);
	ck_assert_uint_eq(file_size(), 16 + 48);
	/* Once the half of a record cannot be taken back, nothing must follow it. */
	os.ftruncate = fail_to_truncate;
	ck_assert_int_eq(append(journal, 2, "second"), -ENOSPC);
	ck_assert_uint_gt(file_size(), 16 + 48);
	os = *stfs_os_real();
	ck_assert_int_eq(append(journal, 2, "second"), -EIO);
	ck_assert_int_eq(stfs_journal_sync(journal), -EIO);
	ck_assert_int_eq(replay(&seen, NULL), 0);
	ck_assert_uint_eq(seen.n, 1);
	ck_assert_uint_eq(file_size(), 16 + 48);
}
END_TEST

START_TEST(test_sync)
{
	_cleanup_journal_ struct stfs_journal *journal = opened(true);
	struct seen seen;

	ck_assert_int_eq(append(journal, 1, "first"), 0);
	faulty_os_plant(&faulty, FAULTY_ONCE, 1, EINTR);
	ck_assert_int_eq(stfs_journal_sync(journal), 0);
	ck_assert_uint_eq(faulty.calls, 2);
	/* Nothing new: nothing to do. */
	ck_assert_int_eq(stfs_journal_sync(journal), 0);
	ck_assert_uint_eq(faulty.calls, 2);
	ck_assert_int_eq(append(journal, 2, "second"), 0);
	faulty_os_plant(&faulty, FAULTY_ONCE, 1, EDQUOT);
	ck_assert_int_eq(stfs_journal_sync(journal), -EDQUOT);
	/* Never tried again: the system would say that all is well. */
	ck_assert_int_eq(stfs_journal_sync(journal), -EIO);
	ck_assert_int_eq(append(journal, 3, "third"), -EIO);
	ck_assert_uint_eq(faulty.calls, 1);
	ck_assert_int_eq(replay(&seen, NULL), 0);
	ck_assert_uint_eq(seen.n, 2);
}
END_TEST

#define THREADS 4
#define PER_THREAD 500

static void *append_many(void *arg)
{
	struct stfs_journal *journal = arg;

	for (unsigned i = 0; i < PER_THREAD; i++) {
		_cleanup_buf_ struct stfs_buf payload = { 0 };

		if (stfs_payload_u64(&payload, i) < 0 ||
		    stfs_journal_append(journal, 5, stfs_buf_slice(&payload)) < 0 ||
		    (i % 50 == 0 && stfs_journal_sync(journal) < 0))
			return arg;
	}
	return NULL;
}

static int count_up(void *user, const struct stfs_record *record)
{
	struct stfs_slice payload = record->payload;
	unsigned *counts = user;
	uint64_t i;

	ck_assert(stfs_payload_take_u64(&payload, &i) && i < PER_THREAD);
	counts[i]++;
	return 0;
}

START_TEST(test_threads)
{
	_cleanup_journal_ struct stfs_journal *journal = opened(true), *again = NULL;
	unsigned counts[PER_THREAD] = { 0 };
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, append_many, journal), 0);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
		ck_assert_ptr_null(failed);
	}
	again = opened(false);
	ck_assert_int_eq(stfs_journal_replay(again, count_up, counts, NULL), 0);
	for (unsigned i = 0; i < PER_THREAD; i++)
		ck_assert_uint_eq(counts[i], THREADS);
	ck_assert_uint_eq(stfs_journal_size(again), 16 + THREADS * PER_THREAD * 48);
}
END_TEST

/* A whole life: made, added to, synced, read back, added to. *ret_done counts the appends that were accepted. */
static int live(struct stfs_journal **journal, unsigned *done)
{
	struct seen seen = { 0 };
	int r = open_journal(true, journal);

	for (unsigned i = 0; r == 0 && i < 3; i++) {
		r = append(*journal, 1, "before");
		*done += r == 0;
	}
	if (r == 0)
		r = stfs_journal_sync(*journal);
	stfs_journal_close(*journal);
	*journal = NULL;
	if (r == 0)
		r = open_journal(false, journal);
	if (r == 0)
		r = stfs_journal_replay(*journal, see, &seen, NULL);
	if (r == 0)
		r = append(*journal, 2, "after");
	*done += r == 0;
	return r;
}

static void check_life(unsigned done)
{
	_cleanup_journal_ struct stfs_journal *journal = NULL;
	struct seen seen = { 0 };
	int r;

	faulty_os_plant(&faulty, FAULTY_NONE, 0, 0);
	r = open_journal(false, &journal);
	if (r == -ENOENT) {
		ck_assert_uint_eq(done, 0);
		return;
	}
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(stfs_journal_replay(journal, see, &seen, NULL), 0);
	ck_assert_uint_ge(seen.n, done);
	remove_journal();
}

/* Each call failing in turn: the error comes out, nothing leaks, nothing that was accepted is lost. */
START_TEST(test_each_call_fails)
{
	static const int errors[] = { EIO, ENOSPC, EINTR };
	unsigned fds = faulty_open_fds();

	for (size_t i = 0; i < 2 * STFS_ARRAY_SIZE(errors); i++) {
		enum faulty_how how = i < STFS_ARRAY_SIZE(errors) ? FAULTY_ONCE : FAULTY_FROM;
		int error = errors[i % STFS_ARRAY_SIZE(errors)];
		unsigned at = 0, fired;

		if (error == EINTR && how == FAULTY_FROM)
			continue; /* for ever */
		do {
			struct stfs_journal *journal = NULL;
			unsigned done = 0;
			int r;

			faulty_os_plant(&faulty, how, ++at, error);
			r = live(&journal, &done);
			fired = faulty.fired;
			stfs_journal_close(journal);
			ck_assert_int_eq(r, fired && error != EINTR ? -error : 0);
			check_life(done);
			ck_assert_uint_eq(faulty_open_fds(), fds);
		} while (fired);
		ck_assert_uint_gt(at, 10);
	}
}
END_TEST

/* Reading back a torn journal, each call failing in turn: an error and a sentence, and the next try does it. */
START_TEST(test_torn_each_call_fails)
{
	uint64_t ends[6];

	for (int headless = 0; headless < 2; headless++) {
		for (unsigned at = 1, fired = 1; fired; at++) {
			_cleanup_journal_ struct stfs_journal *journal = NULL;
			struct stfs_diag diag = { 0 };
			struct seen seen = { 0 };
			int r;

			make(2, ends);
			cut_file(headless ? 7 : ends[2] - 3);
			journal = opened(false);
			faulty_os_plant(&faulty, FAULTY_ONCE, at, EIO);
			r = stfs_journal_replay(journal, see, &seen, &diag);
			fired = faulty.fired;
			faulty_os_plant(&faulty, FAULTY_NONE, 0, 0);
			ck_assert_int_eq(r, fired ? -EIO : 0);
			ck_assert((strstr(diag.text, "cannot be read back: ") != NULL) == (fired != 0));
			ck_assert(!fired || append(journal, 1, "x") == -EINVAL);
			ck_assert(fired || at > 2);
			ck_assert_int_eq(replay(&seen, NULL), 0);
			ck_assert_uint_eq(seen.n, headless ? 0 : 1);
			remove_journal();
		}
	}
}
END_TEST

/* Killed at each call, and in the middle of each write: what was accepted is there. */
START_TEST(test_killed_at_each_call)
{
	unsigned *done = mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(done, MAP_FAILED);
	for (int half = 0; half < 2; half++) {
		int status = 0;

		for (unsigned at = 1; !WIFEXITED(status) || at == 1; at++) {
			pid_t pid;

			*done = 0;
			pid = fork();
			ck_assert_int_ge(pid, 0);
			if (pid == 0) {
				struct stfs_journal *journal = NULL;

				faulty_os_plant(&faulty, half ? FAULTY_KILL_HALF : FAULTY_KILL, at, 0);
				_exit(live(&journal, done) == 0 ? 0 : 1);
			}
			ck_assert_int_eq(waitpid(pid, &status, 0), pid);
			ck_assert(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
			ck_assert(at > 10 || WIFSIGNALED(status));
			check_life(*done);
		}
	}
	munmap(done, sizeof(*done));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("journal");
	TCase *tcase = tcase_create("journal");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_payload);
	tcase_add_test(tcase, test_append_and_replay);
	tcase_add_test(tcase, test_layout);
	tcase_add_test(tcase, test_open);
	tcase_add_test(tcase, test_append_order);
	tcase_add_test(tcase, test_apply_stops);
	tcase_add_test(tcase, test_torn_anywhere);
	tcase_add_test(tcase, test_flipped_bits);
	tcase_add_test(tcase, test_hole_before_sync);
	tcase_add_test(tcase, test_hole_before_a_later_word);
	tcase_add_test(tcase, test_synced_comes_back);
	tcase_add_test(tcase, test_seal_is_behind_all);
	tcase_add_test(tcase, test_zero_tail);
	tcase_add_test(tcase, test_cut_is_on_disk);
	tcase_add_test(tcase, test_no_head);
	tcase_add_test(tcase, test_record_behind_gap);
	tcase_add_test(tcase, test_costly_tail);
	tcase_add_test(tcase, test_big_records);
	tcase_add_test(tcase, test_append_fails);
	tcase_add_test(tcase, test_append_cut_back);
	tcase_add_test(tcase, test_sync);
	tcase_add_test(tcase, test_threads);
	tcase_add_test(tcase, test_each_call_fails);
	tcase_add_test(tcase, test_torn_each_call_fails);
	tcase_add_test(tcase, test_killed_at_each_call);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
