/* SPDX-License-Identifier: Apache-2.0 */
/* The staging area as a whole, and what of it is on disk. */
#include <errno.h>

#include "changes_private.h"
#include "file_private.h"

/* The bytes of one file. Called with the tree locked, and a journal there. */
static int sync_content(struct stfs_view *view, struct stfs_content *content)
{
	int r = stfs_content_needs_word(content) ? stfs_edit_bind(view, content) : 0;

	return r < 0 ? r : stfs_content_sync(content, view->stage);
}

int stfs_file_sync(struct stfs_file *file)
{
	struct stfs_view *view = file->view;
	struct stfs_content *content, *heir;
	uint64_t skip;
	int r = stfs_file_follow(file);

	if (r < 0)
		return r;
	content = atomic_load(&file->content);
	if (!view->stage || !content)
		return 0;
	/* So that a commit does not take the journal away meanwhile. */
	_cleanup_view_lock_ struct stfs_view *locked = stfs_view_read_lock(view);

	/* A commit has begun the next journal, which would not learn of this. */
	if (atomic_load(&view->frozen) && !atomic_load(&view->stopped))
		return -EBUSY;
	if (!stfs_stage_journal(view->stage))
		return 0;
	r = sync_content(view, content);
	/* What was written through it may be another file's by now. */
	heir = stfs_file_heir(view, content, &skip);
	if (r == 0 && heir)
		r = sync_content(view, heir);
	if (r == 0 && stfs_content_stage_number(content))
		r = stfs_stage_sync_dir(view->stage);
	return r < 0 ? r : stfs_stage_sync(view->stage);
}

/* The bytes of all files; -errno of one that could not be synced. */
static int sync_contents(struct stfs_view *view)
{
	int error = 0;

	for (uint32_t i = 0; i < view->n_contents; i++)
		stfs_content_start_sync(view->contents[i].content);
	for (uint32_t i = 0; i < view->n_contents; i++) {
		int r = sync_content(view, view->contents[i].content);

		if (r < 0)
			error = r;
	}
	return error;
}

int stfs_view_sync(struct stfs_view *view)
{
	int error, r;

	if (!view->stage)
		return 0;
	_cleanup_view_lock_ struct stfs_view *locked = stfs_view_read_lock(view);

	if (!stfs_stage_journal(view->stage))
		return 0;
	error = sync_contents(view);
	r = stfs_stage_sync_dir(view->stage);
	if (r == 0)
		r = stfs_journal_seal(stfs_stage_journal(view->stage), STFS_RECORD_MARK);
	return error < 0 ? error : r;
}

int stfs_view_sync_names(struct stfs_view *view)
{
	int r;

	if (!view->stage)
		return 0;
	_cleanup_view_lock_ struct stfs_view *locked = stfs_view_read_lock(view);

	if (!stfs_stage_journal(view->stage))
		return 0;
	r = stfs_stage_sync_dir(view->stage);
	return r < 0 ? r : stfs_journal_sync(stfs_stage_journal(view->stage));
}

/* Whether there is a directory that only an edit can have made. */
static bool has_empty_dir(const struct stfs_view *view)
{
	const struct stfs_tree *tree = &view->tree;

	for (uint32_t node = stfs_tree_next(tree, STFS_NODE_ROOT, STFS_NODE_ROOT); node != STFS_NODE_NONE;
	     node = stfs_tree_next(tree, STFS_NODE_ROOT, node)) {
		if (tree->nodes[node].kind == STFS_NODE_MODULE && node != STFS_NODE_METADATA &&
		    stfs_change_is_empty(view, node))
			return true;
	}
	return false;
}

/* A text that was written again in other words means the same, and yet reads back as it was written. */
static bool has_edited_text(const struct stfs_view *view)
{
	for (uint32_t i = 0; i < view->n_contents; i++) {
		if (stfs_content_edited(view->contents[i].content))
			return true;
	}
	return false;
}

bool stfs_view_has_staged(struct stfs_view *view)
{
	_cleanup_(stfs_changes_freep) struct stfs_changes *changes = NULL;
	_cleanup_view_lock_ struct stfs_view *locked = stfs_view_read_lock(view);

	if (!view->stage || !stfs_stage_exists(view->stage))
		return false;
	if (has_edited_text(view) || stfs_changes_collect_locked(view, &changes) < 0)
		return true;
	return changes->n_changed || changes->n_problems || changes->n_scratch || has_empty_dir(view);
}

void stfs_view_tidy(struct stfs_view *view)
{
	int r = 0;

	/* What is frozen for good is kept for whoever puts it in order. */
	if (!view->stage || atomic_load(&view->stopped) || stfs_view_has_staged(view))
		return;
	pthread_rwlock_wrlock(&view->tree_lock);
	if (stfs_stage_exists(view->stage))
		r = stfs_stage_clear(view->stage);
	pthread_rwlock_unlock(&view->tree_lock);
	if (r < 0)
		stfs_log(view->log, STFS_LOG_WARNING, "the empty staging area %s cannot be removed: %s",
			 stfs_stage_path(view->stage), strerror(-r));
}

int stfs_view_space(struct stfs_view *view, struct statvfs *ret)
{
	if (!view->stage)
		return -EROFS;
	_cleanup_view_lock_ struct stfs_view *locked = stfs_view_read_lock(view);

	return stfs_stage_space(view->stage, ret);
}
