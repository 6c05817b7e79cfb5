/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of a mount: the only object the FUSE front sees. It knows no FUSE: nodes are numbered with stable 64-bit
 * inode numbers (1 is the root), files answer where their bytes are. Contract: docs/TREE.md.
 *
 * All functions may be called from any thread at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "buf.h"
#include "content.h"
#include "log.h"
#include "model.h"
#include "name.h"

#define STFS_INO_ROOT UINT64_C(1)

enum stfs_listing_mode {
	STFS_HIDE, /* opens by name, is not listed */
	STFS_LIST, /* listed too */
	STFS_OFF,  /* is not there */
};

struct stfs_view_options {
	enum stfs_layout layout;
	enum stfs_listing_mode npy;     /* data.npy: HIDE by default */
	enum stfs_listing_mode control; /* .safetensors: HIDE by default (OFF is not offered) */
};

enum stfs_node_type {
	STFS_NODE_DIR,
	STFS_NODE_FILE,
	STFS_NODE_LINK,
};

/* What stat shows. */
struct stfs_attr {
	uint64_t ino;
	enum stfs_node_type type;
	mode_t perm; /* permission bits only */
	uint32_t nlink;
	uint64_t size;    /* bytes */
	uint32_t blksize; /* preferred I/O size, 1 MiB for data */
	uid_t uid;
	gid_t gid;
	struct timespec mtime; /* also shown as atime and ctime: it moves only when the content does */
	bool unsteady;         /* size and bytes are made from other files, and change with them: not to be cached */
};

/* Totals for statfs. */
struct stfs_view_totals {
	uint64_t bytes; /* of all tensors */
	uint64_t nodes; /* files and directories */
};

struct stfs_view;

/*
 * Builds the tree of `model`, which the view owns from then on (also on failure). `log` is borrowed, may be NULL, and
 * gets a line when a source file changed underneath. Returns 0, -EFBIG when the tree would have more than 4 million
 * directories (said in `diag`), or -ENOMEM.
 */
int stfs_view_new(struct stfs_model *model, const struct stfs_view_options *options, struct stfs_log *log,
		  struct stfs_diag *diag, struct stfs_view **ret_view);

/* Frees the view and its model; no handle may be open. Takes NULL. */
void stfs_view_free(struct stfs_view *view);
STFS_DEFINE_CLEANUP(struct stfs_view, stfs_view_free)

/* The model behind the view; lives as long as the view. */
const struct stfs_model *stfs_view_model(const struct stfs_view *view);

/* How names become paths in it. */
enum stfs_layout stfs_view_layout(const struct stfs_view *view);

/*
 * Finds `name` (any bytes but '/') in directory `parent`. Returns 0, -ENOENT, -ENOTDIR, -ENAMETOOLONG, -ESTALE for an
 * unknown inode, -ENOMEM. A dotted name that is no entry answers with a symlink to its place; each such answer holds a
 * reference that stfs_view_forget drops.
 */
int stfs_view_lookup(struct stfs_view *view, uint64_t parent, struct stfs_slice name, struct stfs_attr *ret_attr);

/* Drops `n` lookups of an inode; only symlinks are counted, for all else it does nothing. */
void stfs_view_forget(struct stfs_view *view, uint64_t ino, uint64_t n);

/* Attributes of an inode. Returns 0, -ESTALE for an unknown one, -ENOMEM. */
int stfs_view_getattr(struct stfs_view *view, uint64_t ino, struct stfs_attr *ret_attr);

/* Appends the target of a symlink. Returns 0, -EINVAL when it is none, -ESTALE, -ENOMEM. */
int stfs_view_readlink(struct stfs_view *view, uint64_t ino, struct stfs_buf *buf) STFS_MUST_CHECK;

/* Totals for statfs. */
void stfs_view_totals(struct stfs_view *view, struct stfs_view_totals *ret);

/* One entry of a directory; lives as long as its listing. */
struct stfs_dirent {
	struct stfs_slice name;
	uint64_t ino;
	enum stfs_node_type type;
};

/* What a directory held when it was opened, "." and ".." first: an entry's position is a stable cookie. */
struct stfs_listing {
	struct stfs_dirent *entries;
	size_t n;
	struct stfs_buf names; /* owns names that are not the model's */
};

/* Lists a directory. Returns 0, -ENOTDIR, -ESTALE or -ENOMEM. The caller frees *ret_listing. */
int stfs_view_list(struct stfs_view *view, uint64_t ino, struct stfs_listing **ret_listing);

/* Frees a listing; takes NULL. */
void stfs_listing_free(struct stfs_listing *listing);
STFS_DEFINE_CLEANUP(struct stfs_listing, stfs_listing_free)

/* An open file. */
struct stfs_file;

/* Opens a file for reading. Returns 0, -EISDIR, -ELOOP for a symlink, -ESTALE, -ENOMEM. The caller closes *ret_file. */
int stfs_view_open(struct stfs_view *view, uint64_t ino, struct stfs_file **ret_file);

/* Closes a file; takes NULL. */
void stfs_file_close(struct stfs_file *file);
STFS_DEFINE_CLEANUP(struct stfs_file, stfs_file_close)

#define STFS_EXTENTS_MAX 272 /* one for each page of the largest read of the kernel, a head, and some to spare */

/* An answer of stfs_file_map. Embedded, all zero at first; released with stfs_reading_fini. */
struct stfs_reading {
	struct stfs_extent extents[STFS_EXTENTS_MAX];
	int n;
	uint64_t len; /* bytes the extents cover */
	struct stfs_lease lease;
};

/* Releases what an answer holds. */
static inline void stfs_reading_fini(struct stfs_reading *reading)
{
	stfs_lease_fini(&reading->lease);
}

/*
 * Tells where bytes `offset` to `offset + size` are (cut at the end of the file; none beyond it). The source's identity is
 * checked first. The extents live as long as the file is open and `reading` is not used again. They cover fewer bytes than
 * there are only when all STFS_EXTENTS_MAX are used: the caller asks again for the rest. Returns 0, -EIO when the source
 * changed underneath (the log says why), or -ENOMEM.
 */
int stfs_file_map(struct stfs_file *file, uint64_t offset, size_t size, struct stfs_reading *reading);

/*
 * Looks once more after bytes were sent from where stfs_file_map said. Returns 0, or -EIO when the source changed, maybe while
 * they were: then they may be of no version of it.
 */
int stfs_file_check(struct stfs_file *file);

/*
 * Reads bytes with pread: as many as there are, up to `size`, into `data`. Checked as stfs_file_map, before and after. Returns 0
 * with *ret_read, or -errno.
 */
int stfs_file_read(struct stfs_file *file, uint64_t offset, void *data, size_t size, size_t *ret_read);
