/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts of ours, and the files in .safetensors through which they are talked to. */
#pragma once

#include <stdbool.h>

#include "buf.h"
#include "command.h"

/*
 * Finds the mount that `path` is, or lies in. Returns 0, -ENOENT when it is in none of ours, -errno. The caller frees
 * *ret_point, its absolute path, and *ret_rest (NULL: not wanted), the path from there on, empty for the mount itself.
 */
int stfs_mounted_find(const char *path, char **ret_point, char **ret_rest);

/* Appends what the control file `name` of the mount at `point` says. Returns 0 or -errno. */
int stfs_mounted_read(const char *point, const char *name, struct stfs_buf *buf) STFS_MUST_CHECK;

/*
 * Writes `text` to the control file `name`, in one write, and returns what that answers: 0 or -errno. Appends to *answer what the
 * mount has to say of it, in either case.
 */
int stfs_mounted_write(const char *point, const char *name, struct stfs_slice text, struct stfs_buf *answer)
	STFS_MUST_CHECK;

/* Prints an answer, which is taken apart, on stderr. Returns whether there was anything. */
bool stfs_mounted_complain(struct stfs_buf *answer);

/* Prints a control file to stdout. Returns an enum stfs_exit, after saying why not. */
int stfs_mounted_print(const char *point, const char *name);

/* Whether the mount takes no words, as a read-only one. */
bool stfs_mounted_is_read_only(const char *point);

/* Says that a read-only mount has nothing to do with what is staged. Returns an enum stfs_exit. */
int stfs_mounted_refuse(const char *point);

/* Whether the model at `source` is mounted for editing, so that its lock will stay taken. */
bool stfs_mounted_stays(const char *source);
