/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for people, three digits or so. */
#pragma once

#include <stdint.h>

/* A formatted number; used as `stfs_format_size(n).text` within one expression. */
struct stfs_formatted {
	char text[32];
};

/* Bytes in decimal units, as model hubs count: "0 B", "1.2 kB", "12.3 MB", "123 GB". */
struct stfs_formatted stfs_format_size(uint64_t bytes);

/* A count: "999", "1.2K", "12.3M", "7.0B". */
struct stfs_formatted stfs_format_count(uint64_t count);
