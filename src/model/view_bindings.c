/* SPDX-License-Identifier: Apache-2.0 */
#include "view_bindings.h"

#include <stdlib.h>

#include "array.h"
#include "tree.h"

void stfs_bindings_fini(struct stfs_bindings *bindings)
{
	for (uint32_t i = 0; i < bindings->n; i++)
		stfs_content_unref(bindings->list[i].content);
	free(bindings->list);
	stfs_idmap_fini(&bindings->by_number);
	stfs_idmap_fini(&bindings->by_staged);
	*bindings = (struct stfs_bindings){ 0 };
}

/* Enters what a binding says into both maps. */
static int enter(struct stfs_bindings *bindings, const struct stfs_binding *binding)
{
	uint64_t staged = stfs_content_stage_number(binding->content);
	int r = stfs_idmap_put(&bindings->by_number, binding->number, binding->content);

	if (r == 0 && staged && !stfs_content_is_handed_on(binding->content))
		r = stfs_idmap_put(&bindings->by_staged, staged, binding->content);
	return r;
}

/* Lets go of files that are gone: those that come and go would fill the memory. */
static int forget_dropped(struct stfs_bindings *bindings)
{
	uint32_t kept = 0;
	int r = 0;

	for (uint32_t i = 0; i < bindings->n; i++) {
		if (stfs_content_is_dropped(bindings->list[i].content))
			stfs_content_unref(bindings->list[i].content);
		else
			bindings->list[kept++] = bindings->list[i];
	}
	bindings->n = kept;
	bindings->forget_at = STFS_MAX(kept * 2, 64u);
	stfs_idmap_fini(&bindings->by_number);
	stfs_idmap_fini(&bindings->by_staged);
	for (uint32_t i = 0; r == 0 && i < kept; i++)
		r = enter(bindings, &bindings->list[i]);
	return r;
}

int stfs_bindings_add(struct stfs_bindings *bindings, uint64_t number, struct stfs_content *content)
{
	struct stfs_binding *binding;
	int r = bindings->n >= bindings->forget_at ? forget_dropped(bindings) : 0;

	if (r == 0)
		r = stfs_array_grow((void **)&bindings->list, bindings->n, &bindings->cap, STFS_NODES_MAX,
				    sizeof(*bindings->list));
	if (r < 0)
		return r;
	binding = &bindings->list[bindings->n++];
	*binding = (struct stfs_binding){ number, stfs_content_ref(content) };
	return enter(bindings, binding);
}

struct stfs_content *stfs_bindings_find(const struct stfs_bindings *bindings, uint64_t number)
{
	return stfs_idmap_get(&bindings->by_number, number);
}

int stfs_bindings_note_staged(struct stfs_bindings *bindings, struct stfs_content *content)
{
	uint64_t number = stfs_content_stage_number(content);
	struct stfs_content *before = stfs_idmap_get(&bindings->by_staged, number);

	if (before)
		stfs_content_replay_split(before, content);
	return stfs_idmap_put(&bindings->by_staged, number, content);
}
