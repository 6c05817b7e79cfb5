/* SPDX-License-Identifier: Apache-2.0 */
/* Content that changes hands: references to the model, bytes of another file, what a commit made of it. */
#include <errno.h>
#include <string.h>

#include "content_private.h"
#include "retry.h"

/* Whether a run goes on where the content, the beginning of the same, ends: a kernel copies 2 GiB at a time. */
static bool is_continued(const struct stfs_content *content, const struct stfs_run *run)
{
	return !content->in_memory && !content->number && content->file == run->file &&
	       content->run_begin == run->begin && content->run_size == content->size && content->size < run->size;
}

/* Whether the content may refer to a run: it is empty, and nobody may still look at bytes of another file through it. */
static bool may_refer(const struct stfs_content *content, const struct stfs_run *run)
{
	if (is_continued(content, run))
		return true;
	return !content->size && !content->number && (!content->file || content->file == run->file);
}

void stfs_content_set_run(struct stfs_content *content, const struct stfs_run *run)
{
	stfs_buf_fini(&content->text);
	content->in_memory = false;
	if (!content->file)
		content->file = stfs_snapshot_ref(run->file);
	content->run_begin = run->begin;
	content->run_size = content->size = run->size;
	stfs_content_touch(content);
}

int stfs_content_refer(struct stfs_content *content, struct stfs_stage *stage, uint64_t file,
		       const struct stfs_run *run)
{
	int r = stfs_stage_create(stage);

	if (r < 0)
		return r;
	pthread_mutex_lock(&content->lock);
	if (!may_refer(content, run))
		r = -EINVAL;
	if (r == 0)
		r = stfs_content_journal_numbers(content, stage, STFS_RECORD_RUN,
						 (uint64_t[]){ file, run->begin, run->size }, 3);
	if (r == 0)
		stfs_content_set_run(content, run);
	pthread_mutex_unlock(&content->lock);
	return r;
}

int stfs_content_replay_run(struct stfs_content *content, const struct stfs_record *record, const struct stfs_run *run)
{
	if (!may_refer(content, run))
		return -EBADMSG;
	stfs_content_set_run(content, run);
	content->replayed = record->time;
	content->attr.mtime = stfs_record_mtime(record);
	return 0;
}

/* What was synced of the bytes before they changed hands still is. Without this word of it a later sync tells. */
static void keep_word(struct stfs_content *content, const struct stfs_content *from, struct stfs_stage *stage,
		      uint64_t size)
{
	if (stfs_content_journal_numbers(content, stage, STFS_RECORD_SYNCED, &size, 1) < 0)
		return;
	content->synced_size = size;
	content->synced = from->synced;
}

/* Sets up `content` over the bytes of `from`, and says so in the journal. Called with the lock of `from` held. */
static int take_bytes(struct stfs_content *content, struct stfs_content *from, struct stfs_stage *stage, uint64_t skip)
{
	int r;

	if (!from->whole || from->handed_on || from->size < skip)
		return -EINVAL;
	content->stage = from->stage;
	content->number = from->number;
	content->shift = from->shift + skip;
	content->size = from->size - skip;
	content->whole = true;
	content->damage = from->damage;
	stfs_content_touch(content);
	r = stfs_content_journal_numbers(content, stage, STFS_RECORD_STAGED,
					 (uint64_t[]){ content->number, content->size, content->shift, 0 }, 4);
	if (r < 0)
		return r;
	from->handed_on = true;
	from->heir = content->ino;
	from->skip = skip;
	if (content->damage)
		(void)!stfs_content_journal_damage(content, stage); /* remembered all the same, as any damage */
	if (from->synced_size != UINT64_MAX && from->synced_size >= skip)
		keep_word(content, from, stage, from->synced_size - skip);
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
	r = take_bytes(content, from, stage, skip);
	pthread_mutex_unlock(&from->lock);
	if (r < 0)
		return r;
	*ret = stfs_steal(content);
	return 0;
}

uint64_t stfs_content_heir(struct stfs_content *content, uint64_t *ret_skip)
{
	uint64_t heir;

	pthread_mutex_lock(&content->lock);
	heir = content->heir;
	*ret_skip = content->skip;
	pthread_mutex_unlock(&content->lock);
	return heir;
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
			r = stfs_os_write_full(stfs_stage_os(stage), stfs_content_fd(content), chunk, n,
					       content->shift + at, NULL);
		at += n;
	}
	return r;
}

int stfs_content_detach(struct stfs_content *content, struct stfs_stage *stage)
{
	const struct stfs_os *os = stfs_stage_os(stage);
	int r = 0;

	pthread_mutex_lock(&content->lock);
	/* A long text, of a key, is more than the journal takes. */
	if (content->in_memory ? content->size > STFS_SMALL_MAX : !content->whole) {
		r = stfs_content_become_staged(content, stage);
		if (r == 0)
			r = fill_from_run(content, stage);
		if (r == 0 && STFS_RETRY(os->ftruncate(os->user, stfs_content_fd(content),
						       (off_t)(content->shift + content->size))) < 0)
			r = -errno;
		if (r == 0)
			r = stfs_content_tell_staged(content, stage, content->number, stfs_content_fd(content), false);
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

int stfs_content_make_whole(struct stfs_content *content, struct stfs_stage *stage)
{
	int r = stfs_content_detach(content, stage);

	if (r < 0)
		return r;
	pthread_mutex_lock(&content->lock);
	r = stfs_content_become_staged(content, stage);
	stfs_content_release_fd(content);
	pthread_mutex_unlock(&content->lock);
	return r;
}

/* Forgets staged bytes, which a commit has put into the model. Called with the lock held. */
static void forget_staged(struct stfs_content *content)
{
	stfs_snapshot_unref(stfs_steal(content->file));
	stfs_shared_fd_unref(stfs_steal(content->open));
	stfs_content_unstage(content);
	stfs_content_mend(content);
	content->in_memory = content->edited = false;
	content->run_size = 0;
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

void stfs_content_rebase_text(struct stfs_content *content, struct stfs_buf *text)
{
	pthread_mutex_lock(&content->lock);
	if (!content->in_memory || !stfs_slice_equal(stfs_buf_slice(&content->text), stfs_buf_slice(text))) {
		stfs_buf_fini(&content->text);
		content->text = *text;
		*text = (struct stfs_buf){ 0 };
		content->size = content->text.len;
		stfs_content_touch(content);
	}
	forget_staged(content);
	content->in_memory = true;
	stfs_content_release_fd(content);
	pthread_mutex_unlock(&content->lock);
}
