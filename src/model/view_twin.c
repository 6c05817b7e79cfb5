/* SPDX-License-Identifier: Apache-2.0 */
#include "view_twin.h"

#include <stdlib.h>

#include "array.h"
#include "view_change.h"

#define PIECES_MAX 1000u /* of a path: the search below goes as deep */

/* A search for another directory of a name. */
struct search {
	const struct stfs_view *view;
	uint32_t except;           /* a directory that does not count */
	struct stfs_slice *pieces; /* of the name, as the path spells them */
	uint32_t n, cap;
};

static void search_fini(struct search *search)
{
	free(search->pieces);
}

/* Takes a path apart at '/' and '.'. */
static int split(struct search *search, struct stfs_slice path)
{
	size_t start = 0;

	for (size_t i = 0; i <= path.len; i++) {
		struct stfs_slice piece = { path.p + start, i - start };
		int r;

		if (i < path.len && path.p[i] != '/' && path.p[i] != '.')
			continue;
		r = stfs_array_grow((void **)&search->pieces, search->n, &search->cap, PIECES_MAX, sizeof(piece));
		if (r < 0)
			return r;
		search->pieces[search->n++] = piece.len ? piece : stfs_slice_of("%_");
		start = i + 1;
	}
	return 0;
}

/* Whether a tensor below `dir` is spelt by the pieces from `first` on, with any number of them in one component. */
static bool find_below(const struct search *search, uint32_t dir, uint32_t first)
{
	char component[STFS_COMPONENT_MAX];
	size_t len = 0;

	if (first == search->n)
		return stfs_change_is_tensor(search->view, dir);
	for (uint32_t i = first; i < search->n; i++) {
		struct stfs_slice piece = search->pieces[i];
		uint32_t child;

		if (i > first && stfs_slice_is(piece, "%_"))
			piece.len = 0; /* as in "a..b" */
		if (len + piece.len + 1 > sizeof(component))
			return false;
		if (i > first)
			component[len++] = '.';
		memcpy(component + len, piece.p, piece.len);
		len += piece.len;
		child = stfs_tree_child(&search->view->tree, dir, (struct stfs_slice){ component, len });
		if (child != STFS_NODE_NONE && child != search->except &&
		    search->view->tree.nodes[child].kind == STFS_NODE_MODULE && find_below(search, child, i + 1))
			return true;
		/* A piece that goes on in the next component has no dot behind it. */
		if (stfs_slice_ends(piece, "%+"))
			return false;
	}
	return false;
}

bool stfs_view_has_twin(const struct stfs_view *view, uint32_t dir, struct stfs_slice name, uint32_t except)
{
	_cleanup_(search_fini) struct search search = { .view = view, .except = except };
	_cleanup_buf_ struct stfs_buf path = { 0 };

	if (view->options.layout == STFS_FLAT || !view->dirs_moved)
		return false;
	if (stfs_tree_path(&view->tree, STFS_NODE_ROOT, dir, &path) < 0 ||
	    (path.len && stfs_buf_append_char(&path, '/') < 0) || stfs_buf_append(&path, name.p, name.len) < 0 ||
	    split(&search, stfs_buf_slice(&path)) < 0)
		return false;
	return find_below(&search, STFS_NODE_ROOT, 0);
}
