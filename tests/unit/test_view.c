/* SPDX-License-Identifier: Apache-2.0 */

#include "heap.h"
#include "run_tests.h"
#include "tree.h"
#include "view_fixture.h"

static struct maker maker;
static struct stfs_view *view;
static char x300[301];

static void setup(void)
{
	fixture_setup();
	memset(x300, 'x', 300);
}

static void teardown(void)
{
	stfs_view_free(view);
	view = NULL;
	fixture_teardown();
}

static void reopen(struct stfs_view_options options)
{
	stfs_view_free(view);
	view = view_open("m.safetensors", options);
}

/* Every odd kind of name. The header is not in the order of the data. */
static void write_odd_model(void)
{
	maker_tensor(&maker, "m.b", "BF16", "3", 6);
	maker_scalar(&maker, "m");
	maker_metadata(&maker, "{\"format\":\"pt\",\".git\":\"x\",\"\":\"\"}");
	maker_scalar(&maker, "");
	maker_scalar(&maker, "nul\\u0000.a/b%");
	maker_scalar(&maker, x300);
	maker_scalar(&maker, "data");
	maker_scalar(&maker, "m.data.npy");
	maker_scalar(&maker, "__metadata__.x");
	maker_tensor(&maker, "f4", "F4", "4", 2);
	maker_tensor(&maker, "zero", "I64", "0,4", 0);
	maker_write(&maker, "m.safetensors");
	view = view_open_default("m.safetensors");
}

START_TEST(lists_in_order_of_offset)
{
	char expected[600];

	write_odd_model();
	snprintf(expected, sizeof(expected),
		 ". .. __metadata__ m %%_ nul%%00 %.240s%%+ %%64ata %%5F_metadata__ f4 zero", x300);
	ck_assert_str_eq(view_names(view, ""), expected);
	ck_assert_str_eq(view_names(view, "m"), ". .. data dtype shape b %64ata");
	ck_assert_str_eq(view_names(view, "m/b"), ". .. data dtype shape");
	ck_assert_str_eq(view_names(view, "nul%00"), ". .. a%2Fb%25");
	ck_assert_str_eq(view_names(view, "__metadata__"), ". .. format %2Egit %_");
	ck_assert_str_eq(view_names(view, ".safetensors"), ". .. tensors.tsv header.json status");
	snprintf(expected, sizeof(expected), "%.240s%%+", x300);
	ck_assert_str_eq(strchr(view_names(view, expected), 'x'), x300 + 240);
}
END_TEST

START_TEST(lists_whole_names_when_flat)
{
	char expected[600];

	write_odd_model();
	reopen((struct stfs_view_options){ .layout = STFS_FLAT });
	snprintf(expected, sizeof(expected),
		 ". .. __metadata__ m.b m %%_ nul%%00.a%%2Fb%%25 %.240s%%+ %%64ata m.data.npy __metadata__.x f4 zero",
		 x300);
	ck_assert_str_eq(view_names(view, ""), expected);
	ck_assert_str_eq(view_names(view, "m"), ". .. data dtype shape");
}
END_TEST

START_TEST(npy_is_listed_hidden_or_off)
{
	struct stfs_attr attr;

	write_odd_model();
	ck_assert_uint_eq(view_stat(view, "m/b/data.npy").size, 128 + 6);
	ck_assert_int_eq(view_walk(view, "f4/data.npy", &attr), -ENOENT);
	reopen((struct stfs_view_options){ .npy = STFS_LIST });
	ck_assert_str_eq(view_names(view, "m/b"), ". .. data.npy data dtype shape");
	ck_assert_str_eq(view_names(view, "f4"), ". .. data dtype shape");
	reopen((struct stfs_view_options){ .npy = STFS_OFF });
	ck_assert_int_eq(view_walk(view, "m/b/data.npy", &attr), -ENOENT);
	/* Here it is the name of a tensor. */
	ck_assert_str_eq(view_link(view, "m/data.npy"), "%64ata/npy");
}
END_TEST

START_TEST(control_is_listed_or_hidden)
{
	write_odd_model();
	ck_assert_int_eq(view_stat(view, ".safetensors").type, STFS_NODE_DIR);
	ck_assert_uint_eq(view_stat(view, "").nlink, 2 + 9);
	reopen((struct stfs_view_options){ .control = STFS_LIST });
	ck_assert_int_eq(strncmp(view_names(view, ""), ". .. .safetensors __metadata__ m ", 33), 0);
	ck_assert_uint_eq(view_stat(view, "").nlink, 2 + 10);
	ck_assert_uint_eq(view_stat(view, ".safetensors").nlink, 2);
}
END_TEST

START_TEST(attributes_are_those_of_the_file)
{
	struct stat st;
	struct stfs_attr attr;

	write_odd_model();
	ck_assert_int_eq(stat(fixture_path("m.safetensors"), &st), 0);
	attr = view_stat(view, "m/b/data");
	ck_assert_int_eq(attr.type, STFS_NODE_FILE);
	ck_assert_uint_eq(attr.perm, 0444);
	ck_assert_uint_eq(attr.nlink, 1);
	ck_assert_uint_eq(attr.size, 6);
	ck_assert_uint_eq(attr.blksize, 1 << 20);
	ck_assert_uint_eq(attr.uid, st.st_uid);
	ck_assert_uint_eq(attr.gid, st.st_gid);
	ck_assert_mem_eq(&attr.mtime, &st.st_mtim, sizeof(attr.mtime));
	ck_assert_uint_eq(view_stat(view, "m/b/data.npy").blksize, 1 << 20);
	ck_assert_uint_eq(view_stat(view, "m/b/dtype").size, strlen("BF16\n"));
	ck_assert_uint_eq(view_stat(view, "m/b/dtype").blksize, 4096);
	ck_assert_uint_eq(view_stat(view, "m/shape").size, 1);
	ck_assert_uint_eq(view_stat(view, "zero/shape").size, 4);
	ck_assert_uint_eq(view_stat(view, "zero/data").size, 0);
	ck_assert_uint_eq(view_stat(view, "__metadata__/format").size, 3);
	ck_assert_uint_eq(view_stat(view, "__metadata__/%_").size, 1);
	attr = view_stat(view, "m");
	ck_assert_int_eq(attr.type, STFS_NODE_DIR);
	ck_assert_uint_eq(attr.perm, 0555);
	ck_assert_uint_eq(attr.nlink, 2 + 2);
	ck_assert_uint_eq(attr.size, 0);
	ck_assert_mem_eq(&attr.mtime, &st.st_mtim, sizeof(attr.mtime));
	ck_assert_uint_eq(view_stat(view, "__metadata__").nlink, 2);
	ck_assert_uint_eq(view_ino(view, ""), STFS_INO_ROOT);
}
END_TEST

/* Two shards of different modes and ages. */
START_TEST(the_whole_is_no_more_readable_than_its_parts)
{
	struct timespec old[2] = { { 1000, 1 }, { 1000, 1 } }, new[2] = { { 2000, 2 }, { 2000, 2 } };

	maker_scalar(&maker, "x");
	maker_metadata(&maker, "{\"k\":\"v\"}");
	maker_write(&maker, "model-00001-of-00002.safetensors");
	maker_scalar(&maker, "y");
	maker_write(&maker, "model-00002-of-00002.safetensors");
	ck_assert_int_eq(chmod(fixture_path("model-00001-of-00002.safetensors"), 0640), 0);
	ck_assert_int_eq(chmod(fixture_path("model-00002-of-00002.safetensors"), 0604), 0);
	utimensat(AT_FDCWD, fixture_path("model-00001-of-00002.safetensors"), new, 0);
	utimensat(AT_FDCWD, fixture_path("model-00002-of-00002.safetensors"), old, 0);
	view = view_open_default("");
	ck_assert_uint_eq(view_stat(view, "x/data").perm, 0440);
	ck_assert_uint_eq(view_stat(view, "y/dtype").perm, 0404);
	ck_assert_uint_eq(view_stat(view, "").perm, 0500);
	ck_assert_uint_eq(view_stat(view, "x").perm, 0500);
	ck_assert_uint_eq(view_stat(view, "__metadata__/k").perm, 0400);
	ck_assert_uint_eq(view_stat(view, ".safetensors/status").perm, 0400);
	ck_assert_int_eq(view_stat(view, "x/shape").mtime.tv_sec, 2000);
	ck_assert_int_eq(view_stat(view, "y/data").mtime.tv_sec, 1000);
	ck_assert_int_eq(view_stat(view, "y").mtime.tv_sec, 2000);
	ck_assert_int_eq(view_stat(view, ".safetensors/tensors.tsv").mtime.tv_nsec, 2);
}
END_TEST

START_TEST(what_is_not_there)
{
	struct stfs_attr attr = { .ino = 99 };
	struct stfs_listing *listing = NULL;
	char name[257];

	write_odd_model();
	memset(name, 'n', 256);
	name[256] = '\0';
	ck_assert_int_eq(stfs_view_lookup(view, STFS_INO_ROOT, stfs_slice_of(name), &attr), -ENAMETOOLONG);
	ck_assert_int_eq(stfs_view_lookup(view, STFS_INO_ROOT, stfs_slice_of(name + 1), &attr), -ENOENT);
	ck_assert_int_eq(stfs_view_lookup(view, STFS_INO_ROOT, stfs_slice_of(""), &attr), -ENOENT);
	ck_assert_int_eq(stfs_view_lookup(view, STFS_INO_ROOT, stfs_slice_of("\xff.\xfe"), &attr), -ENOENT);
	ck_assert_int_eq(stfs_view_lookup(view, view_ino(view, "m/dtype"), stfs_slice_of("x"), &attr), -ENOTDIR);
	ck_assert_int_eq(stfs_view_lookup(view, 12345678, stfs_slice_of("x"), &attr), -ESTALE);
	for (uint64_t ino = 0; ino < 200; ino++) {
		int expected = ino >= 1 && ino <= 6 ? 0 : -ESTALE;

		ck_assert_int_eq(stfs_view_getattr(view, ino, &attr), expected);
	}
	attr.ino = 99;
	/* No tensor, so no slots; the slot of a key is of keys only. */
	ck_assert_int_eq(stfs_view_getattr(view, view_ino(view, "nul%00") + 1, &attr), -ESTALE);
	ck_assert_int_eq(stfs_view_getattr(view, view_ino(view, "f4") + 4, &attr), -ESTALE);
	ck_assert_int_eq(stfs_view_getattr(view, view_ino(view, "m") + 6, &attr), -ESTALE);
	ck_assert_int_eq(stfs_view_getattr(view, view_ino(view, "m") + 7, &attr), -ESTALE);
	ck_assert_int_eq(stfs_view_getattr(view, view_ino(view, "__metadata__/format") - 6, &attr), -ESTALE);
	ck_assert_int_eq(stfs_view_list(view, view_ino(view, "m/data"), &listing), -ENOTDIR);
	ck_assert_int_eq(stfs_view_list(view, 12345678, &listing), -ESTALE);
	ck_assert_ptr_null(listing);
	ck_assert_uint_eq(attr.ino, 99);
}
END_TEST

START_TEST(dots_lead_here_and_up)
{
	write_odd_model();
	ck_assert_uint_eq(view_ino(view, "m/b/.."), view_ino(view, "m"));
	ck_assert_uint_eq(view_ino(view, "m/."), view_ino(view, "m"));
	ck_assert_uint_eq(view_ino(view, ".."), STFS_INO_ROOT);
	ck_assert_uint_eq(view_ino(view, "__metadata__/.."), STFS_INO_ROOT);
	ck_assert_uint_eq(view_ino(view, ".safetensors/.."), STFS_INO_ROOT);
	ck_assert_uint_eq(view_ino(view, ".safetensors/."), view_ino(view, ".safetensors"));
}
END_TEST

static int compare_inos(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x < y ? -1 : x > y;
}

static void collect_ino(void *user, const struct stfs_attr *attr)
{
	if (stfs_buf_append(user, &attr->ino, sizeof(attr->ino)) < 0)
		ck_abort_msg("out of memory");
}

/* All numbers that listings show, sorted. */
static struct stfs_buf all_inos(void)
{
	struct stfs_buf inos = { 0 };

	view_each(view, collect_ino, &inos);
	qsort(inos.data, inos.len / sizeof(uint64_t), sizeof(uint64_t), compare_inos);
	return inos;
}

START_TEST(inode_numbers_are_unique_and_stable)
{
	static const struct stfs_view_options all = { .npy = STFS_LIST, .control = STFS_LIST };
	struct stfs_buf first, second;
	uint64_t m_b, key;

	write_odd_model();
	reopen(all);
	first = all_inos();
	ck_assert_uint_gt(first.len / sizeof(uint64_t), 50);
	for (size_t i = sizeof(uint64_t); i < first.len; i += sizeof(uint64_t))
		ck_assert_int_lt(compare_inos(first.data + i - sizeof(uint64_t), first.data + i), 0);
	reopen(all);
	second = all_inos();
	ck_assert(stfs_slice_equal(stfs_buf_slice(&first), stfs_buf_slice(&second)));
	stfs_buf_fini(&first);
	stfs_buf_fini(&second);
	m_b = view_ino(view, "m/b/data");
	key = view_ino(view, "__metadata__/format");
	/* Another file that has these two and little else. */
	maker_metadata(&maker, "{\"other\":\"\",\"format\":\"tf\"}");
	maker_scalar(&maker, "a");
	maker_tensor(&maker, "m.b", "F32", "1", 4);
	maker_write(&maker, "m.safetensors");
	reopen(all);
	ck_assert_uint_eq(view_ino(view, "m/b/data"), m_b);
	ck_assert_uint_eq(view_ino(view, "__metadata__/format"), key);
}
END_TEST

START_TEST(an_empty_model_is_a_root_with_metadata)
{
	struct stfs_view_totals totals;

	maker_write(&maker, "m.safetensors");
	view = view_open_default("m.safetensors");
	ck_assert_str_eq(view_names(view, ""), ". .. __metadata__");
	ck_assert_str_eq(view_names(view, "__metadata__"), ". ..");
	ck_assert_uint_eq(view_stat(view, "").nlink, 3);
	stfs_view_totals(view, &totals);
	ck_assert_uint_eq(totals.bytes, 0);
	ck_assert_uint_eq(totals.nodes, 2);
}
END_TEST

START_TEST(totals_count_files_and_directories)
{
	struct stfs_view_totals totals;
	struct stfs_buf inos;

	write_odd_model();
	stfs_view_totals(view, &totals);
	inos = all_inos();
	ck_assert_uint_eq(totals.nodes, inos.len / sizeof(uint64_t));
	ck_assert_uint_eq(totals.bytes, 6 + 7 * 4 + 2);
	ck_assert_uint_eq(totals.bytes, stfs_view_model(view)->data_size);
	stfs_buf_fini(&inos);
}
END_TEST

/* What the log writes goes to stderr: to a file meanwhile. */
static void capture_view(const char *name, char text[4096])
{
	struct stfs_view_options options = { 0 };
	struct stfs_log *log = NULL;
	int fd = open(fixture_path("log"), O_RDWR | O_CREAT | O_TRUNC, 0600), saved = dup(STDERR_FILENO);
	ssize_t n;

	ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	ck_assert_int_eq(stfs_log_new("test", false, &log), 0);
	ck_assert_int_eq(stfs_view_new(fixture_open(name), &options, log, NULL, &view), 0);
	ck_assert_int_eq(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	close(saved);
	n = pread(fd, text, 4095, 0);
	ck_assert_int_ge(n, 0);
	text[n] = '\0';
	close(fd);
	stfs_view_free(view);
	view = NULL;
	stfs_log_free(log);
}

START_TEST(keys_too_long_for_a_name_are_left_out_and_logged_once)
{
	char json[1024], text[4096];

	snprintf(json, sizeof(json), "{\"%.255s\":\"fits\",\"%.256s\":\"1\",\"%.257s\":\"2\"}", x300, x300, x300);
	maker_metadata(&maker, json);
	maker_write(&maker, "m.safetensors");
	view = view_open_default("m.safetensors");
	snprintf(json, sizeof(json), ". .. %.255s", x300);
	ck_assert_str_eq(view_names(view, "__metadata__"), json);
	stfs_view_free(view);
	capture_view("m.safetensors", text);
	ck_assert_ptr_nonnull(strstr(text, "leaves out 2 "));
	ck_assert_ptr_nonnull(strstr(text, "m.safetensors"));
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
}
END_TEST

/* A name of nothing but dots makes a directory a byte. */
START_TEST(too_many_directories_are_refused)
{
	struct stfs_view_options options = { 0 };
	struct stfs_diag diag = { 0 };
	struct stfs_view *none = NULL;
	char *dots = malloc(STFS_NODES_MAX + 1);

	memset(dots, '.', STFS_NODES_MAX);
	dots[STFS_NODES_MAX] = '\0';
	maker_scalar(&maker, dots);
	maker_write(&maker, "m.safetensors");
	ck_assert_int_eq(stfs_view_new(fixture_open("m.safetensors"), &options, NULL, &diag, &none), -EFBIG);
	ck_assert_ptr_null(none);
	ck_assert_ptr_nonnull(strstr(diag.text, "m.safetensors"));
	ck_assert_ptr_nonnull(strstr(diag.text, "-o flat"));
	reopen((struct stfs_view_options){ .layout = STFS_FLAT });
	free(dots);
}
END_TEST

static void count_entry(void *user, const struct stfs_attr *attr)
{
	(void)attr;
	(*(size_t *)user)++;
}

/* 100,000 tensors, as a mixture-of-experts model has them. A sanitizer's allocator reports no sizes here. */
START_TEST(a_big_model_costs_little)
{
	struct stfs_model *model;
	struct stfs_view_options options = { 0 };
	size_t before, built, n = 0, nodes;
	char name[128];

	for (int layer = 0; layer < 50; layer++) {
		for (int expert = 0; expert < 1000; expert++) {
			for (int i = 0; i < 2; i++) {
				snprintf(name, sizeof(name), "model.layers.%d.mlp.experts.%d.%s.weight", layer, expert,
					 i ? "up_proj" : "down_proj");
				maker_tensor(&maker, name, "U8", "1", 1);
			}
		}
	}
	maker_write(&maker, "m.safetensors");
	model = fixture_open("m.safetensors");
	before = heap_in_use();
	ck_assert_int_eq(stfs_view_new(model, &options, NULL, NULL, &view), 0);
	built = heap_in_use();
	nodes = 2 + 2 + 50 * 3 + 50 * 1000 + 2 * 100000;
	ck_assert_uint_le((built - before) / nodes, 68);
	view_each(view, count_entry, &n);
	ck_assert_uint_eq(n, nodes + 3 * 100000);
	ck_assert_uint_le(heap_in_use(), built + 65536);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("view");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, lists_in_order_of_offset);
	tcase_add_test(tcase, lists_whole_names_when_flat);
	tcase_add_test(tcase, npy_is_listed_hidden_or_off);
	tcase_add_test(tcase, control_is_listed_or_hidden);
	tcase_add_test(tcase, attributes_are_those_of_the_file);
	tcase_add_test(tcase, the_whole_is_no_more_readable_than_its_parts);
	tcase_add_test(tcase, what_is_not_there);
	tcase_add_test(tcase, dots_lead_here_and_up);
	tcase_add_test(tcase, inode_numbers_are_unique_and_stable);
	tcase_add_test(tcase, an_empty_model_is_a_root_with_metadata);
	tcase_add_test(tcase, totals_count_files_and_directories);
	tcase_add_test(tcase, keys_too_long_for_a_name_are_left_out_and_logged_once);
	tcase_add_test(tcase, too_many_directories_are_refused);
	tcase_add_test(tcase, a_big_model_costs_little);
	return run_tests("view", tcase);
}
