/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of __metadata__ as a commit would write them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "attr_text.h"
#include "changes_private.h"
#include "table.h"
#include "utf8.h"

#define VALUE_MAX ((size_t)100000000) /* bytes of a value: no header holds more */

static bool ends_with(struct stfs_slice key, const char *end)
{
	size_t len = strlen(end);

	return key.len > len && memcmp(key.p + key.len - len, end, len) == 0;
}

/*
 * Names that sed, perl, Python and vim give to files they rename or remove: as a key they are what a crash left behind. And those
 * that patch, sed and perl give to what they keep beside a file.
 */
bool stfs_key_is_litter(struct stfs_slice key)
{
	return (key.len == 9 && stfs_slice_starts(key, "sed")) || (key.len == 8 && stfs_slice_starts(key, "XX")) ||
	       (key.len == 11 && stfs_slice_starts(key, "tmp")) || stfs_slice_is(key, "4913") ||
	       ends_with(key, ".orig") || ends_with(key, ".rej") || ends_with(key, ".bak");
}

/* Key and value of a file of __metadata__. */
static int read_key(struct stfs_collecting *collecting, uint32_t node, struct stfs_staged_key *key)
{
	struct stfs_view *view = collecting->view;
	_cleanup_buf_ struct stfs_buf text = { 0 }, name = { 0 };
	struct stfs_content *content = stfs_view_content(view, node);
	int r = stfs_key_decode(&name, stfs_tree_name(&view->tree, node));

	if (r == 0)
		r = stfs_content_read(content, VALUE_MAX, &text);
	if (r == 0)
		r = stfs_arena_copy(&collecting->changes->strings, stfs_buf_slice(&name), &key->key);
	if (r == 0)
		r = stfs_arena_copy(&collecting->changes->strings, stfs_value_of_text(stfs_buf_slice(&text)),
				    &key->value);
	if (r < 0)
		return r;
	if (stfs_utf8_invalid(key->value) < key->value.len)
		key->problem = "the value is not UTF-8";
	if (stfs_content_damage(content))
		key->problem = stfs_content_damage(content);
	return 0;
}

int stfs_collect_key(struct stfs_collecting *collecting, uint32_t node)
{
	struct stfs_view *view = collecting->view;
	struct stfs_changes *changes = collecting->changes;
	struct stfs_staged_key key = { .problem = NULL };
	int r = stfs_array_grow((void **)&changes->keys, changes->n_keys, &collecting->keys_cap, STFS_NODES_MAX,
				sizeof(*changes->keys));

	if (r < 0)
		return r;
	if (view->tree.nodes[node].kind == STFS_NODE_KEY) {
		const struct stfs_metadata_entry *entry = &view->model->metadata[view->tree.nodes[node].entry];

		key = (struct stfs_staged_key){ entry->key, entry->value, .before = entry->value, .in_model = true };
	} else {
		r = read_key(collecting, node, &key);
	}
	if (r < 0)
		return r;
	changes->keys[changes->n_keys++] = key;
	return 0;
}

/* A key that has no file, since its name would be too long, stays as it is. */
static int keep_key(struct stfs_collecting *collecting, const struct stfs_metadata_entry *entry)
{
	struct stfs_changes *changes = collecting->changes;
	int r = stfs_array_grow((void **)&changes->keys, changes->n_keys, &collecting->keys_cap, STFS_NODES_MAX,
				sizeof(*changes->keys));

	if (r == 0)
		changes->keys[changes->n_keys++] = (struct stfs_staged_key){
			entry->key,
			entry->value,
			.before = entry->value,
			.in_model = true,
		};
	return r;
}

int stfs_collect_deleted_keys(struct stfs_collecting *collecting)
{
	struct stfs_changes *changes = collecting->changes;
	const struct stfs_model *model = collecting->view->model;
	struct stfs_table_items items = { changes->keys, sizeof(*changes->keys) };
	_cleanup_(stfs_table_fini) struct stfs_table table = { 0 };
	int r = 0;

	changes->deleted_keys = calloc(model->n_metadata + 1u, sizeof(*changes->deleted_keys));
	if (!changes->deleted_keys)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < changes->n_keys; i++) {
		r = stfs_table_insert(&table, items, i);
		if (r == -EEXIST) {
			changes->keys[i].problem = "the key is there twice";
			r = 0;
		}
	}
	for (uint32_t i = 0; r == 0 && i < model->n_metadata; i++) {
		uint32_t at = stfs_table_find(&table, items, model->metadata[i].key);

		if (at != STFS_TABLE_NONE) {
			changes->keys[at].in_model = true;
			changes->keys[at].before = model->metadata[i].value;
		} else if (stfs_view_key_is_shown(model->metadata[i].key)) {
			changes->deleted_keys[changes->n_deleted_keys++] = i;
		} else {
			r = keep_key(collecting, &model->metadata[i]);
			items.base = changes->keys;
		}
	}
	return r;
}
