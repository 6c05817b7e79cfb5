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

/* The slot that holds `name`, or the free one where it belongs. */
static uint32_t *find_slot(const struct stfs_table *table, struct stfs_table_items items, struct stfs_slice name)
{
	uint32_t mask = table->n_slots - 1;
	uint32_t i = (uint32_t)stfs_hash(table->key, name.p, name.len) & mask;

	while (table->slots[i] && !stfs_slice_equal(item_name(items, table->slots[i] - 1), name))
		i = (i + 1) & mask;
	return &table->slots[i];
}

uint32_t stfs_table_find(const struct stfs_table *table, struct stfs_table_items items, struct stfs_slice name)
{
	return table->n_slots ? *find_slot(table, items, name) - 1 : STFS_TABLE_NONE;
}

void stfs_table_rebuild(struct stfs_table *table, struct stfs_table_items items)
{
	if (table->n_slots)
		memset(table->slots, 0, (size_t)table->n_slots * sizeof(*table->slots));
	for (uint32_t i = 0; i < table->n; i++)
		*find_slot(table, items, item_name(items, i)) = i + 1;
}

/* Doubles the slots. At most two thirds are ever used. */
static int grow(struct stfs_table *table, struct stfs_table_items items)
{
	uint32_t n_slots = table->n_slots ? table->n_slots * 2 : 64;
	uint32_t *slots;

	if (n_slots < table->n_slots)
		return -ENOMEM;
	slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	if (!table->slots)
		table->key = stfs_hash_key_random();
	free(table->slots);
	table->slots = slots;
	table->n_slots = n_slots;
	stfs_table_rebuild(table, items);
	return 0;
}

int stfs_table_insert(struct stfs_table *table, struct stfs_table_items items, uint32_t index)
{
	uint32_t *slot;

	if (table->n + 1 > table->n_slots / 3 * 2) {
		int r = grow(table, items);

		if (r < 0)
			return r;
	}
	slot = find_slot(table, items, item_name(items, index));
	if (*slot)
		return -EEXIST;
	*slot = index + 1;
	table->n++;
	return 0;
}
