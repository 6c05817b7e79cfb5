/* SPDX-License-Identifier: Apache-2.0 */
#include "idmap.h"

#include <errno.h>
#include <stdlib.h>

#define SLOTS_FIRST ((size_t)64)

void stfs_idmap_fini(struct stfs_idmap *map)
{
	free(map->slots);
	*map = (struct stfs_idmap){ 0 };
}

/* n_slots is a power of two. */
static size_t home_slot(const struct stfs_idmap *map, size_t n_slots, uint64_t id)
{
	return stfs_hash(map->key, &id, sizeof(id)) & (n_slots - 1);
}

/* The slot that holds `id`, or the free one where it would go. */
static struct stfs_idmap_slot *seek(const struct stfs_idmap *map, struct stfs_idmap_slot *slots, size_t n_slots,
				    uint64_t id)
{
	size_t i = home_slot(map, n_slots, id);

	while (slots[i].value && slots[i].id != id)
		i = (i + 1) & (n_slots - 1);
	return &slots[i];
}

void *stfs_idmap_get(const struct stfs_idmap *map, uint64_t id)
{
	return map->n ? seek(map, map->slots, map->n_slots, id)->value : NULL;
}

static int make_room(struct stfs_idmap *map)
{
	size_t n_slots = map->n_slots ? map->n_slots * 2 : SLOTS_FIRST;
	struct stfs_idmap_slot *slots;

	if (map->n < map->n_slots / 2)
		return 0;
	slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	if (!map->n_slots)
		map->key = stfs_hash_key_random();
	for (size_t i = 0; i < map->n_slots; i++) {
		if (map->slots[i].value)
			*seek(map, slots, n_slots, map->slots[i].id) = map->slots[i];
	}
	free(map->slots);
	map->slots = slots;
	map->n_slots = n_slots;
	return 0;
}

int stfs_idmap_put(struct stfs_idmap *map, uint64_t id, void *value)
{
	struct stfs_idmap_slot *slot;
	int r = make_room(map);

	if (r < 0)
		return r;
	slot = seek(map, map->slots, map->n_slots, id);
	map->n += !slot->value;
	*slot = (struct stfs_idmap_slot){ id, value };
	return 0;
}

/* Frees slot `hole` and moves up whoever stood behind it because of it, so that no search stops too early. */
static void free_slot(struct stfs_idmap *map, size_t hole)
{
	size_t mask = map->n_slots - 1;

	for (size_t i = (hole + 1) & mask; map->slots[i].value; i = (i + 1) & mask) {
		size_t home = home_slot(map, map->n_slots, map->slots[i].id);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		map->slots[hole] = map->slots[i];
		hole = i;
	}
	map->slots[hole] = (struct stfs_idmap_slot){ 0 };
	map->n--;
}

void *stfs_idmap_take(struct stfs_idmap *map, uint64_t id)
{
	struct stfs_idmap_slot *slot = map->n ? seek(map, map->slots, map->n_slots, id) : NULL;
	void *value = slot ? slot->value : NULL;

	if (value)
		free_slot(map, (size_t)(slot - map->slots));
	return value;
}
