/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carrying a plan out: the model's files are built anew beside the old ones and take their names, all or none. A crash at any
 * point leaves the old model or the new one; what it left half done is finished or undone by stfs_commit_recover.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "copy.h"
#include "plan.h"
#include "view_edit.h"

struct stfs_commit_options {
	struct stfs_plan_options plan;
	/* build there instead, a file or (ending in '/', or for a sharded model) a directory; NULL: in place */
	const char *output;
	bool dry_run; /* plan and check, write nothing */
	/* Called now and then with bytes written and in all; may be NULL. Non-zero stops the commit with -ECANCELED. */
	int (*progress)(void *user, uint64_t done, uint64_t total);
	void *user;
};

/* What was done. */
struct stfs_commit_result {
	bool nothing;       /* nothing was staged: no file was touched */
	bool link_replaced; /* a symlink into a Hugging Face cache now is a file of its own; the blob was not touched */
	/*
	 * The new model is in place, but the folder could not be synced: a power cut may bring the old one back. What was staged
	 * for that is kept until the next opening, and nothing can be edited before.
	 */
	bool not_durable;
	uint32_t files; /* written */
	uint64_t bytes; /* of them */
	struct stfs_copy_stats stats;
	double seconds;
};

/*
 * Commits what is staged in `view`. While it runs the view can be read, and edits answer -EBUSY. Everything that stands in the
 * way is a violation in `report`, and then nothing is changed: not the model, not what is staged, and no file is left behind.
 * After success in place the view shows the new model with nothing staged but scratch files; inode numbers stay. When a commit
 * fails that was decided already, edits answer -EROFS from then on, and the next stfs_commit_recover finishes it.
 * Returns 0, -EINVAL (not committable), -ESTALE (the model changed underneath), -ENOSPC (also computed before writing),
 * -EEXIST (the output is there), -EBUSY (another commit runs), -EROFS, -ECANCELED, -errno.
 */
int stfs_view_commit(struct stfs_view *view, const struct stfs_commit_options *options, struct stfs_report *report,
		     struct stfs_commit_result *ret);

/*
 * Finishes or undoes what a crash during a commit left: called with the lock of `stage` held, before the model is opened.
 * `dir_fd` is the model's folder. The model's name may lead to another file afterwards: the lock must be moved to that
 * (stfs_stage_relock). Returns 0, -EBADMSG when what was left fits nowhere (nothing is changed), or -errno, with a violation in
 * `report`.
 */
int stfs_commit_recover(struct stfs_stage *stage, int dir_fd, struct stfs_report *report);
