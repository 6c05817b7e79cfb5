/* SPDX-License-Identifier: Apache-2.0 */
/* What journal.c (the file, appending) and journal_replay.c (reading it back) share. */
#pragma once

#include <endian.h>
#include <pthread.h>
#include <string.h>

#include "journal.h"

#define STFS_JOURNAL_HEAD_BYTES ((size_t)16)
#define STFS_JOURNAL_RECORD_HEAD_BYTES ((size_t)40)
#define STFS_JOURNAL_ALIGN ((size_t)8)

struct stfs_journal {
	const struct stfs_os *os;
	int fd;
	uint64_t boot; /* tells this boot of the machine from others; 0 when that cannot be told */
	bool headless; /* the head was never written whole; mended by the replay */
	bool whole;    /* nothing torn is at the end: made by us, or replayed. Set before threads share the journal. */
	_Atomic uint64_t size; /* changed under `lock` */

	pthread_mutex_t sync_lock; /* held during a sync, taken before `lock` */
	_Atomic uint64_t synced;   /* bytes known to be on disk; changed under `sync_lock` */

	pthread_mutex_t lock; /* protects what follows, and appending */
	bool broken;
	bool sealed; /* the last record says that all before it is on disk */
};

/* Where things are in a record. */
struct stfs_record_head {
	uint32_t len, crc;
	uint64_t time, boot, synced;
	uint32_t type, zero;
};

/* Bytes of a record with a payload of `len`, which must not be beyond STFS_JOURNAL_RECORD_MAX. */
static inline size_t stfs_record_bytes(size_t len)
{
	size_t bytes = STFS_JOURNAL_RECORD_HEAD_BYTES + len;

	return (bytes + STFS_JOURNAL_ALIGN - 1) / STFS_JOURNAL_ALIGN * STFS_JOURNAL_ALIGN;
}

/* The checksum of a record of `len` bytes, padding and all, as it is on disk. */
uint32_t stfs_record_crc(const void *record, size_t len);

/* Writes the head of an empty journal. Returns 0 or -errno. */
int stfs_journal_write_head(struct stfs_journal *journal);
