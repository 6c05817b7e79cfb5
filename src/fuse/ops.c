/* SPDX-License-Identifier: Apache-2.0 */
#include "ops.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Left out on purpose. flush: with it, a killed reader of a stopped daemon cannot die. Locks: without them the kernel
 * keeps locks itself. Extended attributes: offering them costs requests that every tool can do without. access: the
 * kernel checks the modes (default_permissions).
 */
const struct fuse_lowlevel_ops stfs_ops = {
	.init = stfs_op_init,
	.lookup = stfs_op_lookup,
	.forget = stfs_op_forget,
	.forget_multi = stfs_op_forget_multi,
	.getattr = stfs_op_getattr,
	.readlink = stfs_op_readlink,
	.statfs = stfs_op_statfs,
	.opendir = stfs_op_opendir,
	.readdir = stfs_op_readdir,
	.readdirplus = stfs_op_readdirplus,
	.releasedir = stfs_op_releasedir,
	.open = stfs_op_open,
	.read = stfs_op_read,
	.release = stfs_op_release,
	.setattr = stfs_op_setattr,
	.mknod = stfs_op_mknod,
	.mkdir = stfs_op_mkdir,
	.unlink = stfs_op_unlink,
	.rmdir = stfs_op_rmdir,
	.symlink = stfs_op_symlink,
	.link = stfs_op_link,
	.rename = stfs_op_rename,
	.create = stfs_op_create,
};

static void free_handle(struct stfs_front *front, struct stfs_handle *handle)
{
	pthread_mutex_lock(&front->lock);
	handle->prev->next = handle->next;
	handle->next->prev = handle->prev;
	pthread_mutex_unlock(&front->lock);
	stfs_file_close(handle->file);
	stfs_listing_free(handle->listing);
	free(handle);
}

int stfs_front_init(struct stfs_front *front)
{
	front->handles.prev = front->handles.next = &front->handles;
	return -pthread_mutex_init(&front->lock, NULL);
}

void stfs_front_fini(struct stfs_front *front)
{
	while (front->handles.next != &front->handles)
		free_handle(front, front->handles.next);
	pthread_mutex_destroy(&front->lock);
}

int stfs_handle_new(struct stfs_front *front, struct stfs_file *file, struct stfs_listing *listing,
		    struct stfs_handle **ret_handle)
{
	struct stfs_handle *h = malloc(sizeof(*h));

	if (!h) {
		stfs_file_close(file);
		stfs_listing_free(listing);
		return -ENOMEM;
	}
	*h = (struct stfs_handle){
		.prev = &front->handles,
		.refs = 1,
		.complained = ATOMIC_FLAG_INIT,
		.file = file,
		.listing = listing,
	};
	pthread_mutex_lock(&front->lock);
	h->next = front->handles.next;
	h->next->prev = h;
	front->handles.next = h;
	pthread_mutex_unlock(&front->lock);
	*ret_handle = h;
	return 0;
}

void stfs_handle_ref(struct stfs_handle *handle)
{
	atomic_fetch_add_explicit(&handle->refs, 1, memory_order_relaxed);
}

void stfs_handle_unref(struct stfs_front *front, struct stfs_handle *handle)
{
	if (atomic_fetch_sub_explicit(&handle->refs, 1, memory_order_acq_rel) == 1)
		free_handle(front, handle);
}
