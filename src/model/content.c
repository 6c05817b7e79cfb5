/* SPDX-License-Identifier: Apache-2.0 */
#include "content_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"

int stfs_content_alloc(uint64_t ino, const struct stfs_file_attr *attr, struct stfs_content **ret)
{
	struct stfs_content *content = calloc(1, sizeof(*content));

	if (!content)
		return -ENOMEM;
	atomic_init(&content->refs, 1);
	pthread_mutex_init(&content->lock, NULL); /* cannot fail for a plain one */
	content->ino = ino;
	content->attr = *attr;
	content->synced_size = UINT64_MAX;
	*ret = content;
	return 0;
}

int stfs_content_new_run(uint64_t ino, const struct stfs_run *run, const struct stfs_file_attr *attr,
			 struct stfs_content **ret)
{
	int r = stfs_content_alloc(ino, attr, ret);

	if (r < 0)
		return r;
	(*ret)->file = stfs_snapshot_ref(run->file);
	(*ret)->run_begin = run->begin;
	(*ret)->run_size = (*ret)->size = run->size;
	return 0;
}

int stfs_content_new_text(uint64_t ino, struct stfs_slice text, const struct stfs_file_attr *attr,
			  struct stfs_content **ret)
{
	_cleanup_(stfs_content_unrefp) struct stfs_content *content = NULL;
	int r = stfs_content_alloc(ino, attr, &content);

	if (r == 0)
		r = stfs_buf_append(&content->text, text.p, text.len);
	if (r < 0)
		return r;
	content->in_memory = true;
	content->size = text.len;
	*ret = stfs_steal(content);
	return 0;
}

struct stfs_content *stfs_content_ref(struct stfs_content *content)
{
	atomic_fetch_add_explicit(&content->refs, 1, memory_order_relaxed);
	return content;
}

void stfs_content_unref(struct stfs_content *content)
{
	if (!content || atomic_fetch_sub_explicit(&content->refs, 1, memory_order_acq_rel) != 1)
		return;
	content->openers = 0;
	stfs_content_release_fd(content);
	if (content->dropped && content->number && !content->handed_on && !content->kept)
		stfs_stage_file_remove(content->stage, content->number);
	stfs_snapshot_unref(content->file);
	stfs_ranges_fini(&content->ranges);
	stfs_ranges_fini(&content->unsynced);
	stfs_buf_fini(&content->text);
	pthread_mutex_destroy(&content->lock);
	free(content);
}

void stfs_content_drop(struct stfs_content *content)
{
	pthread_mutex_lock(&content->lock);
	content->dropped = true;
	/* A power cut must not bring back the name of what was synced without its bytes. */
	if (content->number && content->synced_size != UINT64_MAX && !content->handed_on)
		content->kept = stfs_stage_sync(content->stage) < 0;
	pthread_mutex_unlock(&content->lock);
}

int stfs_content_need_fd(struct stfs_content *content)
{
	_cleanup_close_ int fd = -1;
	int r;

	if (content->open || !content->number)
		return 0;
	r = stfs_stage_file_open(content->stage, content->number, &fd);
	if (r < 0)
		return r;
	content->open = stfs_shared_fd_new(fd);
	if (!content->open)
		return -ENOMEM;
	(void)stfs_steal_fd(&fd);
	return 0;
}

void stfs_content_release_fd(struct stfs_content *content)
{
	if (content->openers == 0)
		stfs_shared_fd_unref(stfs_steal(content->open));
}

int stfs_content_open(struct stfs_content *content)
{
	int r;

	pthread_mutex_lock(&content->lock);
	r = stfs_content_need_fd(content);
	if (r == 0)
		content->openers++;
	pthread_mutex_unlock(&content->lock);
	return r;
}

void stfs_content_close(struct stfs_content *content)
{
	pthread_mutex_lock(&content->lock);
	content->openers--;
	stfs_content_release_fd(content);
	pthread_mutex_unlock(&content->lock);
}

uint64_t stfs_content_ino(const struct stfs_content *content)
{
	return content->ino;
}

uint64_t stfs_content_size(struct stfs_content *content)
{
	uint64_t size;

	pthread_mutex_lock(&content->lock);
	size = content->size;
	pthread_mutex_unlock(&content->lock);
	return size;
}

void stfs_content_attr(struct stfs_content *content, struct stfs_file_attr *ret)
{
	pthread_mutex_lock(&content->lock);
	*ret = content->attr;
	pthread_mutex_unlock(&content->lock);
}

bool stfs_content_edited(struct stfs_content *content)
{
	bool edited;

	pthread_mutex_lock(&content->lock);
	edited = content->edited;
	pthread_mutex_unlock(&content->lock);
	return edited;
}

bool stfs_content_is_bound(struct stfs_content *content, unsigned long long generation)
{
	bool bound;

	pthread_mutex_lock(&content->lock);
	bound = content->bound == generation;
	pthread_mutex_unlock(&content->lock);
	return bound;
}

void stfs_content_set_bound(struct stfs_content *content, unsigned long long generation)
{
	pthread_mutex_lock(&content->lock);
	content->bound = generation;
	pthread_mutex_unlock(&content->lock);
}

uint64_t stfs_content_stage_number(struct stfs_content *content)
{
	uint64_t number;

	pthread_mutex_lock(&content->lock);
	number = content->number;
	pthread_mutex_unlock(&content->lock);
	return number;
}

uint64_t stfs_content_changed_bytes(struct stfs_content *content)
{
	uint64_t bytes;

	pthread_mutex_lock(&content->lock);
	if (!content->edited)
		bytes = 0;
	else if (content->in_memory || content->whole)
		bytes = content->size;
	else
		bytes = stfs_ranges_bytes(&content->ranges);
	pthread_mutex_unlock(&content->lock);
	return bytes;
}

const char *stfs_content_damage(struct stfs_content *content)
{
	static const char *const phrases[STFS_N_DAMAGES] = {
		[STFS_DAMAGE_WRITE] = "a write to it failed half-way",
		[STFS_DAMAGE_SYNC] = "its staged bytes could not be written to disk",
		[STFS_DAMAGE_POWER] = "a power cut may have taken bytes that were never synced",
	};
	const char *phrase;

	pthread_mutex_lock(&content->lock);
	phrase = phrases[content->damage];
	pthread_mutex_unlock(&content->lock);
	return phrase;
}

bool stfs_content_is_dropped(struct stfs_content *content)
{
	bool dropped;

	pthread_mutex_lock(&content->lock);
	dropped = content->dropped;
	pthread_mutex_unlock(&content->lock);
	return dropped;
}

bool stfs_content_is_handed_on(struct stfs_content *content)
{
	bool handed_on;

	pthread_mutex_lock(&content->lock);
	handed_on = content->handed_on;
	pthread_mutex_unlock(&content->lock);
	return handed_on;
}

bool stfs_content_run(struct stfs_content *content, struct stfs_run *ret)
{
	bool is_run;

	pthread_mutex_lock(&content->lock);
	is_run = !content->in_memory && !content->number && content->file;
	if (is_run)
		*ret = (struct stfs_run){ content->file, content->run_begin, content->size };
	pthread_mutex_unlock(&content->lock);
	return is_run;
}

/* The extent that starts at `offset`, of at most `size` bytes. Called with the lock held. */
static struct stfs_extent next_extent(const struct stfs_content *content, uint64_t offset, size_t size)
{
	uint64_t end = UINT64_MAX, at;
	const char *map;

	if (content->whole || (content->number && stfs_ranges_at(&content->ranges, offset, &end)))
		return (struct stfs_extent){
			.fd = stfs_content_fd(content),
			.offset = content->shift + offset,
			.len = (size_t)STFS_MIN(size, end - offset),
		};
	if (offset >= content->run_size)
		return (struct stfs_extent){ .fd = -1, .hole = true, .len = (size_t)STFS_MIN(size, end - offset) };
	end = STFS_MIN(end, content->run_size);
	at = content->run_begin + offset;
	map = stfs_snapshot_map(content->file);
	return (struct stfs_extent){
		.mem = map ? map + at : NULL,
		.fd = stfs_snapshot_fd(content->file),
		.offset = at,
		.len = (size_t)STFS_MIN(size, end - offset),
	};
}

static int map_text(const struct stfs_content *content, uint64_t offset, size_t size, struct stfs_lease *lease,
		    struct stfs_extent *ret)
{
	int r = stfs_buf_append(&lease->copied, content->text.data + offset, size);

	if (r < 0)
		return r;
	*ret = (struct stfs_extent){ .mem = lease->copied.data, .fd = -1, .len = size };
	return 1;
}

int stfs_content_map(struct stfs_content *content, uint64_t offset, size_t size, struct stfs_lease *lease,
		     struct stfs_extent *ret, int max, struct stfs_diag *diag, bool *ret_first)
{
	int n = 0, r = 0;

	stfs_lease_fini(lease);
	pthread_mutex_lock(&content->lock);
	size = offset < content->size ? (size_t)STFS_MIN(size, content->size - offset) : 0;
	if (size && content->in_memory) {
		n = map_text(content, offset, size, lease, ret);
		size = 0;
	} else if (size && content->run_size) {
		r = stfs_snapshot_check(content->file, diag, ret_first);
	}
	for (; r == 0 && size && n < max; n++) {
		ret[n] = next_extent(content, offset, size);
		offset += ret[n].len;
		size -= ret[n].len;
	}
	if (n > 0 && !content->in_memory) {
		lease->file = content->run_size ? stfs_snapshot_ref(content->file) : NULL;
		lease->staged = stfs_shared_fd_ref(content->open);
	}
	pthread_mutex_unlock(&content->lock);
	return r < 0 ? -EIO : n;
}

int stfs_content_read_run(struct stfs_content *content, uint64_t offset, void *data, size_t len)
{
	int r = stfs_snapshot_check(content->file, NULL, NULL);

	if (r == 0)
		r = stfs_pread_full(stfs_snapshot_fd(content->file), data, len, content->run_begin + offset);
	/* Also after: what was read must be what the header spoke of. */
	if (r == 0)
		r = stfs_snapshot_check(content->file, NULL, NULL);
	return r < 0 ? -EIO : 0;
}

int stfs_extent_read(const struct stfs_extent *extent, void *data)
{
	if (extent->fd >= 0)
		return stfs_pread_full(extent->fd, data, extent->len, extent->offset);
	if (extent->hole)
		memset(data, 0, extent->len);
	else
		memcpy(data, extent->mem, extent->len);
	return 0;
}

int stfs_content_read(struct stfs_content *content, size_t max, struct stfs_buf *buf)
{
	_cleanup_lease_ struct stfs_lease lease = { 0 };
	uint64_t size = STFS_MIN(stfs_content_size(content), max), at = 0;
	int r = stfs_buf_reserve(buf, (size_t)size);

	if (r == 0)
		r = stfs_content_open(content);
	if (r < 0)
		return r;
	while (at < size) {
		struct stfs_extent extent;

		r = stfs_content_map(content, at, (size_t)(size - at), &lease, &extent, 1, NULL, NULL);
		if (r > 0)
			r = stfs_extent_read(&extent, buf->data + buf->len);
		else if (r == 0)
			break; /* cut meanwhile */
		if (r < 0)
			break;
		buf->len += extent.len;
		at += extent.len;
	}
	stfs_content_close(content);
	return r < 0 ? r : 0;
}
