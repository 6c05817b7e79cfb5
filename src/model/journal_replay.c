/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "cleanup.h"
#include "journal_private.h"
#include "retry.h"

#define WINDOW_BYTES ((size_t)64 * 1024)             /* read beyond what is asked for */
#define SCAN_BYTES_MAX ((uint64_t)256 * 1024 * 1024) /* of payloads checked in search of a record behind damage */

/* A piece of the journal in memory. */
struct window {
	struct stfs_journal *journal;
	char *data;
	size_t cap, len;
	uint64_t offset;
	uint64_t checked; /* bytes of payloads that were checked */
};

static void window_fini(struct window *window)
{
	free(window->data);
}

/* Borrows `len` bytes at `offset` until the next call; the file has them. */
static int window_get(struct window *window, uint64_t offset, size_t len, const char **ret)
{
	const struct stfs_journal *journal = window->journal;
	int r;

	if (offset < window->offset || offset + len > window->offset + window->len) {
		size_t want = (size_t)STFS_MIN(len + WINDOW_BYTES, journal->size - offset);

		window->len = 0;
		if (want > window->cap) {
			free(window->data);
			window->cap = 0;
			window->data = malloc(want);
			if (!window->data)
				return -ENOMEM;
			window->cap = want;
		}
		r = stfs_os_read_full(journal->os, journal->fd, window->data, want, offset);
		if (r < 0)
			return r;
		window->offset = offset;
		window->len = want;
	}
	*ret = window->data + (offset - window->offset);
	return 0;
}

/* Returns 1 with a whole record, 0 when there is none at `offset`, or -errno. */
static int read_record(struct window *window, uint64_t offset, struct stfs_record *ret, uint64_t *ret_end)
{
	uint64_t left = window->journal->size - offset;
	struct stfs_record_head head;
	const char *p;
	size_t bytes;
	int r;

	if (left < sizeof(head))
		return 0;
	r = window_get(window, offset, sizeof(head), &p);
	if (r < 0)
		return r;
	memcpy(&head, p, sizeof(head));
	head.len = le32toh(head.len);
	if (head.zero || head.len > STFS_JOURNAL_RECORD_MAX || stfs_record_bytes(head.len) > left)
		return 0;
	bytes = stfs_record_bytes(head.len);
	r = window_get(window, offset, bytes, &p);
	if (r < 0)
		return r;
	window->checked += head.len;
	if (stfs_record_crc(p, bytes) != le32toh(head.crc))
		return 0;
	*ret = (struct stfs_record){
		.type = le32toh(head.type),
		.time = le64toh(head.time),
		.synced = le64toh(head.synced),
		.same_boot = head.boot && le64toh(head.boot) == window->journal->boot,
		.payload = { p + sizeof(head), head.len },
	};
	*ret_end = offset + bytes;
	return 1;
}

/* Whether a record that is whole may stand behind a place that a power cut damaged. */
static bool is_torn_too(const struct window *window, const struct stfs_record *record, uint64_t damaged)
{
	return window->journal->boot && !record->same_boot && record->synced <= damaged;
}

/* Makes sure that nothing lies behind the damage at `offset` but what was torn with it. */
static int check_tail(struct window *window, uint64_t offset, struct stfs_diag *diag)
{
	window->checked = 0;
	for (uint64_t i = offset + STFS_JOURNAL_ALIGN; i < window->journal->size; i += STFS_JOURNAL_ALIGN) {
		struct stfs_record record;
		uint64_t end;
		int r = read_record(window, i, &record, &end);

		if (r < 0)
			return r;
		if (r > 0 && !is_torn_too(window, &record, offset))
			return stfs_fail(diag, -EBADMSG,
					 "the journal of staged edits is damaged at byte %" PRIu64
					 ", but what was written later, from byte %" PRIu64 " on, is whole",
					 offset, i);
		/* Bytes made to look like records everywhere take for ever to check; refusing loses nothing. */
		if (window->checked > SCAN_BYTES_MAX)
			return stfs_fail(diag, -EBADMSG,
					 "the journal of staged edits is damaged at byte %" PRIu64
					 ", and whether something whole follows cannot be told",
					 offset);
	}
	return 0;
}

static int cut_tail(struct window *window, uint64_t offset, struct stfs_diag *diag)
{
	struct stfs_journal *journal = window->journal;
	const struct stfs_os *os = journal->os;
	int r = check_tail(window, offset, diag);

	if (r < 0)
		return r;
	if (STFS_RETRY(os->ftruncate(os->user, journal->fd, (off_t)offset)) < 0)
		return -errno;
	journal->size = offset;
	/* Else the next power cut could bring back what was cut off, behind what is appended now. */
	if (STFS_RETRY(os->fdatasync(os->user, journal->fd)) < 0)
		return -errno;
	return 0;
}

/* The head was never whole: all of the file is a torn tail, or damaged. */
static int mend_head(struct window *window, struct stfs_diag *diag)
{
	int r = cut_tail(window, 0, diag);

	if (r == 0)
		r = stfs_journal_write_head(window->journal);
	if (r == 0)
		window->journal->headless = false;
	return r;
}

/* Finds where the records end, which is where the file ends or is damaged; *ret_stopped is what `apply` said. */
static int read_records(struct window *window, int (*apply)(void *user, const struct stfs_record *record), void *user,
			uint64_t *ret_end, int *ret_stopped)
{
	uint64_t offset = STFS_JOURNAL_HEAD_BYTES, synced = 0;

	*ret_stopped = 0;
	while (offset < window->journal->size && *ret_stopped == 0) {
		struct stfs_record record;
		uint64_t begin = offset;
		int r = read_record(window, offset, &record, &offset);

		if (r < 0)
			return r;
		if (r == 0)
			break;
		synced = STFS_MAX(synced, record.synced);
		window->journal->sealed = record.synced >= begin;
		*ret_stopped = apply(user, &record);
	}
	*ret_end = offset;
	window->journal->synced = STFS_MIN(synced, offset);
	return 0;
}

int stfs_journal_replay(struct stfs_journal *journal, int (*apply)(void *user, const struct stfs_record *record),
			void *user, struct stfs_diag *diag)
{
	_cleanup_(window_fini) struct window window = { .journal = journal };
	uint64_t end;
	int r = 0, stopped = 0;

	if (journal->headless)
		r = mend_head(&window, diag);
	if (r == 0)
		r = read_records(&window, apply, user, &end, &stopped);
	if (r == 0 && stopped != 0)
		return stopped;
	if (r == 0 && end < journal->size)
		r = cut_tail(&window, end, diag);
	if (r == 0)
		journal->whole = true;
	else if (r != -EBADMSG)
		stfs_diag_set(diag, "the journal of staged edits cannot be read back: %s", strerror(-r));
	return r;
}
