/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as people write them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Reads "5GB", "1.5 mb" or "500000": a number, also with a fraction, and a unit in any case: B, KB, MB, GB, TB, PB are
 * powers of 1000, as model hubs count, and KiB to PiB powers of 1024. Returns false, and leaves *ret_bytes alone, for
 * anything else, for less than a byte, and beyond what a file can have.
 */
bool stfs_parse_size(const char *text, uint64_t *ret_bytes);
