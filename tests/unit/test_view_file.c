/* SPDX-License-Identifier: Apache-2.0 */
#include "run_tests.h"
#include "text.h"
#include "view_fixture.h"

static struct maker maker;
static struct stfs_view *view;
static struct stfs_log *logger;

static void open_view(enum stfs_io io)
{
	struct stfs_view_options options = { 0 };

	stfs_view_free(view);
	view = NULL;
	ck_assert_int_eq(stfs_view_new(fixture_open_io("m.safetensors", io), &options, logger, NULL, &view), 0);
}

static void setup(void)
{
	fixture_setup();
	maker_tensor(&maker, "first", "U8", "10", 10);
	maker_tensor(&maker, "a.w", "F32", "16,16", 1024);
	maker_tensor(&maker, "zero", "F32", "0,4", 0);
	maker_metadata(&maker, "{\"format\":\"pt\\n\"}");
	maker_write(&maker, "m.safetensors");
	open_view(STFS_IO_AUTO);
}

static void teardown(void)
{
	stfs_view_free(view);
	view = NULL;
	stfs_log_free(logger);
	logger = NULL;
	fixture_teardown();
}

static struct stfs_file *open_path(const char *path)
{
	struct stfs_file *file = NULL;

	ck_assert_int_eq(stfs_view_open(view, view_ino(view, path), &file), 0);
	return file;
}

/* Bytes of a run, wherever they are, appended to `buf`: told as extents, and read again for comparison. */
static void read_run(struct stfs_file *file, uint64_t offset, size_t size, struct stfs_buf *buf)
{
	_cleanup_(stfs_reading_fini) struct stfs_reading reading = { .n = 0 };
	size_t start = buf->len, n = 0;
	char *again;

	ck_assert_int_eq(stfs_file_map(file, offset, size, &reading), 0);
	ck_assert_int_eq(stfs_buf_reserve(buf, (size_t)reading.len), 0);
	for (int i = 0; i < reading.n; i++) {
		const struct stfs_extent *extent = &reading.extents[i];

		ck_assert_uint_gt(extent->len, 0);
		if (extent->mem)
			memcpy(buf->data + buf->len, extent->mem, extent->len);
		else
			ck_assert_int_eq(pread(extent->fd, buf->data + buf->len, extent->len, (off_t)extent->offset),
					 (ssize_t)extent->len);
		buf->len += extent->len;
		buf->data[buf->len] = '\0';
	}
	again = malloc(reading.len + 1);
	ck_assert_int_eq(stfs_file_read(file, offset, again, (size_t)reading.len, &n), 0);
	ck_assert_uint_eq(n, reading.len);
	ck_assert_int_eq(memcmp(again, buf->data + start, n), 0);
	free(again);
}

static struct stfs_buf read_path(const char *path)
{
	struct stfs_file *file = open_path(path);
	struct stfs_buf buf = { 0 };

	read_run(file, 0, SIZE_MAX, &buf);
	stfs_file_close(file);
	return buf;
}

static void check_content(const char *path, const char *expected)
{
	struct stfs_buf buf = read_path(path);

	ck_assert_msg(stfs_slice_is(stfs_buf_slice(&buf), expected), "%s: %s", path, buf.data);
	ck_assert_uint_eq(view_stat(view, path).size, buf.len);
	stfs_buf_fini(&buf);
}

START_TEST(small_files_hold_their_text)
{
	struct stfs_buf text = { 0 };

	check_content("a/w/dtype", "F32\n");
	check_content("a/w/shape", "16 16\n");
	check_content("zero/shape", "0 4\n");
	check_content("__metadata__/format", "pt\n\n");
	check_content(".safetensors/status", "read-only: what is staged is not shown\n");
	ck_assert_int_eq(stfs_text_tensors_tsv(&text, stfs_view_model(view), STFS_NESTED), 0);
	check_content(".safetensors/tensors.tsv", text.data);
	text.len = 0;
	ck_assert_int_eq(stfs_text_header_json(&text, stfs_view_model(view)), 0);
	check_content(".safetensors/header.json", text.data);
	stfs_buf_fini(&text);
}
END_TEST

static void check_all_runs(const char *path, const struct stfs_buf *whole)
{
	struct stfs_file *file = open_path(path);
	struct stfs_buf buf = { 0 };

	for (size_t at = 0; at <= whole->len; at += 37) {
		for (size_t size = 0; size < 300; size += 23) {
			size_t expected = STFS_MIN(size, whole->len - at);

			buf.len = 0;
			read_run(file, at, size, &buf);
			ck_assert_uint_eq(buf.len, expected);
			if (expected)
				ck_assert_mem_eq(buf.data, whole->data + at, expected);
		}
	}
	stfs_buf_fini(&buf);
	stfs_file_close(file);
}

START_TEST(data_is_exact_at_every_offset)
{
	static const enum stfs_io ways[] = { STFS_IO_MAP, STFS_IO_PREAD };

	for (size_t i = 0; i < STFS_ARRAY_SIZE(ways); i++) {
		struct stfs_buf data, npy;

		open_view(ways[i]);
		data = read_path("a/w/data");
		npy = read_path("a/w/data.npy");
		ck_assert_uint_eq(data.len, 1024);
		for (size_t at = 0; at < data.len; at++)
			if ((uint8_t)data.data[at] != ((10 + at) & 0xff))
				ck_abort_msg("byte %zu is wrong", at);
		ck_assert_uint_eq(npy.len, 128 + 1024);
		ck_assert_uint_eq(npy.len, view_stat(view, "a/w/data.npy").size);
		ck_assert_mem_eq(npy.data, "\x93NUMPY", 6);
		ck_assert_mem_eq(npy.data + 128, data.data, 1024);
		check_all_runs("a/w/data", &data);
		check_all_runs("a/w/data.npy", &npy);
		stfs_buf_fini(&data);
		stfs_buf_fini(&npy);
	}
}
END_TEST

START_TEST(mapped_data_is_handed_on_as_an_address)
{
	struct stfs_file *file = open_path("a/w/data.npy");
	struct stfs_snapshot *source = stfs_view_model(view)->files[0];
	const char *map = stfs_snapshot_map(source);
	_cleanup_(stfs_reading_fini) struct stfs_reading reading = { .n = 0 };
	const struct stfs_extent *extents = reading.extents;
	uint64_t start = stfs_header_data_start(stfs_snapshot_header(source)) + 10;

	ck_assert_ptr_nonnull(map);
	ck_assert_int_eq(stfs_file_map(file, 120, 20, &reading), 0);
	ck_assert_int_eq(reading.n, 2);
	ck_assert_uint_eq(extents[0].len, 8);
	ck_assert_ptr_eq(extents[1].mem, map + start);
	ck_assert_uint_eq(extents[1].len, 12);
	ck_assert_int_eq(stfs_file_map(file, 128 + 1000, SIZE_MAX, &reading), 0);
	ck_assert_int_eq(reading.n, 1);
	ck_assert_ptr_eq(extents[0].mem, map + start + 1000);
	ck_assert_uint_eq(extents[0].len, 24);
	stfs_file_close(file);
	open_view(STFS_IO_PREAD);
	file = open_path("a/w/data");
	ck_assert_int_eq(stfs_file_map(file, 4, 5, &reading), 0);
	ck_assert_int_eq(reading.n, 1);
	ck_assert_ptr_null(extents[0].mem);
	ck_assert_int_eq(extents[0].fd, stfs_snapshot_fd(stfs_view_model(view)->files[0]));
	ck_assert_uint_eq(extents[0].offset, start + 4);
	stfs_file_close(file);
}
END_TEST

START_TEST(nothing_is_beyond_the_end)
{
	static const char *const paths[] = { "a/w/data", "a/w/data.npy", "a/w/dtype", "zero/data" };
	_cleanup_(stfs_reading_fini) struct stfs_reading reading = { .n = 0 };

	for (size_t i = 0; i < STFS_ARRAY_SIZE(paths); i++) {
		struct stfs_file *file = open_path(paths[i]);
		uint64_t size = view_stat(view, paths[i]).size;

		ck_assert_int_eq(stfs_file_map(file, size, 10, &reading), 0);
		ck_assert_int_eq(reading.n, 0);
		ck_assert_int_eq(stfs_file_map(file, size + 1, SIZE_MAX, &reading), 0);
		ck_assert_int_eq(reading.n, 0);
		ck_assert_int_eq(stfs_file_map(file, UINT64_MAX, SIZE_MAX, &reading), 0);
		ck_assert_int_eq(reading.n, 0);
		ck_assert_int_eq(stfs_file_map(file, 0, 0, &reading), 0);
		ck_assert_int_eq(reading.n, 0);
		stfs_file_close(file);
	}
}
END_TEST

START_TEST(only_files_open)
{
	struct stfs_file *file = NULL;

	ck_assert_int_eq(stfs_view_open(view, STFS_INO_ROOT, &file), -EISDIR);
	ck_assert_int_eq(stfs_view_open(view, view_ino(view, "a/w"), &file), -EISDIR);
	ck_assert_int_eq(stfs_view_open(view, view_ino(view, ".safetensors"), &file), -EISDIR);
	ck_assert_int_eq(stfs_view_open(view, view_ino(view, "a.w"), &file), -ELOOP);
	ck_assert_int_eq(stfs_view_open(view, 12345678, &file), -ESTALE);
	ck_assert_ptr_null(file);
}
END_TEST

/* Sends stderr to the file "log" for the rest of this test, which runs in a process of its own. */
static void log_to_file(void)
{
	int fd = open(fixture_path("log"), O_RDWR | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	close(fd);
	ck_assert_int_eq(stfs_log_new("test", false, &logger), 0);
	open_view(STFS_IO_AUTO);
}

static size_t count_log_lines(const char *must_contain)
{
	FILE *log = fopen(fixture_path("log"), "r");
	char line[2048];
	size_t n = 0;

	ck_assert_ptr_nonnull(log);
	for (; fgets(line, sizeof(line), log); n++)
		ck_assert_ptr_nonnull(strstr(line, must_contain));
	fclose(log);
	return n;
}

START_TEST(a_changed_source_is_eio_and_one_line)
{
	_cleanup_(stfs_reading_fini) struct stfs_reading reading = { .n = 0 };
	struct stfs_file *data, *npy, *late;

	log_to_file();
	data = open_path("a/w/data");
	npy = open_path("first/data.npy");
	ck_assert_int_eq(stfs_file_map(data, 0, 10, &reading), 0);
	ck_assert_int_eq(reading.n, 1);
	ck_assert_int_eq(stfs_file_check(data), 0);
	ck_assert_uint_eq(count_log_lines(""), 0);
	ck_assert_int_eq(truncate(fixture_path("m.safetensors"), 100), 0);
	ck_assert_int_eq(stfs_file_check(data), -EIO);
	ck_assert_int_eq(stfs_file_map(data, 0, 10, &reading), -EIO);
	ck_assert_int_eq(stfs_file_map(data, 0, 10, &reading), -EIO);
	ck_assert_int_eq(stfs_file_map(npy, 0, 10, &reading), -EIO);
	late = open_path("zero/data");
	ck_assert_int_eq(stfs_file_map(late, 0, 10, &reading), -EIO);
	ck_assert_uint_eq(count_log_lines("m.safetensors"), 1);
	/* What was read when mounting is still true. */
	check_content("a/w/shape", "16 16\n");
	check_content("__metadata__/format", "pt\n\n");
	stfs_file_close(data);
	stfs_file_close(npy);
	stfs_file_close(late);
}
END_TEST

START_TEST(a_chmod_or_a_rename_over_it_is_no_change)
{
	struct stfs_file *file;
	_cleanup_(stfs_reading_fini) struct stfs_reading reading = { .n = 0 };

	log_to_file();
	file = open_path("a/w/data");
	ck_assert_int_eq(chmod(fixture_path("m.safetensors"), 0600), 0);
	ck_assert_int_eq(stfs_file_map(file, 0, 10, &reading), 0);
	ck_assert_int_eq(reading.n, 1);
	ck_assert_int_eq(unlink(fixture_path("m.safetensors")), 0);
	ck_assert_int_eq(stfs_file_map(file, 0, 10, &reading), 0);
	ck_assert_int_eq(reading.n, 1);
	ck_assert_uint_eq(count_log_lines(""), 0);
	stfs_file_close(file);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("view_file");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, small_files_hold_their_text);
	tcase_add_test(tcase, data_is_exact_at_every_offset);
	tcase_add_test(tcase, mapped_data_is_handed_on_as_an_address);
	tcase_add_test(tcase, nothing_is_beyond_the_end);
	tcase_add_test(tcase, only_files_open);
	tcase_add_test(tcase, a_changed_source_is_eio_and_one_line);
	tcase_add_test(tcase, a_chmod_or_a_rename_over_it_is_no_change);
	return run_tests("view_file", tcase);
}
