/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from numbers to pointers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hash.h"
#include "macros.h"

struct stfs_idmap_slot {
	uint64_t id;
	void *value; /* NULL: the slot is free */
};

/* Embedded; all zero is an empty map. What it points to is the user's. */
struct stfs_idmap {
	struct stfs_idmap_slot *slots; /* heap */
	size_t n_slots, n;             /* a power of two; how many are taken */
	struct stfs_hash_key key;
};

/* Releases the memory and leaves an empty map. */
void stfs_idmap_fini(struct stfs_idmap *map);

/* What `id` stands for, or NULL. */
void *stfs_idmap_get(const struct stfs_idmap *map, uint64_t id);

/* Takes out what `id` stands for and returns it, or NULL. */
void *stfs_idmap_take(struct stfs_idmap *map, uint64_t id);

/* Lets `id` stand for `value`, which is not NULL, from now on. Returns 0, or -ENOMEM with the map as it was. */
int stfs_idmap_put(struct stfs_idmap *map, uint64_t id, void *value) STFS_MUST_CHECK;
