/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a file of a model, which may be anything. */
#pragma once

#include <sys/stat.h>

#include "macros.h"
#include "report.h"

/*
 * Opens `name` relative to `dir_fd` for reading and demands a regular file; a final symlink is followed. It never blocks (a
 * pipe, a terminal). A link of a Hugging Face cache that a copy turned into text ("../../blobs/HASH", as git and archive
 * tools do where links cannot be made) is followed too. Returns the descriptor, owned by the caller, or -errno, also said
 * in `report` as a violation.
 */
int stfs_open_regular(int dir_fd, const char *name, struct stfs_report *report, struct stat *ret_st) STFS_MUST_CHECK;
