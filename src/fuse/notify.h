/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the kernel to forget what has changed without it. That can wait for requests to be answered, so it is never done in one:
 * a thread of its own works off a queue. Private to this layer.
 */
#pragma once

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdbool.h>

#include "view_edit.h"

struct stfs_notice;

/* Embedded in the front. */
struct stfs_notifier {
	struct fuse_session *fuse; /* borrowed */
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* protects what follows; nothing is locked under it */
	pthread_cond_t changed;
	struct stfs_notice *first, **last;
	bool busy, stop;
};

void stfs_notifier_init(struct stfs_notifier *notifier);
void stfs_notifier_fini(struct stfs_notifier *notifier);

/* Starts the thread. Returns 0 or -errno. */
int stfs_notifier_start(struct stfs_notifier *notifier, struct fuse_session *fuse);

/* A watcher that queues what it is told. */
struct stfs_view_watcher stfs_notifier_watcher(struct stfs_notifier *notifier);

/* Waits until all that was queued has been told. Requests must be served meanwhile, by other threads. */
void stfs_notifier_drain(struct stfs_notifier *notifier);

/* Tells what is left, and ends the thread; as stfs_notifier_drain. */
void stfs_notifier_stop(struct stfs_notifier *notifier);
