/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symlinks that dotted names answer with. They exist only while the kernel knows them: each is counted by its
 * lookups and gone when the last is forgotten. Its number is a hash of where it stands and where it leads.
 */
#pragma once

#include <stdint.h>

#include "idmap.h"
#include "macros.h"

/* A symlink in directory `dir` to `node`; both are ids of the tree. */
struct stfs_alias {
	uint64_t dir;
	uint64_t node;
	uint64_t count; /* lookups not yet forgotten */
};

/* Embedded; not locked. All zero is an empty table. */
struct stfs_aliases {
	struct stfs_idmap by_id; /* of struct stfs_alias, heap */
};

/* Releases the memory. */
void stfs_aliases_fini(struct stfs_aliases *aliases);

/* Counts one lookup of the symlink in `dir` to `node`, making it when there is none. Returns 0 or -ENOMEM. */
int stfs_aliases_take(struct stfs_aliases *aliases, uint64_t dir, uint64_t node, uint64_t *ret_id) STFS_MUST_CHECK;

/* The symlink of that number, or NULL; valid until it is dropped. */
const struct stfs_alias *stfs_aliases_find(const struct stfs_aliases *aliases, uint64_t id);

/* Takes `n` lookups back; does nothing for an unknown number. */
void stfs_aliases_drop(struct stfs_aliases *aliases, uint64_t id, uint64_t n);
