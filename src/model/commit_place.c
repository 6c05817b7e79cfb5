/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A commit in the place of the model. Order: the names of the files to be made are written down in the staging area, so that
 * they are found after a crash; the files are built, synced and read back; the next journal says what the new model is and
 * how to get there, and is synced: from here the commit is decided, and is finished by whoever comes next. Files take their
 * names, the index last; files without tensors go; the folder is synced; the view shows the new model; the staging area is
 * cleared, or goes on with the scratch files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>

#include "acl.h"
#include "commit_private.h"
#include "edit_private.h"
#include "quote.h"
#include "retry.h"
#include "shard_name.h"
#include "view_publish.h"
#include "view_replay.h"

static int list_steps(struct stfs_committing *c)
{
	const struct stfs_plan *plan = c->plan;
	int r = 0;

	c->steps.keep_journal = c->changes->n_scratch > 0;
	for (uint32_t i = 0; r == 0 && i < plan->n_files; i++) {
		if (plan->files[i].changed)
			r = stfs_commit_steps_add(&c->steps, plan->files[i].name, NULL,
						  plan->files[i].old_file == UINT32_MAX);
	}
	if (r == 0 && plan->index_name.len)
		r = stfs_commit_steps_add(&c->steps, plan->index_name, NULL, !c->model->index_name);
	for (uint32_t i = 0; r == 0 && i < plan->n_removed; i++)
		r = stfs_commit_steps_add_removed(&c->steps, stfs_slice_of(c->model->file_names[plan->removed[i]]));
	if (r < 0 || stfs_commit_steps_stay(&c->steps, c->model->dir_fd))
		return r;
	/* After a crash nobody would follow it to finish. */
	stfs_violation(c->report, "a file of the model is in a folder that is a link: commit to another place");
	return -EINVAL;
}

static int append_steps(struct stfs_committing *c, struct stfs_journal *next, enum stfs_record_type type)
{
	_cleanup_buf_ struct stfs_buf payload = { 0 };
	int r = stfs_commit_steps_encode(&c->steps, &payload);

	return r < 0 ? r : stfs_journal_append(next, type, stfs_buf_slice(&payload));
}

/* Makes the staging area when there is none: also a commit of nothing but a new order needs a place for its intent. */
static int make_stage(struct stfs_committing *c)
{
	int r = 0;

	pthread_rwlock_wrlock(&c->view->tree_lock);
	if (!stfs_stage_exists(c->view->stage)) {
		r = stfs_edit_make_stage(c->view);
		c->steps.made_stage = r == 0;
	}
	pthread_rwlock_unlock(&c->view->tree_lock);
	return r;
}

/* Writes down which files are about to be made, durably. */
static int write_intent(struct stfs_committing *c, struct stfs_journal **ret_next)
{
	int r = make_stage(c);

	if (r == 0)
		r = stfs_stage_next_journal(c->view->stage, ret_next);
	if (r == 0)
		r = append_steps(c, *ret_next, STFS_RECORD_TEMPS);
	if (r == 0)
		r = stfs_journal_sync(*ret_next);
	if (r == 0)
		r = stfs_stage_sync_dir(c->view->stage);
	return r < 0 ? stfs_commit_fail(c, r, "the staging area cannot be written") : 0;
}

/* The look of an open file. A new file has no access control list, so that nobody may get what one denies him. */
static int take_look(int fd, struct stfs_commit_look *ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = (struct stfs_commit_look){ true, stfs_acl_narrow(fd, st.st_mode), st.st_uid, st.st_gid };
	return 0;
}

/* A file of the model looks like the one it replaces, a new one like the first. */
static int look_of_file(const struct stfs_committing *c, uint32_t old_file, struct stfs_commit_look *ret)
{
	*ret = (struct stfs_commit_look){ .mode = 0666 };
	return c->model->n_files == 0 ?
		       0 :
		       take_look(stfs_snapshot_fd(c->model->files[old_file == UINT32_MAX ? 0 : old_file]), ret);
}

static int look_of_index(const struct stfs_committing *c, struct stfs_commit_look *ret)
{
	_cleanup_close_ int fd = -1;

	if (!c->model->index_name)
		return look_of_file(c, 0, ret);
	fd = openat(c->model->dir_fd, c->model->index_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : take_look(fd, ret);
}

/* Whether the name is a link to the file, as in a Hugging Face cache, also where a copy made a text of it. */
static bool is_link(const struct stfs_committing *c, uint32_t file)
{
	const struct stfs_identity *identity = stfs_snapshot_identity(c->model->files[file]);
	struct stat st;

	return fstatat(c->model->dir_fd, c->model->file_names[file], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (st.st_dev != identity->dev || st.st_ino != identity->ino);
}

static int build_all(struct stfs_committing *c)
{
	const struct stfs_plan *plan = c->plan;
	int dir_fd = c->model->dir_fd, r = 0;
	struct stfs_commit_look look;
	uint32_t step = 0;

	/* Only what an earlier commit left can be there: the lock is ours. A read-only folder is found here, too. */
	r = stfs_commit_steps_unlink_temps(&c->steps, c->os, dir_fd);
	if (r < 0)
		return stfs_commit_fail(c, r, "the folder cannot be written to");
	for (uint32_t i = 0; r == 0 && i < plan->n_files; i++) {
		if (!plan->files[i].changed)
			continue;
		if (plan->files[i].old_file != UINT32_MAX)
			c->result.link_replaced |= is_link(c, plan->files[i].old_file);
		r = look_of_file(c, plan->files[i].old_file, &look);
		if (r == 0)
			r = stfs_commit_build_file(c, dir_fd, &c->steps.steps[step++], &plan->files[i], &look);
	}
	if (r == 0 && plan->index_name.len) {
		r = look_of_index(c, &look);
		if (r == 0)
			r = stfs_commit_build_index(c, dir_fd, &c->steps.steps[step], &look);
	}
	return r;
}

/* A file of the new model: what it is called, and which step makes it. */
struct new_file {
	char *name; /* borrowed */
	const struct stfs_plan_file *plan;
	const struct stfs_commit_step *step; /* NULL: it stays as it is */
};

static int compare_new_files(const void *a, const void *b)
{
	return stfs_shard_name_compare(((const struct new_file *)a)->name, ((const struct new_file *)b)->name);
}

/* The files of the new model in the order in which it will have them, which is that of their names. */
static struct new_file *list_new_files(const struct stfs_committing *c)
{
	const struct stfs_plan *plan = c->plan;
	struct new_file *files = calloc(plan->n_files + 1u, sizeof(*files));
	uint32_t step = 0;

	for (uint32_t i = 0; files && i < plan->n_files; i++) {
		const struct stfs_plan_file *file = &plan->files[i];

		files[i] = (struct new_file){ .plan = file };
		if (file->changed)
			files[i].step = &c->steps.steps[step++];
		files[i].name = file->changed ? files[i].step->target : c->model->file_names[file->old_file];
	}
	if (files && plan->n_files)
		qsort(files, plan->n_files, sizeof(*files), compare_new_files);
	return files;
}

static int describe_new_file(const struct stfs_committing *c, const struct new_file *file, struct stfs_buf *payload)
{
	_cleanup_buf_ struct stfs_buf shown = { 0 };
	struct stfs_slice header;
	int r;

	if (!file->step)
		return stfs_replay_describe_snapshot(payload, c->model->files[file->plan->old_file]);
	header = (struct stfs_slice){ file->plan->header.data + 8, file->plan->header.len - 8 };
	r = stfs_append_printable(&shown, stfs_slice_of(file->name));
	return r < 0 ? r :
		       stfs_replay_describe_file(payload, stfs_buf_slice(&shown), file->step->size, file->step->mtime,
						 header);
}

/* Writes the record that tells the new model from others, before it is there. */
static int append_new_model(struct stfs_committing *c, struct stfs_journal *next)
{
	_cleanup_free_ struct new_file *files = list_new_files(c);
	_cleanup_buf_ struct stfs_buf payload = { 0 };
	int r = files ? stfs_payload_u64(&payload, c->view->options.layout) : -ENOMEM;

	if (r == 0)
		r = stfs_replay_describe_begin(&payload, c->plan->n_files);
	for (uint32_t i = 0; r == 0 && i < c->plan->n_files; i++)
		r = describe_new_file(c, &files[i], &payload);
	return r < 0 ? r : stfs_journal_append(next, STFS_RECORD_MODEL, stfs_buf_slice(&payload));
}

/* From the end of this on the commit is carried through, by us or by whoever comes after a crash. */
static int decide(struct stfs_committing *c, struct stfs_journal *next)
{
	/* The temporary files must be found again before anything relies on them. */
	int r = stfs_commit_steps_sync(&c->steps, c->os, c->model->dir_fd);

	if (r < 0)
		return stfs_commit_fail(c, r, "the folder cannot be synced");
	r = append_new_model(c, next);
	if (r == 0 && c->steps.keep_journal)
		r = stfs_view_dump_scratch(c->view, c->changes, next);
	if (r == 0) {
		c->decided = true;
		r = append_steps(c, next, STFS_RECORD_COMMIT);
	}
	if (r == 0)
		r = stfs_journal_sync(next);
	return r < 0 ? stfs_commit_fail(c, r, "the staging area cannot be written") : 0;
}

/* Gives the new files their names. */
static int take_names(struct stfs_committing *c)
{
	uint32_t n;
	int r;

	/* Locked before it has its name, so that nobody else can be first. */
	if (!c->model->sharded && c->built)
		(void)flock(stfs_snapshot_fd(c->built), LOCK_EX | LOCK_NB);
	r = stfs_commit_steps_rename(&c->steps, c->os, c->model->dir_fd, &n);
	if (r < 0) {
		stfs_violation(c->report, "%s cannot take its name: %s",
			       stfs_quote(stfs_slice_of(c->steps.steps[n].target)).text, strerror(-r));
		c->begun = n > 0;
	}
	return r;
}

static int clear_stage(struct stfs_committing *c)
{
	int r;

	/* Whoever syncs holds the lock for reading, and the journal with it. */
	pthread_rwlock_wrlock(&c->view->tree_lock);
	r = stfs_stage_clear(c->view->stage);
	pthread_rwlock_unlock(&c->view->tree_lock);
	return r;
}

static void stop(struct stfs_committing *c)
{
	stfs_view_stop(c->view);
	stfs_violation(c->report, "edits are stopped; the next mount or command puts the staging area in order");
}

/* Everything as it was. What is decided must be taken back before the temporary files go. */
static void give_up(struct stfs_committing *c)
{
	struct stfs_stage *stage = c->view->stage;

	if (c->begun || (stfs_stage_drop_next(stage) < 0 && c->decided)) {
		stop(c);
		return;
	}
	(void)stfs_commit_steps_unlink_temps(&c->steps, c->os, c->model->dir_fd);
	/* What came back after a power cut would take edits with it that are made from here on. */
	if (c->decided && stfs_stage_sync_dir(stage) < 0)
		stop(c);
	else if (c->steps.made_stage)
		(void)clear_stage(c);
}

/* Opens the new model. Its warnings were told when the old one was opened, or are of the user's making. */
static void emit_violation(void *user, enum stfs_severity severity, const char *file, const char *sentence)
{
	struct stfs_report *report = user;

	if (severity == STFS_VIOLATION)
		stfs_violation(report, "%s: %s", file, sentence);
}

static int reopen(struct stfs_committing *c, struct stfs_model **ret)
{
	struct stfs_report report = { .emit = emit_violation, .user = c->report };
	_cleanup_free_ struct new_file *files = list_new_files(c);
	_cleanup_free_ char **names = calloc(c->plan->n_files + 1u, sizeof(*names));
	_cleanup_free_ char *index = NULL;

	if (!files || !names)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->plan->n_files; i++)
		names[i] = files[i].name;
	if (!c->plan->index_name.len)
		return stfs_model_reopen(c->model, c->model->index_name, names, c->plan->n_files, &report, ret);
	index = strndup(c->plan->index_name.p, c->plan->index_name.len);
	return index ? stfs_model_reopen(c->model, index, names, c->plan->n_files, &report, ret) : -ENOMEM;
}

/* Makes the view show the new model, and locks that. */
static int show(struct stfs_committing *c)
{
	_cleanup_(stfs_model_freep) struct stfs_model *model = NULL;
	int r = reopen(c, &model);

	if (r == 0 && !model->sharded && c->built)
		r = stfs_stage_relock(c->view->stage, stfs_snapshot_fd(c->built));
	if (r == 0)
		r = stfs_view_publish(c->view, model, c->changes);
	if (r < 0)
		return stfs_commit_fail(c, r, "the new model is in place, but cannot be shown");
	c->model = stfs_steal(model); /* the view's from here */
	c->report->file = c->model->name;
	return 0;
}

/* What was staged is now the model's. */
static int end_staging(struct stfs_committing *c)
{
	struct stfs_stage *stage = c->view->stage;
	struct stfs_journal *journal = stfs_stage_journal(stage);
	int r;

	if (!c->steps.keep_journal) {
		r = clear_stage(c);
		/* Without a journal the rest is litter, and goes when the area is used again. */
		return r < 0 && stfs_stage_exists(stage) ? r : 0;
	}
	pthread_rwlock_wrlock(&c->view->tree_lock);
	r = stfs_stage_swap_journal(stage);
	pthread_rwlock_unlock(&c->view->tree_lock);
	/* Swapped but not synced: after a power cut the same journal is found by its other name. */
	return r < 0 && stfs_stage_journal(stage) == journal ? r : 0;
}

/* The new model is in place: whatever fails now, it stays. */
static int conclude(struct stfs_committing *c)
{
	int left = stfs_commit_steps_remove(&c->steps, c->os, c->model->dir_fd), r;

	if (left < 0)
		stfs_commit_fail(c, left, "the new model is in place, but a file without tensors cannot be removed");
	c->result.not_durable = stfs_commit_steps_sync(&c->steps, c->os, c->model->dir_fd) < 0;
	r = show(c);
	if (r == 0 && atomic_load(&c->view->stopped))
		stfs_warn(c->report,
			  "edits are stopped, since memory is short; the next mount or command shows all in its place");
	if (r == 0)
		r = left;
	/* As long as a power cut can bring the old model back, what was staged for it is kept. */
	if (r == 0 && !c->result.not_durable) {
		r = end_staging(c);
		if (r < 0)
			stfs_commit_fail(c, r, "the new model is in place, but the staging area cannot be cleared");
	}
	if (r < 0)
		stop(c);
	else if (c->result.not_durable)
		stfs_view_stop(c->view);
	return r;
}

int stfs_commit_in_place(struct stfs_committing *c)
{
	_cleanup_(stfs_journal_closep) struct stfs_journal *next = NULL;
	int r = stfs_view_detach_scratch(c->view);

	if (r < 0)
		return stfs_commit_fail(c, r, "scratch files cannot be kept");
	r = list_steps(c);
	if (r == 0)
		r = write_intent(c, &next);
	if (r == 0)
		r = build_all(c);
	if (r == 0)
		r = stfs_commit_check_sources(c, true);
	if (r == 0)
		r = decide(c, next);
	if (r == 0)
		r = take_names(c);
	if (r < 0) {
		give_up(c);
		return r;
	}
	return conclude(c);
}
