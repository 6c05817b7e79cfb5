/* SPDX-License-Identifier: Apache-2.0 */
/* What can be said after -o. One table knows the names, what they do, and what --help says of them. */
#pragma once

#include <stdbool.h>

#include "buf.h"
#include "diag.h"
#include "model.h"
#include "view.h"

/* Embedded; all zero is the default of everything. */
struct stfs_mount_options {
	struct stfs_model_options model; /* its `index` is `index` below */
	struct stfs_view_options view;
	bool read_only;
	bool create;    /* a source that is not there is an empty model */
	char *stage;    /* directory of what is staged, NULL: beside the model; owned */
	bool direct_io; /* do not keep what was read in the kernel's cache */
	bool allow_other, allow_root;
	unsigned max_read;    /* bytes, 0: as the kernel likes */
	char *index;          /* owned */
	struct stfs_buf fuse; /* what libfuse gets, joined with ',' */
};

/* Releases what the options own. */
void stfs_mount_options_fini(struct stfs_mount_options *options);
#define _cleanup_mount_options_ _cleanup_(stfs_mount_options_fini)

/*
 * Reads one argument of -o, "flat,npy=list": names joined with ','; `\,` and `\\` stand for a comma and a backslash in
 * a value. May be called several times, the last word counts. Returns 0, -EINVAL with a sentence in `diag`, or -ENOMEM.
 */
int stfs_mount_options_parse(struct stfs_mount_options *options, const char *text, struct stfs_diag *diag);

/*
 * The `i`th line of the options' help: "npy=hide|list|off" and what it does, both static. Returns false past the end.
 */
bool stfs_mount_option_help(size_t i, const char **ret_name, const char **ret_text);
