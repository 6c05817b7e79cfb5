/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation failing in turn, alone and with all that follow it, while a model is opened and all of it is read: it says
 * that there is no memory, or shows everything; what is staged, and a commit that was cut short, wait for the next opening.
 */
#include <sys/wait.h>

#include "malloc_fixture.h"

/* A model, what was left in its staging area, and how it is opened. */
struct open_case {
	const char *name;
	const char *source; /* "": the directory */
	void (*make)(void);
	void (*stage)(struct stfs_view *view); /* NULL: opened for reading only */
	unsigned killed_at;                    /* a commit was killed at this renaming, 0: none was begun */
	enum stfs_layout layout;
};

static struct dump wanted, now;
static struct faulty_os faulty;
static struct said said;

static void make_shards(void)
{
	shards_make("");
}

static void stage_single(struct stfs_view *view)
{
	edit_mv(view, "c/d/e", "c/moved");
	edit_mv(view, "c", "m");
	edit_put(view, "a/w/shape", "3 2\n");
	edit_put(view, "a/w/notes", "remember");
	edit_rm_tensor(view, "a/b");
	edit_write(view, "big/data", false, "hello", 5, 10000);
	edit_write(view, "big/data", false, "hello", 5, 20);
	edit_put(view, "__metadata__/note", letters(5000, 'k'));
	edit_put(view, "__metadata__/author", "me");
	edit_rm(view, "__metadata__/format");
	edit_mkdir(view, "n");
	edit_put(view, "n/dtype", "U8");
	edit_put(view, "n/shape", "12000");
	edit_write(view, "n/data", true, letters(12000, 'A'), 12000, 0);
}

static void stage_shards(struct stfs_view *view)
{
	edit_write(view, "l0/b/data", false, "hello", 5, 2);
	edit_mv(view, "head", "top");
	edit_rm_tensor(view, "l1/w");
	edit_put(view, "notes", "remember");
}

/* Stages, and lets a process of its own begin the commit and be killed. */
static void leave_commit(const struct open_case *which)
{
	struct stfs_commit_options options = { 0 };
	struct stfs_commit_result result;
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct stfs_workspace workspace;

		faulty_os_init(&faulty, stfs_os_real());
		if (open_workspace_by(&faulty.os, which->source, which->layout, false, &said, &workspace) < 0)
			_exit(1);
		which->stage(workspace.view);
		faulty_os_plant_in(&faulty, FAULTY_RENAMEAT2, FAULTY_KILL, which->killed_at, 0);
		said_init(&said);
		_exit(stfs_view_commit(workspace.view, &options, &said.report, &result) < 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(WIFSIGNALED(status), which->killed_at > 0);
}

static void prepare(const struct open_case *which)
{
	struct stfs_workspace workspace;

	empty_folder();
	which->make();
	if (which->killed_at)
		leave_commit(which);
	if (!which->stage || which->killed_at)
		return;
	workspace = must_open(which->source, which->layout);
	which->stage(workspace.view);
	stfs_workspace_fini(&workspace);
}

static int open_and_read(const struct open_case *which, struct dump *dump)
{
	struct stfs_workspace workspace = { 0 };
	int r = open_workspace_by(stfs_os_real(), which->source, which->layout, !which->stage, &said, &workspace);

	if (r == 0 && workspace.state != (which->stage ? STFS_WORKSPACE_WRITABLE : STFS_WORKSPACE_READ_ONLY))
		r = -EROFS;
	if (r == 0)
		r = dump_view(workspace.view, dump);
	stfs_workspace_fini(&workspace);
	return r;
}

static void expect_all(const struct open_case *which, const char *what, const char *when)
{
	if (!same_dump(&now, &wanted))
		dump_tell(&wanted, &now);
	expect(same_dump(&now, &wanted), "%s, %s, %s: not all is there", which->name, what, when);
}

/* An opening with an allocation failing, and another one with none. */
static bool open_failing(const struct open_case *which, enum faulty_malloc_how how, unsigned at)
{
	char what[50];
	bool fired;
	int r;

	snprintf(what, sizeof(what), "%s %u", how_names[how], at);
	if (at == 1 || which->killed_at)
		prepare(which);
	faulty_malloc_plant(how, at);
	r = open_and_read(which, &now);
	fired = faulty_malloc_lift();
	expect(r == 0 || (fired && r == -ENOMEM), "%s, %s: %s (%s)", which->name, what, strerror(-r), said.text);
	if (r == 0)
		expect_all(which, what, "answered");
	/* Whatever an opening leaves, it is there for many of the next ones; but what it ended was made for this one. */
	if (!which->stage || (!which->killed_at && at % 4))
		return fired;
	r = open_and_read(which, &now);
	expect(r == 0, "%s, %s, opened again: %s (%s)", which->name, what, strerror(-r), said.text);
	expect_all(which, what, "opened again");
	return fired;
}

static void open_everywhere(const struct open_case *which, enum faulty_malloc_how how)
{
	size_t live = faulty_malloc_live();
	unsigned fds = faulty_open_fds(), at = 1;

	while (open_failing(which, how, at)) {
		expect(faulty_malloc_live() == live, "%s, %s %u: %zd pieces of memory are lost", which->name,
		       how_names[how], at, (ssize_t)(faulty_malloc_live() - live));
		expect(faulty_open_fds() == fds, "%s, %s %u: a descriptor is left open", which->name, how_names[how],
		       at);
		at = next_at(how, at);
	}
	ck_assert_uint_gt(at, 20);
}

static const struct open_case open_cases[] = {
	{ "a file", SINGLE, make_single, NULL, 0, STFS_NESTED },
	{ "a file, flat", SINGLE, make_single, NULL, 0, STFS_FLAT },
	{ "shards", "", make_shards, NULL, 0, STFS_NESTED },
	{ "a file with edits", SINGLE, make_single, stage_single, 0, STFS_NESTED },
	{ "shards with edits", "", make_shards, stage_shards, 0, STFS_NESTED },
	{ "a decided commit", SINGLE, make_single, stage_single, 1, STFS_NESTED },
	{ "a commit half done", "", make_shards, stage_shards, 2, STFS_NESTED },
};

START_TEST(an_opening_shows_all_or_fails)
{
	const struct open_case *which = &open_cases[_i];

	make_folder();
	prepare(which);
	ck_assert_int_eq(open_and_read(which, &wanted), 0);
	open_everywhere(which, FAULTY_MALLOC_ONCE);
	open_everywhere(which, FAULTY_MALLOC_FROM);
	remove_folder();
}
END_TEST

int main(void)
{
	return malloc_main("malloc_opens", an_opening_shows_all_or_fails, (int)STFS_ARRAY_SIZE(open_cases));
}
