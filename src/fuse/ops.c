/* SPDX-License-Identifier: Apache-2.0 */
#include "ops.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Left out on purpose. Locks: without them the kernel keeps locks itself. Extended attributes: offering them costs requests
 * that every tool can do without. access: the kernel checks the modes (default_permissions).
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
	.write = stfs_op_write,
	.flush = stfs_op_flush,
	.fsync = stfs_op_fsync,
	.fsyncdir = stfs_op_fsyncdir,
	.fallocate = stfs_op_fallocate,
	.copy_file_range = stfs_op_copy_file_range,
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
	stfs_buf_fini(&handle->answer);
	free(handle);
}

int stfs_front_init(struct stfs_front *front)
{
	front->handles.prev = front->handles.next = &front->handles;
	stfs_parking_init(&front->parking);
	stfs_notifier_init(&front->notifier);
	stfs_jobs_init(&front->jobs);
	return -pthread_mutex_init(&front->lock, NULL);
}

void stfs_front_fini(struct stfs_front *front)
{
	while (front->handles.next != &front->handles)
		free_handle(front, front->handles.next);
	stfs_jobs_fini(&front->jobs);
	stfs_notifier_fini(&front->notifier);
	stfs_parking_fini(&front->parking);
	pthread_mutex_destroy(&front->lock);
}

int stfs_handle_new(struct stfs_front *front, const struct stfs_handle *init, struct stfs_handle **ret_handle)
{
	struct stfs_handle *h = malloc(sizeof(*h));

	if (!h) {
		stfs_file_close(init->file);
		stfs_listing_free(init->listing);
		return -ENOMEM;
	}
	*h = *init;
	h->prev = &front->handles;
	atomic_init(&h->refs, 1);
	atomic_init(&h->cut, false);
	atomic_flag_clear(&h->complained);
	pthread_mutex_lock(&front->lock);
	h->next = front->handles.next;
	h->next->prev = h;
	front->handles.next = h;
	pthread_mutex_unlock(&front->lock);
	*ret_handle = h;
	return 0;
}

void stfs_handle_set_answer(struct stfs_front *front, struct stfs_handle *handle, struct stfs_slice text)
{
	pthread_mutex_lock(&front->lock);
	handle->answered = true;
	handle->answer.len = 0;
	(void)!stfs_buf_append(&handle->answer, text.p, text.len);
	pthread_mutex_unlock(&front->lock);
}

/* A handle that is on its way out has no reference left to take. */
static bool try_ref(struct stfs_handle *handle)
{
	unsigned refs = atomic_load(&handle->refs);

	while (refs && !atomic_compare_exchange_weak(&handle->refs, &refs, refs + 1))
		;
	return refs;
}

struct stfs_handle *stfs_handle_find(struct stfs_front *front, fuse_ino_t ino)
{
	struct stfs_handle *found = NULL;

	pthread_mutex_lock(&front->lock);
	for (struct stfs_handle *h = front->handles.next; h != &front->handles && !found; h = h->next) {
		if (h->file && h->ino == ino && try_ref(h))
			found = h;
	}
	pthread_mutex_unlock(&front->lock);
	return found;
}

static int compare_inos(const void *a, const void *b)
{
	fuse_ino_t x = *(const fuse_ino_t *)a, y = *(const fuse_ino_t *)b;

	return (x > y) - (x < y);
}

int stfs_handle_list_writable(struct stfs_front *front, fuse_ino_t **ret_inos, size_t *ret_n)
{
	fuse_ino_t *inos;
	size_t n = 0, unique = 0;

	pthread_mutex_lock(&front->lock);
	for (struct stfs_handle *h = front->handles.next; h != &front->handles; h = h->next)
		n += h->writable;
	inos = calloc(n + 1, sizeof(*inos));
	n = 0;
	for (struct stfs_handle *h = front->handles.next; inos && h != &front->handles; h = h->next) {
		if (h->writable)
			inos[n++] = h->ino;
	}
	pthread_mutex_unlock(&front->lock);
	if (!inos)
		return -ENOMEM;
	qsort(inos, n, sizeof(*inos), compare_inos);
	for (size_t i = 0; i < n; i++) {
		if (unique == 0 || inos[unique - 1] != inos[i])
			inos[unique++] = inos[i];
	}
	*ret_inos = inos;
	*ret_n = unique;
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
