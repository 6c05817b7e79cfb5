/* SPDX-License-Identifier: Apache-2.0 */
/* The tree as it was left: the records of the journal applied to a fresh view. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "edit_private.h"
#include "view_bindings.h"
#include "view_replay.h"

/* A replay under way. */
struct replaying {
	struct stfs_view *view;
	struct stfs_bindings bindings;
	struct stfs_diag *diag;
	bool seen_model;
	bool same_boot; /* of the last record */
};

static int apply_model(struct replaying *replaying, struct stfs_slice payload)
{
	const struct stfs_view *view = replaying->view;
	_cleanup_buf_ struct stfs_buf present = { 0 };
	uint64_t layout;
	int r = stfs_replay_describe_model(view->model, &present);

	if (r < 0)
		return r;
	if (!stfs_payload_take_u64(&payload, &layout) || layout > STFS_FLAT)
		return -EBADMSG;
	if (!stfs_slice_equal(payload, stfs_buf_slice(&present)))
		return stfs_fail(replaying->diag, -ESTALE, "edits for another version of %s wait in %s",
				 view->model->name, stfs_stage_path(view->stage));
	if (layout != view->options.layout)
		return stfs_fail(replaying->diag, -EXDEV,
				 "edits made %s -o flat wait in %s: mount it so, or commit or discard them",
				 layout == STFS_FLAT ? "with" : "without", stfs_stage_path(view->stage));
	replaying->seen_model = true;
	return 0;
}

/* What could not be made must not come from a journal either. */
static int check_new_name(struct replaying *replaying, uint32_t dir, struct stfs_slice name, bool is_dir)
{
	int r = stfs_edit_check_name(replaying->view, dir, name, is_dir);

	return r < 0 && r != -ENOMEM ? -EBADMSG : r;
}

/* The directory that holds the entry of a path, and the entry's name; missing directories are made when asked for. */
static int find_parent(struct replaying *replaying, struct stfs_slice path, bool make, uint32_t *ret_dir,
		       struct stfs_slice *ret_name)
{
	struct stfs_file_attr attr = { .perm = 0755, .uid = geteuid(), .gid = getegid() };
	struct stfs_view *view = replaying->view;
	uint32_t dir = STFS_NODE_ROOT;

	for (;;) {
		const char *slash = memchr(path.p, '/', path.len);
		struct stfs_slice name = { path.p, slash ? (size_t)(slash - path.p) : path.len };
		uint32_t child;
		int r = 0;

		if (name.len == 0 || name.len > STFS_COMPONENT_MAX || memchr(name.p, '\0', name.len) ||
		    stfs_slice_is(name, ".") || stfs_slice_is(name, ".."))
			return -EBADMSG;
		if (!slash) {
			*ret_dir = dir;
			*ret_name = name;
			return 0;
		}
		child = stfs_tree_child(&view->tree, dir, name);
		if (child == STFS_NODE_NONE && make)
			r = check_new_name(replaying, dir, name, true);
		if (r == 0 && child == STFS_NODE_NONE && make)
			r = stfs_change_add_dir(view, dir, name, stfs_change_new_id(view), &attr, &child);
		if (r < 0)
			return r;
		if (child == STFS_NODE_NONE || view->tree.nodes[child].kind != STFS_NODE_MODULE)
			return -EBADMSG;
		dir = child;
		path = (struct stfs_slice){ slash + 1, path.len - name.len - 1 };
	}
}

/* The entry of a path, as a node of its own. */
static int find_entry(struct replaying *replaying, struct stfs_slice path, uint32_t *ret_node)
{
	struct stfs_slice name;
	uint32_t dir;
	int r = find_parent(replaying, path, false, &dir, &name);

	if (r == 0)
		r = stfs_edit_find_entry(replaying->view, dir, name, ret_node);
	return r == -ENOENT || r == -EACCES ? -EBADMSG : r;
}

/* What a record of something new says. */
struct new_entry {
	uint64_t number;
	struct stfs_slice name;
	struct stfs_file_attr attr;
	uint32_t dir;
};

static int take_new(struct replaying *replaying, const struct stfs_record *record, struct new_entry *ret)
{
	struct stfs_slice payload = record->payload, path;
	struct stfs_place place;
	uint64_t perm, uid, gid;
	int r;

	if (!stfs_payload_take_u64(&payload, &ret->number) || !stfs_payload_take_bytes(&payload, &path) ||
	    !stfs_payload_take_u64(&payload, &perm) || !stfs_payload_take_u64(&payload, &uid) ||
	    !stfs_payload_take_u64(&payload, &gid) || payload.len)
		return -EBADMSG;
	ret->attr = (struct stfs_file_attr){
		.perm = (mode_t)(perm & 0777),
		.uid = (uid_t)uid,
		.gid = (gid_t)gid,
		.mtime = stfs_record_mtime(record),
	};
	r = find_parent(replaying, path, record->type == STFS_RECORD_CREATE, &ret->dir, &ret->name);
	if (r == 0)
		r = check_new_name(replaying, ret->dir, ret->name, record->type == STFS_RECORD_MKDIR);
	if (r == 0 && record->type == STFS_RECORD_CREATE)
		r = stfs_change_make_explicit(replaying->view, ret->dir);
	if (r == 0 && stfs_view_entry(replaying->view, ret->dir, ret->name, &place) && place.slot != STFS_SLOT_NPY)
		r = -EBADMSG;
	return r;
}

/* Whether a file that is generated has that number: a commit left the one to scratch that came from there. */
static bool is_generated(const struct stfs_view *view, uint64_t id)
{
	uint64_t slot = id >> STFS_NODE_ID_BITS;
	uint32_t dir = stfs_tree_find(&view->tree, id & STFS_NODE_ID_MASK);

	return slot >= STFS_SLOT_DATA && slot <= STFS_SLOT_SHAPE && dir != STFS_NODE_NONE &&
	       view->tree.nodes[dir].kind == STFS_NODE_MODULE && !stfs_view_is_explicit(view, dir);
}

/* The number a node had, if it is free; else a new one. `slots` allows numbers that a tensor's file keeps. */
static uint64_t wanted_id(struct replaying *replaying, uint64_t ino, bool file)
{
	struct stfs_tree *tree = &replaying->view->tree;
	uint64_t slot = ino & ((1 << STFS_SLOT_BITS) - 1), id = stfs_change_id_of_ino(ino);
	bool fits = file ? slot == STFS_SLOT_KEY || (slot >= STFS_SLOT_DATA && slot <= STFS_SLOT_NPY) :
			   slot == STFS_SLOT_DIR;

	if (fits && ino >> STFS_SLOT_BITS >= STFS_NODE_ID_FIRST && stfs_tree_find(tree, id) == STFS_NODE_NONE &&
	    !is_generated(replaying->view, id))
		return id;
	return stfs_change_new_id(replaying->view);
}

static int apply_mkdir(struct replaying *replaying, const struct stfs_record *record)
{
	struct new_entry entry;
	uint32_t node;
	int r = take_new(replaying, record, &entry);

	if (r < 0)
		return r;
	return stfs_change_add_dir(replaying->view, entry.dir, entry.name, wanted_id(replaying, entry.number, false),
				   &entry.attr, &node);
}

static int apply_create(struct replaying *replaying, const struct stfs_record *record)
{
	_cleanup_(stfs_content_unrefp) struct stfs_content *content = NULL;
	struct new_entry entry;
	uint64_t id;
	uint32_t node;
	int r = take_new(replaying, record, &entry);

	if (r < 0)
		return r;
	id = wanted_id(replaying, entry.number, true);
	r = stfs_content_new_text(stfs_change_ino_of_id(id), (struct stfs_slice){ 0 }, &entry.attr, &content);
	if (r == 0)
		r = stfs_bindings_add(&replaying->bindings, entry.number, content);
	if (r == 0)
		r = stfs_change_add_file(replaying->view, entry.dir, entry.name, content, &node);
	if (r < 0)
		return r;
	content = NULL; /* the tree's from here */
	return 0;
}

static int apply_bind(struct replaying *replaying, struct stfs_slice payload)
{
	struct stfs_slice path;
	uint64_t number;
	uint32_t node;
	int r;

	if (!stfs_payload_take_u64(&payload, &number) || !stfs_payload_take_bytes(&payload, &path))
		return -EBADMSG;
	r = find_entry(replaying, path, &node);
	if (r == 0 && replaying->view->tree.nodes[node].kind != STFS_NODE_OWN)
		r = -EBADMSG;
	return r < 0 ? r : stfs_bindings_add(&replaying->bindings, number, stfs_view_content(replaying->view, node));
}

static int apply_remove(struct replaying *replaying, struct stfs_slice payload)
{
	struct stfs_view *view = replaying->view;
	struct stfs_slice path;
	uint32_t node;
	int r;

	if (!stfs_payload_take_bytes(&payload, &path))
		return -EBADMSG;
	r = find_entry(replaying, path, &node);
	if (r < 0)
		return r;
	if (node == STFS_NODE_METADATA ||
	    (view->tree.nodes[node].kind == STFS_NODE_MODULE && !stfs_change_is_empty(view, node)))
		return -EBADMSG;
	stfs_change_remove(view, node);
	return 0;
}

static int apply_rename(struct replaying *replaying, struct stfs_slice payload)
{
	struct stfs_view *view = replaying->view;
	struct stfs_slice path, new_path, name;
	uint32_t node, new_dir, target;
	int r;

	if (!stfs_payload_take_bytes(&payload, &path) || !stfs_payload_take_bytes(&payload, &new_path))
		return -EBADMSG;
	r = find_entry(replaying, path, &node);
	if (r == 0)
		r = find_parent(replaying, new_path, false, &new_dir, &name);
	if (r == 0)
		r = check_new_name(replaying, new_dir, name, view->tree.nodes[node].kind == STFS_NODE_MODULE);
	if (r == 0)
		r = stfs_change_make_explicit(view, new_dir);
	if (r < 0)
		return r;
	target = stfs_tree_child(&view->tree, new_dir, name);
	if (node == STFS_NODE_METADATA || stfs_tree_is_below(&view->tree, new_dir, node) ||
	    (target != STFS_NODE_NONE && target != node && !stfs_change_may_replace(view, node, target)))
		return -EBADMSG;
	return stfs_change_move(view, node, new_dir, name);
}

static int apply_discard(struct replaying *replaying, struct stfs_slice payload)
{
	struct stfs_slice path;
	int r;

	if (!stfs_payload_take_bytes(&payload, &path))
		return -EBADMSG;
	r = stfs_change_restore(replaying->view, path);
	/* The record may have been written before it was known whether that can be done. */
	return r == -ENOENT || r == -EEXIST ? 0 : r;
}

static int apply_dir_attr(struct replaying *replaying, struct stfs_slice payload)
{
	struct stfs_view *view = replaying->view;
	struct stfs_file_attr attr;
	struct stfs_slice path;
	uint64_t v[5];
	uint32_t node;

	if (!stfs_payload_take_bytes(&payload, &path))
		return -EBADMSG;
	for (size_t i = 0; i < STFS_ARRAY_SIZE(v); i++) {
		if (!stfs_payload_take_u64(&payload, &v[i]))
			return -EBADMSG;
	}
	if (payload.len || v[4] >= 1000000000 || stfs_change_find_path(view, path, &node) < 0)
		return -EBADMSG;
	/* A commit writes down directories of which some go with it: what is staged besides is worth having. */
	if (node == STFS_NODE_NONE)
		return 0;
	if (view->tree.nodes[node].kind != STFS_NODE_MODULE)
		return -EBADMSG;
	attr = (struct stfs_file_attr){
		.perm = (mode_t)(v[0] & 07777),
		.uid = (uid_t)v[1],
		.gid = (gid_t)v[2],
		.mtime = { (time_t)v[3], (long)v[4] },
	};
	return stfs_change_set_dir_attr(view, node, &attr, STFS_DIR_SET);
}

static int apply_run(struct replaying *replaying, struct stfs_content *content, const struct stfs_record *record,
		     struct stfs_slice payload)
{
	const struct stfs_model *model = replaying->view->model;
	struct stfs_run run;
	uint64_t file, end;

	if (!stfs_payload_take_u64(&payload, &file) || !stfs_payload_take_u64(&payload, &run.begin) ||
	    !stfs_payload_take_u64(&payload, &run.size) || file >= model->n_files ||
	    __builtin_add_overflow(run.begin, run.size, &end) || end > stfs_snapshot_identity(model->files[file])->size)
		return -EBADMSG;
	run.file = model->files[file];
	return stfs_content_replay_run(content, record, &run);
}

static int apply_content(struct replaying *replaying, const struct stfs_record *record)
{
	struct stfs_slice payload = record->payload;
	struct stfs_content *content;
	uint64_t number;
	int r;

	if (!stfs_payload_take_u64(&payload, &number))
		return -EBADMSG;
	content = stfs_bindings_find(&replaying->bindings, number);
	/* The last words about a file that was removed while it was open. */
	if (!content)
		return 0;
	if (record->type == STFS_RECORD_RUN)
		return apply_run(replaying, content, record, payload);
	r = stfs_content_replay(content, replaying->view->stage, record, payload);
	if (r == 0 && record->type == STFS_RECORD_STAGED)
		r = stfs_bindings_note_staged(&replaying->bindings, content);
	return r;
}

static int apply_record(struct replaying *replaying, const struct stfs_record *record)
{
	switch ((enum stfs_record_type)record->type) {
	case STFS_RECORD_MARK:
		return record->payload.len ? -EBADMSG : 0;
	case STFS_RECORD_MKDIR:
		return apply_mkdir(replaying, record);
	case STFS_RECORD_CREATE:
		return apply_create(replaying, record);
	case STFS_RECORD_REMOVE:
		return apply_remove(replaying, record->payload);
	case STFS_RECORD_RENAME:
		return apply_rename(replaying, record->payload);
	case STFS_RECORD_DISCARD:
		return apply_discard(replaying, record->payload);
	case STFS_RECORD_BIND:
		return apply_bind(replaying, record->payload);
	case STFS_RECORD_DIR_ATTR:
		return apply_dir_attr(replaying, record->payload);
	default:
		return record->type >= STFS_RECORD_TEXT && record->type <= STFS_RECORD_RUN ?
			       apply_content(replaying, record) :
			       -EBADMSG;
	}
}

static int apply(void *user, const struct stfs_record *record)
{
	struct replaying *replaying = user;
	int r;

	replaying->same_boot = record->same_boot;
	if (record->type == STFS_RECORD_MODEL)
		return apply_model(replaying, record->payload);
	/* Of a commit that is over. */
	if (record->type == STFS_RECORD_TEMPS || record->type == STFS_RECORD_COMMIT)
		return 0;
	r = replaying->seen_model ? apply_record(replaying, record) : -EBADMSG;
	if (r == -EBADMSG)
		stfs_diag_set(replaying->diag, "the journal in %s has a record (type %" PRIu32 ") that does not fit",
			      stfs_stage_path(replaying->view->stage), record->type);
	return r;
}

static int end_replay(struct stfs_view *view, bool same_boot)
{
	for (uint32_t i = 0; i < view->n_contents; i++) {
		int r = stfs_content_replay_end(view->contents[i].content, same_boot);

		if (r < 0)
			return r;
	}
	return 0;
}

/* What the journal does not know yet and must: damage a power cut did, and NumPy files that had just taken effect. */
static int complete_journal(struct stfs_view *view)
{
	int r = 0;

	for (uint32_t node = 0; r == 0 && node < view->tree.n; node++) {
		struct stfs_content *content;

		if (view->tree.nodes[node].kind != STFS_NODE_OWN)
			continue;
		content = stfs_view_content(view, node);
		if (stfs_content_is_handed_on(content)) {
			r = stfs_edit_journal_remove(view, view->tree.nodes[node].parent,
						     stfs_tree_name(&view->tree, node));
			if (r == 0)
				stfs_change_remove(view, node);
		} else if (stfs_content_has_new_damage(content)) {
			r = stfs_edit_bind(view, content);
			if (r == 0)
				r = stfs_content_keep_damage(content, view->stage);
		}
	}
	return r;
}

static bool is_staged_file(void *user, uint64_t number)
{
	return stfs_idmap_get(user, number) != NULL;
}

/* Removes files of bytes that nobody speaks of any more. */
static int sweep(struct stfs_view *view)
{
	struct stfs_idmap staged = { 0 };
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < view->n_contents; i++) {
		struct stfs_content *content = view->contents[i].content;

		if (stfs_content_stage_number(content))
			r = stfs_idmap_put(&staged, stfs_content_stage_number(content), content);
	}
	if (r == 0)
		r = stfs_stage_sweep(view->stage, is_staged_file, &staged);
	stfs_idmap_fini(&staged);
	return r;
}

int stfs_replay_journal(struct stfs_view *view, struct stfs_diag *diag)
{
	struct replaying replaying = { .view = view, .diag = diag };
	struct stfs_journal *journal = stfs_stage_journal(view->stage);
	int r;

	r = stfs_journal_replay(journal, apply, &replaying, diag);
	stfs_bindings_fini(&replaying.bindings);
	if (r == 0)
		r = end_replay(view, replaying.same_boot);
	if (r < 0)
		return r;
	atomic_fetch_add(&view->journal_generation, 1);
	/* A crash between making the journal and its first record leaves one with nothing in it. */
	if (!replaying.seen_model)
		r = stfs_replay_start_journal(view, journal);
	else
		r = complete_journal(view);
	if (r == 0 && replaying.seen_model && !replaying.same_boot)
		r = stfs_journal_append(journal, STFS_RECORD_MARK, (struct stfs_slice){ 0 });
	/* A full disk must not hide what is staged on it: the next replay finds the same. */
	if (replaying.seen_model && (r == -ENOSPC || r == -EDQUOT))
		r = 0;
	return r < 0 ? r : sweep(view);
}
