/* SPDX-License-Identifier: Apache-2.0 */
#include "json_scan.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void stfs_json_init(struct stfs_json *json, struct stfs_slice text)
{
	*json = (struct stfs_json){ .text = text.p, .p = text.p, .end = text.p + text.len };
}

/* Names the byte at the present place for a message. */
static void describe_place(const struct stfs_json *json, char ret[16])
{
	uint8_t c;

	if (json->p >= json->end) {
		snprintf(ret, 16, "the end");
		return;
	}
	c = (uint8_t)*json->p;
	if (c > 0x20 && c < 0x7f)
		snprintf(ret, 16, "'%c'", c);
	else
		snprintf(ret, 16, "byte 0x%02X", c);
}

int stfs_json_fail(struct stfs_json *json, const char *what)
{
	char found[16];

	describe_place(json, found);
	stfs_diag_set(&json->error, "invalid JSON at byte %zu: expected %s, found %s", (size_t)(json->p - json->text),
		      what, found);
	return -EBADMSG;
}

int stfs_json_enter(struct stfs_json *json, char open)
{
	if (stfs_json_peek(json) != open)
		return stfs_json_fail(json, open == '{' ? "an object" : "an array");
	if (json->depth >= STFS_JSON_DEPTH_MAX)
		return stfs_json_fail(json, "no more than 127 levels of nesting");
	json->depth++;
	json->p++;
	return 0;
}

int stfs_json_more(struct stfs_json *json, char close, bool first)
{
	int c = stfs_json_peek(json);

	if (c == close) {
		json->p++;
		json->depth--;
		return 0;
	}
	if (first)
		return 1;
	if (c != ',')
		return stfs_json_fail(json, close == '}' ? "',' or '}'" : "',' or ']'");
	json->p++;
	if (stfs_json_peek(json) == close)
		return stfs_json_fail(json, close == '}' ? "a key after ','" : "a value after ','");
	return 1;
}

/* The value of each hexadecimal digit, one more than it is; 0 for every other byte. */
static const uint8_t hex_digits[256] = {
	['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
	['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
	['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

/* Reads \uXXXX at the present place into *ret. The NUL behind the text is no digit, so that no end need be looked for. */
static int scan_unicode_escape(struct stfs_json *json, unsigned *ret)
{
	unsigned v = 0;

	if (json->end - json->p < 2 || json->p[0] != '\\' || json->p[1] != 'u')
		return stfs_json_fail(json, "the \\u of a low surrogate");
	json->p += 2;
	for (int i = 0; i < 4; i++, json->p++) {
		unsigned digit = hex_digits[(uint8_t)*json->p];

		if (digit == 0)
			return stfs_json_fail(json, "four hexadecimal digits after \\u");
		v = v << 4 | (digit - 1);
	}
	*ret = v;
	return 0;
}

/* Checks one escape, surrogates in pairs. */
static int scan_escape(struct stfs_json *json)
{
	unsigned high, low;
	int r;

	if (json->end - json->p < 2)
		return stfs_json_fail(json, "an escape");
	if (json->p[1] != 'u') {
		json->p++;
		if (!*json->p || !strchr("\"\\/bfnrt", *json->p))
			return stfs_json_fail(json, "one of \"\\/bfnrtu after a backslash");
		json->p++;
		return 0;
	}
	r = scan_unicode_escape(json, &high);
	if (r < 0)
		return r;
	if (high >= 0xdc00 && high <= 0xdfff)
		return stfs_json_fail(json, "no low surrogate without a high one before it");
	if (high < 0xd800 || high > 0xdbff)
		return 0;
	r = scan_unicode_escape(json, &low);
	if (r < 0)
		return r;
	return low >= 0xdc00 && low <= 0xdfff ? 0 : stfs_json_fail(json, "a low surrogate after a high one");
}

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* True when one of eight bytes is a quote, a backslash or a control character (each test finds a zero byte, or less). */
static bool has_special(uint64_t word)
{
	uint64_t quote = word ^ EACH('"'), backslash = word ^ EACH('\\');

	return (((word - EACH(0x20)) & ~word) | ((quote - EACH(1)) & ~quote) | ((backslash - EACH(1)) & ~backslash)) &
	       EACH(0x80);
}

/* Steps over bytes of a string that stand for themselves, eight at a time. */
static void skip_plain(struct stfs_json *json)
{
	uint64_t word;

	while (json->end - json->p >= (ptrdiff_t)sizeof(word)) {
		memcpy(&word, json->p, sizeof(word));
		if (has_special(word))
			return;
		json->p += sizeof(word);
	}
}

int stfs_json_string(struct stfs_json *json, struct stfs_json_string *ret)
{
	bool escaped = false;
	const char *start;

	if (stfs_json_peek(json) != '"')
		return stfs_json_fail(json, "a string");
	start = ++json->p;
	for (;;) {
		skip_plain(json);
		if (json->p >= json->end)
			return stfs_json_fail(json, "the closing '\"' of a string");
		if (*json->p == '"')
			break;
		if ((uint8_t)*json->p < 0x20)
			return stfs_json_fail(json, "no control character inside a string");
		if (*json->p == '\\') {
			int r = scan_escape(json);

			if (r < 0)
				return r;
			escaped = true;
		} else {
			json->p++;
		}
	}
	*ret = (struct stfs_json_string){ { start, (size_t)(json->p - start) }, escaped };
	json->p++;
	return 0;
}

int stfs_json_key(struct stfs_json *json, struct stfs_json_string *ret)
{
	struct stfs_json_string key;
	int r;

	if (stfs_json_peek(json) != '"')
		return stfs_json_fail(json, "a key in double quotes");
	r = stfs_json_string(json, &key);
	if (r < 0)
		return r;
	if (stfs_json_peek(json) != ':')
		return stfs_json_fail(json, "':' after a key");
	json->p++;
	*ret = key;
	return 0;
}

static bool is_digit(const struct stfs_json *json, const char *p)
{
	return p < json->end && *p >= '0' && *p <= '9';
}

int stfs_json_uint(struct stfs_json *json, uint64_t *ret)
{
	const char *p, *start;
	uint64_t v = 0;

	stfs_json_peek(json);
	start = p = json->p;
	/* No 19 digits overflow; the text ends in a NUL, so that no end need be looked for. */
	for (; *p >= '0' && *p <= '9' && p - start < 19; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	if (p == start || (*start == '0' && p - start > 1))
		return stfs_json_fail(json, "a whole number");
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return stfs_json_fail(json, "a number below 2^64");
	}
	if (*p == '.' || *p == 'e' || *p == 'E')
		return stfs_json_fail(json, "a whole number without fraction or exponent");
	json->p = p;
	*ret = v;
	return 0;
}

int stfs_json_uint_list(struct stfs_json *json, uint64_t head[2], uint32_t *ret_n, const char **ret_text)
{
	struct stfs_json start = *json;
	uint32_t n = 0;
	int r;

	if (stfs_json_peek(json) != '[')
		return 0;
	r = stfs_json_enter(json, '[');
	if (r < 0)
		return r;
	*ret_text = json->p;
	while ((r = stfs_json_more(json, ']', n == 0)) > 0) {
		uint64_t v;

		if (stfs_json_uint(json, &v) < 0) {
			*json = start;
			return 0;
		}
		if (n < 2)
			head[n] = v;
		n++;
	}
	*ret_n = n;
	return r < 0 ? r : 1;
}

/*
 * True when the number at `p` is beyond the range of a double, which the reference refuses even in ignored fields. The
 * literal needs no copy: whatever follows it ends it for strtod too, at the latest the NUL after the text.
 */
static bool number_overflows(const char *p)
{
	return isinf(strtod(p, NULL));
}

static int scan_digits(struct stfs_json *json)
{
	if (!is_digit(json, json->p))
		return stfs_json_fail(json, "a digit");
	while (is_digit(json, json->p))
		json->p++;
	return 0;
}

static int scan_number(struct stfs_json *json)
{
	const char *start = json->p;
	int r;

	if (*json->p == '-')
		json->p++;
	if (is_digit(json, json->p) && *json->p == '0' && is_digit(json, json->p + 1))
		return stfs_json_fail(json, "no leading zero");
	r = scan_digits(json);
	if (r == 0 && json->p < json->end && *json->p == '.') {
		json->p++;
		r = scan_digits(json);
	}
	if (r == 0 && json->p < json->end && (*json->p == 'e' || *json->p == 'E')) {
		json->p++;
		if (json->p < json->end && (*json->p == '+' || *json->p == '-'))
			json->p++;
		r = scan_digits(json);
	}
	/* Only an exponent or hundreds of digits can leave the range of a double. */
	if (r == 0 && json->p - start > 4 &&
	    (json->p - start > 300 || memchr(start, 'e', (size_t)(json->p - start)) ||
	     memchr(start, 'E', (size_t)(json->p - start))) &&
	    number_overflows(start)) {
		json->p = start;
		return stfs_json_fail(json, "a number within the range of a double");
	}
	return r;
}

static int scan_literal(struct stfs_json *json, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(json->end - json->p) < n || memcmp(json->p, word, n) != 0)
		return stfs_json_fail(json, "a value");
	json->p += n;
	return 0;
}

/* Skips one value that has nothing inside it. */
static int skip_scalar(struct stfs_json *json)
{
	struct stfs_json_string string;
	int c = stfs_json_peek(json);

	switch (c) {
	case '"':
		return stfs_json_string(json, &string);
	case 't':
		return scan_literal(json, "true");
	case 'f':
		return scan_literal(json, "false");
	case 'n':
		return scan_literal(json, "null");
	default:
		if (c == '-' || (c >= '0' && c <= '9'))
			return scan_number(json);
		return stfs_json_fail(json, "a value");
	}
}

int stfs_json_skip(struct stfs_json *json)
{
	char closers[STFS_JSON_DEPTH_MAX + 1];
	struct stfs_json_string key;
	unsigned open = 0;
	bool first = false;

	/* Each turn stands before a value (a first item may turn out to be the end). */
	for (;;) {
		int c = stfs_json_peek(json), r;

		if (c == '{' || c == '[') {
			r = stfs_json_enter(json, (char)c);
			if (r < 0)
				return r;
			closers[open++] = c == '{' ? '}' : ']';
			first = true;
		} else {
			r = skip_scalar(json);
			if (r < 0)
				return r;
			first = false;
		}
		for (r = 0; open > 0; open--, first = false) {
			r = stfs_json_more(json, closers[open - 1], first);
			if (r != 0)
				break;
		}
		if (r < 0)
			return r;
		if (open == 0)
			return 0;
		if (closers[open - 1] == '}') {
			r = stfs_json_key(json, &key);
			if (r < 0)
				return r;
		}
	}
}

int stfs_json_end(struct stfs_json *json)
{
	return stfs_json_peek(json) < 0 ? 0 : stfs_json_fail(json, "nothing but blanks after the object");
}

const char *stfs_json_kind(struct stfs_json *json)
{
	int c = stfs_json_peek(json);

	switch (c) {
	case '{':
		return "an object";
	case '[':
		return "an array";
	case '"':
		return "a string";
	case 't':
	case 'f':
		return "a boolean";
	case 'n':
		return "null";
	case -1:
		return "the end";
	default:
		return c == '-' || (c >= '0' && c <= '9') ? "a number" : "no JSON value";
	}
}
