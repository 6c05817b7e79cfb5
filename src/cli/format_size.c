/* SPDX-License-Identifier: Apache-2.0 */
#include "format_size.h"

#include <inttypes.h>
#include <stdio.h>

/* Divides and rounds half up, without the overflow of adding half first. */
static uint64_t divide(uint64_t value, uint64_t by)
{
	return value / by + (value % by >= by - by / 2);
}

/* `units` has a name for each power of 1000 from 10^3 to 10^18. */
static struct stfs_formatted format_scaled(uint64_t value, const char *unit_0, const char *const units[6])
{
	struct stfs_formatted f;
	uint64_t unit = 1000;
	int i = 0;

	if (value < 1000) {
		snprintf(f.text, sizeof(f.text), "%" PRIu64 "%s", value, unit_0);
		return f;
	}
	/* Rounding may reach 1000, which is one of the next unit. */
	while (i < 5 && divide(value, unit) >= 1000) {
		unit *= 1000;
		i++;
	}
	if (divide(value, unit / 10) < 1000)
		snprintf(f.text, sizeof(f.text), "%" PRIu64 ".%" PRIu64 "%s", divide(value, unit / 10) / 10,
			 divide(value, unit / 10) % 10, units[i]);
	else
		snprintf(f.text, sizeof(f.text), "%" PRIu64 "%s", divide(value, unit), units[i]);
	return f;
}

struct stfs_formatted stfs_format_size(uint64_t bytes)
{
	static const char *const units[6] = { " kB", " MB", " GB", " TB", " PB", " EB" };

	return format_scaled(bytes, " B", units);
}

struct stfs_formatted stfs_format_count(uint64_t count)
{
	static const char *const units[6] = { "K", "M", "B", "T", "P", "E" };

	return format_scaled(count, "", units);
}
