/* SPDX-License-Identifier: Apache-2.0 */
#include "changes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "array.h"
#include "attr_text.h"
#include "changes_private.h"
#include "checked.h"
#include "table.h"

void stfs_changes_free(struct stfs_changes *changes)
{
	if (!changes)
		return;
	for (uint32_t i = 0; i < changes->n_tensors; i++)
		stfs_content_unref(changes->tensors[i].data);
	free(changes->tensors);
	free(changes->deleted);
	free(changes->keys);
	free(changes->deleted_keys);
	free(changes->scratch);
	stfs_arena_fini(&changes->strings);
	free(changes);
}

/* The tensor name that a path spells; dots and empty pieces may stand in it as `mkdir a.b` made them. */
static int spell_name(struct stfs_collecting *collecting, struct stfs_slice path, struct stfs_slice *ret)
{
	bool flat = collecting->view->options.layout == STFS_FLAT;
	_cleanup_buf_ struct stfs_buf strict = { 0 }, name = { 0 };
	bool empty = true;
	int r = stfs_buf_reserve(&strict, path.len);

	for (size_t i = 0; r == 0 && i <= path.len; i++) {
		char c = i == path.len ? '/' : path.p[i];

		if (c == '/' || (c == '.' && !flat)) {
			if (empty)
				r = stfs_buf_append_str(&strict, "%_");
			if (r == 0 && i < path.len)
				r = stfs_buf_append_char(&strict, '/');
			empty = true;
		} else {
			r = stfs_buf_append_char(&strict, c);
			empty = false;
		}
	}
	if (r == 0)
		r = stfs_name_decode(&name, stfs_buf_slice(&strict), collecting->view->options.layout);
	return r < 0 ? r : stfs_arena_copy(&collecting->changes->strings, stfs_buf_slice(&name), ret);
}

/* Sets path and name of a tensor's directory. A name that cannot be is a problem, shown by its path. */
static int name_tensor(struct stfs_collecting *collecting, uint32_t node, struct stfs_staged_tensor *tensor)
{
	_cleanup_buf_ struct stfs_buf path = { 0 };
	int r = stfs_tree_path(&collecting->view->tree, STFS_NODE_ROOT, node, &path);

	if (r == 0)
		r = stfs_arena_copy(&collecting->changes->strings, stfs_buf_slice(&path), &tensor->path);
	if (r == 0)
		r = spell_name(collecting, tensor->path, &tensor->name);
	if (r == -EPERM || r == -EILSEQ || r == -ENAMETOOLONG) {
		tensor->name = tensor->path;
		tensor->problem = "the path spells no tensor name";
		r = 0;
	}
	return r;
}

static bool same_dims(struct stfs_dims a, struct stfs_dims b)
{
	uint64_t x, y;

	if (a.left != b.left)
		return false;
	while (stfs_dims_next(&a, &x) && stfs_dims_next(&b, &y)) {
		if (x != y)
			return false;
	}
	return true;
}

/* Reads a small file of a tensor's directory; -ENOENT when it is not there. */
static int read_slot(struct stfs_collecting *collecting, uint32_t dir, enum stfs_role role, struct stfs_buf *text)
{
	uint32_t node = stfs_view_role_node(collecting->view, dir, role);

	return node == STFS_NODE_NONE ?
		       -ENOENT :
		       stfs_content_read(stfs_view_content(collecting->view, node), STFS_HEADER_MAX + 1, text);
}

static int read_dtype(struct stfs_collecting *collecting, uint32_t dir, struct stfs_staged_tensor *tensor)
{
	_cleanup_buf_ struct stfs_buf text = { 0 };
	int r = read_slot(collecting, dir, STFS_ROLE_DTYPE, &text);

	if (r == -ENOENT)
		tensor->problem = "no dtype";
	else if (r == 0 && !stfs_dtype_of_text(stfs_buf_slice(&text), &tensor->dtype))
		tensor->problem = "its dtype is none of the format";
	return r == -ENOENT ? 0 : r;
}

static int read_shape(struct stfs_collecting *collecting, uint32_t dir, struct stfs_staged_tensor *tensor)
{
	_cleanup_buf_ struct stfs_buf text = { 0 }, dims = { 0 };
	struct stfs_slice kept;
	uint32_t rank = 0;
	int r = read_slot(collecting, dir, STFS_ROLE_SHAPE, &text);

	if (r == -ENOENT) {
		tensor->problem = "no shape";
		return 0;
	}
	/* What is longer was not read to its end. */
	if (r == 0)
		r = text.len > STFS_HEADER_MAX ? -EINVAL : stfs_shape_of_text(stfs_buf_slice(&text), &dims, &rank);
	if (r == -EINVAL) {
		tensor->problem = "its shape cannot be understood";
		return 0;
	}
	if (r == 0)
		r = stfs_arena_copy(&collecting->changes->strings, stfs_buf_slice(&dims), &kept);
	if (r == 0)
		tensor->dims = (struct stfs_dims){ kept.p, rank };
	return r;
}

static void read_data(struct stfs_collecting *collecting, uint32_t dir, struct stfs_staged_tensor *tensor)
{
	struct stfs_view *view = collecting->view;
	uint32_t node = stfs_view_role_node(view, dir, STFS_ROLE_DATA);
	const char *damage;

	if (node == STFS_NODE_NONE) {
		tensor->problem = "no data";
		return;
	}
	tensor->data = stfs_content_ref(stfs_view_content(view, node));
	tensor->size = stfs_content_size(tensor->data);
	damage = stfs_content_damage(tensor->data);
	if (damage)
		tensor->problem = damage;
}

/* Judges the bytes against dtype and shape; the sentence is kept with the changes. */
static int judge_size(struct stfs_collecting *collecting, struct stfs_staged_tensor *tensor)
{
	struct stfs_dims dims = tensor->dims;
	_cleanup_buf_ struct stfs_buf text = { 0 };
	uint64_t n = 1, dim, bits;
	struct stfs_slice kept;
	bool fits = true;
	int r;

	while (fits && stfs_dims_next(&dims, &dim))
		fits = stfs_mul(n, dim, &n);
	fits = fits && stfs_mul(n, stfs_dtype_info(tensor->dtype)->bits, &bits);
	if (!fits)
		tensor->problem = "its shape is larger than the format can say";
	else if (bits % 8 != 0)
		tensor->problem = "dtype and shape do not make whole bytes";
	if (tensor->problem || bits / 8 == tensor->size)
		return 0;
	r = stfs_buf_printf(&text, "%" PRIu64 " bytes, but %s [", tensor->size, stfs_dtype_info(tensor->dtype)->name);
	dims = tensor->dims;
	for (bool first = true; r == 0 && text.len < 200 && stfs_dims_next(&dims, &dim); first = false)
		r = stfs_buf_printf(&text, "%s%" PRIu64, first ? "" : ",", dim);
	if (r == 0)
		r = stfs_buf_printf(&text, "%s] needs %" PRIu64, dims.left ? ",\xe2\x80\xa6" : "", bits / 8);
	if (r == 0)
		r = stfs_arena_copy(&collecting->changes->strings, stfs_buf_slice(&text), &kept);
	if (r == 0)
		tensor->problem = kept.p;
	return r;
}

/* Whether bytes of a tensor are still those of the model. */
static bool is_untouched(const struct stfs_collecting *collecting, const struct stfs_staged_tensor *tensor)
{
	const struct stfs_model *model = collecting->view->model;
	struct stfs_run run;

	return tensor->entry != STFS_ENTRY_NONE && stfs_content_run(tensor->data, &run) &&
	       run.file == stfs_model_file(model, tensor->entry) &&
	       run.begin == stfs_model_offset(model, tensor->entry) && run.size == tensor->size;
}

/* What a tensor differs in from the one whose place it takes. */
static void compare_with_model(struct stfs_collecting *collecting, struct stfs_staged_tensor *tensor)
{
	const struct stfs_tensor *old;

	if (tensor->entry == STFS_ENTRY_NONE)
		return;
	old = stfs_model_tensor(collecting->view->model, tensor->entry);
	tensor->new_name = !stfs_slice_equal(tensor->name, old->name);
	tensor->new_dtype = tensor->dtype != (enum stfs_dtype)old->dtype;
	tensor->new_shape = !same_dims(tensor->dims, stfs_tensor_dims(old));
	if (tensor->data && is_untouched(collecting, tensor)) {
		stfs_content_unref(tensor->data);
		tensor->data = NULL;
	}
	tensor->new_data = tensor->data != NULL;
}

/* The tensor of a directory whose files are nodes of their own. Returns 1 when it is one, 0 when nothing of a tensor is there. */
static int collect_explicit(struct stfs_collecting *collecting, uint32_t dir, struct stfs_staged_tensor *tensor)
{
	struct stfs_view *view = collecting->view;
	int r = 0;

	if (stfs_view_role_node(view, dir, STFS_ROLE_NPY) != STFS_NODE_NONE)
		tensor->problem = "data.npy is no complete NumPy file of a type the format has";
	else if (stfs_view_role_node(view, dir, STFS_ROLE_DATA) == STFS_NODE_NONE &&
		 stfs_view_role_node(view, dir, STFS_ROLE_DTYPE) == STFS_NODE_NONE &&
		 stfs_view_role_node(view, dir, STFS_ROLE_SHAPE) == STFS_NODE_NONE)
		return 0;
	if (!tensor->problem)
		r = read_shape(collecting, dir, tensor);
	if (r == 0 && !tensor->problem)
		r = read_dtype(collecting, dir, tensor);
	if (r == 0 && !tensor->problem)
		read_data(collecting, dir, tensor);
	if (r == 0 && !tensor->problem)
		r = judge_size(collecting, tensor);
	return r < 0 ? r : 1;
}

static void collect_generated(struct stfs_collecting *collecting, struct stfs_staged_tensor *tensor)
{
	const struct stfs_tensor *old = stfs_model_tensor(collecting->view->model, tensor->entry);

	tensor->dtype = old->dtype;
	tensor->dims = stfs_tensor_dims(old);
	tensor->size = old->end - old->begin;
}

static int collect_dir(struct stfs_collecting *collecting, uint32_t node)
{
	struct stfs_changes *changes = collecting->changes;
	const struct stfs_node *n = &collecting->view->tree.nodes[node];
	struct stfs_staged_tensor tensor = { .entry = n->entry, .ino = stfs_view_place(collecting->view, node).ino };
	bool generated = n->entry != STFS_NODE_NONE && !n->explicit_slots;
	int r = stfs_array_grow((void **)&changes->tensors, changes->n_tensors, &collecting->tensors_cap,
				STFS_NODES_MAX, sizeof(*changes->tensors));

	if (r < 0)
		return r;
	if (generated) {
		collect_generated(collecting, &tensor);
	} else {
		r = collect_explicit(collecting, node, &tensor);
		if (r <= 0) {
			stfs_content_unref(tensor.data);
			return r;
		}
	}
	/* The name of what was neither moved nor touched need not be spelt. */
	if (generated && !collecting->view->dirs_moved) {
		tensor.name = stfs_model_tensor(collecting->view->model, n->entry)->name;
		r = 0;
	} else {
		r = name_tensor(collecting, node, &tensor);
	}
	if (r == 0 && tensor.entry != STFS_ENTRY_NONE)
		collecting->claimed[tensor.entry] = true;
	if (r == 0 && !tensor.problem)
		compare_with_model(collecting, &tensor);
	if (r < 0) {
		stfs_content_unref(tensor.data);
		return r;
	}
	tensor.order = changes->n_tensors;
	changes->tensors[changes->n_tensors++] = tensor;
	return 0;
}

static int collect_scratch(struct stfs_collecting *collecting, uint32_t node)
{
	struct stfs_changes *changes = collecting->changes;
	_cleanup_buf_ struct stfs_buf path = { 0 };
	int r = stfs_array_grow((void **)&changes->scratch, changes->n_scratch, &collecting->scratch_cap,
				STFS_NODES_MAX, sizeof(*changes->scratch));

	if (r == 0)
		r = stfs_tree_path(&collecting->view->tree, STFS_NODE_ROOT, node, &path);
	if (r == 0)
		r = stfs_arena_copy(&changes->strings, stfs_buf_slice(&path), &changes->scratch[changes->n_scratch]);
	if (r == 0)
		changes->n_scratch++;
	return r;
}

static int collect_nodes(struct stfs_collecting *collecting)
{
	const struct stfs_tree *tree = &collecting->view->tree;
	int r = 0;

	for (uint32_t node = stfs_tree_next(tree, STFS_NODE_ROOT, STFS_NODE_ROOT); r == 0 && node != STFS_NODE_NONE;
	     node = stfs_tree_next(tree, STFS_NODE_ROOT, node)) {
		const struct stfs_node *n = &tree->nodes[node];
		enum stfs_role role;

		if (n->kind == STFS_NODE_MODULE) {
			r = node == STFS_NODE_METADATA ? 0 : collect_dir(collecting, node);
			continue;
		}
		role = stfs_view_role(collecting->view, node);
		if (role == STFS_ROLE_KEY)
			r = stfs_collect_key(collecting, node);
		else if (role == STFS_ROLE_SCRATCH)
			r = collect_scratch(collecting, node);
	}
	return r;
}

/* A tensor that was removed and made again under its name takes the place it had. */
static void adopt_places(struct stfs_collecting *collecting)
{
	struct stfs_changes *changes = collecting->changes;

	for (uint32_t i = 0; i < changes->n_tensors; i++) {
		struct stfs_staged_tensor *tensor = &changes->tensors[i];
		uint32_t entry;

		if (tensor->entry != STFS_ENTRY_NONE)
			continue;
		entry = stfs_model_find(collecting->view->model, tensor->name);
		if (entry == STFS_ENTRY_NONE || collecting->claimed[entry])
			continue;
		collecting->claimed[entry] = true;
		tensor->entry = entry;
		if (!tensor->problem)
			compare_with_model(collecting, tensor);
	}
}

/* Names that two directories spell; those of the model are its own once. */
static int find_twins(struct stfs_collecting *collecting)
{
	struct stfs_changes *changes = collecting->changes;
	struct stfs_table_items items = { changes->tensors, sizeof(*changes->tensors) };
	_cleanup_(stfs_table_fini) struct stfs_table names = { 0 };
	int r = 0;

	for (uint32_t i = 0; collecting->view->dirs_moved && r == 0 && i < changes->n_tensors; i++) {
		r = stfs_table_insert(&names, items, i);
		if (r == -EEXIST) {
			changes->tensors[i].problem = "another directory spells the same name";
			r = 0;
		}
	}
	return r;
}

static int compare_places(const void *a, const void *b)
{
	const struct stfs_staged_tensor *x = a, *y = b;

	/* Only new ones have the same entry, the largest number: they follow in the order they were made. */
	if (x->entry != y->entry)
		return x->entry < y->entry ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static int collect_deleted(struct stfs_collecting *collecting)
{
	struct stfs_changes *changes = collecting->changes;
	const struct stfs_model *model = collecting->view->model;

	changes->deleted = calloc(model->n_entries + 1u, sizeof(*changes->deleted));
	if (!changes->deleted)
		return -ENOMEM;
	for (uint32_t i = 0; i < model->n_entries; i++) {
		if (!collecting->claimed[i])
			changes->deleted[changes->n_deleted++] = i;
	}
	return 0;
}

static void count(struct stfs_changes *changes)
{
	changes->n_changed = changes->n_deleted + changes->n_deleted_keys;
	changes->metadata_changed = changes->n_deleted_keys > 0;
	for (uint32_t i = 0; i < changes->n_tensors; i++) {
		const struct stfs_staged_tensor *tensor = &changes->tensors[i];

		changes->n_changed += !tensor->problem && stfs_staged_tensor_changed(tensor);
		changes->n_problems += tensor->problem != NULL;
	}
	for (uint32_t i = 0; i < changes->n_keys; i++) {
		struct stfs_staged_key *key = &changes->keys[i];
		bool changed = !key->in_model || !stfs_slice_equal(key->value, key->before);

		key->litter = !key->in_model && stfs_key_is_litter(key->key);
		changes->n_changed += changed;
		changes->metadata_changed |= changed;
		changes->n_problems += key->problem != NULL;
	}
}

int stfs_changes_collect_locked(struct stfs_view *view, struct stfs_changes **ret)
{
	_cleanup_(stfs_changes_freep) struct stfs_changes *changes = calloc(1, sizeof(*changes));
	_cleanup_free_ bool *claimed = calloc(view->model->n_entries + 1u, sizeof(*claimed));
	struct stfs_collecting collecting = { .view = view, .changes = changes, .claimed = claimed };
	int r;

	if (!changes || !claimed)
		return -ENOMEM;
	r = collect_nodes(&collecting);
	if (r < 0)
		return r;
	adopt_places(&collecting);
	if (changes->n_tensors)
		qsort(changes->tensors, changes->n_tensors, sizeof(*changes->tensors), compare_places);
	r = find_twins(&collecting);
	if (r == 0)
		r = collect_deleted(&collecting);
	if (r == 0)
		r = stfs_collect_deleted_keys(&collecting);
	if (r < 0)
		return r;
	count(changes);
	*ret = stfs_steal(changes);
	return 0;
}

int stfs_changes_collect(struct stfs_view *view, struct stfs_changes **ret)
{
	_cleanup_view_lock_ struct stfs_view *locked = stfs_view_read_lock(view);

	return stfs_changes_collect_locked(view, ret);
}
