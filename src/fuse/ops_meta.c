/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "ops.h"

/*
 * Seconds. A read-only mount cannot change, so what the kernel knows stays true; short ones are for links made on demand, and
 * for a writable mount, where it knows of every change but those that a commit or discard makes.
 */
#define KEEP_LONG 3600.0
#define KEEP_SHORT 1.0

#define MAX_BACKGROUND 64

#define STAT_BLOCK 512 /* the unit of st_blocks, fixed by stat(2) */
#define STATFS_BLOCK 4096

static void want(struct fuse_conn_info *conn, uint64_t flag)
{
#ifdef HAVE_FUSE_SET_FEATURE_FLAG
	fuse_set_feature_flag(conn, flag);
#else
	conn->want |= conn->capable & (unsigned)flag;
#endif
}

static void refuse(struct fuse_conn_info *conn, uint64_t flag)
{
#ifdef HAVE_FUSE_SET_FEATURE_FLAG
	fuse_unset_feature_flag(conn, flag);
#else
	conn->want &= ~(unsigned)flag;
#endif
}

void stfs_op_init(void *userdata, struct fuse_conn_info *conn)
{
	const struct stfs_front *front = userdata;

	want(conn, FUSE_CAP_ASYNC_READ);
	want(conn, FUSE_CAP_ASYNC_DIO);
	want(conn, FUSE_CAP_PARALLEL_DIROPS);
	want(conn, FUSE_CAP_READDIRPLUS);
	want(conn, FUSE_CAP_ATOMIC_O_TRUNC);
	want(conn, FUSE_CAP_AUTO_INVAL_DATA);
#ifdef HAVE_FUSE_CAP_CACHE_SYMLINKS
	/* A link leads to a tensor wherever that is moved. */
	if (!front->writable)
		want(conn, FUSE_CAP_CACHE_SYMLINKS);
#endif
#ifdef HAVE_FUSE_CAP_DIRECT_IO_ALLOW_MMAP
	if (front->direct_io)
		want(conn, FUSE_CAP_DIRECT_IO_ALLOW_MMAP);
#endif
	if (front->max_read)
		conn->max_read = front->max_read;
	/* Pages that wait for a commit to be written back count; readahead must not wait behind them. */
	if (front->writable)
		conn->max_background = MAX_BACKGROUND;
	/* Always with attributes: what is listed is looked at next, and they cost less here than a LOOKUP each. */
	refuse(conn, FUSE_CAP_READDIRPLUS_AUTO);
	/* A splice from a file that was cut short ends early without an error; and it is slower than a writev. */
	refuse(conn, FUSE_CAP_SPLICE_READ);
	refuse(conn, FUSE_CAP_SPLICE_WRITE);
	refuse(conn, FUSE_CAP_SPLICE_MOVE);
	refuse(conn, FUSE_CAP_WRITEBACK_CACHE);
}

static mode_t type_bits(enum stfs_node_type type)
{
	switch (type) {
	case STFS_NODE_DIR:
		return S_IFDIR;
	case STFS_NODE_LINK:
		return S_IFLNK;
	default:
		return S_IFREG;
	}
}

void stfs_attr_to_stat(const struct stfs_attr *attr, struct stat *ret)
{
	*ret = (struct stat){
		.st_ino = attr->ino,
		.st_mode = type_bits(attr->type) | (attr->perm & 0777),
		.st_nlink = attr->nlink,
		.st_uid = attr->uid,
		.st_gid = attr->gid,
		.st_size = (off_t)attr->size,
		.st_blksize = (blksize_t)attr->blksize,
		/* Never 0 for a file with content: tar and cp would take it for a hole. */
		.st_blocks = (blkcnt_t)(attr->size / STAT_BLOCK + (attr->size % STAT_BLOCK != 0)),
		.st_atim = attr->mtime,
		.st_mtim = attr->mtime,
		.st_ctim = attr->mtime,
	};
}

double stfs_attr_keep(const struct stfs_front *front, const struct stfs_attr *attr)
{
	if (front->writable)
		return attr->unsteady ? 0 : KEEP_SHORT;
	return attr->type == STFS_NODE_LINK ? KEEP_SHORT : KEEP_LONG;
}

void stfs_attr_to_entry(const struct stfs_front *front, const struct stfs_attr *attr, struct fuse_entry_param *ret)
{
	double keep = stfs_attr_keep(front, attr);

	*ret = (struct fuse_entry_param){ .ino = attr->ino, .attr_timeout = keep, .entry_timeout = keep };
	stfs_attr_to_stat(attr, &ret->attr);
}

void stfs_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct stfs_front *front = stfs_front_of(req);
	struct fuse_entry_param entry;
	struct stfs_attr attr;
	int r = stfs_view_lookup(front->view, parent, stfs_slice_of(name), &attr);

	if (r == -ENOENT && !front->writable) {
		/* Inode 0 with a timeout: the kernel remembers that the name is not there. */
		entry = (struct fuse_entry_param){ .entry_timeout = KEEP_LONG };
		fuse_reply_entry(req, &entry);
		return;
	}
	if (r < 0) {
		stfs_reply(req, r);
		return;
	}
	stfs_attr_to_entry(front, &attr, &entry);
	/* When the client was interrupted the kernel does not count this lookup, so nothing will be forgotten. */
	if (fuse_reply_entry(req, &entry) == -ENOENT)
		stfs_view_forget(front->view, attr.ino, 1);
}

void stfs_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	stfs_view_forget(stfs_front_of(req)->view, ino, n);
	fuse_reply_none(req);
}

void stfs_op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	struct stfs_view *view = stfs_front_of(req)->view;

	for (size_t i = 0; i < count; i++)
		stfs_view_forget(view, forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

/* A file that was removed or replaced lives on in whoever has it open. */
static int getattr_open(struct stfs_front *front, fuse_ino_t ino, struct stfs_attr *ret)
{
	struct stfs_handle *handle = stfs_handle_find(front, ino);
	int r;

	if (!handle)
		return -ESTALE;
	r = stfs_file_getattr(handle->file, ret);
	stfs_handle_unref(front, handle);
	return r;
}

void stfs_op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stfs_front *front = stfs_front_of(req);
	struct stfs_attr attr;
	struct stat st;
	int r = stfs_view_getattr(front->view, ino, &attr);

	(void)fi;
	if (r == -ESTALE && front->writable)
		r = getattr_open(front, ino, &attr);
	if (r < 0) {
		stfs_reply(req, r);
		return;
	}
	stfs_attr_to_stat(&attr, &st);
	fuse_reply_attr(req, &st, stfs_attr_keep(front, &attr));
}

void stfs_op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	_cleanup_buf_ struct stfs_buf target = { 0 };
	int r = stfs_view_readlink(stfs_front_of(req)->view, ino, &target);

	if (r < 0)
		stfs_reply(req, r);
	else
		fuse_reply_readlink(req, target.data);
}

/* A model that cannot change is full; else what counts is the room for edits. */
void stfs_op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct stfs_front *front = stfs_front_of(req);
	struct stfs_view_totals totals;
	struct statvfs st;

	(void)ino;
	if (front->writable && stfs_view_space(front->view, &st) == 0) {
		st.f_namemax = STFS_COMPONENT_MAX;
		fuse_reply_statfs(req, &st);
		return;
	}
	stfs_view_totals(front->view, &totals);
	st = (struct statvfs){
		.f_bsize = STATFS_BLOCK,
		.f_frsize = STATFS_BLOCK,
		.f_blocks = totals.bytes / STATFS_BLOCK + (totals.bytes % STATFS_BLOCK != 0),
		.f_files = totals.nodes,
		.f_namemax = STFS_COMPONENT_MAX,
	};
	fuse_reply_statfs(req, &st);
}
