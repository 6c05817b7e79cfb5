/* SPDX-License-Identifier: Apache-2.0 */
#include "view_publish.h"

#include <errno.h>
#include <stdlib.h>

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
	const struct stfs_node *n = &view->tree.nodes[node];

	return n->kind == STFS_NODE_OWN &&
	       stfs_view_role(view, n->parent, stfs_tree_name(&view->tree, node)) == STFS_ROLE_SCRATCH;
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
	_cleanup_buf_ struct stfs_buf payload = { 0 }, path = { 0 };
	struct stfs_file_attr attr;
	int r = stfs_tree_path(&view->tree, STFS_NODE_ROOT, node, &path);

	stfs_content_attr(content, &attr);
	if (r == 0)
		r = stfs_payload_u64(&payload, stfs_content_ino(content));
	if (r == 0)
		r = stfs_payload_bytes(&payload, stfs_buf_slice(&path));
	if (r == 0)
		r = stfs_payload_u64(&payload, attr.perm);
	if (r == 0)
		r = stfs_payload_u64(&payload, attr.uid);
	if (r == 0)
		r = stfs_payload_u64(&payload, attr.gid);
	if (r == 0)
		r = stfs_journal_append(journal, STFS_RECORD_CREATE, stfs_buf_slice(&payload));
	return r < 0 ? r : stfs_content_dump(content, journal);
}

int stfs_view_dump_scratch(struct stfs_view *view, struct stfs_journal *journal)
{
	_cleanup_view_lock_ struct stfs_view *locked = stfs_view_read_lock(view);
	int r = 0;

	for (uint32_t node = 0; r == 0 && node < view->tree.n; node++) {
		if (is_scratch(view, node))
			r = dump_file(view, node, journal);
	}
	return r;
}

/* Where the tensors and keys of the new model are, found before anything is changed. */
struct publishing {
	struct stfs_view *view;
	struct stfs_model *model;
	uint32_t *nodes, *entries; /* of each tensor of the changes */
	uint32_t n;
	struct timespec *mtimes;
	struct stfs_table keys; /* of the new model's metadata */
};

static void publishing_fini(struct publishing *publishing)
{
	free(publishing->nodes);
	free(publishing->entries);
	free(publishing->mtimes);
	stfs_table_fini(&publishing->keys);
}

static struct stfs_table_items key_items(const struct stfs_model *model)
{
	return (struct stfs_table_items){ model->metadata, sizeof(*model->metadata) };
}

/* Takes all memory and finds everything. -EINVAL when the new model is not what was planned, which must not be. */
static int prepare(struct publishing *publishing, const struct stfs_changes *changes)
{
	struct stfs_view *view = publishing->view;
	int r;

	publishing->nodes = calloc(changes->n_tensors + 1u, sizeof(*publishing->nodes));
	publishing->entries = calloc(changes->n_tensors + 1u, sizeof(*publishing->entries));
	if (!publishing->nodes || !publishing->entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < changes->n_tensors; i++) {
		publishing->nodes[i] = stfs_tree_find(&view->tree, stfs_change_id_of_ino(changes->tensors[i].ino));
		publishing->entries[i] = stfs_model_find(publishing->model, changes->tensors[i].name);
		if (publishing->nodes[i] == STFS_NODE_NONE || publishing->entries[i] == STFS_ENTRY_NONE)
			return -EINVAL;
	}
	publishing->n = changes->n_tensors;
	r = stfs_view_keep_mtimes(publishing->model, view->model, view->file_mtimes, &publishing->mtimes);
	for (uint32_t i = 0; r == 0 && i < publishing->model->n_metadata; i++)
		r = stfs_table_insert(&publishing->keys, key_items(publishing->model), i);
	return r;
}

static void rebase_text(struct stfs_view *view, uint32_t dir, enum stfs_role role, const struct stfs_tensor *tensor)
{
	uint32_t node = stfs_view_role_node(view, dir, role);
	_cleanup_buf_ struct stfs_buf text = { 0 };
	int r;

	if (node == STFS_NODE_NONE)
		return;
	r = role == STFS_ROLE_DTYPE ? stfs_text_dtype(&text, tensor) : stfs_text_shape(&text, tensor);
	if (r == 0)
		stfs_content_rebase_text(stfs_view_content(view, node), stfs_buf_slice(&text));
}

/* The files of an edited tensor are now those of the new model. */
static void rebase_tensor(struct publishing *publishing, uint32_t dir, uint32_t entry)
{
	const struct stfs_tensor *tensor = stfs_model_tensor(publishing->model, entry);
	struct stfs_run run = {
		stfs_model_file(publishing->model, entry),
		stfs_model_offset(publishing->model, entry),
		tensor->end - tensor->begin,
	};
	uint32_t data = stfs_view_role_node(publishing->view, dir, STFS_ROLE_DATA);

	/* Made by hand: from now on the model would show its own as well. */
	if (data != STFS_NODE_NONE) {
		publishing->view->tree.nodes[dir].explicit_slots = true;
		stfs_content_rebase_run(stfs_view_content(publishing->view, data), &run);
	}
	rebase_text(publishing->view, dir, STFS_ROLE_DTYPE, tensor);
	rebase_text(publishing->view, dir, STFS_ROLE_SHAPE, tensor);
}

/* The model's metadata entry of a key's file, or NULL. */
static const struct stfs_metadata_entry *find_key(struct publishing *publishing, struct stfs_slice name)
{
	_cleanup_buf_ struct stfs_buf key = { 0 };
	uint32_t at;

	if (stfs_key_decode(&key, name) < 0)
		return NULL;
	at = stfs_table_find(&publishing->keys, key_items(publishing->model), stfs_buf_slice(&key));
	return at == STFS_TABLE_NONE ? NULL : &publishing->model->metadata[at];
}

static void rebase_keys(struct publishing *publishing)
{
	struct stfs_view *view = publishing->view;
	struct stfs_tree *tree = &view->tree;

	for (uint32_t node = tree->nodes[STFS_NODE_METADATA].first_child; node != STFS_NODE_NONE;
	     node = tree->nodes[node].next) {
		const struct stfs_metadata_entry *entry;
		_cleanup_buf_ struct stfs_buf text = { 0 };

		if (is_scratch(view, node))
			continue;
		entry = find_key(publishing, stfs_tree_name(tree, node));
		if (!entry)
			continue;
		if (tree->nodes[node].kind == STFS_NODE_KEY)
			tree->nodes[node].entry = (uint32_t)(entry - publishing->model->metadata);
		else if (stfs_text_metadata(&text, entry) == 0)
			stfs_content_rebase_text(stfs_view_content(view, node), stfs_buf_slice(&text));
	}
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
		r = stfs_known_collect(view, &known);
	if (r == 0) {
		for (uint32_t node = 0; node < view->tree.n; node++) {
			if (view->tree.nodes[node].kind == STFS_NODE_MODULE)
				view->tree.nodes[node].entry = STFS_NODE_NONE;
		}
		for (uint32_t i = 0; i < publishing.n; i++) {
			view->tree.nodes[publishing.nodes[i]].entry = publishing.entries[i];
			rebase_tensor(&publishing, publishing.nodes[i], publishing.entries[i]);
		}
		rebase_keys(&publishing);
		old = view->model;
		view->model = model;
		free(view->file_mtimes);
		view->file_mtimes = stfs_steal(publishing.mtimes);
		for (uint32_t i = 0; view->dirs_moved && i < publishing.n; i++)
			stfs_view_canonicalize(view, publishing.nodes[i]);
		drop_empty_dirs(view);
		atomic_fetch_add(&view->generation, 1);
		atomic_fetch_add(&view->journal_generation, 1);
	}
	pthread_rwlock_unlock(&view->tree_lock);
	if (r == 0)
		stfs_known_tell(view, &known);
	return r;
}
