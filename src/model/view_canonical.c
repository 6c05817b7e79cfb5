/* SPDX-License-Identifier: Apache-2.0 */
#include "view_canonical.h"

#include <errno.h>

/* Whether there is nothing below a directory but directories and the files of tensors. */
static bool has_no_scratch(const struct stfs_view *view, uint32_t dir)
{
	const struct stfs_tree *tree = &view->tree;

	for (uint32_t node = stfs_tree_next(tree, dir, dir); node != STFS_NODE_NONE;
	     node = stfs_tree_next(tree, dir, node)) {
		enum stfs_role role;

		if (tree->nodes[node].kind == STFS_NODE_MODULE)
			continue;
		role = stfs_view_role(view, node);
		if (role != STFS_ROLE_DATA && role != STFS_ROLE_DTYPE && role != STFS_ROLE_SHAPE)
			return false;
	}
	return true;
}

/* The directory that is to hold the last component of `path`, made where it is missing; *ret_name is that component. */
static int make_parent(struct stfs_view *view, struct stfs_slice path, uint32_t *ret_dir, struct stfs_slice *ret_name)
{
	struct stfs_tree *tree = &view->tree;
	uint32_t dir = STFS_NODE_ROOT, child;
	const char *slash;

	while ((slash = memchr(path.p, '/', path.len))) {
		struct stfs_slice name = { path.p, (size_t)(slash - path.p) };
		int r = 0;

		child = stfs_tree_child(tree, dir, name);
		if (child == STFS_NODE_NONE)
			r = stfs_tree_add(tree, dir, name, STFS_NODE_MODULE, &child);
		if (r < 0)
			return r;
		if (tree->nodes[child].kind != STFS_NODE_MODULE)
			return -ENOTDIR;
		dir = child;
		path = (struct stfs_slice){ slash + 1, path.len - name.len - 1 };
	}
	*ret_dir = dir;
	*ret_name = path;
	return 0;
}

/* Whether the attributes of a tensor's directory that is merged into `target` become those of that. */
static bool may_take_attr(const struct stfs_view *view, uint32_t target)
{
	return view->tree.nodes[target].kind == STFS_NODE_MODULE && !stfs_change_own_dir_attr(view, target);
}

static int take_attr(struct stfs_view *view, uint32_t node, uint32_t target)
{
	const struct stfs_dir_attr *own = stfs_change_own_dir_attr(view, node);
	struct stfs_file_attr attr;

	if (!own || !may_take_attr(view, target))
		return 0;
	attr = own->attr; /* the next call may move it */
	return stfs_change_set_dir_attr(view, target, &attr, own->origin);
}

/* Moves the files of a tensor into a directory that is there already, as that of a module. */
static int merge(struct stfs_view *view, uint32_t node, uint32_t target)
{
	struct stfs_tree *tree = &view->tree;
	struct stfs_node *nodes = tree->nodes;
	int r;

	if (nodes[target].kind != STFS_NODE_MODULE || nodes[target].entry != STFS_NODE_NONE ||
	    nodes[target].explicit_slots)
		return 0;
	r = stfs_change_make_explicit(view, node);
	/* Memory for the names first: a tensor must not end up in two places. */
	if (r == 0)
		r = stfs_tree_reserve(tree, 0, 64);
	if (r == 0)
		r = take_attr(view, node, target);
	if (r < 0)
		return r;
	for (unsigned role = STFS_ROLE_DATA; role <= STFS_ROLE_SHAPE; role++) {
		uint32_t file = stfs_view_role_node(view, node, role);

		if (file != STFS_NODE_NONE)
			r = stfs_tree_move(tree, file, target, stfs_slice_of(stfs_slot_names[role].name));
		if (r < 0)
			return r;
	}
	nodes = tree->nodes;
	nodes[target].entry = nodes[node].entry;
	nodes[target].explicit_slots = true;
	nodes[node].entry = STFS_NODE_NONE;
	nodes[node].explicit_slots = false;
	return 0;
}

int stfs_view_canonical_path(const struct stfs_view *view, uint32_t node, struct stfs_slice name, struct stfs_buf *ret)
{
	_cleanup_buf_ struct stfs_buf is = { 0 };
	uint32_t target;
	int r = stfs_tree_path(&view->tree, STFS_NODE_ROOT, node, &is);

	if (r == 0)
		r = stfs_name_encode(ret, name, view->options.layout);
	if (r < 0)
		return r;
	return !stfs_slice_equal(stfs_buf_slice(&is), stfs_buf_slice(ret)) &&
	       stfs_change_find_path(view, stfs_buf_slice(ret), &target) == 0 &&
	       (target == STFS_NODE_NONE || may_take_attr(view, target));
}

int stfs_view_canonicalize(struct stfs_view *view, uint32_t node)
{
	_cleanup_buf_ struct stfs_buf is = { 0 }, wanted = { 0 };
	struct stfs_slice name;
	uint32_t dir, target;
	int r = stfs_tree_path(&view->tree, STFS_NODE_ROOT, node, &is);

	if (r == 0)
		r = stfs_name_encode(&wanted, stfs_view_tensor(view, node)->name, view->options.layout);
	if (r < 0)
		return r;
	if (stfs_slice_equal(stfs_buf_slice(&is), stfs_buf_slice(&wanted)))
		return 0;
	r = make_parent(view, stfs_buf_slice(&wanted), &dir, &name);
	if (r < 0)
		return r == -ENOTDIR ? 0 : r;
	if (stfs_tree_is_below(&view->tree, dir, node))
		return 0;
	target = stfs_tree_child(&view->tree, dir, name);
	if (target == STFS_NODE_NONE && has_no_scratch(view, node))
		return stfs_tree_move(&view->tree, node, dir, name);
	/* Scratch files stay where the journal knows them: there the next mount shows them too. */
	if (target == STFS_NODE_NONE)
		r = stfs_tree_add(&view->tree, dir, name, STFS_NODE_MODULE, &target);
	return r < 0 ? r : merge(view, node, target);
}
