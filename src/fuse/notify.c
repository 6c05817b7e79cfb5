/* SPDX-License-Identifier: Apache-2.0 */
#include "notify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct stfs_notice {
	struct stfs_notice *next;
	fuse_ino_t ino;  /* that changed, or the parent of an entry that did */
	size_t name_len; /* 0: an inode */
	char name[];
};

void stfs_notifier_init(struct stfs_notifier *notifier)
{
	*notifier = (struct stfs_notifier){ .last = &notifier->first };
	pthread_mutex_init(&notifier->lock, NULL); /* neither can fail for plain ones */
	pthread_cond_init(&notifier->changed, NULL);
}

/* Adds a notice. Without memory for it the kernel believes the old state until its timeout, a second. */
static void queue(struct stfs_notifier *notifier, fuse_ino_t ino, struct stfs_slice name)
{
	struct stfs_notice *notice = malloc(sizeof(*notice) + name.len + 1);

	if (!notice)
		return;
	*notice = (struct stfs_notice){ .ino = ino, .name_len = name.len };
	if (name.len)
		memcpy(notice->name, name.p, name.len);
	notice->name[name.len] = '\0';
	pthread_mutex_lock(&notifier->lock);
	*notifier->last = notice;
	notifier->last = &notice->next;
	pthread_cond_broadcast(&notifier->changed);
	pthread_mutex_unlock(&notifier->lock);
}

static void on_changed(void *user, uint64_t ino)
{
	queue(user, ino, (struct stfs_slice){ 0 });
}

static void on_renamed(void *user, uint64_t parent, struct stfs_slice name)
{
	queue(user, parent, name);
}

struct stfs_view_watcher stfs_notifier_watcher(struct stfs_notifier *notifier)
{
	return (struct stfs_view_watcher){ on_changed, on_renamed, notifier };
}

/* What the kernel does not know it need not forget: errors are of no interest. */
static void tell(struct fuse_session *fuse, const struct stfs_notice *notice)
{
	if (notice->name_len)
		fuse_lowlevel_notify_inval_entry(fuse, notice->ino, notice->name, notice->name_len);
	else
		fuse_lowlevel_notify_inval_inode(fuse, notice->ino, 0, 0);
}

static void *work(void *arg)
{
	struct stfs_notifier *notifier = arg;

	pthread_mutex_lock(&notifier->lock);
	for (;;) {
		struct stfs_notice *notice = notifier->first;

		if (!notice && notifier->stop)
			break;
		if (!notice) {
			pthread_cond_wait(&notifier->changed, &notifier->lock);
			continue;
		}
		notifier->first = notice->next;
		if (!notifier->first)
			notifier->last = &notifier->first;
		notifier->busy = true;
		pthread_mutex_unlock(&notifier->lock);
		tell(notifier->fuse, notice);
		free(notice);
		pthread_mutex_lock(&notifier->lock);
		notifier->busy = false;
		pthread_cond_broadcast(&notifier->changed);
	}
	pthread_mutex_unlock(&notifier->lock);
	return NULL;
}

int stfs_notifier_start(struct stfs_notifier *notifier, struct fuse_session *fuse)
{
	int error;

	notifier->fuse = fuse;
	error = pthread_create(&notifier->thread, NULL, work, notifier);
	notifier->started = error == 0;
	return -error;
}

void stfs_notifier_drain(struct stfs_notifier *notifier)
{
	pthread_mutex_lock(&notifier->lock);
	while (notifier->started && (notifier->first || notifier->busy))
		pthread_cond_wait(&notifier->changed, &notifier->lock);
	pthread_mutex_unlock(&notifier->lock);
}

void stfs_notifier_stop(struct stfs_notifier *notifier)
{
	if (!notifier->started)
		return;
	pthread_mutex_lock(&notifier->lock);
	notifier->stop = true;
	pthread_cond_broadcast(&notifier->changed);
	pthread_mutex_unlock(&notifier->lock);
	pthread_join(notifier->thread, NULL);
	notifier->started = false;
}

void stfs_notifier_fini(struct stfs_notifier *notifier)
{
	stfs_notifier_stop(notifier);
	/* What was queued after the end. */
	while (notifier->first) {
		struct stfs_notice *notice = notifier->first;

		notifier->first = notice->next;
		free(notice);
	}
	pthread_cond_destroy(&notifier->changed);
	pthread_mutex_destroy(&notifier->lock);
}
