/* SPDX-License-Identifier: Apache-2.0 */
/* Keyed hashing (SipHash-1-3), so that a stranger's names cannot be chosen to collide. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct stfs_hash_key {
	uint64_t k0, k1;
};

/* A fresh random key for tables that live in memory only. Never fails (falls back to address and clock bits). */
struct stfs_hash_key stfs_hash_key_random(void);

/* SipHash-1-3 of `len` bytes at `data`. */
uint64_t stfs_hash(struct stfs_hash_key key, const void *data, size_t len);
