/* SPDX-License-Identifier: Apache-2.0 */
/* Names that were spelt in another way than the tree does. Private to the model layer; called with the tree locked. */
#pragma once

#include "view_change.h"

/*
 * Moves the directory of a tensor of the model to the place its name has, where the next mount shows it: "a.b" was made with one
 * mkdir, and is a/b. Scratch files in it, which the journal knows by their place, stay, and then only its own files move. Returns
 * 0, -EFBIG or -ENOMEM.
 */
int stfs_view_canonicalize(struct stfs_view *view, uint32_t node) STFS_MUST_CHECK;

/*
 * Tells where that will take the attributes of the directory of the tensor `name`. Returns 1 with the path appended to `ret`, 0
 * when the directory stays, or another that is there has some of its own, or -ENOMEM.
 */
int stfs_view_canonical_path(const struct stfs_view *view, uint32_t node, struct stfs_slice name, struct stfs_buf *ret);
