/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directories of a mount, and the entries of __metadata__, as nodes in one array. What lies inside a tensor's
 * directory (data, dtype, …) is derived from the node and takes no memory here.
 *
 * A node is named by its index, which may be kept as long as the tree lives, or by its id, a 60-bit number that is
 * the same from mount to mount: a hash of the parent's id and the name, so that it does not depend on what else the
 * model holds. A node keeps both when it is moved, so moving a module touches no node below it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "hash.h"
#include "name.h"
#include "slice.h"

#define STFS_NODES_MAX 4000000u         /* our own bound on memory */
#define STFS_NODE_NONE UINT32_MAX       /* "no node", "no entry" */
#define STFS_NODE_ROOT 0u               /* index and id of the root */
#define STFS_NODE_METADATA 1u           /* index and id of __metadata__ */
#define STFS_NODE_ID_FIRST UINT64_C(16) /* ids below are given by hand, never by the hash */
#define STFS_NODE_ID_BITS 60
#define STFS_NODE_ID_MASK ((UINT64_C(1) << STFS_NODE_ID_BITS) - 1)

enum stfs_node_kind {
	STFS_NODE_MODULE, /* a directory, of a tensor when `entry` says so */
	STFS_NODE_KEY,    /* a file of __metadata__, as the model has it */
	STFS_NODE_OWN,    /* a file of its own, not generated: `entry` says which, to whoever added it */
	STFS_NODE_FREE,   /* removed; its place waits for the next one */
};

/* 48 bytes. `prev` of a first child is the last one, so that appending and removing are both one step. */
struct stfs_node {
	uint64_t id;
	uint32_t parent, first_child, prev, next; /* children in the order they came; the root is its own parent */
	uint32_t entry;                           /* of the model: tensor, or metadata entry of a key; else see kind */
	uint32_t n_dirs;                          /* children that are directories */
	uint32_t attr;                            /* of the caller: attributes that were set, 0 for none */
	uint32_t name;                            /* offset of the name in `names` */
	uint8_t name_len;
	uint8_t kind;        /* enum stfs_node_kind */
	bool explicit_slots; /* data, dtype and shape are nodes of their own (or gone) */
	bool moved;          /* it is not where it was added */
	bool npy_removed;    /* of a tensor: its data.npy was removed, and is not made up */
};

/* Embedded. Readers need no lock as long as nobody adds. */
struct stfs_tree {
	struct stfs_node *nodes;
	uint32_t n, cap;       /* n counts free places too */
	uint32_t free, n_free; /* first free place, linked by `next` */
	uint32_t max;          /* nodes allowed: STFS_NODES_MAX, or fewer */
	struct stfs_buf names;
	size_t names_left;         /* bytes of `names` that no node has any more */
	bool has_files;            /* ids of more than STFS_NODE_ID_BITS were given */
	uint32_t *by_name, *by_id; /* open addressing, 0 is free; their size follows from `cap` */
	struct stfs_hash_key key;  /* of the two tables; random, so that a model cannot be made to collide in them */
};

/* Makes a tree of the root and an empty __metadata__. Returns 0 or -ENOMEM. */
int stfs_tree_init(struct stfs_tree *ret_tree) STFS_MUST_CHECK;

/* Releases the memory; takes an all-zero tree too. */
void stfs_tree_fini(struct stfs_tree *tree);

/* The child of `parent` with that name, or STFS_NODE_NONE. */
uint32_t stfs_tree_child(const struct stfs_tree *tree, uint32_t parent, struct stfs_slice name);

/* The node with that id, or STFS_NODE_NONE. */
uint32_t stfs_tree_find(const struct stfs_tree *tree, uint64_t id);

/*
 * Makes room for `n` nodes and `bytes` of names: as many can be added, or moved, without failing. Returns 0, -EFBIG beyond
 * tree->max nodes, or -ENOMEM.
 */
int stfs_tree_reserve(struct stfs_tree *tree, uint32_t n, size_t bytes) STFS_MUST_CHECK;

/*
 * Adds a node as the last child of `parent`, which must not have a child of that name; `name` (copied) is 1 to
 * STFS_COMPONENT_MAX bytes. Returns 0, -EFBIG beyond tree->max nodes, or -ENOMEM.
 */
int stfs_tree_add(struct stfs_tree *tree, uint32_t parent, struct stfs_slice name, enum stfs_node_kind kind,
		  uint32_t *ret_node) STFS_MUST_CHECK;

/* Adds a node under an id of the caller's choice, which must be free; else as stfs_tree_add. */
int stfs_tree_insert(struct stfs_tree *tree, uint32_t parent, struct stfs_slice name, enum stfs_node_kind kind,
		     uint64_t id, uint32_t *ret_node) STFS_MUST_CHECK;

/* Removes a node that has no children; its index may be given to another one later. */
void stfs_tree_remove(struct stfs_tree *tree, uint32_t node);

/*
 * Moves a node, with all that is below it, to be the last child of `parent` under `name` (copied), which must be free
 * there. `parent` must not be below `node`. Returns 0 or -ENOMEM, in which case nothing moved.
 */
int stfs_tree_move(struct stfs_tree *tree, uint32_t node, uint32_t parent, struct stfs_slice name) STFS_MUST_CHECK;

/* Whether `node` is `ancestor` or below it. */
bool stfs_tree_is_below(const struct stfs_tree *tree, uint32_t node, uint32_t ancestor);

/*
 * Steps through a subtree, parents before their children: the node after `node` below `top`, or STFS_NODE_NONE at the end.
 * Start with `top` itself.
 */
uint32_t stfs_tree_next(const struct stfs_tree *tree, uint32_t top, uint32_t node);

/* Gives back memory kept for nodes to come. Returns 0 or -ENOMEM, in which case the tree is as before. */
int stfs_tree_trim(struct stfs_tree *tree) STFS_MUST_CHECK;

/* Name of a node, empty for the root; valid until a node is added. */
struct stfs_slice stfs_tree_name(const struct stfs_tree *tree, uint32_t node);

/*
 * Appends the path from `ancestor` to `node`, without a leading '/'; nothing when they are the same. Returns 0, -ENOENT
 * when `node` is not below `ancestor`, or -ENOMEM.
 */
int stfs_tree_path(const struct stfs_tree *tree, uint32_t ancestor, uint32_t node, struct stfs_buf *buf)
	STFS_MUST_CHECK;

/* A stable 60-bit number of `len` bytes at `data`, at least STFS_NODE_ID_FIRST: the same on every machine. */
uint64_t stfs_tree_stable_id(const void *data, size_t len);

/* The number to try when `id` is taken. */
static inline uint64_t stfs_tree_next_id(uint64_t id)
{
	return id == STFS_NODE_ID_MASK ? STFS_NODE_ID_FIRST : id + 1;
}
