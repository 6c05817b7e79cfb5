/* SPDX-License-Identifier: Apache-2.0 */
/* The files of .safetensors: which one takes what words, and what the readable ones say about a commit. */
#pragma once

#include <stdint.h>

#include "slice.h"
#include "view.h"

enum stfs_control_kind {
	STFS_CONTROL_NONE, /* no file of .safetensors */
	STFS_CONTROL_TEXT, /* to be read */
	STFS_CONTROL_COMMIT,
	STFS_CONTROL_DISCARD,
};

/* What kind of control file an inode number stands for. */
enum stfs_control_kind stfs_view_control_kind(const struct stfs_view *view, uint64_t ino);

/* Sets the text of `result` (copied): sentences, one a line. Without memory for it, the text is empty. */
void stfs_view_set_result(struct stfs_view *view, struct stfs_slice text);

/*
 * Sets what `progress` says: "commit DONE TOTAL", bytes; both are 0 as long as they are not known. stfs_view_end_progress makes it
 * "idle" again.
 */
void stfs_view_set_progress(struct stfs_view *view, uint64_t done, uint64_t total);
void stfs_view_end_progress(struct stfs_view *view);
