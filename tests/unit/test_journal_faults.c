/* SPDX-License-Identifier: Apache-2.0 */
/* Journals on a system whose calls fail, or that is killed in one. */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "journal_fixture.h"
#include "run_tests.h"

/* After a failed append the file is as before, and the next one works. */
START_TEST(test_append_fails)
{
	_cleanup_journal_ struct stfs_journal *journal = opened(true);
	struct seen seen;

	ck_assert_int_eq(append(journal, 1, "first"), 0);
	faulty_os_plant(&faulty, FAULTY_ONCE, 1, ENOSPC);
	ck_assert_int_eq(append(journal, 2, "second"), -ENOSPC);
	ck_assert_uint_eq(stfs_journal_size(journal), file_size());
	faulty_os_plant(&faulty, FAULTY_SHORT, 1, 0);
	ck_assert_int_eq(append(journal, 3, "whole after all"), 0);
	ck_assert_uint_eq(faulty.calls, 2);
	ck_assert_int_eq(replay(&seen, NULL), 0);
	ck_assert_uint_eq(seen.n, 2);
	ck_assert_str_eq(seen.texts[1], "whole after all");
}
END_TEST

/* A disk that takes half a record and then says that it is full. */
static ssize_t write_half_then_fail(void *user, int fd, const void *data, size_t len, off_t offset)
{
	unsigned *calls = user;

	if (++*calls % 2 == 0) {
		errno = ENOSPC;
		return -1;
	}
	return pwrite(fd, data, len / 2, offset);
}

static int fail_to_truncate(void *user, int fd, off_t size)
{
	(void)user;
	(void)fd;
	(void)size;
	errno = EIO;
	return -1;
}

START_TEST(test_append_cut_back)
{
	struct stfs_os os = *stfs_os_real();
	_cleanup_journal_ struct stfs_journal *journal = NULL;
	unsigned calls = 0;
	struct seen seen;

	ck_assert_int_eq(stfs_journal_open(&os, dir_fd, "j", true, &journal), 0);
	ck_assert_int_eq(append(journal, 1, "first"), 0);
	os.user = &calls;
	os.pwrite = write_half_then_fail;
	ck_assert_int_eq(append(journal, 2, "second"), -ENOSPC);
	ck_assert_uint_eq(file_size(), 16 + 48);
	/* Once the half of a record cannot be taken back, nothing must follow it. */
	os.ftruncate = fail_to_truncate;
	ck_assert_int_eq(append(journal, 2, "second"), -ENOSPC);
	ck_assert_uint_gt(file_size(), 16 + 48);
	os = *stfs_os_real();
	ck_assert_int_eq(append(journal, 2, "second"), -EIO);
	ck_assert_int_eq(stfs_journal_sync(journal), -EIO);
	ck_assert_int_eq(replay(&seen, NULL), 0);
	ck_assert_uint_eq(seen.n, 1);
	ck_assert_uint_eq(file_size(), 16 + 48);
}
END_TEST

START_TEST(test_sync)
{
	_cleanup_journal_ struct stfs_journal *journal = opened(true);
	struct seen seen;

	ck_assert_int_eq(append(journal, 1, "first"), 0);
	faulty_os_plant(&faulty, FAULTY_ONCE, 1, EINTR);
	ck_assert_int_eq(stfs_journal_sync(journal), 0);
	ck_assert_uint_eq(faulty.calls, 2);
	/* Nothing new: nothing to do. */
	ck_assert_int_eq(stfs_journal_sync(journal), 0);
	ck_assert_uint_eq(faulty.calls, 2);
	ck_assert_int_eq(append(journal, 2, "second"), 0);
	faulty_os_plant(&faulty, FAULTY_ONCE, 1, EDQUOT);
	ck_assert_int_eq(stfs_journal_sync(journal), -EDQUOT);
	/* Never tried again: the system would say that all is well. */
	ck_assert_int_eq(stfs_journal_sync(journal), -EIO);
	ck_assert_int_eq(append(journal, 3, "third"), -EIO);
	ck_assert_uint_eq(faulty.calls, 1);
	ck_assert_int_eq(replay(&seen, NULL), 0);
	ck_assert_uint_eq(seen.n, 2);
}
END_TEST

/* A whole life: made, added to, synced, read back, added to. *ret_done counts the appends that were accepted. */
static int live(struct stfs_journal **journal, unsigned *done)
{
	struct seen seen = { 0 };
	int r = open_journal(true, journal);

	for (unsigned i = 0; r == 0 && i < 3; i++) {
		r = append(*journal, 1, "before");
		*done += r == 0;
	}
	if (r == 0)
		r = stfs_journal_sync(*journal);
	stfs_journal_close(*journal);
	*journal = NULL;
	if (r == 0)
		r = open_journal(false, journal);
	if (r == 0)
		r = stfs_journal_replay(*journal, see, &seen, NULL);
	if (r == 0)
		r = append(*journal, 2, "after");
	*done += r == 0;
	return r;
}

static void check_life(unsigned done)
{
	_cleanup_journal_ struct stfs_journal *journal = NULL;
	struct seen seen = { 0 };
	int r;

	faulty_os_plant(&faulty, FAULTY_NONE, 0, 0);
	r = open_journal(false, &journal);
	if (r == -ENOENT) {
		ck_assert_uint_eq(done, 0);
		return;
	}
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(stfs_journal_replay(journal, see, &seen, NULL), 0);
	ck_assert_uint_ge(seen.n, done);
	remove_journal();
}

/* Each call failing in turn: the error comes out, nothing leaks, nothing that was accepted is lost. */
START_TEST(test_each_call_fails)
{
	static const int errors[] = { EIO, ENOSPC, EINTR };
	unsigned fds = faulty_open_fds();

	for (size_t i = 0; i < 2 * STFS_ARRAY_SIZE(errors); i++) {
		enum faulty_how how = i < STFS_ARRAY_SIZE(errors) ? FAULTY_ONCE : FAULTY_FROM;
		int error = errors[i % STFS_ARRAY_SIZE(errors)];
		unsigned at = 0, fired;

		if (error == EINTR && how == FAULTY_FROM)
			continue; /* for ever */
		do {
			struct stfs_journal *journal = NULL;
			unsigned done = 0;
			int r;

			faulty_os_plant(&faulty, how, ++at, error);
			r = live(&journal, &done);
			fired = faulty.fired;
			stfs_journal_close(journal);
			ck_assert_int_eq(r, fired && error != EINTR ? -error : 0);
			check_life(done);
			ck_assert_uint_eq(faulty_open_fds(), fds);
		} while (fired);
		ck_assert_uint_gt(at, 10);
	}
}
END_TEST

/* Reading back a torn journal, each call failing in turn: an error and a sentence, and the next try does it. */
START_TEST(test_torn_each_call_fails)
{
	uint64_t ends[6];

	for (int headless = 0; headless < 2; headless++) {
		for (unsigned at = 1, fired = 1; fired; at++) {
			_cleanup_journal_ struct stfs_journal *journal = NULL;
			struct stfs_diag diag = { 0 };
			struct seen seen = { 0 };
			int r;

			make(2, ends);
			cut_file(headless ? 7 : ends[2] - 3);
			journal = opened(false);
			faulty_os_plant(&faulty, FAULTY_ONCE, at, EIO);
			r = stfs_journal_replay(journal, see, &seen, &diag);
			fired = faulty.fired;
			faulty_os_plant(&faulty, FAULTY_NONE, 0, 0);
			ck_assert_int_eq(r, fired ? -EIO : 0);
			ck_assert((strstr(diag.text, "cannot be read back: ") != NULL) == (fired != 0));
			ck_assert(!fired || append(journal, 1, "x") == -EINVAL);
			ck_assert(fired || at > 2);
			ck_assert_int_eq(replay(&seen, NULL), 0);
			ck_assert_uint_eq(seen.n, headless ? 0 : 1);
			remove_journal();
		}
	}
}
END_TEST

/* Killed at each call, and in the middle of each write: what was accepted is there. */
START_TEST(test_killed_at_each_call)
{
	unsigned *done = mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(done, MAP_FAILED);
	for (int half = 0; half < 2; half++) {
		int status = 0;

		for (unsigned at = 1; !WIFEXITED(status) || at == 1; at++) {
			pid_t pid;

			*done = 0;
			pid = fork();
			ck_assert_int_ge(pid, 0);
			if (pid == 0) {
				struct stfs_journal *journal = NULL;

				faulty_os_plant(&faulty, half ? FAULTY_KILL_HALF : FAULTY_KILL, at, 0);
				_exit(live(&journal, done) == 0 ? 0 : 1);
			}
			ck_assert_int_eq(waitpid(pid, &status, 0), pid);
			ck_assert(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
			ck_assert(at > 10 || WIFSIGNALED(status));
			check_life(*done);
		}
	}
	munmap(done, sizeof(*done));
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("journal");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_append_fails);
	tcase_add_test(tcase, test_append_cut_back);
	tcase_add_test(tcase, test_sync);
	tcase_add_test(tcase, test_each_call_fails);
	tcase_add_test(tcase, test_torn_each_call_fails);
	tcase_add_test(tcase, test_killed_at_each_call);
	tcase_set_timeout(tcase, 60);
	return run_tests("journal_faults", tcase);
}
