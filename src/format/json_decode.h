/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of JSON that stfs_json has already validated. The only module that uses json-c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cleanup.h"
#include "json_scan.h"
#include "slice.h"

/* Owns decoded strings; they live until it is freed. */
struct stfs_decoded;

/* A new, empty store. Returns 0 or -ENOMEM. */
int stfs_decoded_new(struct stfs_decoded **ret) STFS_MUST_CHECK;

/* Frees the store and all its strings; takes NULL. */
void stfs_decoded_free(struct stfs_decoded *decoded);
STFS_DEFINE_CLEANUP(struct stfs_decoded, stfs_decoded_free)

/*
 * The unescaped bytes of a validated string literal: borrowed from the text when it has no escape, else owned by
 * `decoded`. Returns 0, -EBADMSG for an escape json-c cannot decode, or -ENOMEM.
 */
int stfs_json_decode(struct stfs_decoded *decoded, const struct stfs_json_string *string, struct stfs_slice *ret)
	STFS_MUST_CHECK;

/* The double that a validated JSON number stands for; false when `text` is no number. */
bool stfs_json_decode_number(struct stfs_slice text, double *ret);
