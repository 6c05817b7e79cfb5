/* SPDX-License-Identifier: Apache-2.0 */
#include "parse_size.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "macros.h"

static const struct {
	const char *name;
	double bytes;
} units[] = {
	{ "", 1 },      { "B", 1 },        { "KB", 1e3 },     { "MB", 1e6 },     { "GB", 1e9 },     { "TB", 1e12 },
	{ "PB", 1e15 }, { "KiB", 0x1p10 }, { "MiB", 0x1p20 }, { "GiB", 0x1p30 }, { "TiB", 0x1p40 }, { "PiB", 0x1p50 },
};

bool stfs_parse_size(const char *text, uint64_t *ret_bytes)
{
	/* Checked first: strtod would also take signs, exponents, "nan" and hexadecimal numbers. */
	size_t len = strspn(text, "0123456789."), digits = strspn(text, "0123456789");
	const char *unit = text + len + strspn(text + len, " ");
	double number;
	char *end;

	if (len == 0 || digits == 0)
		return false;
	number = strtod(text, &end);
	if (end != text + len)
		return false;
	for (size_t i = 0; i < STFS_ARRAY_SIZE(units); i++) {
		double bytes = number * units[i].bytes;

		if (strcasecmp(unit, units[i].name) != 0)
			continue;
		if (bytes < 1 || bytes >= 0x1p63)
			return false;
		*ret_bytes = (uint64_t)bytes;
		return true;
	}
	return false;
}
