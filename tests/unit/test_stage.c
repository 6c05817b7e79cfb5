/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>

#include "run_tests.h"
#include "stage_fixture.h"

/* A stage that cannot be made, for the reason in `words`. */
static void refused(bool shared, int error, const char *words)
{
	struct stfs_stage *stage = NULL;
	struct stfs_diag diag = { 0 };

	ck_assert_int_eq(stage_new(shared, &diag, &stage), error);
	ck_assert_ptr_null(stage);
	ck_assert_msg(strstr(diag.text, words) != NULL, "said: %s", diag.text);
}

static unsigned mode_of(const char *path)
{
	struct stat st;

	ck_assert_int_eq(fstatat(folder_fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

START_TEST(test_life)
{
	_cleanup_stage_ struct stfs_stage *stage = made(false);
	uint64_t first, second;
	int fd;

	ck_assert(!stfs_stage_exists(stage));
	ck_assert_ptr_null(stfs_stage_journal(stage));
	ck_assert_str_eq(stfs_stage_path(stage), NAME);
	ck_assert_ptr_eq(stfs_stage_os(stage), &faulty.os);
	ck_assert_int_eq(stfs_stage_lock(stage, model_fd, NULL), 0);
	ck_assert_int_eq(count_names(), -1);
	/* Nothing to do without a directory. */
	ck_assert_int_eq(stfs_stage_file_create(stage, &first, &fd), -ENOENT);
	ck_assert_int_eq(stfs_stage_file_open(stage, 1, &fd), -ENOENT);
	ck_assert_int_eq(stfs_stage_file_remove(stage, 1), 0);
	ck_assert_int_eq(stfs_stage_sync_dir(stage), 0);
	ck_assert_int_eq(stfs_stage_drop_next(stage), 0);
	ck_assert_int_eq(stfs_stage_clear(stage), 0);

	umask(0277);
	ck_assert_int_eq(stfs_stage_create(stage), 0);
	ck_assert_int_eq(stfs_stage_file_create(stage, &first, &fd), 0);
	umask(022);
	ck_assert_int_eq(pwrite(fd, "bytes", 5, 0), 5);
	close(fd);
	ck_assert(stfs_stage_exists(stage));
	ck_assert_int_eq(stfs_stage_create(stage), 0);
	ck_assert_int_eq(count_names(), 3);
	ck_assert_uint_eq(mode_of(NAME), 0700);
	ck_assert_uint_eq(mode_of(NAME "/journal"), 0600);
	ck_assert_int_eq(stfs_stage_file_create(stage, &second, &fd), 0);
	close(fd);
	ck_assert_uint_ne(first, second);
	add_record(stfs_stage_journal(stage), "one");
	ck_assert_int_eq(stfs_stage_sync_dir(stage), 0);
	stfs_stage_free(stfs_steal(stage));

	/* Another one finds it all. */
	stage = locked(false);
	ck_assert(stfs_stage_exists(stage));
	check_records(stfs_stage_journal(stage), "one");
	ck_assert_int_eq(stfs_stage_file_open(stage, first, &fd), 0);
	ck_assert_int_eq(lseek(fd, 0, SEEK_END), 5);
	close(fd);
	ck_assert_int_eq(stfs_stage_file_remove(stage, first), 0);
	ck_assert_int_eq(stfs_stage_file_remove(stage, first), 0);
	ck_assert_int_eq(stfs_stage_file_open(stage, first, &fd), -ENOENT);
	ck_assert_int_eq(stfs_stage_clear(stage), 0);
	ck_assert(!stfs_stage_exists(stage));
	ck_assert_int_eq(count_names(), -1);
	ck_assert_int_eq(stfs_stage_create(stage), 0);
	check_records(stfs_stage_journal(stage), "");
	stfs_stage_free(NULL);
}
END_TEST

START_TEST(a_sync_is_of_names_too)
{
	_cleanup_stage_ struct stfs_stage *stage = locked(false);

	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(stfs_stage_sync(stage), 0);
		ck_assert_int_eq(stfs_stage_create(stage), 0);
		add_record(stfs_stage_journal(stage), "one");
		faulty_os_plant_in(&faulty, FAULTY_FSYNC, FAULTY_ONCE, 1, EIO);
		ck_assert_int_eq(stfs_stage_sync(stage), -EIO);
		/* The directory, and the folder it is in; then they are known. */
		faulty_os_plant_in(&faulty, FAULTY_FSYNC, FAULTY_NONE, 0, 0);
		ck_assert_int_eq(stfs_stage_sync(stage), 0);
		ck_assert_uint_eq(faulty.calls, 2);
		add_record(stfs_stage_journal(stage), "two");
		faulty_os_plant_in(&faulty, FAULTY_FSYNC | FAULTY_FDATASYNC, FAULTY_NONE, 0, 0);
		ck_assert_int_eq(stfs_stage_sync(stage), 0);
		ck_assert_uint_eq(faulty.calls, 1);
		ck_assert_int_eq(stfs_stage_clear(stage), 0);
	}
}
END_TEST

START_TEST(test_modes_of_files)
{
	_cleanup_stage_ struct stfs_stage *stage = locked(false);
	uint64_t number;
	struct stat st;
	int fd;

	ck_assert_int_eq(stfs_stage_create(stage), 0);
	umask(0277);
	ck_assert_int_eq(stfs_stage_file_create(stage, &number, &fd), 0);
	umask(022);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_uint_eq(st.st_mode, S_IFREG | 0600);
	ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}
END_TEST

START_TEST(test_refused)
{
	ck_assert_int_eq(symlinkat(".", folder_fd, NAME), 0);
	refused(false, -ENOTDIR, "is not a directory");
	unlinkat(folder_fd, NAME, 0);
	put_file(NAME, "a file");
	refused(false, -ENOTDIR, "is not a directory");
	unlinkat(folder_fd, NAME, 0);
	ck_assert_int_eq(mkdirat(folder_fd, NAME, 0700), 0);
	ck_assert_int_eq(fchmodat(folder_fd, NAME, 0710, 0), 0);
	refused(false, -EPERM, "open to other users (mode 0710");
	ck_assert_int_eq(fchmodat(folder_fd, NAME, 0702, 0), 0);
	refused(false, -EPERM, "open to other users");
	ck_assert_int_eq(fchmodat(folder_fd, NAME, 0700, 0), 0);
	put_file(NAME "/journal", "something of somebody else's");
	refused(false, -EBADMSG, NAME "/journal is not a journal");
	unlinkat(folder_fd, NAME "/journal", 0);
	ck_assert_int_eq(symlinkat("../m.safetensors", folder_fd, NAME "/journal"), 0);
	refused(false, -ELOOP, "cannot be opened");
	unlinkat(folder_fd, NAME "/journal", 0);
	if (geteuid() == 0) {
		ck_assert_int_eq(fchownat(folder_fd, NAME, 12345, 12345, 0), 0);
		refused(false, -EPERM, "belongs to another user");
	}
}
END_TEST

START_TEST(test_shared_directory)
{
	_cleanup_stage_ struct stfs_stage *stage = NULL;
	uint64_t number;
	int fd;

	ck_assert_int_eq(mkdirat(folder_fd, NAME, 0700), 0);
	put_file(NAME "/my\nnotes", "");
	refused(true, -ENOTEMPTY, "my\\x0anotes");
	unlinkat(folder_fd, NAME "/my\nnotes", 0);
	stage = locked(true);
	ck_assert(!stfs_stage_exists(stage));
	ck_assert_int_eq(stfs_stage_create(stage), 0);
	ck_assert_int_eq(stfs_stage_file_create(stage, &number, &fd), 0);
	close(fd);
	stfs_stage_free(stfs_steal(stage));
	/* With a journal of ours, what else is there does not matter, and stays. */
	put_file(NAME "/my notes", "");
	stage = locked(true);
	ck_assert(stfs_stage_exists(stage));
	ck_assert_int_eq(stfs_stage_clear(stage), 0);
	ck_assert_int_eq(count_names(), 1);
	ck_assert(there("my notes"));
	/* Not by the back door either. */
	ck_assert_int_eq(stfs_stage_create(stage), -ENOTEMPTY);
	unlinkat(folder_fd, NAME "/my notes", 0);
	ck_assert_int_eq(stfs_stage_create(stage), 0);
	ck_assert_int_eq(stfs_stage_clear(stage), 0);
	ck_assert_int_eq(count_names(), 0);
}
END_TEST

START_TEST(test_shared_directory_missing)
{
	_cleanup_stage_ struct stfs_stage *stage = locked(true);

	ck_assert_int_eq(count_names(), -1);
	ck_assert_int_eq(stfs_stage_create(stage), 0);
	ck_assert_uint_eq(mode_of(NAME), 0700);
	ck_assert_int_eq(stfs_stage_clear(stage), 0);
	ck_assert_int_eq(count_names(), 0);
}
END_TEST

/* The directory can be given by any path, with a slash at its end, which does not make a link followed. */
START_TEST(test_paths)
{
	struct stfs_stage_options options = {
		.parent_fd = folder_fd, .shared_dir = true, .holder = "h", .os = &faulty.os
	};
	_cleanup_close_ int passing = openat(folder_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stfs_stage *stage = NULL;
	struct stfs_diag diag = { 0 };
	char path[128];

	snprintf(path, sizeof(path), "%s/" NAME "//", folder_path);
	options.name = path;
	ck_assert_int_eq(stfs_stage_new(&options, NULL, &stage), 0);
	ck_assert_int_eq(stfs_stage_create(stage), 0);
	ck_assert_int_eq(stfs_stage_sync_dir(stage), 0);
	ck_assert_uint_eq(mode_of(NAME), 0700);
	stfs_stage_free(stfs_steal(stage));

	options.parent_fd = passing;
	options.name = "./" NAME;
	ck_assert_int_eq(stfs_stage_new(&options, NULL, &stage), 0);
	ck_assert(stfs_stage_exists(stage));
	ck_assert_int_eq(stfs_stage_sync_dir(stage), 0);
	stfs_stage_free(stfs_steal(stage));

	ck_assert_int_eq(symlinkat(NAME, folder_fd, "link"), 0);
	options.name = "link/";
	ck_assert_int_eq(stfs_stage_new(&options, &diag, &stage), -ENOTDIR);
	options.name = "nowhere/stage";
	ck_assert_int_eq(stfs_stage_new(&options, &diag, &stage), -ENOENT);
	ck_assert_ptr_nonnull(strstr(diag.text, "the folder of the staging area nowhere/stage"));
	options.name = "/";
	ck_assert_int_eq(stfs_stage_new(&options, &diag, &stage), -EPERM);
	ck_assert_ptr_null(stage);
}
END_TEST

static bool keep_even(void *user, uint64_t number)
{
	++*(unsigned *)user;
	return number % 2 == 0;
}

START_TEST(test_sweep)
{
	_cleanup_stage_ struct stfs_stage *stage = locked(false);
	unsigned asked = 0;

	ck_assert_int_eq(stfs_stage_sweep(stage, keep_even, &asked), 0);
	ck_assert_int_eq(stfs_stage_create(stage), 0);
	for (int i = 0; i < 10; i++) {
		uint64_t number;
		int fd;

		ck_assert_int_eq(stfs_stage_file_create(stage, &number, &fd), 0);
		close(fd);
	}
	put_file(NAME "/bytes.00000000000000g1", "");
	put_file(NAME "/bytes.1", "");
	put_file(NAME "/mine", "");
	ck_assert_int_eq(stfs_stage_sweep(stage, keep_even, &asked), 0);
	ck_assert_uint_eq(asked, 10);
	ck_assert_int_eq(count_names(), 2 + 5 + 3);
	/* One that cannot be removed does not keep the others. */
	ck_assert_int_eq(unlinkat(folder_fd, NAME "/mine", 0), 0);
	ck_assert_int_eq(mkdirat(folder_fd, NAME "/bytes.0000000000000001", 0700), 0);
	put_file(NAME "/bytes.0000000000000003", "");
	put_file(NAME "/bytes.0000000000000005", "");
	ck_assert_int_eq(stfs_stage_sweep(stage, keep_even, &asked), -EISDIR);
	ck_assert(there("bytes.0000000000000001"));
	ck_assert(!there("bytes.0000000000000003") && !there("bytes.0000000000000005"));
	ck_assert_int_eq(unlinkat(folder_fd, NAME "/bytes.0000000000000001", AT_REMOVEDIR), 0);
}
END_TEST

START_TEST(test_next_journal)
{
	_cleanup_stage_ struct stfs_stage *stage = locked(false);
	_cleanup_journal_ struct stfs_journal *next = NULL;

	ck_assert_int_eq(stfs_stage_next_journal(stage, &next), -ENOENT);
	ck_assert_int_eq(stfs_stage_create(stage), 0);
	add_record(stfs_stage_journal(stage), "old");
	ck_assert_int_eq(stfs_stage_open_next(stage, &next), -ENOENT);
	ck_assert_int_eq(stfs_stage_swap_journal(stage), -ENOENT);
	ck_assert_int_eq(stfs_stage_next_journal(stage, &next), 0);
	add_record(next, "dropped");
	stfs_journal_close(stfs_steal(next));
	ck_assert_int_eq(stfs_stage_drop_next(stage), 0);
	ck_assert_int_eq(stfs_stage_drop_next(stage), 0);
	ck_assert_int_eq(stfs_stage_next_journal(stage, &next), 0);
	add_record(next, "dropped too");
	stfs_journal_close(stfs_steal(next));
	/* The one of a crash is started anew. */
	ck_assert_int_eq(stfs_stage_next_journal(stage, &next), 0);
	add_record(next, "new");
	check_records(stfs_stage_journal(stage), "old");
	ck_assert_int_eq(stfs_stage_swap_journal(stage), 0);
	stfs_journal_close(stfs_steal(next));
	ck_assert(!there("journal.next"));
	add_record(stfs_stage_journal(stage), ", more");
	check_records(stfs_stage_journal(stage), "new, more");
	stfs_stage_free(stfs_steal(stage));
	stage = locked(false);
	check_records(stfs_stage_journal(stage), "new, more");
}
END_TEST

/* A journal that is damaged does not take the place of a good one. */
START_TEST(test_swap_damaged)
{
	_cleanup_stage_ struct stfs_stage *stage = locked(false);
	_cleanup_journal_ struct stfs_journal *next = NULL;
	_cleanup_close_ int fd = -1;

	ck_assert_int_eq(stfs_stage_create(stage), 0);
	add_record(stfs_stage_journal(stage), "old");
	ck_assert_int_eq(stfs_stage_next_journal(stage, &next), 0);
	add_record(next, "one");
	add_record(next, "two");
	fd = openat(folder_fd, NAME "/journal.next", O_RDWR);
	ck_assert_int_eq(pwrite(fd, "x", 1, 16 + 24), 1);
	ck_assert_int_eq(stfs_stage_swap_journal(stage), -EBADMSG);
	check_records(stfs_stage_journal(stage), "old");
	ck_assert(there("journal.next"));
}
END_TEST

/* What a clearing that was cut short left does not come back with the next journal. */
START_TEST(test_leftovers)
{
	_cleanup_stage_ struct stfs_stage *stage = NULL;
	struct stfs_journal *next;

	for (int shared = 0; shared < 2; shared++) {
		ck_assert_int_eq(mkdirat(folder_fd, NAME, 0700), 0);
		put_file(NAME "/journal.next", "STFSJ2\n");
		put_file(NAME "/bytes.0000000000000001", "");
		put_file(NAME "/holder", "1 x\n");
		stage = locked(shared);
		ck_assert(!stfs_stage_exists(stage));
		ck_assert_int_eq(stfs_stage_create(stage), 0);
		ck_assert_int_eq(stfs_stage_open_next(stage, &next), -ENOENT);
		ck_assert_int_eq(count_names(), 2);
		ck_assert_int_eq(stfs_stage_clear(stage), 0);
		stfs_stage_free(stfs_steal(stage));
		ck_assert_int_eq(unlinkat(folder_fd, NAME, AT_REMOVEDIR), shared ? 0 : -1);
	}
}
END_TEST

/* A directory into which somebody put a file is left, not emptied. */
START_TEST(test_clear_leaves_foreign)
{
	_cleanup_stage_ struct stfs_stage *stage = locked(false);

	ck_assert_int_eq(stfs_stage_create(stage), 0);
	put_file(NAME "/mine", "");
	ck_assert_int_eq(stfs_stage_clear(stage), 0);
	ck_assert_int_eq(count_names(), 1);
	ck_assert_int_eq(stfs_stage_create(stage), 0);
	ck_assert(there("mine"));
}
END_TEST

/* Somebody who does not heed the lock made a journal: it is neither removed nor written to. */
START_TEST(test_journal_turns_up)
{
	_cleanup_stage_ struct stfs_stage *stage = locked(false), *rude = made(false);

	ck_assert_int_eq(stfs_stage_create(rude), 0);
	ck_assert_int_eq(stfs_stage_create(stage), -EEXIST);
	ck_assert(there("journal"));
}
END_TEST

#define THREADS 4
#define PER_THREAD 200

static void *create_many(void *arg)
{
	for (int i = 0; i < PER_THREAD; i++) {
		uint64_t number;
		int fd;

		if (stfs_stage_file_create(arg, &number, &fd) < 0)
			return arg;
		close(fd);
		if (i % 50 == 0 && stfs_stage_sync_dir(arg) < 0)
			return arg;
	}
	return NULL;
}

START_TEST(test_threads)
{
	_cleanup_stage_ struct stfs_stage *stage = locked(false);
	pthread_t threads[THREADS];

	ck_assert_int_eq(stfs_stage_create(stage), 0);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, create_many, stage), 0);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
		ck_assert_ptr_null(failed);
	}
	ck_assert_int_eq(count_names(), 2 + THREADS * PER_THREAD);
	ck_assert_int_eq(stfs_stage_clear(stage), 0);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("stage");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_life);
	tcase_add_test(tcase, a_sync_is_of_names_too);
	tcase_add_test(tcase, test_modes_of_files);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_shared_directory);
	tcase_add_test(tcase, test_shared_directory_missing);
	tcase_add_test(tcase, test_paths);
	tcase_add_test(tcase, test_sweep);
	tcase_add_test(tcase, test_next_journal);
	tcase_add_test(tcase, test_swap_damaged);
	tcase_add_test(tcase, test_leftovers);
	tcase_add_test(tcase, test_clear_leaves_foreign);
	tcase_add_test(tcase, test_journal_turns_up);
	tcase_add_test(tcase, test_threads);
	tcase_set_timeout(tcase, 60);
	return run_tests("stage", tcase);
}
