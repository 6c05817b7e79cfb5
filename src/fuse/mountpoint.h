/* SPDX-License-Identifier: Apache-2.0 */
/* Where a model is mounted: chosen, checked, made when none was named, and removed again. */
#pragma once

#include <stdbool.h>

#include "cleanup.h"
#include "diag.h"

/* Embedded, released with stfs_mountpoint_fini. */
struct stfs_mountpoint {
	char *path;  /* absolute */
	bool made;   /* by us: to be removed after the mount */
	int lock_fd; /* the directory below the mount, locked so that `umount` can see us go; -1 if that failed */
};

/*
 * Prepares `given`, or ./LABEL when it is NULL, which is then made unless it is there and empty. Refuses what is a
 * mount already, is no directory, or holds `source` (the model's path). Returns 0, or -errno with a sentence in `diag`;
 * nothing is left behind then. The caller releases *ret.
 */
int stfs_mountpoint_prepare(const char *given, const char *label, const char *source, struct stfs_mountpoint *ret,
			    struct stfs_diag *diag);

/*
 * Opens and locks the directory, and looks again whether something is mounted there: of two that mount at once only one may.
 * To be called by the process that serves, right before it mounts. Returns 0, or -errno with a sentence in `diag`.
 */
int stfs_mountpoint_lock(struct stfs_mountpoint *mountpoint, struct stfs_diag *diag);

/* Lets others have a look at what is mounted now. Never fails. */
void stfs_mountpoint_share(struct stfs_mountpoint *mountpoint);

/* Removes the directory if we made it, and releases the rest. To be called when nothing is mounted there any more. */
void stfs_mountpoint_fini(struct stfs_mountpoint *mountpoint);
#define _cleanup_mountpoint_ _cleanup_(stfs_mountpoint_fini)
