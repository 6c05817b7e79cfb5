/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"
#include "faulty_os.h"
#include "stage.h"

STFS_DEFINE_CLEANUP(struct stfs_stage, stfs_stage_free)
STFS_DEFINE_CLEANUP(struct stfs_journal, stfs_journal_close)

#define _cleanup_stage_ _cleanup_(stfs_stage_freep)
#define _cleanup_journal_ _cleanup_(stfs_journal_closep)

#define NAME ".m.safetensors.stage"

/* A folder with a model in it, which is what the lock is taken on. */
static char folder_path[64];
static int folder_fd, model_fd;
static struct faulty_os faulty;

static void setup(void)
{
	strcpy(folder_path, "/tmp/stfs-unit-stage-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder_path));
	folder_fd = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	model_fd = openat(folder_fd, "m.safetensors", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert(folder_fd >= 0 && model_fd >= 0);
	faulty_os_init(&faulty, stfs_os_real());
}

static void empty(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		unlinkat(fd, entry->d_name, 0);
	if (dir)
		closedir(dir);
}

static void teardown(void)
{
	empty(folder_fd, NAME);
	unlinkat(folder_fd, NAME, AT_REMOVEDIR);
	empty(folder_fd, ".");
	close(folder_fd);
	close(model_fd);
	ck_assert_int_eq(rmdir(folder_path), 0);
}

static int stage_new(bool shared, struct stfs_diag *diag, struct stfs_stage **ret)
{
	struct stfs_stage_options options = {
		.parent_fd = folder_fd,
		.name = NAME,
		.shared_dir = shared,
		.holder = "mounted at /mnt/m",
		.os = &faulty.os,
	};

	return stfs_stage_new(&options, diag, ret);
}

static struct stfs_stage *made(bool shared)
{
	struct stfs_stage *stage = NULL;

	ck_assert_int_eq(stage_new(shared, NULL, &stage), 0);
	return stage;
}

static struct stfs_stage *locked(bool shared)
{
	struct stfs_stage *stage = made(shared);

	ck_assert_int_eq(stfs_stage_lock(stage, model_fd, NULL), 0);
	return stage;
}

/* A stage that cannot be made, for the reason in `words`. */
static void refused(bool shared, int error, const char *words)
{
	struct stfs_stage *stage = NULL;
	struct stfs_diag diag = { 0 };

	ck_assert_int_eq(stage_new(shared, &diag, &stage), error);
	ck_assert_ptr_null(stage);
	ck_assert_msg(strstr(diag.text, words) != NULL, "said: %s", diag.text);
}

static bool there(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), NAME "/%s", name);
	return faccessat(folder_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static unsigned mode_of(const char *path)
{
	struct stat st;

	ck_assert_int_eq(fstatat(folder_fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

/* Number of entries in the staging directory; -1 when it is not there. */
static int count_names(void)
{
	int fd = openat(folder_fd, NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = -2;
	DIR *dir;

	if (fd < 0)
		return -1;
	dir = fdopendir(fd);
	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void put_file(const char *path, const char *text)
{
	_cleanup_close_ int fd = openat(folder_fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void add_record(struct stfs_journal *journal, const char *text)
{
	ck_assert_int_eq(stfs_journal_append(journal, 1, stfs_slice_of(text)), 0);
}

static int collect(void *user, const struct stfs_record *record)
{
	struct stfs_buf *buf = user;

	return stfs_buf_append(buf, record->payload.p, record->payload.len);
}

/* The records of a journal, one behind the other. */
static void check_records(struct stfs_journal *journal, const char *wanted)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };

	ck_assert_ptr_nonnull(journal);
	ck_assert_int_eq(stfs_journal_replay(journal, collect, &buf, NULL), 0);
	ck_assert_str_eq(buf.data ? buf.data : "", wanted);
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

/* Runs `body` in a process of its own while this one waits; what it returns is its exit status. */
static int in_child(int (*body)(void))
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(body());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Tries to lock the model named `name`, opened anew; its error, or 0. */
static int try_lock_named(const char *name, struct stfs_diag *diag)
{
	_cleanup_stage_ struct stfs_stage *stage = NULL;
	_cleanup_close_ int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : stage_new(false, diag, &stage);

	return r < 0 ? -r : -stfs_stage_lock(stage, fd, diag);
}

static int try_lock(void)
{
	return try_lock_named("m.safetensors", NULL);
}

static int try_lock_other(void)
{
	return try_lock_named("other", NULL);
}

START_TEST(test_lock)
{
	_cleanup_stage_ struct stfs_stage *stage = locked(false);
	struct stfs_diag diag = { 0 };
	char wanted[128];

	ck_assert_int_eq(in_child(try_lock), EBUSY);
	ck_assert_int_eq(try_lock_named("m.safetensors", &diag), EBUSY);
	ck_assert_str_eq(diag.text, "another process is editing this model");
	/* Once there is a directory, the holder is known. */
	ck_assert_int_eq(stfs_stage_create(stage), 0);
	ck_assert_int_eq(try_lock_named("m.safetensors", &diag), EBUSY);
	snprintf(wanted, sizeof(wanted), "another process is editing this model: %d, mounted at /mnt/m", (int)getpid());
	ck_assert_str_eq(diag.text, wanted);
	/* The copy is enough, and goes with the stage. */
	ck_assert_int_eq(stfs_stage_lock(stage, model_fd, NULL), 0);
	ck_assert_int_eq(in_child(try_lock), EBUSY);
	stfs_stage_free(stfs_steal(stage));
	ck_assert(!there("holder"));
	ck_assert_int_eq(in_child(try_lock), 0);
}
END_TEST

/* A note that is old, broken, or not a file is not believed; a strange one is shown escaped. */
START_TEST(test_note)
{
	static const char *const notes[] = {
		"999999999 gone\n", "0 x\n", "-1 x\n", "x\n", "", "12", "99999999999999999999 x\n",
	};
	_cleanup_stage_ struct stfs_stage *stage = locked(false);
	struct stfs_diag diag = { 0 };
	char text[128];

	ck_assert_int_eq(stfs_stage_create(stage), 0);
	for (size_t i = 0; i < STFS_ARRAY_SIZE(notes); i++) {
		put_file(NAME "/holder", notes[i]);
		ck_assert_int_eq(try_lock_named("m.safetensors", &diag), EBUSY);
		ck_assert_str_eq(diag.text, "another process is editing this model");
	}
	snprintf(text, sizeof(text), "%d a\033[31mred\nsecond line\n", (int)getppid());
	put_file(NAME "/holder", text);
	ck_assert_int_eq(try_lock_named("m.safetensors", &diag), EBUSY);
	ck_assert_ptr_nonnull(strstr(diag.text, ", a\\x1b[31mred"));
	ck_assert_ptr_null(strstr(diag.text, "second"));
	unlinkat(folder_fd, NAME "/holder", 0);
	ck_assert_int_eq(symlinkat("../m.safetensors", folder_fd, NAME "/holder"), 0);
	ck_assert_int_eq(try_lock_named("m.safetensors", &diag), EBUSY);
	ck_assert_str_eq(diag.text, "another process is editing this model");
}
END_TEST

/* The note cannot be what a lock fails of. */
START_TEST(test_note_fails)
{
	_cleanup_stage_ struct stfs_stage *stage = locked(false);

	ck_assert_int_eq(stfs_stage_create(stage), 0);
	stfs_stage_free(stfs_steal(stage));
	put_file(NAME "/holder", "12 left by a crash\n");
	for (unsigned at = 1; at <= 2; at++) {
		stage = made(false);
		faulty_os_plant_in(&faulty, FAULTY_PWRITE | FAULTY_UNLINKAT, FAULTY_ONCE, at, EROFS);
		ck_assert_int_eq(stfs_stage_lock(stage, model_fd, NULL), 0);
		ck_assert_uint_eq(faulty.fired, 1);
		stfs_stage_free(stfs_steal(stage));
		/* The first could not be removed; the second could not be written and must not stay. */
		ck_assert(there("holder") == (at == 1));
	}
}
END_TEST

START_TEST(test_relock)
{
	_cleanup_stage_ struct stfs_stage *stage = locked(false);
	_cleanup_close_ int other = openat(folder_fd, "other", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	_cleanup_close_ int rival = openat(folder_fd, "other", O_RDWR | O_CLOEXEC);
	_cleanup_close_ int path = openat(folder_fd, "other", O_PATH | O_CLOEXEC);

	/* Somebody else has it: the old lock is kept. */
	ck_assert_int_eq(flock(rival, LOCK_EX | LOCK_NB), 0);
	ck_assert_int_eq(stfs_stage_relock(stage, other), -EBUSY);
	ck_assert_int_eq(in_child(try_lock), EBUSY);
	ck_assert_int_eq(flock(rival, LOCK_UN), 0);
	ck_assert_int_eq(stfs_stage_relock(stage, -1), -EBADF);
	ck_assert_int_eq(stfs_stage_relock(stage, path), -EBADF);
	ck_assert_int_eq(in_child(try_lock), EBUSY);
	ck_assert_int_eq(stfs_stage_relock(stage, other), 0);
	ck_assert_int_eq(in_child(try_lock), 0);
	ck_assert_int_eq(in_child(try_lock_other), EBUSY);
}
END_TEST

static int lock_and_die(void)
{
	_cleanup_close_ int fd = openat(folder_fd, "m.safetensors", O_RDONLY | O_CLOEXEC);
	struct stfs_stage *stage = NULL;

	if (stage_new(false, NULL, &stage) < 0 || stfs_stage_lock(stage, fd, NULL) < 0 || stfs_stage_create(stage) < 0)
		return 1;
	return kill(getpid(), SIGKILL);
}

START_TEST(test_lock_dies_with_holder)
{
	_cleanup_stage_ struct stfs_stage *stage = NULL;

	ck_assert_int_eq(in_child(lock_and_die), -1);
	ck_assert(there("holder"));
	stage = locked(false);
	ck_assert(stfs_stage_exists(stage));
}
END_TEST

/* What was seen before the lock was had is looked at again. */
START_TEST(test_look_again)
{
	_cleanup_stage_ struct stfs_stage *first = locked(false), *second = made(false), *third = NULL;

	ck_assert_int_eq(stfs_stage_create(first), 0);
	add_record(stfs_stage_journal(first), "kept");
	third = made(false);
	ck_assert(!stfs_stage_exists(second) && stfs_stage_exists(third));
	stfs_stage_free(stfs_steal(first));
	ck_assert_int_eq(stfs_stage_lock(second, model_fd, NULL), 0);
	ck_assert(stfs_stage_exists(second));
	check_records(stfs_stage_journal(second), "kept");
	ck_assert_int_eq(stfs_stage_clear(second), 0);
	stfs_stage_free(stfs_steal(second));
	ck_assert_int_eq(stfs_stage_lock(third, model_fd, NULL), 0);
	ck_assert(!stfs_stage_exists(third));
	/* And what is in the way is said, with the lock let go. */
	stfs_stage_free(stfs_steal(third));
	third = made(false);
	put_file(NAME, "");
	ck_assert_int_eq(stfs_stage_lock(third, model_fd, NULL), -ENOTDIR);
	unlinkat(folder_fd, NAME, 0);
	ck_assert_int_eq(in_child(try_lock), 0);
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
		put_file(NAME "/journal.next", "STFSJ1\n");
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

/* How far a life got; shared with a child that is killed in it. */
struct progress {
	bool made, added, swapped, clearing, cleared;
};

static int swap_in(struct stfs_stage *stage)
{
	_cleanup_journal_ struct stfs_journal *next = NULL;
	int r = stfs_stage_next_journal(stage, &next);

	if (r == 0)
		r = stfs_journal_append(next, 1, stfs_slice_of("new"));
	return r < 0 ? r : stfs_stage_swap_journal(stage);
}

/* Everything a stage does, until the first failure. */
static int live(struct stfs_stage *stage, struct progress *progress)
{
	_cleanup_close_ int fd = -1;
	uint64_t number;
	int r = stfs_stage_create(stage);

	progress->made = r == 0;
	if (r == 0)
		r = stfs_stage_file_create(stage, &number, &fd);
	if (r == 0)
		r = stfs_journal_append(stfs_stage_journal(stage), 1, stfs_slice_of("old"));
	progress->added = r == 0;
	if (r == 0)
		r = stfs_journal_sync(stfs_stage_journal(stage));
	if (r == 0)
		r = stfs_stage_sync_dir(stage);
	if (r == 0)
		r = swap_in(stage);
	progress->swapped = r == 0;
	progress->clearing = r == 0;
	if (r == 0)
		r = stfs_stage_clear(stage);
	progress->cleared = r == 0;
	return r;
}

static int run(struct progress *progress)
{
	_cleanup_stage_ struct stfs_stage *stage = NULL;
	int r = stage_new(false, NULL, &stage);

	if (r == 0)
		r = stfs_stage_lock(stage, model_fd, NULL);
	return r < 0 ? r : live(stage, progress);
}

/* What is on disk after a life must be what it says it did, or one step more; and it must be usable. */
static void check_after(const struct progress *progress)
{
	_cleanup_stage_ struct stfs_stage *stage = NULL;
	_cleanup_buf_ struct stfs_buf records = { 0 };

	faulty_os_plant(&faulty, FAULTY_NONE, 0, 0);
	stage = locked(false);
	ck_assert(!progress->cleared || count_names() == -1);
	if (stfs_stage_exists(stage)) {
		const char *text;

		ck_assert_int_eq(stfs_journal_replay(stfs_stage_journal(stage), collect, &records, NULL), 0);
		text = records.data ? records.data : "";
		ck_assert(strcmp(text, "new") == 0 || (strcmp(text, "old") == 0 && !progress->swapped) ||
			  (strcmp(text, "") == 0 && !progress->added));
	} else {
		ck_assert(!progress->made || progress->clearing);
	}
	ck_assert_int_eq(stfs_stage_create(stage), 0);
	ck_assert_int_eq(stfs_stage_clear(stage), 0);
	ck_assert_int_eq(count_names(), -1);
}

/* Each call failing in turn: the error comes out, nothing leaks, nothing on disk is in the way. */
START_TEST(test_each_call_fails)
{
	static const int errors[] = { EIO, ENOSPC, EINTR };
	unsigned fds = faulty_open_fds();

	for (size_t i = 0; i < STFS_ARRAY_SIZE(errors); i++) {
		unsigned tolerated = 0;

		for (unsigned at = 1, fired = 1; fired; at++) {
			struct progress progress = { 0 };
			int r;

			faulty_os_plant(&faulty, FAULTY_ONCE, at, errors[i]);
			r = run(&progress);
			fired = faulty.fired;
			if (!fired || errors[i] == EINTR)
				ck_assert_int_eq(r, 0);
			else
				ck_assert_msg(r == 0 || r == -errors[i], "%d after %s", r,
					      faulty_call_name(faulty.struck));
			tolerated += fired && r == 0;
			if (fired && r < 0 && !progress.made)
				ck_assert_int_eq(count_names(), -1);
			check_after(&progress);
			ck_assert_uint_eq(faulty_open_fds(), fds);
			ck_assert(at > 30 || fired);
		}
		/* The note of the holder may fail (removed, made, written), and nothing else. */
		ck_assert(errors[i] == EINTR || tolerated == 3);
	}
	/* From there on: a disk that is gone. */
	for (unsigned at = 1, fired = 1; fired; at++) {
		struct progress progress = { 0 };
		int r;

		faulty_os_plant(&faulty, FAULTY_FROM, at, EIO);
		r = run(&progress);
		fired = faulty.fired;
		ck_assert_int_eq(r, fired ? -EIO : 0);
		check_after(&progress);
		ck_assert_uint_eq(faulty_open_fds(), fds);
	}
}
END_TEST

/* Killed at each call, and in the middle of each write: the next one finds what was accepted, and the lock free. */
START_TEST(test_killed_at_each_call)
{
	struct progress *progress =
		mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(progress, MAP_FAILED);
	for (int half = 0; half < 2; half++) {
		int status = 0;

		for (unsigned at = 1; !WIFEXITED(status) || at == 1; at++) {
			pid_t pid;

			*progress = (struct progress){ 0 };
			pid = fork();
			ck_assert_int_ge(pid, 0);
			if (pid == 0) {
				/* An open file of its own, as another process would have: the lock is on that. */
				model_fd = openat(folder_fd, "m.safetensors", O_RDONLY | O_CLOEXEC);
				faulty_os_plant(&faulty, half ? FAULTY_KILL_HALF : FAULTY_KILL, at, 0);
				_exit(run(progress) == 0 ? 0 : 1);
			}
			ck_assert_int_eq(waitpid(pid, &status, 0), pid);
			ck_assert(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
			ck_assert(at > 30 || WIFSIGNALED(status));
			check_after(progress);
		}
	}
	munmap(progress, sizeof(*progress));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stage");
	TCase *tcase = tcase_create("stage");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_life);
	tcase_add_test(tcase, a_sync_is_of_names_too);
	tcase_add_test(tcase, test_modes_of_files);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_shared_directory);
	tcase_add_test(tcase, test_shared_directory_missing);
	tcase_add_test(tcase, test_paths);
	tcase_add_test(tcase, test_lock);
	tcase_add_test(tcase, test_note);
	tcase_add_test(tcase, test_note_fails);
	tcase_add_test(tcase, test_relock);
	tcase_add_test(tcase, test_lock_dies_with_holder);
	tcase_add_test(tcase, test_look_again);
	tcase_add_test(tcase, test_sweep);
	tcase_add_test(tcase, test_next_journal);
	tcase_add_test(tcase, test_swap_damaged);
	tcase_add_test(tcase, test_leftovers);
	tcase_add_test(tcase, test_clear_leaves_foreign);
	tcase_add_test(tcase, test_journal_turns_up);
	tcase_add_test(tcase, test_threads);
	tcase_add_test(tcase, test_each_call_fails);
	tcase_add_test(tcase, test_killed_at_each_call);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
