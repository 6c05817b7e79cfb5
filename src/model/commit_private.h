/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the commit share. Nobody else includes this. */
#pragma once

#include "commit.h"
#include "commit_steps.h"
#include "view_private.h"

/* A commit under way. */
struct stfs_committing {
	struct stfs_view *view;
	const struct stfs_model *model; /* of the view, as it was when the commit began */
	const struct stfs_commit_options *options;
	struct stfs_report *report;
	const struct stfs_os *os;
	struct stfs_commit_result result;

	struct stfs_changes *changes;
	struct stfs_plan *plan;
	struct stfs_commit_steps steps;
	struct stfs_snapshot *built; /* the last file of tensors that was built, one reference */
	bool clones;                 /* the folder can share blocks with the model */
	bool decided;                /* the next journal may say so */
	bool begun;                  /* a file of the model has been replaced */
	struct stfs_copy_stats run_stats,
		staged_stats; /* apart: only one of the two may be on the folder's filesystem */
	uint64_t done, told;  /* bytes written; the same when progress was last told */
};

/* Whose permissions and owner a new file gets. */
struct stfs_commit_look {
	bool give; /* change them after the making; else they are what the umask makes of `mode` */
	mode_t mode;
	uid_t uid;
	gid_t gid;
};

/*
 * Build a file of the plan, or the index, in `dir_fd` under its temporary name, synced and read back, and fill in its size and
 * time. Return 0 or -errno, with a sentence; the temporary file may be left.
 */
int stfs_commit_build_file(struct stfs_committing *c, int dir_fd, struct stfs_commit_step *step,
			   const struct stfs_plan_file *file, const struct stfs_commit_look *look) STFS_MUST_CHECK;
int stfs_commit_build_index(struct stfs_committing *c, int dir_fd, struct stfs_commit_step *step,
			    const struct stfs_commit_look *look) STFS_MUST_CHECK;

/*
 * Makes sure that the model's files are what was opened and, with `names`, that their names still lead to them. Returns 0 or
 * -ESTALE with a sentence.
 */
int stfs_commit_check_sources(struct stfs_committing *c, bool names) STFS_MUST_CHECK;

/* Makes sure that what is to be written fits into the filesystem of `dir_fd`. Returns 0 or -ENOSPC with a sentence. */
int stfs_commit_check_space(struct stfs_committing *c, int dir_fd) STFS_MUST_CHECK;

/* Whether files in `dir_fd` can share blocks with the model's. */
bool stfs_commit_can_clone(const struct stfs_committing *c, int dir_fd);

/* Where an output is made. Embedded, released with stfs_commit_output_fini. */
struct stfs_commit_output {
	int dir_fd; /* the folder it is in, -1: not open */
	char *base; /* its name there */
	bool slash; /* it was written with a slash behind it: a directory is meant */
};

void stfs_commit_output_fini(struct stfs_commit_output *output);

/* Opens the folder of options->output. Returns 0 or -errno with a sentence. */
int stfs_commit_open_output(struct stfs_committing *c, struct stfs_commit_output *ret) STFS_MUST_CHECK;

/* Carries the plan out there. Returns 0, -EEXIST when something is there, -errno, with a sentence. */
int stfs_commit_write_output(struct stfs_committing *c, const struct stfs_commit_output *output) STFS_MUST_CHECK;

/* Carries the plan out in the place of the model. Returns 0 or -errno, with a sentence. */
int stfs_commit_in_place(struct stfs_committing *c) STFS_MUST_CHECK;

/* Adds a violation that ends in the text of `error`, and returns it. */
int stfs_commit_fail(struct stfs_committing *c, int error, const char *what);
