/* SPDX-License-Identifier: Apache-2.0 */
/* Content from the records of a journal, and back. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "content_private.h"

static bool take_numbers(struct stfs_slice *payload, uint64_t *ret, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!stfs_payload_take_u64(payload, &ret[i]))
			return false;
	}
	return payload->len == 0;
}

/* A text of any length: that of a key that became scratch may be long. A staged file before it was lost, and made up for. */
static int replay_text(struct stfs_content *content, struct stfs_slice payload)
{
	struct stfs_slice bytes;
	int r;

	if (!stfs_payload_take_bytes(&payload, &bytes) || payload.len)
		return -EBADMSG;
	content->text.len = 0;
	r = stfs_buf_append(&content->text, bytes.p, bytes.len);
	if (r < 0)
		return r;
	stfs_content_unstage(content);
	content->in_memory = true;
	content->run_size = 0;
	content->size = bytes.len;
	stfs_content_mend(content);
	return 0;
}

static int replay_staged(struct stfs_content *content, struct stfs_stage *stage, struct stfs_slice payload)
{
	uint64_t v[4];

	if (!take_numbers(&payload, v, 4) || v[0] == 0 || v[2] > INT64_MAX || v[1] > INT64_MAX - v[2])
		return -EBADMSG;
	content->stage = stage;
	content->number = v[0];
	content->size = v[1];
	content->shift = v[2];
	content->whole = !v[3];
	content->synced_size = UINT64_MAX; /* until a SYNCED comes */
	content->in_memory = false;
	stfs_buf_fini(&content->text);
	if (content->whole) {
		content->run_size = 0;
		stfs_ranges_fini(&content->ranges);
		stfs_ranges_fini(&content->unsynced);
	}
	return 0;
}

static int replay_range(struct stfs_content *content, bool same_boot, struct stfs_slice payload)
{
	uint64_t v[2];
	int r = 0;

	if (!take_numbers(&payload, v, 2) || v[0] >= v[1] || v[1] > INT64_MAX || content->whole || !content->number)
		return -EBADMSG;
	content->size = STFS_MAX(content->size, v[1]);
	if (!same_boot) {
		content->damage = STFS_DAMAGE_POWER; /* until a SYNCED comes */
		r = stfs_ranges_add(&content->unsynced, v[0], v[1], NULL);
	}
	return r < 0 ? r : stfs_ranges_add(&content->ranges, v[0], v[1], NULL);
}

static int replay_size(struct stfs_content *content, struct stfs_slice payload)
{
	uint64_t size;

	/* The size of what is whole is that of its file; only that it was emptied is told, if it was damaged. */
	if (!take_numbers(&payload, &size, 1) || size > INT64_MAX || !content->number || (content->whole && size))
		return -EBADMSG;
	stfs_ranges_cut(&content->ranges, size);
	stfs_ranges_cut(&content->unsynced, size);
	content->run_size = STFS_MIN(content->run_size, size);
	content->size = size;
	if (size == 0)
		stfs_content_mend(content);
	return 0;
}

static int replay_synced(struct stfs_content *content, struct stfs_slice payload)
{
	if (!take_numbers(&payload, &content->synced_size, 1))
		return -EBADMSG;
	/* What was damaged by then has holes that a sync does not fill. */
	if (content->damage == STFS_DAMAGE_POWER && !content->damage_kept)
		content->damage = STFS_DAMAGE_NONE;
	if (content->damage != STFS_DAMAGE_POWER)
		stfs_ranges_fini(&content->unsynced);
	content->vouched = true;
	return 0;
}

static int replay_damaged(struct stfs_content *content, struct stfs_slice payload)
{
	uint64_t damage;

	if (!take_numbers(&payload, &damage, 1) || damage == STFS_DAMAGE_NONE || damage >= STFS_N_DAMAGES)
		return -EBADMSG;
	content->damage = (enum stfs_damage)damage;
	content->damage_kept = true;
	return 0;
}

static int replay_attr(struct stfs_content *content, struct stfs_slice payload)
{
	uint64_t v[5];

	if (!take_numbers(&payload, v, 5))
		return -EBADMSG;
	content->attr = (struct stfs_file_attr){
		.perm = (mode_t)(v[0] & 07777),
		.uid = (uid_t)v[1],
		.gid = (gid_t)v[2],
		.mtime = { (time_t)v[3], (long)(v[4] % 1000000000) },
	};
	return 0;
}

int stfs_content_replay(struct stfs_content *content, struct stfs_stage *stage, const struct stfs_record *record,
			struct stfs_slice payload)
{
	if (record->type == STFS_RECORD_SYNCED)
		return replay_synced(content, payload);
	content->replayed = record->time;
	if (record->type == STFS_RECORD_ATTR)
		return replay_attr(content, payload);
	content->edited = true;
	content->vouched &= record->type == STFS_RECORD_DAMAGED;
	content->attr.mtime = stfs_record_mtime(record);
	switch ((enum stfs_record_type)record->type) {
	case STFS_RECORD_TEXT:
		return replay_text(content, payload);
	case STFS_RECORD_STAGED:
		return replay_staged(content, stage, payload);
	case STFS_RECORD_RANGE:
		return replay_range(content, record->same_boot, payload);
	case STFS_RECORD_SIZE:
		return replay_size(content, payload);
	case STFS_RECORD_DAMAGED:
		return replay_damaged(content, payload);
	default:
		return -EBADMSG;
	}
}

void stfs_content_replay_split(struct stfs_content *content, struct stfs_content *other)
{
	uint64_t number = stfs_content_stage_number(other);

	if (content == other)
		return;
	pthread_mutex_lock(&content->lock);
	content->handed_on |= content->number == number;
	pthread_mutex_unlock(&content->lock);
}

/* The staged file is gone. What is left is an empty file that says so: the rest of the journal is worth having. */
static void lose(struct stfs_content *content)
{
	stfs_content_unstage(content);
	stfs_buf_fini(&content->text);
	content->in_memory = true;
	content->run_size = content->size = 0;
	content->damage = STFS_DAMAGE_POWER;
}

static void learn_size(struct stfs_content *content, const struct stat *st, bool same_boot)
{
	uint64_t written = (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec;

	content->size = (uint64_t)st->st_size > content->shift ? (uint64_t)st->st_size - content->shift : 0;
	if (!same_boot && content->size != content->synced_size && !content->damage)
		content->damage = STFS_DAMAGE_POWER;
	/* Writing to it leaves no record, but this. */
	if (written > content->replayed)
		content->attr.mtime = st->st_mtim;
}

/* Takes out of the ranges what of `at` to `end` the staged file does not have. */
static int forget_holes(struct stfs_content *content, uint64_t at, uint64_t end)
{
	int fd = stfs_content_fd(content), r = 0;

	while (r == 0 && at < end) {
		off_t data = lseek(fd, (off_t)(content->shift + at), SEEK_DATA), hole;
		uint64_t begin;

		if (data < 0 && errno != ENXIO)
			return 0; /* nobody can tell */
		begin = data < 0 ? end : STFS_MIN((uint64_t)data - content->shift, end);
		r = stfs_ranges_remove(&content->ranges, at, begin);
		hole = begin < end ? lseek(fd, data, SEEK_HOLE) : -1;
		if (hole < 0)
			break;
		at = (uint64_t)hole - content->shift;
	}
	return r;
}

/*
 * A power cut may leave the size of a file and no bytes: where they were never synced, those of the model are shown again, and
 * not zeros that nobody wrote.
 */
static int forget_unwritten(struct stfs_content *content)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < content->unsynced.n; i++)
		r = forget_holes(content, content->unsynced.items[i].begin,
				 STFS_MIN(content->unsynced.items[i].end, content->run_size));
	stfs_ranges_fini(&content->unsynced);
	return r;
}

int stfs_content_replay_end(struct stfs_content *content, bool same_boot)
{
	struct stat st;
	int r;

	/* A text of the journal is on disk, as far as anybody can tell. */
	if (content->in_memory)
		content->synced_size = content->size;
	if (!content->number)
		return 0;
	r = stfs_content_need_fd(content);
	if (r == -ENOENT) {
		lose(content);
		return 0;
	}
	if (r < 0)
		return r;
	r = fstat(stfs_content_fd(content), &st) < 0 ? -errno : forget_unwritten(content);
	stfs_content_release_fd(content);
	if (r == 0 && content->whole)
		learn_size(content, &st, same_boot);
	return r;
}

bool stfs_content_has_new_damage(struct stfs_content *content)
{
	return content->damage && !content->damage_kept;
}

int stfs_content_keep_damage(struct stfs_content *content, struct stfs_stage *stage)
{
	int r;

	pthread_mutex_lock(&content->lock);
	r = stfs_content_journal_damage(content, stage);
	pthread_mutex_unlock(&content->lock);
	return r;
}

static int dump_record(struct stfs_content *content, struct stfs_journal *journal, enum stfs_record_type type,
		       const uint64_t *numbers, size_t n, const struct stfs_slice *bytes)
{
	_cleanup_buf_ struct stfs_buf payload = { 0 };
	int r = stfs_payload_u64(&payload, content->ino);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = stfs_payload_u64(&payload, numbers[i]);
	if (r == 0 && bytes)
		r = stfs_payload_bytes(&payload, *bytes);
	return r < 0 ? r : stfs_journal_append(journal, type, stfs_buf_slice(&payload));
}

int stfs_content_dump(struct stfs_content *content, struct stfs_journal *journal)
{
	const struct stfs_file_attr *attr = &content->attr;
	struct stfs_slice text;
	int r;

	pthread_mutex_lock(&content->lock);
	text = stfs_buf_slice(&content->text);
	if (content->in_memory)
		r = dump_record(content, journal, STFS_RECORD_TEXT, NULL, 0, &text);
	else if (content->whole)
		r = dump_record(content, journal, STFS_RECORD_STAGED,
				(uint64_t[]){ content->number, content->size, content->shift, 0 }, 4, NULL);
	else
		r = -EINVAL; /* it leans on the model: stfs_content_detach comes first */
	if (r == 0 && content->whole && content->synced_size != UINT64_MAX)
		r = dump_record(content, journal, STFS_RECORD_SYNCED, &content->synced_size, 1, NULL);
	if (r == 0 && content->damage)
		r = dump_record(content, journal, STFS_RECORD_DAMAGED, (uint64_t[]){ content->damage }, 1, NULL);
	if (r == 0)
		r = dump_record(content, journal, STFS_RECORD_ATTR,
				(uint64_t[]){ attr->perm, attr->uid, attr->gid, (uint64_t)attr->mtime.tv_sec,
					      (uint64_t)attr->mtime.tv_nsec },
				5, NULL);
	pthread_mutex_unlock(&content->lock);
	return r;
}
