/* SPDX-License-Identifier: Apache-2.0 */
/* A set of byte ranges, sorted and merged: which bytes of a file are staged. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "macros.h"

struct stfs_range {
	uint64_t begin, end; /* bytes, begin < end */
};

/* Embedded; all zero is the empty set. */
struct stfs_ranges {
	struct stfs_range *items; /* sorted; neither overlapping nor touching */
	size_t n, cap;
};

/* Releases the memory and leaves the empty set. */
void stfs_ranges_fini(struct stfs_ranges *ranges);

/* Makes room for one more range: the next stfs_ranges_add does not fail. Returns 0 or -ENOMEM. */
int stfs_ranges_reserve(struct stfs_ranges *ranges) STFS_MUST_CHECK;

/* Adds begin to end. *ret_grew (may be NULL) tells whether a byte was new. Returns 0 or -ENOMEM (the set is as before). */
int stfs_ranges_add(struct stfs_ranges *ranges, uint64_t begin, uint64_t end, bool *ret_grew) STFS_MUST_CHECK;

/* Takes begin to end out. Returns 0 or -ENOMEM (the set is as before). */
int stfs_ranges_remove(struct stfs_ranges *ranges, uint64_t begin, uint64_t end) STFS_MUST_CHECK;

/* Removes everything from `size` on. Never fails. */
void stfs_ranges_cut(struct stfs_ranges *ranges, uint64_t size);

/*
 * Looks at `offset`: returns whether it is in the set, and in *ret_end where that answer changes (UINT64_MAX when it never
 * does).
 */
bool stfs_ranges_at(const struct stfs_ranges *ranges, uint64_t offset, uint64_t *ret_end);

/* Number of bytes in the set. */
uint64_t stfs_ranges_bytes(const struct stfs_ranges *ranges);
