/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a writable mount by a signal: what clients have in mapped files is written back, later edits are refused, a commit
 * is stopped, and what is staged is made durable, all while requests are still served. Private to this layer.
 */
#pragma once

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct stfs_front;

/* Embedded, all zero at first; the descriptors count only while `started`. */
struct stfs_ending {
	struct stfs_front *front; /* borrowed, as the session */
	struct fuse_session *fuse;
	pthread_t thread, server; /* ours, and the one that runs the loop */
	int signal_fd, stop_fd;
	atomic_bool served; /* the loop has ended */
	bool started;
};

/*
 * Blocks those of SIGTERM, SIGINT and SIGHUP that are not ignored in the calling thread, which is the one that will run the loop,
 * and in those it starts from now on: they wait for stfs_ending_start. SIGUSR1 interrupts the loop from here, and nothing else.
 * Returns 0 or -errno.
 */
int stfs_ending_block_signals(void);

/*
 * Starts a thread that waits for the blocked signals, also for one that has come already. What it stops must run by now: the
 * jobs and the notifier of the front. Returns 0 or -errno.
 */
int stfs_ending_start(struct stfs_ending *ending, struct stfs_front *front, struct fuse_session *fuse);

/* To be called when the loop has ended, for whatever reason. */
void stfs_ending_stop(struct stfs_ending *ending);
