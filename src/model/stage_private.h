/* SPDX-License-Identifier: Apache-2.0 */
/* What stage.c (the directory), stage_files.c (the names in it) and stage_lock.c (who may write) share. */
#pragma once

#include <pthread.h>

#include "stage.h"

#define STFS_STAGE_JOURNAL "journal"
#define STFS_STAGE_NEXT "journal.next"
#define STFS_STAGE_HOLDER "holder"

struct stfs_stage {
	const struct stfs_os *os;
	char *path; /* as shown: escaped */
	char *name; /* last component of the path */
	char *holder;
	int parent_fd; /* the directory that holds `name` */
	int dir_fd;    /* the staging directory, -1 when it is not there */
	/* Makes a change of dir_fd wait for a removal: the last reference to a file of bytes may go at any time. A leaf. */
	pthread_mutex_t dir_lock;
	int lock_fd; /* -1 when not locked */
	bool shared_dir;
	bool noted;                   /* the note of the holder is ours */
	_Atomic bool named;           /* the entries of the directory and of its journal are on disk */
	struct stfs_journal *journal; /* NULL when there is none */
	_Atomic uint64_t next_number;
};

/*
 * Opens the directory as a descriptor of its own and checks that nobody else can have a hand in it. Returns the
 * descriptor, -ENOENT when it is not there, or -errno with a sentence.
 */
int stfs_stage_open_dir(const struct stfs_stage *stage, struct stfs_diag *diag);

/* Finds out what is on disk, forgetting what was known. Returns 0 or -errno with a sentence (all is as before). */
int stfs_stage_look(struct stfs_stage *stage, struct stfs_diag *diag);

/* Notes who holds the lock, for others to say; cannot fail. Does nothing without lock or directory. */
void stfs_stage_note_holder(struct stfs_stage *stage);

/* Removes the note, if it is ours. */
void stfs_stage_unnote_holder(struct stfs_stage *stage);

/* Lets go of the lock. */
void stfs_stage_unlock(struct stfs_stage *stage);

/*
 * Calls `each` for the names in a directory until it answers something other than 0, which is returned. Returns 0 or
 * -errno otherwise.
 */
int stfs_stage_for_each_name(const struct stfs_stage *stage, int dir_fd, int (*each)(void *user, const char *name),
			     void *user);

/* Removes `name` from the directory; missing is no error. */
int stfs_stage_remove_name(struct stfs_stage *stage, const char *name);

/* Whether `name` is that of a file of bytes, and which. */
bool stfs_stage_parse_bytes_name(const char *name, uint64_t *ret_number);
