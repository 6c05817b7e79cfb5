/* SPDX-License-Identifier: Apache-2.0 */
#include "quote.h"

#include <stdint.h>
#include <stdio.h>

#include "utf8.h"

#define ESCAPE_MAX 16 /* "\u{10ffff}" and its NUL fit */

/* Characters that a terminal does not show or that change the order of what it shows: first and last of each run. */
static const struct range {
	uint32_t first, last;
} hidden[] = {
	{ 0x80, 0x9f },       /* C1 controls */
	{ 0xad, 0xad },       /* soft hyphen */
	{ 0x034f, 0x034f },   /* combining grapheme joiner */
	{ 0x061c, 0x061c },   /* Arabic letter mark */
	{ 0x180e, 0x180e },   /* Mongolian vowel separator */
	{ 0x200b, 0x200f },   /* zero-width, and left and right marks */
	{ 0x2028, 0x202e },   /* line and paragraph separators, embeddings and overrides */
	{ 0x2060, 0x206f },   /* invisible operators, isolates */
	{ 0xfeff, 0xfeff },   /* byte order mark */
	{ 0xfff9, 0xfffb },   /* interlinear annotation */
	{ 0xe0000, 0xe007f }, /* tags */
};

static bool is_hidden(uint32_t code)
{
	for (size_t i = 0; i < STFS_ARRAY_SIZE(hidden); i++)
		if (code >= hidden[i].first && code <= hidden[i].last)
			return true;
	return false;
}

/*
 * Writes the character at the start of `s` (not empty) to `out`, escaped if it has to be. Returns the bytes written;
 * *ret_used is how many bytes of `s` it stands for.
 */
static size_t escape_char(struct stfs_slice s, bool in_quotes, char out[ESCAPE_MAX], size_t *ret_used)
{
	uint32_t code = 0;
	size_t n = stfs_utf8_next(s, &code);

	*ret_used = n ? n : 1;
	if (n == 0 || code < 0x20 || code == 0x7f)
		return (size_t)snprintf(out, ESCAPE_MAX, "\\x%02x", (unsigned char)s.p[0]);
	if (is_hidden(code))
		return (size_t)snprintf(out, ESCAPE_MAX, "\\u{%x}", (unsigned)code);
	if (code == '\\' || (code == '"' && in_quotes)) {
		memcpy(out, (char[]){ '\\', (char)code }, 2);
		return 2;
	}
	memcpy(out, s.p, n);
	return n;
}

struct stfs_quoted stfs_quote(struct stfs_slice s)
{
	static const char ellipsis[] = "…";
	struct stfs_quoted q;
	size_t limit = sizeof(q.text) - 2; /* the closing quote and the NUL */
	size_t len = 0, cut;

	q.text[len++] = '"';
	cut = len;
	while (s.len) {
		char escaped[ESCAPE_MAX];
		size_t used, n = escape_char(s, true, escaped, &used);

		if (len + n > limit) {
			len = cut;
			memcpy(q.text + len, ellipsis, strlen(ellipsis));
			len += strlen(ellipsis);
			break;
		}
		memcpy(q.text + len, escaped, n);
		len += n;
		if (len + strlen(ellipsis) <= limit)
			cut = len;
		s.p += used;
		s.len -= used;
	}
	q.text[len++] = '"';
	q.text[len] = '\0';
	return q;
}

int stfs_append_printable(struct stfs_buf *buf, struct stfs_slice s)
{
	int r = stfs_buf_reserve(buf, s.len);

	while (r == 0 && s.len) {
		char escaped[ESCAPE_MAX];
		size_t used, n = escape_char(s, false, escaped, &used);

		r = stfs_buf_append(buf, escaped, n);
		s.p += used;
		s.len -= used;
	}
	/* An empty name must leave an empty C string too. */
	return r < 0 ? r : stfs_buf_append(buf, "", 0);
}
