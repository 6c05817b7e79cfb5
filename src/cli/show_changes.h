/* SPDX-License-Identifier: Apache-2.0 */
/* What `status` and `diff` share: collecting what is staged for a model, or asking its mount, and printing it. */
#pragma once

#include "changes.h"
#include "command.h"

/* A way to tell of changes: here, and by a file of a mount. */
struct stfs_change_text {
	int (*append)(const struct stfs_changes *changes, const struct stfs_model *model, struct stfs_buf *buf);
	const char *control; /* the file in .safetensors that says the same */
};

/* The switches of both. */
#define STFS_SHOW_CHANGES_ROWS [0] = { "--json", "one object, for programs" }, STFS_SOURCE_ROWS

/* Runs such a command. Returns an enum stfs_exit. */
int stfs_show_changes(const struct stfs_command *command, int argc, char **argv, const struct stfs_change_text *text,
		      const struct stfs_change_text *json);
