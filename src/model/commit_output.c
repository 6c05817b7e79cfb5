/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A commit to another place: a file under a temporary name, or a directory of that kind, that takes its name when all of it is
 * on disk. Nothing is ever replaced but an empty directory. Temporary names are made up anew each time: there is no lock that
 * would tell a leftover from the work of another process.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "commit_private.h"
#include "hash.h"
#include "io.h"
#include "quote.h"
#include "retry.h"

#define BASE_SHOWN 200 /* bytes of the name that are repeated in the temporary one */

void stfs_commit_output_fini(struct stfs_commit_output *output)
{
	stfs_closep(&output->dir_fd);
	free(output->base);
}

int stfs_commit_open_output(struct stfs_committing *c, struct stfs_commit_output *ret)
{
	_cleanup_free_ char *path = strdup(c->options->output);
	const struct stfs_os *os = c->os;
	size_t len = path ? strlen(path) : 0;
	char *slash;

	if (!path)
		return -ENOMEM;
	for (; len > 1 && path[len - 1] == '/'; ret->slash = true)
		path[--len] = '\0';
	slash = strrchr(path, '/');
	ret->base = strdup(slash ? slash + 1 : path);
	if (!ret->base)
		return -ENOMEM;
	if (!*ret->base || strcmp(ret->base, ".") == 0 || strcmp(ret->base, "..") == 0) {
		stfs_violation(c->report, "%s names nothing that could be made",
			       stfs_quote(stfs_slice_of(c->options->output)).text);
		return -EINVAL;
	}
	if (slash)
		slash[slash == path] = '\0'; /* the root keeps its slash */
	ret->dir_fd =
		STFS_RETRY(os->openat(os->user, AT_FDCWD, slash ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
	return ret->dir_fd < 0 ? stfs_commit_fail(c, -errno, "the folder of the output cannot be opened") : 0;
}

/* A name that nobody else has; owned by the caller, NULL without memory. */
static char *make_temp_name(const char *base)
{
	char *name = NULL;

	if (asprintf(&name, ".%.*s.%016" PRIx64 ".stfs-commit", BASE_SHOWN, base, stfs_hash_key_random().k0) < 0)
		return NULL;
	return name;
}

static int say_exists(struct stfs_committing *c)
{
	stfs_violation(c->report, "%s is there already: an output never replaces anything",
		       stfs_quote(stfs_slice_of(c->options->output)).text);
	return -EEXIST;
}

/* Permissions of the model's files, cut by the umask as for any copy. */
static struct stfs_commit_look look_of_output(const struct stfs_committing *c)
{
	mode_t mode = c->model->n_files ? stfs_snapshot_identity(c->model->files[0])->shown : 0666;

	return (struct stfs_commit_look){ .mode = mode & 0666 };
}

static int output_file(struct stfs_committing *c, const struct stfs_commit_output *output)
{
	struct stfs_commit_look look = look_of_output(c);
	_cleanup_free_ char *temp = make_temp_name(output->base);
	struct stfs_commit_step *step;
	struct stfs_slice temp_slice;
	struct stat st;
	int r;

	if (!temp)
		return -ENOMEM;
	if (fstatat(output->dir_fd, output->base, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return say_exists(c);
	temp_slice = stfs_slice_of(temp);
	r = stfs_commit_steps_add(&c->steps, stfs_slice_of(output->base), &temp_slice, true);
	if (r < 0)
		return r;
	step = &c->steps.steps[0];
	r = stfs_commit_build_file(c, output->dir_fd, step, &c->plan->files[0], &look);
	if (r == 0)
		r = stfs_commit_check_sources(c, false);
	if (r == 0) {
		r = stfs_commit_rename_fresh(c->os, output->dir_fd, step->temp, step->target);
		if (r == -EEXIST)
			say_exists(c);
		else if (r < 0)
			stfs_commit_fail(c, r, "the output cannot take its name");
	}
	if (r < 0) {
		(void)stfs_commit_steps_unlink_temps(&c->steps, c->os, output->dir_fd);
		return r;
	}
	c->result.not_durable = stfs_commit_steps_sync(&c->steps, c->os, output->dir_fd) < 0;
	return 0;
}

/* What is at the name of the output. */
enum there {
	THERE_NOTHING,
	THERE_EMPTY, /* a directory with nothing in it */
	THERE_DIR,
	THERE_OTHER,
};

static enum there look_there(const struct stfs_commit_output *output)
{
	struct stat st;
	bool empty;

	if (fstatat(output->dir_fd, output->base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return THERE_NOTHING;
	if (stfs_dir_is_empty(output->dir_fd, output->base, O_NOFOLLOW, &empty) < 0)
		return THERE_OTHER;
	return empty ? THERE_EMPTY : THERE_DIR;
}

/* Makes the folders that a name goes through; with `remove` takes them away again. */
static int make_folders(struct stfs_committing *c, int dir_fd, const char *name, bool remove)
{
	_cleanup_free_ char *path = strdup(name);
	const struct stfs_os *os = c->os;

	if (!path)
		return -ENOMEM;
	if (remove) {
		for (char *slash; (slash = strrchr(path, '/'));) {
			*slash = '\0';
			(void)STFS_RETRY(os->unlinkat(os->user, dir_fd, path, AT_REMOVEDIR));
		}
		return 0;
	}
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (STFS_RETRY(os->mkdirat(os->user, dir_fd, path, 0777)) < 0 && errno != EEXIST)
			return stfs_commit_fail(c, -errno, "a folder cannot be made");
		*slash = '/';
	}
	return 0;
}

/* Makes all files in the new directory, under their own names: nobody knows the directory yet. */
static int fill_dir(struct stfs_committing *c, int dir_fd)
{
	struct stfs_commit_look look = look_of_output(c);
	const struct stfs_plan *plan = c->plan;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < plan->n_files; i++) {
		r = stfs_commit_steps_add(&c->steps, plan->files[i].name, &plan->files[i].name, true);
		if (r == 0)
			r = make_folders(c, dir_fd, c->steps.steps[i].target, false);
		if (r == 0)
			r = stfs_commit_build_file(c, dir_fd, &c->steps.steps[i], &plan->files[i], &look);
	}
	if (r == 0 && plan->index_name.len) {
		r = stfs_commit_steps_add(&c->steps, plan->index_name, &plan->index_name, true);
		if (r == 0)
			r = stfs_commit_build_index(c, dir_fd, &c->steps.steps[plan->n_files], &look);
	}
	if (r == 0)
		r = stfs_commit_check_sources(c, false);
	if (r < 0)
		return r;
	r = stfs_commit_steps_sync(&c->steps, c->os, dir_fd);
	return r < 0 ? stfs_commit_fail(c, r, "the new directory cannot be synced") : 0;
}

/* Gives the directory its name; an empty one that stands there is replaced in the same step. */
static int name_dir(struct stfs_committing *c, const struct stfs_commit_output *output, const char *temp, bool over)
{
	const struct stfs_os *os = c->os;
	int r;

	if (!over)
		r = stfs_commit_rename_fresh(os, output->dir_fd, temp, output->base);
	else
		r = STFS_RETRY(os->renameat2(os->user, output->dir_fd, temp, output->dir_fd, output->base, 0)) < 0 ?
			    -errno :
			    0;
	if (r == -EEXIST || r == -ENOTEMPTY || r == -ENOTDIR)
		return say_exists(c);
	return r < 0 ? stfs_commit_fail(c, r, "the output cannot take its name") : 0;
}

static void remove_dir(struct stfs_committing *c, int parent_fd, int dir_fd, const char *temp)
{
	const struct stfs_os *os = c->os;

	if (dir_fd >= 0) {
		(void)stfs_commit_steps_unlink_temps(&c->steps, os, dir_fd);
		for (uint32_t i = 0; i < c->steps.n; i++)
			(void)make_folders(c, dir_fd, c->steps.steps[i].target, true);
	}
	(void)STFS_RETRY(os->unlinkat(os->user, parent_fd, temp, AT_REMOVEDIR));
}

static int output_dir(struct stfs_committing *c, const struct stfs_commit_output *output, bool over)
{
	_cleanup_free_ char *temp = make_temp_name(output->base);
	const struct stfs_os *os = c->os;
	_cleanup_close_ int dir_fd = -1;
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, r;

	if (!temp)
		return -ENOMEM;
	if (STFS_RETRY(os->mkdirat(os->user, output->dir_fd, temp, 0777)) < 0)
		return stfs_commit_fail(c, -errno, "the output cannot be made");
	dir_fd = STFS_RETRY(os->openat(os->user, output->dir_fd, temp, flags, 0));
	r = dir_fd < 0 ? stfs_commit_fail(c, -errno, "the output cannot be made") : fill_dir(c, dir_fd);
	if (r == 0)
		r = name_dir(c, output, temp, over);
	if (r < 0) {
		remove_dir(c, output->dir_fd, dir_fd, temp);
		return r;
	}
	if (STFS_RETRY(os->fsync(os->user, output->dir_fd)) < 0)
		c->result.not_durable = true;
	return 0;
}

int stfs_commit_write_output(struct stfs_committing *c, const struct stfs_commit_output *output)
{
	enum there there = look_there(output);
	bool is_dir = output->slash || c->plan->n_files > 1 || c->plan->index_name.len || there == THERE_EMPTY;

	if (!is_dir)
		return output_file(c, output);
	return there == THERE_DIR || there == THERE_OTHER ? say_exists(c) : output_dir(c, output, there == THERE_EMPTY);
}
