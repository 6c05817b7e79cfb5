/* SPDX-License-Identifier: Apache-2.0 */
/* Files and answers that are open while the model is committed. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "one_file_fixture.h"
#include "run_tests.h"

/* A file that was open for writing before goes on: what it writes now is staged for the next commit. */
START_TEST(a_handle_goes_on_after_the_commit)
{
	struct stfs_file *big = edit_open(view, "big/data", false), *small = edit_open(view, "a/b/data", false);
	size_t written;

	ck_assert_int_eq(stfs_file_write(big, "one", 3, 10, &written), 0);
	ck_assert_int_eq(stfs_file_write(small, "1", 1, 0, &written), 0);
	commit(view);
	ck_assert_str_eq(folder_names(""), NAME);
	ck_assert_int_eq(stfs_file_write(big, "two", 3, 20000, &written), 0);
	ck_assert_int_eq(stfs_file_write(small, "2", 1, 1, &written), 0);
	ck_assert_str_eq(folder_names(""), STAGED);
	ck_assert_int_eq(stfs_file_sync(big), 0);
	stfs_file_close(big);
	stfs_file_close(small);
	remount();
	commit(view);
	want_old(&wanted, 0, 24);
	want_bytes(&wanted, "12\x1a\x1b\x1c", 5);
	want_old(&wanted, 29, 10);
	want_bytes(&wanted, "one", 3);
	want_old(&wanted, 42, 20000 - 13);
	want_bytes(&wanted, "two", 3);
	want_old(&wanted, 29 + 20003, BIG_SIZE - 20003);
	expect_file(NAME, ALL, &wanted);
}
END_TEST

/* A NumPy file that took effect as a tensor, and a commit has parted the two. */
static struct stfs_file *open_parted_npy(void)
{
	char npy[128 + 5];
	struct stfs_file *file = edit_open(view, "a/b/data.npy", true);
	size_t written;

	memset(npy, ' ', sizeof(npy));
	memcpy(npy, "\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (5,), }", 67);
	memcpy(npy + 127, "\n12345", 6);
	ck_assert_int_eq(stfs_file_write(file, npy, sizeof(npy), 0, &written), 0);
	ck_assert_int_eq(stfs_file_flush(file), 0);
	edit_expect(view, "a/b/data", "12345");
	commit(view);
	return file;
}

static atomic_bool over;

/* Empties the tensor and makes it larger than what is written to it. */
static void *resize_on_and_on(void *arg)
{
	struct stfs_file *data = arg;
	struct stfs_attr attr;

	for (unsigned i = 0; !atomic_load(&over); i++) {
		struct stfs_attr_change change = { .set_size = true, .size = i % 2 ? 64 : 0 };

		if (stfs_file_setattr(data, &change, &attr) < 0)
			return arg;
	}
	return NULL;
}

/* Whatever size the tensor has by then, no byte comes from behind those that were written. */
START_TEST(a_numpy_file_is_written_while_the_tensor_is_resized)
{
	struct stfs_file *file = open_parted_npy(), *data = edit_open(view, "a/b/data", false);
	size_t page = (size_t)sysconf(_SC_PAGESIZE), written;
	char *bytes = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t resizer;
	void *failed;

	ck_assert(bytes != MAP_FAILED);
	ck_assert_int_eq(mprotect(bytes + page, page, PROT_NONE), 0);
	bytes[page - 1] = 'x';
	ck_assert_int_eq(pthread_create(&resizer, NULL, resize_on_and_on, data), 0);
	for (int i = 0; i < 50000; i++)
		ck_assert_int_eq(stfs_file_write(file, bytes + page - 1, 1, 128, &written), 0);
	atomic_store(&over, true);
	pthread_join(resizer, &failed);
	ck_assert_ptr_null(failed);
	munmap(bytes, 2 * page);
	stfs_file_close(data);
	stfs_file_close(file);
}
END_TEST

/* What took effect as a tensor goes on as that, also when a commit has parted the two. */
START_TEST(a_numpy_file_goes_on_after_the_commit)
{
	struct stfs_file *file = open_parted_npy();
	size_t written;

	ck_assert_int_eq(stfs_file_write(file, "67", 2, 128 + 1, &written), 0);
	edit_expect(view, "a/b/data", "16745");
	/* Never more than the tensor has. */
	if (_i) {
		edit_resize(view, "a/b/data", 3);
		ck_assert_int_eq(stfs_file_write(file, "xyz", 3, 128 + 2, &written), 0);
	}
	stfs_file_close(file);
	edit_expect(view, "a/b/data", _i ? "16x" : "16745");
	remount();
	edit_expect(view, "a/b/data", _i ? "16x" : "16745");
}
END_TEST

START_TEST(a_reader_keeps_the_old_bytes)
{
	struct stfs_file *file;
	char data[5];
	size_t n;

	ck_assert_int_eq(stfs_view_open(view, edit_ino(view, "big/data"), &file), 0);
	edit_write(view, "big/data", true, "12345", 5, 0);
	edit_put(view, "big/shape", "5");
	edit_mv(view, "a", "c");
	commit(view);
	/* The handle is of the file whose bytes were replaced: it never reads past what that now holds. */
	ck_assert_int_eq(stfs_file_read(file, 0, data, 5, &n), 0);
	ck_assert_uint_eq(n, 5);
	stfs_file_close(file);
	edit_expect(view, "big/data", "12345");
}
END_TEST

/* The bytes an answer points to are those of when it was made, however many commits go by before they are sent. */
START_TEST(an_answer_outlives_commits)
{
	struct stfs_file *file = edit_open(view, "big/data", false);
	struct stfs_reading staged = { .n = 0 }, run = { .n = 0 };
	char data[8];
	size_t written;

	ck_assert_int_eq(stfs_file_write(file, "first", 5, 100, &written), 0);
	ck_assert_int_eq(stfs_file_map(file, 100, 5, &staged), 0);
	ck_assert(staged.n == 1 && staged.extents[0].fd >= 0 && !staged.extents[0].mem);
	commit(view);
	ck_assert_int_eq(stfs_file_map(file, 100, 5, &run), 0);
	ck_assert(run.n == 1 && run.extents[0].mem);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(stfs_file_write(file, "later", 5, 100, &written), 0);
		commit(view);
	}
	ck_assert_int_eq(pread(staged.extents[0].fd, data, 5, (off_t)staged.extents[0].offset), 5);
	ck_assert_mem_eq(data, "first", 5);
	ck_assert_mem_eq(run.extents[0].mem, "first", 5);
	stfs_reading_fini(&staged);
	stfs_reading_fini(&run);
	stfs_file_close(file);
}
END_TEST

START_TEST(a_handle_of_a_removed_file_lives_on)
{
	struct stfs_file *file = edit_open(view, "big/data", false);
	char data[3];
	size_t n;

	ck_assert_int_eq(stfs_file_write(file, "one", 3, 50, &n), 0);
	edit_rm_tensor(view, "big");
	commit(view);
	ck_assert_int_eq(stfs_file_read(file, 50, data, 3, &n), 0);
	ck_assert_uint_eq(n, 3);
	ck_assert_int_eq(memcmp(data, "one", 3), 0);
	stfs_file_close(file);
	ck_assert_str_eq(folder_names(""), NAME);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("commit");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, a_handle_goes_on_after_the_commit);
	tcase_add_loop_test(tcase, a_numpy_file_goes_on_after_the_commit, 0, 2);
	tcase_add_test(tcase, a_numpy_file_is_written_while_the_tensor_is_resized);
	tcase_add_test(tcase, a_reader_keeps_the_old_bytes);
	tcase_add_test(tcase, an_answer_outlives_commits);
	tcase_add_test(tcase, a_handle_of_a_removed_file_lives_on);
	return run_tests("commit_handles", tcase);
}
