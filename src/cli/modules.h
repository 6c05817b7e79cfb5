/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modules of a model as a short tree for people: siblings that differ in a number only, such as the layers of a
 * transformer, are one line, and the tree is cut at the depth that fits.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "model.h"

/* One line. */
struct stfs_module {
	unsigned depth;       /* 0 is the top */
	struct stfs_buf name; /* "layers.{0..31}"; raw, but for the braces */
	uint64_t count;       /* how many modules or tensors the line stands for */
	uint64_t bytes;       /* of one of them; all are alike */
};

struct stfs_modules {
	struct stfs_module *lines;
	size_t n, cap;
	size_t max;          /* lines there is room for */
	uint64_t more;       /* lines that did not fit, when not even the top level does */
	uint64_t more_bytes; /* what they stand for, all in all */
};

/*
 * Makes the tree of `model` (borrowed during the call), as deep as fits into `max_lines` (1 or more). Returns 0 or
 * -ENOMEM. The caller calls stfs_modules_fini.
 */
int stfs_modules_init(const struct stfs_model *model, size_t max_lines, struct stfs_modules *ret_modules)
	STFS_MUST_CHECK;

/* Releases the memory. */
void stfs_modules_fini(struct stfs_modules *modules);
