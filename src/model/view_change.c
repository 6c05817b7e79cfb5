/* SPDX-License-Identifier: Apache-2.0 */
#include "view_change.h"

#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "text.h"

uint64_t stfs_change_new_id(struct stfs_view *view)
{
	uint64_t id;

	/* From the same space as all others, so that a number tells nothing; the journal keeps it. */
	do {
		uint64_t seed[2] = { ++view->next_id, UINT64_C(0x6d616465) };

		id = stfs_tree_stable_id(seed, sizeof(seed));
	} while (stfs_tree_find(&view->tree, id) != STFS_NODE_NONE);
	return id;
}

uint64_t stfs_change_id_of_ino(uint64_t ino)
{
	uint64_t slot = ino & ((1 << STFS_SLOT_BITS) - 1), id = ino >> STFS_SLOT_BITS;

	if (ino == STFS_INO_ROOT)
		return STFS_NODE_ROOT;
	if (ino == STFS_INO_METADATA)
		return STFS_NODE_METADATA;
	return slot >= STFS_SLOT_DATA && slot <= STFS_SLOT_NPY ? slot << STFS_NODE_ID_BITS | id : id;
}

uint64_t stfs_change_ino_of_id(uint64_t id)
{
	uint64_t slot = id >> STFS_NODE_ID_BITS, number = id & ((UINT64_C(1) << STFS_NODE_ID_BITS) - 1);

	return number << STFS_SLOT_BITS | (slot ? slot : STFS_SLOT_KEY);
}

int stfs_change_find_path(const struct stfs_view *view, struct stfs_slice path, uint32_t *ret)
{
	uint32_t node = STFS_NODE_ROOT;

	while (node != STFS_NODE_NONE && path.len) {
		if (view->tree.nodes[node].kind != STFS_NODE_MODULE)
			return -EEXIST;
		node = stfs_tree_child(&view->tree, node, stfs_slice_cut(&path, '/'));
	}
	*ret = node;
	return 0;
}

/* Makes room for one more content. */
static int reserve_content(struct stfs_view *view)
{
	return stfs_array_grow((void **)&view->contents, view->n_contents, &view->contents_cap, STFS_NODES_MAX,
			       sizeof(*view->contents));
}

/* Puts the content of a file node (owned by the view from here) where there is room for it. */
static void add_content(struct stfs_view *view, uint32_t node, struct stfs_content *content)
{
	view->tree.nodes[node].entry = view->n_contents;
	view->contents[view->n_contents++] = (struct stfs_placed_content){ content, node };
}

int stfs_change_add_file(struct stfs_view *view, uint32_t dir, struct stfs_slice name, struct stfs_content *content,
			 uint32_t *ret_node)
{
	uint32_t node;
	int r = reserve_content(view);

	if (r == 0)
		r = stfs_tree_insert(&view->tree, dir, name, STFS_NODE_OWN,
				     stfs_change_id_of_ino(stfs_content_ino(content)), &node);
	if (r < 0)
		return r;
	add_content(view, node, content);
	*ret_node = node;
	return 0;
}

void stfs_change_set_content(struct stfs_view *view, uint32_t node, struct stfs_content *content, bool keep_bytes)
{
	struct stfs_content **place = &view->contents[view->tree.nodes[node].entry].content;

	if (!keep_bytes)
		stfs_content_drop(*place);
	stfs_content_unref(*place);
	*place = content;
}

static struct stfs_file_attr attr_of_slot(const struct stfs_view *view, const struct stfs_place *place)
{
	struct stfs_attr attr;

	stfs_view_fill_look(view, place, &attr);
	return (struct stfs_file_attr){ attr.perm, attr.uid, attr.gid, attr.mtime };
}

static int make_slot_content(struct stfs_view *view, const struct stfs_place *place, struct stfs_content **ret)
{
	const struct stfs_tensor *tensor = stfs_view_tensor(view, place->node);
	struct stfs_file_attr attr = attr_of_slot(view, place);
	_cleanup_buf_ struct stfs_buf text = { 0 };
	int r;

	if (place->slot == STFS_SLOT_DATA) {
		struct stfs_run run = stfs_view_run(view->model, view->tree.nodes[place->node].entry);

		return stfs_content_new_run(place->ino, &run, &attr, ret);
	}
	r = place->slot == STFS_SLOT_DTYPE ? stfs_text_dtype(&text, tensor) : stfs_text_shape(&text, tensor);
	return r < 0 ? r : stfs_content_new_text(place->ino, stfs_buf_slice(&text), &attr, ret);
}

static struct stfs_slice slot_name(enum stfs_slot slot)
{
	return stfs_slice_of(stfs_slot_names[slot - STFS_SLOT_DATA].name);
}

int stfs_change_make_explicit(struct stfs_view *view, uint32_t dir)
{
	struct stfs_place place;

	if (!stfs_view_slot(view, dir, STFS_SLOT_DATA, &place))
		return 0;
	for (unsigned slot = STFS_SLOT_DATA; slot <= STFS_SLOT_SHAPE; slot++) {
		_cleanup_(stfs_content_unrefp) struct stfs_content *content = NULL;
		uint32_t node;
		int r;

		stfs_view_slot(view, dir, slot, &place);
		r = make_slot_content(view, &place, &content);
		if (r == 0)
			r = stfs_change_add_file(view, dir, slot_name(slot), content, &node);
		if (r < 0) {
			/* As it was: what is half explicit would show files twice. */
			while (slot-- > STFS_SLOT_DATA)
				stfs_change_remove(view, stfs_view_role_node(view, dir, slot - STFS_SLOT_DATA));
			return r;
		}
		content = NULL;
	}
	view->tree.nodes[dir].explicit_slots = true;
	return 0;
}

int stfs_change_make_slot(struct stfs_view *view, uint32_t dir, enum stfs_slot slot, struct stfs_content **ret)
{
	struct stfs_place place = { view->tree.nodes[dir].id << STFS_SLOT_BITS | slot, slot, dir };
	uint32_t node = stfs_tree_child(&view->tree, dir, slot_name(slot));
	uint32_t holder = stfs_tree_find(&view->tree, stfs_change_id_of_ino(place.ino));
	int r;

	/* The file that was there may have another name now, and kept its number. */
	if (holder != STFS_NODE_NONE && (node == STFS_NODE_NONE || !stfs_tree_is_below(&view->tree, holder, node)))
		place.ino = stfs_change_new_id(view) << STFS_SLOT_BITS | STFS_SLOT_KEY;
	r = reserve_content(view);
	if (r == 0)
		r = stfs_tree_reserve(&view->tree, 1, slot_name(slot).len);
	return r < 0 ? r : make_slot_content(view, &place, ret);
}

void stfs_change_put_slot(struct stfs_view *view, uint32_t dir, enum stfs_slot slot, struct stfs_content *content)
{
	uint32_t node = stfs_tree_child(&view->tree, dir, slot_name(slot));

	if (node != STFS_NODE_NONE)
		stfs_change_remove_tree(view, node);
	if (stfs_change_add_file(view, dir, slot_name(slot), content, &node) < 0)
		stfs_content_unref(content); /* cannot be: there is room */
}

int stfs_change_make_file(struct stfs_view *view, uint32_t node)
{
	_cleanup_(stfs_content_unrefp) struct stfs_content *content = NULL;
	_cleanup_buf_ struct stfs_buf text = { 0 };
	struct stfs_place place;
	struct stfs_file_attr attr;
	int r;

	if (view->tree.nodes[node].kind != STFS_NODE_KEY)
		return 0;
	place = stfs_view_place(view, node);
	attr = attr_of_slot(view, &place);
	r = stfs_text_metadata(&text, &view->model->metadata[view->tree.nodes[node].entry]);
	if (r == 0)
		r = stfs_content_new_text(place.ino, stfs_buf_slice(&text), &attr, &content);
	if (r == 0)
		r = reserve_content(view);
	if (r < 0)
		return r;
	view->tree.nodes[node].kind = STFS_NODE_OWN;
	add_content(view, node, stfs_steal(content));
	return 0;
}

int stfs_change_add_dir(struct stfs_view *view, uint32_t dir, struct stfs_slice name, uint64_t id,
			const struct stfs_file_attr *attr, uint32_t *ret_node)
{
	uint32_t node;
	int r = stfs_tree_insert(&view->tree, dir, name, STFS_NODE_MODULE, id, &node);

	if (r < 0)
		return r;
	r = stfs_change_set_dir_attr(view, node, attr, STFS_DIR_MADE);
	if (r < 0) {
		stfs_tree_remove(&view->tree, node);
		return r;
	}
	view->dirs_moved = true;
	*ret_node = node;
	return 0;
}

bool stfs_change_is_empty(const struct stfs_view *view, uint32_t dir)
{
	struct stfs_place unused;

	return view->tree.nodes[dir].first_child == STFS_NODE_NONE &&
	       !stfs_view_slot(view, dir, STFS_SLOT_DATA, &unused);
}

bool stfs_change_is_tensor(const struct stfs_view *view, uint32_t dir)
{
	if (view->tree.nodes[dir].entry != STFS_NODE_NONE)
		return true;
	for (unsigned role = STFS_ROLE_DATA; role <= STFS_ROLE_SHAPE; role++) {
		if (stfs_view_role_node(view, dir, role) != STFS_NODE_NONE)
			return true;
	}
	return false;
}

/* Lets go of the content of a node. The last one takes its place, so that files that come and go leave none behind. */
static void release_content(struct stfs_view *view, struct stfs_node *n)
{
	struct stfs_content *content = view->contents[n->entry].content;
	struct stfs_placed_content last = view->contents[--view->n_contents];

	view->contents[n->entry] = last;
	view->tree.nodes[last.node].entry = n->entry;
	stfs_content_drop(content);
	stfs_content_unref(content);
}

/* As with contents, the last ones take their place. */
void stfs_change_drop_dir_attr(struct stfs_view *view, uint32_t dir)
{
	struct stfs_node *n = &view->tree.nodes[dir];
	struct stfs_dir_attr last;

	if (!n->attr)
		return;
	last = view->dir_attrs[--view->n_dir_attrs];
	view->dir_attrs[n->attr - 1] = last;
	view->tree.nodes[last.node].attr = n->attr;
	n->attr = 0;
}

void stfs_change_remove(struct stfs_view *view, uint32_t node)
{
	struct stfs_node *n = &view->tree.nodes[node];

	if (n->kind == STFS_NODE_OWN)
		release_content(view, n);
	stfs_change_drop_dir_attr(view, node);
	stfs_tree_remove(&view->tree, node);
}

void stfs_change_remove_tree(struct stfs_view *view, uint32_t top)
{
	uint32_t node = top;

	/* Deepest first: down to a leaf, away with it, and on from its parent. */
	for (;;) {
		uint32_t parent = view->tree.nodes[node].parent;

		if (view->tree.nodes[node].first_child != STFS_NODE_NONE) {
			node = view->tree.nodes[node].first_child;
			continue;
		}
		stfs_change_remove(view, node);
		if (node == top)
			return;
		node = parent;
	}
}

bool stfs_change_may_replace(const struct stfs_view *view, uint32_t node, uint32_t target)
{
	bool is_dir = view->tree.nodes[node].kind == STFS_NODE_MODULE;

	if ((view->tree.nodes[target].kind == STFS_NODE_MODULE) != is_dir)
		return false;
	return !is_dir || (target != STFS_NODE_METADATA && stfs_change_is_empty(view, target));
}

int stfs_change_reserve_move(struct stfs_view *view, struct stfs_slice name)
{
	return stfs_tree_reserve(&view->tree, 0, name.len);
}

int stfs_change_move(struct stfs_view *view, uint32_t node, uint32_t dir, struct stfs_slice name)
{
	uint32_t target = stfs_tree_child(&view->tree, dir, name);
	int r;

	if (target == node)
		return 0;
	r = stfs_change_reserve_move(view, name);
	if (r < 0)
		return r;
	if (target != STFS_NODE_NONE)
		stfs_change_remove(view, target);
	view->dirs_moved |= view->tree.nodes[node].kind == STFS_NODE_MODULE;
	return stfs_tree_move(&view->tree, node, dir, name);
}

void stfs_change_get_dir_attr(struct stfs_view *view, uint32_t dir, struct stfs_file_attr *ret)
{
	struct stfs_place place = stfs_view_place(view, dir);

	*ret = attr_of_slot(view, &place);
}

const struct stfs_dir_attr *stfs_change_own_dir_attr(const struct stfs_view *view, uint32_t dir)
{
	uint32_t attr = view->tree.nodes[dir].attr;

	return attr && view->dir_attrs[attr - 1].origin != STFS_DIR_TOUCHED ? &view->dir_attrs[attr - 1] : NULL;
}

int stfs_change_reserve_dir_attr(struct stfs_view *view, uint32_t dir)
{
	if (view->tree.nodes[dir].attr)
		return 0;
	return stfs_array_grow((void **)&view->dir_attrs, view->n_dir_attrs, &view->dir_attrs_cap, STFS_NODES_MAX,
			       sizeof(*view->dir_attrs));
}

int stfs_change_set_dir_attr(struct stfs_view *view, uint32_t dir, const struct stfs_file_attr *attr,
			     enum stfs_dir_attr_origin origin)
{
	struct stfs_node *n = &view->tree.nodes[dir];
	int r = stfs_change_reserve_dir_attr(view, dir);

	if (r < 0)
		return r;
	if (n->attr)
		origin = STFS_MAX(origin, view->dir_attrs[n->attr - 1].origin);
	else
		n->attr = ++view->n_dir_attrs;
	view->dir_attrs[n->attr - 1] = (struct stfs_dir_attr){ *attr, dir, origin };
	return 0;
}

void stfs_change_touch_dir(struct stfs_view *view, uint32_t dir)
{
	struct stfs_file_attr attr;

	stfs_change_get_dir_attr(view, dir, &attr);
	clock_gettime(CLOCK_REALTIME, &attr.mtime);
	/* Without memory for it the old time stays: no reason to fail the change itself. */
	(void)!stfs_change_set_dir_attr(view, dir, &attr, STFS_DIR_TOUCHED);
}
