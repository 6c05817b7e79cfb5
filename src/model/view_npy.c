/* SPDX-License-Identifier: Apache-2.0 */
/* data.npy of a tensor that is edited: the header we show, and what a NumPy file means that was written there. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "attr_text.h"
#include "file_private.h"

#define NPY_HEAD_MAX 65600 /* magic, length and the longest header that is read */

/* The text of a dtype or shape file of an explicit directory. What is long is the shape of no NumPy array. */
static int read_slot(struct stfs_view *view, uint32_t dir, enum stfs_role role, struct stfs_buf *text)
{
	uint32_t node = stfs_view_role_node(view, dir, role);

	if (node == STFS_NODE_NONE || stfs_content_size(stfs_view_content(view, node)) > STFS_SMALL_MAX)
		return -EINVAL;
	return stfs_content_read(stfs_view_content(view, node), STFS_SMALL_MAX, text);
}

int stfs_view_npy_head(struct stfs_view *view, uint32_t dir, struct stfs_buf *buf)
{
	_cleanup_buf_ struct stfs_buf dtype_text = { 0 }, shape_text = { 0 }, dims = { 0 };
	enum stfs_dtype dtype;
	uint32_t rank;
	int r = read_slot(view, dir, STFS_ROLE_DTYPE, &dtype_text);

	if (r == 0)
		r = read_slot(view, dir, STFS_ROLE_SHAPE, &shape_text);
	if (r == 0)
		r = stfs_shape_of_text(stfs_buf_slice(&shape_text), &dims, &rank);
	if (r < 0)
		return r;
	if (!stfs_dtype_of_text(stfs_buf_slice(&dtype_text), &dtype))
		return -EINVAL;
	return stfs_npy_write(buf, dtype, (struct stfs_dims){ dims.data, rank });
}

/* Whether the file is complete: its header says how many bytes follow it. */
static bool is_complete(const struct stfs_npy *npy, uint64_t item_size, uint64_t size)
{
	uint64_t bytes = item_size;

	for (uint32_t i = 0; i < npy->rank; i++) {
		if (__builtin_mul_overflow(bytes, npy->shape[i], &bytes))
			return false;
	}
	return size >= npy->header_size && size - npy->header_size == bytes;
}

/* "V1" names no dtype: a tensor that has one of a byte keeps it. */
static bool keeps_dtype(struct stfs_view *view, uint32_t dir)
{
	_cleanup_buf_ struct stfs_buf text = { 0 };
	enum stfs_dtype dtype;

	return read_slot(view, dir, STFS_ROLE_DTYPE, &text) == 0 && stfs_dtype_of_text(stfs_buf_slice(&text), &dtype) &&
	       stfs_dtype_info(dtype)->bits == 8;
}

/* Puts an empty file in the place of a slot, under the inode number that the old one had. */
static int renew_slot(struct stfs_view *view, uint32_t dir, enum stfs_role role, const struct stfs_file_attr *attr,
		      struct stfs_npy_effect *effect, uint32_t *ret_node)
{
	struct stfs_slice name = stfs_slice_of(stfs_slot_names[role].name);
	uint32_t node = stfs_view_role_node(view, dir, role);
	uint64_t ino = stfs_change_new_id(view) << STFS_SLOT_BITS | STFS_SLOT_KEY;
	int r = 0;

	if (node != STFS_NODE_NONE) {
		ino = stfs_view_place(view, node).ino;
		r = stfs_edit_journal_remove(view, dir, name);
		if (r < 0)
			return r;
		stfs_change_remove(view, node);
	}
	r = stfs_edit_add_file(view, dir, name, ino, attr, ret_node);
	if (r == 0)
		effect->inos[effect->n++] = ino;
	return r;
}

static int renew_text(struct stfs_view *view, uint32_t dir, enum stfs_role role, struct stfs_slice text,
		      const struct stfs_file_attr *attr, struct stfs_npy_effect *effect)
{
	size_t written;
	uint32_t node;
	int r = renew_slot(view, dir, role, attr, effect, &node);

	return r < 0 ? r :
		       stfs_content_write(stfs_view_content(view, node), view->stage, text.p, text.len, 0, &written);
}

static int renew_shape(struct stfs_view *view, uint32_t dir, const struct stfs_npy *npy,
		       const struct stfs_file_attr *attr, struct stfs_npy_effect *effect)
{
	_cleanup_buf_ struct stfs_buf text = { 0 };
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < npy->rank; i++)
		r = stfs_buf_printf(&text, "%s%" PRIu64, i ? " " : "", npy->shape[i]);
	if (r == 0)
		r = stfs_buf_append_char(&text, '\n');
	return r < 0 ? r : renew_text(view, dir, STFS_ROLE_SHAPE, stfs_buf_slice(&text), attr, effect);
}

/* The bytes after the header stay where they are: whoever has the NumPy file mapped still writes to them. */
static int renew_data(struct stfs_view *view, uint32_t dir, struct stfs_content *from, uint64_t skip,
		      const struct stfs_file_attr *attr, struct stfs_npy_effect *effect)
{
	struct stfs_content *content;
	uint32_t node;
	int r = renew_slot(view, dir, STFS_ROLE_DATA, attr, effect, &node);

	if (r == 0)
		r = stfs_content_split(from, view->stage, stfs_view_place(view, node).ino, skip, &content);
	if (r == 0)
		stfs_change_set_content(view, node, content, false);
	return r;
}

static int remove_npy(struct stfs_view *view, uint32_t dir, uint32_t node)
{
	int r = stfs_edit_journal_remove(view, dir, stfs_slice_of("data.npy"));

	if (r == 0)
		stfs_change_remove(view, node);
	return r;
}

static int take_effect(struct stfs_view *view, uint32_t dir, uint32_t node, const struct stfs_npy *npy, bool has_dtype,
		       struct stfs_npy_effect *effect)
{
	struct stfs_content *from = stfs_view_content(view, node);
	_cleanup_buf_ struct stfs_buf dtype = { 0 }, gone = { 0 };
	struct stfs_file_attr attr;
	int r;

	stfs_content_attr(from, &attr);
	/* What needs room comes first: nothing has changed yet if there is none. */
	r = stfs_edit_bind(view, from);
	if (r == 0)
		r = stfs_edit_say_removed(view, dir, stfs_slice_of("data.npy"), &gone);
	if (r == 0)
		r = stfs_content_make_whole(from, view->stage);
	if (r == 0)
		r = renew_shape(view, dir, npy, &attr, effect);
	if (r == 0 && has_dtype) {
		r = stfs_buf_printf(&dtype, "%s\n", stfs_dtype_info(npy->dtype)->name);
		if (r == 0)
			r = renew_text(view, dir, STFS_ROLE_DTYPE, stfs_buf_slice(&dtype), &attr, effect);
	}
	/* Last, since from here on the file is to go, also in a replay. */
	if (r == 0)
		r = renew_data(view, dir, from, npy->header_size, &attr, effect);
	if (r == 0)
		r = stfs_journal_append(stfs_stage_journal(view->stage), STFS_RECORD_REMOVE, stfs_buf_slice(&gone));
	if (r == 0)
		stfs_change_remove(view, node);
	return r;
}

/* Takes away a dtype that the new bytes do not have. */
static int drop_dtype(struct stfs_view *view, uint32_t dir)
{
	uint32_t node = stfs_view_role_node(view, dir, STFS_ROLE_DTYPE);
	int r;

	if (node == STFS_NODE_NONE)
		return 0;
	r = stfs_edit_journal_remove(view, dir, stfs_slice_of("dtype"));
	if (r == 0)
		stfs_change_remove(view, node);
	return r;
}

void stfs_edit_take_npy(struct stfs_view *view, uint32_t dir, struct stfs_npy_effect *effect)
{
	uint32_t node = stfs_view_role_node(view, dir, STFS_ROLE_NPY);
	_cleanup_buf_ struct stfs_buf head = { 0 };
	_cleanup_free_ struct stfs_npy *npy = malloc(sizeof(*npy));
	uint64_t size;
	bool keep;

	if (!npy || node == STFS_NODE_NONE)
		return;
	/* It took effect, and could not be removed then. */
	if (stfs_content_is_handed_on(stfs_view_content(view, node))) {
		(void)!remove_npy(view, dir, node);
		return;
	}
	size = stfs_content_size(stfs_view_content(view, node));
	if (stfs_content_read(stfs_view_content(view, node), NPY_HEAD_MAX, &head) < 0 ||
	    stfs_npy_parse((const uint8_t *)head.data, head.len, NULL, npy) < 0 ||
	    !is_complete(npy, npy->has_dtype ? stfs_dtype_info(npy->dtype)->bits / 8 : 1, size))
		return;
	keep = npy->has_dtype || keeps_dtype(view, dir);
	effect->parent = stfs_view_place(view, dir).ino;
	if (!keep && drop_dtype(view, dir) < 0)
		return;
	if (take_effect(view, dir, node, npy, npy->has_dtype, effect) == 0)
		view->tree.nodes[dir].npy_removed = false;
	else
		stfs_log(view->log, STFS_LOG_ERROR, "data.npy could not take effect: it stays as a file");
}

void stfs_edit_tell_npy(struct stfs_view *view, const struct stfs_npy_effect *effect)
{
	if (!view->watcher.changed || effect->n == 0)
		return;
	for (unsigned i = 0; i < effect->n; i++)
		view->watcher.changed(view->watcher.user, effect->inos[i]);
	view->watcher.renamed(view->watcher.user, effect->parent, stfs_slice_of("data.npy"));
}
