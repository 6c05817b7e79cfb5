/* SPDX-License-Identifier: Apache-2.0 */
/* Which file a number of the journal stands for, while it is replayed. Private to the model layer. */
#pragma once

#include "content.h"
#include "idmap.h"

/* A number and the file it was given to. */
struct stfs_binding {
	uint64_t number;
	struct stfs_content *content; /* one reference */
};

/* Embedded, released with stfs_bindings_fini; all zero is none. */
struct stfs_bindings {
	struct stfs_binding *list; /* heap */
	uint32_t n, cap;
	uint32_t forget_at;          /* number of bindings at which those of removed files are let go */
	struct stfs_idmap by_number; /* contents of the list: the last one of each number */
	struct stfs_idmap by_staged; /* contents of the list, by the number of the staged file that is theirs */
};

void stfs_bindings_fini(struct stfs_bindings *bindings);

/* From now on `number` stands for `content`, of which a reference is taken. Returns 0 or -errno. */
int stfs_bindings_add(struct stfs_bindings *bindings, uint64_t number, struct stfs_content *content) STFS_MUST_CHECK;

/* The file of that number, borrowed, or NULL. */
struct stfs_content *stfs_bindings_find(const struct stfs_bindings *bindings, uint64_t number);

/*
 * The journal has just said which staged file holds the bytes of `content`: whoever had that file before has handed it on.
 * Returns 0 or -ENOMEM.
 */
int stfs_bindings_note_staged(struct stfs_bindings *bindings, struct stfs_content *content) STFS_MUST_CHECK;
