/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the files of a model and joining them; private to the model layer. */
#pragma once

#include "index.h"
#include "locate.h"
#include "model.h"

/* A model being opened. All but the array is borrowed. */
struct stfs_opening {
	struct stfs_model *model;
	struct stfs_location *location;
	const struct stfs_model_options *options;
	struct stfs_report *report;
	bool is_set;          /* of several files, or of an index: one may be missing */
	uint32_t *index_file; /* model file → file of the index, UINT32_MAX for none */
};

/*
 * Reads the index and opens the files it names, or those of the location. A file that is missing or damaged is a
 * violation; with partial it is left out with a warning. Returns 0 or an error as stfs_model_open.
 */
int stfs_opening_files(struct stfs_opening *opening);

/* Joins the tensors of the open files into the model's entries and compares them with the index. */
int stfs_opening_entries(struct stfs_opening *opening);

/* Releases what the opening owns; the files are the model's. */
void stfs_opening_fini(struct stfs_opening *opening);
