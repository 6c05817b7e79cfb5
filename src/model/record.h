/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of an overlay's journal. Every number is a u64, every name a counted string (journal.h). Entries are told by path
 * from the root, as it was at that moment; bytes by a number that CREATE or BIND gave to a file. Inode numbers are no use for
 * either: after a commit those of a running mount are not those of the next one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum stfs_record_type {
	/* first of all: enum stfs_layout, version, then for each file its name, size, mtime (s, ns), hash of its header */
	STFS_RECORD_MODEL = 1,
	STFS_RECORD_MARK = 2, /* nothing but what each record says: which boot goes on from here, and what is on disk */
	/* In journal.next, names as in commit_steps.h; no meaning for the tree. */
	STFS_RECORD_COMMIT = 3, /* last of all: the commit is decided, and is finished whatever comes */
	STFS_RECORD_TEMPS = 4,  /* first of all: temporary files that are about to be made */

	STFS_RECORD_MKDIR = 10, /* ino, path, perm, uid, gid: the ino is a wish */
	/* ino, path, perm, uid, gid: an empty file; its number is the ino. Missing folders are made */
	STFS_RECORD_CREATE = 11,
	STFS_RECORD_REMOVE = 12,  /* path: a file or an empty directory */
	STFS_RECORD_RENAME = 13,  /* path, new path */
	STFS_RECORD_DISCARD = 14, /* path */
	STFS_RECORD_BIND = 15,    /* number, path: records of that number speak of the file that is there now */
	/* path of a directory, perm, uid, gid, mtime (s, ns); nothing happens when there is nothing of that path */
	STFS_RECORD_DIR_ATTR = 16,

	/* Of the bytes of one file; the first number is the one it was given. */
	STFS_RECORD_TEXT = 20, /* bytes: all of its content */
	/* number, size, shift, keep: its bytes are now in that staged file; keep 1: over its run */
	STFS_RECORD_STAGED = 21,
	STFS_RECORD_RANGE = 22,   /* begin, end: these bytes are in the staged file */
	STFS_RECORD_SIZE = 23,    /* size: cut or grown; of what is staged as a whole only 0, when that mended damage */
	STFS_RECORD_SYNCED = 24,  /* size: all that came before is on disk */
	STFS_RECORD_DAMAGED = 25, /* enum stfs_damage */
	STFS_RECORD_ATTR = 26,    /* perm, uid, gid, mtime (s, ns) */
	STFS_RECORD_RUN = 27,     /* file, begin, size: a run of that file of the model */
};
