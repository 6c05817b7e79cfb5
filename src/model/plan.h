/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a commit will write: for each file its header and an ordered list of copies. Pure: it reads nothing and writes nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "changes.h"
#include "diag.h"
#include "report.h"

struct stfs_plan_options {
	bool sort;               /* the reference writer's order: dtype, then name */
	bool reshape;            /* into shards of max_shard_size by the Hub's rules, or one file when 0 */
	uint64_t max_shard_size; /* bytes of tensors */
	bool all;                /* write every file, changed or not (for another place) */
	bool format_pt;          /* add {"format":"pt"} where there is no format */
	bool keep_offset;        /* pad the header so that data starts at the same offset modulo 4096, for cloning */
	const char *new_name;    /* file name of a model that has no file yet, NULL: "model.safetensors"; borrowed */
};

/* A run of bytes of the new file. */
struct stfs_plan_copy {
	uint64_t offset; /* in the new file */
	uint64_t size;
	uint32_t entry;            /* of the model: its bytes, untouched; STFS_ENTRY_NONE: those of `data` */
	struct stfs_content *data; /* borrowed from the changes */
};

/* One file to be written, or left as it is. */
struct stfs_plan_file {
	struct stfs_slice name;        /* in its folder */
	uint32_t old_file;             /* of the model, UINT32_MAX: new */
	bool changed;                  /* false: the old file is right as it is */
	struct stfs_buf header;        /* length word and JSON */
	struct stfs_plan_copy *copies; /* in the order of the new file */
	uint32_t n_copies;
	uint64_t size;     /* bytes of the whole file */
	uint32_t *tensors; /* of the changes, in the order of the file */
	uint32_t n_tensors;
};

struct stfs_plan {
	struct stfs_plan_file *files;
	uint32_t n_files;
	struct stfs_slice index_name; /* empty: no index is written */
	struct stfs_buf index;        /* its text */
	uint32_t *removed;            /* files of the model that have no tensor left */
	uint32_t n_removed;
	uint64_t bytes; /* to be written, all in all */
	struct stfs_arena strings;
};

/*
 * Plans a commit. Everything that stands in the way is a violation in `report` (incomplete tensors, two of one name, a name
 * the format cannot hold, a header over its limit, damaged content); a key that looks like litter is a warning. Returns 0,
 * -EINVAL after violations, -ENOMEM. The plan borrows from `model` and `changes`.
 */
int stfs_plan_make(const struct stfs_model *model, const struct stfs_changes *changes,
		   const struct stfs_plan_options *options, struct stfs_report *report, struct stfs_plan **ret);

/* Frees a plan; takes NULL. */
void stfs_plan_free(struct stfs_plan *plan);
STFS_DEFINE_CLEANUP(struct stfs_plan, stfs_plan_free)
