/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The staging directory of a model: a lock, a journal, and the bytes of edited files, named by numbers of our own. It knows
 * nothing of trees. Made at the first edit, removed when nothing is staged.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/statvfs.h>

#include "cleanup.h"
#include "diag.h"
#include "journal.h"
#include "log.h"
#include "os.h"

struct stfs_stage;

/* Where the staging area of a model is, and how it is used. */
struct stfs_stage_options {
	int parent_fd;    /* the folder it lies in; borrowed during stfs_stage_new, which keeps a copy */
	const char *name; /* ".model.safetensors.stage", or the path of -o stage=DIR relative to parent_fd */
	bool shared_dir; /* -o stage=DIR: the directory is the user's, may exist already and be empty, is not removed */
	const char *holder; /* what to say of the holder of the lock: "mounted at /mnt/m", "safetensorsfs commit" */
	const struct stfs_os *os;
};

/*
 * Prepares a staging area without touching the disk beyond looking: is there one? An existing one is checked (a real
 * directory, not a link; ours; not open to others, else -EPERM). Returns 0 or -errno with a sentence.
 */
int stfs_stage_new(const struct stfs_stage_options *options, struct stfs_diag *diag, struct stfs_stage **ret);

/* Lets go of the lock and closes everything; what is staged stays on disk. Takes NULL. */
void stfs_stage_free(struct stfs_stage *stage);
STFS_DEFINE_CLEANUP(struct stfs_stage, stfs_stage_free)

/* Whether the directory with a journal is there. */
bool stfs_stage_exists(const struct stfs_stage *stage);

/*
 * Takes the lock that makes one writer a model: flock(2) on `lock_fd`, the model file or its directory, which dies with its
 * holder and needs no file of ours. The stage keeps a copy of the descriptor. Who holds it is noted in the staging
 * directory (file "holder") once that exists. Returns 0, or -EBUSY with a sentence that says who holds it when that can be
 * told. A filesystem without locks (-ENOLCK, -EOPNOTSUPP) is taken as locked.
 */
int stfs_stage_lock(struct stfs_stage *stage, int lock_fd, struct stfs_diag *diag);

/*
 * Moves the lock to `lock_fd`, the file that has the model's name now: taken before the old one is let go. Does nothing when it
 * is on that file already.
 */
int stfs_stage_relock(struct stfs_stage *stage, int lock_fd) STFS_MUST_CHECK;

/* Changes what is said of the holder. Returns 0 or -ENOMEM. */
int stfs_stage_set_holder(struct stfs_stage *stage, const char *holder) STFS_MUST_CHECK;

/* Makes the directory (0700) and an empty journal when they are not there. Returns 0 or -errno (-EROFS, -EACCES, -ENOSPC). */
int stfs_stage_create(struct stfs_stage *stage) STFS_MUST_CHECK;

/* The journal, or NULL as long as there is none. */
struct stfs_journal *stfs_stage_journal(struct stfs_stage *stage);

/* Makes a new file for bytes (O_EXCL, 0600) under a fresh number. The caller owns *ret_fd. Returns 0 or -errno. */
int stfs_stage_file_create(struct stfs_stage *stage, uint64_t *ret_number, int *ret_fd) STFS_MUST_CHECK;

/* Opens file `number` for reading and writing. The caller owns *ret_fd. Returns 0 or -errno. */
int stfs_stage_file_open(struct stfs_stage *stage, uint64_t number, int *ret_fd) STFS_MUST_CHECK;

/* Removes file `number`; missing is no error. */
int stfs_stage_file_remove(struct stfs_stage *stage, uint64_t number);

/* Removes every file of bytes for which `keep` says false: what a crash left behind. */
int stfs_stage_sweep(struct stfs_stage *stage, bool (*keep)(void *user, uint64_t number), void *user);

/* Makes the names in the directory survive a power cut. */
int stfs_stage_sync_dir(struct stfs_stage *stage) STFS_MUST_CHECK;

/* Makes durable what the journal tells, and the names under which it is found. Returns 0 or -errno. */
int stfs_stage_sync(struct stfs_stage *stage) STFS_MUST_CHECK;

/* Starts the journal that will take the place of the present one ("journal.next"), empty. The caller closes *ret. */
int stfs_stage_next_journal(struct stfs_stage *stage, struct stfs_journal **ret) STFS_MUST_CHECK;

/* Opens a journal.next that a crash left, -ENOENT when there is none. The caller closes *ret. */
int stfs_stage_open_next(struct stfs_stage *stage, struct stfs_journal **ret) STFS_MUST_CHECK;

/* Puts journal.next in the place of the journal, durably. */
int stfs_stage_swap_journal(struct stfs_stage *stage) STFS_MUST_CHECK;

/* Removes journal.next; missing is no error. */
int stfs_stage_drop_next(struct stfs_stage *stage);

/* Removes everything that is staged, and the directory unless it is the user's. The lock is kept. */
int stfs_stage_clear(struct stfs_stage *stage);

/* What statvfs(3) says of the filesystem it is on, or will be. Returns 0 or -errno. */
int stfs_stage_space(const struct stfs_stage *stage, struct statvfs *ret);

/* Path of the directory as shown in messages; lives as long as the stage. */
const char *stfs_stage_path(const struct stfs_stage *stage);

/* The table of calls the stage was made with. */
const struct stfs_os *stfs_stage_os(const struct stfs_stage *stage);
