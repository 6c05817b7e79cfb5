/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot.h"

#include <errno.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "acl.h"
#include "buf.h"
#include "io.h"
#include "open_regular.h"
#include "quote.h"

/* Numbers that the kernel headers of the oldest systems lack. */
#ifndef CIFS_SUPER_MAGIC
#define CIFS_SUPER_MAGIC 0xff534d42
#endif
#ifndef SMB2_SUPER_MAGIC
#define SMB2_SUPER_MAGIC 0xfe534d42
#endif
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif
#ifndef CEPH_SUPER_MAGIC
#define CEPH_SUPER_MAGIC 0x00c36400
#endif
#define LUSTRE_MAGIC 0x0bd00bd0 /* in no header */

#define SNIFF_SIZE 512

struct stfs_snapshot {
	atomic_uint refs;
	int fd;
	char *name;
	struct stfs_identity identity;
	struct stfs_header *header;
	void *map; /* NULL: read with pread */
	size_t map_size;

	pthread_mutex_t lock; /* protects the fields below; nothing else is locked while it is held */
	bool stale;
	struct timespec ctime; /* last one found harmless */
};

static void identity_from_stat(int fd, const struct stat *st, struct stfs_identity *ret)
{
	*ret = (struct stfs_identity){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime = st->st_mtim,
		.ctime = st->st_ctim,
		.mode = st->st_mode,
		.shown = stfs_acl_narrow(fd, st->st_mode),
		.uid = st->st_uid,
		.gid = st->st_gid,
	};
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static int read_error(int r, struct stfs_report *report)
{
	stfs_violation(report, "cannot be read: %s", strerror(-r));
	return r;
}

/* Reads the length word and says what the file is when it is something else. */
static int read_length(int fd, uint64_t size, struct stfs_report *report, uint64_t *ret_len)
{
	size_t n = size < SNIFF_SIZE ? (size_t)size : SNIFF_SIZE;
	uint8_t head[SNIFF_SIZE] = { 0 };
	const char *other;
	int r = stfs_pread_full(fd, head, n, 0);

	if (r < 0)
		return read_error(r, report);
	other = stfs_sniff(head, n);
	if (other) {
		stfs_violation(report, "not a .safetensors file: it is %s", other);
		return -EBADMSG;
	}
	return stfs_header_length(head, size, report, ret_len);
}

static int read_header(int fd, uint64_t size, unsigned flags, struct stfs_report *report, struct stfs_header **ret)
{
	_cleanup_free_ char *text = NULL;
	uint64_t len;
	int r = read_length(fd, size, report, &len);

	if (r < 0)
		return r;
	text = malloc(len + 1);
	if (!text)
		return -ENOMEM;
	r = stfs_pread_full(fd, text, len, 8);
	if (r < 0)
		return read_error(r, report);
	text[len] = '\0';
	r = stfs_header_parse(text, len, size - 8 - len, flags, report, ret);
	if (r == 0)
		text = NULL; /* the header's from here */
	return r;
}

/* Page faults on a network or FUSE filesystem are many times slower than reads, and may hang the daemon. */
static bool is_remote(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	switch ((uint32_t)fs.f_type) {
	case NFS_SUPER_MAGIC:
	case SMB_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
	case V9FS_MAGIC:
	case FUSE_SUPER_MAGIC:
	case CEPH_SUPER_MAGIC:
	case AFS_SUPER_MAGIC:
	case CODA_SUPER_MAGIC:
	case LUSTRE_MAGIC:
		return true;
	default:
		return false;
	}
}

static int map_file(struct stfs_snapshot *snapshot, enum stfs_io io, struct stfs_report *report)
{
	uint64_t size = snapshot->identity.size;
	void *map;

	if (io == STFS_IO_PREAD || (io == STFS_IO_AUTO && is_remote(snapshot->fd)))
		return 0;
	if (size > SIZE_MAX)
		return 0;
	map = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, snapshot->fd, 0);
	if (map == MAP_FAILED) {
		int error = errno;

		/* Some filesystems cannot map: then reads are the way, unless a map was asked for. */
		if (io == STFS_IO_AUTO)
			return 0;
		stfs_violation(report, "cannot be mapped: %s", strerror(error));
		return -error;
	}
	snapshot->map = map;
	snapshot->map_size = (size_t)size;
	return 0;
}

static int name_snapshot(struct stfs_snapshot *snapshot, const char *name)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };
	int r = stfs_append_printable(&buf, stfs_slice_of(name));

	if (r < 0)
		return r;
	snapshot->name = stfs_steal(buf.data);
	return snapshot->name ? 0 : -ENOMEM;
}

int stfs_snapshot_open(int dir_fd, const char *name, const char *shown, unsigned flags, enum stfs_io io,
		       struct stfs_report *report, struct stfs_snapshot **ret)
{
	_cleanup_(stfs_snapshot_unrefp) struct stfs_snapshot *snapshot = calloc(1, sizeof(*snapshot));
	struct stat st;
	int r;

	if (!snapshot)
		return -ENOMEM;
	atomic_init(&snapshot->refs, 1);
	pthread_mutex_init(&snapshot->lock, NULL);
	report->file = shown;
	snapshot->fd = r = stfs_open_regular(dir_fd, name, report, &st);
	if (r < 0)
		return r;
	identity_from_stat(snapshot->fd, &st, &snapshot->identity);
	snapshot->ctime = st.st_ctim;
	r = name_snapshot(snapshot, name);
	if (r == 0)
		r = read_header(snapshot->fd, snapshot->identity.size, flags, report, &snapshot->header);
	if (r == 0)
		r = map_file(snapshot, io, report);
	if (r < 0)
		return r;
	*ret = stfs_steal(snapshot);
	return 0;
}

struct stfs_snapshot *stfs_snapshot_ref(struct stfs_snapshot *snapshot)
{
	atomic_fetch_add_explicit(&snapshot->refs, 1, memory_order_relaxed);
	return snapshot;
}

void stfs_snapshot_unref(struct stfs_snapshot *snapshot)
{
	if (!snapshot || atomic_fetch_sub_explicit(&snapshot->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (snapshot->map)
		munmap(snapshot->map, snapshot->map_size);
	if (snapshot->fd >= 0)
		close(snapshot->fd);
	stfs_header_free(snapshot->header);
	pthread_mutex_destroy(&snapshot->lock);
	free(snapshot->name);
	free(snapshot);
}

const struct stfs_header *stfs_snapshot_header(const struct stfs_snapshot *snapshot)
{
	return snapshot->header;
}

const struct stfs_identity *stfs_snapshot_identity(const struct stfs_snapshot *snapshot)
{
	return &snapshot->identity;
}

int stfs_snapshot_fd(const struct stfs_snapshot *snapshot)
{
	return snapshot->fd;
}

const void *stfs_snapshot_map(const struct stfs_snapshot *snapshot)
{
	return snapshot->map;
}

const char *stfs_snapshot_name(const struct stfs_snapshot *snapshot)
{
	return snapshot->name;
}

/* Reads the header again and compares: 0 when it is the same, -ESTALE when not. */
static int compare_header(const struct stfs_snapshot *snapshot)
{
	const struct stfs_header *header = snapshot->header;
	char chunk[16384];
	uint8_t word[8];

	if (stfs_pread_full(snapshot->fd, word, sizeof(word), 0) < 0)
		return -ESTALE;
	for (unsigned i = 0; i < 8; i++) {
		if (word[i] != (uint8_t)((uint64_t)header->text_len >> (8 * i)))
			return -ESTALE;
	}
	for (size_t at = 0; at < header->text_len;) {
		size_t n = STFS_MIN(header->text_len - at, sizeof(chunk));

		if (stfs_pread_full(snapshot->fd, chunk, n, 8 + at) < 0 || memcmp(chunk, header->text + at, n) != 0)
			return -ESTALE;
		at += n;
	}
	return 0;
}

/* Why the file is no longer what was opened, or NULL. Called with the lock held. */
static const char *find_change(struct stfs_snapshot *snapshot)
{
	const struct stfs_identity *was = &snapshot->identity;
	struct stat st;

	if (snapshot->stale)
		return "changed earlier";
	if (fstat(snapshot->fd, &st) < 0)
		return "cannot be looked at any more";
	if ((uint64_t)st.st_size < was->size)
		return "was truncated";
	if ((uint64_t)st.st_size > was->size)
		return "grew";
	if (!same_time(st.st_mtim, was->mtime))
		return "was written to";
	/* A chmod, a new link or a rename moves ctime alone, and so does a writer who puts mtime back. */
	if (!same_time(st.st_ctim, snapshot->ctime)) {
		if (compare_header(snapshot) < 0)
			return "has another header";
		snapshot->ctime = st.st_ctim;
	}
	return NULL;
}

int stfs_snapshot_check(struct stfs_snapshot *snapshot, struct stfs_diag *diag, bool *ret_first)
{
	const char *change;
	bool first;

	pthread_mutex_lock(&snapshot->lock);
	change = find_change(snapshot);
	first = change && !snapshot->stale;
	if (change)
		snapshot->stale = true;
	pthread_mutex_unlock(&snapshot->lock);
	if (!change)
		return 0;
	if (ret_first)
		*ret_first = first;
	return stfs_fail(diag, -ESTALE, "%s %s since it was opened", snapshot->name, change);
}
