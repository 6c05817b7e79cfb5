/* SPDX-License-Identifier: Apache-2.0 */
/* What a crash during a commit left: finished when it was decided, else undone. */
#include <errno.h>

#include "commit.h"
#include "commit_steps.h"
#include "record.h"

/* What the next journal says. */
struct found {
	struct stfs_commit_steps steps;
	bool decided;
};

static void found_fini(struct found *found)
{
	stfs_commit_steps_fini(&found->steps);
}

static int take_record(void *user, const struct stfs_record *record)
{
	struct found *found = user;

	if (record->type != STFS_RECORD_TEMPS && record->type != STFS_RECORD_COMMIT)
		return 0;
	stfs_commit_steps_fini(&found->steps);
	found->decided = record->type == STFS_RECORD_COMMIT;
	return stfs_commit_steps_decode(&found->steps, record->payload);
}

static int fail(struct stfs_report *report, int error, const char *what)
{
	stfs_violation(report, "a commit was cut short, and %s: %s", what, strerror(-error));
	return error;
}

/* Everything as it was before the commit. */
static int undo(struct stfs_stage *stage, int dir_fd, const struct stfs_commit_steps *steps, struct stfs_report *report)
{
	int r = stfs_commit_steps_unlink_temps(steps, stfs_stage_os(stage), dir_fd);

	/* Else a power cut could bring them back, when nothing tells of them any more. */
	if (r == 0)
		r = stfs_commit_steps_sync(steps, stfs_stage_os(stage), dir_fd);
	if (r < 0)
		return fail(report, r, "its temporary files cannot be removed");
	/* An area that was made for the commit has nothing in it. */
	r = steps->made_stage ? stfs_stage_clear(stage) : stfs_stage_drop_next(stage);
	if (r == 0 && !steps->made_stage)
		r = stfs_stage_sync_dir(stage);
	return r < 0 ? fail(report, r, "the staging area cannot be put in order") : 0;
}

static int finish(struct stfs_stage *stage, int dir_fd, const struct stfs_commit_steps *steps,
		  struct stfs_report *report)
{
	const struct stfs_os *os = stfs_stage_os(stage);
	uint32_t n;
	int r = stfs_commit_steps_rename(steps, os, dir_fd, &n);

	if (r < 0)
		return fail(report, r, "its files cannot take their names");
	r = stfs_commit_steps_remove(steps, os, dir_fd);
	if (r < 0)
		return fail(report, r, "a file without tensors cannot be removed");
	r = stfs_commit_steps_sync(steps, os, dir_fd);
	if (r < 0)
		return fail(report, r, "the folder cannot be synced");
	r = steps->keep_journal ? stfs_stage_swap_journal(stage) : stfs_stage_clear(stage);
	return r < 0 ? fail(report, r, "the staging area cannot be put in order") : 0;
}

static int end_commit(struct stfs_stage *stage, int dir_fd, const struct found *found, struct stfs_report *report)
{
	struct stfs_commit_progress progress;

	if (!stfs_commit_steps_stay(&found->steps, dir_fd)) {
		stfs_violation(report, "%s/journal.next speaks of files in a folder that is a link: it is not followed",
			       stfs_stage_path(stage));
		return -EBADMSG;
	}
	if (!found->decided)
		return undo(stage, dir_fd, &found->steps, report);
	stfs_commit_steps_look(&found->steps, dir_fd, &progress);
	if (progress.lost == 0)
		return finish(stage, dir_fd, &found->steps, report);
	/* Taken back already, but a power cut brought the word back. */
	if (progress.done == 0)
		return undo(stage, dir_fd, &found->steps, report);
	stfs_violation(
		report,
		"a commit was cut short, and cannot be finished: %u of its %u files are in place, %u are gone, in %s/journal.next",
		progress.done, found->steps.n, progress.lost, stfs_stage_path(stage));
	return -EBADMSG;
}

int stfs_commit_recover(struct stfs_stage *stage, int dir_fd, struct stfs_report *report)
{
	_cleanup_(stfs_journal_closep) struct stfs_journal *next = NULL;
	_cleanup_(found_fini) struct found found = { 0 };
	struct stfs_diag diag = { 0 };
	int r = stfs_stage_open_next(stage, &next);

	/* An area without a journal is what is left of one that was being cleared. */
	if (r == -ENOENT && !stfs_stage_exists(stage))
		(void)stfs_stage_clear(stage);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return fail(report, r, "its journal cannot be opened");
	r = stfs_journal_replay(next, take_record, &found, &diag);
	if (r < 0) {
		stfs_violation(report, "a commit was cut short, and its journal %s/journal.next cannot be used: %s",
			       stfs_stage_path(stage), diag.text[0] ? diag.text : strerror(-r));
		return r;
	}
	return end_commit(stage, dir_fd, &found, report);
}
