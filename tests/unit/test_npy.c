/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"
#include "run_tests.h"

#define ONES_16 "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"
#define ONES_64 ONES_16 "," ONES_16 "," ONES_16 "," ONES_16

/* What np.save of NumPy 2.4.6 writes before the data; bfloat16 is the one of ml_dtypes 0.6.0. */
static const struct {
	enum stfs_dtype dtype;
	const char *dims;
	uint32_t rank;
	const char *bytes;
	size_t len;
} golden[] = {
	{ STFS_BOOL, "2,3", 2,
	  "\223NUMPY\001\000v\000{'descr': '|b1', 'fortran_order': False, 'shape': (2, 3), }"
	  "                                                          \n",
	  128 },
	{ STFS_U8, "", 0,
	  "\223NUMPY\001\000v\000{'descr': '|u1', 'fortran_order': False, 'shape': (), }"
	  "                                                              \n",
	  128 },
	{ STFS_I8, "3", 1,
	  "\223NUMPY\001\000v\000{'descr': '|i1', 'fortran_order': False, 'shape': (3,), }"
	  "                                                            \n",
	  128 },
	{ STFS_U16, "0,4", 2,
	  "\223NUMPY\001\000v\000{'descr': '<u2', 'fortran_order': False, 'shape': (0, 4), }"
	  "                                                          \n",
	  128 },
	{ STFS_I16, "2,3,4", 3,
	  "\223NUMPY\001\000v\000{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3, 4), }"
	  "                                                       \n",
	  128 },
	{ STFS_F16, "1000000", 1,
	  "\223NUMPY\001\000v\000{'descr': '<f2', 'fortran_order': False, 'shape': (1000000,), }"
	  "                                                      \n",
	  128 },
	{ STFS_U32, "2,3", 2,
	  "\223NUMPY\001\000v\000{'descr': '<u4', 'fortran_order': False, 'shape': (2, 3), }"
	  "                                                          \n",
	  128 },
	{ STFS_I32, "", 0,
	  "\223NUMPY\001\000v\000{'descr': '<i4', 'fortran_order': False, 'shape': (), }"
	  "                                                              \n",
	  128 },
	{ STFS_F32, "2,3", 2,
	  "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
	  "                                                          \n",
	  128 },
	{ STFS_F32, "", 0,
	  "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (), }"
	  "                                                              \n",
	  128 },
	{ STFS_F32, "3", 1,
	  "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"
	  "                                                            \n",
	  128 },
	{ STFS_F32, "0,4", 2,
	  "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4), }"
	  "                                                          \n",
	  128 },
	{ STFS_F32, "2,3,4", 3,
	  "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 4), }"
	  "                                                       \n",
	  128 },
	{ STFS_F32, "1000000", 1,
	  "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (1000000,), }"
	  "                                                      \n",
	  128 },
	{ STFS_C64, "0,4", 2,
	  "\223NUMPY\001\000v\000{'descr': '<c8', 'fortran_order': False, 'shape': (0, 4), }"
	  "                                                          \n",
	  128 },
	{ STFS_F64, "2,3,4", 3,
	  "\223NUMPY\001\000v\000{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 4), }"
	  "                                                       \n",
	  128 },
	{ STFS_I64, "1000000", 1,
	  "\223NUMPY\001\000v\000{'descr': '<i8', 'fortran_order': False, 'shape': (1000000,), }"
	  "                                                      \n",
	  128 },
	{ STFS_U64, "2,3", 2,
	  "\223NUMPY\001\000v\000{'descr': '<u8', 'fortran_order': False, 'shape': (2, 3), }"
	  "                                                          \n",
	  128 },
	{ STFS_BF16, "", 0,
	  "\223NUMPY\001\000v\000{'descr': '<V2', 'fortran_order': False, 'shape': (), }"
	  "                                                              \n",
	  128 },
	{ STFS_F8_E4M3, "2,3", 2,
	  "\223NUMPY\001\000v\000{'descr': '|V1', 'fortran_order': False, 'shape': (2, 3), }"
	  "                                                          \n",
	  128 },
	{ STFS_U8, ONES_64, 64,
	  "\223NUMPY\001\0006\001{'descr': '|u1', 'fortran_order': False, 'shape': ("
	  "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
	  "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
	  "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
	  "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), }"
	  "                                                                \n",
	  320 },
};

static void parse_dims(const char *text, uint32_t rank, uint64_t *ret)
{
	struct stfs_dims dims = { text, rank };

	for (uint32_t i = 0; i < rank; i++)
		ck_assert(stfs_dims_next(&dims, &ret[i]));
}

START_TEST(test_write_is_what_numpy_writes)
{
	for (size_t i = 0; i < STFS_ARRAY_SIZE(golden); i++) {
		_cleanup_buf_ struct stfs_buf buf = { 0 };
		struct stfs_dims dims = { golden[i].dims, golden[i].rank };

		ck_assert_int_eq(stfs_npy_write(&buf, golden[i].dtype, dims), 0);
		ck_assert_uint_eq(buf.len, golden[i].len);
		ck_assert_mem_eq(buf.data, golden[i].bytes, buf.len);
	}
}
END_TEST

START_TEST(test_parse_what_numpy_writes)
{
	for (size_t i = 0; i < STFS_ARRAY_SIZE(golden); i++) {
		struct stfs_npy npy;
		uint64_t shape[64];

		parse_dims(golden[i].dims, golden[i].rank, shape);
		for (size_t len = 0; len < golden[i].len; len++)
			ck_assert_int_eq(stfs_npy_parse((const uint8_t *)golden[i].bytes, len, NULL, &npy), -EAGAIN);
		ck_assert_int_eq(stfs_npy_parse((const uint8_t *)golden[i].bytes, golden[i].len, NULL, &npy), 0);
		ck_assert_uint_eq(npy.header_size, golden[i].len);
		ck_assert_int_eq(npy.has_dtype, golden[i].dtype != STFS_F8_E4M3);
		if (npy.has_dtype)
			ck_assert_int_eq(npy.dtype, golden[i].dtype);
		ck_assert_uint_eq(npy.rank, golden[i].rank);
		ck_assert_mem_eq(npy.shape, shape, npy.rank * sizeof(*shape));
	}
}
END_TEST

START_TEST(test_write_appends)
{
	struct stfs_dims dims = { golden[0].dims, golden[0].rank };
	_cleanup_buf_ struct stfs_buf buf = { 0 };

	ck_assert_int_eq(stfs_buf_append_str(&buf, "abc"), 0);
	ck_assert_int_eq(stfs_npy_write(&buf, golden[0].dtype, dims), 0);
	ck_assert_uint_eq(buf.len, 3 + golden[0].len);
	ck_assert_mem_eq(buf.data + 3, golden[0].bytes, golden[0].len);
}
END_TEST

START_TEST(test_write_sub_byte)
{
	static const enum stfs_dtype none[] = { STFS_F4, STFS_F6_E2M3, STFS_F6_E3M2 };

	for (size_t i = 0; i < STFS_ARRAY_SIZE(none); i++) {
		_cleanup_buf_ struct stfs_buf buf = { 0 };

		ck_assert_int_eq(stfs_npy_write(&buf, none[i], (struct stfs_dims){ "2", 1 }), -EOPNOTSUPP);
		ck_assert_uint_eq(buf.len, 0);
	}
}
END_TEST

/* Lengths of text on both sides of the step from version 1.0 to 2.0. */
START_TEST(test_write_version_2)
{
	bool seen[3] = { false };

	for (uint32_t rank = 2940; rank < 3010; rank++) {
		_cleanup_buf_ struct stfs_buf buf = { 0 }, text = { 0 };
		const uint8_t *p;
		size_t len, start;

		for (uint32_t i = 0; i < rank; i++)
			ck_assert_int_eq(stfs_buf_append_str(&text, "18446744073709551615,"), 0);
		ck_assert_int_eq(stfs_npy_write(&buf, STFS_F32, (struct stfs_dims){ text.data, rank }), 0);
		p = (const uint8_t *)buf.data;
		ck_assert(p[6] == 1 || p[6] == 2);
		seen[p[6]] = true;
		start = p[6] == 1 ? 10 : 12;
		len = p[6] == 1 ? p[8] | (size_t)p[9] << 8 :
				  p[8] | (size_t)p[9] << 8 | (size_t)p[10] << 16 | (size_t)p[11] << 24;
		ck_assert_uint_eq(start + len, buf.len);
		ck_assert_uint_eq(buf.len % 64, 0);
		ck_assert_int_eq(buf.data[buf.len - 1], '\n');
	}
	ck_assert(seen[1] && seen[2]);
}
END_TEST

/* A version 1.0 file around `text`. */
static int parse_text(const char *text, struct stfs_npy *ret)
{
	uint8_t bytes[4096] = "\x93NUMPY\x01\x00";
	size_t len = strlen(text);

	ck_assert_uint_lt(len, sizeof(bytes) - 10);
	bytes[8] = (uint8_t)len;
	bytes[9] = (uint8_t)(len >> 8);
	memcpy(bytes + 10, text, len);
	return stfs_npy_parse(bytes, 10 + len, NULL, ret);
}

static int parse_descr(const char *descr, struct stfs_npy *ret)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };

	ck_assert_int_eq(stfs_buf_printf(&buf, "{'descr': %s, 'fortran_order': False, 'shape': (2, 3), }\n", descr), 0);
	return parse_text(buf.data, ret);
}

START_TEST(test_descr)
{
	static const struct {
		const char *descr;
		int result;
		enum stfs_dtype dtype; /* STFS_DTYPE_COUNT: none said */
	} cases[] = {
		{ "'|V2'", 0, STFS_BF16 },
		{ "'<V2'", 0, STFS_BF16 },
		{ "'>V2'", 0, STFS_BF16 },
		{ "'|V1'", 0, STFS_DTYPE_COUNT },
		{ "'<V1'", 0, STFS_DTYPE_COUNT },
		{ "'<f1'", 0, STFS_F8_E5M2 },
		{ "\"<f4\"", 0, STFS_F32 },
		{ "'<u1'", 0, STFS_U8 },
		{ "'>i1'", 0, STFS_I8 },
		{ "'>f4'", -EOPNOTSUPP, 0 },
		{ "'>c8'", -EOPNOTSUPP, 0 },
		{ "'|f4'", -EOPNOTSUPP, 0 },
		{ "'f4'", -EOPNOTSUPP, 0 },
		{ "'<c16'", -EOPNOTSUPP, 0 },
		{ "'<f16'", -EOPNOTSUPP, 0 },
		{ "'|O'", -EOPNOTSUPP, 0 },
		{ "'<U3'", -EOPNOTSUPP, 0 },
		{ "'|V3'", -EOPNOTSUPP, 0 },
		{ "'<W4'", -EOPNOTSUPP, 0 },
		{ "'<M8[ns]'", -EOPNOTSUPP, 0 },
		{ "'<'", -EOPNOTSUPP, 0 },
		{ "''", -EOPNOTSUPP, 0 },
		{ "[('a', '<f4'), ('b', '<i2')]", -EOPNOTSUPP, 0 },
		{ "'<f4", -EBADMSG, 0 },
		{ "<f4", -EBADMSG, 0 },
		{ "'<\\x664'", -EBADMSG, 0 },
		{ "None", -EBADMSG, 0 },
		{ "", -EBADMSG, 0 },
	};

	for (size_t i = 0; i < STFS_ARRAY_SIZE(cases); i++) {
		struct stfs_npy npy = { 0 };

		ck_assert_msg(parse_descr(cases[i].descr, &npy) == cases[i].result, "%s", cases[i].descr);
		if (cases[i].result == 0)
			ck_assert_int_eq(npy.has_dtype, cases[i].dtype != STFS_DTYPE_COUNT);
		if (npy.has_dtype)
			ck_assert_int_eq(npy.dtype, cases[i].dtype);
	}
}
END_TEST

START_TEST(test_shape)
{
	static const struct {
		const char *shape;
		int result;
		uint32_t rank;
		uint64_t first;
	} cases[] = {
		{ "()", 0, 0, 0 },
		{ "( )", 0, 0, 0 },
		{ "(3,)", 0, 1, 3 },
		{ "(3 , )", 0, 1, 3 },
		{ "(2,3)", 0, 2, 2 },
		{ "(2, 3,)", 0, 2, 2 },
		{ "(0, 4)", 0, 2, 0 },
		{ "(18446744073709551615,)", 0, 1, UINT64_MAX },
		{ "(18446744073709551616,)", -EBADMSG, 0, 0 },
		{ "(99999999999999999999999,)", -EBADMSG, 0, 0 },
		{ "(3)", -EBADMSG, 0, 0 },
		{ "(,)", -EBADMSG, 0, 0 },
		{ "(2, , 3)", -EBADMSG, 0, 0 },
		{ "(2 3)", -EBADMSG, 0, 0 },
		{ "(2, 3", -EBADMSG, 0, 0 },
		{ "[2, 3]", -EBADMSG, 0, 0 },
		{ "(-1,)", -EBADMSG, 0, 0 },
		{ "(+1,)", -EBADMSG, 0, 0 },
		{ "(03,)", -EBADMSG, 0, 0 },
		{ "(3L,)", -EBADMSG, 0, 0 },
		{ "(1.5,)", -EBADMSG, 0, 0 },
		{ "3", -EBADMSG, 0, 0 },
	};

	for (size_t i = 0; i < STFS_ARRAY_SIZE(cases); i++) {
		_cleanup_buf_ struct stfs_buf buf = { 0 };
		struct stfs_npy npy = { 0 };

		ck_assert_int_eq(stfs_buf_printf(&buf, "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }",
						 cases[i].shape),
				 0);
		ck_assert_msg(parse_text(buf.data, &npy) == cases[i].result, "%s", cases[i].shape);
		ck_assert_uint_eq(npy.rank, cases[i].rank);
		ck_assert_uint_eq(npy.shape[0], cases[i].first);
	}
}
END_TEST

START_TEST(test_rank_64)
{
	for (int rank = 63; rank < 67; rank++) {
		_cleanup_buf_ struct stfs_buf buf = { 0 };
		struct stfs_npy npy;
		int r = stfs_buf_append_str(&buf, "{'descr': '<f4', 'fortran_order': False, 'shape': (");

		for (int i = 0; r == 0 && i < rank; i++)
			r = stfs_buf_append_str(&buf, "7, ");
		if (r == 0)
			r = stfs_buf_append_str(&buf, ")}");
		ck_assert_int_eq(r, 0);
		ck_assert_int_eq(parse_text(buf.data, &npy), rank > 64 ? -EOPNOTSUPP : 0);
	}
}
END_TEST

START_TEST(test_dict)
{
	static const struct {
		const char *text;
		int result;
	} cases[] = {
		{ "{'shape': (1,), 'descr': '<f4', 'fortran_order': False}", 0 },
		{ "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(1,)}", 0 },
		{ " { 'descr' : '<f4' , 'fortran_order' : False , 'shape' : (1,) , } \n\n", 0 },
		{ "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", -EOPNOTSUPP },
		{ "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3), }", -EBADMSG },
		{ "{'descr': '<f4', 'fortran_order': Falsehood, 'shape': (2, 3), }", -EBADMSG },
		{ "{'descr': '<f4', 'fortran_order': False, }", -EBADMSG },
		{ "{'descr': '<f4', 'shape': (2, 3), }", -EBADMSG },
		{ "{'fortran_order': False, 'shape': (2, 3), }", -EBADMSG },
		{ "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", -EBADMSG },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': 1}", -EBADMSG },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } x", -EBADMSG },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3),, }", -EBADMSG },
		{ "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3), }", -EBADMSG },
		{ "{'descr' '<f4', 'fortran_order': False, 'shape': (2, 3), }", -EBADMSG },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), ", -EBADMSG },
		{ "{descr: '<f4', 'fortran_order': False, 'shape': (2, 3), }", -EBADMSG },
		{ "{}", -EBADMSG },
		{ "{", -EBADMSG },
		{ "", -EBADMSG },
		{ "[]", -EBADMSG },
	};

	for (size_t i = 0; i < STFS_ARRAY_SIZE(cases); i++) {
		struct stfs_npy npy;

		ck_assert_msg(parse_text(cases[i].text, &npy) == cases[i].result, "%s", cases[i].text);
	}
}
END_TEST

static int parse_bytes(const char *bytes, size_t len)
{
	struct stfs_npy npy;
	struct stfs_diag diag = { 0 };
	int r = stfs_npy_parse((const uint8_t *)bytes, len, &diag, &npy);

	/* whoever is refused is told why */
	ck_assert_int_eq(diag.text[0] != '\0', r < 0 && r != -EAGAIN);
	return r;
}
#define PARSE(literal) parse_bytes(literal, sizeof(literal) - 1)

START_TEST(test_preamble)
{
	ck_assert_int_eq(parse_bytes(NULL, 0), -EAGAIN);
	ck_assert_int_eq(PARSE("\x93NUM"), -EAGAIN);
	ck_assert_int_eq(PARSE("PK"), -EBADMSG);
	ck_assert_int_eq(PARSE("\x93NUMPX"), -EBADMSG);
	ck_assert_int_eq(PARSE("\x93NUMPY\x00\x00"), -EOPNOTSUPP);
	ck_assert_int_eq(PARSE("\x93NUMPY\x04\x00"), -EOPNOTSUPP);
	ck_assert_int_eq(PARSE("\x93NUMPY\x01\x01"), -EOPNOTSUPP);
	ck_assert_int_eq(PARSE("\x93NUMPY\x01\x00\x76"), -EAGAIN);
	ck_assert_int_eq(PARSE("\x93NUMPY\x02\x00\xff\xff\x00"), -EAGAIN);
	ck_assert_int_eq(PARSE("\x93NUMPY\x02\x00\xff\xff\x00\x00"), -EAGAIN);
	/* a claim of 64 KiB or 4 GiB is refused at once, not waited for */
	ck_assert_int_eq(PARSE("\x93NUMPY\x02\x00\x00\x00\x01\x00"), -EOPNOTSUPP);
	ck_assert_int_eq(PARSE("\x93NUMPY\x02\x00\xff\xff\xff\xff"), -EOPNOTSUPP);
	ck_assert_int_eq(PARSE("\x93NUMPY\x01\x00\x00\x00"), -EBADMSG);
}
END_TEST

START_TEST(test_parse_versions_2_and_3)
{
	static const char text[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";

	for (uint8_t version = 2; version <= 3; version++) {
		uint8_t bytes[128] = "\x93NUMPY";
		struct stfs_npy npy;

		bytes[6] = version;
		bytes[8] = sizeof(text) - 1;
		memcpy(bytes + 12, text, sizeof(text) - 1);
		ck_assert_int_eq(stfs_npy_parse(bytes, sizeof(bytes), NULL, &npy), 0);
		ck_assert_uint_eq(npy.header_size, 12 + sizeof(text) - 1);
		ck_assert_int_eq(npy.dtype, STFS_F32);
	}
}
END_TEST

START_TEST(test_foreign_text_is_quoted)
{
	static const char bytes[] = "\x93NUMPY\x01\x00\x3c\x00"
				    "{'descr': '<\x1b[2J', 'fortran_order': False, 'shape': (2, 3)}\n";
	struct stfs_diag diag = { 0 };
	struct stfs_npy npy;

	ck_assert_int_eq(stfs_npy_parse((const uint8_t *)bytes, sizeof(bytes) - 1, &diag, &npy), -EOPNOTSUPP);
	ck_assert_ptr_nonnull(strstr(diag.text, "\"<\\x1b[2J\""));
	ck_assert_ptr_null(strchr(diag.text, '\x1b'));
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("npy");

	tcase_add_test(tcase, test_write_is_what_numpy_writes);
	tcase_add_test(tcase, test_parse_what_numpy_writes);
	tcase_add_test(tcase, test_write_appends);
	tcase_add_test(tcase, test_write_sub_byte);
	tcase_add_test(tcase, test_write_version_2);
	tcase_add_test(tcase, test_descr);
	tcase_add_test(tcase, test_shape);
	tcase_add_test(tcase, test_rank_64);
	tcase_add_test(tcase, test_dict);
	tcase_add_test(tcase, test_preamble);
	tcase_add_test(tcase, test_parse_versions_2_and_3);
	tcase_add_test(tcase, test_foreign_text_is_quoted);
	return run_tests("npy", tcase);
}
