/* SPDX-License-Identifier: Apache-2.0 */
/* Many small strings with one lifetime: they lie in blocks, never move, and are freed together. */
#pragma once

#include <stddef.h>

#include "macros.h"
#include "slice.h"

struct stfs_arena_block;

/* Embedded; all zero is empty. */
struct stfs_arena {
	struct stfs_arena_block *blocks; /* newest first */
};

/* Frees all strings and leaves an empty arena. */
void stfs_arena_fini(struct stfs_arena *arena);

/* Copies `bytes`, with a NUL after them. *ret lives until stfs_arena_fini. Returns 0 or -ENOMEM. */
int stfs_arena_copy(struct stfs_arena *arena, struct stfs_slice bytes, struct stfs_slice *ret) STFS_MUST_CHECK;
