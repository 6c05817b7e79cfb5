/* SPDX-License-Identifier: Apache-2.0 */
/* A journal "j" in a directory of its own, and the bytes of it. */
#pragma once

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "faulty_os.h"
#include "journal.h"

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

static inline void setup(void)
{
	strcpy(dir_path, "/tmp/stfs-unit-journal-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir_path));
	dir_fd = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir_fd, 0);
	faulty_os_init(&faulty, stfs_os_real());
}

static inline void teardown(void)
{
	unlinkat(dir_fd, "j", 0);
	close(dir_fd);
	ck_assert_int_eq(rmdir(dir_path), 0);
}

static inline int open_journal(bool create, struct stfs_journal **ret)
{
	return stfs_journal_open(&faulty.os, dir_fd, "j", create, ret);
}

static inline struct stfs_journal *opened(bool create)
{
	struct stfs_journal *journal = NULL;

	ck_assert_int_eq(open_journal(create, &journal), 0);
	return journal;
}

static inline int append(struct stfs_journal *journal, uint32_t type, const char *text)
{
	return stfs_journal_append(journal, type, stfs_slice_of(text));
}

static inline int see(void *user, const struct stfs_record *record)
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
static inline int replay(struct seen *seen, struct stfs_diag *diag)
{
	_cleanup_journal_ struct stfs_journal *journal = opened(false);

	*seen = (struct seen){ 0 };
	return stfs_journal_replay(journal, see, seen, diag);
}

/* The records "one", "two", … up to `n` of them; *ret_ends gets where each ends, behind where the head does. */
static inline void make(unsigned n, uint64_t ends[])
{
	static const char *const texts[] = { "one", "two", "three--8", "", "five" };
	_cleanup_journal_ struct stfs_journal *journal = opened(true);

	ends[0] = stfs_journal_size(journal);
	for (unsigned i = 0; i < n; i++) {
		ck_assert_int_eq(append(journal, i, texts[i]), 0);
		ends[i + 1] = stfs_journal_size(journal);
	}
}

static inline void remove_journal(void)
{
	ck_assert_int_eq(unlinkat(dir_fd, "j", 0), 0);
}

static inline uint64_t file_size(void)
{
	struct stat st;

	ck_assert_int_eq(fstatat(dir_fd, "j", &st, AT_SYMLINK_NOFOLLOW), 0);
	return (uint64_t)st.st_size;
}

static inline void put_bytes(uint64_t offset, const void *data, size_t len)
{
	_cleanup_close_ int fd = openat(dir_fd, "j", O_RDWR | O_CREAT, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, data, len, (off_t)offset), (ssize_t)len);
}

static inline void get_bytes(uint64_t offset, void *data, size_t len)
{
	_cleanup_close_ int fd = openat(dir_fd, "j", O_RDONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, data, len, (off_t)offset), (ssize_t)len);
}

static inline void cut_file(uint64_t size)
{
	_cleanup_close_ int fd = openat(dir_fd, "j", O_RDWR);

	ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
}
