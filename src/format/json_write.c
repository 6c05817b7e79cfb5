/* SPDX-License-Identifier: Apache-2.0 */
#include "json_write.h"

#include <stdint.h>
#include <stdio.h>

/* The escape of one byte, or NULL when it stands for itself. `scratch` holds a \u00xx. */
static const char *escape_of(uint8_t c, char scratch[8])
{
	switch (c) {
	case '"':
		return "\\\"";
	case '\\':
		return "\\\\";
	case '\b':
		return "\\b";
	case '\f':
		return "\\f";
	case '\n':
		return "\\n";
	case '\r':
		return "\\r";
	case '\t':
		return "\\t";
	default:
		if (c >= 0x20)
			return NULL;
		snprintf(scratch, 8, "\\u%04x", c);
		return scratch;
	}
}

int stfs_json_write_string(struct stfs_buf *buf, struct stfs_slice s)
{
	size_t from = 0;
	char scratch[8];
	int r = stfs_buf_append_char(buf, '"');

	for (size_t i = 0; r == 0 && i < s.len; i++) {
		const char *escape = escape_of((uint8_t)s.p[i], scratch);

		if (!escape)
			continue;
		r = stfs_buf_append(buf, s.p + from, i - from);
		if (r == 0)
			r = stfs_buf_append_str(buf, escape);
		from = i + 1;
	}
	if (r == 0)
		r = stfs_buf_append(buf, s.p + from, s.len - from);
	return r < 0 ? r : stfs_buf_append_char(buf, '"');
}
