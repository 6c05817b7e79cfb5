/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order matters: the lock comes first, then what a crash left is put in order, then the model is opened. Between finding
 * and locking somebody else may have replaced the model: then the lock is one on a file that has lost its name, and all
 * begins again.
 */
#include "workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "commit.h"
#include "locate.h"
#include "open_regular.h"
#include "quote.h"
#include "stage_private.h"
#include "view_private.h"

#define TRIES_MAX 100 /* a model that is replaced more often while we look is not ours to edit */
#define PATIENCE_MS 3000
#define PATIENCE_STEP_MS 20

/* A workspace on its way. */
struct opening {
	const char *source;
	const struct stfs_workspace_options *options;
	struct stfs_report *report;
	struct stfs_location location; /* dir_fd is -1 until the source was found */
	enum stfs_layout layout;       /* of the view */
	bool is_new;                   /* it is not there yet, and is to be made */
	int lock_fd;                   /* what is locked: the file, or the folder of a sharded model or a new one */
	struct stfs_stage *stage;
	struct stfs_workspace *workspace;
};

static void opening_fini(struct opening *opening)
{
	stfs_location_fini(&opening->location);
	stfs_closep(&opening->lock_fd);
	stfs_stage_free(opening->stage);
}

void stfs_workspace_fini(struct stfs_workspace *workspace)
{
	stfs_view_free(workspace->view);
	stfs_stage_free(workspace->stage);
	if (workspace->made)
		(void)rmdir(workspace->made);
	free(workspace->made);
	*workspace = (struct stfs_workspace){ 0 };
}

int stfs_view_set_holder(struct stfs_view *view, const char *holder)
{
	return view->stage ? stfs_stage_set_holder(view->stage, holder) : 0;
}

/* Keeps the first violation as the reason why nothing can be edited. */
static void emit_why(void *user, enum stfs_severity severity, const char *file, const char *sentence)
{
	struct stfs_diag *why = user;

	(void)file;
	if (severity == STFS_VIOLATION && !*why->text)
		stfs_diag_set(why, "%s", sentence);
}

static bool is_folder(const struct stfs_location *location)
{
	return location->index || location->n_files != 1;
}

/* Opens what stands for the model: its file, or its folder. */
static int open_lock_fd(const struct stfs_location *location, bool is_new, struct stat *ret_st)
{
	struct stfs_report quiet = { 0 };
	_cleanup_close_ int fd = -1;

	if (!is_folder(location) && !is_new)
		return stfs_open_regular(location->dir_fd, location->files[0], &quiet, ret_st);
	fd = fcntl(location->dir_fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0 || fstat(fd, ret_st) < 0)
		return -errno;
	return stfs_steal_fd(&fd);
}

/* Remembers a directory that was made, by a name that holds wherever we go. */
static int note_made(struct opening *opening, bool made)
{
	if (!made)
		return 0;
	free(opening->workspace->made);
	opening->workspace->made = realpath(opening->source, NULL);
	return opening->workspace->made ? 0 : -errno;
}

/* Finds the model, or the place of one that is to be made; says nothing. */
static int locate(struct opening *opening, struct stfs_location *ret, bool *ret_new)
{
	struct stfs_report quiet = { 0 };
	bool made = false;
	int r = stfs_locate(opening->source, opening->options->model.index, false, &quiet, ret);

	*ret_new = false;
	if (r == 0 || !opening->options->create)
		return r;
	r = stfs_locate_new(opening->source, &quiet, ret, &made);
	if (r == 0)
		r = note_made(opening, made);
	*ret_new = r == 0;
	return r;
}

static int find(struct opening *opening)
{
	struct stat st;

	stfs_location_fini(&opening->location);
	stfs_closep(&opening->lock_fd);
	/* What there is to say about the source is said when it is opened. */
	if (locate(opening, &opening->location, &opening->is_new) < 0)
		return -ENOENT;
	opening->lock_fd = open_lock_fd(&opening->location, opening->is_new, &st);
	return opening->lock_fd < 0 ? -ENOENT : 0;
}

/* Whether the source still leads to what is locked. */
static bool is_found_again(struct opening *opening)
{
	_cleanup_(stfs_location_fini) struct stfs_location now = { .dir_fd = -1 };
	_cleanup_close_ int fd = -1;
	struct stat old, new;
	bool is_new;

	if (locate(opening, &now, &is_new) < 0 || is_new != opening->is_new)
		return false;
	fd = open_lock_fd(&now, is_new, &new);
	return fd >= 0 && fstat(opening->lock_fd, &old) == 0 && is_folder(&now) == is_folder(&opening->location) &&
	       old.st_dev == new.st_dev &&old.st_ino == new.st_ino;
}

/* Where the folder of the model is. */
static int folder_path(const struct stfs_location *location, char **ret)
{
	char link[64], *path;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", location->dir_fd);
	path = realpath(link, NULL);
	if (!path)
		return -errno;
	*ret = path;
	return 0;
}

/* Beside the file or the folder: one model has one place, however it was named. */
static int default_stage(const struct stfs_location *location, char **ret)
{
	_cleanup_free_ char *folder = NULL;
	char *base;
	int r = folder_path(location, &folder);

	if (r < 0)
		return r;
	base = strrchr(folder, '/');
	if (!is_folder(location))
		return asprintf(ret, "%s/.%s.stage", base[1] ? folder : "", location->files[0]) < 0 ? -ENOMEM : 0;
	*base = '\0';
	return asprintf(ret, "%s/.%s.stage", folder, base + 1) < 0 ? -ENOMEM : 0;
}

static int new_stage(struct opening *opening)
{
	const struct stfs_workspace_options *options = opening->options;
	_cleanup_free_ char *path = NULL;
	struct stfs_stage_options stage = {
		.parent_fd = AT_FDCWD,
		.name = options->stage,
		.shared_dir = options->stage != NULL,
		.holder = options->holder,
		.os = options->os,
	};
	int r;

	if (!stage.name) {
		r = default_stage(&opening->location, &path);
		if (r < 0)
			return stfs_fail(&opening->workspace->why, r, "the folder of the model cannot be told: %s",
					 strerror(-r));
		stage.name = path;
	}
	stfs_stage_free(stfs_steal(opening->stage));
	return stfs_stage_new(&stage, &opening->workspace->why, &opening->stage);
}

static int set_state(struct opening *opening, enum stfs_workspace_state state)
{
	opening->workspace->state = state;
	return 0;
}

/* A mount that is gone already may still be writing what was staged. */
static int take_lock(struct opening *opening)
{
	const struct stfs_workspace_options *options = opening->options;
	const struct timespec step = { .tv_nsec = PATIENCE_STEP_MS * 1000000L };
	struct stfs_diag *why = &opening->workspace->why;
	int r = stfs_stage_lock(opening->stage, opening->lock_fd, why);

	for (int ms = 0; r == -EBUSY && ms < PATIENCE_MS && options->stays && !options->stays(opening->source);
	     ms += PATIENCE_STEP_MS) {
		nanosleep(&step, NULL);
		*why = (struct stfs_diag){ 0 };
		r = stfs_stage_lock(opening->stage, opening->lock_fd, why);
	}
	return r;
}

/*
 * Takes the lock, and finishes or undoes a commit that was cut short. Returns 0 (the state tells whether we may edit), -EAGAIN
 * when the model is another one by now, -ENOENT when there is none, or -errno.
 */
static int lock(struct opening *opening)
{
	struct stfs_diag *why = &opening->workspace->why;
	struct stfs_report recovery = { .emit = emit_why, .user = why };
	int r = find(opening);

	if (r < 0)
		return r;
	*why = (struct stfs_diag){ 0 };
	r = new_stage(opening);
	if (r < 0)
		return r == -ENOMEM ?
			       r :
			       set_state(opening, r == -EBADMSG ? STFS_WORKSPACE_DAMAGED : STFS_WORKSPACE_UNUSABLE);
	r = take_lock(opening);
	if (r < 0)
		return r == -ENOMEM ? r :
				      set_state(opening, r == -EBUSY ? STFS_WORKSPACE_HELD : STFS_WORKSPACE_UNUSABLE);
	if (!is_found_again(opening))
		return -EAGAIN;
	set_state(opening, STFS_WORKSPACE_WRITABLE);
	r = stfs_commit_recover(opening->stage, opening->location.dir_fd, &recovery);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		set_state(opening, STFS_WORKSPACE_DAMAGED);
	/* What was finished has given the model's name to another file. */
	return is_found_again(opening) ? 0 : -EAGAIN;
}

static int new_view(struct opening *opening)
{
	const struct stfs_workspace_options *options = opening->options;
	struct stfs_view_options view = options->view;
	struct stfs_model *model;
	struct stfs_diag diag = { 0 };
	int r;

	if (opening->is_new)
		r = stfs_model_new_empty(opening->source, &options->model, &opening->location, &model);
	else
		r = stfs_model_open(opening->source, &options->model, opening->report, &model);
	if (r < 0)
		return r;
	view.layout = opening->layout;
	r = stfs_view_new(model, &view, options->log, &diag, &opening->workspace->view);
	if (r < 0 && *diag.text)
		stfs_violation(opening->report, "%s", diag.text);
	return r;
}

/* Whether the view shows what is locked. */
static bool is_locked_model(const struct opening *opening)
{
	const struct stfs_model *model = stfs_view_model(opening->workspace->view);
	struct stat locked, folder;

	if (fstat(opening->lock_fd, &locked) < 0)
		return false;
	if (!opening->is_new && model->sharded != is_folder(&opening->location))
		return false;
	if (!opening->is_new && !model->sharded) {
		const struct stfs_identity *identity = stfs_snapshot_identity(model->files[0]);

		return identity->dev == locked.st_dev && identity->ino == locked.st_ino;
	}
	return fstat(model->dir_fd, &folder) == 0 && folder.st_dev == locked.st_dev && folder.st_ino == locked.st_ino;
}

/* What is staged does not fit: the model is shown as it is, and the staging area is kept for whoever decides about it. */
static int show_without(struct opening *opening, int error)
{
	struct stfs_workspace *workspace = opening->workspace;
	struct stfs_diag why = workspace->why;
	int r;

	stfs_view_free(stfs_steal(workspace->view));
	r = new_view(opening);
	if (r < 0)
		return r;
	/* The view let go of the stage, and of the lock. */
	r = new_stage(opening);
	if (r == 0)
		r = stfs_stage_lock(opening->stage, opening->lock_fd, &why);
	if (r < 0)
		return r == -ENOMEM ? r : set_state(opening, STFS_WORKSPACE_HELD);
	workspace->why = why;
	workspace->stage = stfs_steal(opening->stage);
	if (error == -ESTALE)
		return set_state(opening, STFS_WORKSPACE_STALE);
	return set_state(opening, error == -EXDEV ? STFS_WORKSPACE_LAYOUT : STFS_WORKSPACE_DAMAGED);
}

static int attach(struct opening *opening)
{
	struct stfs_workspace *workspace = opening->workspace;
	int r = stfs_view_attach_stage(workspace->view, stfs_steal(opening->stage), &workspace->why);

	if (r == 0 || r == -ENOMEM)
		return r;
	if (r == -EXDEV && opening->options->any_layout) {
		opening->layout = opening->layout == STFS_FLAT ? STFS_NESTED : STFS_FLAT;
		return -EAGAIN;
	}
	if (!*workspace->why.text)
		stfs_diag_set(&workspace->why, "what is staged cannot be read: %s", strerror(-r));
	return show_without(opening, r);
}

/* Says why a new model cannot be made. */
static int say_why_not(const struct opening *opening)
{
	_cleanup_(stfs_location_fini) struct stfs_location location = { .dir_fd = -1 };
	_cleanup_buf_ struct stfs_buf shown = { 0 };
	const char *caller_file = opening->report->file;
	bool made = false;
	int r = stfs_append_printable(&shown, stfs_slice_of(opening->source));

	if (r < 0)
		return r;
	opening->report->file = shown.data;
	r = stfs_locate_new(opening->source, opening->report, &location, &made);
	opening->report->file = caller_file;
	if (made)
		(void)rmdir(opening->source);
	return r < 0 ? r : -EAGAIN;
}

/* One try. -EAGAIN: the model was replaced meanwhile, or needs another layout. */
static int try_open(struct opening *opening)
{
	struct stfs_workspace *workspace = opening->workspace;
	int r = lock(opening), found = r;

	if (r < 0 && r != -ENOENT)
		return r;
	if (found == -ENOENT && opening->options->create && access(opening->source, F_OK) < 0)
		return say_why_not(opening);
	r = new_view(opening);
	if (r < 0)
		return r;
	/* It was not there, and now it is. */
	if (found == -ENOENT)
		return -EAGAIN;
	if (workspace->state == STFS_WORKSPACE_DAMAGED)
		workspace->stage = stfs_steal(opening->stage);
	if (workspace->state != STFS_WORKSPACE_WRITABLE)
		return 0;
	return is_locked_model(opening) ? attach(opening) : -EAGAIN;
}

static int open_for_reading(struct opening *opening)
{
	bool asked = opening->options->read_only;

	if (!asked)
		stfs_diag_set(&opening->workspace->why, "a model opened with lax or partial cannot be edited");
	set_state(opening, asked ? STFS_WORKSPACE_READ_ONLY : STFS_WORKSPACE_UNFIT);
	return new_view(opening);
}

int stfs_workspace_open(const char *source, const struct stfs_workspace_options *options, struct stfs_report *report,
			struct stfs_workspace *ret)
{
	_cleanup_workspace_ struct stfs_workspace workspace = { 0 };
	_cleanup_(opening_fini) struct opening opening = {
		.source = source,
		.options = options,
		.report = report,
		.location = { .dir_fd = -1 },
		.lock_fd = -1,
		.layout = options->view.layout,
		.workspace = &workspace,
	};
	int r = -EAGAIN;

	if (options->read_only || options->model.lax || options->model.partial)
		r = open_for_reading(&opening);
	for (int i = 0; r == -EAGAIN && i < TRIES_MAX; i++) {
		stfs_stage_free(stfs_steal(opening.stage));
		stfs_workspace_fini(&workspace);
		r = try_open(&opening);
	}
	if (r == -EAGAIN)
		stfs_violation(report, "%s is being replaced all the time", stfs_quote(stfs_slice_of(source)).text);
	if (r < 0)
		return r == -EAGAIN ? -EBUSY : r;
	*ret = workspace;
	workspace = (struct stfs_workspace){ 0 };
	return 0;
}
