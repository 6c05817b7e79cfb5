/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation failing in turn, alone and with all that follow it, in one edit at a time. An edit that ran out of memory
 * says so and happened as a whole or not at all, in memory as in the journal; made again it does what it should; nothing leaks.
 */
#include "edit_acts.h"
#include "malloc_fixture.h"

#define NPY_HEAD 128

/* An edit, and those it needs before it. */
struct edit_case {
	const char *name;
	void (*before)(struct stfs_view *view); /* NULL: none */
	int (*edit)(struct stfs_view *view);
	bool steps; /* several edits, of which some may happen; or one that answers before it has taken effect */
	enum stfs_layout layout;
};

static int mkdir_new(struct stfs_view *view)
{
	return act_mkdir(view, "n");
}

static void with_dir(struct stfs_view *view)
{
	edit_mkdir(view, "n");
}

static int mkdir_dotted(struct stfs_view *view)
{
	return act_mkdir(view, "a/x.y");
}

static int create_dtype(struct stfs_view *view)
{
	return act_create(view, "n/dtype", false);
}

static int create_in_tensor(struct stfs_view *view)
{
	return act_create(view, "a/w/notes", false);
}

static int create_key(struct stfs_view *view)
{
	return act_create(view, "__metadata__/author", false);
}

static void with_small_tensor(struct stfs_view *view)
{
	edit_mkdir(view, "n");
	edit_put(view, "n/dtype", "U8");
	edit_put(view, "n/shape", "12000");
	edit_put(view, "n/data", "");
}

static int write_text(struct stfs_view *view)
{
	return act_write(view, "n/data", false, "hello", 5, 2);
}

static int write_large(struct stfs_view *view)
{
	return act_write(view, "n/data", false, letters(12000, 'A'), 12000, 0);
}

static int write_over_run(struct stfs_view *view)
{
	return act_write(view, "big/data", false, "hello", 5, 100);
}

static void with_many_ranges(struct stfs_view *view)
{
	for (unsigned i = 0; i < 4; i++)
		edit_write(view, "big/data", false, "x", 1, i * 1000);
}

/* One range more than there is room for. */
static int write_another_range(struct stfs_view *view)
{
	return act_write(view, "big/data", false, "hello", 5, 9000);
}

static int write_shape(struct stfs_view *view)
{
	return act_write(view, "a/w/shape", false, "3 2\n", 4, 0);
}

static int put_shape(struct stfs_view *view)
{
	return act_put(view, "a/w/shape", "3 2\n");
}

/* Without memory the old text, which opening took away, cannot be put back: then the user has to. */
static int put_nonsense(struct stfs_view *view)
{
	static bool lost;
	int r = act_put(view, "a/w/dtype", "nonsense\n");

	if (r == -EINVAL)
		r = lost ? act_put(view, "a/w/dtype", "F32\n") : 0;
	lost = r < 0;
	return r;
}

static int put_key(struct stfs_view *view)
{
	return act_put(view, "__metadata__/note", "another");
}

static int put_long_key(struct stfs_view *view)
{
	return act_put(view, "__metadata__/note", letters(5000, 'k'));
}

static int empty_data(struct stfs_view *view)
{
	return act_create(view, "big/data", true);
}

static int cut_run(struct stfs_view *view)
{
	return act_resize(view, "big/data", 7000);
}

static int cut_to_text(struct stfs_view *view)
{
	return act_resize(view, "big/data", 7);
}

static int grow_new(struct stfs_view *view)
{
	return act_resize(view, "n/data", 12000);
}

static int change_mode(struct stfs_view *view)
{
	return act_chmod(view, "a/w/data", 0600);
}

static int change_mode_of_dir(struct stfs_view *view)
{
	return act_chmod(view, "a/w", 0700);
}

static int change_mode_of_npy(struct stfs_view *view)
{
	return act_chmod(view, "a/w/data.npy", 0600);
}

static int change_mode_of_key(struct stfs_view *view)
{
	return act_chmod(view, "__metadata__/note", 0600);
}

static int refer(struct stfs_view *view)
{
	return act_copy(view, "big/data", "n/data");
}

static int unlink_slot(struct stfs_view *view)
{
	return act_unlink(view, "a/w/data");
}

static int unlink_key(struct stfs_view *view)
{
	return act_unlink(view, "__metadata__/note");
}

static int rmdir_new(struct stfs_view *view)
{
	return act_rmdir(view, "n");
}

static int rename_module(struct stfs_view *view)
{
	return act_mv(view, "c", letters(200, 'm'));
}

static int rename_into_tensor(struct stfs_view *view)
{
	return act_mv(view, "c/d", "a/w/d");
}

static int rename_slot(struct stfs_view *view)
{
	return act_mv(view, "a/w/shape", "a/b/other");
}

static int rename_key(struct stfs_view *view)
{
	return act_mv(view, "__metadata__/note", "__metadata__/remark");
}

/* What editors do: the new text under another name, then over the old one. */
static void with_new_shape(struct stfs_view *view)
{
	edit_put(view, "a/w/shape.tmp", "3 2\n");
}

static int replace_shape(struct stfs_view *view)
{
	return act_mv(view, "a/w/shape.tmp", "a/w/shape");
}

static void with_key_in_scratch(struct stfs_view *view)
{
	edit_put(view, "__metadata__/.note.swp", "another");
}

static int replace_key(struct stfs_view *view)
{
	return act_mv(view, "__metadata__/.note.swp", "__metadata__/note");
}

/* Files that fill the first block of names, so that the next one needs memory. */
static void with_many_files(struct stfs_view *view)
{
	char name[40];

	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "a/w/notes-of-a-long-name-%u", i);
		edit_put(view, name, "x");
	}
}

static int rename_among_many(struct stfs_view *view)
{
	for (char c = 'A'; c < 'L'; c++) {
		const char *from = c == 'A' ? "a/w/notes-of-a-long-name-1" : letters(250, (char)(c - 1));
		char old[256], to[300];
		int r;

		snprintf(old, sizeof(old), "%s%s", c == 'A' ? "" : "a/w/", from);
		snprintf(to, sizeof(to), "a/w/%s", letters(250, c));
		r = act_mv(view, old, to);
		if (r < 0 && r != -ENOENT) /* moved on already */
			return r;
	}
	return 0;
}

/* A whole NumPy file of 2 x 4 bytes. */
static const char *npy_bytes(void)
{
	static char npy[NPY_HEAD + 8];
	int len;

	memset(npy, ' ', NPY_HEAD);
	memcpy(npy, "\x93NUMPY\x01\x00v\x00", 10);
	len = snprintf(npy + 10, 100, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 4), }");
	npy[10 + len] = ' ';
	npy[NPY_HEAD - 1] = '\n';
	memcpy(npy + NPY_HEAD, "NUMPYNPY", 8);
	return npy;
}

static int write_npy(struct stfs_view *view)
{
	return act_write(view, "a/b/data.npy", true, npy_bytes(), NPY_HEAD + 8, 0);
}

static int write_through_npy(struct stfs_view *view)
{
	return act_write(view, "a/w/data.npy", false, "abcd", 4, NPY_HEAD + 4);
}

static void with_npy(struct stfs_view *view)
{
	edit_write(view, "a/b/temporary", true, npy_bytes(), NPY_HEAD + 8, 0);
}

/* What has not taken effect does so when it is closed the next time. */
static int rename_npy(struct stfs_view *view)
{
	int r = act_mv(view, "a/b/temporary", "a/b/data.npy");

	return r == -ENOENT ? act_create(view, "a/b/data.npy", false) : r;
}

static int discard(struct stfs_view *view, const char *path)
{
	struct stfs_diag diag = { 0 };

	return stfs_view_discard(view, stfs_slice_of(path), &diag);
}

static void with_everything(struct stfs_view *view)
{
	edit_chmod(view, "a", 0700);
	edit_mv(view, "c/d/e", "c/moved");
	edit_put(view, "a/w/shape", "3 2\n");
	edit_put(view, "a/w/notes", "x");
	edit_rm_tensor(view, "a/b");
	edit_write(view, "big/data", false, "hello", 5, 10000);
	edit_put(view, "__metadata__/note", "another");
	edit_put(view, "__metadata__/author", "me");
	edit_rm(view, "__metadata__/format");
}

static int discard_all(struct stfs_view *view)
{
	return discard(view, "");
}

static int discard_slot(struct stfs_view *view)
{
	return discard(view, "a/w/shape");
}

static int discard_module(struct stfs_view *view)
{
	return discard(view, "a");
}

static int discard_moved(struct stfs_view *view)
{
	return discard(view, "c/d");
}

static int discard_keys(struct stfs_view *view)
{
	return discard(view, "__metadata__");
}

static int discard_key(struct stfs_view *view)
{
	return discard(view, "__metadata__/note");
}

static int sync_all(struct stfs_view *view)
{
	return stfs_view_sync(view);
}

static const struct edit_case edit_cases[] = {
	{ "mkdir", NULL, mkdir_new, false, STFS_NESTED },
	{ "mkdir in a flat view", NULL, mkdir_new, false, STFS_FLAT },
	{ "mkdir with a dot", NULL, mkdir_dotted, false, STFS_NESTED },
	{ "create", with_dir, create_dtype, false, STFS_NESTED },
	{ "create in a tensor", NULL, create_in_tensor, false, STFS_NESTED },
	{ "create a key", NULL, create_key, false, STFS_NESTED },
	{ "write a text", with_small_tensor, write_text, false, STFS_NESTED },
	{ "write much", with_small_tensor, write_large, false, STFS_NESTED },
	{ "write over the model's", NULL, write_over_run, false, STFS_NESTED },
	{ "write another range", with_many_ranges, write_another_range, false, STFS_NESTED },
	{ "write over a shape", NULL, write_shape, false, STFS_NESTED },
	{ "put a shape", NULL, put_shape, true, STFS_NESTED },
	{ "put nonsense", NULL, put_nonsense, true, STFS_NESTED },
	{ "put a key", NULL, put_key, true, STFS_NESTED },
	{ "put a long key", NULL, put_long_key, true, STFS_NESTED },
	{ "empty data", NULL, empty_data, false, STFS_NESTED },
	{ "cut data", NULL, cut_run, false, STFS_NESTED },
	{ "cut data to little", NULL, cut_to_text, false, STFS_NESTED },
	{ "grow", with_small_tensor, grow_new, false, STFS_NESTED },
	{ "chmod", NULL, change_mode, false, STFS_NESTED },
	{ "chmod a directory", NULL, change_mode_of_dir, false, STFS_NESTED },
	{ "chmod data.npy", NULL, change_mode_of_npy, false, STFS_NESTED },
	{ "chmod a key", NULL, change_mode_of_key, false, STFS_NESTED },
	{ "copy a tensor", with_small_tensor, refer, false, STFS_NESTED },
	{ "unlink", NULL, unlink_slot, false, STFS_NESTED },
	{ "unlink a key", NULL, unlink_key, false, STFS_NESTED },
	{ "rmdir", with_dir, rmdir_new, false, STFS_NESTED },
	{ "rename a module", NULL, rename_module, false, STFS_NESTED },
	{ "rename into a tensor", NULL, rename_into_tensor, false, STFS_NESTED },
	{ "rename a file of a tensor", NULL, rename_slot, false, STFS_NESTED },
	{ "rename a key", NULL, rename_key, false, STFS_NESTED },
	{ "replace a shape", with_new_shape, replace_shape, false, STFS_NESTED },
	{ "replace a key", with_key_in_scratch, replace_key, false, STFS_NESTED },
	{ "rename among many", with_many_files, rename_among_many, true, STFS_NESTED },
	{ "write data.npy", NULL, write_npy, true, STFS_NESTED },
	{ "write through data.npy", NULL, write_through_npy, false, STFS_NESTED },
	{ "rename to data.npy", with_npy, rename_npy, true, STFS_NESTED },
	{ "discard everything", with_everything, discard_all, false, STFS_NESTED },
	{ "discard a file", with_everything, discard_slot, false, STFS_NESTED },
	{ "discard a module", with_everything, discard_module, false, STFS_NESTED },
	{ "discard what moved", with_everything, discard_moved, false, STFS_NESTED },
	{ "discard keys", with_everything, discard_keys, false, STFS_NESTED },
	{ "discard a key", with_everything, discard_key, false, STFS_NESTED },
	{ "sync", with_everything, sync_all, false, STFS_NESTED },
};

static struct dump old_dump, new_dump, now;

static struct stfs_workspace prepare(const struct edit_case *which)
{
	struct stfs_workspace workspace;

	empty_folder();
	make_single();
	workspace = must_open(SINGLE, which->layout);
	if (which->before)
		which->before(workspace.view);
	return workspace;
}

static void take_dump(struct stfs_view *view, struct dump *dump)
{
	int r = dump_view(view, dump);

	expect(r == 0, "cannot be dumped: %s", strerror(-r));
}

/* What the edit begins and ends with. */
static void learn(const struct edit_case *which)
{
	struct stfs_workspace workspace = prepare(which);

	take_dump(workspace.view, &old_dump);
	ck_assert_int_eq(which->edit(workspace.view), 0);
	take_dump(workspace.view, &new_dump);
	stfs_workspace_fini(&workspace);
}

/* Two dumps that should be the same. */
static void expect_dump(const struct dump *is, const struct dump *wanted, const char *what, const char *when)
{
	if (!same_dump(is, wanted))
		dump_tell(wanted, is);
	expect(same_dump(is, wanted), "%s: %s it is not as it should be", what, when);
}

/* What the journal says is what was shown. */
static void expect_replayed(const struct edit_case *which, const char *what, const char *when)
{
	struct stfs_workspace workspace = must_open(SINGLE, which->layout);
	static struct dump replayed;

	take_dump(workspace.view, &replayed);
	expect_dump(&replayed, &now, what, when);
	stfs_workspace_fini(&workspace);
}

/* The edit with an allocation failing; then it happened, or it can be made again, in this view or in the next one. */
static bool run_failing(const struct edit_case *which, enum faulty_malloc_how how, unsigned at, bool reopen)
{
	struct stfs_workspace workspace = prepare(which);
	char what[100];
	bool fired;
	int r;

	snprintf(what, sizeof(what), "%s, %s %u", which->name, how_names[how], at);
	faulty_malloc_plant(how, at);
	r = which->edit(workspace.view);
	fired = faulty_malloc_lift();
	expect(r == 0 || (fired && r == -ENOMEM), "%s: %s", what, strerror(-r));
	take_dump(workspace.view, &now);
	if (!which->steps && !(r < 0 && same_dump(&now, &old_dump)))
		expect_dump(&now, &new_dump, what, strerror(-r));
	if (reopen) {
		stfs_workspace_fini(&workspace);
		expect_replayed(which, what, "opened again");
		workspace = must_open(SINGLE, which->layout);
	}
	if (!same_dump(&now, &new_dump)) {
		r = which->edit(workspace.view);
		expect(r == 0, "%s, made again: %s", what, strerror(-r));
		take_dump(workspace.view, &now);
		expect_dump(&now, &new_dump, what, "made again");
	}
	stfs_workspace_fini(&workspace);
	expect_replayed(which, what, "opened in the end");
	return fired;
}

static void run_everywhere(const struct edit_case *which, enum faulty_malloc_how how, bool reopen)
{
	size_t live = faulty_malloc_live();
	unsigned fds = faulty_open_fds(), at = 1;

	while (run_failing(which, how, at, reopen)) {
		expect(faulty_malloc_live() == live, "%s, %s %u: %zd pieces of memory are lost", which->name,
		       how_names[how], at, (ssize_t)(faulty_malloc_live() - live));
		expect(faulty_open_fds() == fds, "%s, %s %u: a descriptor is left open", which->name, how_names[how],
		       at);
		at = next_at(how, at);
	}
	ck_assert_uint_gt(at, 1);
}

START_TEST(an_edit_is_whole_or_not_at_all)
{
	const struct edit_case *which = &edit_cases[_i];

	make_folder();
	learn(which);
	run_everywhere(which, FAULTY_MALLOC_ONCE, false);
	run_everywhere(which, FAULTY_MALLOC_ONCE, true);
	run_everywhere(which, FAULTY_MALLOC_FROM, false);
	remove_folder();
}
END_TEST

int main(void)
{
	return malloc_main("malloc_edits", an_edit_is_whole_or_not_at_all, (int)STFS_ARRAY_SIZE(edit_cases));
}
