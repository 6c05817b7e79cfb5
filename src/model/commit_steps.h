/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names a commit changes in a folder: temporary files that take the names of old ones, and files that go. Written down in
 * the staging area, so that whoever comes after a crash can finish or undo it. Private to the model layer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "buf.h"
#include "os.h"

/* A file that takes its name. Names are relative to the folder and owned by the list. */
struct stfs_commit_step {
	char *temp, *target;
	bool fresh;            /* nothing may be in its place */
	uint64_t size;         /* of the finished file, bytes */
	struct timespec mtime; /* of the same */
};

/* Embedded, all zero at first. */
struct stfs_commit_steps {
	struct stfs_commit_step *steps; /* the index last */
	uint32_t n, cap;
	char **removed; /* files that go when all have their names */
	uint32_t n_removed, removed_cap;
	bool keep_journal; /* there are scratch files: the journal goes on */
	bool made_stage;   /* the staging area was made for this commit */
};

/* Releases the memory. */
void stfs_commit_steps_fini(struct stfs_commit_steps *steps);

/*
 * Adds a file that is to be called `target`. Its temporary name is `temp`, or with NULL one that follows from `target`. Both
 * copied. Returns 0 or -ENOMEM, -EFBIG.
 */
int stfs_commit_steps_add(struct stfs_commit_steps *steps, struct stfs_slice target, const struct stfs_slice *temp,
			  bool fresh) STFS_MUST_CHECK;

/* Adds a file that goes. */
int stfs_commit_steps_add_removed(struct stfs_commit_steps *steps, struct stfs_slice name) STFS_MUST_CHECK;

/* Appends the list as the payload of a record, without the temporary names: they must be those that follow. */
int stfs_commit_steps_encode(const struct stfs_commit_steps *steps, struct stfs_buf *payload) STFS_MUST_CHECK;

/* Reads it back into an empty list. Returns 0, -EBADMSG (also for a name that leaves the folder), -ENOMEM. */
int stfs_commit_steps_decode(struct stfs_commit_steps *steps, struct stfs_slice payload) STFS_MUST_CHECK;

/* Whether all names stay in the folder `dir_fd` also by its links: a list may come with a model from a stranger. */
bool stfs_commit_steps_stay(const struct stfs_commit_steps *steps, int dir_fd);

/* How far it went. */
struct stfs_commit_progress {
	uint32_t todo; /* the temporary file is there, whole */
	uint32_t done; /* it has its name */
	uint32_t lost; /* neither */
};

/* Looks how far it went. */
void stfs_commit_steps_look(const struct stfs_commit_steps *steps, int dir_fd, struct stfs_commit_progress *ret);

/* Gives the files their names, in order; those that have them are passed over. Returns 0 or -errno; *ret_done counts. */
int stfs_commit_steps_rename(const struct stfs_commit_steps *steps, const struct stfs_os *os, int dir_fd,
			     uint32_t *ret_done);

/* Removes the files that go; one that is gone is no error. */
int stfs_commit_steps_remove(const struct stfs_commit_steps *steps, const struct stfs_os *os, int dir_fd);

/* Removes temporary files that are there. Tries all; returns 0 or the first -errno. */
int stfs_commit_steps_unlink_temps(const struct stfs_commit_steps *steps, const struct stfs_os *os, int dir_fd);

/* Makes the names survive a power cut. */
int stfs_commit_steps_sync(const struct stfs_commit_steps *steps, const struct stfs_os *os, int dir_fd);

/* Renames within a folder, never over anything. Returns 0, -EEXIST, -errno. */
int stfs_commit_rename_fresh(const struct stfs_os *os, int dir_fd, const char *from, const char *to);
