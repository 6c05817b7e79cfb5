/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of a source make up its model. Looks at names only; no weight file is opened. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"
#include "report.h"

/* The files of a model. Embedded; released with stfs_location_fini. */
struct stfs_location {
	int dir_fd;   /* the folder all names are relative to */
	char *folder; /* the same as messages name it, "" for the working directory; NULL: the source is the file */
	char *label;  /* for a default mountpoint: "model" of model.safetensors, the name of a directory */
	char *index;  /* file name of the index, or NULL */
	char **files; /* names of the weight files in order; none yet when there is an index */
	uint32_t n_files;
	bool unrelated; /* several files whose names are not those of one set: opened only to say why they are refused */
	bool in_snapshot; /* dir_fd is a snapshot below the source, the root of a Hugging Face cache entry */
	bool incomplete;  /* numbers are missing, and partial was asked for */
	char **others;    /* weight files of the folder beside those of a model: with an index, all of them */
	uint32_t n_others;
};

/*
 * Finds the files of `source` (a file, an index, or a directory). `pick` (NULL: choose) names the index or weight file
 * to take in a directory. `partial` accepts a numbered set with gaps. A choice that was made is a warning in `report`; no
 * clear choice is a violation that lists the candidates. Returns 0, -EBADMSG when nothing can be chosen, or the errno of
 * what cannot be read (also said in `report`), -ENOMEM.
 */
int stfs_locate(const char *source, const char *pick, bool partial, struct stfs_report *report,
		struct stfs_location *ret);

/*
 * Finds the place of a model that is not there yet: "NAME.safetensors" (`files` is its name alone), or "NAME/", a directory that
 * is empty, or made (*ret_made). Returns 0, -EINVAL for another name, -EEXIST, -ENOTEMPTY, -errno, with a violation in `report`.
 */
int stfs_locate_new(const char *source, struct stfs_report *report, struct stfs_location *ret, bool *ret_made);

/* Closes the folder and frees the names. */
void stfs_location_fini(struct stfs_location *location);
