/* SPDX-License-Identifier: Apache-2.0 */
/* One model: one file, or the shards of a directory, seen as one list of tensors. Immutable once opened. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cleanup.h"
#include "diag.h"
#include "index.h"
#include "report.h"
#include "snapshot.h"

#define STFS_MODEL_TENSORS_MAX 4000000u /* our own bound on memory: tensors of all files of a model */

struct stfs_model_options {
	bool lax;          /* accept NUL padding and trailing bytes */
	bool partial;      /* mount the whole shards of a damaged set */
	const char *index; /* file name of the index (or single file) to take, NULL: choose; borrowed during the call */
	enum stfs_io io;
};

/* A tensor of a model: which file, and which row of its header. */
struct stfs_entry {
	uint32_t file;   /* into files */
	uint32_t tensor; /* into the tensors of that file's header */
};

struct stfs_model {
	char *source;                      /* what was opened, as it was given */
	char *name;                        /* the same as shown in messages (escaped) */
	struct stfs_model_options options; /* how it was opened; `index` is not kept */
	char *label;  /* for a default mountpoint: "model" of model.safetensors, or the directory's name */
	bool sharded; /* came from a directory with several files */
	bool damaged; /* -o partial left something out */
	int dir_fd;   /* the folder its files are in */
	char *folder; /* the same before their names in messages, "" for the working directory; NULL: the source is the file */
	struct stfs_snapshot **files; /* one reference each */
	char **file_names;            /* relative to the folder, as they are (stfs_snapshot_name is for messages) */
	char *new_name; /* of a model that has no file yet: what that is to be called, NULL: as files are at the Hub */
	uint32_t n_files;
	struct stfs_index *index;   /* NULL without one */
	char *index_name;           /* its file name, NULL without one */
	struct stfs_entry *entries; /* tensors in order: by file, then by offset */
	uint32_t n_entries;
	/* of all files, each key once (the first file wins); borrowed from the headers */
	struct stfs_metadata_entry *metadata;
	uint32_t n_metadata;
	uint64_t data_size; /* bytes of all entries */
};

/*
 * Opens `source`, a file or a directory. Findings go to `report` (every one that can be found; a warning where a choice
 * was made). Returns 0, -EBADMSG when the model breaks the format, -EFBIG over our limits, -ENOENT and the like for what
 * cannot be read (said in `report` too), -ENOMEM. The caller frees *ret_model.
 */
int stfs_model_open(const char *source, const struct stfs_model_options *options, struct stfs_report *report,
		    struct stfs_model **ret_model);

/*
 * Opens what now lies in the folder of `old`: `names` (borrowed) are its files relative to the folder, or with an `index` it
 * says which they are. As stfs_model_open otherwise, but by the folder's descriptor: it may have been moved.
 */
int stfs_model_reopen(const struct stfs_model *old, const char *index, char *const *names, uint32_t n_names,
		      struct stfs_report *report, struct stfs_model **ret_model);

struct stfs_location;

/*
 * A model without files or tensors, whose first commit makes it at `location` (stfs_locate_new; label and folder are taken from
 * there and left as they are). Returns 0, -ENOMEM or -errno.
 */
int stfs_model_new_empty(const char *source, const struct stfs_model_options *options,
			 const struct stfs_location *location, struct stfs_model **ret_model);

/* Frees a model and drops its files; takes NULL. */
void stfs_model_free(struct stfs_model *model);
STFS_DEFINE_CLEANUP(struct stfs_model, stfs_model_free)

#define STFS_ENTRY_NONE UINT32_MAX

/* The entry of the tensor called `name`, or STFS_ENTRY_NONE. */
uint32_t stfs_model_find(const struct stfs_model *model, struct stfs_slice name);

/* The same, which asks the file of the entry `near` first (STFS_ENTRY_NONE: of none): cheaper for many that stand together. */
uint32_t stfs_model_find_near(const struct stfs_model *model, struct stfs_slice name, uint32_t near);

/* The tensor an entry stands for; lives as long as the model. */
const struct stfs_tensor *stfs_model_tensor(const struct stfs_model *model, uint32_t entry);

/* The file an entry lies in; borrowed. */
struct stfs_snapshot *stfs_model_file(const struct stfs_model *model, uint32_t entry);

/* Offset of an entry's bytes in its file. */
uint64_t stfs_model_offset(const struct stfs_model *model, uint32_t entry);
