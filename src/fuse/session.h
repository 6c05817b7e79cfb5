/* SPDX-License-Identifier: Apache-2.0 */
/* One mount being served: from the view to the kernel and back. */
#pragma once

#include <stdbool.h>

#include "cleanup.h"
#include "diag.h"
#include "log.h"
#include "view.h"

/* What a session is made of; everything is borrowed and must outlive the session. */
struct stfs_session_config {
	struct stfs_view *view;
	const char *source;     /* shown as the device in the list of mounts */
	const char *mountpoint; /* absolute */
	const char *options;    /* for libfuse, joined with ','; NULL or "" for none */
	bool direct_io;
	unsigned max_read;    /* as in `options`; 0 when not there */
	bool debug;           /* libfuse prints each request to stderr */
	struct stfs_log *log; /* may be NULL */
};

struct stfs_session; /* opaque */

/*
 * Prepares a session: nothing is mounted yet. From here on SIGTERM, SIGINT and SIGHUP end the session, SIGPIPE and
 * SIGXFSZ are ignored. Returns 0, -EINVAL when libfuse refuses an option (it has said so on stderr), or -ENOMEM. The
 * caller frees *ret_session. There can be one session a process: libfuse keeps its signal handlers in a static.
 */
int stfs_session_new(const struct stfs_session_config *config, struct stfs_session **ret_session);

/*
 * Mounts and answers the kernel's first request, so that the mount can be used from another process once this returns.
 * Returns 0, or -errno with a sentence in `diag`.
 */
int stfs_session_mount(struct stfs_session *session, struct stfs_diag *diag);

/* From now on libfuse's own messages go to syslog, not to stderr. */
void stfs_session_log_to_syslog(void);

/* Serves until the mount is gone or a signal ends it. Returns 0 or -errno. */
int stfs_session_run(struct stfs_session *session);

/* Unmounts if still mounted, closes what clients left open, and frees; takes NULL. */
void stfs_session_free(struct stfs_session *session);
STFS_DEFINE_CLEANUP(struct stfs_session, stfs_session_free)
