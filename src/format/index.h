/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a sharded checkpoint, `*.safetensors.index.json`: which file holds which tensor. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"
#include "report.h"
#include "slice.h"
#include "table.h"

#define STFS_INDEX_MAX UINT64_C(100000000) /* bytes of an index that is still read */

struct stfs_index_entry {
	struct stfs_slice tensor; /* unescaped; lives as long as the index */
	uint32_t file;            /* into files */
};

/* A validated index: immutable, owns its text. */
struct stfs_index {
	char *text;
	struct stfs_index_entry *entries; /* in the order of the text */
	uint32_t n_entries;
	struct stfs_slice *files; /* proven plain relative names, each once, in order of first use */
	uint32_t n_files;
	bool has_total_size;
	double total_size; /* as written; stale or a float in real files */
	bool has_total_parameters;
	double total_parameters;
	struct stfs_slice metadata; /* text of the `metadata` object, empty when absent */
	struct stfs_decoded *decoded;
	struct stfs_table names; /* by tensor into entries */
};

/*
 * Parses an index: strict JSON, no duplicate names, `weight_map` an object of name to file name, each file name a plain
 * relative path (see stfs_index_file_error). `text` (heap, `len` bytes and a NUL) is owned by the index on
 * success, and stays the caller's on failure. Findings go to `report`. Returns 0, -EBADMSG, -EFBIG or -ENOMEM.
 */
int stfs_index_parse(char *text, size_t len, struct stfs_report *report, struct stfs_index **ret_index);

/* The entry of a tensor, or NULL. */
const struct stfs_index_entry *stfs_index_find(const struct stfs_index *index, struct stfs_slice tensor);

/* Frees an index; takes NULL. */
void stfs_index_free(struct stfs_index *index);
STFS_DEFINE_CLEANUP(struct stfs_index, stfs_index_free)

/*
 * Judges a file name of a weight_map without looking at the disk: it must be relative, without "..", backslash, drive
 * letter, NUL or control bytes, and end in .safetensors; folders and "./" are allowed. Returns NULL when it is plain,
 * else what is wrong with it ("is absolute"), static storage.
 */
const char *stfs_index_file_error(struct stfs_slice name);
