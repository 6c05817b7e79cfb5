/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commits and discards asked for inside the mount. Each is a write that is answered when it is done: by a thread of its own, so
 * that the mount goes on meanwhile. Private to this layer.
 */
#pragma once

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdbool.h>

#include "view_control.h"

struct stfs_front;
struct stfs_handle;
struct stfs_job;

/* Embedded in the front. */
struct stfs_jobs {
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* protects what follows; nothing is locked under it */
	pthread_cond_t changed;
	struct stfs_job *first, **last;
	bool stop;
};

void stfs_jobs_init(struct stfs_jobs *jobs);
void stfs_jobs_fini(struct stfs_jobs *jobs);

/* Starts the thread. Returns 0 or -errno. */
int stfs_jobs_start(struct stfs_front *front);

/*
 * Takes over a write of `data` (borrowed) to an open control file; one that makes no sense is answered at once, with EINVAL.
 * What came of it is read from the same handle then, and nothing when there is nothing to say.
 */
void stfs_jobs_add(struct stfs_front *front, fuse_req_t req, struct stfs_handle *handle, const char *data, size_t size);

/*
 * Writes back what clients have changed in mapped files. Requests must be served meanwhile, by other threads.
 */
void stfs_jobs_launder(struct stfs_front *front);

/*
 * Ends the thread: a commit that runs is stopped if nothing is decided yet. front->closing must be set. Requests must be served
 * meanwhile.
 */
void stfs_jobs_stop(struct stfs_jobs *jobs);
