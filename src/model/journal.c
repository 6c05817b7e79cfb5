/* SPDX-License-Identifier: Apache-2.0 */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "cleanup.h"
#include "crc32.h"
#include "journal_private.h"
#include "retry.h"

#define SMALL_BYTES \
	4608 /* of a record that takes no memory: those of numbers, most paths, and texts up to STFS_SMALL_MAX */

static const char journal_head[STFS_JOURNAL_HEAD_BYTES] = "STFSJ2\n";

_Static_assert(sizeof(struct stfs_record_head) == STFS_JOURNAL_RECORD_HEAD_BYTES, "as it is on disk");

int stfs_payload_u64(struct stfs_buf *payload, uint64_t v)
{
	v = htole64(v);
	return stfs_buf_append(payload, &v, sizeof(v));
}

int stfs_payload_bytes(struct stfs_buf *payload, struct stfs_slice bytes)
{
	int r;

	if (bytes.len > SIZE_MAX / 2)
		return -ENOMEM;
	/* Room first: either both are appended or neither. */
	r = stfs_buf_reserve(payload, sizeof(uint64_t) + bytes.len);
	if (r == 0)
		r = stfs_payload_u64(payload, bytes.len);
	if (r == 0)
		r = stfs_buf_append(payload, bytes.p, bytes.len);
	return r;
}

bool stfs_payload_take_u64(struct stfs_slice *payload, uint64_t *ret)
{
	uint64_t v;

	if (payload->len < sizeof(v))
		return false;
	memcpy(&v, payload->p, sizeof(v));
	payload->p += sizeof(v);
	payload->len -= sizeof(v);
	*ret = le64toh(v);
	return true;
}

bool stfs_payload_take_bytes(struct stfs_slice *payload, struct stfs_slice *ret)
{
	struct stfs_slice rest = *payload;
	uint64_t len;

	if (!stfs_payload_take_u64(&rest, &len) || len > rest.len)
		return false;
	*ret = (struct stfs_slice){ rest.p, (size_t)len };
	*payload = (struct stfs_slice){ rest.p + len, rest.len - (size_t)len };
	return true;
}

uint32_t stfs_record_crc(const void *record, size_t len)
{
	size_t skipped = offsetof(struct stfs_record_head, time);
	uint32_t crc = stfs_crc32(0, record, offsetof(struct stfs_record_head, crc));

	return stfs_crc32(crc, (const char *)record + skipped, len - skipped);
}

static struct stfs_journal *journal_new(const struct stfs_os *os)
{
	struct stfs_journal *journal = calloc(1, sizeof(*journal));

	if (!journal)
		return NULL;
	journal->os = os;
	journal->fd = -1;
	journal->boot = os->boot(os->user);
	pthread_mutex_init(&journal->sync_lock, NULL);
	pthread_mutex_init(&journal->lock, NULL);
	return journal;
}

void stfs_journal_close(struct stfs_journal *journal)
{
	if (!journal)
		return;
	stfs_closep(&journal->fd);
	pthread_mutex_destroy(&journal->sync_lock);
	pthread_mutex_destroy(&journal->lock);
	free(journal);
}

int stfs_journal_write_head(struct stfs_journal *journal)
{
	int r = stfs_os_write_full(journal->os, journal->fd, journal_head, sizeof(journal_head), 0, NULL);

	if (r == 0)
		journal->size = sizeof(journal_head);
	return r;
}

static int make_file(struct stfs_journal *journal, int dir_fd, const char *name)
{
	const struct stfs_os *os = journal->os;
	int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int r;

	journal->fd = STFS_RETRY(os->openat(os->user, dir_fd, name, flags, 0600));
	if (journal->fd < 0)
		return -errno;
	/* Whatever the umask says. */
	r = STFS_RETRY(os->fchmod(os->user, journal->fd, 0600)) < 0 ? -errno : 0;
	if (r == 0)
		r = stfs_journal_write_head(journal);
	if (r < 0)
		(void)STFS_RETRY(os->unlinkat(os->user, dir_fd, name, 0));
	journal->whole = true;
	return r;
}

static bool is_zero(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (p[i])
			return false;
	}
	return true;
}

/*
 * Only looks, for others may be writing to it. A head that is missing, cut short or all zero is what a crash
 * right after the making leaves.
 */
static int open_file(struct stfs_journal *journal, int dir_fd, const char *name)
{
	const struct stfs_os *os = journal->os;
	char head[STFS_JOURNAL_HEAD_BYTES];
	struct stat st;
	size_t n;
	int r;

	/* O_NONBLOCK: a name that is a pipe must not hang us. */
	journal->fd = STFS_RETRY(os->openat(os->user, dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0));
	if (journal->fd < 0 || STFS_RETRY(os->fstat(os->user, journal->fd, &st)) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	journal->size = (uint64_t)st.st_size;
	n = (size_t)STFS_MIN(journal->size, sizeof(head));
	r = stfs_os_read_full(os, journal->fd, head, n, 0);
	if (r < 0)
		return r;
	if (n == sizeof(head) && memcmp(head, journal_head, n) == 0)
		return 0;
	journal->headless = is_zero(head, n) || (n < sizeof(head) && memcmp(head, journal_head, n) == 0);
	return journal->headless ? 0 : -EBADMSG;
}

int stfs_journal_open(const struct stfs_os *os, int dir_fd, const char *name, bool create, struct stfs_journal **ret)
{
	_cleanup_(stfs_journal_closep) struct stfs_journal *journal = journal_new(os);
	int r;

	if (!journal)
		return -ENOMEM;
	r = create ? make_file(journal, dir_fd, name) : open_file(journal, dir_fd, name);
	if (r < 0)
		return r;
	*ret = stfs_steal(journal);
	return 0;
}

/* Builds a record with the present time in `head` and the bytes behind it. */
static void build_record(const struct stfs_journal *journal, struct stfs_record_head *head, uint32_t type,
			 struct stfs_slice payload)
{
	size_t len = stfs_record_bytes(payload.len);
	struct timespec now;

	memset(head, 0, len);
	clock_gettime(CLOCK_REALTIME, &now);
	*head = (struct stfs_record_head){
		.len = htole32((uint32_t)payload.len),
		.time = htole64((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec),
		.boot = htole64(journal->boot),
		.synced = htole64(journal->synced),
		.type = htole32(type),
	};
	if (payload.len)
		memcpy(head + 1, payload.p, payload.len);
	head->crc = htole32(stfs_record_crc(head, len));
}

/* With the lock held. */
static int write_record(struct stfs_journal *journal, const struct stfs_record_head *head, size_t len)
{
	const struct stfs_os *os = journal->os;
	int r;

	if (journal->broken)
		return -EIO;
	/* One write unless the system takes a part: the rest then tells why. A crash between leaves a torn tail. */
	r = stfs_os_write_full(os, journal->fd, head, len, journal->size, NULL);
	if (r == 0) {
		journal->sealed = le64toh(head->synced) >= journal->size;
		journal->size += len;
	} else if (STFS_RETRY(os->ftruncate(os->user, journal->fd, (off_t)journal->size)) < 0) {
		journal->broken = true;
	}
	return r;
}

int stfs_journal_append(struct stfs_journal *journal, uint32_t type, struct stfs_slice payload)
{
	_cleanup_free_ void *large = NULL;
	union {
		struct stfs_record_head head;
		char bytes[SMALL_BYTES];
	} small;
	struct stfs_record_head *head = &small.head;
	int r;

	/* A record behind a torn tail would make a damaged journal of it. */
	if (!journal->whole)
		return -EINVAL;
	if (payload.len > STFS_JOURNAL_RECORD_MAX)
		return -EFBIG;
	if (stfs_record_bytes(payload.len) > sizeof(small)) {
		head = large = malloc(stfs_record_bytes(payload.len));
		if (!large)
			return -ENOMEM;
	}
	build_record(journal, head, type, payload);
	pthread_mutex_lock(&journal->lock);
	r = write_record(journal, head, stfs_record_bytes(payload.len));
	pthread_mutex_unlock(&journal->lock);
	return r;
}

/* With the sync lock held. */
static int sync_file(struct stfs_journal *journal)
{
	const struct stfs_os *os = journal->os;
	uint64_t size;
	bool broken;
	int r;

	pthread_mutex_lock(&journal->lock);
	size = journal->size;
	broken = journal->broken;
	pthread_mutex_unlock(&journal->lock);
	if (broken)
		return -EIO;
	if (journal->synced >= size)
		return 0;
	r = STFS_RETRY(os->fdatasync(os->user, journal->fd)) < 0 ? -errno : 0;
	if (r == 0) {
		journal->synced = size;
		return 0;
	}
	/* What a failed sync lost stays lost, but the next one would say that all is well. */
	pthread_mutex_lock(&journal->lock);
	journal->broken = true;
	pthread_mutex_unlock(&journal->lock);
	return r;
}

int stfs_journal_sync(struct stfs_journal *journal)
{
	int r;

	/* One at a time: the system tells of a lost write only once, which must not be to somebody else. */
	pthread_mutex_lock(&journal->sync_lock);
	r = sync_file(journal);
	pthread_mutex_unlock(&journal->sync_lock);
	return r;
}

int stfs_journal_seal(struct stfs_journal *journal, uint32_t type)
{
	bool sealed;
	int r = stfs_journal_sync(journal);

	pthread_mutex_lock(&journal->lock);
	sealed = journal->sealed;
	pthread_mutex_unlock(&journal->lock);
	if (r < 0 || sealed)
		return r;
	r = stfs_journal_append(journal, type, (struct stfs_slice){ 0 });
	return r < 0 ? r : stfs_journal_sync(journal);
}

bool stfs_journal_is_empty(const struct stfs_journal *journal)
{
	return journal->size <= STFS_JOURNAL_HEAD_BYTES;
}

uint64_t stfs_journal_size(const struct stfs_journal *journal)
{
	return journal->size;
}
