/* SPDX-License-Identifier: Apache-2.0 */
/* A collection of changes under way; private to the model layer. */
#pragma once

#include "changes.h"
#include "view_private.h"

struct stfs_collecting {
	struct stfs_view *view;
	struct stfs_changes *changes;
	uint32_t tensors_cap, keys_cap, scratch_cap;
	bool *claimed; /* entries of the model that some directory has */
};

/* Whether a key looks like what sed, perl or vim leave behind when they are killed. */
bool stfs_key_is_litter(struct stfs_slice key);

/* Adds the key of a node of __metadata__. */
int stfs_collect_key(struct stfs_collecting *collecting, uint32_t node);

/* Compares the keys with the model's, and finds those that are gone. */
int stfs_collect_deleted_keys(struct stfs_collecting *collecting);

/* stfs_changes_collect with the tree locked already. */
int stfs_changes_collect_locked(struct stfs_view *view, struct stfs_changes **ret) STFS_MUST_CHECK;
