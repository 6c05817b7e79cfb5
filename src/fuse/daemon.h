/* SPDX-License-Identifier: Apache-2.0 */
/* Goes on in the background: the caller's process waits until the child says how it went. */
#pragma once

enum stfs_fork {
	STFS_FORK_CHILD,  /* this is the child: serve, and say so with stfs_daemon_report */
	STFS_FORK_PARENT, /* this is the parent: the child has reported */
};

/*
 * Forks. Flushes stdio first. In the child *ret is the file descriptor to report on; in the parent, which returns only
 * when the child has reported or died, it is the code reported, or -1 when there was none. Returns an enum stfs_fork,
 * or -errno.
 */
int stfs_daemon_fork(int *ret);

/* Tells the parent `code` (0 to 255), and closes the descriptor. Does nothing when *fd is -1. */
void stfs_daemon_report(int *fd, int code);

/* Lets go of the terminal, the working directory and stdin, stdout, stderr. Returns 0 or -errno. */
int stfs_daemon_detach(void);
