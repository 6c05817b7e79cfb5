/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of .safetensors, with what is staged. Private to the model layer; called with the tree locked. */
#pragma once

#include "view_private.h"

/*
 * Appends tensors.tsv: the tensors a commit would write, and where their bytes are now; "-" for file and offset of those that
 * are staged. Tensors that are not complete are left out.
 */
int stfs_view_write_tensors(struct stfs_buf *buf, struct stfs_view *view) STFS_MUST_CHECK;

/* Appends header.json: the headers a commit would write, or those of the model when it would refuse. */
int stfs_view_write_header(struct stfs_buf *buf, struct stfs_view *view) STFS_MUST_CHECK;
