/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the operating system, made whole: retried when interrupted, never short without an error. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "macros.h"

/* Reads exactly `len` bytes at `offset`. Returns 0, -EIO when the file ends before, or the errno of pread. */
int stfs_pread_full(int fd, void *data, size_t len, uint64_t offset) STFS_MUST_CHECK;

/* Writes all of `data` to `fd` (a pipe, a file, a terminal). Returns 0 or the errno of write. */
int stfs_write_full(int fd, const void *data, size_t len) STFS_MUST_CHECK;

/*
 * Opens the directory `name` in `dir_fd` ("." for that itself) to be listed; `flags` as for openat(2), besides what that takes.
 * Returns NULL with errno set. The caller closes it with closedir(3).
 */
DIR *stfs_opendirat(int dir_fd, const char *name, int flags);

/* Whether that directory has nothing in it. Returns 0 or -errno. */
int stfs_dir_is_empty(int dir_fd, const char *name, int flags, bool *ret) STFS_MUST_CHECK;
