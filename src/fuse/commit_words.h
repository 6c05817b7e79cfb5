/* SPDX-License-Identifier: Apache-2.0 */
/* The line that is written to .safetensors/commit. */
#pragma once

#include "commit.h"

/*
 * Reads "commit" and what may follow it, parted by blanks: sort, single, max-shard-size=BYTES, format=pt, dry-run, and at last
 * output=PATH, an absolute path up to the end of the line. `line` is changed, and `options` borrows from it. Returns 0 or
 * -EINVAL.
 */
int stfs_commit_words_parse(char *line, struct stfs_commit_options *ret_options);
