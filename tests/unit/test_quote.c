/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "quote.h"
#include "run_tests.h"

#define SLICE(literal) ((struct stfs_slice){ literal, sizeof(literal) - 1 })

static const struct {
	struct stfs_slice in;
	const char *quoted, *printable;
} cases[] = {
	{ { NULL, 0 }, "\"\"", "" },
	{ SLICE("model.layers.0"), "\"model.layers.0\"", "model.layers.0" },
	{ SLICE("a\"b\\c"), "\"a\\\"b\\\\c\"", "a\"b\\\\c" },
	{ SLICE("a\0b\n\x1b[31m\x7f"), "\"a\\x00b\\x0a\\x1b[31m\\x7f\"", "a\\x00b\\x0a\\x1b[31m\\x7f" },
	{ SLICE("größe 模型 🤗"), "\"größe 模型 🤗\"", "größe 模型 🤗" },
	/* C1 control, right-to-left override, zero-width space, line separator, byte order mark, isolate, tag */
	{ SLICE("\xc2\x9b"), "\"\\u{9b}\"", "\\u{9b}" },
	{ SLICE("x\u202ey"), "\"x\\u{202e}y\"", "x\\u{202e}y" },
	{ SLICE("\u200b"), "\"\\u{200b}\"", "\\u{200b}" },
	{ SLICE("\u2028"), "\"\\u{2028}\"", "\\u{2028}" },
	{ SLICE("\ufeff"), "\"\\u{feff}\"", "\\u{feff}" },
	{ SLICE("\u2066"), "\"\\u{2066}\"", "\\u{2066}" },
	{ SLICE("\U000e0041"), "\"\\u{e0041}\"", "\\u{e0041}" },
	/* the neighbours of those runs stay */
	{ SLICE("\u00a0\u200a\u2010\u2027\u202f\u2070"), "\"\u00a0\u200a\u2010\u2027\u202f\u2070\"",
	  "\u00a0\u200a\u2010\u2027\u202f\u2070" },
	/* broken: lone continuation, overlong, surrogate, over U+10FFFF, cut short, never a lead byte */
	{ SLICE("\x80"), "\"\\x80\"", "\\x80" },
	{ SLICE("\xc0\xaf"), "\"\\xc0\\xaf\"", "\\xc0\\xaf" },
	{ SLICE("\xe0\x80\xaf"), "\"\\xe0\\x80\\xaf\"", "\\xe0\\x80\\xaf" },
	{ SLICE("\xed\xa0\x80"), "\"\\xed\\xa0\\x80\"", "\\xed\\xa0\\x80" },
	{ SLICE("\xf4\x90\x80\x80"), "\"\\xf4\\x90\\x80\\x80\"", "\\xf4\\x90\\x80\\x80" },
	{ SLICE("a\xe6\xa8"), "\"a\\xe6\\xa8\"", "a\\xe6\\xa8" },
	{ SLICE("\xff\xc3("
		"b"),
	  "\"\\xff\\xc3(b\"", "\\xff\\xc3(b" },
};

START_TEST(test_cases)
{
	for (size_t i = 0; i < STFS_ARRAY_SIZE(cases); i++) {
		_cleanup_buf_ struct stfs_buf buf = { 0 };

		ck_assert_str_eq(stfs_quote(cases[i].in).text, cases[i].quoted);
		ck_assert_int_eq(stfs_buf_append_str(&buf, ">"), 0);
		ck_assert_int_eq(stfs_append_printable(&buf, cases[i].in), 0);
		ck_assert_uint_eq(buf.len, strlen(buf.data));
		ck_assert_str_eq(buf.data + 1, cases[i].printable);
	}
}
END_TEST

START_TEST(test_one_field_twice)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };

	/* each result is a value of its own */
	ck_assert_int_eq(stfs_buf_printf(&buf, "%s %s", stfs_quote(SLICE("a")).text, stfs_quote(SLICE("b")).text), 0);
	ck_assert_str_eq(buf.data, "\"a\" \"b\"");
}
END_TEST

/* 197 bytes fit between the quotes; from 198 on the text is cut and ends in an ellipsis. */
START_TEST(test_cut)
{
	const size_t room = sizeof(struct stfs_quoted) - 3;
	char text[1000];

	memset(text, 'x', sizeof(text));
	for (size_t len = 0; len <= sizeof(text); len++) {
		struct stfs_quoted q = stfs_quote((struct stfs_slice){ text, len });

		if (len <= room) {
			ck_assert_uint_eq(strlen(q.text), len + 2);
			ck_assert_int_eq(memcmp(q.text + 1, text, len), 0);
			ck_assert(q.text[0] == '"' && q.text[len + 1] == '"');
		} else {
			ck_assert_uint_eq(strlen(q.text), sizeof(q.text) - 1);
			ck_assert_int_eq(memcmp(q.text + 1, text, room - strlen("…")), 0);
			ck_assert_str_eq(q.text + 1 + room - strlen("…"), "…\"");
		}
	}
}
END_TEST

/* The cut never splits a character or an escape, wherever it falls. */
START_TEST(test_cut_at_boundaries)
{
	static const char *const units[] = { "é", "模", "🤗", "\\x1b", "\\u{202e}", "\\\\" };
	static const char *const sources[] = { "é", "模", "🤗", "\x1b", "\u202e", "\\" };

	for (size_t u = 0; u < STFS_ARRAY_SIZE(units); u++) {
		for (size_t shift = 0; shift < 12; shift++) {
			size_t n = strlen(units[u]), len = shift, at = 1 + shift;
			struct stfs_quoted q;
			char text[1000];

			memset(text, 'x', shift);
			for (; len + strlen(sources[u]) <= sizeof(text); len += strlen(sources[u]))
				memcpy(text + len, sources[u], strlen(sources[u]));
			q = stfs_quote((struct stfs_slice){ text, len });
			while (strncmp(q.text + at, units[u], n) == 0)
				at += n;
			ck_assert_str_eq(q.text + at, "…\"");
			ck_assert_uint_gt(at + strlen("…\"") + n, sizeof(q.text) - 1);
		}
	}
}
END_TEST

START_TEST(test_printable_is_not_cut)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };
	char text[5000];

	memset(text, '\n', sizeof(text));
	ck_assert_int_eq(stfs_append_printable(&buf, (struct stfs_slice){ text, sizeof(text) }), 0);
	ck_assert_uint_eq(buf.len, 4 * sizeof(text));
	ck_assert_int_eq(memcmp(buf.data + buf.len - 8, "\\x0a\\x0a", 8), 0);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("quote");

	tcase_add_test(tcase, test_cases);
	tcase_add_test(tcase, test_one_field_twice);
	tcase_add_test(tcase, test_cut);
	tcase_add_test(tcase, test_cut_at_boundaries);
	tcase_add_test(tcase, test_printable_is_not_cut);
	return run_tests("quote", tcase);
}
