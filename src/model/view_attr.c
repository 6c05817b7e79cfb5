/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of attributes and sizes. */
#include "edit_private.h"

#include <errno.h>

static int set_dir_attr(struct stfs_view *view, const struct stfs_place *place, const struct stfs_attr_change *change)
{
	struct stfs_file_attr attr;
	int r;

	if (change->set_size)
		return -EISDIR;
	stfs_change_get_dir_attr(view, place->node, &attr);
	stfs_edit_apply_change(&attr, change);
	/* Room first: what is written down must happen. */
	r = stfs_change_reserve_dir_attr(view, place->node);
	if (r == 0)
		r = stfs_edit_journal_dir(view, stfs_stage_journal(view->stage), place->node, &attr);
	return r < 0 ? r : stfs_change_set_dir_attr(view, place->node, &attr, STFS_DIR_SET);
}

void stfs_edit_apply_change(struct stfs_file_attr *attr, const struct stfs_attr_change *change)
{
	if (change->set_perm)
		attr->perm = change->perm & 07777;
	if (change->set_uid)
		attr->uid = change->uid;
	if (change->set_gid)
		attr->gid = change->gid;
	if (change->set_mtime)
		attr->mtime = change->mtime;
}

static int set_attr(struct stfs_view *view, uint64_t ino, const struct stfs_attr_change *change,
		    struct stfs_content **ret_content, struct stfs_attr *ret_attr)
{
	struct stfs_place place;
	int r = stfs_view_resolve(view, ino, &place);

	if (r < 0)
		return r;
	if (place.slot == STFS_SLOT_CONTROL_DIR || place.slot == STFS_SLOT_ALIAS)
		return -EACCES;
	/* Tools truncate and touch the control files on their way; the words that follow are what counts. */
	if (place.slot == STFS_SLOT_CONTROL_FILE)
		return stfs_controls[place.node].kind == STFS_CONTROL_TEXT ?
			       -EACCES :
			       stfs_view_fill_attr(view, &place, ret_attr);
	if (place.slot == STFS_SLOT_DIR) {
		r = set_dir_attr(view, &place, change);
		return r < 0 ? r : stfs_view_fill_attr(view, &place, ret_attr);
	}
	/* Times and modes of the NumPy file we show are those of the data. */
	if (place.slot == STFS_SLOT_NPY && !change->set_size &&
	    stfs_view_entry(view, place.node, stfs_slice_of("data"), &place))
		ino = place.ino;
	r = stfs_edit_file_node(view, ino, &place.node);
	if (r == 0)
		r = stfs_edit_bind(view, stfs_view_content(view, place.node));
	if (r == 0)
		*ret_content = stfs_content_ref(stfs_view_content(view, place.node));
	return r;
}

int stfs_view_setattr(struct stfs_view *view, uint64_t ino, const struct stfs_attr_change *change,
		      struct stfs_attr *ret_attr)
{
	_cleanup_(stfs_content_unrefp) struct stfs_content *content = NULL;
	struct stfs_file_attr attr;
	int r = stfs_edit_begin(view);

	if (r < 0)
		return r;
	r = set_attr(view, ino, change, &content, ret_attr);
	if (r == 0 && content && change->set_size)
		r = stfs_content_truncate(content, view->stage, change->size);
	if (r == 0 && content && (change->set_perm || change->set_uid || change->set_gid || change->set_mtime)) {
		stfs_content_attr(content, &attr);
		stfs_edit_apply_change(&attr, change);
		r = stfs_content_set_attr(content, view->stage, &attr);
	}
	stfs_edit_end(view);
	return r < 0 || !content ? r : stfs_view_getattr(view, ino, ret_attr);
}
