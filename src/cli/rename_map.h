/* SPDX-License-Identifier: Apache-2.0 */
/* A list of old and new names in a file. */
#pragma once

#include "buf.h"
#include "diag.h"
#include "json_decode.h"

/* A file of names. Embedded, released with stfs_rename_map_fini. */
struct stfs_rename_map {
	struct stfs_buf text;
	struct stfs_decoded *decoded;
	struct stfs_rename_pair {
		struct stfs_slice from, to; /* live as long as the map */
	} * pairs;
	uint32_t n, cap;
};

/*
 * Reads `path` ("-": the standard input): a JSON object of strings, or lines of two columns parted by a tab; empty lines
 * are passed over. Returns 0, -EINVAL for what is neither (told in `diag`), or -errno of reading.
 */
int stfs_rename_map_read(const char *path, struct stfs_diag *diag, struct stfs_rename_map *ret);

/* Releases the memory; takes an all-zero one too. */
void stfs_rename_map_fini(struct stfs_rename_map *map);
