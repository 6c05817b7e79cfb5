/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing content. Order in every function: bytes to the staged file, then the record, then memory; what fails on the way was
 * not accepted. A record that speaks of bytes never comes before them.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "content_private.h"
#include "retry.h"

#define NUMBERS_MAX 5 /* in one record */

/* `payload` is all of it, the ino first. */
static int append_record(struct stfs_content *content, struct stfs_stage *stage, enum stfs_record_type type,
			 struct stfs_slice payload)
{
	int r = stfs_journal_append(stfs_stage_journal(stage), type, payload);

	/* What it means for the next sync. */
	if (r == 0 && type != STFS_RECORD_ATTR && type != STFS_RECORD_DAMAGED) {
		content->vouched = type == STFS_RECORD_SYNCED;
		content->synced &= content->vouched;
	}
	return r;
}

int stfs_content_journal(struct stfs_content *content, struct stfs_stage *stage, enum stfs_record_type type,
			 struct stfs_slice payload)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };
	int r;

	if (content->dropped)
		return 0;
	r = stfs_payload_u64(&buf, content->ino);
	if (r == 0)
		r = stfs_buf_append(&buf, payload.p, payload.len);
	return r < 0 ? r : append_record(content, stage, type, stfs_buf_slice(&buf));
}

int stfs_content_journal_numbers(struct stfs_content *content, struct stfs_stage *stage, enum stfs_record_type type,
				 const uint64_t *numbers, size_t n)
{
	uint64_t words[1 + NUMBERS_MAX] = { htole64(content->ino) };

	if (content->dropped)
		return 0;
	if (n > NUMBERS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		words[1 + i] = htole64(numbers[i]);
	return append_record(content, stage, type,
			     (struct stfs_slice){ (const char *)words, (1 + n) * sizeof(words[0]) });
}

void stfs_content_touch(struct stfs_content *content)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	/* Strictly growing: a change within one tick of the clock must show too. */
	if (now.tv_sec < content->attr.mtime.tv_sec ||
	    (now.tv_sec == content->attr.mtime.tv_sec && now.tv_nsec <= content->attr.mtime.tv_nsec)) {
		now = content->attr.mtime;
		if (++now.tv_nsec == 1000000000) {
			now.tv_sec++;
			now.tv_nsec = 0;
		}
	}
	content->attr.mtime = now;
	content->edited = true;
	content->synced = false;
}

int stfs_content_journal_damage(struct stfs_content *content, struct stfs_stage *stage)
{
	uint64_t damage = content->damage;
	int r = stfs_content_journal_numbers(content, stage, STFS_RECORD_DAMAGED, &damage, 1);

	if (r == 0)
		content->damage_kept = true;
	return r;
}

/* Damage is remembered even when it cannot be written down. */
static void set_damage(struct stfs_content *content, struct stfs_stage *stage, enum stfs_damage damage)
{
	content->damage = damage;
	content->edited = true;
	(void)!stfs_content_journal_damage(content, stage);
}

/* Makes `text` (handed over on success) the whole content. */
static int set_text(struct stfs_content *content, struct stfs_stage *stage, struct stfs_buf *text)
{
	_cleanup_buf_ struct stfs_buf payload = { 0 };
	int r = stfs_payload_bytes(&payload, stfs_buf_slice(text));

	if (r == 0)
		r = stfs_content_journal(content, stage, STFS_RECORD_TEXT, stfs_buf_slice(&payload));
	if (r < 0)
		return r;
	stfs_buf_fini(&content->text);
	content->text = *text;
	*text = (struct stfs_buf){ 0 };
	content->in_memory = true;
	content->run_size = 0;
	content->size = content->text.len;
	stfs_content_mend(content);
	stfs_content_touch(content);
	return 0;
}

/* The first `size` bytes of the content, which is in memory or an untouched run, then zeros. */
static int load_text(struct stfs_content *content, size_t size, struct stfs_buf *text)
{
	size_t have = (size_t)STFS_MIN(content->size, size);
	int r = stfs_buf_reserve(text, size);

	if (r < 0)
		return r;
	if (have && content->in_memory)
		memcpy(text->data, content->text.data, have);
	else if (have)
		r = stfs_content_read_run(content, 0, text->data, have);
	if (r < 0)
		return r;
	memset(text->data + have, 0, size - have + 1);
	text->len = size;
	return 0;
}

static bool is_small(const struct stfs_content *content, uint64_t size)
{
	return !content->number && size <= STFS_SMALL_MAX && content->size <= STFS_SMALL_MAX;
}

static int write_text(struct stfs_content *content, struct stfs_stage *stage, const void *data, size_t size,
		      uint64_t offset)
{
	_cleanup_buf_ struct stfs_buf text = { 0 };
	int r = load_text(content, (size_t)STFS_MAX(content->size, offset + size), &text);

	if (r < 0)
		return r;
	memcpy(text.data + offset, data, size);
	return set_text(content, stage, &text);
}

int stfs_content_tell_staged(struct stfs_content *content, struct stfs_stage *stage, uint64_t number, int fd,
			     bool over_run)
{
	const struct stfs_os *os = stfs_stage_os(stage);
	bool was_synced = content->synced_size != UINT64_MAX && !over_run;
	int r = 0;

	/* The journal may get to the disk at any time, and lead away from where the bytes are durable. */
	if (was_synced)
		r = STFS_RETRY(os->fdatasync(os->user, fd)) < 0 ? -errno : stfs_stage_sync_dir(stage);
	if (r == 0)
		r = stfs_content_journal_numbers(content, stage, STFS_RECORD_STAGED,
						 (uint64_t[]){ number, content->size, content->shift, over_run }, 4);
	if (r < 0)
		return r;
	content->synced_size = UINT64_MAX;
	if (was_synced && stfs_content_journal_numbers(content, stage, STFS_RECORD_SYNCED, &content->size, 1) == 0)
		content->synced_size = content->size;
	return 0;
}

int stfs_content_become_staged(struct stfs_content *content, struct stfs_stage *stage)
{
	bool whole = content->in_memory || content->run_size == 0;
	struct stfs_shared_fd *open;
	uint64_t number;
	int fd, r;

	if (content->number)
		return stfs_content_need_fd(content);
	r = stfs_stage_file_create(stage, &number, &fd);
	if (r < 0)
		return r;
	open = stfs_shared_fd_new(fd);
	if (!open) {
		close(fd);
		r = -ENOMEM;
	}
	if (r == 0 && content->in_memory)
		r = stfs_os_write_full(stfs_stage_os(stage), fd, content->text.data, content->text.len, 0, NULL);
	if (r == 0)
		r = stfs_content_tell_staged(content, stage, number, fd, !whole);
	if (r < 0) {
		stfs_shared_fd_unref(open);
		stfs_stage_file_remove(stage, number);
		return r;
	}
	content->stage = stage;
	content->number = number;
	content->open = open;
	content->whole = whole;
	content->in_memory = false;
	stfs_buf_fini(&content->text);
	return 0;
}

/* Notes that bytes begin to end are in the staged file now. */
static int note_range(struct stfs_content *content, struct stfs_stage *stage, uint64_t begin, uint64_t end)
{
	bool grew = false;
	int r = 0;

	if (content->whole || begin == end)
		return 0;
	r = stfs_ranges_add(&content->ranges, begin, end, &grew);
	if (r == 0 && grew)
		r = stfs_content_journal_numbers(content, stage, STFS_RECORD_RANGE, (uint64_t[]){ begin, end }, 2);
	return r;
}

static int write_staged(struct stfs_content *content, struct stfs_stage *stage, const void *data, size_t size,
			uint64_t offset, size_t *ret_written)
{
	size_t written = 0;
	/* Room first: bytes that are written must be told of. */
	int error, r = stfs_ranges_reserve(&content->ranges);

	if (r == 0)
		r = stfs_content_become_staged(content, stage);
	if (r < 0)
		return r;
	error = stfs_os_write_full(stfs_stage_os(stage), stfs_content_fd(content), data, size, content->shift + offset,
				   &written);
	r = note_range(content, stage, offset, offset + written);
	if (error < 0 || r < 0)
		set_damage(content, stage, STFS_DAMAGE_WRITE);
	if (r < 0)
		return r;
	if (written) {
		content->size = STFS_MAX(content->size, offset + written);
		stfs_content_touch(content);
	}
	*ret_written = written;
	return written ? 0 : error;
}

int stfs_content_write(struct stfs_content *content, struct stfs_stage *stage, const void *data, size_t size,
		       uint64_t offset, size_t *ret_written)
{
	int r;

	*ret_written = 0;
	if (size == 0)
		return 0;
	if (size > INT64_MAX || offset > INT64_MAX - size)
		return -EFBIG;
	r = stfs_stage_create(stage);
	if (r < 0)
		return r;
	pthread_mutex_lock(&content->lock);
	if (offset + size > INT64_MAX - content->shift) {
		r = -EFBIG;
	} else if (content->handed_on && offset + size > content->size) {
		r = -ESTALE;
	} else if (is_small(content, offset + size)) {
		r = write_text(content, stage, data, size, offset);
		if (r == 0)
			*ret_written = size;
	} else {
		r = write_staged(content, stage, data, size, offset, ret_written);
		stfs_content_release_fd(content);
	}
	pthread_mutex_unlock(&content->lock);
	return r;
}

/* Bytes of the model and staged ones from `size` on count no more, and must not come back when the file grows again. */
static void forget_staged_end(struct stfs_content *content, struct stfs_stage *stage, uint64_t size)
{
	const struct stfs_os *os = stfs_stage_os(stage);
	uint64_t begin = content->shift + size;
	struct stat st;

	stfs_ranges_cut(&content->ranges, size);
	content->run_size = STFS_MIN(content->run_size, size);
	if (STFS_RETRY(os->fstat(os->user, stfs_content_fd(content), &st)) == 0 && (uint64_t)st.st_size > begin &&
	    STFS_RETRY(os->ftruncate(os->user, stfs_content_fd(content), (off_t)begin)) < 0)
		set_damage(content, stage, STFS_DAMAGE_WRITE);
}

/* An empty file is whole again. The journal must hear of it if it speaks of damage, or was never told the size. */
static int mend_staged(struct stfs_content *content, struct stfs_stage *stage)
{
	uint64_t size = 0;
	int r = 0;

	if (content->whole && content->damage)
		r = stfs_content_journal_numbers(content, stage, STFS_RECORD_SIZE, &size, 1);
	if (r == 0)
		stfs_content_mend(content);
	return r;
}

/* Cuts or grows staged bytes. What is whole has the size of its file; a size over a run must be written down. */
static int resize_staged(struct stfs_content *content, struct stfs_stage *stage, uint64_t size)
{
	const struct stfs_os *os = stfs_stage_os(stage);
	off_t end = (off_t)(content->shift + size);
	int r = stfs_content_become_staged(content, stage);

	if (r < 0)
		return r;
	if (content->whole) {
		if (STFS_RETRY(os->ftruncate(os->user, stfs_content_fd(content), end)) < 0)
			return -errno;
	} else {
		r = stfs_content_journal_numbers(content, stage, STFS_RECORD_SIZE, &size, 1);
		if (r < 0)
			return r;
		forget_staged_end(content, stage, size);
	}
	content->size = size;
	if (size == 0)
		r = mend_staged(content, stage);
	stfs_content_touch(content);
	return r;
}

static int resize(struct stfs_content *content, struct stfs_stage *stage, uint64_t size)
{
	_cleanup_buf_ struct stfs_buf text = { 0 };
	int r;

	/* A large run that is cut to little needs no staged file either. */
	if (content->number || size > STFS_SMALL_MAX || (content->in_memory && content->size > STFS_SMALL_MAX))
		return resize_staged(content, stage, size);
	r = load_text(content, (size_t)size, &text);
	return r < 0 ? r : set_text(content, stage, &text);
}

/* With `grow` a content that is larger stays as it is. */
static int change_size(struct stfs_content *content, struct stfs_stage *stage, uint64_t size, bool grow)
{
	int r;

	r = stfs_stage_create(stage);
	if (r < 0)
		return r;
	pthread_mutex_lock(&content->lock);
	if (grow && size <= content->size) {
		r = 0;
	} else if (size > INT64_MAX - content->shift) {
		r = -EFBIG;
	} else if (content->handed_on && size != content->size) {
		r = -ESTALE;
	} else if (size != content->size || size == 0) {
		r = resize(content, stage, size);
		stfs_content_release_fd(content);
	}
	pthread_mutex_unlock(&content->lock);
	return r;
}

int stfs_content_truncate(struct stfs_content *content, struct stfs_stage *stage, uint64_t size)
{
	return change_size(content, stage, size, false);
}

int stfs_content_grow(struct stfs_content *content, struct stfs_stage *stage, uint64_t size)
{
	return change_size(content, stage, size, true);
}

/* Whether the journal does not say yet that what is staged is on disk. */
static bool needs_word(const struct stfs_content *content)
{
	return !content->vouched || content->synced_size != content->size;
}

bool stfs_content_needs_word(struct stfs_content *content)
{
	bool needs;

	pthread_mutex_lock(&content->lock);
	needs = content->number && needs_word(content);
	pthread_mutex_unlock(&content->lock);
	return needs;
}

/* The staged file, then the word of it. */
static int sync_staged(struct stfs_content *content, struct stfs_stage *stage)
{
	const struct stfs_os *os = stfs_stage_os(stage);
	int r;

	if (content->synced)
		return 0;
	/* The kernel may have thrown the bytes away: a second try would say yes and be wrong. */
	if (content->damage == STFS_DAMAGE_SYNC)
		return -EIO;
	r = stfs_content_need_fd(content);
	if (r < 0)
		return r;
	if (STFS_RETRY(os->fdatasync(os->user, stfs_content_fd(content))) < 0) {
		r = -errno;
		set_damage(content, stage, STFS_DAMAGE_SYNC);
		return r;
	}
	if (needs_word(content))
		r = stfs_content_journal_numbers(content, stage, STFS_RECORD_SYNCED, &content->size, 1);
	if (r == 0) {
		content->synced_size = content->size;
		content->synced = true;
	}
	return r;
}

int stfs_content_sync(struct stfs_content *content, struct stfs_stage *stage)
{
	int r = 0;

	pthread_mutex_lock(&content->lock);
	if (content->number) {
		r = sync_staged(content, stage);
		stfs_content_release_fd(content);
	} else if (content->in_memory) {
		content->synced_size = content->size; /* the journal is synced next */
	}
	pthread_mutex_unlock(&content->lock);
	return r;
}

void stfs_content_start_sync(struct stfs_content *content)
{
	pthread_mutex_lock(&content->lock);
	if (content->number && !content->synced && stfs_content_need_fd(content) == 0) {
		/* Only a hint: what fails here fails again in the sync. */
		(void)sync_file_range(stfs_content_fd(content), 0, 0, SYNC_FILE_RANGE_WRITE);
		stfs_content_release_fd(content);
	}
	pthread_mutex_unlock(&content->lock);
}

int stfs_content_set_attr(struct stfs_content *content, struct stfs_stage *stage, const struct stfs_file_attr *attr)
{
	int r = stfs_stage_create(stage);

	if (r < 0)
		return r;
	pthread_mutex_lock(&content->lock);
	r = stfs_content_journal_numbers(content, stage, STFS_RECORD_ATTR,
					 (uint64_t[]){ attr->perm, attr->uid, attr->gid, (uint64_t)attr->mtime.tv_sec,
						       (uint64_t)attr->mtime.tv_nsec },
					 5);
	if (r == 0)
		content->attr = *attr;
	pthread_mutex_unlock(&content->lock);
	return r;
}
