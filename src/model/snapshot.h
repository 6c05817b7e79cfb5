/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One opened, validated and mapped .safetensors file: immutable and reference-counted, so that a handle goes on reading
 * the version it was opened on. Its bytes are never touched in this process: a reply hands the mapped address to the
 * kernel, which answers EFAULT where a page is gone, while a load of ours would be a SIGBUS.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "diag.h"
#include "header.h"
#include "report.h"

/* How tensor bytes are read. */
enum stfs_io {
	STFS_IO_AUTO, /* map local filesystems, pread from network and FUSE ones */
	STFS_IO_MAP,
	STFS_IO_PREAD,
};

/* What a file was when it was opened; also what a mount shows of it. */
struct stfs_identity {
	dev_t dev;
	ino_t ino;
	uint64_t size; /* bytes */
	struct timespec mtime, ctime;
	mode_t mode;
	mode_t shown; /* the same without what an access control list denies */
	uid_t uid;
	gid_t gid;
};

struct stfs_snapshot;

/*
 * Opens `name` relative to `dir_fd` (AT_FDCWD allowed; a final symlink is followed), demands a regular file, reads and
 * validates the header, and maps the file unless pread is asked for. `flags` are those of stfs_header_parse. Findings go
 * to `report`, whose `file` is set to `shown` (borrowed, must outlive the report). Returns 0, -EBADMSG for a file that
 * breaks the format, -EFBIG over our limits, or the errno of the call that failed (then also said in `report` as a
 * violation). The caller owns one reference on *ret.
 */
int stfs_snapshot_open(int dir_fd, const char *name, const char *shown, unsigned flags, enum stfs_io io,
		       struct stfs_report *report, struct stfs_snapshot **ret);

/* Takes and drops a reference; the last drop unmaps and closes. Safe from any thread. stfs_snapshot_unref takes NULL. */
struct stfs_snapshot *stfs_snapshot_ref(struct stfs_snapshot *snapshot);
void stfs_snapshot_unref(struct stfs_snapshot *snapshot);
STFS_DEFINE_CLEANUP(struct stfs_snapshot, stfs_snapshot_unref)

/* The parsed header; lives as long as the snapshot. */
const struct stfs_header *stfs_snapshot_header(const struct stfs_snapshot *snapshot);

/* What the file was when opened. */
const struct stfs_identity *stfs_snapshot_identity(const struct stfs_snapshot *snapshot);

/* The open file, for preads; lives as long as the snapshot. */
int stfs_snapshot_fd(const struct stfs_snapshot *snapshot);

/* Start of the mapping of the whole file, or NULL when it is read with pread. Hand on, never load from it. */
const void *stfs_snapshot_map(const struct stfs_snapshot *snapshot);

/* The file as it should be shown in messages (escaped); lives as long as the snapshot. */
const char *stfs_snapshot_name(const struct stfs_snapshot *snapshot);

/*
 * Looks whether the file is still what was opened (one fstat; a ctime that moved alone is looked into by reading the
 * header again and comparing). Returns 0, or -ESTALE with the reason in `diag` (may be NULL); once stale it stays
 * stale, and *ret_first (may be NULL) is true for the one call that noticed. Safe from any thread.
 */
int stfs_snapshot_check(struct stfs_snapshot *snapshot, struct stfs_diag *diag, bool *ret_first);
