/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "run_tests.h"
#include "shard_name.h"

static const struct {
	const char *name;
	bool ok;
	const char *stem, *variant;
	bool numbered;
	uint64_t number, total;
} weights[] = {
	{ "model.safetensors", true, "model", "", false, 0, 0 },
	{ "model.fp16.safetensors", true, "model", "fp16", false, 0, 0 },
	{ "model-00001-of-00003.safetensors", true, "model", "", true, 1, 3 },
	{ "model.fp16-00001-of-00003.safetensors", true, "model", "fp16", true, 1, 3 },
	{ "model-00001-of-00003.fp16.safetensors", true, "model", "fp16", true, 1, 3 },
	{ "shard-00001-model-00001-of-00001.safetensors", true, "shard-00001-model", "", true, 1, 1 },
	{ "model-rank-0-part-0.safetensors", true, "model-rank-0-part-0", "", false, 0, 0 },
	{ "out-00000.safetensors", true, "out-00000", "", false, 0, 0 },
	{ "model-99999999999999999999-of-00003.safetensors", true, "model-99999999999999999999-of-00003", "", false, 0,
	  0 },
	{ "-of-.safetensors", true, "-of-", "", false, 0, 0 },
	{ ".safetensors", false, "", "", false, 0, 0 },
	{ "model.safetensors.index.json", false, "", "", false, 0, 0 },
	{ "model.bin", false, "", "", false, 0, 0 },
};

START_TEST(test_weights)
{
	struct stfs_shard_name name;

	ck_assert(stfs_shard_name_parse(stfs_slice_of(weights[_i].name), &name) == weights[_i].ok);
	if (!weights[_i].ok)
		return;
	ck_assert(stfs_slice_is(name.stem, weights[_i].stem));
	ck_assert(stfs_slice_is(name.variant, weights[_i].variant));
	ck_assert(name.numbered == weights[_i].numbered);
	ck_assert_uint_eq(name.number, weights[_i].number);
	ck_assert_uint_eq(name.total, weights[_i].total);
}
END_TEST

static const struct {
	const char *name;
	bool ok;
	const char *stem, *variant;
} indexes[] = {
	{ "model.safetensors.index.json", true, "model", "" },
	{ "model.safetensors.index.fp16.json", true, "model", "fp16" },
	{ "model.safetensors.fp16.index.json", true, "model", "fp16" },
	{ "diffusion_pytorch_model.safetensors.index.json", true, "diffusion_pytorch_model", "" },
	{ ".safetensors.index.json", false, "", "" },
	{ "model.safetensors", false, "", "" },
	{ "model.safetensors.json", false, "", "" },
	{ "model.safetensors.index.json.bak", false, "", "" },
	{ "pytorch_model.bin.index.json", false, "", "" },
	{ "", false, "", "" },
};

START_TEST(test_indexes)
{
	struct stfs_shard_name name;

	ck_assert_msg(stfs_index_name_parse(stfs_slice_of(indexes[_i].name), &name) == indexes[_i].ok, "%s",
		      indexes[_i].name);
	if (!indexes[_i].ok)
		return;
	ck_assert(stfs_slice_is(name.stem, indexes[_i].stem));
	ck_assert(stfs_slice_is(name.variant, indexes[_i].variant));
}
END_TEST

START_TEST(test_same_set)
{
	struct stfs_shard_name a, b;

	stfs_shard_name_parse(stfs_slice_of("m-00001-of-00002.safetensors"), &a);
	stfs_shard_name_parse(stfs_slice_of("m-00002-of-00002.safetensors"), &b);
	ck_assert(stfs_shard_name_same_set(&a, &b));
	stfs_shard_name_parse(stfs_slice_of("m-00002-of-00003.safetensors"), &b);
	ck_assert(!stfs_shard_name_same_set(&a, &b));
	stfs_shard_name_parse(stfs_slice_of("m.fp16-00002-of-00002.safetensors"), &b);
	ck_assert(!stfs_shard_name_same_set(&a, &b));
	stfs_shard_name_parse(stfs_slice_of("m.safetensors"), &b);
	ck_assert(!stfs_shard_name_same_set(&b, &b));
}
END_TEST

START_TEST(test_compare)
{
	static const char *const sorted[] = {
		"m-00001-of-00012.safetensors", "m-00009-of-00012.safetensors",
		"m-00010-of-00012.safetensors", "m-1-of-12.safetensors",
		"m-2-of-12.safetensors",        "m-10-of-12.safetensors",
		"m-12-of-12.safetensors",       "m.safetensors",
	};

	for (size_t i = 0; i < sizeof(sorted) / sizeof(sorted[0]); i++)
		for (size_t k = 0; k < sizeof(sorted) / sizeof(sorted[0]); k++) {
			int r = stfs_shard_name_compare(sorted[i], sorted[k]);

			ck_assert_msg((r > 0) - (r < 0) == (i > k) - (i < k), "%s %s", sorted[i], sorted[k]);
		}
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, test_weights, 0, sizeof(weights) / sizeof(weights[0]));
	tcase_add_loop_test(tcase, test_indexes, 0, sizeof(indexes) / sizeof(indexes[0]));
	tcase_add_test(tcase, test_same_set);
	tcase_add_test(tcase, test_compare);
	return run_tests("shard_name", tcase);
}
