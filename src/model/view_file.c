/* SPDX-License-Identifier: Apache-2.0 */
/* Open files: where their bytes are. */
#include <errno.h>
#include <stdlib.h>

#include "file_private.h"
#include "npy.h"
#include "text.h"

/* Appends what stands before a tensor's bytes, which is all there is in most kinds of file. */
static int write_head(struct stfs_buf *buf, struct stfs_view *view, const struct stfs_place *place)
{
	const struct stfs_tensor *tensor;

	switch (place->slot) {
	case STFS_SLOT_DTYPE:
		return stfs_text_dtype(buf, stfs_view_tensor(view, place->node));
	case STFS_SLOT_SHAPE:
		return stfs_text_shape(buf, stfs_view_tensor(view, place->node));
	case STFS_SLOT_NPY:
		if (stfs_view_is_explicit(view, place->node))
			return stfs_view_npy_head(view, place->node, buf);
		tensor = stfs_view_tensor(view, place->node);
		return stfs_npy_write(buf, tensor->dtype, stfs_tensor_dims(tensor));
	case STFS_SLOT_KEY:
		return stfs_text_metadata(buf, &view->model->metadata[view->tree.nodes[place->node].entry]);
	case STFS_SLOT_CONTROL_FILE:
		return stfs_controls[place->node].write(buf, view);
	default:
		return 0;
	}
}

static int measure_head(struct stfs_view *view, const struct stfs_place *place, size_t *ret_size)
{
	_cleanup_buf_ struct stfs_buf head = { 0 };
	int r = write_head(&head, view, place);

	if (r < 0)
		return r;
	*ret_size = head.len;
	return 0;
}

/* Tables of the whole model are long: their length is kept until something changes, their text is not. */
static int measure_control(struct stfs_view *view, const struct stfs_place *place, uint64_t *ret_size)
{
	unsigned long long generation = atomic_load(&view->generation) + 1;
	bool known;
	size_t size = 0;
	int r;

	if (!stfs_controls[place->node].settled) {
		r = measure_head(view, place, &size);
		if (r == 0)
			*ret_size = size;
		return r;
	}
	pthread_mutex_lock(&view->lock);
	known = view->control_sizes[place->node].generation == generation;
	size = view->control_sizes[place->node].size;
	pthread_mutex_unlock(&view->lock);
	if (!known) {
		r = measure_head(view, place, &size);
		if (r < 0)
			return r;
		pthread_mutex_lock(&view->lock);
		view->control_sizes[place->node].generation = generation;
		view->control_sizes[place->node].size = size;
		pthread_mutex_unlock(&view->lock);
	}
	*ret_size = size;
	return 0;
}

/* Bytes of the tensor in a directory, generated or not. */
static uint64_t data_size(const struct stfs_view *view, uint32_t node)
{
	const struct stfs_tensor *tensor;
	uint32_t data;

	if (stfs_view_is_explicit(view, node)) {
		data = stfs_view_role_node(view, node, STFS_ROLE_DATA);
		return data == STFS_NODE_NONE ? 0 : stfs_content_size(stfs_view_content(view, data));
	}
	tensor = stfs_view_tensor(view, node);
	return tensor->end - tensor->begin;
}

int stfs_view_size(struct stfs_view *view, const struct stfs_place *place, uint64_t *ret_size)
{
	size_t head;
	int r;

	switch (place->slot) {
	case STFS_SLOT_FILE:
		*ret_size = stfs_content_size(stfs_view_content(view, place->node));
		return 0;
	case STFS_SLOT_CONTROL_FILE:
		return measure_control(view, place, ret_size);
	case STFS_SLOT_KEY:
		*ret_size = view->model->metadata[view->tree.nodes[place->node].entry].value.len + 1;
		return 0;
	case STFS_SLOT_DATA:
		*ret_size = data_size(view, place->node);
		return 0;
	default:
		break;
	}
	r = measure_head(view, place, &head);
	if (r < 0)
		return r;
	*ret_size = head + (place->slot == STFS_SLOT_NPY ? data_size(view, place->node) : 0);
	return 0;
}

static int attach_content(struct stfs_file *file, struct stfs_content *content)
{
	struct stfs_content *none = NULL;
	int r = stfs_content_open(content);

	if (r < 0)
		return r;
	stfs_content_ref(content);
	/* Whoever comes second finds the first one's. */
	if (!atomic_compare_exchange_strong(&file->content, &none, content)) {
		stfs_content_close(content);
		stfs_content_unref(content);
	}
	return 0;
}

/* The content that an open file reads: its own, or for a data.npy that is made up that of the data. NULL: there is none. */
static struct stfs_content *find_content(const struct stfs_file *file)
{
	const struct stfs_view *view = file->view;
	struct stfs_place place;
	uint32_t node = STFS_NODE_NONE;

	if (stfs_view_resolve(view, file->ino, &place) < 0)
		return NULL;
	if (place.slot == STFS_SLOT_FILE && !file->fixed)
		node = place.node;
	else if (place.slot == STFS_SLOT_NPY && file->fixed && stfs_view_is_explicit(view, place.node))
		node = stfs_view_role_node(view, place.node, STFS_ROLE_DATA);
	return node == STFS_NODE_NONE ? NULL : stfs_view_content(view, node);
}

bool stfs_file_is_left_behind(struct stfs_file *file)
{
	struct stfs_content *content = atomic_load(&file->content);
	struct stfs_place place;

	return content && stfs_content_is_dropped(content) && !stfs_content_is_handed_on(content) &&
	       stfs_view_resolve(file->view, file->ino, &place) == 0 && (place.slot == STFS_SLOT_NPY) == file->fixed;
}

/* Makes a file of the model that a left one goes on as. Called with the tree locked for a change. */
static int make_content(const struct stfs_file *file, struct stfs_content **ret)
{
	struct stfs_place place;
	uint32_t node;
	int r = stfs_view_resolve(file->view, file->ino, &place);

	if (r == 0)
		r = place.slot == STFS_SLOT_NPY ? stfs_change_make_explicit(file->view, place.node) :
						  stfs_edit_file_node(file->view, file->ino, &node);
	if (r < 0)
		return r;
	*ret = find_content(file);
	return *ret ? stfs_content_open(*ret) : -ENOENT;
}

static int leave_dropped(struct stfs_file *file)
{
	struct stfs_former *former = malloc(sizeof(*former));
	struct stfs_content *content;
	int r = 0;

	if (!former)
		return -ENOMEM;
	pthread_rwlock_wrlock(&file->view->tree_lock);
	/* Another thread may have been here. */
	if (stfs_file_is_left_behind(file)) {
		r = make_content(file, &content);
		if (r == 0) {
			*former = (struct stfs_former){ file->formers, atomic_load(&file->content) };
			file->formers = stfs_steal(former);
			atomic_store(&file->content, stfs_content_ref(content));
		}
	}
	pthread_rwlock_unlock(&file->view->tree_lock);
	free(former);
	return r;
}

int stfs_file_follow(struct stfs_file *file)
{
	struct stfs_content *content = atomic_load(&file->content), *found;
	bool left;
	int r = 0;

	if (!file->view->stage || (content && !stfs_content_is_dropped(content)))
		return 0;
	pthread_rwlock_rdlock(&file->view->tree_lock);
	left = stfs_file_is_left_behind(file);
	found = content ? NULL : find_content(file);
	if (found)
		r = attach_content(file, found);
	pthread_rwlock_unlock(&file->view->tree_lock);
	return left ? leave_dropped(file) : r;
}

static void close_content(struct stfs_content *content)
{
	if (!content)
		return;
	stfs_content_close(content);
	stfs_content_unref(content);
}

void stfs_file_close(struct stfs_file *file)
{
	struct stfs_former *former;

	if (!file)
		return;
	close_content(atomic_load(&file->content));
	while ((former = file->formers)) {
		file->formers = former->next;
		close_content(former->content);
		free(former);
	}
	stfs_buf_fini(&file->head);
	stfs_buf_fini(&file->before);
	stfs_snapshot_unref(file->source);
	free(file);
}

int stfs_file_alloc(struct stfs_view *view, uint64_t ino, struct stfs_file **ret)
{
	struct stfs_file *file = calloc(1, sizeof(*file));

	if (!file)
		return -ENOMEM;
	file->view = view;
	file->ino = ino;
	file->role = STFS_ROLE_SCRATCH;
	atomic_init(&file->content, NULL);
	*ret = file;
	return 0;
}

static void attach_source(struct stfs_file *file, const struct stfs_view *view, const struct stfs_place *place)
{
	struct stfs_run run = stfs_view_run(view->model, view->tree.nodes[place->node].entry);

	file->source = stfs_snapshot_ref(run.file);
	file->begin = run.begin;
	file->size = run.size;
}

/* Fills in where the bytes of `place` are. Called with the tree locked. */
static int locate_bytes(struct stfs_file *file, const struct stfs_place *place)
{
	struct stfs_view *view = file->view;
	bool tensor = place->slot == STFS_SLOT_DATA || place->slot == STFS_SLOT_NPY;
	uint32_t data;
	int r;

	if (place->slot == STFS_SLOT_FILE)
		return attach_content(file, stfs_view_content(view, place->node));
	file->fixed = place->slot == STFS_SLOT_CONTROL_FILE || place->slot == STFS_SLOT_NPY;
	r = write_head(&file->head, view, place);
	if (r < 0 || !tensor)
		return r;
	if (!stfs_view_is_explicit(view, place->node)) {
		attach_source(file, view, place);
		return 0;
	}
	data = stfs_view_role_node(view, place->node, STFS_ROLE_DATA);
	return data == STFS_NODE_NONE ? 0 : attach_content(file, stfs_view_content(view, data));
}

int stfs_view_open(struct stfs_view *view, uint64_t ino, struct stfs_file **ret_file)
{
	_cleanup_view_lock_ struct stfs_view *locked = stfs_view_read_lock(view);
	_cleanup_(stfs_file_closep) struct stfs_file *file = NULL;
	struct stfs_place place;
	int r = stfs_view_resolve(view, ino, &place);

	if (r < 0)
		return r;
	if (place.slot == STFS_SLOT_DIR || place.slot == STFS_SLOT_CONTROL_DIR)
		return -EISDIR;
	if (place.slot == STFS_SLOT_ALIAS)
		return -ELOOP;
	r = stfs_file_alloc(view, ino, &file);
	if (r == 0)
		r = locate_bytes(file, &place);
	if (r < 0)
		return r;
	*ret_file = stfs_steal(file);
	return 0;
}

/* Tells the log about a source that changed, once; returns -EIO. */
static int report_change(const struct stfs_file *file, const struct stfs_diag *diag, bool first)
{
	if (first)
		stfs_log(file->view->log, STFS_LOG_ERROR, "%s: its tensors cannot be read any more (EIO)", diag->text);
	return -EIO;
}

static int check_source(struct stfs_file *file)
{
	struct stfs_diag diag = { 0 };
	bool first = false;

	return stfs_snapshot_check(file->source, &diag, &first) < 0 ? report_change(file, &diag, first) : 0;
}

int stfs_file_check(struct stfs_file *file)
{
	return file->source && !atomic_load(&file->content) ? check_source(file) : 0;
}

static void map_source(struct stfs_file *file, uint64_t offset, size_t size, struct stfs_reading *reading)
{
	const char *map = stfs_snapshot_map(file->source);

	if (offset >= file->size)
		return;
	size = (size_t)STFS_MIN(size, file->size - offset);
	offset += file->begin;
	reading->extents[reading->n++] = (struct stfs_extent){
		.mem = map ? map + offset : NULL,
		.fd = stfs_snapshot_fd(file->source),
		.offset = offset,
		.len = size,
	};
}

static int map_content(struct stfs_file *file, struct stfs_content *content, uint64_t offset, size_t size,
		       struct stfs_reading *reading)
{
	struct stfs_diag diag = { 0 };
	bool first = false;
	int n = stfs_content_map(content, offset, size, &reading->lease, reading->extents + reading->n,
				 STFS_EXTENTS_MAX - reading->n, &diag, &first);

	if (n == -EIO)
		return report_change(file, &diag, first);
	if (n < 0)
		return n;
	reading->n += n;
	return 0;
}

int stfs_file_map(struct stfs_file *file, uint64_t offset, size_t size, struct stfs_reading *reading)
{
	struct stfs_content *content;
	size_t head_len;
	int r = stfs_file_follow(file);

	if (r < 0)
		return r;
	content = atomic_load(&file->content);
	/* The generated text of what became a file of its own no longer counts. */
	head_len = content && !file->fixed ? 0 : file->head.len;
	reading->n = 0;
	reading->len = 0;
	r = stfs_file_check(file);
	if (r < 0)
		return r;
	if (size && offset < head_len) {
		size_t len = STFS_MIN(size, head_len - (size_t)offset);

		reading->extents[reading->n++] =
			(struct stfs_extent){ .mem = file->head.data + offset, .fd = -1, .len = len };
		offset += len;
		size -= len;
	}
	if (size && content)
		r = map_content(file, content, offset - head_len, size, reading);
	else if (size && file->source)
		map_source(file, offset - head_len, size, reading);
	for (int i = 0; i < reading->n; i++)
		reading->len += reading->extents[i].len;
	return r;
}

int stfs_file_read(struct stfs_file *file, uint64_t offset, void *data, size_t size, size_t *ret_read)
{
	_cleanup_(stfs_reading_fini) struct stfs_reading reading = { .n = 0 };
	size_t done = 0;
	int r;

	do {
		r = stfs_file_map(file, offset + done, size - done, &reading);
		for (int i = 0; r == 0 && i < reading.n; i++) {
			r = stfs_extent_read(&reading.extents[i], (char *)data + done);
			done += reading.extents[i].len;
		}
	} while (r == 0 && reading.len && done < size);
	/* Once more: what was read is of one version only if the source is still what it was. */
	if (r == 0)
		r = stfs_file_map(file, offset, STFS_MIN(size, 1), &reading);
	if (r == 0)
		*ret_read = done;
	return r;
}
