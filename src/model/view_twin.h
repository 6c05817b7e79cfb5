/* SPDX-License-Identifier: Apache-2.0 */
/* One tensor name in two places: "a.b" and a/b. Private to the model layer; called with the tree locked. */
#pragma once

#include "view_private.h"

/*
 * Whether a tensor stands elsewhere that has the name which a new directory `name` in `dir` would spell; `except` and what is
 * below it does not count (STFS_NODE_NONE: all does). What is not found, since memory is short or the path is very long, is
 * told by status and commit.
 */
bool stfs_view_has_twin(const struct stfs_view *view, uint32_t dir, struct stfs_slice name, uint32_t except);
