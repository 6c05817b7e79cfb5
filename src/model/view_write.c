/* SPDX-License-Identifier: Apache-2.0 */
/* Open files that are written. */
#include <errno.h>
#include <stdlib.h>

#include "attr_text.h"
#include "file_private.h"

#define BEFORE_MAX ((size_t)1 << 20) /* bytes of a text that are kept to be put back */

int stfs_file_new(struct stfs_view *view, struct stfs_content *content, enum stfs_role role, uint32_t npy_dir,
		  struct stfs_file **ret_file)
{
	_cleanup_(stfs_file_closep) struct stfs_file *file = NULL;
	int r = stfs_file_alloc(view, stfs_content_ino(content), &file);

	if (r == 0 && npy_dir != STFS_NODE_NONE) {
		file->fixed = true;
		file->ino = view->tree.nodes[npy_dir].id << STFS_SLOT_BITS | STFS_SLOT_NPY;
		r = stfs_view_npy_head(view, npy_dir, &file->head);
	}
	if (r == 0)
		r = stfs_content_open(content);
	if (r < 0)
		return r;
	atomic_store(&file->content, stfs_content_ref(content));
	file->writable = true;
	file->role = role;
	*ret_file = stfs_steal(file);
	return 0;
}

int stfs_edit_file_node(struct stfs_view *view, uint64_t ino, uint32_t *ret)
{
	struct stfs_place place;
	int r = stfs_view_resolve(view, ino, &place);

	if (r < 0)
		return r;
	switch (place.slot) {
	case STFS_SLOT_FILE:
		break;
	case STFS_SLOT_DIR:
	case STFS_SLOT_CONTROL_DIR:
		return -EISDIR;
	case STFS_SLOT_KEY:
		r = stfs_change_make_file(view, place.node);
		break;
	case STFS_SLOT_DATA:
	case STFS_SLOT_DTYPE:
	case STFS_SLOT_SHAPE:
		r = stfs_change_make_explicit(view, place.node);
		if (r == 0)
			place.node = stfs_tree_find(&view->tree, stfs_change_id_of_ino(ino));
		break;
	default:
		return -EACCES;
	}
	if (r == 0)
		*ret = place.node;
	return r;
}

/* The data.npy that we generate: emptied it becomes a file of its own, else its bytes are the tensor's. */
static int open_npy(struct stfs_view *view, const struct stfs_place *place, bool truncate, struct stfs_file **ret_file)
{
	struct stfs_attr shown;
	struct stfs_file_attr attr;
	uint32_t node, dir = place->node;
	int r = stfs_change_make_explicit(view, dir);

	if (r == 0)
		r = stfs_view_fill_attr(view, place, &shown);
	if (r < 0)
		return r;
	attr = (struct stfs_file_attr){ shown.perm, shown.uid, shown.gid, shown.mtime };
	if (truncate) {
		r = stfs_edit_add_file(view, dir, stfs_slice_of("data.npy"), place->ino, &attr, &node);
		return r < 0 ? r :
			       stfs_file_new(view, stfs_view_content(view, node), STFS_ROLE_NPY, STFS_NODE_NONE,
					     ret_file);
	}
	node = stfs_view_role_node(view, dir, STFS_ROLE_DATA);
	if (node == STFS_NODE_NONE)
		return -ENOENT;
	r = stfs_edit_bind(view, stfs_view_content(view, node));
	return r < 0 ? r : stfs_file_new(view, stfs_view_content(view, node), STFS_ROLE_NPY, dir, ret_file);
}

static void swap_before(struct stfs_file *file, struct stfs_buf *text)
{
	struct stfs_buf former;

	pthread_mutex_lock(&file->view->lock);
	former = file->before;
	file->before = *text;
	pthread_mutex_unlock(&file->view->lock);
	*text = former;
}

/* Empties a file; the text of a dtype or shape is kept, should what follows be refused. */
static int empty(struct stfs_file *file)
{
	struct stfs_content *content = atomic_load(&file->content);
	uint64_t size = stfs_content_size(content);
	_cleanup_buf_ struct stfs_buf before = { 0 };
	int r = 0;

	/* What is larger is no text of the kind: nothing is lost with it. */
	if ((file->role == STFS_ROLE_DTYPE || file->role == STFS_ROLE_SHAPE) && size > 0 && size <= BEFORE_MAX) {
		r = stfs_content_read(content, BEFORE_MAX, &before);
		if (r == 0)
			swap_before(file, &before);
	}
	return r < 0 ? r : stfs_content_truncate(content, file->view->stage, 0);
}

static int open_node(struct stfs_view *view, uint64_t ino, bool truncate, struct stfs_file **ret_file)
{
	_cleanup_(stfs_file_closep) struct stfs_file *file = NULL;
	enum stfs_role role;
	uint32_t node;
	int r = stfs_edit_file_node(view, ino, &node);

	if (r == 0)
		r = stfs_edit_bind(view, stfs_view_content(view, node));
	if (r < 0)
		return r;
	role = stfs_view_role(view, node);
	r = stfs_file_new(view, stfs_view_content(view, node), role, STFS_NODE_NONE, &file);
	if (r < 0)
		return r;
	r = truncate ? empty(file) : 0;
	if (r < 0)
		return r;
	*ret_file = stfs_steal(file);
	return 0;
}

int stfs_view_open_write(struct stfs_view *view, uint64_t ino, bool truncate, struct stfs_file **ret_file)
{
	struct stfs_place place;
	int r = stfs_edit_begin(view);

	if (r < 0)
		return r;
	r = stfs_view_resolve(view, ino, &place);
	if (r == 0 && place.slot == STFS_SLOT_NPY)
		r = open_npy(view, &place, truncate, ret_file);
	else if (r == 0)
		r = open_node(view, ino, truncate, ret_file);
	stfs_edit_end(view);
	return r;
}

/* -EINVAL for a whole line, written at once at the start, that can never be what this file holds. Else 0 or -ENOMEM. */
static int judge(const struct stfs_file *file, const void *data, size_t size, uint64_t offset)
{
	_cleanup_buf_ struct stfs_buf dims = { 0 };
	struct stfs_slice text = { data, size };
	enum stfs_dtype dtype;
	uint32_t rank;

	if (offset != 0 || size == 0 || text.p[size - 1] != '\n')
		return 0;
	if (file->role == STFS_ROLE_DTYPE)
		return stfs_dtype_of_text(text, &dtype) ? 0 : -EINVAL;
	return file->role == STFS_ROLE_SHAPE ? stfs_shape_of_text(text, &dims, &rank) : 0;
}

/* Refuses what was written, and puts back what emptying the file took away. */
static int refuse(struct stfs_file *file)
{
	struct stfs_content *content = atomic_load(&file->content);
	_cleanup_buf_ struct stfs_buf before = { 0 };
	size_t written;
	int r = 0;

	swap_before(file, &before);
	if (before.len && stfs_content_size(content) == 0)
		r = stfs_content_write(content, file->view->stage, before.data, before.len, 0, &written);
	return r < 0 ? r : -EINVAL;
}

/* A write into the NumPy header must not change it; what comes after it is the tensor's. */
static int write_npy(struct stfs_file *file, const char *data, size_t size, uint64_t offset, size_t *ret_written)
{
	size_t skip = 0, written;
	int r;

	if (offset < file->head.len) {
		skip = STFS_MIN(size, file->head.len - (size_t)offset);
		if (memcmp(file->head.data + offset, data, skip) != 0)
			return -EINVAL;
	}
	if (skip < size) {
		r = stfs_content_write(atomic_load(&file->content), file->view->stage, data + skip, size - skip,
				       offset + skip - file->head.len, &written);
		if (r < 0)
			return r;
		skip += written;
	}
	*ret_written = skip;
	return 0;
}

/*
 * Writing needs no lock on the tree, but must not run into a commit: the read lock is held so that a commit, which takes the
 * write lock to begin, waits for it.
 */
static int begin_write(struct stfs_file *file)
{
	struct stfs_view *view = file->view;
	int r;

	if (!view->stage)
		return -EROFS;
	r = stfs_file_follow(file);
	if (r < 0)
		return r;
	pthread_rwlock_rdlock(&view->tree_lock);
	/* A commit or discard took the staging area away since the file was opened: an empty change makes a new one. */
	while (!stfs_stage_journal(view->stage) || stfs_file_is_left_behind(file)) {
		pthread_rwlock_unlock(&view->tree_lock);
		r = stfs_edit_begin(view);
		if (r < 0)
			return r;
		stfs_edit_end(view);
		r = stfs_file_follow(file);
		if (r < 0)
			return r;
		pthread_rwlock_rdlock(&view->tree_lock);
	}
	r = atomic_load(&view->frozen) ? stfs_view_frozen_error(view) :
					 stfs_edit_bind(view, atomic_load(&file->content));
	if (r < 0)
		pthread_rwlock_unlock(&view->tree_lock);
	return r;
}

struct stfs_content *stfs_file_heir(const struct stfs_view *view, struct stfs_content *content, uint64_t *ret_skip)
{
	uint64_t heir = stfs_content_heir(content, ret_skip);
	uint32_t node = heir ? stfs_tree_find(&view->tree, stfs_change_id_of_ino(heir)) : STFS_NODE_NONE;

	return node != STFS_NODE_NONE && view->tree.nodes[node].kind == STFS_NODE_OWN ? stfs_view_content(view, node) :
											NULL;
}

/*
 * A NumPy file that took effect has handed its bytes on, and who has it mapped writes to them. A commit parts the two: then what is
 * written goes to the tensor as well.
 */
static int pass_on(struct stfs_view *view, struct stfs_content *from, const char *data, size_t size, uint64_t offset)
{
	uint64_t skip, begin, end;
	struct stfs_content *to = stfs_file_heir(view, from, &skip);
	size_t written;
	int r;

	if (!to)
		return 0;
	begin = STFS_MAX(offset, skip);
	end = STFS_MIN(offset + size, skip + stfs_content_size(to));
	if (stfs_content_stage_number(to) == stfs_content_stage_number(from) || begin >= end)
		return 0;
	r = stfs_edit_bind(view, to);
	return r < 0 ? r :
		       stfs_content_write(to, view->stage, data + (begin - offset), end - begin, begin - skip,
					  &written);
}

static int write_bytes(struct stfs_file *file, const char *data, size_t size, uint64_t offset, size_t *ret_written)
{
	struct stfs_content *content = atomic_load(&file->content);
	int r = stfs_content_write(content, file->view->stage, data, size, offset, ret_written);

	return r < 0 ? r : pass_on(file->view, content, data, *ret_written, offset);
}

/* The file that shows what is written to this one, or 0: the kernel must be told of it. */
static uint64_t other_ino(struct stfs_file *file)
{
	struct stfs_content *content = atomic_load(&file->content);
	uint64_t skip;

	return file->fixed ? stfs_content_ino(content) : stfs_content_heir(content, &skip);
}

int stfs_file_write(struct stfs_file *file, const void *data, size_t size, uint64_t offset, size_t *ret_written)
{
	struct stfs_view *view = file->view;
	uint64_t other;
	int r;

	if (!file->writable)
		return -EBADF;
	r = begin_write(file);
	if (r < 0)
		return r;
	r = judge(file, data, size, offset);
	if (r == -EINVAL)
		r = refuse(file);
	else if (r == 0 && file->fixed)
		r = write_npy(file, data, size, offset, ret_written);
	else if (r == 0)
		r = write_bytes(file, data, size, offset, ret_written);
	other = other_ino(file);
	atomic_fetch_add(&view->generation, 1);
	pthread_rwlock_unlock(&view->tree_lock);
	/* What was stored in a map and refused when it was written back is still in the kernel's page. */
	if (r == -EINVAL)
		other = file->ino;
	if (other && view->watcher.changed)
		view->watcher.changed(view->watcher.user, other);
	return r;
}

int stfs_file_getattr(struct stfs_file *file, struct stfs_attr *ret_attr)
{
	struct stfs_content *content = atomic_load(&file->content);
	struct stfs_file_attr attr;
	int r = stfs_view_getattr(file->view, file->ino, ret_attr);

	if (r != -ESTALE)
		return r;
	*ret_attr = file->view->whole;
	ret_attr->ino = file->ino;
	ret_attr->nlink = 0;
	ret_attr->size = file->size;
	if (!content || file->fixed)
		ret_attr->size += file->head.len;
	if (!content)
		return 0;
	stfs_content_attr(content, &attr);
	ret_attr->perm = attr.perm;
	ret_attr->uid = attr.uid;
	ret_attr->gid = attr.gid;
	ret_attr->mtime = attr.mtime;
	ret_attr->size = stfs_content_size(content) + (file->fixed ? file->head.len : 0);
	return 0;
}

static int set_file_attr(struct stfs_file *file, struct stfs_content *content, const struct stfs_attr_change *change)
{
	struct stfs_stage *stage = file->view->stage;
	struct stfs_file_attr attr;
	int r = 0;

	/* vim empties what it has opened. */
	if (change->set_size)
		r = file->fixed       ? -EACCES :
		    change->size == 0 ? empty(file) :
					stfs_content_truncate(content, stage, change->size);
	if (r < 0 || !(change->set_perm || change->set_uid || change->set_gid || change->set_mtime))
		return r;
	stfs_content_attr(content, &attr);
	stfs_edit_apply_change(&attr, change);
	return stfs_content_set_attr(content, stage, &attr);
}

int stfs_file_setattr(struct stfs_file *file, const struct stfs_attr_change *change, struct stfs_attr *ret_attr)
{
	int r;

	if (!atomic_load(&file->content))
		return -EBADF;
	r = begin_write(file);
	if (r < 0)
		return r;
	r = set_file_attr(file, atomic_load(&file->content), change);
	atomic_fetch_add(&file->view->generation, 1);
	pthread_rwlock_unlock(&file->view->tree_lock);
	return r < 0 ? r : stfs_file_getattr(file, ret_attr);
}

bool stfs_file_is_generated(const struct stfs_file *file)
{
	return file->fixed;
}

int stfs_file_allocate(struct stfs_file *file, uint64_t size)
{
	struct stfs_content *content;
	int r;

	if (!file->writable)
		return -EBADF;
	r = begin_write(file);
	if (r < 0)
		return r;
	content = atomic_load(&file->content);
	if (!file->fixed)
		r = stfs_content_grow(content, file->view->stage, size);
	else if (stfs_content_size(content) < size)
		r = -EOPNOTSUPP;
	atomic_fetch_add(&file->view->generation, 1);
	pthread_rwlock_unlock(&file->view->tree_lock);
	return r;
}

/* The run of the model that an open file consists of, and which file of the model it is in. */
static bool run_of_file(struct stfs_file *file, struct stfs_run *ret, uint64_t *ret_file)
{
	const struct stfs_model *model = file->view->model;
	struct stfs_content *content = atomic_load(&file->content);

	if (file->fixed || (content ? !stfs_content_run(content, ret) : !file->source))
		return false;
	if (!content)
		*ret = (struct stfs_run){ file->source, file->begin, file->size };
	for (uint32_t i = 0; i < model->n_files; i++) {
		if (model->files[i] == ret->file) {
			*ret_file = i;
			return true;
		}
	}
	return false; /* of the model before a commit */
}

/* A run from its beginning, or on from where the target ends: that is what cp asks for. Small ones are better off as text. */
static int refer(struct stfs_file *from, uint64_t offset, struct stfs_file *to, uint64_t len, uint64_t *ret_copied)
{
	struct stfs_content *target = atomic_load(&to->content);
	struct stfs_run run;
	uint64_t file;
	int r;

	if (offset != stfs_content_size(target) || !run_of_file(from, &run, &file) || offset >= run.size)
		return -EOPNOTSUPP;
	run.size = offset + STFS_MIN(len, run.size - offset);
	if (run.size <= STFS_SMALL_MAX)
		return -EOPNOTSUPP;
	r = stfs_content_refer(target, to->view->stage, file, &run);
	if (r == 0)
		*ret_copied = run.size - offset;
	return r == -EINVAL ? -EOPNOTSUPP : r;
}

int stfs_file_copy(struct stfs_file *from, uint64_t from_offset, struct stfs_file *to, uint64_t to_offset, uint64_t len,
		   uint64_t *ret_copied)
{
	int r;

	if (!to->writable || to->fixed || from_offset != to_offset)
		return -EOPNOTSUPP;
	r = stfs_file_follow(from);
	if (r == 0)
		r = begin_write(to);
	if (r < 0)
		return r;
	r = refer(from, from_offset, to, len, ret_copied);
	atomic_fetch_add(&to->view->generation, 1);
	pthread_rwlock_unlock(&to->view->tree_lock);
	return r;
}

/* The directory whose data.npy this file is now, or STFS_NODE_NONE. */
static uint32_t npy_dir_of(const struct stfs_file *file)
{
	const struct stfs_view *view = file->view;
	uint32_t node = stfs_tree_find(&view->tree, stfs_change_id_of_ino(file->ino));

	if (node == STFS_NODE_NONE || view->tree.nodes[node].kind != STFS_NODE_OWN ||
	    stfs_view_role(view, node) != STFS_ROLE_NPY)
		return STFS_NODE_NONE;
	return view->tree.nodes[node].parent;
}

static bool is_npy(const struct stfs_file *file)
{
	_cleanup_view_lock_ struct stfs_view *locked = stfs_view_read_lock(file->view);

	return npy_dir_of(file) != STFS_NODE_NONE;
}

int stfs_file_flush(struct stfs_file *file)
{
	struct stfs_npy_effect effect = { 0 };
	struct stfs_view *view = file->view;
	uint32_t dir;
	int r;

	if (!file->writable || file->fixed || !is_npy(file))
		return 0;
	r = stfs_edit_begin(view);
	if (r < 0)
		return r == -EBUSY ? r : 0;
	dir = npy_dir_of(file);
	if (dir != STFS_NODE_NONE)
		stfs_edit_take_npy(view, dir, &effect);
	stfs_edit_end(view);
	stfs_edit_tell_npy(view, &effect);
	return 0;
}
