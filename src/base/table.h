/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from byte strings to places in an array that somebody else owns: it costs 12 to 24 bytes an item. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hash.h"
#include "macros.h"
#include "slice.h"

#define STFS_TABLE_NONE UINT32_MAX

/* The hash is kept so that neither growing nor passing a slot by looks at the item. */
struct stfs_table_slot {
	uint32_t hash;
	uint32_t index; /* + 1, 0 is free */
};

/* Embedded; all zero is an empty table. Each item of the array must begin with the struct stfs_slice it is found by. */
struct stfs_table {
	struct stfs_table_slot *slots;
	uint32_t n_slots, n;
	struct stfs_hash_key key;
};

/* The array a table speaks of; borrowed during a call. */
struct stfs_table_items {
	const void *base;
	size_t stride; /* bytes of one item */
};

/* Releases the memory and leaves an empty table. */
void stfs_table_fini(struct stfs_table *table);

/* The index of the item called `name`, or STFS_TABLE_NONE. */
uint32_t stfs_table_find(const struct stfs_table *table, struct stfs_table_items items, struct stfs_slice name);

/* Enters item `index`. Returns 0, -EEXIST when an item of that name is there, -ENOMEM. */
int stfs_table_insert(struct stfs_table *table, struct stfs_table_items items, uint32_t index) STFS_MUST_CHECK;

/* Enters items 0 to n - 1 anew, after the array was reordered. Their number must be what it was. */
void stfs_table_rebuild(struct stfs_table *table, struct stfs_table_items items);
