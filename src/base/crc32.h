/* SPDX-License-Identifier: Apache-2.0 */
/* The CRC-32 of Ethernet, gzip and zlib. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The checksum of what gave `crc` (0 of nothing), followed by `len` bytes at `data`. */
uint32_t stfs_crc32(uint32_t crc, const void *data, size_t len);
