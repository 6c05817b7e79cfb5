/* SPDX-License-Identifier: Apache-2.0 */
/* Copying a run of bytes from file to file the cheapest way there is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "macros.h"
#include "os.h"

/* How bytes were moved; also counts them, for the report of a commit. Embedded, all zero at first. */
struct stfs_copy_stats {
	uint64_t cloned;             /* bytes shared with the source by the filesystem */
	uint64_t in_kernel;          /* bytes moved by copy_file_range */
	uint64_t buffered;           /* bytes read and written by us */
	uint64_t holes;              /* bytes that are a hole of the source, and of the target now */
	bool no_clone, no_in_kernel; /* found not to work here: not tried again */
	bool no_holes;
};

/*
 * Called after each part with the bytes of that part. A non-zero answer stops the copy, which then returns it.
 */
typedef int (*stfs_copy_progress)(void *user, uint64_t bytes);

/*
 * Copies exactly `len` bytes from `from` at `from_offset` to `to` at `to_offset`: the middle that is aligned to 4096 in
 * both files is cloned where the filesystem can, the rest is copied in the kernel, or through a buffer of 1 MiB. A hole
 * of the source becomes one of the target, which must already be as large as it will be. `progress` may be NULL.
 * Returns 0, -EIO when the source ends before, what `progress` said, or -errno.
 */
int stfs_copy_range(const struct stfs_os *os, int from, uint64_t from_offset, int to, uint64_t to_offset, uint64_t len,
		    struct stfs_copy_stats *stats, stfs_copy_progress progress, void *user) STFS_MUST_CHECK;

/*
 * Appends " (3 MB cloned, 512 B copied)": the ways that bytes took, none named that none took. `append` says how many. Returns 0,
 * or what `append` said, or -ENOMEM.
 */
int stfs_copy_describe(const struct stfs_copy_stats *stats, int (*append)(struct stfs_buf *buf, uint64_t bytes),
		       struct stfs_buf *buf) STFS_MUST_CHECK;
