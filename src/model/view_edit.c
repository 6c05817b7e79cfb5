/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of names: made in memory, then written to the journal; what cannot be written down is taken back. */
#include "view_edit.h"

#include <errno.h>
#include <stdlib.h>

#include "edit_private.h"
#include "view_replay.h"
#include "view_twin.h"

bool stfs_view_is_writable(const struct stfs_view *view)
{
	return view->stage != NULL;
}

void stfs_view_set_watcher(struct stfs_view *view, const struct stfs_view_watcher *watcher)
{
	view->watcher = *watcher;
}

int stfs_view_attach_stage(struct stfs_view *view, struct stfs_stage *stage, struct stfs_diag *diag)
{
	int r = 0;

	view->stage = stage;
	if (stfs_stage_exists(stage))
		r = stfs_replay_journal(view, diag);
	if (r < 0) {
		/* The tree is half changed: the view is of no use but to be freed. */
		view->stage = NULL;
		stfs_stage_free(stage);
	}
	return r;
}

/* Once for each reason: tools try again and again. */
static void report_no_stage(struct stfs_view *view, int error)
{
	if (atomic_exchange(&view->stage_error, error) != error)
		stfs_log(view->log, STFS_LOG_ERROR, "nothing can be edited: the staging area %s cannot be made: %s",
			 stfs_stage_path(view->stage), strerror(-error));
}

int stfs_edit_make_stage(struct stfs_view *view)
{
	const struct stfs_journal *journal = stfs_stage_journal(view->stage);
	int r;

	/* One that could neither be begun nor removed is begun now. */
	if (journal && !stfs_journal_is_empty(journal))
		return 0;
	r = stfs_stage_create(view->stage);
	if (r == 0) {
		r = stfs_replay_start_journal(view, stfs_stage_journal(view->stage));
		/* A commit took away the journal that knew them, and the tree shows them still. */
		if (r == 0)
			r = stfs_edit_dump_dirs(view, stfs_stage_journal(view->stage), STFS_DIR_SET);
		if (r < 0)
			stfs_stage_clear(view->stage);
	}
	if (r < 0)
		report_no_stage(view, r);
	else
		atomic_fetch_add(&view->journal_generation, 1);
	return r;
}

int stfs_edit_begin(struct stfs_view *view)
{
	int r;

	if (!view->stage)
		return -EROFS;
	pthread_rwlock_wrlock(&view->tree_lock);
	/* Looked at under the lock: a commit sets it under the lock too. */
	r = atomic_load(&view->frozen) ? stfs_view_frozen_error(view) : stfs_edit_make_stage(view);
	if (r < 0)
		pthread_rwlock_unlock(&view->tree_lock);
	return r;
}

void stfs_edit_end(struct stfs_view *view)
{
	atomic_fetch_add(&view->generation, 1);
	pthread_rwlock_unlock(&view->tree_lock);
}

int stfs_edit_find_dir(const struct stfs_view *view, uint64_t ino, uint32_t *ret)
{
	struct stfs_place place;
	int r = stfs_view_resolve(view, ino, &place);

	if (r < 0)
		return r;
	if (place.slot == STFS_SLOT_CONTROL_DIR)
		return -EACCES;
	if (place.slot != STFS_SLOT_DIR)
		return -ENOTDIR;
	*ret = place.node;
	return 0;
}

int stfs_edit_find_entry(struct stfs_view *view, uint32_t dir, struct stfs_slice name, uint32_t *ret)
{
	struct stfs_place place;
	int r;

	if (!stfs_view_entry(view, dir, name, &place))
		return -ENOENT;
	if (place.slot == STFS_SLOT_CONTROL_DIR || place.slot == STFS_SLOT_NPY)
		return -EACCES;
	r = stfs_change_make_explicit(view, dir);
	if (r == 0 && place.slot == STFS_SLOT_KEY)
		r = stfs_change_make_file(view, place.node);
	if (r < 0)
		return r;
	*ret = stfs_tree_child(&view->tree, dir, name);
	return *ret == STFS_NODE_NONE ? -ENOENT : 0;
}

/* One piece between dots: empty, or what a piece of a canonical path may be; the `first` of one may be other ones. */
static int check_piece(struct stfs_slice piece, enum stfs_layout layout, bool first)
{
	_cleanup_buf_ struct stfs_buf path = { 0 }, name = { 0 };
	int r;

	/* A cut goes on in the next component, which may not be there yet. */
	if (stfs_slice_ends(piece, "%+"))
		piece.len -= 2;
	if (piece.len == 0)
		return 0;
	r = first ? 0 : stfs_buf_append_str(&path, "x/");
	if (r == 0)
		r = stfs_buf_append(&path, piece.p, piece.len);
	return r < 0 ? r : stfs_name_decode(&name, stfs_buf_slice(&path), layout);
}

/* What a directory may be called: any run of pieces, since `mkdir a.b` means what `mkdir -p a/b` means. */
static int check_dir_name(const struct stfs_view *view, uint32_t parent, struct stfs_slice name)
{
	size_t start = 0;

	if (parent == STFS_NODE_METADATA)
		return -EPERM;
	/* It is there already, which says more. */
	if (parent == STFS_NODE_ROOT && stfs_slice_is(name, "__metadata__"))
		return 0;
	/* File managers delete for good when there is no trash. */
	if (parent == STFS_NODE_ROOT && stfs_slice_starts(name, ".Trash"))
		return -EPERM;
	if (view->options.layout == STFS_FLAT)
		return check_piece(name, STFS_FLAT, true);
	for (size_t i = 0; i <= name.len; i++) {
		int r;

		if (i < name.len && name.p[i] != '.')
			continue;
		r = check_piece((struct stfs_slice){ name.p + start, i - start }, STFS_NESTED,
				parent == STFS_NODE_ROOT && start == 0);
		if (r < 0)
			return r;
		start = i + 1;
	}
	return 0;
}

/* What a file may be called: anything, but a key of __metadata__ must be the name of one. */
static int check_file_name(uint32_t parent, struct stfs_slice name)
{
	_cleanup_buf_ struct stfs_buf key = { 0 };

	if (parent == STFS_NODE_ROOT && (stfs_slice_starts(name, ".Trash") || stfs_slice_is(name, "__metadata__")))
		return -EPERM;
	if (stfs_role_of(parent, name) != STFS_ROLE_KEY)
		return 0;
	return stfs_key_decode(&key, name);
}

int stfs_edit_check_name(const struct stfs_view *view, uint32_t parent, struct stfs_slice name, bool is_dir)
{
	if (name.len > STFS_COMPONENT_MAX)
		return -ENAMETOOLONG;
	if (name.len == 0 || stfs_slice_is(name, ".") || stfs_slice_is(name, ".."))
		return -EINVAL;
	return is_dir ? check_dir_name(view, parent, name) : check_file_name(parent, name);
}

/* True when a name with dots spells a directory that stands elsewhere: one tensor must not have two places. */
static bool stands_elsewhere(const struct stfs_view *view, uint32_t parent, struct stfs_slice name)
{
	uint32_t node = parent;

	if (view->options.layout == STFS_FLAT || !memchr(name.p, '.', name.len))
		return false;
	while (node != STFS_NODE_NONE && name.len) {
		struct stfs_slice piece = stfs_slice_cut(&name, '.');

		node = stfs_tree_child(&view->tree, node, piece.len ? piece : stfs_slice_of("%_"));
	}
	return node != STFS_NODE_NONE;
}

static struct stfs_file_attr new_attr(mode_t perm, struct stfs_owner owner)
{
	struct stfs_file_attr attr = { .perm = perm & 0777, .uid = owner.uid, .gid = owner.gid };

	clock_gettime(CLOCK_REALTIME, &attr.mtime);
	return attr;
}

int stfs_edit_add_file(struct stfs_view *view, uint32_t dir, struct stfs_slice name, uint64_t ino,
		       const struct stfs_file_attr *attr, uint32_t *ret_node)
{
	_cleanup_(stfs_content_unrefp) struct stfs_content *content = NULL;
	uint32_t node;
	/* The files of a tensor are its own from now on: what is made may be one of them, or become one. */
	int r = stfs_change_make_explicit(view, dir);

	if (r == 0)
		r = stfs_content_new_text(ino, (struct stfs_slice){ 0 }, attr, &content);
	if (r == 0)
		r = stfs_change_add_file(view, dir, name, content, &node);
	if (r < 0)
		return r;
	content = NULL; /* the tree's from here */
	r = stfs_edit_journal_new(view, stfs_stage_journal(view->stage), STFS_RECORD_CREATE, ino, dir, name, attr);
	if (r < 0) {
		stfs_change_remove(view, node);
		return r;
	}
	stfs_content_set_bound(stfs_view_content(view, node), atomic_load(&view->journal_generation));
	stfs_change_touch_dir(view, dir);
	*ret_node = node;
	return 0;
}

static int make_dir(struct stfs_view *view, uint64_t parent, struct stfs_slice name, const struct stfs_file_attr *attr,
		    struct stfs_attr *ret_attr)
{
	struct stfs_place place;
	uint32_t dir, node;
	int r = stfs_edit_find_dir(view, parent, &dir);

	if (r < 0)
		return r;
	if (stfs_view_entry(view, dir, name, &place))
		return -EEXIST;
	r = stfs_edit_check_name(view, dir, name, true);
	if (r < 0)
		return r;
	if (stands_elsewhere(view, dir, name) || stfs_view_has_twin(view, dir, name, STFS_NODE_NONE))
		return -EEXIST;
	r = stfs_change_add_dir(view, dir, name, stfs_change_new_id(view), attr, &node);
	if (r < 0)
		return r;
	place = stfs_view_place(view, node);
	r = stfs_edit_journal_new(view, stfs_stage_journal(view->stage), STFS_RECORD_MKDIR, place.ino, dir, name, attr);
	if (r < 0) {
		stfs_change_remove(view, node);
		return r;
	}
	stfs_change_touch_dir(view, dir);
	return stfs_view_fill_attr(view, &place, ret_attr);
}

int stfs_view_mkdir(struct stfs_view *view, uint64_t parent, struct stfs_slice name, mode_t perm,
		    struct stfs_owner owner, struct stfs_attr *ret_attr)
{
	struct stfs_file_attr attr = new_attr(perm, owner);
	int r = stfs_edit_begin(view);

	if (r < 0)
		return r;
	r = make_dir(view, parent, name, &attr, ret_attr);
	stfs_edit_end(view);
	return r;
}

static int make_file(struct stfs_view *view, uint64_t parent, struct stfs_slice name, const struct stfs_file_attr *attr,
		     struct stfs_attr *ret_attr, struct stfs_content **ret_content, enum stfs_role *ret_role)
{
	struct stfs_place place;
	uint32_t dir, node;
	int r = stfs_edit_find_dir(view, parent, &dir);

	if (r < 0)
		return r;
	if (stfs_view_entry(view, dir, name, &place))
		return -EEXIST;
	r = stfs_edit_check_name(view, dir, name, false);
	if (r < 0)
		return r;
	r = stfs_edit_add_file(view, dir, name, stfs_change_new_id(view) << STFS_SLOT_BITS | STFS_SLOT_KEY, attr,
			       &node);
	if (r < 0)
		return r;
	*ret_content = stfs_content_ref(stfs_view_content(view, node));
	*ret_role = stfs_role_of(dir, name);
	place = stfs_view_place(view, node);
	return stfs_view_fill_attr(view, &place, ret_attr);
}

int stfs_view_create(struct stfs_view *view, uint64_t parent, struct stfs_slice name, mode_t perm,
		     struct stfs_owner owner, struct stfs_attr *ret_attr, struct stfs_file **ret_file)
{
	_cleanup_(stfs_content_unrefp) struct stfs_content *content = NULL;
	struct stfs_file_attr attr = new_attr(perm, owner);
	enum stfs_role role = STFS_ROLE_SCRATCH;
	int r = stfs_edit_begin(view);

	if (r < 0)
		return r;
	r = make_file(view, parent, name, &attr, ret_attr, &content, &role);
	/* Before others can write to it: its bytes might be in the staging area by then, and that gone with a commit. */
	if (r == 0)
		r = stfs_file_new(view, content, role, STFS_NODE_NONE, ret_file);
	stfs_edit_end(view);
	return r;
}

/*
 * Takes a data.npy that we make up out of sight, as tools do that put another in its place (mv, install, tar). It is not written
 * down: nothing of the tensor changes. Returns whether it is one.
 */
static bool hide_npy(struct stfs_view *view, uint32_t dir, struct stfs_slice name)
{
	struct stfs_place place;

	if (!stfs_view_entry(view, dir, name, &place) || place.slot != STFS_SLOT_NPY)
		return false;
	view->tree.nodes[dir].npy_removed = true;
	stfs_change_touch_dir(view, dir);
	return true;
}

static int remove_entry(struct stfs_view *view, uint64_t parent, struct stfs_slice name, bool is_dir)
{
	uint32_t dir, node;
	int r = stfs_edit_find_dir(view, parent, &dir);

	if (r == 0 && !is_dir && hide_npy(view, dir, name))
		return 0;
	if (r == 0)
		r = stfs_edit_find_entry(view, dir, name, &node);
	if (r < 0)
		return r;
	if ((view->tree.nodes[node].kind == STFS_NODE_MODULE) != is_dir)
		return is_dir ? -ENOTDIR : -EISDIR;
	if (is_dir && !stfs_change_is_empty(view, node))
		return -ENOTEMPTY;
	if (node == STFS_NODE_METADATA)
		return -EBUSY;
	r = stfs_edit_journal_remove(view, dir, name);
	if (r < 0)
		return r;
	stfs_change_remove(view, node);
	stfs_change_touch_dir(view, dir);
	return 0;
}

int stfs_view_unlink(struct stfs_view *view, uint64_t parent, struct stfs_slice name)
{
	int r = stfs_edit_begin(view);

	if (r < 0)
		return r;
	r = remove_entry(view, parent, name, false);
	stfs_edit_end(view);
	return r;
}

int stfs_view_rmdir(struct stfs_view *view, uint64_t parent, struct stfs_slice name)
{
	int r = stfs_edit_begin(view);

	if (r < 0)
		return r;
	r = remove_entry(view, parent, name, true);
	stfs_edit_end(view);
	return r;
}

/* Whether `node` may take the place of what stands at `name` in `dir`; *ret_exists tells whether anything does. */
static int check_target(struct stfs_view *view, uint32_t node, uint32_t dir, struct stfs_slice name, bool *ret_exists)
{
	bool is_dir = view->tree.nodes[node].kind == STFS_NODE_MODULE;
	uint32_t target;
	int r = stfs_edit_find_entry(view, dir, name, &target);

	*ret_exists = r == 0;
	if (r == -ENOENT)
		return 0;
	/* A NumPy file that is moved over the one we show of a tensor is what sets it. */
	if (r == -EACCES && stfs_role_of(dir, name) == STFS_ROLE_NPY && !is_dir)
		return 0;
	if (r < 0 || target == node)
		return r;
	if (target == STFS_NODE_METADATA)
		return is_dir ? -EBUSY : -EISDIR;
	if (view->tree.nodes[target].kind != STFS_NODE_MODULE)
		return is_dir ? -ENOTDIR : 0;
	if (!is_dir)
		return -EISDIR;
	return stfs_change_is_empty(view, target) ? 0 : -ENOTEMPTY;
}

static int move_entry(struct stfs_view *view, uint64_t parent, struct stfs_slice name, uint64_t new_parent,
		      struct stfs_slice new_name, bool no_replace, uint32_t *ret_dir)
{
	uint32_t dir, new_dir, node;
	bool is_dir, exists = false;
	int r = stfs_edit_find_dir(view, parent, &dir);

	if (r == 0)
		r = stfs_edit_find_dir(view, new_parent, &new_dir);
	if (r == 0)
		r = stfs_change_make_explicit(view, new_dir);
	if (r == 0)
		r = stfs_edit_find_entry(view, dir, name, &node);
	if (r < 0)
		return r;
	is_dir = view->tree.nodes[node].kind == STFS_NODE_MODULE;
	if (node == STFS_NODE_METADATA)
		return -EBUSY;
	if (is_dir && stfs_tree_is_below(&view->tree, new_dir, node))
		return -EINVAL;
	r = stfs_edit_check_name(view, new_dir, new_name, is_dir);
	if (r == 0)
		r = check_target(view, node, new_dir, new_name, &exists);
	if (r < 0)
		return r;
	if (exists && no_replace)
		return -EEXIST;
	if (!exists && is_dir &&
	    (stands_elsewhere(view, new_dir, new_name) || stfs_view_has_twin(view, new_dir, new_name, node)))
		return -EEXIST;
	/* Room first: what is written down must happen. */
	r = stfs_change_reserve_move(view, new_name);
	if (r == 0)
		r = stfs_edit_journal_rename(view, dir, name, new_dir, new_name);
	if (r == 0)
		r = stfs_change_move(view, node, new_dir, new_name);
	if (r < 0)
		return r;
	stfs_change_touch_dir(view, dir);
	stfs_change_touch_dir(view, new_dir);
	*ret_dir = new_dir;
	return 0;
}

int stfs_view_rename(struct stfs_view *view, uint64_t parent, struct stfs_slice name, uint64_t new_parent,
		     struct stfs_slice new_name, bool no_replace)
{
	struct stfs_npy_effect effect = { 0 };
	uint32_t dir;
	int r = stfs_edit_begin(view);

	if (r < 0)
		return r;
	r = move_entry(view, parent, name, new_parent, new_name, no_replace, &dir);
	if (r == 0 && stfs_role_of(dir, new_name) == STFS_ROLE_NPY)
		stfs_edit_take_npy(view, dir, &effect);
	stfs_edit_end(view);
	stfs_edit_tell_npy(view, &effect);
	return r;
}
