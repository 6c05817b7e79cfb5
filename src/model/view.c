/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "edit_private.h"
#include "file_private.h"

const struct stfs_slot_name stfs_slot_names[STFS_N_SLOT_NAMES] = {
	{ "data", STFS_SLOT_DATA, true },
	{ "dtype", STFS_SLOT_DTYPE, true },
	{ "shape", STFS_SLOT_SHAPE, true },
	{ "data.npy", STFS_SLOT_NPY, false },
};

static uint64_t dir_ino(uint64_t id)
{
	if (id == STFS_NODE_ROOT)
		return STFS_INO_ROOT;
	if (id == STFS_NODE_METADATA)
		return STFS_INO_METADATA;
	return id << STFS_SLOT_BITS | STFS_SLOT_DIR;
}

struct stfs_place stfs_view_place(const struct stfs_view *view, uint32_t node)
{
	const struct stfs_node *n = &view->tree.nodes[node];

	if (n->kind == STFS_NODE_KEY)
		return (struct stfs_place){ n->id << STFS_SLOT_BITS | STFS_SLOT_KEY, STFS_SLOT_KEY, node };
	if (n->kind == STFS_NODE_OWN)
		return (struct stfs_place){ stfs_change_ino_of_id(n->id), STFS_SLOT_FILE, node };
	return (struct stfs_place){ dir_ino(n->id), STFS_SLOT_DIR, node };
}

const struct stfs_tensor *stfs_view_tensor(const struct stfs_view *view, uint32_t node)
{
	return stfs_model_tensor(view->model, view->tree.nodes[node].entry);
}

/* Whether a directory has a data.npy that we make up: while somebody writes one of his own there is none. */
static bool has_npy(const struct stfs_view *view, uint32_t node)
{
	_cleanup_buf_ struct stfs_buf head = { 0 };
	int r;

	/* One of his own may have been given another name since, and kept its number. */
	if (view->options.npy == STFS_OFF || view->tree.nodes[node].npy_removed ||
	    stfs_view_role_node(view, node, STFS_ROLE_NPY) != STFS_NODE_NONE ||
	    stfs_tree_find(&view->tree, (uint64_t)STFS_SLOT_NPY << STFS_NODE_ID_BITS | view->tree.nodes[node].id) !=
		    STFS_NODE_NONE)
		return false;
	if (!stfs_view_is_explicit(view, node))
		return stfs_dtype_info(stfs_view_tensor(view, node)->dtype)->descr != NULL;
	if (stfs_view_role_node(view, node, STFS_ROLE_DATA) == STFS_NODE_NONE)
		return false;
	/* Without memory it cannot be told: it is there, and whoever asks for more of it is told that. */
	r = stfs_view_npy_head((struct stfs_view *)(uintptr_t)view, node, &head);
	return r == 0 || r == -ENOMEM;
}

bool stfs_view_slot(const struct stfs_view *view, uint32_t node, enum stfs_slot slot, struct stfs_place *ret)
{
	const struct stfs_node *n = &view->tree.nodes[node];

	if (n->kind != STFS_NODE_MODULE)
		return false;
	if (slot == STFS_SLOT_NPY ? !has_npy(view, node) : stfs_view_is_explicit(view, node))
		return false;
	*ret = (struct stfs_place){ n->id << STFS_SLOT_BITS | slot, slot, node };
	return true;
}

enum stfs_role stfs_role_of(uint32_t parent, struct stfs_slice name)
{
	if (parent == STFS_NODE_METADATA)
		return name.p[0] == '.' || name.p[0] == '#' || name.p[name.len - 1] == '~' ? STFS_ROLE_SCRATCH :
											     STFS_ROLE_KEY;
	if (parent == STFS_NODE_ROOT)
		return STFS_ROLE_SCRATCH;
	for (size_t i = 0; i < STFS_N_SLOT_NAMES; i++) {
		if (stfs_slice_is(name, stfs_slot_names[i].name))
			return (enum stfs_role)i;
	}
	return STFS_ROLE_SCRATCH;
}

uint32_t stfs_view_role_node(const struct stfs_view *view, uint32_t dir, enum stfs_role role)
{
	uint32_t node;

	if (dir == STFS_NODE_ROOT || dir == STFS_NODE_METADATA)
		return STFS_NODE_NONE;
	node = stfs_tree_child(&view->tree, dir, stfs_slice_of(stfs_slot_names[role].name));
	return node != STFS_NODE_NONE && view->tree.nodes[node].kind == STFS_NODE_OWN ? node : STFS_NODE_NONE;
}

static enum stfs_slot slot_of_ino(uint64_t ino)
{
	return ino & ((1 << STFS_SLOT_BITS) - 1);
}

static int resolve_reserved(const struct stfs_view *view, uint64_t ino, struct stfs_place *ret)
{
	if (ino == STFS_INO_ROOT)
		*ret = (struct stfs_place){ ino, STFS_SLOT_DIR, STFS_NODE_ROOT };
	else if (ino == STFS_INO_METADATA)
		*ret = (struct stfs_place){ ino, STFS_SLOT_DIR, STFS_NODE_METADATA };
	else if (ino == STFS_INO_CONTROL)
		*ret = (struct stfs_place){ ino, STFS_SLOT_CONTROL_DIR, 0 };
	else if (ino >= STFS_INO_CONTROL_FIRST && ino - STFS_INO_CONTROL_FIRST < stfs_view_n_controls(view))
		*ret = (struct stfs_place){ ino, STFS_SLOT_CONTROL_FILE, (uint32_t)(ino - STFS_INO_CONTROL_FIRST) };
	else
		return -ESTALE;
	return 0;
}

int stfs_view_resolve(const struct stfs_view *view, uint64_t ino, struct stfs_place *ret)
{
	uint64_t id = ino >> STFS_SLOT_BITS;
	enum stfs_slot slot = slot_of_ino(ino);
	struct stfs_place place;
	uint32_t node;

	if (id < STFS_NODE_ID_FIRST)
		return resolve_reserved(view, ino, ret);
	if (slot == STFS_SLOT_ALIAS) {
		*ret = (struct stfs_place){ ino, slot, STFS_NODE_NONE };
		return 0;
	}
	/* A file of its own comes before what is generated under the same number. */
	if (slot >= STFS_SLOT_DATA && slot <= STFS_SLOT_NPY) {
		node = stfs_tree_find(&view->tree, (uint64_t)slot << STFS_NODE_ID_BITS | id);
		if (node != STFS_NODE_NONE) {
			*ret = stfs_view_place(view, node);
			return 0;
		}
	}
	node = stfs_tree_find(&view->tree, id);
	if (node == STFS_NODE_NONE)
		return -ESTALE;
	place = stfs_view_place(view, node);
	if (place.ino != ino &&
	    !(slot >= STFS_SLOT_DATA && slot <= STFS_SLOT_NPY && stfs_view_slot(view, node, slot, &place)))
		return -ESTALE;
	*ret = place;
	return 0;
}

/* Whatever is readable may be entered. */
static mode_t dir_perm(mode_t perm)
{
	return perm | (perm & 0444) >> 2;
}

/* Attributes that were set, in the place of those of the model. */
static void fill_set(const struct stfs_file_attr *set, struct stfs_attr *attr)
{
	attr->perm = set->perm;
	attr->uid = set->uid;
	attr->gid = set->gid;
	attr->mtime = set->mtime;
}

static void fill_dir(const struct stfs_view *view, const struct stfs_place *place, struct stfs_attr *attr)
{
	attr->type = STFS_NODE_DIR;
	attr->perm = dir_perm(attr->perm);
	attr->nlink = 2;
	if (place->slot == STFS_SLOT_DIR && view->tree.nodes[place->node].attr)
		fill_set(&view->dir_attrs[view->tree.nodes[place->node].attr - 1].attr, attr);
	if (place->slot == STFS_SLOT_DIR)
		attr->nlink += view->tree.nodes[place->node].n_dirs + stfs_view_lists_control(view, place->node);
}

/* The files of a tensor belong to the owner of its shard and are as old as it. */
static void fill_owner(const struct stfs_view *view, const struct stfs_place *place, struct stfs_attr *attr)
{
	const struct stfs_snapshot *file = stfs_model_file(view->model, view->tree.nodes[place->node].entry);
	const struct stfs_identity *identity = stfs_snapshot_identity(file);

	attr->perm = stfs_view_perm(view, identity->shown);
	attr->uid = identity->uid;
	attr->gid = identity->gid;
	attr->mtime = view->file_mtimes[view->model->entries[view->tree.nodes[place->node].entry].file];
}

/* The NumPy file of an edited tensor is as its data. */
static void fill_npy(const struct stfs_view *view, uint32_t dir, struct stfs_attr *attr)
{
	uint32_t data = stfs_view_role_node(view, dir, STFS_ROLE_DATA);
	struct stfs_file_attr set;

	if (data == STFS_NODE_NONE)
		return;
	stfs_content_attr(stfs_view_content(view, data), &set);
	fill_set(&set, attr);
}

static void fill_file(const struct stfs_view *view, const struct stfs_place *place, struct stfs_attr *attr)
{
	const struct stfs_node *n = &view->tree.nodes[place->node];
	struct stfs_file_attr set;

	if (place->slot == STFS_SLOT_FILE) {
		stfs_content_attr(stfs_view_content(view, place->node), &set);
		fill_set(&set, attr);
		attr->blksize = stfs_view_role(view, place->node) == STFS_ROLE_DATA ? 1 << 20 : 4096;
		return;
	}
	if (place->slot == STFS_SLOT_NPY && stfs_view_is_explicit(view, place->node))
		fill_npy(view, place->node, attr);
	else if (place->slot >= STFS_SLOT_DATA && place->slot <= STFS_SLOT_NPY && n->entry != STFS_NODE_NONE)
		fill_owner(view, place, attr);
	if (place->slot == STFS_SLOT_DATA || place->slot == STFS_SLOT_NPY)
		attr->blksize = 1 << 20;
	if (place->slot == STFS_SLOT_CONTROL_FILE && stfs_controls[place->node].kind == STFS_CONTROL_TEXT)
		attr->perm &= 0444;
}

void stfs_view_fill_look(const struct stfs_view *view, const struct stfs_place *place, struct stfs_attr *ret_attr)
{
	*ret_attr = view->whole;
	ret_attr->ino = place->ino;
	ret_attr->perm = stfs_view_perm(view, ret_attr->perm);
	ret_attr->unsteady = place->slot == STFS_SLOT_CONTROL_FILE || place->slot == STFS_SLOT_NPY;
	if (place->slot == STFS_SLOT_DIR || place->slot == STFS_SLOT_CONTROL_DIR)
		fill_dir(view, place, ret_attr);
	else
		fill_file(view, place, ret_attr);
}

int stfs_view_fill_attr(struct stfs_view *view, const struct stfs_place *place, struct stfs_attr *ret_attr)
{
	struct stfs_attr attr;
	int r = 0;

	stfs_view_fill_look(view, place, &attr);
	if (attr.type != STFS_NODE_DIR)
		r = stfs_view_size(view, place, &attr.size);
	if (r == 0)
		*ret_attr = attr;
	return r;
}

static void fill_link(const struct stfs_view *view, uint64_t id, size_t target_len, struct stfs_attr *ret_attr)
{
	*ret_attr = view->whole;
	ret_attr->ino = id << STFS_SLOT_BITS | STFS_SLOT_ALIAS;
	ret_attr->type = STFS_NODE_LINK;
	ret_attr->perm = 0777;
	ret_attr->size = target_len;
}

uint32_t stfs_view_walk_name(const struct stfs_view *view, uint32_t dir, struct stfs_slice name)
{
	struct stfs_name_walk walk;
	uint32_t node = dir;

	stfs_name_walk_init(&walk, name, view->options.layout);
	walk.first = dir == STFS_NODE_ROOT;
	while (node != STFS_NODE_NONE && stfs_name_walk_next(&walk))
		node = stfs_tree_child(&view->tree, node, (struct stfs_slice){ walk.component, walk.len });
	return node;
}

/* Whether a path could go on with it to a tensor of another name, as %64ata is where the one called "data" lies. */
static bool is_escaped(const struct stfs_view *view, uint32_t dir, struct stfs_slice name)
{
	return memchr(name.p, '%', name.len) && stfs_edit_check_name(view, dir, name, true) == 0;
}

static int lookup_alias(struct stfs_view *view, uint32_t dir, struct stfs_slice name, struct stfs_attr *ret_attr)
{
	_cleanup_buf_ struct stfs_buf target = { 0 };
	uint32_t node;
	uint64_t id;
	int r;

	/* No name at all is a tensor's name too, but not a file's. */
	if (name.len == 0 || is_escaped(view, dir, name))
		return -ENOENT;
	node = stfs_view_walk_name(view, dir, name);
	if (node == STFS_NODE_NONE)
		return -ENOENT;
	r = stfs_tree_path(&view->tree, dir, node, &target);
	if (r < 0)
		return r;
	pthread_mutex_lock(&view->lock);
	r = stfs_aliases_take(&view->aliases, view->tree.nodes[dir].id, view->tree.nodes[node].id, &id);
	pthread_mutex_unlock(&view->lock);
	if (r < 0)
		return r;
	fill_link(view, id, target.len, ret_attr);
	return 0;
}

bool stfs_view_entry(const struct stfs_view *view, uint32_t dir, struct stfs_slice name, struct stfs_place *ret)
{
	uint32_t node;

	if (dir == STFS_NODE_ROOT && stfs_slice_is(name, ".safetensors"))
		return resolve_reserved(view, STFS_INO_CONTROL, ret) == 0;
	node = stfs_slice_is(name, ".")  ? dir :
	       stfs_slice_is(name, "..") ? view->tree.nodes[dir].parent :
					   stfs_tree_child(&view->tree, dir, name);
	if (node != STFS_NODE_NONE) {
		*ret = stfs_view_place(view, node);
		return true;
	}
	for (size_t i = 0; i < STFS_N_SLOT_NAMES; i++) {
		if (stfs_slice_is(name, stfs_slot_names[i].name))
			return stfs_view_slot(view, dir, stfs_slot_names[i].slot, ret);
	}
	return false;
}

static bool find_control(const struct stfs_view *view, struct stfs_slice name, struct stfs_place *ret)
{
	if (stfs_slice_is(name, "."))
		return resolve_reserved(view, STFS_INO_CONTROL, ret) == 0;
	if (stfs_slice_is(name, ".."))
		return resolve_reserved(view, STFS_INO_ROOT, ret) == 0;
	for (size_t i = 0; i < stfs_view_n_controls(view); i++)
		if (stfs_slice_is(name, stfs_controls[i].name))
			return resolve_reserved(view, STFS_INO_CONTROL_FIRST + i, ret) == 0;
	return false;
}

int stfs_view_lookup(struct stfs_view *view, uint64_t parent, struct stfs_slice name, struct stfs_attr *ret_attr)
{
	_cleanup_view_lock_ struct stfs_view *locked = stfs_view_read_lock(view);
	struct stfs_place dir, place;
	int r;

	r = stfs_view_resolve(view, parent, &dir);
	if (r < 0)
		return r;
	if (dir.slot != STFS_SLOT_DIR && dir.slot != STFS_SLOT_CONTROL_DIR)
		return -ENOTDIR;
	if (name.len > STFS_COMPONENT_MAX)
		return -ENAMETOOLONG;
	if (dir.slot == STFS_SLOT_CONTROL_DIR)
		return find_control(view, name, &place) ? stfs_view_fill_attr(view, &place, ret_attr) : -ENOENT;
	if (stfs_view_entry(view, dir.node, name, &place))
		return stfs_view_fill_attr(view, &place, ret_attr);
	return dir.node == STFS_NODE_METADATA ? -ENOENT : lookup_alias(view, dir.node, name, ret_attr);
}

void stfs_view_forget(struct stfs_view *view, uint64_t ino, uint64_t n)
{
	if (slot_of_ino(ino) != STFS_SLOT_ALIAS)
		return;
	pthread_mutex_lock(&view->lock);
	stfs_aliases_drop(&view->aliases, ino >> STFS_SLOT_BITS, n);
	pthread_mutex_unlock(&view->lock);
}

/* Appends where the alias of that number leads. */
static int append_target(struct stfs_view *view, uint64_t ino, struct stfs_buf *buf)
{
	const struct stfs_alias *found;
	struct stfs_alias alias = { 0 };
	uint32_t dir, node;

	pthread_mutex_lock(&view->lock);
	found = stfs_aliases_find(&view->aliases, ino >> STFS_SLOT_BITS);
	if (found)
		alias = *found;
	pthread_mutex_unlock(&view->lock);
	if (!found)
		return -ESTALE;
	dir = stfs_tree_find(&view->tree, alias.dir);
	node = stfs_tree_find(&view->tree, alias.node);
	if (dir == STFS_NODE_NONE || node == STFS_NODE_NONE)
		return -ESTALE;
	return stfs_tree_path(&view->tree, dir, node, buf);
}

int stfs_view_getattr(struct stfs_view *view, uint64_t ino, struct stfs_attr *ret_attr)
{
	_cleanup_view_lock_ struct stfs_view *locked = stfs_view_read_lock(view);
	_cleanup_buf_ struct stfs_buf target = { 0 };
	struct stfs_place place;
	int r;

	r = stfs_view_resolve(view, ino, &place);
	if (r < 0)
		return r;
	if (place.slot != STFS_SLOT_ALIAS)
		return stfs_view_fill_attr(view, &place, ret_attr);
	r = append_target(view, ino, &target);
	if (r < 0)
		return r;
	fill_link(view, ino >> STFS_SLOT_BITS, target.len, ret_attr);
	return 0;
}

int stfs_view_readlink(struct stfs_view *view, uint64_t ino, struct stfs_buf *buf)
{
	_cleanup_view_lock_ struct stfs_view *locked = stfs_view_read_lock(view);
	struct stfs_place place;
	int r;

	r = stfs_view_resolve(view, ino, &place);
	if (r < 0)
		return r;
	return place.slot == STFS_SLOT_ALIAS ? append_target(view, ino, buf) : -EINVAL;
}
