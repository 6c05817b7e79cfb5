/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call of the operating system that a commit makes, failing in turn, cut short in turn, and being the last thing the
 * process did; the same for the opening that follows a crash. Whatever happened, once the model is opened again it is exactly
 * the old one with all that was staged, or exactly the new one; no file is left that belongs to neither.
 */
#include <signal.h>
#include <sys/wait.h>

#include "fault_fixture.h"
#include "faulty_os.h"
#include "run_tests.h"
#include "shard_fixture.h"

#define SINGLE "m.safetensors"

/* A model, what is staged in it, and how it is committed. */
struct scenario {
	const char *source; /* "": the directory */
	void (*make)(void);
	void (*stage)(struct stfs_view *view); /* all edits but scratch files */
	bool scratch;
	struct stfs_commit_options options;
};

static struct faulty_os faulty;
static struct said said;
static const struct scenario *scenario;
static struct files old_files, new_files;

static void make_single(void)
{
	struct maker maker = { 0 };

	maker_metadata(&maker, "{\"format\":\"pt\"}");
	maker_tensor(&maker, "a.w", "F32", "2,3", 24);
	maker_tensor(&maker, "a.b", "U8", "5", 5);
	maker_tensor(&maker, "big", "U8", "20000", 20000);
	maker_write(&maker, SINGLE);
}

/* One of each kind: a rename, bytes over a run, a text, a new tensor with staged bytes and a hole, a deletion, metadata. */
static void stage_single(struct stfs_view *view)
{
	char bytes[6000];

	memset(bytes, 'n', sizeof(bytes));
	edit_mv(view, "a/w", "z");
	edit_write(view, "big/data", false, "hello", 5, 10000);
	edit_rm_tensor(view, "a/b");
	edit_mkdir(view, "n");
	edit_put(view, "n/dtype", "U8");
	edit_put(view, "n/shape", "12000");
	edit_write(view, "n/data", true, bytes, sizeof(bytes), 0);
	edit_resize(view, "n/data", 12000);
	edit_put(view, "__metadata__/author", "me");
}

static void make_shards(void)
{
	shards_make("");
}

/* Two shards are written, one goes, and the index with them. */
static void stage_shards(struct stfs_view *view)
{
	edit_write(view, "l0/b/data", false, "hello", 5, 2);
	edit_mv(view, "head", "top");
	edit_rm_tensor(view, "l1/w");
	edit_rm_tensor(view, "l1/b");
}

/* All three, and the index. */
static void stage_all_shards(struct stfs_view *view)
{
	edit_mv(view, "l0", "m0");
	edit_mv(view, "l1", "m1");
	edit_put(view, "head/data", "0123456789012345678901234567890123456789012345678901234567890123");
}

static void stage_nothing(struct stfs_view *view)
{
	(void)view;
}

static const struct scenario single = { SINGLE, make_single, stage_single, false, { .output = NULL } };
static const struct scenario single_scratch = { SINGLE, make_single, stage_single, true, { .output = NULL } };
static const struct scenario shards = { "", make_shards, stage_shards, false, { .output = NULL } };
static const struct scenario shards_scratch = { "", make_shards, stage_all_shards, true, { .output = NULL } };
static const struct scenario sorting = { SINGLE, make_single, stage_nothing, false, { .plan = { .sort = true } } };

/* A fresh model with everything staged, on calls that do not fail yet. */
static struct stfs_view *prepare(void)
{
	struct stfs_view *view = NULL;

	empty_folder();
	scenario->make();
	said_init(&said);
	faulty_os_plant(&faulty, FAULTY_NONE, 0, 0);
	ck_assert_int_eq(editing_open(scenario->source, &faulty.os, &said, &view), 0);
	scenario->stage(view);
	if (scenario->scratch) {
		edit_put(view, "notes", "remember");
		edit_put(view, "large", "");
		edit_resize(view, "large", 50000);
		edit_mkdir(view, "empty");
		edit_chmod(view, "__metadata__", 0701);
	}
	return view;
}

static int try_commit(struct stfs_view *view, struct stfs_commit_result *result)
{
	return commit_options(view, &scenario->options, &said, result);
}

static void expect_scratch(struct stfs_view *view)
{
	struct stfs_attr attr;

	if (!scenario->scratch)
		return;
	edit_expect(view, "notes", "remember");
	ck_assert_int_eq(stfs_view_getattr(view, edit_ino(view, "large"), &attr), 0);
	ck_assert_uint_eq(attr.size, 50000);
}

/* What the scenario begins and ends with, from runs without a fault. */
static void learn(const struct scenario *which)
{
	struct stfs_commit_result result;
	struct stfs_view *view;

	scenario = which;
	view = prepare();
	read_files(&old_files);
	ck_assert_int_eq(try_commit(view, &result), 0);
	read_files(&new_files);
	ck_assert(!same_files(&old_files, &new_files));
	expect_scratch(view);
	stfs_view_free(view);
}

/* Commits with nothing in the way, which must give the new model. */
static void commit_the_rest(struct stfs_view *view, const char *what, unsigned at)
{
	struct stfs_commit_result result;
	struct files files = { 0 };
	int r = try_commit(view, &result);

	read_files(&files);
	ck_assert_msg(r == 0 && same_files(&files, &new_files), "%s at %u (%s): edits were lost: %s", what, at,
		      faulty_call_name(faulty.struck), strerror(-r));
	free_files(&files);
	expect_scratch(view);
}

/* Opens the model as the next mount does, and looks at what it finds. */
static void check_next_mount(const char *what, unsigned at)
{
	struct stfs_view *view = NULL;
	struct files files = { 0 };
	bool is_new;
	int r;

	said_init(&said);
	r = editing_open(scenario->source, stfs_os_real(), &said, &view);
	ck_assert_msg(r == 0, "%s at %u (%s): cannot be opened: %s %s", what, at, faulty_call_name(faulty.struck),
		      strerror(-r), said.text);
	read_files(&files);
	is_new = same_files(&files, &new_files);
	ck_assert_msg(is_new || same_files(&files, &old_files), "%s at %u (%s): neither old nor new:%s", what, at,
		      faulty_call_name(faulty.struck), files.names);
	expect_scratch(view);
	if (!is_new)
		commit_the_rest(view, what, at);
	else if (!scenario->scratch)
		ck_assert_msg(strstr(folder_names(""), FIXTURE_STAGE) == NULL, "%s at %u: something is still staged",
			      what, at);
	free_files(&files);
	stfs_view_free(view);
}

/* A commit with a planted fault that returned `r`: is that the truth? What is not over is for the next mount to end. */
static void check_answer(int r, const char *what, unsigned at)
{
	bool over = access(fixture_path(FIXTURE_STAGE "/journal.next"), F_OK) < 0;
	struct files files = { 0 };

	read_files(&files);
	if (r == 0)
		ck_assert_msg(same_files(&files, &new_files), "%s at %u (%s): said yes, but it is not new", what, at,
			      faulty_call_name(faulty.struck));
	else if (over)
		ck_assert_msg(same_files(&files, &old_files) || same_files(&files, &new_files),
			      "%s at %u (%s): said no, and left%s", what, at, faulty_call_name(faulty.struck),
			      files.names);
	free_files(&files);
}

/* A second commit in the same view, after one that failed. */
static void try_again(struct stfs_view *view, const char *what, unsigned at)
{
	struct stfs_commit_result result;
	int r = try_commit(view, &result);
	struct files files = { 0 };

	read_files(&files);
	if (r == 0)
		ck_assert_msg(same_files(&files, &new_files), "%s at %u (%s): the second try lost edits", what, at,
			      faulty_call_name(faulty.struck));
	else /* refused for good: the next mount goes on (EEXIST: a staging area that could not be unmade) */
		ck_assert_msg(r == -EROFS || r == -EEXIST, "%s at %u (%s): the second try: %s", what, at,
			      faulty_call_name(faulty.struck), said.text);
	free_files(&files);
}

/* One commit with a fault at call number `at`. Returns false when it made fewer calls. */
static bool run_failing(enum faulty_how how, int error, const char *what, unsigned at, bool again)
{
	unsigned fds = faulty_open_fds();
	struct stfs_view *view = prepare();
	struct stfs_commit_result result;
	bool fired;
	int r;

	faulty_os_plant(&faulty, how, at, error);
	r = try_commit(view, &result);
	fired = faulty.fired > 0;
	faulty.how = FAULTY_NONE;
	/* What a signal or a short answer interrupts goes on. */
	ck_assert_msg(r == 0 || (fired && how != FAULTY_SHORT && error != EINTR), "%s at %u (%s): %s", what, at,
		      faulty_call_name(faulty.struck), said.text);
	check_answer(r, what, at);
	if (again && r < 0)
		try_again(view, what, at);
	expect_scratch(view);
	stfs_view_free(view);
	check_next_mount(what, at);
	ck_assert_msg(faulty_open_fds() == fds, "%s at %u (%s): a descriptor is left open", what, at,
		      faulty_call_name(faulty.struck));
	return fired;
}

static void fail_everywhere(const struct scenario *which)
{
	static const struct {
		enum faulty_how how;
		int error;
		const char *what;
	} faults[] = {
		{ FAULTY_ONCE, EIO, "EIO" },
		{ FAULTY_ONCE, ENOSPC, "ENOSPC" },
		{ FAULTY_ONCE, EINTR, "EINTR" },
		{ FAULTY_FROM, EIO, "EIO from" },
		{ FAULTY_FROM, ENOSPC, "ENOSPC from" },
		{ FAULTY_ONCE, EACCES, "EACCES" },
		{ FAULTY_ONCE, EDQUOT, "EDQUOT" },
		{ FAULTY_SHORT, 0, "a short call" },
	};

	make_folder();
	faulty_os_init(&faulty, stfs_os_real());
	learn(which);
	for (size_t i = 0; i < STFS_ARRAY_SIZE(faults); i++) {
		for (int again = 0; again < 2; again++) {
			unsigned at = 1;

			while (run_failing(faults[i].how, faults[i].error, faults[i].what, at, again))
				at++;
			ck_assert_uint_gt(at, 20);
		}
	}
	remove_folder();
}

/* A commit whose sync number `at` fails, and no other call. Returns false when it made fewer. */
static bool run_unsynced(unsigned at, int *ret, bool *ret_not_durable)
{
	struct stfs_view *view = prepare();
	struct stfs_commit_result result;
	bool fired;

	faulty_os_plant_in(&faulty, FAULTY_FSYNC | FAULTY_FDATASYNC, FAULTY_ONCE, at, EIO);
	*ret = try_commit(view, &result);
	*ret_not_durable = *ret == 0 && result.not_durable;
	fired = faulty.fired > 0;
	faulty.how = FAULTY_NONE;
	stfs_view_free(view);
	check_next_mount("sync", at);
	return fired;
}

/*
 * What is not on disk is never called done: a failed sync fails the commit up to the one of the folder after the renames,
 * which makes it one that may not last. At least the intent, each new file, the folder and the decision come before that.
 */
static void sync_everywhere(const struct scenario *which, unsigned n_built)
{
	unsigned n_failed = 0;
	bool not_durable;
	int r;

	make_folder();
	faulty_os_init(&faulty, stfs_os_real());
	learn(which);
	while (run_unsynced(n_failed + 1, &r, &not_durable) && r < 0)
		n_failed++;
	ck_assert_uint_ge(n_failed, n_built + 3);
	ck_assert(not_durable);
	remove_folder();
}

/* Waits for a child that was to be killed. Returns false when it came to its end. */
static bool was_killed(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status)) {
		ck_assert_int_eq(WTERMSIG(status), SIGKILL);
		return true;
	}
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	return false;
}

/* A process that commits and is killed at call number `at`. */
static bool kill_commit(enum faulty_how how, unsigned at)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct stfs_commit_result result;
		struct stfs_view *view = prepare();

		faulty_os_plant(&faulty, how, at, 0);
		_exit(try_commit(view, &result) == 0 ? 0 : 1);
	}
	return was_killed(pid);
}

static void kill_everywhere(const struct scenario *which)
{
	make_folder();
	faulty_os_init(&faulty, stfs_os_real());
	learn(which);
	for (int half = 0; half < 2; half++) {
		const char *what = half ? "killed half-way" : "killed";
		unsigned at = 1;

		while (kill_commit(half ? FAULTY_KILL_HALF : FAULTY_KILL, at)) {
			check_next_mount(what, at);
			at++;
		}
		ck_assert_uint_gt(at, 20);
	}
	remove_folder();
}

/* Opens what a crash left, with a fault at call number `at`. Returns false when that made fewer calls. */
static bool open_failing(enum faulty_how how, int error, unsigned at)
{
	struct stfs_view *view = NULL;
	bool fired;

	said_init(&said);
	faulty_os_plant(&faulty, how, at, error);
	(void)editing_open(scenario->source, &faulty.os, &said, &view);
	fired = faulty.fired > 0;
	faulty.how = FAULTY_NONE;
	stfs_view_free(view);
	return fired;
}

static bool open_killed(unsigned at)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(open_failing(FAULTY_KILL, 0, at) ? 1 : 0);
	return was_killed(pid);
}

/*
 * A commit that was killed at `at`, or not begun for 0, then an opening with a fault at each of its calls. The staging area is
 * made anew each time.
 */
static void recover_everywhere(unsigned at)
{
	static const struct {
		enum faulty_how how;
		int error;
		const char *what;
	} faults[] = {
		{ FAULTY_ONCE, EIO, "recovery with EIO" },
		{ FAULTY_FROM, ENOSPC, "recovery with ENOSPC" },
		{ FAULTY_KILL, 0, "killed in recovery" },
	};

	for (size_t i = 0; i < STFS_ARRAY_SIZE(faults); i++) {
		bool fired = true;

		/* Of the two that fail one is enough for a point: its neighbours have the other. */
		if (at && i == at % 2)
			continue;

		for (unsigned n = 1; fired; n++) {
			if (at)
				ck_assert(kill_commit(FAULTY_KILL, at));
			else
				stfs_view_free(prepare());
			fired = faults[i].how == FAULTY_KILL ? open_killed(n) :
							       open_failing(faults[i].how, faults[i].error, n);
			check_next_mount(faults[i].what, at * 1000 + n);
		}
	}
}

static unsigned count_calls(void)
{
	struct stfs_view *view = prepare();
	struct stfs_commit_result result;
	unsigned n;

	faulty_os_plant(&faulty, FAULTY_NONE, 0, 0);
	ck_assert_int_eq(try_commit(view, &result), 0);
	n = faulty.calls;
	stfs_view_free(view);
	return n;
}

/* Steps that meet every phase, and every call at the end, where the files take their names. */
static void recover_from_everywhere(const struct scenario *which)
{
	unsigned n;

	make_folder();
	faulty_os_init(&faulty, stfs_os_real());
	learn(which);
	recover_everywhere(0);
	n = count_calls();
	for (unsigned at = 5; at <= n; at += at + 20 < n ? 25 : 1)
		recover_everywhere(at);
	remove_folder();
}

static const struct scenario *const scenarios[] = { &single, &single_scratch, &shards, &shards_scratch, &sorting };

START_TEST(each_call_fails)
{
	fail_everywhere(scenarios[_i]);
}
END_TEST

START_TEST(a_failed_sync_is_told)
{
	static const unsigned n_built[] = { 1, 1, 3, 4, 1 };

	sync_everywhere(scenarios[_i], n_built[_i]);
}
END_TEST

START_TEST(killed_at_each_call)
{
	kill_everywhere(scenarios[_i]);
}
END_TEST

START_TEST(each_call_of_the_recovery_fails)
{
	recover_from_everywhere(_i ? &shards_scratch : &shards);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("commit_faults");

	tcase_set_timeout(tcase, 1500);
	tcase_add_loop_test(tcase, each_call_fails, 0, (int)STFS_ARRAY_SIZE(scenarios));
	tcase_add_loop_test(tcase, a_failed_sync_is_told, 0, (int)STFS_ARRAY_SIZE(scenarios));
	tcase_add_loop_test(tcase, killed_at_each_call, 0, (int)STFS_ARRAY_SIZE(scenarios));
	tcase_add_loop_test(tcase, each_call_of_the_recovery_fails, 0, 2);
	return run_tests("commit_faults", tcase);
}
