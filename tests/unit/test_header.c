/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "findings.h"
#include "header.h"
#include "header_write.h"
#include "heap.h"
#include "run_tests.h"

static struct findings findings;

/* Parses a JSON text against `data_size` bytes of data; NULL when it was refused. */
static struct stfs_header *parse_bytes(const char *json, size_t len, uint64_t data_size, unsigned flags)
{
	char *text = malloc(len + 1);
	struct stfs_header *header = NULL;

	memcpy(text, json, len);
	text[len] = '\0';
	findings_init(&findings);
	if (stfs_header_parse(text, len, data_size, flags, &findings.report, &header) < 0) {
		ck_assert_uint_gt(findings.report.violations, 0);
		free(text);
	} else {
		ck_assert_uint_eq(findings.report.violations, 0);
	}
	return header;
}

static struct stfs_header *parse(const char *json, uint64_t data_size)
{
	return parse_bytes(json, strlen(json), data_size, 0);
}

#define ONE(name, dtype, shape, offsets) \
	"\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

/* What must be refused: the text, the bytes of data, and a part of the sentence. */
static const struct {
	const char *json;
	uint64_t data;
	const char *says;
} refused[] = {
	{ "", 0, "found the end" },
	{ "[]", 0, "expected an object" },
	{ "{" ONE("a", "F32", "[2]", "[0,8]") "} x", 8, "nothing but blanks" },
	{ "{" ONE("a", "f32", "[2]", "[0,8]") "}", 8, "tensor \"a\": expected one of the 22 dtypes" },
	{ "{" ONE("a", "I4", "[2]", "[0,8]") "}", 8, "found \"I4\"" },
	{ "{\"a\":{\"dtype\":3,\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
	  "expected dtype to be a string, found a number: \"3\"" },
	{ "{\"a\":{\"dtype\":{\"F32\":null},\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "found an object" },
	{ "{\"a\":[\"F32\",[2],[0,8]]}", 8, "found an array" },
	{ "{\"a\":null}", 0, "found null" },
	{ "{\"a\":{}}", 0, "expected a field dtype" },
	{ "{\"a\":{}}", 0, "expected a field data_offsets" },
	{ "{" ONE("a", "F32", "[2.0]", "[0,8]") "}", 8, "expected shape to be a list of whole numbers" },
	{ "{" ONE("a", "F32", "[-2]", "[0,8]") "}", 8, "expected shape" },
	{ "{" ONE("a", "F32", "[02]", "[0,8]") "}", 8, "no leading zero" },
	{ "{" ONE("a", "F32", "2", "[0,8]") "}", 8, "expected shape" },
	{ "{" ONE("a", "F32", "[18446744073709551616]", "[0,8]") "}", 8, "expected shape" },
	{ "{" ONE("a", "F32", "[2]", "[0]") "}", 8, "expected data_offsets to be two" },
	{ "{" ONE("a", "F32", "[2]", "[0,8,8]") "}", 8, "expected data_offsets to be two" },
	{ "{" ONE("a", "F32", "[2]", "[8,0]") "}", 8, "end before they begin" },
	{ "{" ONE("a", "F32", "[2]", "[0,7]") "}", 7, "F32 [2] needs 8 bytes, data_offsets [0,7] hold 7" },
	{ "{" ONE("a", "F32", "[2]", "[1,9]") "}", 9, "expected to begin at 0, found 1 (1 bytes belong to no tensor)" },
	{ "{" ONE("a", "U8", "[2]", "[0,2]") "," ONE("b", "U8", "[2]", "[1,3]") "}", 3,
	  "overlap those of tensor \"a\"" },
	{ "{" ONE("a", "U8", "[2]", "[0,2]") "," ONE("b", "U8", "[2]", "[0,2]") "}", 2, "overlap those of tensor" },
	{ "{" ONE("a", "U8", "[2]", "[0,2]") "," ONE("z", "U8", "[0]", "[1,1]") "}", 2,
	  "invalid offset for tensor \"z\"" },
	{ "{" ONE("a", "F32", "[4294967296,4294967296]", "[0,8]") "}", 8, "overflow" },
	{ "{" ONE("a", "F32", "[18446744073709551615,9,0]", "[0,0]") "}", 0, "overflow" },
	{ "{" ONE("a", "F4", "[3]", "[0,2]") "}", 2, "12 bits, which do not end up at a byte boundary" },
	{ "{" ONE("a", "F6_E2M3", "[1]", "[0,1]") "}", 1, "byte boundary" },
	{ "{" ONE("a", "F32", "[2]", "[0,8]") "}", 7, "1 bytes are missing" },
	{ "{" ONE("a", "F32", "[2]", "[0,8]") "}", 9, "1 bytes after the last tensor" },
	{ "{}", 8, "8 bytes after the last tensor" },
	{ "{" ONE("a", "U8", "[1]", "[0,1]") "," ONE("\\u0061", "U8", "[1]", "[1,2]") "}", 2,
	  "duplicate name: tensor \"a\"" },
	{ "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
	  "duplicate field dtype" },
	{ "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "duplicate field __metadata__" },
	{ "{\"__metadata__\":{},\"\\u005f_metadata__\":{}}", 0, "duplicate field __metadata__" },
	{ "{\"__metadata__\":{\"a\":\"1\",\"\\u0061\":\"2\"}}", 0, "__metadata__ key \"a\": duplicate key" },
	{ "{\"__metadata__\":{\"a\":1}}", 0, "__metadata__ key \"a\": expected a string, found a number" },
	{ "{\"__metadata__\":[]}", 0, "__metadata__: expected an object of strings, found an array" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":1e999}}", 1, "range of a double" },
	{ "{\"\xc0\x80\":{}}", 0, "invalid UTF-8 in header: byte 0xC0 at byte 2" },
	{ "{\"\xed\xa0\x80\":{}}", 0, "invalid UTF-8" },
	{ "\xef\xbb\xbf{}", 0, "byte order mark" },
};

START_TEST(test_refused)
{
	ck_assert_ptr_null(parse(refused[_i].json, refused[_i].data));
	ck_assert_msg(strstr(findings.text, refused[_i].says), "%s\nsays: %s", refused[_i].json, findings.text);
}
END_TEST

/* What is accepted with a warning; says NULL: without one. */
static const struct {
	const char *json;
	uint64_t data;
	const char *says;
} accepted[] = {
	{ "{}", 0, NULL },
	{ "{} \t\r\n", 0, NULL },
	{ " \n{}", 0, "header starts with 2 blanks" },
	{ "{\"__metadata__\":null}", 0, "__metadata__ is null" },
	{ "{\"__metadata__\":{}}", 0, NULL },
	{ "{" ONE("a", "F64", "[]", "[0,8]") "}", 8, NULL },
	{ "{" ONE("a", "F32", "[0,18446744073709551615,9]", "[0,0]") "}", 0, NULL },
	{ "{" ONE("a", "F4", "[3,2]", "[0,3]") "," ONE("b", "F6_E3M2", "[4]", "[3,6]") "}", 6, NULL },
	{ "{" ONE("z", "U8", "[0]", "[1,1]") "," ONE("a", "U8", "[1]", "[0,1]") "}", 1, NULL },
	{ "{\"a\":{\"data_offsets\":[0,1],\"shape\":[1],\"dtype\":\"\\u00558\"}}", 1, NULL },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":[1],\"x\":{}}}", 1,
	  "unknown field \"x\" is ignored" },
	{ "{" ONE("", "U8", "[1]", "[0,1]") "}", 1, "tensor \"\": the name is empty" },
	{ "{" ONE("a\\u0000b", "U8", "[1]", "[0,1]") "}", 1, "has a NUL" },
	{ "{" ONE("../x", "U8", "[1]", "[0,1]") "}", 1, "means another folder" },
	{ "{" ONE("a//b", "U8", "[1]", "[0,1]") "}", 1, "empty path part" },
	{ "{" ONE("a", "U8", "[1]", "[0,1]") "," ONE("a.b", "U8", "[1]", "[1,2]") "}", 2,
	  "tensor \"a\" is also the folder of tensor \"a.b\"" },
	{ "{" ONE("__metadata__ ", "U8", "[1]", "[0,1]") "}", 1, NULL },
	{ "{\"\\u005f_metadata__\":{\"k\":\"v\"}}", 0, NULL },
};

START_TEST(test_accepted)
{
	struct stfs_header *header = parse(accepted[_i].json, accepted[_i].data);

	ck_assert_msg(header, "%s\nsays: %s", accepted[_i].json, findings.text);
	if (accepted[_i].says)
		ck_assert_msg(strstr(findings.text, accepted[_i].says), "says: %s", findings.text);
	else
		ck_assert_str_eq(findings.text, "");
	stfs_header_free(header);
}
END_TEST

START_TEST(test_reports_everything)
{
	ck_assert_ptr_null(parse("{" ONE("a", "X", "[2]", "[0,8]") "," ONE(
					 "b", "F32", "\"2\"", "[8,16]") ","
									"\"__metadata__\":{\"k\":1,\"l\":2}}",
				 16));
	ck_assert_uint_eq(findings.report.violations, 4);
	ck_assert_ptr_null(parse("{" ONE("a", "F32", "[2]", "[0,7]") "," ONE("b", "F32", "[2]", "[9,16]") "}", 20));
	ck_assert_uint_eq(findings.report.violations, 4); /* two sizes, a hole, bytes at the end */
}
END_TEST

START_TEST(test_sorted_and_found)
{
	struct stfs_header *header =
		parse("{" ONE("c", "U8", "[3]", "[2,5]") "," ONE("z2", "U8", "[0]", "[2,2]") "," ONE(
			      "a", "U8", "[1,2]",
			      "[0,2]") "," ONE("z1", "U8", "[0]",
					       "[2,2]") ",\"__metadata__\":{\"k\\u0000\":\"v\\n\",\"\":\"\"}}",
		      5);
	static const char *const order[] = { "a", "z2", "z1", "c" };
	struct stfs_dims dims;
	uint64_t dim;

	ck_assert_ptr_nonnull(header);
	ck_assert_uint_eq(header->n_tensors, 4);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert(stfs_slice_is(header->tensors[i].name, order[i]));
		ck_assert_ptr_eq(stfs_header_find(header, stfs_slice_of(order[i])), &header->tensors[i]);
	}
	ck_assert_ptr_null(stfs_header_find(header, stfs_slice_of("b")));
	dims = stfs_tensor_dims(&header->tensors[0]);
	ck_assert(stfs_dims_next(&dims, &dim) && dim == 1);
	ck_assert(stfs_dims_next(&dims, &dim) && dim == 2);
	ck_assert(!stfs_dims_next(&dims, &dim));
	ck_assert_uint_eq(stfs_tensor_elements(&header->tensors[3]), 3);
	ck_assert(stfs_slice_is(stfs_header_metadata(header, (struct stfs_slice){ "k\0", 2 })->value, "v\n"));
	ck_assert_ptr_nonnull(stfs_header_metadata(header, stfs_slice_of("")));
	ck_assert_ptr_null(stfs_header_metadata(header, stfs_slice_of("k")));
	stfs_header_free(header);
}
END_TEST

START_TEST(test_lax)
{
	static const char padded[] = "{}\0\0\0";
	struct stfs_header *header;

	ck_assert_ptr_null(parse_bytes(padded, 5, 0, 0));
	ck_assert_ptr_nonnull(strstr(findings.text, "padded with 3 NUL bytes from byte 2 on"));
	header = parse_bytes(padded, 5, 0, STFS_LAX);
	ck_assert_ptr_nonnull(header);
	ck_assert_uint_eq(findings.report.warnings, 1);
	stfs_header_free(header);
	ck_assert_ptr_null(parse_bytes("{}\0x", 4, 0, STFS_LAX));
	header = parse_bytes("{" ONE("a", "U8", "[2]", "[0,2]") "}", strlen("{" ONE("a", "U8", "[2]", "[0,2]") "}"), 6,
			     STFS_LAX);
	ck_assert_ptr_nonnull(header);
	ck_assert_uint_eq(header->data_size, 2);
	stfs_header_free(header);
	ck_assert_ptr_null(parse_bytes("{" ONE("a", "U8", "[2]", "[0,2]") "}",
				       strlen("{" ONE("a", "U8", "[2]", "[0,2]") "}"), 1, STFS_LAX));
}
END_TEST

START_TEST(test_length_word)
{
	static const struct {
		uint8_t word[8];
		uint64_t size;
		int result;
		const char *says;
	} cases[] = {
		{ { 2 }, 10, 0, "" },
		{ { 2 }, 9, -EBADMSG, "invalid header length" },
		{ { 0 }, 8, 0, "" },
		{ { 0 }, 7, -EBADMSG, "header too small" },
		{ { 0x00, 0xe1, 0xf5, 0x05 }, 100000008, 0, "" },
		{ { 0x01, 0xe1, 0xf5, 0x05 }, 200000000, -EBADMSG, "header too large" },
		{ { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, 100, -EBADMSG, "header too large" },
		{ { 0, 0, 0, 0, 0, 0, 0, 64 }, 100, -EBADMSG, "big-endian" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t len;

		findings_init(&findings);
		ck_assert_int_eq(stfs_header_length(cases[i].word, cases[i].size, &findings.report, &len),
				 cases[i].result);
		ck_assert_msg(strstr(findings.text, cases[i].says), "%s", findings.text);
	}
}
END_TEST

START_TEST(test_written_header_parses_back)
{
	const char *json = "{" ONE("b", "F32", "[2]", "[8,16]") "," ONE(
		"a\\n\\u0001\\\"", "F64", "[]", "[0,8]") ",\"__metadata__\":{\"z\":\"1\",\"a\\t\":\"\\u00e9/\"}}";
	struct stfs_header *header = parse(json, 16), *again;
	_cleanup_buf_ struct stfs_buf buf = { 0 };

	ck_assert_ptr_nonnull(header);
	ck_assert_int_eq(stfs_header_write(&buf, header), 0);
	ck_assert_uint_eq(buf.len % 8, 0);
	ck_assert_ptr_nonnull(strstr(buf.data,
				     "{\"__metadata__\":{\"a\\t\":\"\xc3\xa9/\",\"z\":\"1\"},\"a\\n\\u0001\\\"\":"
				     "{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},\"b\":"));
	again = parse_bytes(buf.data, buf.len, 16, 0);
	ck_assert_ptr_nonnull(again);
	ck_assert_uint_eq(again->n_tensors, 2);
	stfs_header_free(header);
	stfs_header_free(again);
}
END_TEST

START_TEST(test_too_many_tensors)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };
	struct stfs_header *header = NULL;
	char *text;

	ck_assert_int_eq(stfs_buf_append_char(&buf, '{'), 0);
	for (unsigned i = 0; i <= STFS_TENSORS_MAX; i++)
		ck_assert_int_eq(stfs_buf_printf(&buf,
						 "%s\"%x\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}",
						 i ? "," : "", i),
				 0);
	ck_assert_int_eq(stfs_buf_append_char(&buf, '}'), 0);
	text = buf.data;
	findings_init(&findings);
	ck_assert_int_eq(stfs_header_parse(text, buf.len, 0, 0, &findings.report, &header), -EFBIG);
	ck_assert_ptr_nonnull(strstr(findings.text, "too many tensors"));
}
END_TEST

/* 100,000 tensors of a mixture of experts. A sanitizer's allocator reports no sizes here. */
START_TEST(test_a_big_header_costs_little)
{
	size_t before = heap_in_use(), used;
	_cleanup_buf_ struct stfs_buf buf = { 0 };
	struct stfs_header *header;
	char *text;

	ck_assert_int_eq(stfs_buf_append_char(&buf, '{'), 0);
	for (unsigned i = 0; i < 100000; i++)
		ck_assert_int_eq(stfs_buf_printf(&buf,
						 "%s\"model.layers.%u.mlp.experts.%u.down_proj.weight\":{\"dtype\":"
						 "\"U8\",\"shape\":[2048,768],\"data_offsets\":[%lu,%lu]}",
						 i ? "," : "", i / 1000, i % 1000, i * 1572864ul, (i + 1) * 1572864ul),
				 0);
	ck_assert_int_eq(stfs_buf_append_char(&buf, '}'), 0);
	text = strdup(buf.data);
	findings_init(&findings);
	ck_assert_int_eq(stfs_header_parse(text, buf.len, 100000 * 1572864ul, 0, &findings.report, &header), 0);
	stfs_buf_fini(&buf);
	used = heap_in_use() - before;
	ck_assert_msg(used < 25000000, "%zu bytes", used);
	stfs_header_free(header);
}
END_TEST

START_TEST(test_sniff)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *says;
	} cases[] = {
		{ "version https://git-lfs.github.com/spec/v1\n", 43, "git-LFS" },
		{ "\n<!DOCTYPE html><html>", 22, "HTML" },
		{ "<html><head>", 12, "HTML" },
		{ "PK\3\4\0\0\0\0\0\0abc", 13, "ZIP" },
		{ "\x80\2}q\0(X\1\0\0\0a", 12, "pickle" },
		{ "GGUF\3\0\0\0\0\0\0\0", 12, "GGUF" },
		{ "{\"a\":{}}", 8, "bare JSON" },
		{ "\0\0\0\0\0\0\0\0\0\0\0\0", 12, "zeros" },
		{ "\x93NUMPY\1\0v\0{'d", 13, "NumPy" },
		{ "\x80\2\0\0\0\0\0\0{\"__me", 14, NULL },
		{ "\2\0\0\0\0\0\0\0{}", 10, NULL },
		{ "PK\3\4\0\0\0\0  {\"a\":", 14, NULL },
		{ "random", 6, NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *phrase = stfs_sniff((const uint8_t *)cases[i].bytes, cases[i].len);

		if (cases[i].says)
			ck_assert_msg(phrase && strstr(phrase, cases[i].says), "%zu: %s", i, phrase ? phrase : "-");
		else
			ck_assert_ptr_null(phrase);
	}
}
END_TEST

START_TEST(test_dtypes)
{
	for (unsigned i = 0; i < STFS_DTYPE_COUNT; i++) {
		const struct stfs_dtype_info *info = stfs_dtype_info((enum stfs_dtype)i);
		enum stfs_dtype dtype;

		ck_assert(stfs_dtype_parse(stfs_slice_of(info->name), &dtype));
		ck_assert_uint_eq(dtype, i);
		ck_assert_int_eq(info->descr != NULL, info->bits % 8 == 0);
		if (info->descr)
			ck_assert_int_eq(atoi(info->descr + 2), info->bits / 8);
	}
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, test_refused, 0, sizeof(refused) / sizeof(refused[0]));
	tcase_add_loop_test(tcase, test_accepted, 0, sizeof(accepted) / sizeof(accepted[0]));
	tcase_add_test(tcase, test_reports_everything);
	tcase_add_test(tcase, test_sorted_and_found);
	tcase_add_test(tcase, test_lax);
	tcase_add_test(tcase, test_length_word);
	tcase_add_test(tcase, test_written_header_parses_back);
	tcase_add_test(tcase, test_too_many_tensors);
	tcase_add_test(tcase, test_a_big_header_costs_little);
	tcase_add_test(tcase, test_sniff);
	tcase_add_test(tcase, test_dtypes);
	tcase_set_timeout(tcase, 60);
	return run_tests("header", tcase);
}
