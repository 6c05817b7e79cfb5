/* SPDX-License-Identifier: Apache-2.0 */
#include "alias.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "tree.h"

void stfs_aliases_fini(struct stfs_aliases *aliases)
{
	for (size_t i = 0; i < aliases->by_id.n_slots; i++)
		free(aliases->by_id.slots[i].value);
	stfs_idmap_fini(&aliases->by_id);
}

static int add_alias(struct stfs_aliases *aliases, uint64_t id, uint64_t dir, uint64_t node)
{
	struct stfs_alias *alias = malloc(sizeof(*alias));
	int r;

	if (!alias)
		return -ENOMEM;
	*alias = (struct stfs_alias){ .dir = dir, .node = node, .count = 1 };
	r = stfs_idmap_put(&aliases->by_id, id, alias);
	if (r < 0)
		free(alias);
	return r;
}

int stfs_aliases_take(struct stfs_aliases *aliases, uint64_t dir, uint64_t node, uint64_t *ret_id)
{
	uint64_t pair[2] = { htole64(dir), htole64(node) };
	uint64_t id = stfs_tree_stable_id(pair, sizeof(pair));
	struct stfs_alias *alias;
	int r = 0;

	while ((alias = stfs_idmap_get(&aliases->by_id, id)) && (alias->dir != dir || alias->node != node))
		id = stfs_tree_next_id(id);
	if (alias)
		alias->count++;
	else
		r = add_alias(aliases, id, dir, node);
	if (r == 0)
		*ret_id = id;
	return r;
}

const struct stfs_alias *stfs_aliases_find(const struct stfs_aliases *aliases, uint64_t id)
{
	return stfs_idmap_get(&aliases->by_id, id);
}

void stfs_aliases_drop(struct stfs_aliases *aliases, uint64_t id, uint64_t n)
{
	struct stfs_alias *alias = stfs_idmap_get(&aliases->by_id, id);

	if (!alias)
		return;
	if (alias->count > n)
		alias->count -= n;
	else
		free(stfs_idmap_take(&aliases->by_id, id));
}
