/* SPDX-License-Identifier: Apache-2.0 */
/* Dropping what is staged: the tree, or a part of it, as the model has it. */
#include <errno.h>
#include <stdlib.h>

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

/* True when `full` is `path` or below it. */
static bool is_below(struct stfs_slice full, struct stfs_slice path)
{
	return full.len >= path.len && memcmp(full.p, path.p, path.len) == 0 &&
	       (full.len == path.len || full.p[path.len] == '/');
}

/* A search among the tensors of the model for those at a path or below it. */
struct search {
	const struct stfs_view *view;
	struct stfs_slice path; /* borrowed */
	struct stfs_buf name;   /* what the path spells, if it spells one: the names looked for begin with it */
	struct stfs_buf full;   /* the path of a tensor */
	uint32_t next;
};

static void search_fini(struct search *search)
{
	stfs_buf_fini(&search->name);
	stfs_buf_fini(&search->full);
}

static int search_init(struct search *search, const struct stfs_view *view, struct stfs_slice path)
{
	int r;

	*search = (struct search){ .view = view, .path = path };
	r = stfs_name_decode(&search->name, path, view->options.layout);
	return r == -ENOMEM ? r : 0;
}

/* Returns 1 with the next one, 0 when there is none any more, or -ENOMEM. */
static int search_next(struct search *search, uint32_t *ret)
{
	const struct stfs_model *model = search->view->model;

	for (uint32_t i; (i = search->next) < model->n_entries;) {
		struct stfs_slice name = stfs_model_tensor(model, i)->name;
		int r;

		search->next++;
		/* Most are told by that; for the others the path decides. */
		if (name.len < search->name.len ||
		    (search->name.len && memcmp(name.p, search->name.data, search->name.len) != 0))
			continue;
		search->full.len = 0;
		r = stfs_name_encode(&search->full, name, search->view->options.layout);
		if (r < 0)
			return r;
		if (is_below(stfs_buf_slice(&search->full), search->path)) {
			*ret = i;
			return 1;
		}
	}
	return 0;
}

/* Whether a tensor can have the place: nothing is there, or a directory that is no tensor. */
static bool is_free(const struct stfs_view *view, uint32_t node)
{
	return node == STFS_NODE_NONE ||
	       (view->tree.nodes[node].kind == STFS_NODE_MODULE && !stfs_change_is_tensor(view, node));
}

static int journal_discard(struct stfs_view *view, struct stfs_slice path)
{
	_cleanup_buf_ struct stfs_buf payload = { 0 };
	int r = stfs_payload_bytes(&payload, path);

	return r < 0 ? r :
		       stfs_journal_append(stfs_stage_journal(view->stage), STFS_RECORD_DISCARD,
					   stfs_buf_slice(&payload));
}

/* What is marked of a tensor of the model. */
enum {
	MARK_BELOW = 1 << 0, /* it belongs below the path */
	MARK_HERE = 1 << 1,  /* it was moved there, or is still there */
};

/*
 * A part of the tree on its way back. Everything that takes memory is done before it is written down, and before anything that
 * is staged is let go.
 */
struct restoring {
	struct stfs_view *view;
	struct stfs_slice path; /* relative to the root */
	bool journal;           /* to be written down */
	struct stfs_tree parts; /* what comes back */
	uint8_t *marks;         /* of each tensor of the model */
	uint32_t n;             /* tensors below the path, or keys */
};

static void restoring_fini(struct restoring *restoring)
{
	stfs_tree_fini(&restoring->parts);
	free(restoring->marks);
}

/* From here on it happens. */
static int decide(struct restoring *restoring)
{
	return restoring->journal ? journal_discard(restoring->view, restoring->path) : 0;
}

/* Makes room in the tree for what comes back. */
static int reserve(struct restoring *restoring)
{
	return stfs_tree_reserve(&restoring->view->tree, restoring->parts.n, restoring->parts.names.len);
}

/* Marks the tensors that were moved to `top` or below it. */
static void mark_here(struct restoring *restoring, uint32_t top)
{
	const struct stfs_tree *tree = &restoring->view->tree;

	for (uint32_t node = top; node != STFS_NODE_NONE; node = stfs_tree_next(tree, top, node)) {
		if (tree->nodes[node].kind == STFS_NODE_MODULE && tree->nodes[node].entry != STFS_NODE_NONE)
			restoring->marks[tree->nodes[node].entry] |= MARK_HERE;
	}
}

/* Finds the tensors of the model that come back: those that belong below the path, and those that were moved there. */
static int find_tensors(struct restoring *restoring, uint32_t top)
{
	const struct stfs_view *view = restoring->view;
	_cleanup_(search_fini) struct search search = { 0 };
	uint32_t entry;
	int r = stfs_tree_init(&restoring->parts);

	restoring->marks = calloc(view->model->n_entries + 1u, sizeof(*restoring->marks));
	if (!restoring->marks)
		return -ENOMEM;
	mark_here(restoring, top);
	if (r == 0)
		r = search_init(&search, view, restoring->path);
	while (r >= 0 && (r = search_next(&search, &entry)) > 0) {
		restoring->marks[entry] |= MARK_BELOW;
		restoring->n++;
	}
	for (uint32_t i = 0; r == 0 && i < view->model->n_entries; i++) {
		if (restoring->marks[i])
			r = stfs_view_add_tensor(view, &restoring->parts, i);
	}
	return r;
}

/* Whether a node is the directory of a tensor that was moved away from below the path: out of `top`, what is there now. */
static bool is_moved(const struct restoring *restoring, uint32_t node, uint32_t top)
{
	const struct stfs_tree *tree = &restoring->view->tree;

	return tree->nodes[node].kind == STFS_NODE_MODULE && tree->nodes[node].entry != STFS_NODE_NONE &&
	       (restoring->marks[tree->nodes[node].entry] & MARK_BELOW) &&
	       (top == STFS_NODE_NONE || !stfs_tree_is_below(tree, node, top));
}

/* What was moved away does not take the place of what comes back: it is a copy from now on. */
static int copy_moved(struct restoring *restoring, uint32_t top)
{
	struct stfs_view *view = restoring->view;
	int r = 0;

	for (uint32_t node = 0, n = view->tree.n; r == 0 && node < n; node++) {
		if (is_moved(restoring, node, top))
			r = stfs_change_make_explicit(view, node);
	}
	return r;
}

/* The node at the place of a tensor of the model, or STFS_NODE_NONE. */
static uint32_t find_place(const struct stfs_view *view, uint32_t entry)
{
	return stfs_view_walk_name(view, STFS_NODE_ROOT, stfs_model_tensor(view->model, entry)->name);
}

/* Tensors that left with what was dropped are back where the model has them, unless something else is there by now. */
static void bring_back(struct restoring *restoring)
{
	struct stfs_view *view = restoring->view;

	for (uint32_t i = 0; i < view->model->n_entries; i++) {
		if (restoring->marks[i] == MARK_HERE && is_free(view, find_place(view, i)))
			(void)!stfs_view_add_tensor(view, &view->tree, i); /* a file may be in the way */
	}
}

/* Takes no memory but what was reserved. */
static int put_tensors(struct restoring *restoring)
{
	struct stfs_view *view = restoring->view;
	int r = 0;

	for (uint32_t node = 0; node < view->tree.n; node++) {
		if (is_moved(restoring, node, STFS_NODE_NONE))
			view->tree.nodes[node].entry = STFS_NODE_NONE;
	}
	for (uint32_t i = 0; r == 0 && i < view->model->n_entries; i++) {
		if (restoring->marks[i] & MARK_BELOW)
			r = stfs_view_add_tensor(view, &view->tree, i);
	}
	if (r == 0)
		bring_back(restoring);
	return r;
}

static int restore_tensors(struct restoring *restoring)
{
	struct stfs_view *view = restoring->view;
	uint32_t top;
	int r = stfs_change_find_path(view, restoring->path, &top);

	if (r == 0)
		r = find_tensors(restoring, top);
	if (r == 0 && top == STFS_NODE_NONE && restoring->n == 0)
		r = -ENOENT;
	if (r == 0)
		r = copy_moved(restoring, top);
	if (r == 0)
		r = reserve(restoring);
	if (r == 0)
		r = decide(restoring);
	if (r < 0)
		return r;
	if (top != STFS_NODE_NONE)
		stfs_change_remove_tree(view, top);
	return put_tensors(restoring);
}

/* A file of a tensor as the model has it. Returns 1, or 0 when the path is no file of a tensor whose place the model knows. */
static int restore_slot(struct restoring *restoring)
{
	struct stfs_slice path = restoring->path;
	const char *slash = memrchr(path.p, '/', path.len);
	struct stfs_slice name = { slash ? slash + 1 : path.p, slash ? (size_t)(path.p + path.len - slash - 1) : 0 };
	_cleanup_(stfs_content_unrefp) struct stfs_content *content = NULL;
	struct stfs_view *view = restoring->view;
	unsigned slot = STFS_SLOT_DATA;
	uint32_t dir;
	int r;

	if (!slash || stfs_change_find_path(view, (struct stfs_slice){ path.p, (size_t)(slash - path.p) }, &dir) < 0 ||
	    dir == STFS_NODE_NONE || view->tree.nodes[dir].entry == STFS_NODE_NONE ||
	    view->tree.nodes[dir].kind != STFS_NODE_MODULE)
		return 0;
	while (slot <= STFS_SLOT_SHAPE && !stfs_slice_is(name, stfs_slot_names[slot - STFS_SLOT_DATA].name))
		slot++;
	if (slot > STFS_SLOT_SHAPE || !view->tree.nodes[dir].explicit_slots)
		return slot <= STFS_SLOT_SHAPE;
	r = stfs_change_make_slot(view, dir, slot, &content);
	if (r == 0)
		r = decide(restoring);
	if (r < 0)
		return r;
	stfs_change_put_slot(view, dir, slot, stfs_steal(content));
	return 1;
}

/* Adds a key of the model to what comes back if it is called `name`, or whatever it is called with an empty name. */
static int find_key(struct restoring *restoring, uint32_t entry, struct stfs_slice name)
{
	_cleanup_buf_ struct stfs_buf key = { 0 };
	uint32_t node;
	int r = stfs_key_encode(&key, restoring->view->model->metadata[entry].key);

	if (r == -ENAMETOOLONG || (r == 0 && name.len && !stfs_slice_equal(stfs_buf_slice(&key), name)))
		return 0;
	if (r == 0)
		r = stfs_tree_add(&restoring->parts, STFS_NODE_METADATA, stfs_buf_slice(&key), STFS_NODE_KEY, &node);
	if (r < 0)
		return r;
	restoring->parts.nodes[node].entry = entry;
	restoring->n++;
	return 0;
}

static int put_keys(struct restoring *restoring)
{
	struct stfs_tree *tree = &restoring->view->tree;
	const struct stfs_tree *parts = &restoring->parts;

	for (uint32_t part = parts->nodes[STFS_NODE_METADATA].first_child; part != STFS_NODE_NONE;
	     part = parts->nodes[part].next) {
		uint32_t node;
		int r = stfs_tree_add(tree, STFS_NODE_METADATA, stfs_tree_name(parts, part), STFS_NODE_KEY, &node);

		if (r < 0)
			return r;
		tree->nodes[node].entry = parts->nodes[part].entry;
	}
	return 0;
}

/* The key called `name`, or all with an empty name. */
static int restore_metadata(struct restoring *restoring, struct stfs_slice name)
{
	struct stfs_view *view = restoring->view;
	uint32_t node = name.len ? stfs_tree_child(&view->tree, STFS_NODE_METADATA, name) : STFS_NODE_NONE;
	int r = stfs_tree_init(&restoring->parts);

	for (uint32_t i = 0; r == 0 && i < view->model->n_metadata; i++)
		r = find_key(restoring, i, name);
	if (r == 0 && name.len && node == STFS_NODE_NONE && restoring->n == 0)
		r = -ENOENT;
	if (r == 0)
		r = reserve(restoring);
	if (r == 0)
		r = decide(restoring);
	if (r < 0)
		return r;
	if (node != STFS_NODE_NONE)
		stfs_change_remove(view, node);
	while (!name.len && (node = view->tree.nodes[STFS_NODE_METADATA].first_child) != STFS_NODE_NONE)
		stfs_change_remove(view, node);
	/* The directory itself stays, unlike others on their way back. */
	if (!name.len)
		stfs_change_drop_dir_attr(view, STFS_NODE_METADATA);
	return put_keys(restoring);
}

static int restore(struct stfs_view *view, struct stfs_slice path, bool journal)
{
	static const char metadata[] = "__metadata__";
	_cleanup_(restoring_fini) struct restoring restoring = { .view = view, .path = path, .journal = journal };
	int r;

	if (is_below(path, stfs_slice_of(metadata))) {
		size_t skip = STFS_MIN(path.len, sizeof(metadata));

		return restore_metadata(&restoring, (struct stfs_slice){ path.p + skip, path.len - skip });
	}
	r = restore_slot(&restoring);
	return r != 0 ? STFS_MIN(r, 0) : restore_tensors(&restoring);
}

int stfs_change_restore(struct stfs_view *view, struct stfs_slice path)
{
	return path.len == 0 ? restore_all(view, false) : restore(view, path, false);
}

/* Whether the model has tensors at `path` or below it. */
static int has_tensors(const struct stfs_view *view, struct stfs_slice path, bool *ret)
{
	_cleanup_(search_fini) struct search search = { 0 };
	uint32_t entry;
	int r = search_init(&search, view, path);

	if (r == 0)
		r = search_next(&search, &entry);
	*ret = r > 0;
	return r < 0 ? r : 0;
}

/* Where there is nothing, a path may be the name of a tensor that is gone, which then stands for its place. */
static int find_named(const struct stfs_view *view, struct stfs_slice *path, struct stfs_buf *buf)
{
	uint32_t node;
	bool is_path, is_name;
	int r = stfs_change_find_path(view, *path, &node);

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

/* Finds what is at a path, or the last of what leads there. Returns whether it is at the path itself. */
static bool find_nearest(const struct stfs_view *view, struct stfs_slice path, uint32_t *ret)
{
	uint32_t child;

	for (*ret = STFS_NODE_ROOT; path.len; *ret = child) {
		child = stfs_tree_child(&view->tree, *ret, stfs_slice_cut(&path, '/'));
		if (child == STFS_NODE_NONE)
			return false;
	}
	return true;
}

/* Where tensors that were moved to `top` or below it are going to be again. */
static int collect_homes(struct stfs_view *view, uint32_t top, struct stfs_known *known)
{
	const struct stfs_tree *tree = &view->tree;
	_cleanup_buf_ struct stfs_buf path = { 0 };
	uint32_t home, last = top;
	int r = 0;

	for (uint32_t node = top; r == 0 && node != STFS_NODE_NONE; node = stfs_tree_next(tree, top, node)) {
		if (tree->nodes[node].kind != STFS_NODE_MODULE || tree->nodes[node].entry == STFS_NODE_NONE)
			continue;
		path.len = 0;
		r = stfs_name_encode(&path, stfs_view_tensor(view, node)->name, view->options.layout);
		if (r < 0)
			return r;
		find_nearest(view, stfs_buf_slice(&path), &home);
		/* They often come from one directory. */
		if (home != last && !stfs_tree_is_below(tree, home, top))
			r = stfs_known_collect_above(view, home, known);
		last = home;
	}
	return r;
}

/* What the kernel knows of the path: what is there, which may go, and the directories whose times and links are others then. */
static int collect_known(struct stfs_view *view, struct stfs_slice path, struct stfs_known *known)
{
	uint32_t node;
	int r;

	if (!find_nearest(view, path, &node))
		return stfs_known_collect_above(view, node, known);
	r = stfs_known_collect(view, node, known);
	if (r == 0)
		r = stfs_known_collect_above(view, view->tree.nodes[node].parent, known);
	return r == 0 && path.len && view->dirs_moved ? collect_homes(view, node, known) : r;
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
	r = find_named(view, &path, &named);
	if (r == 0)
		r = collect_known(view, path, &known);
	if (r == 0)
		r = path.len ? restore(view, path, true) : restore_all(view, true);
	stfs_edit_end(view);
	stfs_known_tell(view, &known);
	return r;
}
