/* SPDX-License-Identifier: Apache-2.0 */
#include "alias.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
#include "tree.h"

#define SLOTS_FIRST 64u

void stfs_aliases_fini(struct stfs_aliases *aliases)
{
	free(aliases->slots);
	aliases->slots = NULL;
	aliases->n = aliases->n_slots = 0;
}

/* n_slots is a power of two. */
static size_t home_slot(const struct stfs_aliases *aliases, uint64_t id, size_t n_slots)
{
	return stfs_hash(aliases->key, &id, sizeof(id)) & (n_slots - 1);
}

/* The slot that holds `id`, or the free one where it would go. */
static struct stfs_alias *seek_slot(const struct stfs_aliases *aliases, struct stfs_alias *slots, size_t n_slots,
				    uint64_t id)
{
	size_t i = home_slot(aliases, id, n_slots);

	while (slots[i].id && slots[i].id != id)
		i = (i + 1) & (n_slots - 1);
	return &slots[i];
}

static int reserve_slot(struct stfs_aliases *aliases)
{
	size_t n_slots = aliases->n_slots ? aliases->n_slots * 2 : SLOTS_FIRST;
	struct stfs_alias *slots;

	if (aliases->n < aliases->n_slots / 2)
		return 0;
	slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < aliases->n_slots; i++)
		if (aliases->slots[i].id)
			*seek_slot(aliases, slots, n_slots, aliases->slots[i].id) = aliases->slots[i];
	free(aliases->slots);
	aliases->slots = slots;
	aliases->n_slots = n_slots;
	return 0;
}

int stfs_aliases_take(struct stfs_aliases *aliases, uint64_t dir, uint64_t node, uint64_t *ret_id)
{
	uint64_t pair[2] = { htole64(dir), htole64(node) };
	uint64_t id = stfs_tree_stable_id(pair, sizeof(pair));
	struct stfs_alias *slot;
	int r;

	r = reserve_slot(aliases);
	if (r < 0)
		return r;
	for (;; id = stfs_tree_next_id(id)) {
		slot = seek_slot(aliases, aliases->slots, aliases->n_slots, id);
		if (!slot->id || (slot->dir == dir && slot->node == node))
			break;
	}
	if (!slot->id) {
		*slot = (struct stfs_alias){ .id = id, .dir = dir, .node = node };
		aliases->n++;
	}
	slot->count++;
	*ret_id = id;
	return 0;
}

const struct stfs_alias *stfs_aliases_find(const struct stfs_aliases *aliases, uint64_t id)
{
	const struct stfs_alias *slot;

	if (aliases->n == 0)
		return NULL;
	slot = seek_slot(aliases, aliases->slots, aliases->n_slots, id);
	return slot->id ? slot : NULL;
}

/* Frees slot `hole` and moves up whoever stood behind it because of it, so that no search stops too early. */
static void remove_slot(struct stfs_aliases *aliases, size_t hole)
{
	size_t mask = aliases->n_slots - 1;

	for (size_t i = (hole + 1) & mask; aliases->slots[i].id; i = (i + 1) & mask) {
		size_t home = home_slot(aliases, aliases->slots[i].id, aliases->n_slots);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		aliases->slots[hole] = aliases->slots[i];
		hole = i;
	}
	aliases->slots[hole] = (struct stfs_alias){ 0 };
	aliases->n--;
}

void stfs_aliases_drop(struct stfs_aliases *aliases, uint64_t id, uint64_t n)
{
	struct stfs_alias *slot;

	if (aliases->n == 0)
		return;
	slot = seek_slot(aliases, aliases->slots, aliases->n_slots, id);
	if (!slot->id)
		return;
	if (slot->count > n)
		slot->count -= n;
	else
		remove_slot(aliases, (size_t)(slot - aliases->slots));
}
