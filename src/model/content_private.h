/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of content share. Nobody else includes this. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "content.h"
#include "ranges.h"

/* Why bytes cannot be committed. The numbers are those of the journal. */
enum stfs_damage {
	STFS_DAMAGE_NONE,
	STFS_DAMAGE_WRITE,
	STFS_DAMAGE_SYNC,
	STFS_DAMAGE_POWER,
	STFS_N_DAMAGES,
};

/*
 * Three states: a text in memory (`in_memory`); a run of the model, untouched (`number` 0); staged bytes, over a run or, when
 * `whole`, alone. `lock` protects all but ino and refs.
 */
struct stfs_content {
	atomic_uint refs;
	uint64_t ino;
	pthread_mutex_t lock;
	struct stfs_file_attr attr;
	uint64_t size;
	bool edited;
	bool dropped; /* gone from the tree: staged bytes go with the last reference */
	bool kept; /* staged bytes that were synced, and the journal cannot be told on disk that they go: swept later */
	bool handed_on; /* the staged bytes are another content's: never removed or resized by this one */
	uint64_t heir;  /* inode number of that one, 0 when nobody writes through this one any more */
	uint64_t skip;  /* where in this one its bytes begin */
	enum stfs_damage damage;
	bool damage_kept;         /* the journal says so too */
	uint64_t replayed;        /* time of the last record that was replayed but for SYNCED, nanoseconds since 1970 */
	unsigned long long bound; /* generation of the journal that knows this content */

	bool in_memory;
	struct stfs_buf text;

	struct stfs_snapshot *file;   /* of the run, one reference */
	uint64_t run_begin, run_size; /* bytes 0 to run_size that are not staged are the model's */

	struct stfs_stage *stage;    /* borrowed, once there are staged bytes */
	uint64_t number, shift;      /* the staged file, and where in it byte 0 is */
	struct stfs_shared_fd *open; /* the staged file; NULL while nobody has it open */
	unsigned openers;
	bool whole;
	struct stfs_ranges ranges; /* unused when whole */
	struct stfs_ranges
		unsynced;     /* of those, while the journal is replayed: of another boot, and not synced since */
	uint64_t synced_size; /* of a text or what is whole: size when it was last synced, UINT64_MAX for never */
	bool synced;          /* the staged file has not been changed since it was synced */
	bool vouched;         /* the last the journal says of its bytes is SYNCED */
};

/* The descriptor of the staged file, -1 when it is not open. Called with the lock held. */
static inline int stfs_content_fd(const struct stfs_content *content)
{
	return content->open ? content->open->fd : -1;
}

/* Opens the staged file when it is not. Called with the lock held. */
int stfs_content_need_fd(struct stfs_content *content);

/* Closes the staged file when nobody has it open. Called with the lock held. */
void stfs_content_release_fd(struct stfs_content *content);

/*
 * Appends a record about this content: its ino, then `payload` (borrowed, may be empty). Of what is gone from the tree nothing is
 * written: nobody will ask for it again, and its number may be another file's by now.
 */
int stfs_content_journal(struct stfs_content *content, struct stfs_stage *stage, enum stfs_record_type type,
			 struct stfs_slice payload) STFS_MUST_CHECK;

/* The same for a record of numbers, 5 at most. Takes no memory, so that what was done can be told of. */
int stfs_content_journal_numbers(struct stfs_content *content, struct stfs_stage *stage, enum stfs_record_type type,
				 const uint64_t *numbers, size_t n) STFS_MUST_CHECK;

/* Says in the journal that the content is damaged, once. */
int stfs_content_journal_damage(struct stfs_content *content, struct stfs_stage *stage) STFS_MUST_CHECK;

/* What the content is now is whole, whatever happened before. Called with the lock held. */
static inline void stfs_content_mend(struct stfs_content *content)
{
	content->damage = STFS_DAMAGE_NONE;
	content->damage_kept = false;
}

/* Forgets the staged file: what it held counts no more. Called with the lock held. */
static inline void stfs_content_unstage(struct stfs_content *content)
{
	content->number = content->shift = 0;
	content->whole = false;
	content->synced_size = UINT64_MAX;
	stfs_ranges_fini(&content->ranges);
	stfs_ranges_fini(&content->unsynced);
}

/* Sets the mtime to now, or a little later than it was. Called with the lock held. */
void stfs_content_touch(struct stfs_content *content);

/*
 * Writes down that the bytes of the content are in the staged file `number`, open as `fd`, laid over the run or alone. What was
 * synced where it was before is so there first. Called with the lock held.
 */
int stfs_content_tell_staged(struct stfs_content *content, struct stfs_stage *stage, uint64_t number, int fd,
			     bool over_run) STFS_MUST_CHECK;

/*
 * Moves the content to a new staged file unless it has one: a text with its bytes, a run without, to be laid over. Called with the
 * lock held; the staged file is open then.
 */
int stfs_content_become_staged(struct stfs_content *content, struct stfs_stage *stage) STFS_MUST_CHECK;

/* Makes it a run of the model. Called with the lock held. */
void stfs_content_set_run(struct stfs_content *content, const struct stfs_run *run);

/* An object with nothing in it. */
int stfs_content_alloc(uint64_t ino, const struct stfs_file_attr *attr, struct stfs_content **ret) STFS_MUST_CHECK;

/* Reads bytes of the run into `data` with pread, the file's identity checked before and after. */
int stfs_content_read_run(struct stfs_content *content, uint64_t offset, void *data, size_t len) STFS_MUST_CHECK;
