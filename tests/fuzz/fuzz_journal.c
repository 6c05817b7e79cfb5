/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a journal. The first byte of the input says how to help it past the checksums: that many records (5
 * bits) are made right, 0x80 puts the head right, 0x40 then breaks the first record again. The rest is the file. A
 * naive reader says what must come out.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "crc32.h"
#include "journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FILE_MAX 32768 /* below what a search for records gives up at */
#define RECORD_HEAD 40
#define BOOT 0x1234567890abcdefu

/* A system with one file, which lives in memory. */
struct one_file {
	struct stfs_os os;
	int fd;
};

/* What the naive reader found, and how far a replay agreed with it. */
struct expected {
	const uint8_t *file;
	size_t size;
	size_t end;  /* of the records from the beginning on */
	bool later;  /* a record follows that can only be reached by searching */
	bool extra;  /* the record of append_and_check() comes last */
	size_t seen; /* where the next record to come is */
};

static const uint8_t head[16] = "STFSJ2\n";
static const char extra[] = "extra";

static void check(bool ok)
{
	if (!ok)
		__builtin_trap();
}

static uint64_t number(const uint8_t *p, size_t bytes)
{
	uint64_t v = 0;

	for (size_t i = bytes; i > 0; i--)
		v = v << 8 | p[i - 1];
	return v;
}

static void put_number(uint8_t *p, uint64_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

/* Bytes of a record with a payload of `len`. */
static size_t padded(uint64_t len)
{
	return (size_t)(RECORD_HEAD + len + 7) / 8 * 8;
}

/* The checksum of a record that has `len` bytes of payload. */
static uint32_t checksum(const uint8_t *record, size_t len)
{
	return stfs_crc32(stfs_crc32(0, record, 4), record + 8, padded(len) - 8);
}

/* Bytes of the record at `p`, 0 when there is none. */
static size_t whole_record(const uint8_t *p, size_t left)
{
	uint64_t len;

	if (left < RECORD_HEAD)
		return 0;
	len = number(p, 4);
	if (len > STFS_JOURNAL_RECORD_MAX || padded(len) > left || number(p + 36, 4) != 0)
		return 0;
	return checksum(p, (size_t)len) == number(p + 4, 4) ? padded(len) : 0;
}

static bool is_of_this_boot(const uint8_t *record)
{
	return number(record + 16, 8) == BOOT;
}

static void read_naively(const uint8_t *file, size_t size, size_t from, struct expected *ret)
{
	*ret = (struct expected){ .file = file, .size = size, .end = from };
	while (from > 0 && ret->end < size) {
		size_t bytes = whole_record(file + ret->end, size - ret->end);

		if (bytes == 0)
			break;
		ret->end += bytes;
	}
	for (size_t i = ret->end + 8; i < size; i += 8) {
		/* Of this boot, or such that what is broken had been on disk. */
		if (whole_record(file + i, size - i) > 0)
			ret->later |= is_of_this_boot(file + i) || number(file + i + 24, 8) > ret->end;
	}
	ret->seen = from ? from : sizeof(head);
}

static int compare(void *user, const struct stfs_record *record)
{
	struct expected *expected = user;
	const uint8_t *p = expected->file + expected->seen;

	if (expected->seen >= expected->end) {
		check(expected->extra && record->type == 7 && stfs_slice_is(record->payload, extra));
		expected->extra = false;
		return 0;
	}
	check(record->type == number(p + 32, 4) && record->time == number(p + 8, 8));
	check(record->same_boot == is_of_this_boot(p) && record->synced == number(p + 24, 8));
	check(record->payload.len == number(p, 4));
	check(memcmp(record->payload.p, p + RECORD_HEAD, record->payload.len) == 0);
	expected->seen += whole_record(p, expected->size - expected->seen);
	return 0;
}

static int open_file(void *user, int dir_fd, const char *name, int flags, mode_t mode)
{
	struct one_file *one = user;

	(void)dir_fd;
	(void)name;
	(void)flags;
	(void)mode;
	return fcntl(one->fd, F_DUPFD_CLOEXEC, 0);
}

static uint64_t boot(void *user)
{
	(void)user;
	return BOOT;
}

/* The file holds these bytes and no more. */
static void check_file(const struct one_file *one, const void *bytes, size_t size)
{
	uint8_t *now = malloc(size + 1);

	check(now != NULL);
	check(pread(one->fd, now, size + 1, 0) == (ssize_t)size);
	check(size == 0 || memcmp(now, bytes, size) == 0);
	free(now);
}

static struct stfs_journal *open_journal(const struct one_file *one)
{
	struct stfs_journal *journal = NULL;

	check(stfs_journal_open(&one->os, -1, "journal", false, &journal) == 0);
	return journal;
}

/* A journal that was read back takes records, which come back behind those before. */
static void append_and_check(const struct one_file *one, struct stfs_journal *journal, struct expected *expected,
			     size_t from)
{
	check(stfs_journal_append(journal, 7, stfs_slice_of(extra)) == 0);
	stfs_journal_close(journal);
	journal = open_journal(one);
	expected->extra = true;
	expected->seen = from;
	check(stfs_journal_replay(journal, compare, expected, NULL) == 0);
	check(!expected->extra);
	stfs_journal_close(journal);
}

static void replay(const struct one_file *one, const uint8_t *file, size_t size, bool headless)
{
	struct stfs_journal *journal = open_journal(one);
	struct stfs_diag diag = { 0 };
	struct expected expected;
	int r;

	read_naively(file, size, headless ? 0 : sizeof(head), &expected);
	r = stfs_journal_replay(journal, compare, &expected, &diag);
	check(r == (expected.later ? -EBADMSG : 0));
	if (expected.later) {
		check(diag.text[0] != '\0');
		check(stfs_journal_append(journal, 7, stfs_slice_of(extra)) == -EINVAL);
		check_file(one, file, size);
		stfs_journal_close(journal);
		return;
	}
	if (headless)
		check_file(one, head, sizeof(head));
	else
		check(expected.seen == expected.end);
	if (!headless)
		check_file(one, file, expected.end);
	append_and_check(one, journal, &expected, headless ? expected.end : sizeof(head));
}

static bool all_zero(const uint8_t *p, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (p[i])
			return false;
	}
	return true;
}

static void run(const struct one_file *one, const uint8_t *file, size_t size)
{
	size_t n = size < sizeof(head) ? size : sizeof(head);
	bool right = n == 0 || memcmp(file, head, n) == 0;
	struct stfs_journal *journal = NULL;

	if (right || all_zero(file, n)) {
		replay(one, file, size, !right || n < sizeof(head));
		return;
	}
	check(stfs_journal_open(&one->os, -1, "journal", false, &journal) == -EBADMSG && !journal);
	check_file(one, file, size);
}

static void help(uint8_t how, uint8_t *file, size_t size)
{
	size_t offset = sizeof(head);

	if (how & 0x80)
		memcpy(file, head, size < sizeof(head) ? size : sizeof(head));
	for (unsigned i = 0; i < (how & 0x1f) && offset + RECORD_HEAD <= size; i++) {
		uint8_t *p = file + offset;
		size_t room = (size - offset - RECORD_HEAD) / 8 * 8;
		uint64_t len = number(p, 4) % (room + 1);

		put_number(p, len, 4);
		if (p[16] & 1)
			put_number(p + 16, BOOT, 8);
		put_number(p + 36, 0, 4);
		put_number(p + 4, checksum(p, (size_t)len), 4);
		offset += padded(len);
	}
	if (how & 0x40 && size > sizeof(head) + 8)
		file[sizeof(head) + 8] ^= 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct one_file one = { .os = *stfs_os_real() };
	uint8_t *file;

	if (size == 0 || size > FILE_MAX)
		return 0;
	file = malloc(size);
	one.fd = memfd_create("journal", MFD_CLOEXEC);
	check(file && one.fd >= 0);
	one.os.user = &one;
	one.os.openat = open_file;
	one.os.boot = boot;
	memcpy(file, data + 1, size - 1);
	help(data[0], file, size - 1);
	check(pwrite(one.fd, file, size - 1, 0) == (ssize_t)size - 1);
	run(&one, file, size - 1);
	close(one.fd);
	free(file);
	return 0;
}
