/* SPDX-License-Identifier: Apache-2.0 */
/* Editing a view, and finding the edits again. Each test ends by looking at the tree twice: as it is, and as it is replayed. */
#include "edit_fixture.h"
#include "run_tests.h"

START_TEST(nothing_is_made_by_looking)
{
	expect("model/a/w/dtype", "F32\n");
	expect_status("# nothing is staged\n");
	ck_assert_int_eq(access(fixture_path(".m.stage"), F_OK), -1);
}
END_TEST

START_TEST(small_files)
{
	uint64_t ino = ino_of("model/a/w/shape");

	ck_assert_int_eq(put("model/a/w/shape", "3 2\n"), 0);
	ck_assert_uint_eq(ino_of("model/a/w/shape"), ino);
	ck_assert_int_eq(put("__metadata__/note", "y\n\n"), 0);
	ck_assert_int_eq(put("__metadata__/new", "z"), 0);
	ck_assert_int_eq(do_unlink("__metadata__/format"), 0);
	for (int i = 0; i < 2; i++) {
		expect("model/a/w/shape", "3 2\n");
		expect("__metadata__/note", "y\n\n");
		expect("__metadata__/new", "z");
		ck_assert(!is_there("__metadata__/format"));
		ck_assert_uint_eq(ino_of("model/a/w/shape"), ino);
		expect_status("M model.a.w (shape)\nM __metadata__/note\nA __metadata__/new\nD __metadata__/format\n"
			      "# 4 changes, 0 incomplete, 0 scratch files\n");
		reopen();
	}
}
END_TEST

START_TEST(nonsense_is_refused_and_the_old_text_stays)
{
	const struct stfs_attr_change cut = { .set_size = true };
	struct stfs_file *file;
	struct stfs_attr attr;
	size_t written;

	ck_assert_int_eq(put("model/a/w/dtype", "F33\n"), -EINVAL);
	expect("model/a/w/dtype", "F32\n");
	ck_assert_int_eq(put("model/a/w/shape", "two\n"), -EINVAL);
	expect("model/a/w/shape", "2 3\n");
	/* vim opens the file and empties it then; once more after a text that was taken. */
	file = open_write("model/a/w/shape", false);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(stfs_file_setattr(file, &cut, &attr), 0);
		ck_assert_uint_eq(attr.size, 0);
		ck_assert_int_eq(stfs_file_write(file, "two\n", 4, 0, &written), -EINVAL);
		expect("model/a/w/shape", i ? "6\n" : "2 3\n");
		ck_assert_int_eq(stfs_file_setattr(file, &cut, &attr), 0);
		ck_assert_int_eq(stfs_file_write(file, "6\n", 2, 0, &written), 0);
	}
	stfs_file_close(file);
	/* In pieces nothing can be told. */
	ck_assert_int_eq(put("model/a/w/dtype", "B"), 0);
	expect_status("! model.a.w: its dtype is none of the format\n# 0 changes, 1 incomplete, 0 scratch files\n");
}
END_TEST

START_TEST(bytes_over_a_run)
{
	struct stfs_buf before = bytes_of("model/big/data"), after;

	ck_assert_int_eq(write_at("model/big/data", false, "XYZ", 3, 50000), 0);
	ck_assert_int_eq(write_at("model/big/data", false, "W", 1, 0), 0);
	memcpy(before.data + 50000, "XYZ", 3);
	before.data[0] = 'W';
	for (int i = 0; i < 2; i++) {
		after = bytes_of("model/big/data");
		ck_assert_uint_eq(after.len, 100000);
		ck_assert_int_eq(memcmp(before.data, after.data, 100000), 0);
		stfs_buf_fini(&after);
		expect_status("M model.big (data)\n# 1 changes, 0 incomplete, 0 scratch files\n");
		reopen();
	}
	stfs_buf_fini(&before);
}
END_TEST

START_TEST(truncate_and_grow_shows_zeros)
{
	struct stfs_attr_change change = { .set_size = true, .size = 10000 };
	struct stfs_attr attr;
	struct stfs_buf buf;

	ck_assert_int_eq(stfs_view_setattr(view, ino_of("model/big/data"), &change, &attr), 0);
	change.size = 20000;
	ck_assert_int_eq(stfs_view_setattr(view, ino_of("model/big/data"), &change, &attr), 0);
	ck_assert_uint_eq(attr.size, 20000);
	for (int i = 0; i < 2; i++) {
		buf = bytes_of("model/big/data");
		ck_assert_uint_eq(buf.len, 20000);
		/* The data of the file start after those of the two tensors before it. */
		ck_assert_int_eq((uint8_t)buf.data[9999], (29 + 9999) & 0xff);
		for (size_t k = 10000; k < 20000; k++)
			ck_assert_int_eq(buf.data[k], 0);
		stfs_buf_fini(&buf);
		expect_status("! model.big: 20000 bytes, but U8 [100000] needs 100000\n"
			      "# 0 changes, 1 incomplete, 0 scratch files\n");
		reopen();
	}
}
END_TEST

START_TEST(a_large_new_tensor)
{
	char *data = malloc(300000);

	memset(data, 'q', 300000);
	ck_assert_int_eq(do_mkdir("model/new"), 0);
	ck_assert_int_eq(write_at("model/new/data", true, data, 300000, 0), 0);
	expect_status("! model.new: no shape\n# 0 changes, 1 incomplete, 0 scratch files\n");
	ck_assert_int_eq(put("model/new/shape", "[100, 1000]\n"), 0);
	ck_assert_int_eq(put("model/new/dtype", "F6_E2M3\n"), 0);
	ck_assert_int_eq(put("model/new/dtype", "F32\n"), 0);
	ck_assert_int_eq(put("model/new/shape", "300x250\n"), 0);
	for (int i = 0; i < 2; i++) {
		struct stfs_buf buf = bytes_of("model/new/data");

		ck_assert(buf.len == 300000 && memcmp(buf.data, data, 300000) == 0);
		stfs_buf_fini(&buf);
		expect_status("A model.new\n# 1 changes, 0 incomplete, 0 scratch files\n");
		reopen();
	}
	free(data);
}
END_TEST

START_TEST(modules_move_as_one)
{
	uint64_t ino = ino_of("model/a"), data = ino_of("model/a/w/data");

	ck_assert_int_eq(do_rename("model/a", "model/z"), 0);
	ck_assert_uint_eq(ino_of("model/z"), ino);
	ck_assert_uint_eq(ino_of("model/z/w/data"), data);
	ck_assert(!is_there("model/a"));
	ck_assert_int_eq(do_rename("model", "model/z/inside"), -EINVAL);
	for (int i = 0; i < 2; i++) {
		expect("model/z/w/dtype", "F32\n");
		expect_status("R model.a.w -> model.z.w\nR model.a.b -> model.z.b\n"
			      "# 2 changes, 0 incomplete, 0 scratch files\n");
		reopen();
	}
	/* What is edited below a moved module is found again. */
	ck_assert_int_eq(put("model/z/w/shape", "6\n"), 0);
	reopen();
	expect("model/z/w/shape", "6\n");
}
END_TEST

START_TEST(swapped_names)
{
	ck_assert_int_eq(do_rename("model/a/w", "model/a/t"), 0);
	ck_assert_int_eq(do_rename("model/a/b", "model/a/w"), 0);
	ck_assert_int_eq(do_rename("model/a/t", "model/a/b"), 0);
	for (int i = 0; i < 2; i++) {
		expect("model/a/b/dtype", "F32\n");
		expect("model/a/w/dtype", "U8\n");
		expect_status("R model.a.w -> model.a.b\nR model.a.b -> model.a.w\n"
			      "# 2 changes, 0 incomplete, 0 scratch files\n");
		reopen();
	}
}
END_TEST

START_TEST(deletion)
{
	ck_assert_int_eq(do_rmdir("model/a/w"), -ENOTEMPTY);
	ck_assert_int_eq(do_unlink("model/a/w"), -EISDIR);
	ck_assert_int_eq(do_unlink("model/a/w/data"), 0);
	expect_status("! model.a.w: no data\n# 0 changes, 1 incomplete, 0 scratch files\n");
	ck_assert_int_eq(do_unlink("model/a/w/dtype"), 0);
	ck_assert_int_eq(do_unlink("model/a/w/shape"), 0);
	ck_assert_int_eq(do_rmdir("model/a/w"), 0);
	ck_assert_int_eq(do_rmdir("__metadata__"), -ENOTEMPTY);
	for (int i = 0; i < 2; i++) {
		ck_assert(!is_there("model/a/w"));
		expect_status("D model.a.w\n# 1 changes, 0 incomplete, 0 scratch files\n");
		reopen();
	}
	/* Made again under its name it takes its place. */
	ck_assert_int_eq(do_mkdir("model/a/w"), 0);
	ck_assert_int_eq(put("model/a/w/dtype", "U8\n"), 0);
	ck_assert_int_eq(put("model/a/w/shape", "1\n"), 0);
	ck_assert_int_eq(put("model/a/w/data", "!"), 0);
	expect_status("M model.a.w (data, dtype, shape)\n# 1 changes, 0 incomplete, 0 scratch files\n");
}
END_TEST

START_TEST(replaced_as_editors_do)
{
	/* vim: the old file goes to a backup, a new one takes the name. */
	ck_assert_int_eq(do_rename("model/a/w/shape", "model/a/w/shape~"), 0);
	ck_assert_int_eq(put("model/a/w/shape", "6\n"), 0);
	ck_assert_int_eq(do_unlink("model/a/w/shape~"), 0);
	/* sed -i: a temporary file is moved over. */
	ck_assert_int_eq(put("model/a/b/sedABCDEF", "1 5\n"), 0);
	ck_assert_int_eq(do_rename("model/a/b/sedABCDEF", "model/a/b/shape"), 0);
	/* mv from elsewhere: the name goes, then comes back. */
	ck_assert_int_eq(do_unlink("model/a/b/data"), 0);
	ck_assert_int_eq(put("model/a/b/data", "abcde"), 0);
	for (int i = 0; i < 2; i++) {
		expect("model/a/w/shape", "6\n");
		expect("model/a/b/shape", "1 5\n");
		expect("model/a/b/data", "abcde");
		expect_status("M model.a.w (shape)\nM model.a.b (data, shape)\n"
			      "# 2 changes, 0 incomplete, 0 scratch files\n");
		reopen();
	}
}
END_TEST

START_TEST(scratch_is_told_apart)
{
	ck_assert_int_eq(put("model/a/w/.shape.swp", "junk"), 0);
	ck_assert_int_eq(put("README", "top"), 0);
	ck_assert_int_eq(put("__metadata__/format~", "old"), 0);
	ck_assert_int_eq(do_mkdir(".git"), 0);
	ck_assert_int_eq(put(".git/HEAD", "ref"), 0);
	for (int i = 0; i < 2; i++) {
		expect("README", "top");
		expect(".git/HEAD", "ref");
		expect_status("? __metadata__/format~\n? model/a/w/.shape.swp\n? README\n? .git/HEAD\n"
			      "# 0 changes, 0 incomplete, 4 scratch files\n");
		reopen();
	}
}
END_TEST

START_TEST(names_that_are_refused)
{
	ck_assert_int_eq(do_mkdir("model/a"), -EEXIST);
	ck_assert_int_eq(do_mkdir("model.a"), -EEXIST);
	ck_assert_int_eq(do_mkdir("model/x%zz"), -EPERM);
	ck_assert_int_eq(do_mkdir("model/x%2f"), -EPERM);
	ck_assert_int_eq(do_mkdir("model/data"), -EPERM);
	ck_assert_int_eq(do_mkdir("model/\xff"), -EILSEQ);
	ck_assert_int_eq(do_mkdir(".Trash-0"), -EPERM);
	ck_assert_int_eq(do_mkdir("__metadata__/x"), -EPERM);
	ck_assert_int_eq(do_mkdir("__metadata__.x"), -EPERM);
	ck_assert_int_eq(do_mkdir("model/%5F_metadata__"), -EPERM);
	ck_assert_int_eq(do_mkdir("%5F_metadata__"), 0);
	ck_assert_int_eq(do_mkdir("%5F_metadata__/x"), 0);
	ck_assert_int_eq(do_mkdir("model/__metadata__"), 0);
	ck_assert_int_eq(do_mkdir("model/x%2Fy"), 0);
	ck_assert_int_eq(do_mkdir("a.b"), 0);
	ck_assert_int_eq(do_rmdir("__metadata__"), -ENOTEMPTY);
	ck_assert_int_eq(do_unlink(".safetensors/status"), -EACCES);
}
END_TEST

START_TEST(dotted_names_are_the_same_tensor)
{
	ck_assert_int_eq(do_mkdir("x.y"), 0);
	ck_assert_int_eq(put("x.y/dtype", "U8\n"), 0);
	ck_assert_int_eq(put("x.y/shape", "\n"), 0);
	ck_assert_int_eq(put("x.y/data", "1"), 0);
	expect_status("A x.y\n# 1 changes, 0 incomplete, 0 scratch files\n");
}
END_TEST

START_TEST(numpy_sets_all_at_once)
{
	/* What np.save writes for np.arange(6, dtype='<i2').reshape(2, 3). */
	static const char header[] =
		"\x93NUMPY\x01\x00v\x00{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }";
	char npy[128 + 12];

	memset(npy, ' ', sizeof(npy));
	memcpy(npy, header, sizeof(header) - 1);
	npy[127] = '\n';
	for (int i = 0; i < 6; i++) {
		npy[128 + 2 * i] = (char)i;
		npy[129 + 2 * i] = 0;
	}
	ck_assert_int_eq(write_at("model/a/w/data.npy", true, npy, sizeof(npy), 0), 0);
	for (int i = 0; i < 2; i++) {
		struct stfs_buf data = bytes_of("model/a/w/data"), again = bytes_of("model/a/w/data.npy");

		expect("model/a/w/dtype", "I16\n");
		expect("model/a/w/shape", "2 3\n");
		ck_assert(data.len == 12 && memcmp(data.data, npy + 128, 12) == 0);
		ck_assert(again.len == sizeof(npy) && memcmp(again.data, npy, sizeof(npy)) == 0);
		stfs_buf_fini(&data);
		stfs_buf_fini(&again);
		expect_status("M model.a.w (data, dtype)\n# 1 changes, 0 incomplete, 0 scratch files\n");
		reopen();
	}
}
END_TEST

START_TEST(discard)
{
	uint64_t ino = ino_of("model/a/w/data");

	ck_assert_int_eq(put("model/a/w/shape", "6\n"), 0);
	ck_assert_int_eq(do_rename("model/big", "model/large"), 0);
	ck_assert_int_eq(put("__metadata__/note", "new"), 0);
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("model/a/w"), NULL), 0);
	expect("model/a/w/shape", "2 3\n");
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("nowhere"), NULL), -ENOENT);
	ck_assert_int_eq(stfs_view_discard(view, stfs_slice_of("__metadata__/note"), NULL), 0);
	reopen();
	expect_status("R model.big -> model.large\n# 1 changes, 0 incomplete, 0 scratch files\n");
	ck_assert_int_eq(stfs_view_discard(view, (struct stfs_slice){ 0 }, NULL), 0);
	expect_status("# nothing is staged\n");
	ck_assert_uint_eq(ino_of("model/a/w/data"), ino);
	ck_assert_int_eq(access(fixture_path(".m.stage"), F_OK), -1);
	/* And on from there. */
	ck_assert_int_eq(put("__metadata__/note", "again"), 0);
	reopen();
	expect("__metadata__/note", "again");
}
END_TEST

START_TEST(removed_while_open)
{
	struct stfs_file *file = open_write("model/a/w/scratch", true);
	size_t n;
	char byte;

	ck_assert_int_eq(do_unlink("model/a/w/scratch"), 0);
	ck_assert_int_eq(stfs_file_write(file, "q", 1, 0, &n), 0);
	ck_assert_int_eq(stfs_file_read(file, 0, &byte, 1, &n), 0);
	ck_assert(n == 1 && byte == 'q');
	stfs_file_close(file);
	expect_status("# nothing is staged\n");
	reopen();
	expect_status("# nothing is staged\n");
}
END_TEST

/* The kernel would take the new file for the old one, which somebody still reads. */
START_TEST(number_of_an_open_file_is_not_given_again)
{
	struct stfs_file *file;
	uint64_t ino;

	ck_assert_int_eq(put("one", "1"), 0);
	reopen();
	ino = ino_of("one");
	file = open_write("one", false);
	ck_assert_int_eq(do_unlink("one"), 0);
	ck_assert_int_eq(put("two", "2"), 0);
	ck_assert_uint_ne(ino_of("two"), ino);
	stfs_file_close(file);
}
END_TEST

static void expect_read(struct stfs_file *file, uint64_t offset, const char *text)
{
	char bytes[8];
	size_t n = 0;

	ck_assert_int_eq(stfs_file_read(file, offset, bytes, strlen(text), &n), 0);
	ck_assert_uint_eq(n, strlen(text));
	ck_assert_mem_eq(bytes, text, n);
}

/* The kernel keeps one cache for all that are open under a number: they must be the same file to us too. */
START_TEST(discarded_while_open)
{
	struct stfs_file *file = open_write("model/big/data", false), *key = open_write("__metadata__/note", false);
	struct stfs_buf before = bytes_of("model/big/data"), after;
	char old[3] = { before.data[0], before.data[1] };
	size_t n;

	for (int all = 0; all < 2; all++) {
		ck_assert_int_eq(stfs_file_write(file, "new", 3, 0, &n), 0);
		ck_assert_int_eq(stfs_file_write(key, "z", 1, 0, &n), 0);
		ck_assert_int_eq(
			stfs_view_discard(view, all ? (struct stfs_slice){ 0 } : stfs_slice_of("model/big"), NULL), 0);
		expect_read(file, 0, old);
		expect_read(key, 0, all ? "x\n" : "z\n");
	}
	expect_status("# nothing is staged\n");
	ck_assert_int_eq(stfs_file_write(file, "AB", 2, 0, &n), 0);
	ck_assert_int_eq(stfs_file_write(key, "y", 1, 0, &n), 0);
	stfs_file_close(file);
	stfs_file_close(key);
	expect_status("M model.big (data)\nM __metadata__/note\n# 2 changes, 0 incomplete, 0 scratch files\n");
	reopen();
	expect_status("M model.big (data)\nM __metadata__/note\n# 2 changes, 0 incomplete, 0 scratch files\n");
	memcpy(before.data, "AB", 2);
	after = bytes_of("model/big/data");
	ck_assert(stfs_slice_equal(stfs_buf_slice(&after), stfs_buf_slice(&before)));
	expect("__metadata__/note", "y\n");
	stfs_buf_fini(&before);
	stfs_buf_fini(&after);
}
END_TEST

/* A data.npy that was opened before the first edit shows what others write to the data. */
START_TEST(npy_is_read_while_data_is_written)
{
	struct stfs_file *npy = NULL, *data;
	struct stfs_attr attr;
	size_t n;

	ck_assert_int_eq(stfs_view_open(view, ino_of("model/big/data.npy"), &npy), 0);
	data = open_write("model/big/data", false);
	ck_assert_int_eq(stfs_file_write(data, "new", 3, 0, &n), 0);
	ck_assert_int_eq(stfs_file_getattr(npy, &attr), 0);
	expect_read(npy, attr.size - 100000, "new");
	stfs_file_close(npy);
	stfs_file_close(data);
}
END_TEST

START_TEST(one_writer)
{
	int fd = open(fixture_dir, O_RDONLY | O_DIRECTORY), model = open(fixture_path("m.safetensors"), O_RDONLY);
	struct stfs_stage_options options = {
		.parent_fd = fd, .name = ".m.stage", .holder = "second", .os = stfs_os_real()
	};
	struct stfs_diag diag = { 0 };
	struct stfs_stage *stage;

	ck_assert_int_eq(put("__metadata__/note", "y"), 0);
	ck_assert_int_eq(stfs_stage_new(&options, &diag, &stage), 0);
	ck_assert_int_eq(stfs_stage_lock(stage, model, &diag), -EBUSY);
	ck_assert_msg(strstr(diag.text, "test"), "%s", diag.text);
	stfs_stage_free(stage);
	close(model);
	close(fd);
}
END_TEST

START_TEST(edits_for_another_version_wait)
{
	struct stfs_view_options view_options = { .layout = STFS_NESTED };
	struct stfs_stage_options options = { .name = ".m.stage", .holder = "test", .os = stfs_os_real() };
	struct stfs_diag diag = { 0 };
	struct stfs_stage *stage;
	struct maker maker = { 0 };

	ck_assert_int_eq(put("__metadata__/note", "y"), 0);
	close_view();
	maker_tensor(&maker, "other", "U8", "5", 5);
	maker_write(&maker, "m.safetensors");
	options.parent_fd = open(fixture_dir, O_RDONLY | O_DIRECTORY);
	ck_assert_int_eq(stfs_view_new(fixture_open("m.safetensors"), &view_options, NULL, &diag, &view), 0);
	ck_assert_int_eq(stfs_stage_new(&options, &diag, &stage), 0);
	ck_assert_int_eq(stfs_view_attach_stage(view, stage, &diag), -ESTALE);
	ck_assert_msg(strstr(diag.text, "another version"), "%s", diag.text);
	ck_assert(!stfs_view_is_writable(view));
	ck_assert_int_eq(access(fixture_path(".m.stage/journal"), F_OK), 0);
	close(options.parent_fd);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, nothing_is_made_by_looking);
	tcase_add_test(tcase, small_files);
	tcase_add_test(tcase, nonsense_is_refused_and_the_old_text_stays);
	tcase_add_test(tcase, bytes_over_a_run);
	tcase_add_test(tcase, truncate_and_grow_shows_zeros);
	tcase_add_test(tcase, a_large_new_tensor);
	tcase_add_test(tcase, modules_move_as_one);
	tcase_add_test(tcase, swapped_names);
	tcase_add_test(tcase, deletion);
	tcase_add_test(tcase, replaced_as_editors_do);
	tcase_add_test(tcase, scratch_is_told_apart);
	tcase_add_test(tcase, names_that_are_refused);
	tcase_add_test(tcase, dotted_names_are_the_same_tensor);
	tcase_add_test(tcase, numpy_sets_all_at_once);
	tcase_add_test(tcase, discard);
	tcase_add_test(tcase, removed_while_open);
	tcase_add_test(tcase, number_of_an_open_file_is_not_given_again);
	tcase_add_test(tcase, discarded_while_open);
	tcase_add_test(tcase, npy_is_read_while_data_is_written);
	tcase_add_test(tcase, one_writer);
	tcase_add_test(tcase, edits_for_another_version_wait);
	tcase_set_timeout(tcase, 60);
	return run_tests("edit", tcase);
}
