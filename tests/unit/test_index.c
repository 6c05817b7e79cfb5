/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "findings.h"
#include "index.h"
#include "run_tests.h"

static struct findings findings;

static struct stfs_index *parse(const char *json)
{
	struct stfs_index *index = NULL;
	char *text = strdup(json);

	findings_init(&findings);
	if (stfs_index_parse(text, strlen(text), &findings.report, &index) < 0)
		free(text);
	return index;
}

static const struct {
	const char *json, *says;
} refused[] = {
	{ "", "expected an object" },
	{ "[]", "expected an object" },
	{ "{}", "expected a weight_map" },
	{ "{\"weight_map\":{}}", "names no file" },
	{ "{\"weight_map\":[]}", "expected an object of tensor names" },
	{ "{\"weight_map\":{\"a\":1}}", "tensor \"a\": expected a file name, found a number" },
	{ "{\"weight_map\":{\"a\":[\"x\"]}}", "found an array" },
	{ "{\"weight_map\":{\"a\":\"x.safetensors\",\"\\u0061\":\"y.safetensors\"}}", "duplicate name \"a\"" },
	{ "{\"weight_map\":{\"a\":\"x.safetensors\"},\"weight_map\":{}}", "duplicate key weight_map" },
	{ "{\"weight_map\":{\"a\":\"../x.safetensors\"}}", "leaves its folder" },
	{ "{\"weight_map\":{\"a\":\"x/../../y.safetensors\"}}", "leaves its folder" },
	{ "{\"weight_map\":{\"a\":\"/x.safetensors\"}}", "is absolute" },
	{ "{\"weight_map\":{\"a\":\"..\\\\x.safetensors\"}}", "has a backslash" },
	{ "{\"weight_map\":{\"a\":\"C:x.safetensors\"}}", "drive letter" },
	{ "{\"weight_map\":{\"a\":\"x.bin\"}}", "does not end in .safetensors" },
	{ "{\"weight_map\":{\"a\":\"x.safetensors\\u0000.bin\"}}", "has a NUL" },
	{ "{\"weight_map\":{\"a\":\"\"}}", "is empty" },
	{ "{\"weight_map\":{\"a\":\"x.safetensors\"}", "',' or '}'" },
	{ "{\"metadata\":{\"x\":NaN},\"weight_map\":{\"a\":\"x.safetensors\"}}", "expected a value" },
	{ "\xef\xbb\xbf{\"weight_map\":{\"a\":\"x.safetensors\"}}", "expected an object" },
	{ "{\"weight_map\":{\"\xff\":\"x.safetensors\"}}", "invalid UTF-8" },
};

START_TEST(test_refused)
{
	ck_assert_ptr_null(parse(refused[_i].json));
	ck_assert_msg(strstr(findings.text, refused[_i].says), "%s\nsays: %s", refused[_i].json, findings.text);
}
END_TEST

START_TEST(test_accepted)
{
	struct stfs_index *index =
		parse("{\"metadata\":{\"total_size\":52.0,\"total_parameters\":17,\"x\":{\"y\":[1]}},"
		      "\"extra\":[],\"weight_map\":{\"b\":\"two.safetensors\",\"a\\n\":\"sub/./one.safetensors\","
		      "\"c\":\"two.safetensors\"}}");

	ck_assert_msg(index, "%s", findings.text);
	ck_assert_uint_eq(index->n_entries, 3);
	ck_assert_uint_eq(index->n_files, 2);
	ck_assert(stfs_slice_is(index->files[0], "two.safetensors"));
	ck_assert_uint_eq(stfs_index_find(index, stfs_slice_of("a\n"))->file, 1);
	ck_assert_uint_eq(stfs_index_find(index, stfs_slice_of("c"))->file, 0);
	ck_assert_ptr_null(stfs_index_find(index, stfs_slice_of("d")));
	ck_assert(index->has_total_size && index->total_size == 52.0);
	ck_assert(index->has_total_parameters && index->total_parameters == 17.0);
	ck_assert(stfs_slice_starts(index->metadata, "{\"total_size\"") && stfs_slice_ends(index->metadata, "}}"));
	stfs_index_free(index);
}
END_TEST

START_TEST(test_odd_metadata_is_no_error)
{
	struct stfs_index *index = parse("{\"metadata\":null,\"weight_map\":{\"a\":\"x.safetensors\"}}");

	ck_assert_ptr_nonnull(index);
	ck_assert(!index->has_total_size);
	ck_assert_uint_eq(index->metadata.len, 0);
	stfs_index_free(index);
	index = parse("{\"metadata\":{\"total_size\":\"52\"},\"weight_map\":{\"a\":\"x.safetensors\"}}");
	ck_assert_ptr_nonnull(index);
	ck_assert(!index->has_total_size);
	stfs_index_free(index);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, test_refused, 0, sizeof(refused) / sizeof(refused[0]));
	tcase_add_test(tcase, test_accepted);
	tcase_add_test(tcase, test_odd_metadata_is_no_error);
	return run_tests("index", tcase);
}
