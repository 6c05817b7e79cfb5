/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <errno.h>
#include <stdlib.h>

void stfs_table_fini(struct stfs_table *table)
{
	free(table->slots);
	*table = (struct stfs_table){ 0 };
}

static struct stfs_slice item_name(struct stfs_table_items items, uint32_t index)
{
	struct stfs_slice name;

	memcpy(&name, (const char *)items.base + (size_t)index * items.stride, sizeof(name));
	return name;
}

static uint32_t hash_name(const struct stfs_table *table, struct stfs_slice name)
{
	return (uint32_t)stfs_hash(table->key, name.p, name.len);
}

/* The slot that holds `name`, or the free one where it belongs. */
static struct stfs_table_slot *find_slot(const struct stfs_table *table, struct stfs_table_items items,
					 struct stfs_slice name, uint32_t hash)
{
	uint32_t mask = table->n_slots - 1;
	uint32_t i = hash & mask;

	while (table->slots[i].index &&
	       !(table->slots[i].hash == hash && stfs_slice_equal(item_name(items, table->slots[i].index - 1), name)))
		i = (i + 1) & mask;
	return &table->slots[i];
}

uint32_t stfs_table_find(const struct stfs_table *table, struct stfs_table_items items, struct stfs_slice name)
{
	return table->n_slots ? find_slot(table, items, name, hash_name(table, name))->index - 1 : STFS_TABLE_NONE;
}

/* Enters a slot whose item is known to be new. */
static void place_slot(struct stfs_table *table, struct stfs_table_slot slot)
{
	uint32_t mask = table->n_slots - 1;
	uint32_t i = slot.hash & mask;

	while (table->slots[i].index)
		i = (i + 1) & mask;
	table->slots[i] = slot;
}

void stfs_table_rebuild(struct stfs_table *table, struct stfs_table_items items)
{
	if (table->n_slots)
		memset(table->slots, 0, (size_t)table->n_slots * sizeof(*table->slots));
	for (uint32_t i = 0; i < table->n; i++)
		place_slot(table, (struct stfs_table_slot){ hash_name(table, item_name(items, i)), i + 1 });
}

/* Doubles the slots. At most two thirds are ever used. */
static int grow(struct stfs_table *table)
{
	uint32_t old_n = table->n_slots, n_slots = old_n ? old_n * 2 : 64;
	struct stfs_table_slot *old = table->slots;

	if (n_slots < old_n)
		return -ENOMEM;
	table->slots = calloc(n_slots, sizeof(*table->slots));
	if (!table->slots) {
		table->slots = old;
		return -ENOMEM;
	}
	if (!old)
		table->key = stfs_hash_key_random();
	table->n_slots = n_slots;
	for (uint32_t i = 0; i < old_n; i++) {
		if (old[i].index)
			place_slot(table, old[i]);
	}
	free(old);
	return 0;
}

int stfs_table_insert(struct stfs_table *table, struct stfs_table_items items, uint32_t index)
{
	struct stfs_slice name = item_name(items, index);
	struct stfs_table_slot *slot;
	uint32_t hash;

	if (table->n + 1 > table->n_slots / 3 * 2) {
		int r = grow(table);

		if (r < 0)
			return r;
	}
	hash = hash_name(table, name);
	slot = find_slot(table, items, name, hash);
	if (slot->index)
		return -EEXIST;
	*slot = (struct stfs_table_slot){ hash, index + 1 };
	table->n++;
	return 0;
}
