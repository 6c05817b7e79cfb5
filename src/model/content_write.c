/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing content. Order in every function: bytes to the staged file, then the record, then memory; what fails on the way was
 * not accepted. A record that speaks of bytes never comes before them.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "content_private.h"

#define DAMAGE_WRITE "a write to it failed half-way"
#define DAMAGE_SYNC "its staged bytes could not be written to disk"

int stfs_content_journal(struct stfs_content *content, struct stfs_stage *stage, enum stfs_record_type type,
			 struct stfs_slice payload)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };
	int r = stfs_payload_u64(&buf, content->ino);

	if (r == 0)
		r = stfs_buf_append(&buf, payload.p, payload.len);
	if (r < 0)
		return r;
	return stfs_journal_append(stfs_stage_journal(stage), type, stfs_buf_slice(&buf));
}

int stfs_content_journal_numbers(struct stfs_content *content, struct stfs_stage *stage, enum stfs_record_type type,
				 const uint64_t *numbers, size_t n)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = stfs_payload_u64(&buf, numbers[i]);
	return r < 0 ? r : stfs_content_journal(content, stage, type, stfs_buf_slice(&buf));
}

static void touch(struct stfs_content *content)
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
}

/* Damage is remembered even when it cannot be written down. */
static void set_damage(struct stfs_content *content, struct stfs_stage *stage, const char *damage)
{
	content->damage = damage;
	content->edited = true;
	(void)!stfs_content_journal(content, stage, STFS_RECORD_DAMAGED, (struct stfs_slice){ 0 });
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
	content->damage = NULL;
	touch(content);
	return 0;
}

/* The first `size` bytes of the content, which is in memory or an untouched run, then zeros. */
static int load_text(struct stfs_content *content, size_t size, struct stfs_buf *text)
{
	size_t have = (size_t)STFS_MIN(content->size, size);
	int r = stfs_buf_reserve(text, size);

	if (r < 0)
		return r;
	if (content->in_memory)
		memcpy(text->data, content->text.data, have);
	else
		r = have ? stfs_content_read_run(content, 0, text->data, have) : 0;
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

/* Moves the content to a new staged file: a text with its bytes, a run without, to be laid over. */
static int become_staged(struct stfs_content *content, struct stfs_stage *stage)
{
	bool whole = content->in_memory || content->run_size == 0;
	uint64_t number;
	int fd, r;

	if (content->number)
		return stfs_content_need_fd(content);
	r = stfs_stage_file_create(stage, &number, &fd);
	if (r < 0)
		return r;
	if (content->in_memory)
		r = stfs_os_write_full(stfs_stage_os(stage), fd, content->text.data, content->text.len, 0, NULL);
	if (r == 0)
		r = stfs_content_journal_numbers(content, stage, STFS_RECORD_STAGED,
						 (uint64_t[]){ number, content->size, 0, !whole }, 4);
	if (r < 0) {
		close(fd);
		stfs_stage_file_remove(stage, number);
		return r;
	}
	content->stage = stage;
	content->number = number;
	content->fd = fd;
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
	int error, r = become_staged(content, stage);

	if (r < 0)
		return r;
	error = stfs_os_write_full(stfs_stage_os(stage), content->fd, data, size, content->shift + offset, &written);
	r = note_range(content, stage, offset, offset + written);
	if (error < 0 || r < 0)
		set_damage(content, stage, DAMAGE_WRITE);
	if (r < 0)
		return r;
	if (written) {
		content->size = STFS_MAX(content->size, offset + written);
		touch(content);
	}
	*ret_written = written;
	return written ? 0 : error;
}

int stfs_content_write(struct stfs_content *content, struct stfs_stage *stage, const void *data, size_t size,
		       uint64_t offset, size_t *ret_written)
{
	int r;

	if (offset > INT64_MAX - size - content->shift)
		return -EFBIG;
	r = stfs_stage_create(stage);
	if (r < 0)
		return r;
	pthread_mutex_lock(&content->lock);
	if (is_small(content, offset + size)) {
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

/* Cuts or grows staged bytes. What is whole has the size of its file; a size over a run must be written down. */
static int resize_staged(struct stfs_content *content, struct stfs_stage *stage, uint64_t size)
{
	int r = become_staged(content, stage);

	if (r < 0)
		return r;
	if (content->whole) {
		if (stfs_stage_os(stage)->ftruncate(stfs_stage_os(stage)->user, content->fd,
						    (off_t)(content->shift + size)) < 0)
			return -errno;
	} else {
		r = stfs_content_journal_numbers(content, stage, STFS_RECORD_SIZE, &size, 1);
		if (r < 0)
			return r;
		stfs_ranges_cut(&content->ranges, size);
		content->run_size = STFS_MIN(content->run_size, size);
	}
	content->size = size;
	if (size == 0)
		content->damage = NULL;
	touch(content);
	return 0;
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

int stfs_content_truncate(struct stfs_content *content, struct stfs_stage *stage, uint64_t size)
{
	int r;

	if (size > INT64_MAX - content->shift)
		return -EFBIG;
	r = stfs_stage_create(stage);
	if (r < 0)
		return r;
	pthread_mutex_lock(&content->lock);
	if (size != content->size || size == 0) {
		r = resize(content, stage, size);
		stfs_content_release_fd(content);
	}
	pthread_mutex_unlock(&content->lock);
	return r;
}

static int sync_bytes(struct stfs_content *content, struct stfs_stage *stage)
{
	const struct stfs_os *os = stfs_stage_os(stage);
	int r = stfs_content_need_fd(content);

	if (r < 0)
		return r;
	if (os->fdatasync(os->user, content->fd) < 0) {
		r = -errno;
		/* The kernel may have thrown the bytes away: a second try would say yes and be wrong. */
		set_damage(content, stage, DAMAGE_SYNC);
		return r;
	}
	r = stfs_content_journal_numbers(content, stage, STFS_RECORD_SYNCED, &content->size, 1);
	if (r == 0)
		r = stfs_stage_sync_dir(stage);
	if (r == 0)
		content->synced_size = content->size;
	return r;
}

int stfs_content_sync(struct stfs_content *content, struct stfs_stage *stage)
{
	int r = 0;

	if (!stfs_stage_journal(stage))
		return 0;
	pthread_mutex_lock(&content->lock);
	if (content->number) {
		r = sync_bytes(content, stage);
		stfs_content_release_fd(content);
	}
	pthread_mutex_unlock(&content->lock);
	return r < 0 ? r : stfs_journal_sync(stfs_stage_journal(stage));
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

static void set_run(struct stfs_content *content, const struct stfs_run *run)
{
	stfs_buf_fini(&content->text);
	content->in_memory = false;
	stfs_snapshot_unref(content->file);
	content->file = stfs_snapshot_ref(run->file);
	content->run_begin = run->begin;
	content->run_size = content->size = run->size;
	touch(content);
}

int stfs_content_refer(struct stfs_content *content, struct stfs_stage *stage, uint64_t file, const struct stfs_run *run)
{
	int r = stfs_stage_create(stage);

	if (r < 0)
		return r;
	pthread_mutex_lock(&content->lock);
	if (content->size || content->number || content->file)
		r = -EINVAL;
	if (r == 0)
		r = stfs_content_journal_numbers(content, stage, STFS_RECORD_RUN,
						 (uint64_t[]){ file, run->begin, run->size }, 3);
	if (r == 0)
		set_run(content, run);
	pthread_mutex_unlock(&content->lock);
	return r;
}

int stfs_content_replay_run(struct stfs_content *content, const struct stfs_run *run)
{
	if (content->size || content->number || content->file)
		return -EBADMSG;
	set_run(content, run);
	return 0;
}

int stfs_content_split(struct stfs_content *from, struct stfs_stage *stage, uint64_t ino, uint64_t skip,
		       struct stfs_content **ret)
{
	_cleanup_(stfs_content_unrefp) struct stfs_content *content = NULL;
	struct stfs_file_attr attr;
	int r;

	stfs_content_attr(from, &attr);
	r = stfs_content_alloc(ino, &attr, &content);
	if (r < 0)
		return r;
	pthread_mutex_lock(&from->lock);
	if (!from->number || !from->whole || from->size < skip) {
		r = -EINVAL;
	} else {
		content->stage = from->stage;
		content->number = from->number;
		content->shift = from->shift + skip;
		content->size = from->size - skip;
		content->whole = true;
		content->damage = from->damage;
		touch(content);
		r = stfs_content_journal_numbers(content, stage, STFS_RECORD_STAGED,
						 (uint64_t[]){ content->number, content->size, content->shift, 0 }, 4);
		from->handed_on = r == 0;
	}
	pthread_mutex_unlock(&from->lock);
	if (r < 0)
		return r;
	*ret = stfs_steal(content);
	return 0;
}

/* Copies the bytes of the run that are not staged into the staged file. */
static int fill_from_run(struct stfs_content *content, struct stfs_stage *stage)
{
	char chunk[65536];
	uint64_t at = 0, end;
	int r = 0;

	while (r == 0 && at < content->run_size) {
		size_t n;

		if (stfs_ranges_at(&content->ranges, at, &end)) {
			at = end;
			continue;
		}
		n = (size_t)STFS_MIN(STFS_MIN(end, content->run_size) - at, sizeof(chunk));
		r = stfs_content_read_run(content, at, chunk, n);
		if (r == 0)
			r = stfs_os_write_full(stfs_stage_os(stage), content->fd, chunk, n, content->shift + at, NULL);
		at += n;
	}
	return r;
}

int stfs_content_detach(struct stfs_content *content, struct stfs_stage *stage)
{
	const struct stfs_os *os = stfs_stage_os(stage);
	int r = 0;

	pthread_mutex_lock(&content->lock);
	if (!content->in_memory && !content->whole) {
		r = become_staged(content, stage);
		if (r == 0)
			r = fill_from_run(content, stage);
		if (r == 0 && os->ftruncate(os->user, content->fd, (off_t)(content->shift + content->size)) < 0)
			r = -errno;
		if (r == 0)
			r = stfs_content_journal_numbers(content, stage, STFS_RECORD_STAGED,
							 (uint64_t[]){ content->number, content->size, content->shift, 0 },
							 4);
		if (r == 0) {
			content->whole = true;
			content->run_size = 0;
			stfs_ranges_fini(&content->ranges);
		}
		stfs_content_release_fd(content);
	}
	pthread_mutex_unlock(&content->lock);
	return r;
}

/* Forgets staged bytes, which a commit has put into the model. Called with the lock held. */
static void forget_staged(struct stfs_content *content)
{
	stfs_snapshot_unref(content->retired_file);
	content->retired_file = stfs_steal(content->file);
	stfs_closep(&content->retired_fd);
	content->retired_fd = stfs_steal_fd(&content->fd);
	content->number = content->shift = 0;
	content->whole = content->in_memory = content->edited = false;
	content->damage = NULL;
	content->synced_size = UINT64_MAX;
	content->run_size = 0;
	stfs_ranges_fini(&content->ranges);
}

void stfs_content_rebase_run(struct stfs_content *content, const struct stfs_run *run)
{
	pthread_mutex_lock(&content->lock);
	forget_staged(content);
	stfs_buf_fini(&content->text);
	content->file = stfs_snapshot_ref(run->file);
	content->run_begin = run->begin;
	content->run_size = content->size = run->size;
	stfs_content_release_fd(content);
	pthread_mutex_unlock(&content->lock);
}

void stfs_content_rebase_text(struct stfs_content *content, struct stfs_slice text)
{
	struct stfs_buf copy = { 0 };

	pthread_mutex_lock(&content->lock);
	if (!content->in_memory || !stfs_slice_equal(stfs_buf_slice(&content->text), text)) {
		/* Without memory the text stays as it was written: it means the same. */
		if (stfs_buf_append(&copy, text.p, text.len) == 0) {
			stfs_buf_fini(&content->text);
			content->text = copy;
			content->size = text.len;
			touch(content);
		}
	}
	forget_staged(content);
	content->in_memory = true;
	stfs_content_release_fd(content);
	pthread_mutex_unlock(&content->lock);
}
