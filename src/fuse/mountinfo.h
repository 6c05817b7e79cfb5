/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's own list of mounts: it can be asked without touching a mount, so that a dead one does no harm. */
#pragma once

#include "cleanup.h"

#define STFS_SUBTYPE "safetensorsfs"
#define STFS_FSTYPE "fuse." STFS_SUBTYPE

/* A mount. Embedded, released with stfs_mount_fini. */
struct stfs_mount {
	char *type;   /* "fuse.safetensorsfs" */
	char *source; /* as given by who mounted it: foreign text */
	unsigned major, minor;
};

/*
 * Finds the mount at `path` (absolute, resolved), the topmost if there are several. Returns 0, -ENOENT when there is
 * none, or the errno of reading the list. The caller releases *ret.
 */
int stfs_mountinfo_find(const char *path, struct stfs_mount *ret);

/*
 * Finds a mount of ours, open for writing, whose source is the same file or directory as `source`, or has the same name when
 * that is not there yet. Returns 0, -ENOENT when there is none, or -errno. The caller frees *ret_point, its absolute path.
 */
int stfs_mountinfo_find_writable(const char *source, char **ret_point);

/* Releases what a mount owns. */
void stfs_mount_fini(struct stfs_mount *mount);
#define _cleanup_mount_ _cleanup_(stfs_mount_fini)
