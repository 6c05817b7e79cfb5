/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation failing in turn, alone and with all that follow it, in a commit: the files are exactly the old ones or
 * exactly the new ones; yes means the new ones, and no comes with a sentence; what is staged is kept until it is in the model;
 * the view goes on with what the files hold, or stops edits until the next opening.
 */
#include "edit_acts.h"
#include "malloc_fixture.h"

/* A model, what is staged in it, and how it is committed. */
struct commit_case {
	const char *name;
	const char *source; /* "": the directory */
	void (*make)(void);
	void (*stage)(struct stfs_view *view);
	int (*edit_after)(struct stfs_view *view); /* of files that the commit wrote, and that it left alone */
	struct stfs_plan_options plan;
	bool output; /* to another place, a directory */
};

/* What there is beside the staging area. */
struct place {
	struct files model, output;
};

static struct said said;
static struct place old_place, new_place, now_place;
static struct dump old_dump, new_dump, after_dump, now;
static char model_dir[sizeof(fixture_dir)], output_dir[sizeof(fixture_dir)];

static void make_shards(void)
{
	shards_make("");
}

/* One of each kind; the new tensor is in a directory with a dot, which a commit moves to its place. */
static void stage_single(struct stfs_view *view)
{
	edit_mv(view, "c", "m");
	edit_mkdir(view, "x.y");
	edit_put(view, "x.y/dtype", " U8 ");
	edit_put(view, "x.y/shape", "[12000]");
	edit_write(view, "x.y/data", true, letters(12000, 'A'), 12000, 0);
	edit_put(view, "a/w/shape", "3x2");
	edit_write(view, "big/data", false, "hello", 5, 10000);
	edit_rm_tensor(view, "a/b");
	edit_put(view, "__metadata__/long", letters(5000, 'k'));
	edit_put(view, "__metadata__/author", "me");
	edit_rm(view, "__metadata__/format");
}

static int edit_sorted(struct stfs_view *view)
{
	int r = act_put(view, "a/w/shape", "1 6\n");

	if (r == 0)
		r = act_write(view, "big/data", false, "after", 5, 3);
	return r == 0 ? act_put(view, "__metadata__/long", "short") : r;
}

static int edit_single(struct stfs_view *view)
{
	int r = edit_sorted(view);

	if (r == 0)
		r = act_write(view, "x/y/data", false, "after", 5, 3);
	if (r == 0)
		r = act_put(view, "m/d/e/dtype", "I8\n");
	if (r == 0)
		r = act_mv(view, "__metadata__/note", "__metadata__/remark");
	return r == 0 ? act_mv(view, "m", "o") : r;
}

static void stage_scratch(struct stfs_view *view)
{
	stage_single(view);
	/* In a directory that the tensor leaves. */
	edit_put(view, "x.y/notes", "remember");
	edit_put(view, "x.y/large", "");
	edit_resize(view, "x.y/large", 15000);
}

static void stage_shards(struct stfs_view *view)
{
	edit_write(view, "l0/b/data", false, "hello", 5, 2);
	edit_mv(view, "head", "top");
	edit_rm_tensor(view, "l1/w");
	edit_rm_tensor(view, "l1/b");
}

static int edit_shards(struct stfs_view *view)
{
	int r = act_write(view, "top/data", false, "after", 5, 3);

	return r == 0 ? act_mv(view, "l0", "l2") : r;
}

static void stage_nothing(struct stfs_view *view)
{
	(void)view;
}

static int edit_nothing(struct stfs_view *view)
{
	(void)view;
	return 0;
}

static const struct commit_case commit_cases[] = {
	{ "a file", SINGLE, make_single, stage_single, edit_single, { .sort = false }, false },
	{ "a file and scratch files", SINGLE, make_single, stage_scratch, edit_single, { .sort = false }, false },
	{ "a file sorted", SINGLE, make_single, stage_nothing, edit_sorted, { .sort = true }, false },
	{ "shards", "", make_shards, stage_shards, edit_shards, { .sort = false }, false },
	{ "an output", "", make_shards, stage_shards, edit_nothing, { .reshape = true, .max_shard_size = 700 }, true },
};

/* Makes all that is told by path be about another folder. */
static void go(const char *folder, const char *name)
{
	snprintf(fixture_dir, sizeof(fixture_dir), "%.40s%s", folder, name);
}

static void look(struct place *place)
{
	bool made;

	go(output_dir, "/out");
	made = access(fixture_dir, F_OK) == 0;
	free_files(&place->output);
	if (made)
		read_files(&place->output);
	go(output_dir, "");
	expect(strcmp(folder_names(""), made ? "out" : "") == 0, "left behind: %s", folder_names(""));
	go(model_dir, "");
	read_files(&place->model);
}

static bool same_place(const struct place *a, const struct place *b)
{
	return same_files(&a->model, &b->model) && same_files(&a->output, &b->output);
}

static void empty_place(void)
{
	go(output_dir, "");
	remove_names("out");
	rmdir(fixture_path("out"));
	go(model_dir, "");
	empty_folder();
}

static struct stfs_workspace prepare(const struct commit_case *which)
{
	struct stfs_workspace workspace;

	empty_place();
	which->make();
	workspace = must_open(which->source, STFS_NESTED);
	which->stage(workspace.view);
	return workspace;
}

/* As commit_options, but without a check that would take memory. */
static int try_commit(const struct commit_case *which, struct stfs_view *view, struct stfs_commit_result *result)
{
	char path[100];
	struct stfs_commit_options options = { .plan = which->plan, .output = which->output ? path : NULL };

	snprintf(path, sizeof(path), "%s/out/", output_dir);
	said_init(&said);
	memset(result, 0, sizeof(*result));
	return stfs_view_commit(view, &options, &said.report, result);
}

static void take_dump(struct stfs_view *view, struct dump *dump)
{
	int r = dump_view(view, dump);

	expect(r == 0, "cannot be dumped: %s", strerror(-r));
}

static void expect_dump(const struct dump *is, const struct dump *wanted, const char *what, const char *when)
{
	if (!same_dump(is, wanted))
		dump_tell(wanted, is);
	expect(same_dump(is, wanted), "%s, %s: it is not as it should be", what, when);
}

/* What the commit begins and ends with. */
static void learn(const struct commit_case *which)
{
	struct stfs_workspace workspace = prepare(which);
	struct stfs_commit_result result;
	int r;

	look(&old_place);
	take_dump(workspace.view, &old_dump);
	r = try_commit(which, workspace.view, &result);
	ck_assert_msg(r == 0, "%s: %s", which->name, said.text);
	look(&new_place);
	take_dump(workspace.view, &new_dump);
	ck_assert_int_eq(which->edit_after(workspace.view), 0);
	take_dump(workspace.view, &after_dump);
	stfs_workspace_fini(&workspace);
}

/* Edits of the new model, in the view that committed and then in the next one. */
static void expect_goes_on(const struct commit_case *which, struct stfs_workspace *workspace, const char *what)
{
	int r;

	take_dump(workspace->view, &now);
	expect_dump(&now, &new_dump, what, "committed");
	r = which->edit_after(workspace->view);
	expect(r == 0, "%s: cannot be edited afterwards: %s", what, strerror(-r));
	take_dump(workspace->view, &now);
	expect_dump(&now, &after_dump, what, "edited afterwards");
	stfs_workspace_fini(workspace);
	*workspace = must_open(which->source, STFS_NESTED);
	take_dump(workspace->view, &now);
	expect_dump(&now, &after_dump, what, "edited and opened again");
}

/* A view that says of itself that it cannot go on: it does not, and the next one does. */
static void expect_stopped(const struct commit_case *which, struct stfs_workspace *workspace, const char *what)
{
	expect(act_mkdir(workspace->view, "late") == -EROFS, "%s: edits go on", what);
	stfs_workspace_fini(workspace);
	*workspace = must_open(which->source, STFS_NESTED);
}

/* After a no: the old files with all that is staged, or the new ones that wait for the next opening. */
static void expect_kept(const struct commit_case *which, struct stfs_workspace *workspace, const char *what,
			bool reopen)
{
	bool is_new = same_files(&now_place.model, &new_place.model) && !which->output;
	struct stfs_commit_result result;
	int r;

	if (is_new) {
		expect_stopped(which, workspace, what);
		return;
	}
	take_dump(workspace->view, &now);
	expect_dump(&now, &old_dump, what, "not committed");
	if (reopen) {
		stfs_workspace_fini(workspace);
		*workspace = must_open(which->source, STFS_NESTED);
	}
	r = try_commit(which, workspace->view, &result);
	expect(r == 0, "%s, again: %s", what, said.text);
	look(&now_place);
	expect(same_place(&now_place, &new_place), "%s, again: the files are not new", what);
}

/* A commit with an allocation failing. */
static bool commit_failing(const struct commit_case *which, enum faulty_malloc_how how, unsigned at, bool reopen)
{
	struct stfs_workspace workspace = prepare(which);
	struct stfs_commit_result result;
	char what[100];
	bool fired;
	int r;

	snprintf(what, sizeof(what), "%s, %s %u", which->name, how_names[how], at);
	faulty_malloc_plant(how, at);
	r = try_commit(which, workspace.view, &result);
	fired = faulty_malloc_lift();
	expect(r == 0 || (fired && r == -ENOMEM), "%s: %s: %s", what, strerror(-r), said.text);
	expect((r < 0) == (said.report.violations > 0), "%s: %s: \"%s\"", what, strerror(-r), said.text);
	look(&now_place);
	if (r == 0)
		expect(same_place(&now_place, &new_place) && !result.not_durable, "%s: said yes, and is not", what);
	else
		expect(same_place(&now_place, &old_place) || same_place(&now_place, &new_place), "%s: left%s and%s: %s",
		       what, now_place.model.names, now_place.output.names, said.text);
	if (r < 0)
		expect_kept(which, &workspace, what, reopen);
	else if (strstr(said.text, "edits are stopped"))
		expect_stopped(which, &workspace, what);
	expect_goes_on(which, &workspace, what);
	stfs_workspace_fini(&workspace);
	return fired;
}

static void commit_everywhere(const struct commit_case *which, enum faulty_malloc_how how, bool reopen)
{
	unsigned fds = faulty_open_fds(), at = 1;

	for (bool fired = true; fired; at = next_at(how, at)) {
		size_t live = faulty_malloc_live();

		fired = commit_failing(which, how, at, reopen);
		free_files(&now_place.model);
		free_files(&now_place.output);
		expect(faulty_malloc_live() == live, "%s, %s %u: %zd pieces of memory are lost", which->name,
		       how_names[how], at, (ssize_t)(faulty_malloc_live() - live));
		expect(faulty_open_fds() == fds, "%s, %s %u: a descriptor is left open", which->name, how_names[how],
		       at);
	}
	ck_assert_uint_gt(at, 20);
}

START_TEST(a_commit_is_whole_or_not_at_all)
{
	const struct commit_case *which = &commit_cases[_i];

	make_folder();
	strcpy(output_dir, fixture_dir);
	make_folder();
	strcpy(model_dir, fixture_dir);
	learn(which);
	commit_everywhere(which, FAULTY_MALLOC_ONCE, true);
	commit_everywhere(which, FAULTY_MALLOC_FROM, false);
	empty_place();
	remove_folder();
	go(output_dir, "");
	remove_folder();
}
END_TEST

int main(void)
{
	return malloc_main("malloc_commits", a_commit_is_whole_or_not_at_all, (int)STFS_ARRAY_SIZE(commit_cases));
}
