/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that change something. While a commit runs they are parked: kept with all they need, and run again when it is over,
 * so that no worker waits and no client sees an error. Private to this layer.
 */
#pragma once

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdbool.h>

#include "view_edit.h"

struct stfs_front;
struct stfs_handle;

/* A request; pointers are borrowed, and copied when it is parked. */
struct stfs_edit {
	fuse_req_t req;
	/* Does it and answers. Returns 0, or -EBUSY without having answered when it has to wait for a commit. */
	int (*run)(struct stfs_front *front, const struct stfs_edit *edit);
	fuse_ino_t ino, new_parent;
	const char *name, *new_name; /* NULL: none */
	mode_t mode;
	bool no_replace;
	struct stfs_attr_change change;
	struct fuse_file_info fi;
	struct stfs_handle *handle, *source; /* NULL: none */
	const char *data;
	size_t size;
	uint64_t offset, source_offset, len;
};

struct stfs_parked;

/* Embedded in the front; all zero but the lock at first. */
struct stfs_parking {
	pthread_mutex_t lock; /* protects what follows; nothing is locked under it */
	bool closed;          /* a commit runs: edits wait */
	struct stfs_parked *first, **last;
	size_t bytes; /* of data that waits in memory */
	int spill_fd; /* a nameless file for what is too much, -1 as long as there is none */
	uint64_t spill_end;
};

void stfs_parking_init(struct stfs_parking *parking);
void stfs_parking_fini(struct stfs_parking *parking);

/* Runs a request, or parks it. It is answered in any case. */
void stfs_edit_run(struct stfs_front *front, const struct stfs_edit *edit);

/* From now on requests that meet -EBUSY wait. */
void stfs_parking_close(struct stfs_front *front);

/* Runs those that waited, in their order. */
void stfs_parking_open(struct stfs_front *front);
