/* SPDX-License-Identifier: Apache-2.0 */
/* Dropping what is staged: the tree, or a part of it, as the model has it. */
#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "edit_private.h"
#include "view_known.h"

/* Everything anew. The numbers of what the model has come out the same. With `clear` the staging area goes too, or all stays. */
static int restore_all(struct stfs_view *view, bool clear)
{
	struct stfs_tree old = view->tree;
	bool gone = false;
	int r;

	view->tree = (struct stfs_tree){ 0 };
	r = stfs_view_build_tree(view);
	if (r == 0 && clear) {
		r = stfs_stage_clear(view->stage); /* the next edit makes a new journal */
		/* Without its journal nothing is staged any more, whatever is left in the directory. */
		gone = !stfs_stage_journal(view->stage);
	}
	if (r < 0 && !gone) {
		stfs_tree_fini(&view->tree);
		view->tree = old;
		return r;
	}
	stfs_tree_fini(&old);
	stfs_view_free_contents(view, true);
	view->n_dir_attrs = 0;
	view->dirs_moved = false;
	return r;
}

/* Finds the node at a path, or STFS_NODE_NONE. -EEXIST when a file stands where the path has a directory. */
static int find_path(const struct stfs_view *view, struct stfs_slice path, uint32_t *ret)
{
	uint32_t node = STFS_NODE_ROOT;

	while (node != STFS_NODE_NONE && path.len) {
		const char *slash = memchr(path.p, '/', path.len);
		size_t n = slash ? (size_t)(slash - path.p) : path.len;

		if (view->tree.nodes[node].kind != STFS_NODE_MODULE)
			return -EEXIST;
		node = stfs_tree_child(&view->tree, node, (struct stfs_slice){ path.p, n });
		n += slash != NULL;
		path = (struct stfs_slice){ path.p + n, path.len - n };
	}
	*ret = node;
	return 0;
}

/* True when `full` is `path` or below it. */
static bool is_below(struct stfs_slice full, struct stfs_slice path)
{
	return full.len >= path.len && memcmp(full.p, path.p, path.len) == 0 &&
	       (full.len == path.len || full.p[path.len] == '/');
}

/* The path of a tensor of the model into `full`, and whether it is `path` or below it. */
static int is_tensor_below(const struct stfs_view *view, uint32_t entry, struct stfs_slice path, struct stfs_buf *full,
			   bool *ret)
{
	int r;

	full->len = 0;
	r = stfs_name_encode(full, stfs_model_tensor(view->model, entry)->name, view->options.layout);
	if (r == 0)
		*ret = is_below(stfs_buf_slice(full), path);
	return r;
}

/* What was moved away from below `path` does not take the place of what comes back there: it is a copy from now on. */
static int disown_moved(struct stfs_view *view, struct stfs_slice path)
{
	_cleanup_buf_ struct stfs_buf full = { 0 };
	int r = 0;

	for (uint32_t node = 0; r == 0 && node < view->tree.n; node++) {
		bool below = false;

		if (view->tree.nodes[node].kind != STFS_NODE_MODULE || view->tree.nodes[node].entry == STFS_NODE_NONE)
			continue;
		r = is_tensor_below(view, view->tree.nodes[node].entry, path, &full, &below);
		if (r == 0 && below)
			r = stfs_change_make_explicit(view, node);
		if (r == 0 && below)
			view->tree.nodes[node].entry = STFS_NODE_NONE;
	}
	return r;
}

/* Tensors of the model, by their place in its list. */
struct entries {
	uint32_t *list; /* heap */
	uint32_t n, cap;
};

static void entries_fini(struct entries *entries)
{
	free(entries->list);
}

/* Collects those that were moved to `top` or below it. */
static int find_moved_here(const struct stfs_view *view, uint32_t top, struct entries *moved)
{
	uint32_t node = top;
	int r = 0;

	for (; r == 0 && node != STFS_NODE_NONE; node = stfs_tree_next(&view->tree, top, node)) {
		if (view->tree.nodes[node].kind != STFS_NODE_MODULE || view->tree.nodes[node].entry == STFS_NODE_NONE)
			continue;
		r = stfs_array_grow((void **)&moved->list, moved->n, &moved->cap, STFS_NODES_MAX, sizeof(uint32_t));
		if (r == 0)
			moved->list[moved->n++] = view->tree.nodes[node].entry;
	}
	return r;
}

/* Whether a tensor can have the place: nothing is there, or a directory that is no tensor. */
static bool is_free(const struct stfs_view *view, uint32_t node)
{
	if (node == STFS_NODE_NONE)
		return true;
	if (view->tree.nodes[node].kind != STFS_NODE_MODULE || view->tree.nodes[node].entry != STFS_NODE_NONE)
		return false;
	for (unsigned role = STFS_ROLE_DATA; role <= STFS_ROLE_SHAPE; role++) {
		if (stfs_view_role_node(view, node, role) != STFS_NODE_NONE)
			return false;
	}
	return true;
}

/* Tensors that left with what was dropped are back where the model has them, unless something else is there by now. */
static int bring_back(struct stfs_view *view, const struct entries *moved)
{
	_cleanup_buf_ struct stfs_buf path = { 0 };
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < moved->n; i++) {
		struct stfs_slice name = stfs_model_tensor(view->model, moved->list[i])->name;
		uint32_t node;

		path.len = 0;
		r = stfs_name_encode(&path, name, view->options.layout);
		if (r == 0 && find_path(view, stfs_buf_slice(&path), &node) == 0 && is_free(view, node))
			r = stfs_view_add_tensor(view, moved->list[i]);
		if (r == -EEXIST)
			r = 0;
	}
	return r;
}

/* Adds the tensors of the model that belong below `path`; *ret_n counts them. */
static int add_tensors(struct stfs_view *view, struct stfs_slice path, uint32_t *ret_n)
{
	_cleanup_buf_ struct stfs_buf full = { 0 };
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < view->model->n_entries; i++) {
		bool below = false;

		r = is_tensor_below(view, i, path, &full, &below);
		if (r < 0 || !below)
			continue;
		r = stfs_view_add_tensor(view, i);
		(*ret_n)++;
	}
	return r;
}

/* A file of a tensor as the model has it. Returns 1, or 0 when `path` is no file of a tensor whose place the model knows. */
static int restore_slot(struct stfs_view *view, struct stfs_slice path)
{
	const char *slash = memrchr(path.p, '/', path.len);
	struct stfs_slice name = { slash ? slash + 1 : path.p, slash ? (size_t)(path.p + path.len - slash - 1) : 0 };
	uint32_t dir;
	int r;

	if (!slash || find_path(view, (struct stfs_slice){ path.p, (size_t)(slash - path.p) }, &dir) < 0 ||
	    dir == STFS_NODE_NONE || view->tree.nodes[dir].entry == STFS_NODE_NONE ||
	    view->tree.nodes[dir].kind != STFS_NODE_MODULE)
		return 0;
	for (unsigned slot = STFS_SLOT_DATA; slot <= STFS_SLOT_SHAPE; slot++) {
		if (!stfs_slice_is(name, stfs_slot_names[slot - STFS_SLOT_DATA].name))
			continue;
		r = view->tree.nodes[dir].explicit_slots ? stfs_change_renew_slot(view, dir, slot) : 0;
		return r < 0 ? r : 1;
	}
	return 0;
}

/* Adds the keys of the model: the one called `name`, or with an empty name all. */
static int add_keys(struct stfs_view *view, struct stfs_slice name, uint32_t *ret_n)
{
	_cleanup_buf_ struct stfs_buf key = { 0 };
	uint32_t node;

	for (uint32_t i = 0; i < view->model->n_metadata; i++) {
		int r;

		key.len = 0;
		r = stfs_key_encode(&key, view->model->metadata[i].key);
		if (r == -ENAMETOOLONG || (r == 0 && name.len && !stfs_slice_equal(stfs_buf_slice(&key), name)))
			continue;
		if (r == 0)
			r = stfs_tree_add(&view->tree, STFS_NODE_METADATA, stfs_buf_slice(&key), STFS_NODE_KEY, &node);
		if (r < 0)
			return r;
		view->tree.nodes[node].entry = i;
		(*ret_n)++;
	}
	return 0;
}

static int restore_metadata(struct stfs_view *view, struct stfs_slice name)
{
	uint32_t node, n = 0;
	int r;

	if (name.len) {
		node = stfs_tree_child(&view->tree, STFS_NODE_METADATA, name);
		if (node != STFS_NODE_NONE)
			stfs_change_remove(view, node);
		r = add_keys(view, name, &n);
		return r < 0 ? r : node != STFS_NODE_NONE || n ? 0 : -ENOENT;
	}
	while ((node = view->tree.nodes[STFS_NODE_METADATA].first_child) != STFS_NODE_NONE)
		stfs_change_remove(view, node);
	return add_keys(view, name, &n);
}

int stfs_change_restore(struct stfs_view *view, struct stfs_slice path)
{
	static const char metadata[] = "__metadata__";
	_cleanup_(entries_fini) struct entries moved = { 0 };
	uint32_t node, n = 0;
	int r;

	if (path.len == 0)
		return restore_all(view, false);
	if (is_below(path, stfs_slice_of(metadata))) {
		size_t skip = STFS_MIN(path.len, sizeof(metadata));

		return restore_metadata(view, (struct stfs_slice){ path.p + skip, path.len - skip });
	}
	r = restore_slot(view, path);
	if (r != 0)
		return STFS_MIN(r, 0);
	r = find_path(view, path, &node);
	if (r == 0 && node != STFS_NODE_NONE)
		r = find_moved_here(view, node, &moved);
	if (r < 0)
		return r;
	if (node != STFS_NODE_NONE && node != STFS_NODE_ROOT)
		stfs_change_remove_tree(view, node);
	r = disown_moved(view, path);
	if (r == 0)
		r = add_tensors(view, path, &n);
	if (r == 0)
		r = bring_back(view, &moved);
	return r < 0 ? r : node != STFS_NODE_NONE || n ? 0 : -ENOENT;
}

static int journal_discard(struct stfs_view *view, struct stfs_slice path)
{
	_cleanup_buf_ struct stfs_buf payload = { 0 };
	int r = stfs_payload_bytes(&payload, path);

	return r < 0 ? r :
		       stfs_journal_append(stfs_stage_journal(view->stage), STFS_RECORD_DISCARD,
					   stfs_buf_slice(&payload));
}

/* Whether the model has tensors at `path` or below it. */
static int has_tensors(const struct stfs_view *view, struct stfs_slice path, bool *ret)
{
	_cleanup_buf_ struct stfs_buf full = { 0 };
	int r = 0;

	*ret = false;
	for (uint32_t i = 0; r == 0 && !*ret && i < view->model->n_entries; i++)
		r = is_tensor_below(view, i, path, &full, ret);
	return r;
}

/* Where there is nothing, a path may be the name of a tensor that is gone, which then stands for its place. */
static int find_named(const struct stfs_view *view, struct stfs_slice *path, struct stfs_buf *buf)
{
	uint32_t node;
	bool is_path, is_name;
	int r = find_path(view, *path, &node);

	if (r < 0 || node != STFS_NODE_NONE || memchr(path->p, '/', path->len))
		return 0;
	r = has_tensors(view, *path, &is_path);
	if (r < 0 || is_path)
		return r;
	r = stfs_name_encode(buf, *path, view->options.layout);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = has_tensors(view, stfs_buf_slice(buf), &is_name);
	if (r == 0 && is_name)
		*path = stfs_buf_slice(buf);
	return r;
}

int stfs_view_discard(struct stfs_view *view, struct stfs_slice path, struct stfs_diag *diag)
{
	_cleanup_(stfs_known_fini) struct stfs_known known = { 0 };
	_cleanup_buf_ struct stfs_buf named = { 0 };
	int r;

	if (!view->stage)
		return stfs_fail(diag, -EROFS, "this mount is read-only: nothing is staged");
	r = stfs_edit_begin(view);
	if (r < 0)
		return r;
	while (path.len && path.p[path.len - 1] == '/')
		path.len--;
	r = stfs_known_collect(view, &known);
	if (r == 0)
		r = find_named(view, &path, &named);
	if (r == 0 && path.len)
		r = journal_discard(view, path);
	if (r == 0)
		r = path.len ? stfs_change_restore(view, path) : restore_all(view, true);
	stfs_edit_end(view);
	stfs_known_tell(view, &known);
	return r;
}
