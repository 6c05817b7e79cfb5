/* SPDX-License-Identifier: Apache-2.0 */
#include "arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE ((size_t)64 * 1024)

struct stfs_arena_block {
	struct stfs_arena_block *next;
	size_t used, size;
	char data[];
};

void stfs_arena_fini(struct stfs_arena *arena)
{
	while (arena->blocks) {
		struct stfs_arena_block *next = arena->blocks->next;

		free(arena->blocks);
		arena->blocks = next;
	}
}

int stfs_arena_copy(struct stfs_arena *arena, struct stfs_slice bytes, struct stfs_slice *ret)
{
	struct stfs_arena_block *block = arena->blocks;

	if (!block || block->size - block->used <= bytes.len) {
		size_t size = STFS_MAX(bytes.len + 1, BLOCK_SIZE);

		block = malloc(sizeof(*block) + size);
		if (!block)
			return -ENOMEM;
		*block = (struct stfs_arena_block){ .next = arena->blocks, .size = size };
		arena->blocks = block;
	}
	if (bytes.len)
		memcpy(block->data + block->used, bytes.p, bytes.len);
	block->data[block->used + bytes.len] = '\0';
	*ret = (struct stfs_slice){ block->data + block->used, bytes.len };
	block->used += bytes.len + 1;
	return 0;
}
