/* SPDX-License-Identifier: Apache-2.0 */
#include "model_fixture.h"
#include "run_tests.h"
#include "text.h"

static struct maker maker;
static struct stfs_buf buf;

static void teardown(void)
{
	stfs_buf_fini(&buf);
	fixture_teardown();
}

static struct stfs_tensor tensor_of(enum stfs_dtype dtype, const char *dims, uint32_t rank)
{
	return (struct stfs_tensor){ .dtype = (uint8_t)dtype, .dims = dims, .rank = rank };
}

START_TEST(dtype_is_its_name)
{
	for (int i = 0; i < STFS_DTYPE_COUNT; i++) {
		struct stfs_tensor tensor = tensor_of((enum stfs_dtype)i, "", 0);
		enum stfs_dtype again = STFS_DTYPE_COUNT;

		buf.len = 0;
		ck_assert_int_eq(stfs_text_dtype(&buf, &tensor), 0);
		ck_assert_int_eq(buf.data[buf.len - 1], '\n');
		ck_assert(stfs_dtype_parse((struct stfs_slice){ buf.data, buf.len - 1 }, &again));
		ck_assert_int_eq(again, i);
	}
}
END_TEST

START_TEST(shape_is_a_line_of_numbers)
{
	static const struct {
		const char *dims;
		uint32_t rank;
		const char *text;
	} cases[] = {
		{ "", 0, "\n" },
		{ "7]", 1, "7\n" },
		{ "11008, 4096]", 2, "11008 4096\n" },
		{ " 0 ,4 ]", 2, "0 4\n" },
		{ "0,18446744073709551615,1]", 3, "0 18446744073709551615 1\n" },
	};

	for (size_t i = 0; i < STFS_ARRAY_SIZE(cases); i++) {
		struct stfs_tensor tensor = tensor_of(STFS_F32, cases[i].dims, cases[i].rank);

		buf.len = 0;
		ck_assert_int_eq(stfs_text_shape(&buf, &tensor), 0);
		ck_assert_str_eq(buf.data, cases[i].text);
	}
}
END_TEST

START_TEST(metadata_is_the_value_and_a_newline)
{
	struct stfs_metadata_entry entry = { .value = { "p\0t\n", 4 } };

	ck_assert_int_eq(stfs_text_metadata(&buf, &entry), 0);
	ck_assert(stfs_slice_equal(stfs_buf_slice(&buf), (struct stfs_slice){ "p\0t\n\n", 5 }));
	entry.value = (struct stfs_slice){ 0 };
	ck_assert_int_eq(stfs_text_metadata(&buf, &entry), 0);
	ck_assert(stfs_slice_equal(stfs_buf_slice(&buf), (struct stfs_slice){ "p\0t\n\n\n", 6 }));
}
END_TEST

START_TEST(table_has_a_row_a_tensor)
{
	struct stfs_model *model;
	char expected[1024];

	maker_tensor(&maker, "second.part", "BF16", "2,3", 12);
	maker_scalar(&maker, "");
	maker_tensor(&maker, "tab\\t nul\\u0000 del\\u007f 100% \\u00e9\\n", "U8", "0,4", 0);
	maker_write(&maker, "m.safetensors");
	model = fixture_open("m.safetensors");
	for (int flat = 0; flat < 2; flat++) {
		unsigned long long start = stfs_header_data_start(stfs_snapshot_header(model->files[0]));
		const char *file = stfs_snapshot_name(model->files[0]);

		snprintf(expected, sizeof(expected),
			 "#name\tdtype\tshape\tbytes\tfile\toffset\tpath\n"
			 "second.part\tBF16\t2,3\t12\t%s\t%llu\tsecond%cpart\n"
			 "\tF32\t-\t4\t%s\t%llu\t%%_\n"
			 "tab%%09 nul%%00 del%%7F 100%% \u00e9%%0A\tU8\t0,4\t0\t%s\t%llu\t"
			 "tab%%09 nul%%00 del%%7F 100%%25 \u00e9%%0A\n",
			 file, start, flat ? '.' : '/', file, start + 12, file, start + 16);
		buf.len = 0;
		ck_assert_int_eq(stfs_text_tensors_tsv(&buf, model, flat ? STFS_FLAT : STFS_NESTED), 0);
		ck_assert_str_eq(buf.data, expected);
	}
	stfs_model_free(model);
}
END_TEST

START_TEST(table_of_an_empty_model_is_its_first_line)
{
	struct stfs_model *model;

	maker_write(&maker, "m.safetensors");
	model = fixture_open("m.safetensors");
	ck_assert_int_eq(stfs_text_tensors_tsv(&buf, model, STFS_NESTED), 0);
	ck_assert_str_eq(buf.data, "#name\tdtype\tshape\tbytes\tfile\toffset\tpath\n");
	stfs_model_free(model);
}
END_TEST

/* Without the spaces that pad a header. */
static void drop_padding(void)
{
	size_t to = 0;

	for (size_t i = 0; i < buf.len; i++)
		if (buf.data[i] != ' ')
			buf.data[to++] = buf.data[i];
	buf.data[to] = '\0';
	buf.len = to;
}

START_TEST(header_is_one_object)
{
	struct stfs_model *model;

	maker_scalar(&maker, "x");
	maker_metadata(&maker, "{\"b\":\"2\", \"a\":\"1\"}");
	maker_write(&maker, "m.safetensors");
	model = fixture_open("m.safetensors");
	ck_assert_int_eq(stfs_text_header_json(&buf, model), 0);
	drop_padding();
	ck_assert_str_eq(buf.data, "{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\"},"
				   "\"x\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}\n");
	stfs_model_free(model);
}
END_TEST

START_TEST(header_of_shards_is_an_object_of_files)
{
	struct stfs_model *model;

	maker_scalar(&maker, "x");
	maker_write(&maker, "model-00001-of-00002.safetensors");
	maker_scalar(&maker, "y");
	maker_write(&maker, "model-00002-of-00002.safetensors");
	model = fixture_open("");
	ck_assert_int_eq(stfs_text_header_json(&buf, model), 0);
	drop_padding();
	ck_assert_str_eq(buf.data, "{\"model-00001-of-00002.safetensors\":"
				   "{\"x\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}},"
				   "\"model-00002-of-00002.safetensors\":"
				   "{\"y\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}}\n");
	stfs_model_free(model);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("text");

	tcase_add_checked_fixture(tcase, fixture_setup, teardown);
	tcase_add_test(tcase, dtype_is_its_name);
	tcase_add_test(tcase, shape_is_a_line_of_numbers);
	tcase_add_test(tcase, metadata_is_the_value_and_a_newline);
	tcase_add_test(tcase, table_has_a_row_a_tensor);
	tcase_add_test(tcase, table_of_an_empty_model_is_its_first_line);
	tcase_add_test(tcase, header_is_one_object);
	tcase_add_test(tcase, header_of_shards_is_an_object_of_files);
	return run_tests("text", tcase);
}
