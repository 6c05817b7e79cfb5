/* SPDX-License-Identifier: Apache-2.0 */
#include "view_known.h"

#include <errno.h>
#include <stdlib.h>

void stfs_known_fini(struct stfs_known *known)
{
	free(known->inos);
	free(known->parents);
	stfs_buf_fini(&known->names);
}

static int grow(struct stfs_known *known)
{
	size_t cap = known->cap ? known->cap * 2 : 64;
	uint64_t *inos = reallocarray(known->inos, cap, sizeof(*inos));
	uint64_t *parents = inos ? reallocarray(known->parents, cap, sizeof(*parents)) : NULL;

	if (inos)
		known->inos = inos;
	if (!parents)
		return -ENOMEM;
	known->parents = parents;
	known->cap = cap;
	return 0;
}

static int add(struct stfs_known *known, uint64_t ino, uint64_t parent, struct stfs_slice name)
{
	int r = known->n == known->cap ? grow(known) : 0;

	if (r == 0)
		r = stfs_buf_append(&known->names, name.p, name.len);
	if (r == 0)
		r = stfs_buf_append_char(&known->names, '\0');
	if (r < 0)
		return r;
	known->inos[known->n] = ino;
	known->parents[known->n++] = parent;
	return 0;
}

/* Adds a node, unless it is generated from the model as it stands. */
static int collect_node(struct stfs_view *view, uint32_t node, struct stfs_known *known)
{
	const struct stfs_node *n = &view->tree.nodes[node];

	if (node == STFS_NODE_ROOT || !(n->kind == STFS_NODE_OWN || n->attr || n->explicit_slots || n->moved))
		return 0;
	return add(known, stfs_view_place(view, node).ino, stfs_view_place(view, n->parent).ino,
		   stfs_tree_name(&view->tree, node));
}

int stfs_known_collect(struct stfs_view *view, uint32_t top, struct stfs_known *known)
{
	int r = 0;

	for (uint32_t node = top; r == 0 && node != STFS_NODE_NONE; node = stfs_tree_next(&view->tree, top, node))
		r = collect_node(view, node, known);
	return r;
}

int stfs_known_collect_above(struct stfs_view *view, uint32_t node, struct stfs_known *known)
{
	int r = 0;

	for (; r == 0 && node != STFS_NODE_ROOT; node = view->tree.nodes[node].parent)
		r = collect_node(view, node, known);
	return r;
}

/* Whether the name still stands for the same directory. */
static bool is_kept_dir(struct stfs_view *view, uint64_t ino, uint64_t parent, struct stfs_slice name)
{
	_cleanup_view_lock_ struct stfs_view *locked = stfs_view_read_lock(view);
	struct stfs_place dir, place;

	return stfs_view_resolve(view, parent, &dir) == 0 && stfs_view_entry(view, dir.node, name, &place) &&
	       place.slot == STFS_SLOT_DIR && place.ino == ino;
}

void stfs_known_tell(struct stfs_view *view, const struct stfs_known *known)
{
	const char *p = known->names.data;

	if (!view->watcher.changed)
		return;
	for (size_t i = 0; i < known->n; i++) {
		struct stfs_slice name = stfs_slice_of(p);

		view->watcher.changed(view->watcher.user, known->inos[i]);
		/* The kernel takes an entry away that it is told of, and who stands in that directory has no path any more. */
		if (!is_kept_dir(view, known->inos[i], known->parents[i], name))
			view->watcher.renamed(view->watcher.user, known->parents[i], name);
		p += name.len + 1;
	}
	view->watcher.changed(view->watcher.user, STFS_INO_ROOT);
	view->watcher.changed(view->watcher.user, STFS_INO_METADATA);
}
