/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal: a file of checksummed records that says what was done to a tree, in order. This module knows records, not
 * what they mean.
 *
 * Layout: a head of 16 bytes (magic "STFSJ2\n\0", 8 bytes zero), then records, each: length of the payload (u32), CRC-32 of
 * all but itself (u32), time in nanoseconds (u64), the boot of the machine that wrote it (u64, 0 when that cannot be
 * told), how many bytes of the journal were known to be on disk by then (u64), type (u32), 4 bytes zero, payload, zeros up to
 * a multiple of 8. All numbers little-endian.
 *
 * A power cut takes what was not synced in any order: a page may be gone and the next one be there. So what lies behind a
 * damaged place tells whether the place had been on disk: then something else damaged it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "buf.h"
#include "cleanup.h"
#include "diag.h"
#include "os.h"
#include "slice.h"

#define STFS_JOURNAL_RECORD_MAX ((size_t)64 * 1024 * 1024) /* bytes of one payload */

/* Builds a payload: numbers and strings, one after the other. All append and return 0 or -ENOMEM. */
int stfs_payload_u64(struct stfs_buf *payload, uint64_t v) STFS_MUST_CHECK;
int stfs_payload_bytes(struct stfs_buf *payload, struct stfs_slice bytes) STFS_MUST_CHECK; /* length first */

/* Reads a payload back. Each returns false when it ends too early. The bytes are borrowed. */
bool stfs_payload_take_u64(struct stfs_slice *payload, uint64_t *ret);
bool stfs_payload_take_bytes(struct stfs_slice *payload, struct stfs_slice *ret);

/* A record as it was read; the payload lives until the next one is read. */
struct stfs_record {
	uint32_t type;
	uint64_t time;   /* nanoseconds since 1970 */
	uint64_t synced; /* bytes of the journal that were on disk when it was written, at least */
	bool same_boot;  /* the machine was not started anew since; false when that cannot be told */
	struct stfs_slice payload;
};

/* When a record was written, as the mtime of what it changed. */
static inline struct timespec stfs_record_mtime(const struct stfs_record *record)
{
	return (struct timespec){ (time_t)(record->time / 1000000000), (long)(record->time % 1000000000) };
}

struct stfs_journal;

/*
 * Opens the journal `name` in `dir_fd`, or with `create` makes it (O_EXCL, 0600) with its head. A name of a symlink is
 * refused. `os` and `dir_fd` are borrowed and outlive it. Returns 0 or -errno, -EBADMSG for another magic.
 */
int stfs_journal_open(const struct stfs_os *os, int dir_fd, const char *name, bool create, struct stfs_journal **ret);

/* Closes; takes NULL. */
void stfs_journal_close(struct stfs_journal *journal);
STFS_DEFINE_CLEANUP(struct stfs_journal, stfs_journal_close)

/*
 * Hands each record to `apply`, in order. A torn tail is cut off the file: a record that is cut short or whose checksum is
 * wrong, with nothing whole behind it but what an earlier boot wrote before the place was on disk. Anything else that is
 * wrong is -EBADMSG with a sentence, and nothing is changed. An error of `apply` stops and is returned.
 */
int stfs_journal_replay(struct stfs_journal *journal, int (*apply)(void *user, const struct stfs_record *record),
			void *user, struct stfs_diag *diag);

/*
 * Appends a record with the present time, in one write; after a short or failed write the file is cut back to where it was.
 * Safe from any thread. Returns 0 or -errno. Once cutting back has failed too, every later append is -EIO.
 */
int stfs_journal_append(struct stfs_journal *journal, uint32_t type, struct stfs_slice payload) STFS_MUST_CHECK;

/* Makes what was appended survive a power cut. After a failure every later append and sync is -EIO. */
int stfs_journal_sync(struct stfs_journal *journal) STFS_MUST_CHECK;

/*
 * The same, and appends an empty record of `type` that says so, unless the last one does: damage before it is found out even
 * after the machine was started anew.
 */
int stfs_journal_seal(struct stfs_journal *journal, uint32_t type) STFS_MUST_CHECK;

/* Whether there is no record in it. */
bool stfs_journal_is_empty(const struct stfs_journal *journal);

/* Bytes in the file. */
uint64_t stfs_journal_size(const struct stfs_journal *journal);
