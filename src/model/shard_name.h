/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the names of weight files and indexes say, by the conventions of transformers, diffusers and the Hub
 * (docs/FORMAT.md): stem.safetensors, stem.variant.safetensors, stem-00001-of-00003.safetensors, and their indexes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "slice.h"

/* Slices point into the name that was parsed. */
struct stfs_shard_name {
	struct stfs_slice stem;    /* "model" */
	struct stfs_slice variant; /* "fp16", or empty */
	bool numbered;             /* has -NNNNN-of-NNNNN */
	uint64_t number, total;
};

/* Parses the name of a weight file. Returns false when it does not end in .safetensors. */
bool stfs_shard_name_parse(struct stfs_slice name, struct stfs_shard_name *ret);

/*
 * Parses the name of an index: stem.safetensors.index.json, stem.safetensors.index.VARIANT.json, and the older
 * stem.safetensors.VARIANT.index.json. Only stem and variant are set. Returns false when it is none.
 */
bool stfs_index_name_parse(struct stfs_slice name, struct stfs_shard_name *ret);

/*
 * The order of a model's files, as strcmp has it but for numbers: not all who split a model pad those with zeros, and 10
 * comes after 9. 0 only for equal names.
 */
int stfs_shard_name_compare(const char *a, const char *b);

/* True when two numbered names belong to one sequence: same stem, variant and total. */
bool stfs_shard_name_same_set(const struct stfs_shard_name *a, const struct stfs_shard_name *b);
