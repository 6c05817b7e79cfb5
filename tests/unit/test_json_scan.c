/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json_scan.h"
#include "run_tests.h"

/* Scans a whole text as one value: 0 or -EBADMSG. */
static int scan(const char *text, size_t len)
{
	char *copy = malloc(len + 1);
	struct stfs_json json;
	int r;

	memcpy(copy, text, len);
	copy[len] = '\0';
	stfs_json_init(&json, (struct stfs_slice){ copy, len });
	r = stfs_json_skip(&json);
	if (r == 0)
		r = stfs_json_end(&json);
	free(copy);
	return r;
}

/* clang-format off */
static const char *const valid[] = {
	"{}", "[]", " { } ", "\t\r\n[1]", "0", "-0", "-0.5e-3", "1E+2", "1e308", "true", "false", "null", "\"\"",
	"[1,2,[3,{\"a\":[]}]]", "{\"a\":{\"b\":null},\"c\":[]}", "\"\\u0000\\ud83d\\ude00\\\\\\/\\b\\f\\n\\r\\t\\\"\"",
	"\"\x7f\xc3\xa9\"", "[[],{},[]]", "{\"a\":1,\"a\":2}", "123456789012345678901234567890", "1e-999",
};

static const char *const invalid[] = {
	"", " ", "{", "}", "[", "]", "[1,]", "{\"a\":1,}", "[,1]", "{,}", "[1 2]", "{\"a\" 1}", "{\"a\":}", "{a:1}",
	"{'a':1}", "{1:2}", "01", "-", "+1", "1.", ".5", "1e", "1e+", "0x10", "NaN", "Infinity", "-Infinity", "TRUE",
	"nul", "nulll", "1e999", "-1e999", "{}{}", "{} x", "[1]]", "\"", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"",
	"\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\\ud800x\"", "\"a\nb\"", "\"a\tb\"", "// c\n1", "/* c */1",
	"[1}", "{\"a\":[}", "\v1", "\f1", "1\v",
};
/* clang-format on */

START_TEST(test_valid)
{
	ck_assert_msg(scan(valid[_i], strlen(valid[_i])) == 0, "refused: %s", valid[_i]);
}
END_TEST

START_TEST(test_invalid)
{
	ck_assert_msg(scan(invalid[_i], strlen(invalid[_i])) == -EBADMSG, "accepted: %s", invalid[_i]);
}
END_TEST

START_TEST(test_nul_is_no_blank)
{
	ck_assert_int_eq(scan("{}\0", 3), -EBADMSG);
	ck_assert_int_eq(scan("\"a\0b\"", 5), -EBADMSG);
}
END_TEST

/* Every byte at every place of an escape; the escapes of a low surrogate, so that the values count too. */
START_TEST(test_hexadecimal_digits)
{
	static const char sound[] = "\"\\ud83d\\ude00\"";

	for (int byte = 0; byte < 256; byte++) {
		for (size_t at = 9; at < 13; at++) {
			char text[sizeof(sound)], value[5];
			bool low;

			memcpy(text, sound, sizeof(sound));
			text[at] = (char)byte;
			memcpy(value, text + 9, 4);
			value[4] = '\0';
			low = isxdigit(byte) && strtoul(value, NULL, 16) >= 0xdc00 &&
			      strtoul(value, NULL, 16) <= 0xdfff;
			ck_assert_msg(scan(text, sizeof(sound) - 1) == (low ? 0 : -EBADMSG), "byte %d at %zu", byte,
				      at);
		}
	}
	for (size_t len = 1; len < sizeof(sound) - 1; len++)
		ck_assert_int_eq(scan(sound, len), -EBADMSG);
}
END_TEST

/* Brackets nested `depth` deep, of one kind or alternating. */
static char *nested(unsigned depth, bool objects)
{
	char *text = malloc(depth * 6 + 1), *p = text;

	for (unsigned i = 0; i < depth; i++)
		p = stpcpy(p, objects && i % 2 ? "{\"a\":" : "[");
	for (unsigned i = depth; i-- > 0;)
		p = stpcpy(p, objects && i % 2 ? (i == depth - 1 ? "0}" : "}") : "]");
	return text;
}

START_TEST(test_depth)
{
	for (int objects = 0; objects <= 1; objects++) {
		char *fits = nested(127, objects), *too_deep = nested(128, objects);

		ck_assert_int_eq(scan(fits, strlen(fits)), 0);
		ck_assert_int_eq(scan(too_deep, strlen(too_deep)), -EBADMSG);
		free(fits);
		free(too_deep);
	}
}
END_TEST

START_TEST(test_long_numbers)
{
	char text[1024];

	/* 309 digits are beyond a double, 308 are not; so the reference judges, also in a field it ignores. */
	memset(text, '9', 400);
	ck_assert_int_eq(scan(text, 309), -EBADMSG);
	ck_assert_int_eq(scan(text, 308), 0);
}
END_TEST

START_TEST(test_uint)
{
	static const struct {
		const char *text;
		int result;
		uint64_t value;
	} cases[] = {
		{ "0", 0, 0 },
		{ " 17,", 0, 17 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -EBADMSG, 0 },
		{ "99999999999999999999999", -EBADMSG, 0 },
		{ "00", -EBADMSG, 0 },
		{ "02", -EBADMSG, 0 },
		{ "-0", -EBADMSG, 0 },
		{ "-2", -EBADMSG, 0 },
		{ "+2", -EBADMSG, 0 },
		{ "2.0", -EBADMSG, 0 },
		{ "2e0", -EBADMSG, 0 },
		{ "2E0", -EBADMSG, 0 },
		{ "\"2\"", -EBADMSG, 0 },
		{ "null", -EBADMSG, 0 },
		{ "true", -EBADMSG, 0 },
		{ "", -EBADMSG, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stfs_json json;
		uint64_t v = 42;

		stfs_json_init(&json, stfs_slice_of(cases[i].text));
		ck_assert_msg(stfs_json_uint(&json, &v) == cases[i].result, "%s", cases[i].text);
		ck_assert_uint_eq(v, cases[i].result == 0 ? cases[i].value : 42);
	}
}
END_TEST

START_TEST(test_error_says_place)
{
	struct stfs_json json;

	stfs_json_init(&json, stfs_slice_of("{\"a\" 1}"));
	ck_assert_int_eq(stfs_json_skip(&json), -EBADMSG);
	ck_assert_str_eq(json.error.text, "invalid JSON at byte 5: expected ':' after a key, found '1'");
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, test_valid, 0, sizeof(valid) / sizeof(valid[0]));
	tcase_add_loop_test(tcase, test_invalid, 0, sizeof(invalid) / sizeof(invalid[0]));
	tcase_add_test(tcase, test_nul_is_no_blank);
	tcase_add_test(tcase, test_hexadecimal_digits);
	tcase_add_test(tcase, test_depth);
	tcase_add_test(tcase, test_long_numbers);
	tcase_add_test(tcase, test_uint);
	tcase_add_test(tcase, test_error_says_place);
	return run_tests("json_scan", tcase);
}
