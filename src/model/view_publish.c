/* SPDX-License-Identifier: Apache-2.0 */
#include "view_publish.h"

#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "text.h"
#include "view_canonical.h"
#include "view_known.h"

int stfs_view_freeze(struct stfs_view *view)
{
	bool frozen;

	if (!view->stage)
		return -EROFS;
	/* Whoever writes holds the lock for reading: having it means that all of them are done. */
	pthread_rwlock_wrlock(&view->tree_lock);
	frozen = atomic_exchange(&view->frozen, true);
	pthread_rwlock_unlock(&view->tree_lock);
	return frozen ? stfs_view_frozen_error(view) : 0;
}

void stfs_view_stop(struct stfs_view *view)
{
	atomic_store(&view->stopped, true);
}

void stfs_view_thaw(struct stfs_view *view)
{
	if (!atomic_load(&view->stopped))
		atomic_store(&view->frozen, false);
}

/* Whether a node is a scratch file. */
static bool is_scratch(const struct stfs_view *view, uint32_t node)
{
	return view->tree.nodes[node].kind == STFS_NODE_OWN && stfs_view_role(view, node) == STFS_ROLE_SCRATCH;
}

int stfs_view_detach_scratch(struct stfs_view *view)
{
	_cleanup_view_lock_ struct stfs_view *locked = stfs_view_read_lock(view);
	int r = 0;

	for (uint32_t node = 0; r == 0 && node < view->tree.n; node++) {
		if (!is_scratch(view, node))
			continue;
		r = stfs_edit_bind(view, stfs_view_content(view, node));
		if (r == 0)
			r = stfs_content_detach(stfs_view_content(view, node), view->stage);
	}
	return r;
}

static int dump_file(struct stfs_view *view, uint32_t node, struct stfs_journal *journal)
{
	struct stfs_content *content = stfs_view_content(view, node);
	struct stfs_file_attr attr;
	int r;

	stfs_content_attr(content, &attr);
	r = stfs_edit_journal_new(view, journal, STFS_RECORD_CREATE, stfs_content_ino(content),
				  view->tree.nodes[node].parent, stfs_tree_name(&view->tree, node), &attr);
	return r < 0 ? r : stfs_content_dump(content, journal);
}

/* The directories of tensors that get another path, which they have in the tree of the next mount. */
static int dump_moving_dirs(struct stfs_view *view, const struct stfs_changes *changes, struct stfs_journal *journal)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && view->dirs_moved && i < changes->n_tensors; i++) {
		uint32_t dir = stfs_tree_find(&view->tree, stfs_change_id_of_ino(changes->tensors[i].ino));
		const struct stfs_dir_attr *own = dir == STFS_NODE_NONE ? NULL : stfs_change_own_dir_attr(view, dir);
		_cleanup_buf_ struct stfs_buf path = { 0 };

		if (!own)
			continue;
		r = stfs_view_canonical_path(view, dir, changes->tensors[i].name, &path);
		if (r > 0)
			r = stfs_edit_journal_dir_at(journal, stfs_buf_slice(&path), &own->attr);
	}
	return r;
}

int stfs_view_dump_scratch(struct stfs_view *view, const struct stfs_changes *changes, struct stfs_journal *journal)
{
	_cleanup_view_lock_ struct stfs_view *locked = stfs_view_read_lock(view);
	int r = 0;

	for (uint32_t node = 0; r == 0 && node < view->tree.n; node++) {
		if (is_scratch(view, node))
			r = dump_file(view, node, journal);
	}
	/* Behind the scratch files, which bring back the directories that they stand in. */
	if (r == 0)
		r = stfs_edit_dump_dirs(view, journal, STFS_DIR_MADE);
	return r < 0 ? r : dump_moving_dirs(view, changes, journal);
}

/* A text that the new model has in other words. */
struct new_text {
	struct stfs_content *content; /* borrowed from the tree */
	struct stfs_buf text;
};

/* Where a key of the tree is in the new model. */
struct new_key {
	uint32_t node, entry;
};

/* What the tree is to show of the new model, found and made before anything is changed: then nothing can fail. */
struct publishing {
	struct stfs_view *view;
	struct stfs_model *model;
	uint32_t *nodes, *entries; /* of each tensor of the changes */
	uint32_t n;
	struct timespec *mtimes;
	struct stfs_table keys; /* of the new model's metadata */
	struct new_text *new_texts;
	uint32_t n_texts, texts_cap;
	struct new_key *new_keys;
	uint32_t n_keys, keys_cap;
};

static void publishing_fini(struct publishing *publishing)
{
	for (uint32_t i = 0; i < publishing->n_texts; i++)
		stfs_buf_fini(&publishing->new_texts[i].text);
	free(publishing->new_texts);
	free(publishing->new_keys);
	free(publishing->nodes);
	free(publishing->entries);
	free(publishing->mtimes);
	stfs_table_fini(&publishing->keys);
}

static struct stfs_table_items key_items(const struct stfs_model *model)
{
	return (struct stfs_table_items){ model->metadata, sizeof(*model->metadata) };
}

/* Adds a text for a file node, still empty. */
static int add_text(struct publishing *publishing, uint32_t node, struct stfs_buf **ret)
{
	int r = stfs_array_grow((void **)&publishing->new_texts, publishing->n_texts, &publishing->texts_cap,
				UINT32_MAX, sizeof(*publishing->new_texts));

	if (r < 0)
		return r;
	publishing->new_texts[publishing->n_texts] =
		(struct new_text){ .content = stfs_view_content(publishing->view, node) };
	*ret = &publishing->new_texts[publishing->n_texts++].text;
	return 0;
}

static int prepare_slot(struct publishing *publishing, uint32_t dir, enum stfs_role role,
			const struct stfs_tensor *tensor)
{
	uint32_t node = stfs_view_role_node(publishing->view, dir, role);
	struct stfs_buf *text;
	int r;

	if (node == STFS_NODE_NONE)
		return 0;
	r = add_text(publishing, node, &text);
	if (r < 0)
		return r;
	return role == STFS_ROLE_DTYPE ? stfs_text_dtype(text, tensor) : stfs_text_shape(text, tensor);
}

/* Finds the tensors. -EINVAL when the new model is not what was planned, which must not be. */
static int prepare_tensors(struct publishing *publishing, const struct stfs_changes *changes)
{
	struct stfs_view *view = publishing->view;
	uint32_t entry = STFS_ENTRY_NONE;
	int r = 0;

	publishing->nodes = calloc(changes->n_tensors + 1u, sizeof(*publishing->nodes));
	publishing->entries = calloc(changes->n_tensors + 1u, sizeof(*publishing->entries));
	if (!publishing->nodes || !publishing->entries)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < changes->n_tensors; i++) {
		uint32_t dir = stfs_tree_find(&view->tree, stfs_change_id_of_ino(changes->tensors[i].ino));

		/* Most stand behind the one before: a model may have hundreds of files. */
		entry = stfs_model_find_near(publishing->model, changes->tensors[i].name, entry);
		if (dir == STFS_NODE_NONE || entry == STFS_ENTRY_NONE)
			return -EINVAL;
		r = prepare_slot(publishing, dir, STFS_ROLE_DTYPE, stfs_model_tensor(publishing->model, entry));
		if (r == 0)
			r = prepare_slot(publishing, dir, STFS_ROLE_SHAPE, stfs_model_tensor(publishing->model, entry));
		publishing->nodes[i] = dir;
		publishing->entries[i] = entry;
	}
	publishing->n = changes->n_tensors;
	return r;
}

/* Finds the model's metadata entry of a key's file; STFS_TABLE_NONE when there is none. */
static int find_key(struct publishing *publishing, struct stfs_slice name, uint32_t *ret)
{
	_cleanup_buf_ struct stfs_buf key = { 0 };
	int r = stfs_key_decode(&key, name);

	*ret = STFS_TABLE_NONE;
	if (r == 0)
		*ret = stfs_table_find(&publishing->keys, key_items(publishing->model), stfs_buf_slice(&key));
	return r == -ENOMEM ? r : 0;
}

static int prepare_key(struct publishing *publishing, uint32_t node)
{
	const struct stfs_tree *tree = &publishing->view->tree;
	struct stfs_buf *text;
	uint32_t entry;
	int r;

	if (is_scratch(publishing->view, node))
		return 0;
	r = find_key(publishing, stfs_tree_name(tree, node), &entry);
	if (r < 0 || entry == STFS_TABLE_NONE)
		return r;
	if (tree->nodes[node].kind != STFS_NODE_KEY) {
		r = add_text(publishing, node, &text);
		return r < 0 ? r : stfs_text_metadata(text, &publishing->model->metadata[entry]);
	}
	r = stfs_array_grow((void **)&publishing->new_keys, publishing->n_keys, &publishing->keys_cap, UINT32_MAX,
			    sizeof(*publishing->new_keys));
	if (r == 0)
		publishing->new_keys[publishing->n_keys++] = (struct new_key){ node, entry };
	return r;
}

/* Takes all memory and finds everything. */
static int prepare(struct publishing *publishing, const struct stfs_changes *changes)
{
	struct stfs_view *view = publishing->view;
	int r = prepare_tensors(publishing, changes);

	if (r == 0)
		r = stfs_view_keep_mtimes(publishing->model, view->model, view->file_mtimes, &publishing->mtimes);
	for (uint32_t i = 0; r == 0 && i < publishing->model->n_metadata; i++)
		r = stfs_table_insert(&publishing->keys, key_items(publishing->model), i);
	for (uint32_t node = view->tree.nodes[STFS_NODE_METADATA].first_child; r == 0 && node != STFS_NODE_NONE;
	     node = view->tree.nodes[node].next)
		r = prepare_key(publishing, node);
	return r;
}

/* The bytes of an edited tensor are now those of the new model. */
static void rebase_data(struct publishing *publishing, uint32_t dir, uint32_t entry)
{
	struct stfs_run run = stfs_view_run(publishing->model, entry);
	uint32_t data = stfs_view_role_node(publishing->view, dir, STFS_ROLE_DATA);

	/* Made by hand: from now on the model would show its own as well. */
	if (data != STFS_NODE_NONE) {
		publishing->view->tree.nodes[dir].explicit_slots = true;
		stfs_content_rebase_run(stfs_view_content(publishing->view, data), &run);
	}
}

/* Makes the nodes those of the new model. */
static void rebase(struct publishing *publishing)
{
	struct stfs_node *nodes = publishing->view->tree.nodes;

	for (uint32_t node = 0; node < publishing->view->tree.n; node++) {
		nodes[node].npy_removed = false;
		if (nodes[node].kind == STFS_NODE_MODULE)
			nodes[node].entry = STFS_NODE_NONE;
	}
	for (uint32_t i = 0; i < publishing->n; i++) {
		nodes[publishing->nodes[i]].entry = publishing->entries[i];
		rebase_data(publishing, publishing->nodes[i], publishing->entries[i]);
	}
	for (uint32_t i = 0; i < publishing->n_texts; i++)
		stfs_content_rebase_text(publishing->new_texts[i].content, &publishing->new_texts[i].text);
	for (uint32_t i = 0; i < publishing->n_keys; i++)
		nodes[publishing->new_keys[i].node].entry = publishing->new_keys[i].entry;
}

/* Gives names that were spelt with dots their one place. */
static void canonicalize(struct publishing *publishing)
{
	struct stfs_view *view = publishing->view;
	int r = 0;

	for (uint32_t i = 0; r == 0 && view->dirs_moved && i < publishing->n; i++)
		r = stfs_view_canonicalize(view, publishing->nodes[i]);
	/* The next mount has another tree, and would not understand what is staged on this one. */
	if (r < 0)
		stfs_view_stop(view);
}

/* Directories with neither tensor nor file below them are no part of a model. */
static void drop_empty_dirs(struct stfs_view *view)
{
	for (uint32_t node = 0; node < view->tree.n; node++) {
		uint32_t at = node;

		while (at != STFS_NODE_ROOT && at != STFS_NODE_METADATA &&
		       view->tree.nodes[at].kind == STFS_NODE_MODULE && stfs_change_is_empty(view, at)) {
			uint32_t parent = view->tree.nodes[at].parent;

			stfs_change_remove(view, at);
			at = parent;
		}
	}
}

int stfs_view_publish(struct stfs_view *view, struct stfs_model *model, const struct stfs_changes *changes)
{
	_cleanup_(publishing_fini) struct publishing publishing = { .view = view, .model = model };
	_cleanup_(stfs_model_freep) struct stfs_model *old = NULL;
	_cleanup_(stfs_known_fini) struct stfs_known known = { 0 };
	int r;

	pthread_rwlock_wrlock(&view->tree_lock);
	r = prepare(&publishing, changes);
	if (r == 0)
		r = stfs_known_collect(view, STFS_NODE_ROOT, &known);
	if (r == 0) {
		rebase(&publishing);
		old = view->model;
		view->model = model;
		free(view->file_mtimes);
		view->file_mtimes = stfs_steal(publishing.mtimes);
		canonicalize(&publishing);
		drop_empty_dirs(view);
		atomic_fetch_add(&view->generation, 1);
		atomic_fetch_add(&view->journal_generation, 1);
	}
	pthread_rwlock_unlock(&view->tree_lock);
	if (r == 0)
		stfs_known_tell(view, &known);
	return r;
}
