/* SPDX-License-Identifier: Apache-2.0 */
/* The lock on a model, and the note of who holds it. */
#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "run_tests.h"
#include "stage_fixture.h"

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

int main(void)
{
	TCase *tcase = tcase_create("stage");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_lock);
	tcase_add_test(tcase, test_note);
	tcase_add_test(tcase, test_note_fails);
	tcase_add_test(tcase, test_relock);
	tcase_add_test(tcase, test_lock_dies_with_holder);
	tcase_add_test(tcase, test_look_again);
	tcase_set_timeout(tcase, 60);
	return run_tests("stage_lock", tcase);
}
