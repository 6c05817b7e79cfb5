/* SPDX-License-Identifier: Apache-2.0 */
/* Staging areas on a system whose calls fail, or that is killed in one. */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "run_tests.h"
#include "stage_fixture.h"

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
	TCase *tcase = tcase_create("stage");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_each_call_fails);
	tcase_add_test(tcase, test_killed_at_each_call);
	tcase_set_timeout(tcase, 60);
	return run_tests("stage_faults", tcase);
}
