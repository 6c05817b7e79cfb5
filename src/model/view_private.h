/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the view share. Nobody else includes this. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "alias.h"
#include "content.h"
#include "tree.h"
#include "view.h"
#include "view_control.h"
#include "view_edit.h"

/*
 * Inode numbers: (id of a node) << 3 | slot. Numbers below STFS_NODE_ID_FIRST << 3 are given by hand: ids of nodes that
 * come from the hash are never that small. A file of a tensor that became a node of its own keeps its number: its node has
 * the id slot << 60 | id of the directory.
 */
enum stfs_slot {
	STFS_SLOT_DIR, /* the node itself: a module, a tensor, the root, __metadata__ */
	STFS_SLOT_DATA,
	STFS_SLOT_DTYPE,
	STFS_SLOT_SHAPE,
	STFS_SLOT_NPY,
	STFS_SLOT_ALIAS, /* the id is one of the alias table */
	STFS_SLOT_KEY,   /* the node itself: a file of __metadata__, or any file that was made */
	/* These are no part of a number. */
	STFS_SLOT_FILE, /* a node of kind OWN: its bytes are a content */
	STFS_SLOT_CONTROL_DIR,
	STFS_SLOT_CONTROL_FILE,
};

#define STFS_SLOT_BITS 3
#define STFS_INO_METADATA UINT64_C(2)
#define STFS_INO_CONTROL UINT64_C(3)
#define STFS_INO_CONTROL_FIRST UINT64_C(4) /* of the files in .safetensors */

/* What an inode number stands for. */
struct stfs_place {
	uint64_t ino;
	enum stfs_slot slot;
	uint32_t node; /* of the tree; of a control file its index in stfs_controls; unused for aliases */
};

/* A file of .safetensors. */
struct stfs_control {
	const char *name;
	int (*write)(struct stfs_buf *buf, struct stfs_view *view);
	enum stfs_control_kind kind; /* those that take words are only in a writable view */
	bool settled;                /* its text changes only when the view does */
};

#define STFS_N_CONTROLS 10
extern const struct stfs_control stfs_controls[STFS_N_CONTROLS];

/* A name inside a tensor's directory. */
struct stfs_slot_name {
	const char *name;
	enum stfs_slot slot;
	bool listed; /* always; else as the options say */
};

#define STFS_N_SLOT_NAMES 4
extern const struct stfs_slot_name stfs_slot_names[STFS_N_SLOT_NAMES];

/* What a file of the tree is, by where it stands and what it is called. */
enum stfs_role {
	STFS_ROLE_DATA,
	STFS_ROLE_DTYPE,
	STFS_ROLE_SHAPE,
	STFS_ROLE_NPY, /* a NumPy file that has not taken effect */
	STFS_ROLE_KEY,
	STFS_ROLE_SCRATCH,
};

/* The content of a file node. */
struct stfs_placed_content {
	struct stfs_content *content; /* one reference */
	uint32_t node;
};

/* Where attributes of a directory come from; of several the last one of these. */
enum stfs_dir_attr_origin {
	STFS_DIR_TOUCHED, /* an edit in it moved its time */
	STFS_DIR_MADE,    /* it was made with them */
	STFS_DIR_SET,     /* somebody asked for them */
};

/* Attributes that a directory has in the place of those of the model. */
struct stfs_dir_attr {
	struct stfs_file_attr attr;
	uint32_t node;
	enum stfs_dir_attr_origin origin;
};

/*
 * Lock order: tree_lock, one content's lock, the journal's; `lock` is a leaf. No lock is held while the model
 * file is read for a reply, nor while a watcher is told.
 */
struct stfs_view {
	struct stfs_model *model;
	struct stfs_view_options options;
	struct stfs_log *log;
	struct stfs_attr whole; /* owner, times and permissions of files that are about the whole model */

	/* protects the tree and the arrays below it; only a writable view ever writes them */
	pthread_rwlock_t tree_lock;
	struct stfs_tree tree;
	struct stfs_placed_content *contents; /* of file nodes, by their `entry` */
	uint32_t n_contents, contents_cap;
	struct stfs_dir_attr *dir_attrs; /* of nodes that have some, by `attr` - 1 */
	uint32_t n_dir_attrs, dir_attrs_cap;
	uint64_t next_id; /* counts made nodes, from anywhere on */

	bool dirs_moved;          /* a directory was made or moved: paths may spell other names than the model's */
	struct stfs_stage *stage; /* NULL: read-only */
	struct stfs_view_watcher watcher;
	atomic_int stage_error;           /* why the staging area could not be made, as the log knows it */
	atomic_bool frozen;               /* a commit is running */
	atomic_bool stopped;              /* a commit could not be ended: frozen until the next mount ends it */
	atomic_ullong generation;         /* grows with every change */
	atomic_ullong journal_generation; /* grows with every new journal */
	struct timespec *file_mtimes;     /* of the model's files, as shown: a commit does not age what it left alone */

	pthread_mutex_t lock; /* protects what follows; taken last, nothing else is locked under it */
	struct stfs_aliases aliases;
	struct stfs_buf result; /* of the last commit or discard */
	struct {
		bool running;
		uint64_t done, total; /* bytes */
	} progress;
	struct {
		unsigned long long generation; /* the size is of this one; + 1, 0: not yet known */
		size_t size;                   /* bytes */
	} control_sizes[STFS_N_CONTROLS];
};

/* Finds what an inode number stands for. Returns 0 or -ESTALE; an alias is not looked up. */
int stfs_view_resolve(const struct stfs_view *view, uint64_t ino, struct stfs_place *ret);

/* The place of a node's directory, key or file. */
struct stfs_place stfs_view_place(const struct stfs_view *view, uint32_t node);

/* Whether data, dtype and shape in the directory of `node` are nodes of their own, or not there at all. */
static inline bool stfs_view_is_explicit(const struct stfs_view *view, uint32_t node)
{
	return view->tree.nodes[node].explicit_slots || view->tree.nodes[node].entry == STFS_NODE_NONE;
}

/* Whether the directory of `node` has that file, generated from the model, and its place. */
bool stfs_view_slot(const struct stfs_view *view, uint32_t node, enum stfs_slot slot, struct stfs_place *ret);

/* Finds a real entry of a directory: reserved names before those of the model, which are escaped when they meet. */
bool stfs_view_entry(const struct stfs_view *view, uint32_t dir, struct stfs_slice name, struct stfs_place *ret);

/* Walks down from `dir` as if `name` were the rest of a tensor's name; STFS_NODE_NONE when that leads nowhere. */
uint32_t stfs_view_walk_name(const struct stfs_view *view, uint32_t dir, struct stfs_slice name);

/* The tensor of a node that has one. */
const struct stfs_tensor *stfs_view_tensor(const struct stfs_view *view, uint32_t node);

/* Where the bytes of a tensor of the model are. */
static inline struct stfs_run stfs_view_run(const struct stfs_model *model, uint32_t entry)
{
	const struct stfs_tensor *tensor = stfs_model_tensor(model, entry);

	return (struct stfs_run){ stfs_model_file(model, entry), stfs_model_offset(model, entry),
				  tensor->end - tensor->begin };
}

/* The content of a file node. */
static inline struct stfs_content *stfs_view_content(const struct stfs_view *view, uint32_t node)
{
	return view->contents[view->tree.nodes[node].entry].content;
}

/* Whether the directory `node` has .safetensors in it, listed. */
static inline bool stfs_view_lists_control(const struct stfs_view *view, uint32_t node)
{
	return node == STFS_NODE_ROOT && view->options.control == STFS_LIST;
}

/* How many control files there are: a read-only view has none that take words. */
static inline size_t stfs_view_n_controls(const struct stfs_view *view)
{
	return view->stage ? STFS_N_CONTROLS : 3;
}

/* Attributes of anything but an alias, without the size. */
void stfs_view_fill_look(const struct stfs_view *view, const struct stfs_place *place, struct stfs_attr *ret_attr);

/* The same with the size, which may take memory to learn. Returns 0 or -errno. */
int stfs_view_fill_attr(struct stfs_view *view, const struct stfs_place *place, struct stfs_attr *ret_attr);

/* Size of a file in bytes. Returns 0 or -ENOMEM. */
int stfs_view_size(struct stfs_view *view, const struct stfs_place *place, uint64_t *ret_size);

/* Builds the tree of the model into the empty one of the view. Returns 0, -EFBIG, -ENOMEM. */
int stfs_view_build_tree(struct stfs_view *view);

/*
 * Adds the directory of a tensor of the model, and those above it, to a tree. Returns 0, -EEXIST (a file is in the way), -EFBIG,
 * -ENOMEM.
 */
int stfs_view_add_tensor(const struct stfs_view *view, struct stfs_tree *tree, uint32_t entry);

/*
 * The times that files of `model` show (heap, owned by the caller): those that files of the same names in `old` showed, else
 * their own. `old` may be NULL.
 */
int stfs_view_keep_mtimes(const struct stfs_model *model, const struct stfs_model *old,
			  const struct timespec *old_mtimes, struct timespec **ret) STFS_MUST_CHECK;

/* Whether a key of the model has a file: one that is too long for a file name has none, and is kept as it is. */
bool stfs_view_key_is_shown(struct stfs_slice key);

/* Lets go of all contents; with `drop` their staged bytes go too. */
void stfs_view_free_contents(struct stfs_view *view, bool drop);

/* The permission bits a mount shows of those of a source: no wider, and no writing where nothing can be written. */
static inline mode_t stfs_view_perm(const struct stfs_view *view, mode_t perm)
{
	return perm & (view->stage ? 0666 : 0444);
}

/* What a file called `name` in directory `parent` is. */
enum stfs_role stfs_role_of(uint32_t parent, struct stfs_slice name);

/* What the file of a node is. */
static inline enum stfs_role stfs_view_role(const struct stfs_view *view, uint32_t node)
{
	return stfs_role_of(view->tree.nodes[node].parent, stfs_tree_name(&view->tree, node));
}

/* The child of a directory that has that role and is a file node, or STFS_NODE_NONE. */
uint32_t stfs_view_role_node(const struct stfs_view *view, uint32_t dir, enum stfs_role role);

/* What an edit of a frozen view answers: try again, or never. */
static inline int stfs_view_frozen_error(struct stfs_view *view)
{
	return atomic_load(&view->stopped) ? -EROFS : -EBUSY;
}

/* A read lock on the tree, let go at the end of the scope. */
static inline struct stfs_view *stfs_view_read_lock(struct stfs_view *view)
{
	pthread_rwlock_rdlock(&view->tree_lock);
	return view;
}

static inline void stfs_view_unlockp(struct stfs_view **view)
{
	if (*view)
		pthread_rwlock_unlock(&(*view)->tree_lock);
}

#define _cleanup_view_lock_ _cleanup_(stfs_view_unlockp) __attribute__((unused))
