/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cleanup.h"
#include "ops.h"

void stfs_op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stfs_front *front = stfs_front_of(req);
	struct stfs_listing *listing;
	struct stfs_handle *handle;
	int r = stfs_view_list(front->view, ino, &listing);

	if (r == 0)
		r = stfs_handle_new(front, &(struct stfs_handle){ .listing = listing, .ino = ino }, &handle);
	if (r < 0) {
		stfs_reply(req, r);
		return;
	}
	fi->fh = (uintptr_t)handle;
	fi->cache_readdir = !front->writable;
	fi->keep_cache = !front->writable;
	/* When the client was interrupted no RELEASE follows. */
	if (fuse_reply_open(req, fi) == -ENOENT)
		stfs_handle_unref(front, handle);
}

void stfs_op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino, (void)datasync, (void)fi;
	stfs_reply(req, stfs_view_sync_names(stfs_front_of(req)->view));
}

void stfs_op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	stfs_handle_unref(stfs_front_of(req), stfs_handle_of(fi));
	stfs_reply(req, 0);
}

/* A buffer that is filled with directory entries. */
struct fill {
	fuse_req_t req;
	fuse_ino_t dir;
	char *data;
	size_t size, used;
};

static bool is_dot(struct stfs_slice name)
{
	return stfs_slice_is(name, ".") || stfs_slice_is(name, "..");
}

static mode_t mode_of(const struct stfs_dirent *entry)
{
	static const mode_t modes[] = {
		[STFS_NODE_DIR] = S_IFDIR,
		[STFS_NODE_FILE] = S_IFREG,
		[STFS_NODE_LINK] = S_IFLNK,
	};

	return modes[entry->type];
}

/* Adds an entry whose successor has the cookie `next`. Returns 1 when added, 0 when it does not fit, or -errno. */
static int add_entry(struct fill *fill, const struct stfs_dirent *entry, const char *name, off_t next)
{
	struct stat st = { .st_ino = entry->ino, .st_mode = mode_of(entry) };
	size_t room = fill->size - fill->used;
	size_t need = fuse_add_direntry(fill->req, fill->data + fill->used, room, name, &st, next);

	if (need > room)
		return 0;
	fill->used += need;
	return 1;
}

/* Attributes of an entry; -ENOENT when it is not what it was when the directory was opened. */
static int look_up(struct fill *fill, const struct stfs_dirent *entry, struct stfs_attr *ret)
{
	struct stfs_front *front = stfs_front_of(fill->req);
	int r;

	if (!front->writable)
		return stfs_view_getattr(front->view, entry->ino, ret);
	/* By name: the kernel would take the old file for what stands there now. */
	r = stfs_view_lookup(front->view, fill->dir, entry->name, ret);
	if (r == 0 && ret->type == STFS_NODE_LINK)
		stfs_view_forget(front->view, ret->ino, 1);
	if (r == -ESTALE || r == -ENOTDIR)
		return -ENOENT;
	return r == 0 && ret->ino != entry->ino ? -ENOENT : r;
}

/*
 * The same with attributes, which count as a lookup of everything but the dots. Only links need counting, and none is
 * listed.
 */
static int add_entry_plus(struct fill *fill, const struct stfs_dirent *entry, const char *name, off_t next)
{
	struct fuse_entry_param param = { .attr = { .st_ino = entry->ino, .st_mode = mode_of(entry) } };
	size_t room = fill->size - fill->used, need;

	if (!is_dot(entry->name)) {
		struct stfs_attr attr;
		int r = look_up(fill, entry, &attr);

		/* Without attributes: a directory that is being renamed would else be missing under both names. */
		if (r == 0)
			stfs_attr_to_entry(stfs_front_of(fill->req), &attr, &param);
		else if (r != -ENOENT)
			return r;
	}
	need = fuse_add_direntry_plus(fill->req, fill->data + fill->used, room, name, &param, next);
	if (need > room)
		return 0;
	fill->used += need;
	return 1;
}

/*
 * The name as libfuse wants it. The view yields no other names; one that the kernel cannot take would cost the whole
 * listing.
 */
static bool copy_name(struct stfs_slice name, char ret[STFS_COMPONENT_MAX + 1])
{
	if (name.len == 0 || name.len > STFS_COMPONENT_MAX)
		return false;
	memcpy(ret, name.p, name.len);
	ret[name.len] = '\0';
	return true;
}

static void reply_listing(fuse_req_t req, const struct stfs_handle *handle, size_t size, off_t offset,
			  int (*add)(struct fill *, const struct stfs_dirent *, const char *, off_t))
{
	const struct stfs_listing *listing = handle->listing;
	_cleanup_free_ char *data = malloc(size);
	struct fill fill = { .req = req, .dir = handle->ino, .data = data, .size = size };
	int r = data ? 1 : -ENOMEM;

	/* A cookie is a position in the list. */
	for (uint64_t i = (uint64_t)offset; r > 0 && i < listing->n; i++) {
		char name[STFS_COMPONENT_MAX + 1];

		if (copy_name(listing->entries[i].name, name))
			r = add(&fill, &listing->entries[i], name, (off_t)(i + 1));
	}
	/* What was added before a failure is sent: the kernel counts its lookups and asks again for the rest. */
	if (r < 0 && fill.used == 0)
		stfs_reply(req, r);
	else
		fuse_reply_buf(req, data, fill.used);
}

void stfs_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	(void)ino;
	reply_listing(req, stfs_handle_of(fi), size, offset, add_entry);
}

void stfs_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	(void)ino;
	reply_listing(req, stfs_handle_of(fi), size, offset, add_entry_plus);
}
