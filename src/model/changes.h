/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a view differs in from its model: the tensors and metadata a commit would write, what changed, and what stands in the
 * way. Collected at one moment; holds references, so that it stays true to that moment.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "cleanup.h"
#include "content.h"
#include "dtype.h"
#include "header.h"
#include "view.h"

/* A tensor as a commit would write it. */
struct stfs_staged_tensor {
	struct stfs_slice name; /* first, for tables; lives as long as the changes, as all slices here */
	struct stfs_slice path; /* in the mount; empty for one that was never touched */
	uint32_t entry;         /* of the model: whose place it takes, STFS_ENTRY_NONE for a new one */
	uint64_t ino;           /* of its directory */
	uint32_t order;         /* place in the tree */

	enum stfs_dtype dtype;
	struct stfs_dims dims;
	uint64_t size;             /* bytes */
	struct stfs_content *data; /* one reference; NULL: the bytes of `entry`, untouched */

	bool new_name, new_dtype, new_shape, new_data; /* against `entry` */
	const char *problem;                           /* why it cannot be committed, NULL: it can */
};

/* An entry of __metadata__ as a commit would write it. */
struct stfs_staged_key {
	struct stfs_slice key; /* first, for tables */
	struct stfs_slice value;
	struct stfs_slice before; /* value in the model, when `in_model` */
	bool in_model;
	bool litter;         /* a new key that looks like a tool's leftover */
	const char *problem; /* NULL: none */
};

struct stfs_changes {
	struct stfs_staged_tensor *tensors; /* in the order of the model, new ones last */
	uint32_t n_tensors;
	uint32_t *deleted; /* entries of the model that are gone */
	uint32_t n_deleted;
	struct stfs_staged_key *keys; /* in the order of the tree */
	uint32_t n_keys;
	uint32_t *deleted_keys; /* metadata of the model that is gone */
	uint32_t n_deleted_keys;
	struct stfs_slice *scratch; /* paths of files that are never committed */
	uint32_t n_scratch;
	bool metadata_changed;
	uint32_t n_changed; /* tensors without a problem, keys and deletions that differ from the model */
	uint32_t n_problems;
	struct stfs_arena strings;
};

/* Collects the changes of a view. Returns 0 or -errno (-EIO when a staged file cannot be read). The caller frees *ret. */
int stfs_changes_collect(struct stfs_view *view, struct stfs_changes **ret) STFS_MUST_CHECK;

/* Frees them and drops the references; takes NULL. */
void stfs_changes_free(struct stfs_changes *changes);
STFS_DEFINE_CLEANUP(struct stfs_changes, stfs_changes_free)

/* Whether a tensor differs from the model. */
static inline bool stfs_staged_tensor_changed(const struct stfs_staged_tensor *tensor)
{
	return tensor->entry == STFS_ENTRY_NONE || tensor->new_name || tensor->new_dtype || tensor->new_shape ||
	       tensor->new_data;
}

/*
 * Appends what is staged in the manner of `git status --short`, one line a change: "A name", "M name (data, shape)",
 * "R old -> new", "D name", "A __metadata__/key"; "! name: why" for what cannot be committed, "? path" for scratch files, and a
 * last line of totals that starts with '#'. Names are printable. Returns 0 or -ENOMEM.
 */
int stfs_changes_text(const struct stfs_changes *changes, const struct stfs_model *model, struct stfs_buf *buf);

/* The same as one JSON object. */
int stfs_changes_json(const struct stfs_changes *changes, const struct stfs_model *model, struct stfs_buf *buf);

/*
 * Appends what is staged with what it replaces: the lines of stfs_changes_text, each followed by old and new dtype and shape, how
 * many bytes differ, or the old and new value of a key. Returns 0 or -ENOMEM.
 */
int stfs_changes_diff(const struct stfs_changes *changes, const struct stfs_model *model, struct stfs_buf *buf);

/* The same as one JSON object. */
int stfs_changes_diff_json(const struct stfs_changes *changes, const struct stfs_model *model, struct stfs_buf *buf);
