/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CAP_FIRST 64u
#define NAMES_SLACK 65536 /* bytes of names that are not worth the while */

/* Bytes that a (parent, name) pair is hashed from. */
struct name_key {
	char bytes[sizeof(uint64_t) + STFS_COMPONENT_MAX];
	size_t len;
};

static void name_key_set(struct name_key *key, uint64_t parent, struct stfs_slice name)
{
	uint64_t le = htole64(parent);

	memcpy(key->bytes, &le, sizeof(le));
	memcpy(key->bytes + sizeof(le), name.p, name.len);
	key->len = sizeof(le) + name.len;
}

/* Three quarters full at most. */
static size_t slots_for(uint32_t cap)
{
	return (size_t)cap + cap / 3 + 1;
}

/*
 * A slot holds index + 1 and, in the bits that STFS_NODES_MAX leaves over, some of the hash: a search passes over
 * strangers without looking at their nodes, which are far away in memory.
 */
#define INDEX_BITS 22
#define INDEX_MASK ((UINT32_C(1) << INDEX_BITS) - 1)
_Static_assert(STFS_NODES_MAX < INDEX_MASK, "an index must fit in a slot");

static uint32_t slot_value(uint64_t hash, uint32_t node)
{
	return (uint32_t)hash << INDEX_BITS | (node + 1);
}

static bool may_match(uint32_t value, uint64_t hash)
{
	return ((value ^ slot_value(hash, 0)) & ~INDEX_MASK) == 0;
}

/* Multiplication instead of a remainder or a mask: tables of any size, so that they can be trimmed to fit. */
static size_t slot_of(uint64_t hash, size_t n_slots)
{
	return (size_t)(((hash >> 32) * n_slots) >> 32);
}

static size_t next_slot(size_t slot, size_t n_slots)
{
	return slot + 1 < n_slots ? slot + 1 : 0;
}

static void table_put(uint32_t *table, size_t n_slots, uint64_t hash, uint32_t node)
{
	size_t slot = slot_of(hash, n_slots);

	while (table[slot])
		slot = next_slot(slot, n_slots);
	table[slot] = slot_value(hash, node);
}

static uint64_t hash_name(const struct stfs_tree *tree, uint32_t parent, struct stfs_slice name)
{
	struct name_key key;

	name_key_set(&key, parent, name);
	return stfs_hash(tree->key, key.bytes, key.len);
}

static uint64_t hash_id(const struct stfs_tree *tree, uint64_t id)
{
	return stfs_hash(tree->key, &id, sizeof(id));
}

/* Sizes the node array and both tables for `cap` nodes, no fewer than there are. */
static int set_capacity(struct stfs_tree *tree, uint32_t cap)
{
	size_t n_slots = slots_for(cap);
	_cleanup_free_ uint32_t *by_name = calloc(n_slots, sizeof(*by_name));
	_cleanup_free_ uint32_t *by_id = calloc(n_slots, sizeof(*by_id));
	struct stfs_node *nodes;

	if (!by_name || !by_id)
		return -ENOMEM;
	nodes = realloc(tree->nodes, cap * sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	tree->nodes = nodes;
	tree->cap = cap;
	for (uint32_t i = 0; i < tree->n; i++) {
		if (nodes[i].kind == STFS_NODE_FREE)
			continue;
		table_put(by_name, n_slots, hash_name(tree, nodes[i].parent, stfs_tree_name(tree, i)), i);
		table_put(by_id, n_slots, hash_id(tree, nodes[i].id), i);
	}
	free(tree->by_name);
	free(tree->by_id);
	tree->by_name = stfs_steal(by_name);
	tree->by_id = stfs_steal(by_id);
	return 0;
}

static int reserve_nodes(struct stfs_tree *tree, uint32_t n)
{
	uint32_t cap = tree->cap ? STFS_MIN(tree->cap * 2, STFS_NODES_MAX) : CAP_FIRST;

	n -= STFS_MIN(n, tree->n_free);
	if ((uint64_t)tree->n + n > tree->max)
		return -EFBIG;
	if (n <= tree->cap - tree->n)
		return 0;
	return set_capacity(tree, STFS_MAX(cap, tree->n + n));
}

static int reserve_names(struct stfs_tree *tree, size_t bytes)
{
	if (bytes > UINT32_MAX - tree->names.len)
		return -EFBIG;
	return stfs_buf_reserve(&tree->names, bytes);
}

int stfs_tree_reserve(struct stfs_tree *tree, uint32_t n, size_t bytes)
{
	int r = reserve_nodes(tree, n);

	return r < 0 ? r : reserve_names(tree, bytes);
}

/* Leaves out the names that no node has any more, but keeps their room: it may be spoken for. Without memory they stay. */
static int compact_names(struct stfs_tree *tree, struct stfs_slice name)
{
	struct stfs_buf names = { 0 };
	int r = stfs_buf_reserve(&names, tree->names.cap);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < tree->n; i++) {
		struct stfs_node *node = &tree->nodes[i];
		uint32_t offset = (uint32_t)names.len;

		if (node->kind == STFS_NODE_FREE)
			continue;
		(void)!stfs_buf_append(&names, tree->names.data + node->name, node->name_len);
		node->name = offset;
	}
	(void)!stfs_buf_append(&names, name.p, name.len);
	stfs_buf_fini(&tree->names);
	tree->names = names;
	tree->names_left = 0;
	return 0;
}

/* Copies a name to where nodes keep theirs. Those of nodes that are gone are left out when they have become many. */
static int store_name(struct stfs_tree *tree, struct stfs_slice name, uint32_t *ret_offset)
{
	size_t offset = tree->names.len;
	int r;

	if (tree->names_left > offset / 2 + NAMES_SLACK && compact_names(tree, name) == 0) {
		*ret_offset = (uint32_t)(tree->names.len - name.len);
		return 0;
	}
	r = reserve_names(tree, name.len);
	if (r == 0)
		r = stfs_buf_append(&tree->names, name.p, name.len);
	if (r < 0)
		return r;
	*ret_offset = (uint32_t)offset;
	return 0;
}

static void link_child(struct stfs_tree *tree, uint32_t parent, uint32_t node)
{
	struct stfs_node *p = &tree->nodes[parent], *child = &tree->nodes[node];

	child->parent = parent;
	child->next = STFS_NODE_NONE;
	if (p->first_child == STFS_NODE_NONE) {
		p->first_child = node;
		child->prev = node;
	} else {
		struct stfs_node *first = &tree->nodes[p->first_child];

		tree->nodes[first->prev].next = node;
		child->prev = first->prev;
		first->prev = node;
	}
	if (child->kind == STFS_NODE_MODULE)
		p->n_dirs++;
}

/* The index the next node gets. */
static uint32_t next_index(const struct stfs_tree *tree)
{
	return tree->n_free ? tree->free : tree->n;
}

static void claim_index(struct stfs_tree *tree, uint32_t node)
{
	if (node == tree->n) {
		tree->n++;
		return;
	}
	tree->free = tree->nodes[node].next;
	tree->n_free--;
}

/* Appends a node with an id of the caller's choice, neither linked nor in the tables yet. */
static int append_node(struct stfs_tree *tree, uint64_t id, struct stfs_slice name, enum stfs_node_kind kind)
{
	uint32_t node, offset;
	int r;

	r = reserve_nodes(tree, 1);
	if (r < 0)
		return r;
	r = store_name(tree, name, &offset);
	if (r < 0)
		return r;
	node = next_index(tree);
	claim_index(tree, node);
	tree->nodes[node] = (struct stfs_node){
		.id = id,
		.parent = STFS_NODE_NONE,
		.first_child = STFS_NODE_NONE,
		.prev = STFS_NODE_NONE,
		.next = STFS_NODE_NONE,
		.entry = STFS_NODE_NONE,
		.name = offset,
		.name_len = (uint8_t)name.len,
		.kind = (uint8_t)kind,
	};
	tree->has_files |= id > STFS_NODE_ID_MASK;
	return 0;
}

static void enter_tables(struct stfs_tree *tree, uint32_t node)
{
	size_t n_slots = slots_for(tree->cap);
	const struct stfs_node *n = &tree->nodes[node];

	table_put(tree->by_name, n_slots, hash_name(tree, n->parent, stfs_tree_name(tree, node)), node);
	table_put(tree->by_id, n_slots, hash_id(tree, n->id), node);
}

int stfs_tree_init(struct stfs_tree *ret_tree)
{
	struct stfs_tree tree = { .max = STFS_NODES_MAX, .key = stfs_hash_key_random() };
	int r;

	r = append_node(&tree, STFS_NODE_ROOT, (struct stfs_slice){ 0 }, STFS_NODE_MODULE);
	if (r >= 0)
		r = append_node(&tree, STFS_NODE_METADATA, stfs_slice_of("__metadata__"), STFS_NODE_MODULE);
	if (r < 0) {
		stfs_tree_fini(&tree);
		return r;
	}
	tree.nodes[STFS_NODE_ROOT].parent = STFS_NODE_ROOT;
	enter_tables(&tree, STFS_NODE_ROOT);
	link_child(&tree, STFS_NODE_ROOT, STFS_NODE_METADATA);
	enter_tables(&tree, STFS_NODE_METADATA);
	*ret_tree = tree;
	return 0;
}

void stfs_tree_fini(struct stfs_tree *tree)
{
	free(tree->nodes);
	free(tree->by_name);
	free(tree->by_id);
	stfs_buf_fini(&tree->names);
	*tree = (struct stfs_tree){ 0 };
}

uint32_t stfs_tree_child(const struct stfs_tree *tree, uint32_t parent, struct stfs_slice name)
{
	size_t n_slots = slots_for(tree->cap), slot;
	uint64_t hash;

	if (name.len == 0 || name.len > STFS_COMPONENT_MAX)
		return STFS_NODE_NONE;
	hash = hash_name(tree, parent, name);
	for (slot = slot_of(hash, n_slots); tree->by_name[slot]; slot = next_slot(slot, n_slots)) {
		uint32_t node = (tree->by_name[slot] & INDEX_MASK) - 1;

		if (may_match(tree->by_name[slot], hash) && tree->nodes[node].parent == parent &&
		    stfs_slice_equal(stfs_tree_name(tree, node), name))
			return node;
	}
	return STFS_NODE_NONE;
}

uint32_t stfs_tree_find(const struct stfs_tree *tree, uint64_t id)
{
	size_t n_slots = slots_for(tree->cap), slot;
	uint64_t hash = hash_id(tree, id);

	for (slot = slot_of(hash, n_slots); tree->by_id[slot]; slot = next_slot(slot, n_slots)) {
		uint32_t node = (tree->by_id[slot] & INDEX_MASK) - 1;

		if (may_match(tree->by_id[slot], hash) && tree->nodes[node].id == id)
			return node;
	}
	return STFS_NODE_NONE;
}

/* Whether an id is that of a node, or was that of the directory of a file which has moved away from it and kept its number. */
static bool is_taken(const struct stfs_tree *tree, uint64_t id)
{
	uint64_t high = tree->has_files ? UINT64_MAX >> STFS_NODE_ID_BITS : 0;

	while (stfs_tree_find(tree, high << STFS_NODE_ID_BITS | id) == STFS_NODE_NONE)
		if (high-- == 0)
			return false;
	return true;
}

int stfs_tree_add(struct stfs_tree *tree, uint32_t parent, struct stfs_slice name, enum stfs_node_kind kind,
		  uint32_t *ret_node)
{
	struct name_key key;
	uint64_t id;

	name_key_set(&key, tree->nodes[parent].id, name);
	id = stfs_tree_stable_id(key.bytes, key.len);
	while (is_taken(tree, id))
		id = stfs_tree_next_id(id);
	return stfs_tree_insert(tree, parent, name, kind, id, ret_node);
}

int stfs_tree_insert(struct stfs_tree *tree, uint32_t parent, struct stfs_slice name, enum stfs_node_kind kind,
		     uint64_t id, uint32_t *ret_node)
{
	uint32_t node = next_index(tree);
	int r = append_node(tree, id, name, kind);

	if (r < 0)
		return r;
	link_child(tree, parent, node);
	enter_tables(tree, node);
	*ret_node = node;
	return 0;
}

static size_t home_of(const struct stfs_tree *tree, bool by_name, uint32_t node, size_t n_slots)
{
	const struct stfs_node *n = &tree->nodes[node];

	return slot_of(by_name ? hash_name(tree, n->parent, stfs_tree_name(tree, node)) : hash_id(tree, n->id),
		       n_slots);
}

/* Takes a node out of a table and closes the gap, so that every search still ends at the first free slot. */
static void table_take(const struct stfs_tree *tree, uint32_t *table, bool by_name, uint32_t node)
{
	size_t n_slots = slots_for(tree->cap), hole = home_of(tree, by_name, node, n_slots);

	while ((table[hole] & INDEX_MASK) - 1 != node)
		hole = next_slot(hole, n_slots);
	for (size_t i = next_slot(hole, n_slots); table[i]; i = next_slot(i, n_slots)) {
		size_t home = home_of(tree, by_name, (table[i] & INDEX_MASK) - 1, n_slots);

		/* It may move to the hole unless its home lies behind the hole, going around. */
		if (hole <= i ? home > hole && home <= i : home > hole || home <= i)
			continue;
		table[hole] = table[i];
		hole = i;
	}
	table[hole] = 0;
}

static void unlink_child(struct stfs_tree *tree, uint32_t node)
{
	struct stfs_node *child = &tree->nodes[node], *p = &tree->nodes[child->parent];

	if (p->first_child == node) {
		p->first_child = child->next;
		if (child->next != STFS_NODE_NONE)
			tree->nodes[child->next].prev = child->prev;
	} else {
		tree->nodes[child->prev].next = child->next;
		tree->nodes[child->next != STFS_NODE_NONE ? child->next : p->first_child].prev = child->prev;
	}
	if (child->kind == STFS_NODE_MODULE)
		p->n_dirs--;
}

void stfs_tree_remove(struct stfs_tree *tree, uint32_t node)
{
	table_take(tree, tree->by_name, true, node);
	table_take(tree, tree->by_id, false, node);
	unlink_child(tree, node);
	tree->names_left += tree->nodes[node].name_len;
	tree->nodes[node] =
		(struct stfs_node){ .kind = STFS_NODE_FREE, .next = tree->free, .first_child = STFS_NODE_NONE };
	tree->free = node;
	tree->n_free++;
}

int stfs_tree_move(struct stfs_tree *tree, uint32_t node, uint32_t parent, struct stfs_slice name)
{
	size_t n_slots = slots_for(tree->cap);
	uint32_t offset;
	int r = store_name(tree, name, &offset);

	if (r < 0)
		return r;
	table_take(tree, tree->by_name, true, node);
	unlink_child(tree, node);
	tree->names_left += tree->nodes[node].name_len;
	tree->nodes[node].moved = true;
	tree->nodes[node].name = offset;
	tree->nodes[node].name_len = (uint8_t)name.len;
	link_child(tree, parent, node);
	table_put(tree->by_name, n_slots, hash_name(tree, parent, stfs_tree_name(tree, node)), node);
	return 0;
}

bool stfs_tree_is_below(const struct stfs_tree *tree, uint32_t node, uint32_t ancestor)
{
	while (node != ancestor && node != STFS_NODE_ROOT)
		node = tree->nodes[node].parent;
	return node == ancestor;
}

uint32_t stfs_tree_next(const struct stfs_tree *tree, uint32_t top, uint32_t node)
{
	if (tree->nodes[node].first_child != STFS_NODE_NONE)
		return tree->nodes[node].first_child;
	for (; node != top; node = tree->nodes[node].parent) {
		if (tree->nodes[node].next != STFS_NODE_NONE)
			return tree->nodes[node].next;
	}
	return STFS_NODE_NONE;
}

int stfs_tree_trim(struct stfs_tree *tree)
{
	return set_capacity(tree, tree->n);
}

struct stfs_slice stfs_tree_name(const struct stfs_tree *tree, uint32_t node)
{
	const struct stfs_node *n = &tree->nodes[node];

	return (struct stfs_slice){ tree->names.data + n->name, n->name_len };
}

int stfs_tree_path(const struct stfs_tree *tree, uint32_t ancestor, uint32_t node, struct stfs_buf *buf)
{
	size_t len = 0;
	char *p;
	int r;

	for (uint32_t i = node; i != ancestor; i = tree->nodes[i].parent) {
		if (i == STFS_NODE_ROOT)
			return -ENOENT;
		len += tree->nodes[i].name_len + 1u;
	}
	if (len == 0)
		return 0;
	r = stfs_buf_reserve(buf, len);
	if (r < 0)
		return r;
	/* From the end; the '/' before the first name is left out, so everything lands one byte further to the left. */
	p = buf->data + buf->len + len - 1;
	*p = '\0';
	for (uint32_t i = node; i != ancestor; i = tree->nodes[i].parent) {
		struct stfs_slice name = stfs_tree_name(tree, i);

		p -= name.len;
		memcpy(p, name.p, name.len);
		if (tree->nodes[i].parent != ancestor)
			*--p = '/';
	}
	buf->len += len - 1;
	return 0;
}

/* Not secret: inode numbers must be the same on the next mount. Changing it renumbers every mount. */
static const struct stfs_hash_key stable_key = { UINT64_C(0x7361666574656e73), UINT64_C(0x6f7273665f696e6f) };

uint64_t stfs_tree_stable_id(const void *data, size_t len)
{
	uint64_t id = stfs_hash(stable_key, data, len) & STFS_NODE_ID_MASK;

	return id < STFS_NODE_ID_FIRST ? id + STFS_NODE_ID_FIRST : id;
}
