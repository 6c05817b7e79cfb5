/* SPDX-License-Identifier: Apache-2.0 */
#include "view_private.h"

#include <errno.h>
#include <stdlib.h>

void stfs_listing_free(struct stfs_listing *listing)
{
	if (!listing)
		return;
	free(listing->entries);
	stfs_buf_fini(&listing->names);
	free(listing);
}

static void add_entry(struct stfs_listing *listing, struct stfs_slice name, uint64_t ino, enum stfs_node_type type)
{
	listing->entries[listing->n++] = (struct stfs_dirent){ name, ino, type };
}

static void add_dots(struct stfs_listing *listing, uint64_t self, uint64_t parent)
{
	add_entry(listing, stfs_slice_of("."), self, STFS_NODE_DIR);
	add_entry(listing, stfs_slice_of(".."), parent, STFS_NODE_DIR);
}

/* The last one first: data.npy is made of the others, and would be gone before `rm -r` comes to it. */
static void add_slots(const struct stfs_view *view, uint32_t node, struct stfs_listing *listing)
{
	struct stfs_place place;

	for (size_t i = 0; i < STFS_N_SLOT_NAMES; i++) {
		const struct stfs_slot_name *slot = &stfs_slot_names[(i + STFS_N_SLOT_NAMES - 1) % STFS_N_SLOT_NAMES];

		if ((slot->listed || view->options.npy == STFS_LIST) && stfs_view_slot(view, node, slot->slot, &place))
			add_entry(listing, stfs_slice_of(slot->name), place.ino, STFS_NODE_FILE);
	}
}

/* Names are copied: the list stays as it is whatever becomes of the tree. */
static int add_children(const struct stfs_view *view, uint32_t node, struct stfs_listing *listing)
{
	const struct stfs_node *nodes = view->tree.nodes;
	size_t bytes = 0;
	int r;

	for (uint32_t i = nodes[node].first_child; i != STFS_NODE_NONE; i = nodes[i].next)
		bytes += nodes[i].name_len;
	r = stfs_buf_reserve(&listing->names, bytes); /* so that no name moves while more are added */
	for (uint32_t i = nodes[node].first_child; r >= 0 && i != STFS_NODE_NONE; i = nodes[i].next) {
		struct stfs_slice name = { listing->names.data + listing->names.len, nodes[i].name_len };
		struct stfs_place place = stfs_view_place(view, i);

		r = stfs_buf_append(&listing->names, stfs_tree_name(&view->tree, i).p, name.len);
		add_entry(listing, name, place.ino, place.slot == STFS_SLOT_DIR ? STFS_NODE_DIR : STFS_NODE_FILE);
	}
	return r;
}

static size_t count_children(const struct stfs_view *view, uint32_t node)
{
	const struct stfs_node *nodes = view->tree.nodes;
	size_t n = 0;

	for (uint32_t i = nodes[node].first_child; i != STFS_NODE_NONE; i = nodes[i].next)
		n++;
	return n;
}

static int fill_dir(const struct stfs_view *view, const struct stfs_place *dir, struct stfs_listing *listing)
{
	uint32_t parent = view->tree.nodes[dir->node].parent;

	add_dots(listing, dir->ino, stfs_view_place(view, parent).ino);
	if (stfs_view_lists_control(view, dir->node))
		add_entry(listing, stfs_slice_of(".safetensors"), STFS_INO_CONTROL, STFS_NODE_DIR);
	add_slots(view, dir->node, listing);
	return add_children(view, dir->node, listing);
}

static void fill_control(const struct stfs_view *view, struct stfs_listing *listing)
{
	add_dots(listing, STFS_INO_CONTROL, STFS_INO_ROOT);
	for (size_t i = 0; i < stfs_view_n_controls(view); i++)
		add_entry(listing, stfs_slice_of(stfs_controls[i].name), STFS_INO_CONTROL_FIRST + i, STFS_NODE_FILE);
}

int stfs_view_list(struct stfs_view *view, uint64_t ino, struct stfs_listing **ret_listing)
{
	/* "." and "..", and everything that does not come from the tree. */
	size_t max = 2 + STFS_N_CONTROLS + STFS_N_SLOT_NAMES + 1;
	_cleanup_view_lock_ struct stfs_view *locked = stfs_view_read_lock(view);
	_cleanup_(stfs_listing_freep) struct stfs_listing *listing = NULL;
	struct stfs_place dir;
	int r;

	r = stfs_view_resolve(view, ino, &dir);
	if (r < 0)
		return r;
	if (dir.slot != STFS_SLOT_DIR && dir.slot != STFS_SLOT_CONTROL_DIR)
		return -ENOTDIR;
	if (dir.slot == STFS_SLOT_DIR)
		max += count_children(view, dir.node);
	listing = calloc(1, sizeof(*listing));
	if (!listing)
		return -ENOMEM;
	listing->entries = calloc(max, sizeof(*listing->entries));
	if (!listing->entries)
		return -ENOMEM;
	if (dir.slot == STFS_SLOT_CONTROL_DIR)
		fill_control(view, listing);
	else
		r = fill_dir(view, &dir, listing);
	if (r < 0)
		return r;
	*ret_listing = stfs_steal(listing);
	return 0;
}
