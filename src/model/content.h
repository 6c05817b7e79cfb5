/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of one file of a writable tree. They start as a run of a model file or as a small text; a write turns them into
 * a text in memory (and in the journal) as long as they are small, or else into staged bytes over the run: only what was
 * written is staged, and what was not is still the model's.
 *
 * Reference-counted: an open handle keeps the bytes of a file that was removed. Each has its own lock, taken after the view's
 * and before the journal's; every function here may be called from any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "buf.h"
#include "cleanup.h"
#include "diag.h"
#include "lease.h"
#include "record.h"
#include "snapshot.h"
#include "stage.h"

/* Bytes up to which a file lives in memory and in the journal. */
#define STFS_SMALL_MAX 4096

struct stfs_content;

/* What a file keeps beside its bytes. Not committed. */
struct stfs_file_attr {
	mode_t perm;
	uid_t uid;
	gid_t gid;
	struct timespec mtime;
};

/* A run of a model file, as content starts with. */
struct stfs_run {
	struct stfs_snapshot *file; /* borrowed by the functions below, which take a reference of their own */
	uint64_t begin, size;       /* bytes */
};

/* Where a run of a file's bytes is. */
struct stfs_extent {
	const void *mem; /* address, or NULL. May be mapped: hand on, never load from it */
	int fd;          /* the same bytes at `offset` of this file; -1 for bytes in memory only, and for a hole */
	uint64_t offset;
	size_t len;
	bool hole; /* `len` zeros: neither mem nor fd */
};

/* Reads the bytes of an extent, which is still valid, into `data`; those of a file with pread. Returns 0 or -errno. */
int stfs_extent_read(const struct stfs_extent *extent, void *data) STFS_MUST_CHECK;

/* Content that is a run of the model. Returns 0 or -ENOMEM; the caller owns one reference. */
int stfs_content_new_run(uint64_t ino, const struct stfs_run *run, const struct stfs_file_attr *attr,
			 struct stfs_content **ret) STFS_MUST_CHECK;

/* Content that is a text (copied). */
int stfs_content_new_text(uint64_t ino, struct stfs_slice text, const struct stfs_file_attr *attr,
			  struct stfs_content **ret) STFS_MUST_CHECK;

/*
 * Counts an opener: as long as there is one the staged file stays open, and extents that were told stay valid. Without one
 * no descriptor is held, so that thousands of edited files cost none. Returns 0 or -errno.
 */
int stfs_content_open(struct stfs_content *content) STFS_MUST_CHECK;
void stfs_content_close(struct stfs_content *content);

/* Takes and drops a reference. stfs_content_unref takes NULL; the last drop closes, and removes staged bytes from disk if
 * stfs_content_drop was called. */
struct stfs_content *stfs_content_ref(struct stfs_content *content);
void stfs_content_unref(struct stfs_content *content);
STFS_DEFINE_CLEANUP(struct stfs_content, stfs_content_unref)

/*
 * Says that the file is gone from the tree, as the journal does already: its staged bytes are removed from disk with the last
 * reference. If they were synced, so is the journal first. Called with the view locked for writing.
 */
void stfs_content_drop(struct stfs_content *content);
bool stfs_content_is_dropped(struct stfs_content *content);

/* Inode number it belongs to. */
uint64_t stfs_content_ino(const struct stfs_content *content);

/* Size in bytes, and what is kept beside the bytes. */
uint64_t stfs_content_size(struct stfs_content *content);
void stfs_content_attr(struct stfs_content *content, struct stfs_file_attr *ret);

/* Whether bytes or size were ever changed: false as long as it is the run or text it began with. */
bool stfs_content_edited(struct stfs_content *content);

/*
 * Whether the journal of that generation knows which file records of this content are about; the setter says that it does now.
 */
bool stfs_content_is_bound(struct stfs_content *content, unsigned long long generation);
void stfs_content_set_bound(struct stfs_content *content, unsigned long long generation);

/* Number of its staged file, 0 when it has none. */
uint64_t stfs_content_stage_number(struct stfs_content *content);

/* Bytes that differ in place from the run it began with; its whole size when it has none. */
uint64_t stfs_content_changed_bytes(struct stfs_content *content);

/*
 * Why its bytes cannot be committed: a write failed half-way, or a power cut took some (then a phrase for a message, static
 * storage), or NULL.
 */
const char *stfs_content_damage(struct stfs_content *content);

/*
 * Tells where bytes from `offset` on are: up to `max` extents for at most `size` bytes, cut at the end of the file; fewer
 * bytes are covered when `max` is reached. They live as long as `lease`, and until it is used for another call. The model
 * file's identity is checked first. Returns the number of extents, -EIO (the source changed: `diag` says how, *ret_first
 * as stfs_snapshot_check) or -ENOMEM.
 */
int stfs_content_map(struct stfs_content *content, uint64_t offset, size_t size, struct stfs_lease *lease,
		     struct stfs_extent *ret, int max, struct stfs_diag *diag, bool *ret_first);

/* Appends the first `max` bytes (all, if there are fewer) to `buf`. Returns 0 or -errno. */
int stfs_content_read(struct stfs_content *content, size_t max, struct stfs_buf *buf) STFS_MUST_CHECK;

/*
 * Writes at any offset, growing the file. What was accepted is in the staging area, so that a killed daemon loses nothing.
 * Returns 0 and in *ret_written how much (less than `size` when the disk filled up on the way), or -errno (then nothing was
 * written), -ESTALE when its bytes were handed on and it would grow. A failure half-way damages the content.
 */
int stfs_content_write(struct stfs_content *content, struct stfs_stage *stage, const void *data, size_t size,
		       uint64_t offset, size_t *ret_written) STFS_MUST_CHECK;

/* Cuts or grows (with zeros) to `size` bytes. Cutting to 0 mends damage. -ESTALE as stfs_content_write. */
int stfs_content_truncate(struct stfs_content *content, struct stfs_stage *stage, uint64_t size) STFS_MUST_CHECK;

/* Grows (with zeros) to `size` bytes what is smaller. -ESTALE as stfs_content_write. */
int stfs_content_grow(struct stfs_content *content, struct stfs_stage *stage, uint64_t size) STFS_MUST_CHECK;

/*
 * Makes the staged bytes survive a power cut, once the name of their file and the journal are synced too (stfs_stage_sync_dir,
 * stfs_journal_sync).
 */
int stfs_content_sync(struct stfs_content *content, struct stfs_stage *stage) STFS_MUST_CHECK;

/* Whether a sync would write a record, for which the content must be bound. */
bool stfs_content_needs_word(struct stfs_content *content);

/* Has the system begin to write the staged bytes, so that many files can be synced at the cost of a few. */
void stfs_content_start_sync(struct stfs_content *content);

/* Sets what is kept beside the bytes, journaled. */
int stfs_content_set_attr(struct stfs_content *content, struct stfs_stage *stage, const struct stfs_file_attr *attr)
	STFS_MUST_CHECK;

/*
 * Makes `content`, which must be empty or a shorter run from the same place, refer to a run of the model: a copy within a mount
 * moves no bytes. Journaled; `file` is the run's file in the model. Returns 0, -EINVAL when it is something else, or -errno.
 */
int stfs_content_refer(struct stfs_content *content, struct stfs_stage *stage, uint64_t file,
		       const struct stfs_run *run) STFS_MUST_CHECK;

/* The run it consists of, unedited: true and *ret (borrowed), or false. */
bool stfs_content_run(struct stfs_content *content, struct stfs_run *ret);

/*
 * A second file over the same bytes, from `skip` on: what is left of a NumPy file without its header. `from` must be
 * staged as a whole (stfs_content_make_whole), and hands the bytes on: what is written to it later is written to the
 * new content too, and they go away with the new content. Journaled. The caller owns *ret.
 */
int stfs_content_split(struct stfs_content *from, struct stfs_stage *stage, uint64_t ino, uint64_t skip,
		       struct stfs_content **ret) STFS_MUST_CHECK;

/* Whether its bytes were handed on: it is to be removed. */
bool stfs_content_is_handed_on(struct stfs_content *content);

/* The inode number of what they were handed on to, and how many bytes were left out; 0 when there is none. */
uint64_t stfs_content_heir(struct stfs_content *content, uint64_t *ret_skip);

/* Copies what still is the model's into the staging area, so that the content stands alone. */
int stfs_content_detach(struct stfs_content *content, struct stfs_stage *stage) STFS_MUST_CHECK;

/* The same, and a text too is moved to a staged file. */
int stfs_content_make_whole(struct stfs_content *content, struct stfs_stage *stage) STFS_MUST_CHECK;

/*
 * After a commit: the same bytes are now a run of the new model, or a canonical text. Inode number and times stay (a text that
 * changed has a new mtime); open handles go on, and what they write is staged again. Cannot fail; `text` may be handed over.
 */
void stfs_content_rebase_run(struct stfs_content *content, const struct stfs_run *run);
void stfs_content_rebase_text(struct stfs_content *content, struct stfs_buf *text);

/*
 * Applies a journal record that speaks of this content's bytes (not STFS_RECORD_RUN); `payload` is what follows the ino.
 * Returns 0, -EBADMSG when it does not fit, or -errno.
 */
int stfs_content_replay(struct stfs_content *content, struct stfs_stage *stage, const struct stfs_record *record,
			struct stfs_slice payload) STFS_MUST_CHECK;

/* The same for STFS_RECORD_RUN, whose file the caller has found. */
int stfs_content_replay_run(struct stfs_content *content, const struct stfs_record *record, const struct stfs_run *run)
	STFS_MUST_CHECK;

/* Says that a STAGED record of `other` spoke of the bytes of `content`, if it did: then they were handed on. */
void stfs_content_replay_split(struct stfs_content *content, struct stfs_content *other);

/*
 * Ends a replay: learns the size of bytes staged as a whole from the disk. What has lost its bytes is damaged. Returns 0 or
 * -errno.
 */
int stfs_content_replay_end(struct stfs_content *content, bool same_boot) STFS_MUST_CHECK;

/* Whether the replay found damage that the journal does not speak of; the other function writes it down. */
bool stfs_content_has_new_damage(struct stfs_content *content);
int stfs_content_keep_damage(struct stfs_content *content, struct stfs_stage *stage) STFS_MUST_CHECK;

/* Appends the records that make an empty file of this inode number into what it is now. */
int stfs_content_dump(struct stfs_content *content, struct stfs_journal *journal) STFS_MUST_CHECK;
