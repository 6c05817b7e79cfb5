/* SPDX-License-Identifier: Apache-2.0 */
/* Which files make a model, and how their tensors are joined. */
#include <errno.h>

#include "findings.h"
#include "model_fixture.h"
#include "run_tests.h"

static struct findings findings;

/* Opens the fixture's directory, or a file in it. */
static struct stfs_model *open_with(const char *name, struct stfs_model_options options, int *ret_error)
{
	struct stfs_model *model = NULL;

	findings_init(&findings);
	*ret_error = stfs_model_open(fixture_path(name), &options, &findings.report, &model);
	ck_assert_ptr_eq(findings.report.file, "test"); /* given back as it was */
	return model;
}

/* A file with scalars of these names, separated by spaces. */
static void make(const char *file, const char *tensors)
{
	struct maker maker = { 0 };
	char copy[200], *state, *name;

	snprintf(copy, sizeof(copy), "%s", tensors);
	for (name = strtok_r(copy, " ", &state); name; name = strtok_r(NULL, " ", &state))
		maker_scalar(&maker, name);
	maker_write(&maker, file);
}

static void make_text(const char *file, const char *text)
{
	FILE *f = fopen(fixture_path(file), "w");

	fputs(text, f);
	fclose(f);
}

static void make_index(const char *file)
{
	make_text(file, "{\"metadata\":{\"total_size\":12},\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\","
			"\"b\":\"model-00002-of-00002.safetensors\",\"c\":\"model-00002-of-00002.safetensors\"}}");
}

#define SHARD1 "model-00001-of-00002.safetensors"
#define SHARD2 "model-00002-of-00002.safetensors"
#define INDEX "model.safetensors.index.json"

static void expect(const char *options_index, bool partial, int error, const char *names, const char *says)
{
	struct stfs_model_options options = { .index = options_index, .partial = partial };
	char found[200] = "";
	int r;
	struct stfs_model *model = open_with("", options, &r);

	ck_assert_msg(r == error, "%d: %s", r, findings.text);
	for (uint32_t i = 0; model && i < model->n_entries; i++) {
		struct stfs_slice name = stfs_model_tensor(model, i)->name;

		snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%.*s", i ? " " : "", (int)name.len,
			 name.p);
		ck_assert_uint_eq(stfs_model_find(model, name), i);
		for (uint32_t near = 0; near <= model->n_entries; near++)
			ck_assert_uint_eq(stfs_model_find_near(model, name, near), i);
	}
	if (model) {
		ck_assert_str_eq(found, names);
		ck_assert_uint_eq(model->data_size, 4u * model->n_entries);
		ck_assert_uint_eq(stfs_model_find(model, stfs_slice_of("none")), STFS_ENTRY_NONE);
	}
	if (says)
		ck_assert_msg(strstr(findings.text, says), "%s", findings.text);
	else
		ck_assert_str_eq(findings.text, "");
	stfs_model_free(model);
}

START_TEST(test_single)
{
	struct stfs_model *model;
	int r;

	make("model.safetensors", "a b");
	expect(NULL, false, 0, "a b", NULL);
	model = open_with("model.safetensors", (struct stfs_model_options){ 0 }, &r);
	ck_assert_str_eq(model->label, "model");
	ck_assert(!model->sharded);
	ck_assert_uint_eq(stfs_model_offset(model, 1), stfs_model_offset(model, 0) + 4);
	stfs_model_free(model);
}
END_TEST

START_TEST(test_index)
{
	make(SHARD1, "a");
	make(SHARD2, "b c");
	make_index(INDEX);
	expect(NULL, false, 0, "a b c", NULL);
	make("model.safetensors", "x");
	expect(NULL, false, 0, "a b c", "1 files it does not name are left out: \"model.safetensors\"");
	expect("model.safetensors", false, 0, "x", "left out");
	expect(INDEX, false, 0, "a b c", "left out");
	expect("other", false, -EBADMSG, "", "names no index");
	expect("../" INDEX, false, -EBADMSG, "", "names no index");
}
END_TEST

START_TEST(test_index_as_source)
{
	struct stfs_model *model;
	int r;

	make(SHARD1, "a");
	make(SHARD2, "b c");
	make_index(INDEX);
	model = open_with(INDEX, (struct stfs_model_options){ 0 }, &r);
	ck_assert_int_eq(r, 0);
	ck_assert_uint_eq(model->n_entries, 3);
	ck_assert(model->sharded);
	ck_assert_str_eq(model->label, "model");
	stfs_model_free(model);
}
END_TEST

START_TEST(test_index_against_headers)
{
	make(SHARD1, "a c d");
	make(SHARD2, "b");
	make_index(INDEX);
	expect(NULL, false, 0, "a c d b", "tensor \"c\" is in model-00001-of-00002.safetensors, the index says");
	ck_assert_ptr_nonnull(strstr(findings.text, "tensor \"d\" of model-00001-of-00002.safetensors is not listed"));
	ck_assert_ptr_nonnull(strstr(
		findings.text, "the index lists tensor \"c\" in model-00002-of-00002.safetensors, which has no such"));
	ck_assert_ptr_nonnull(strstr(findings.text, "total_size 12, its tensors have 8 bytes"));
	make(SHARD2, "b c");
	expect(NULL, false, 0, "a d b c",
	       "tensor \"c\" is in model-00001-of-00002.safetensors and in model-00002-of-00002.safetensors: "
	       "the index takes the latter");
}
END_TEST

static void cut_last_byte(const char *file)
{
	struct stat st;

	ck_assert_int_eq(stat(fixture_path(file), &st), 0);
	ck_assert_int_eq(truncate(fixture_path(file), st.st_size - 1), 0);
}

START_TEST(test_missing_and_short_shards)
{
	make(SHARD1, "a");
	make_index(INDEX);
	expect(NULL, false, -EBADMSG, "", "error: shard is missing");
	expect(NULL, true, 0, "a", "warning: shard is missing");
	ck_assert_int_eq(symlink("../blobs/gone", fixture_path(SHARD2)), 0);
	expect(NULL, false, -EBADMSG, "", "link to a file that is not there");
	unlink(fixture_path(SHARD2));
	make(SHARD2, "b c");
	cut_last_byte(SHARD2);
	expect(NULL, false, -EBADMSG, "", "1 bytes are missing");
	expect(NULL, true, 0, "a", "the file is left out");
	ck_assert_int_eq(truncate(fixture_path(SHARD1), 3), 0);
	expect(NULL, true, -EBADMSG, "", "none of its 2 files can be used");
}
END_TEST

/* One file is not a set with a part missing: with partial it is refused by the same sentence. */
START_TEST(test_partial_of_one_file)
{
	make("model.safetensors", "a b");
	cut_last_byte("model.safetensors");
	expect(NULL, false, -EBADMSG, "", "error: file is cut short: the tensors need 8 bytes of data, the file has 7");
	expect(NULL, true, -EBADMSG, "", "error: file is cut short: the tensors need 8 bytes of data, the file has 7");
	expect("model.safetensors", true, -EBADMSG, "",
	       "error: file is cut short: the tensors need 8 bytes of data, the file has 7");
}
END_TEST

START_TEST(test_several_indexes)
{
	make(SHARD1, "a");
	make(SHARD2, "b c");
	make_index(INDEX);
	make_index("model.safetensors.index.fp16.json");
	expect(NULL, false, 0, "a b c", "the plain index \"model.safetensors.index.json\" is taken");
	make_index("other.safetensors.index.json");
	expect(NULL, false, -EBADMSG, "", "several models in one directory");
	ck_assert_ptr_nonnull(strstr(findings.text, "\"model.safetensors.index.json\""));
	ck_assert_ptr_nonnull(strstr(findings.text, "\"other.safetensors.index.json\""));
	unlink(fixture_path("other.safetensors.index.json"));
	make_index("model.safetensors.index.bf16.json");
	unlink(fixture_path(INDEX));
	expect(NULL, false, -EBADMSG, "", "several variants");
	expect("model.safetensors.index.bf16.json", false, 0, "a b c", NULL);
}
END_TEST

START_TEST(test_without_index)
{
	make(SHARD1, "a");
	expect(NULL, false, -EBADMSG, "", "shard number 2 of 2 is missing");
	expect(NULL, true, 0, "a", "shard number 2 of 2 is missing");
	make(SHARD2, "b c");
	expect(NULL, false, 0, "a b c", "no index: 2 shards are joined by their names");
	make(SHARD2, "b a");
	expect(NULL, false, -EBADMSG, "", "slices or copies are never merged");
	make("x.safetensors", "x");
	expect(NULL, false, -EBADMSG, "", "never merged");
	make(SHARD2, "b");
	expect(NULL, false, -EBADMSG, "", "no index that says which belong together");
}
END_TEST

START_TEST(test_numbers_from_zero)
{
	make("out-00000-of-00002.safetensors", "a");
	make("out-00001-of-00002.safetensors", "b");
	expect(NULL, false, 0, "a b", "joined by their names");
	make("out-00002-of-00002.safetensors", "c");
	expect(NULL, false, 0, "a b c", "joined by their names");
	unlink(fixture_path("out-00001-of-00002.safetensors"));
	expect(NULL, false, -EBADMSG, "", "shard number 1 of 2 is missing");
}
END_TEST

START_TEST(test_numbers_without_zeros)
{
	char name[64], tensor[8], all[200] = "", map[2000] = "";

	for (int i = 1; i <= 12; i++) {
		snprintf(name, sizeof(name), "model-%d-of-12.safetensors", i);
		snprintf(tensor, sizeof(tensor), "t%d", i);
		make(name, tensor);
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i > 1 ? " " : "", tensor);
		snprintf(map + strlen(map), sizeof(map) - strlen(map), "%s\"%s\":\"%s\"",
			 i > 1 ? "," : "{\"weight_map\":{", tensor, name);
	}
	expect(NULL, false, 0, all, "no index: 12 shards are joined by their names");
	snprintf(map + strlen(map), sizeof(map) - strlen(map), "}}");
	make_text(INDEX, map);
	expect(NULL, false, 0, all, NULL);
	unlink(fixture_path(INDEX));
	unlink(fixture_path("model-10-of-12.safetensors"));
	expect(NULL, false, -EBADMSG, "", "shard number 10 of 12 is missing");
}
END_TEST

START_TEST(test_variants_without_index)
{
	make("model.safetensors", "a");
	make("model.fp16.safetensors", "b");
	expect(NULL, false, 0, "a", "\"model.safetensors\" is taken, and \"model.fp16.safetensors\" left out");
	unlink(fixture_path("model.safetensors"));
	expect(NULL, false, 0, "b", NULL);
}
END_TEST

START_TEST(test_slices)
{
	struct maker maker = { 0 };

	maker_metadata(&maker, "{\"DCP_SHARDING_INFO\":\"{}\"}");
	maker_scalar(&maker, "a");
	maker_write(&maker, SHARD1);
	make(SHARD2, "b");
	expect(NULL, false, -EBADMSG, "", "slices of a distributed checkpoint");
}
END_TEST

START_TEST(test_nothing_here)
{
	expect(NULL, false, -EBADMSG, "", "no .safetensors file and no index");
	make("._model.safetensors", "a");
	expect(NULL, false, -EBADMSG, "", "no .safetensors file and no index");
}
END_TEST

START_TEST(test_lost_links)
{
	char target[300];

	/* A cache entry whose links became text: snapshots/REV/model.safetensors says ../../blobs/HASH. */
	snprintf(target, sizeof(target), "%s/snapshots", fixture_dir);
	ck_assert_int_eq(mkdir(target, 0700), 0);
	snprintf(target, sizeof(target), "%s/snapshots/rev", fixture_dir);
	ck_assert_int_eq(mkdir(target, 0700), 0);
	ck_assert_int_eq(mkdir(fixture_path("blobs"), 0700), 0);
	make("blobs/0a1b", "a b");
	make_text("snapshots/rev/model.safetensors", "../../blobs/0a1b");
	expect(NULL, false, 0, "a b", NULL);
	make_text("snapshots/rev/model.safetensors", "../../blobs/../x");
	expect(NULL, false, -EBADMSG, "", "header");
	unlink(fixture_path("snapshots/rev/model.safetensors"));
	unlink(fixture_path("blobs/0a1b"));
	ck_assert_int_eq(rmdir(target), 0);
	ck_assert_int_eq(rmdir(fixture_path("snapshots")), 0);
	ck_assert_int_eq(rmdir(fixture_path("blobs")), 0);
}
END_TEST

START_TEST(test_merged_metadata)
{
	struct maker maker = { 0 };
	struct stfs_model *model;
	int r;

	maker_metadata(&maker, "{\"format\":\"pt\",\"x\":\"1\"}");
	maker_scalar(&maker, "a");
	maker_write(&maker, SHARD1);
	maker_metadata(&maker, "{\"format\":\"pt\",\"x\":\"2\",\"y\":\"3\"}");
	maker_scalar(&maker, "b");
	maker_write(&maker, SHARD2);
	model = open_with("", (struct stfs_model_options){ 0 }, &r);
	ck_assert_int_eq(r, 0);
	ck_assert_uint_eq(model->n_metadata, 3);
	ck_assert(stfs_slice_is(model->metadata[1].value, "1"));
	ck_assert(stfs_slice_is(model->metadata[2].value, "3"));
	ck_assert_ptr_nonnull(
		strstr(findings.text, "metadata \"x\" has another value in model-00002-of-00002.safetensors"));
	stfs_model_free(model);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_checked_fixture(tcase, fixture_setup, fixture_teardown);
	tcase_add_test(tcase, test_single);
	tcase_add_test(tcase, test_index);
	tcase_add_test(tcase, test_index_as_source);
	tcase_add_test(tcase, test_index_against_headers);
	tcase_add_test(tcase, test_missing_and_short_shards);
	tcase_add_test(tcase, test_partial_of_one_file);
	tcase_add_test(tcase, test_several_indexes);
	tcase_add_test(tcase, test_without_index);
	tcase_add_test(tcase, test_numbers_from_zero);
	tcase_add_test(tcase, test_numbers_without_zeros);
	tcase_add_test(tcase, test_variants_without_index);
	tcase_add_test(tcase, test_slices);
	tcase_add_test(tcase, test_nothing_here);
	tcase_add_test(tcase, test_lost_links);
	tcase_add_test(tcase, test_merged_metadata);
	return run_tests("model", tcase);
}
