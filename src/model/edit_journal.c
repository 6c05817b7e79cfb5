/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of names, and of directories, as records of the journal. */
#include "edit_private.h"

#include <errno.h>

/* Appends the path of an entry, there or not, as a counted string. */
static int append_path(struct stfs_view *view, struct stfs_buf *payload, uint32_t dir, struct stfs_slice name)
{
	_cleanup_buf_ struct stfs_buf path = { 0 };
	int r = stfs_tree_path(&view->tree, STFS_NODE_ROOT, dir, &path);

	if (r == 0 && path.len)
		r = stfs_buf_append_char(&path, '/');
	if (r == 0)
		r = stfs_buf_append(&path, name.p, name.len);
	return r < 0 ? r : stfs_payload_bytes(payload, stfs_buf_slice(&path));
}

int stfs_edit_journal_new(struct stfs_view *view, struct stfs_journal *journal, enum stfs_record_type type,
			  uint64_t ino, uint32_t dir, struct stfs_slice name, const struct stfs_file_attr *attr)
{
	_cleanup_buf_ struct stfs_buf payload = { 0 };
	int r = stfs_payload_u64(&payload, ino);

	if (r == 0)
		r = append_path(view, &payload, dir, name);
	if (r == 0)
		r = stfs_payload_u64(&payload, attr->perm);
	if (r == 0)
		r = stfs_payload_u64(&payload, attr->uid);
	if (r == 0)
		r = stfs_payload_u64(&payload, attr->gid);
	return r < 0 ? r : stfs_journal_append(journal, type, stfs_buf_slice(&payload));
}

int stfs_edit_journal_rename(struct stfs_view *view, uint32_t dir, struct stfs_slice name, uint32_t new_dir,
			     struct stfs_slice new_name)
{
	_cleanup_buf_ struct stfs_buf payload = { 0 };
	int r = append_path(view, &payload, dir, name);

	if (r == 0)
		r = append_path(view, &payload, new_dir, new_name);
	if (r < 0)
		return r;
	return stfs_journal_append(stfs_stage_journal(view->stage), STFS_RECORD_RENAME, stfs_buf_slice(&payload));
}

int stfs_edit_journal_dir_at(struct stfs_journal *journal, struct stfs_slice path, const struct stfs_file_attr *attr)
{
	const uint64_t numbers[] = { attr->perm, attr->uid, attr->gid, (uint64_t)attr->mtime.tv_sec,
				     (uint64_t)attr->mtime.tv_nsec };
	_cleanup_buf_ struct stfs_buf payload = { 0 };
	int r = stfs_payload_bytes(&payload, path);

	for (size_t i = 0; r == 0 && i < STFS_ARRAY_SIZE(numbers); i++)
		r = stfs_payload_u64(&payload, numbers[i]);
	return r < 0 ? r : stfs_journal_append(journal, STFS_RECORD_DIR_ATTR, stfs_buf_slice(&payload));
}

int stfs_edit_journal_dir(struct stfs_view *view, struct stfs_journal *journal, uint32_t dir,
			  const struct stfs_file_attr *attr)
{
	_cleanup_buf_ struct stfs_buf path = { 0 };
	int r = stfs_tree_path(&view->tree, STFS_NODE_ROOT, dir, &path);

	return r < 0 ? r : stfs_edit_journal_dir_at(journal, stfs_buf_slice(&path), attr);
}

int stfs_edit_dump_dirs(struct stfs_view *view, struct stfs_journal *journal, enum stfs_dir_attr_origin origin)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < view->n_dir_attrs; i++) {
		const struct stfs_dir_attr *set = &view->dir_attrs[i];

		if (set->origin >= origin)
			r = stfs_edit_journal_dir(view, journal, set->node, &set->attr);
	}
	return r;
}

int stfs_edit_say_removed(struct stfs_view *view, uint32_t dir, struct stfs_slice name, struct stfs_buf *payload)
{
	return append_path(view, payload, dir, name);
}

int stfs_edit_journal_remove(struct stfs_view *view, uint32_t dir, struct stfs_slice name)
{
	_cleanup_buf_ struct stfs_buf payload = { 0 };
	int r = stfs_edit_say_removed(view, dir, name, &payload);

	if (r < 0)
		return r;
	return stfs_journal_append(stfs_stage_journal(view->stage), STFS_RECORD_REMOVE, stfs_buf_slice(&payload));
}

int stfs_edit_bind(struct stfs_view *view, struct stfs_content *content)
{
	unsigned long long generation = atomic_load(&view->journal_generation);
	_cleanup_buf_ struct stfs_buf payload = { 0 };
	uint32_t node;
	int r;

	if (stfs_content_is_bound(content, generation))
		return 0;
	node = stfs_tree_find(&view->tree, stfs_change_id_of_ino(stfs_content_ino(content)));
	/* A file that was removed while it is open: nobody will ask for its bytes again. */
	if (node == STFS_NODE_NONE || view->tree.nodes[node].kind != STFS_NODE_OWN ||
	    stfs_view_content(view, node) != content)
		return 0;
	r = stfs_payload_u64(&payload, stfs_content_ino(content));
	if (r == 0)
		r = append_path(view, &payload, view->tree.nodes[node].parent, stfs_tree_name(&view->tree, node));
	if (r == 0)
		r = stfs_journal_append(stfs_stage_journal(view->stage), STFS_RECORD_BIND, stfs_buf_slice(&payload));
	if (r == 0)
		stfs_content_set_bound(content, generation);
	return r;
}
