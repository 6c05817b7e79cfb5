/* SPDX-License-Identifier: Apache-2.0 */
/* Replay of the journal, and the records that say which model it is about; private to the model layer. */
#pragma once

#include "journal.h"
#include "view_private.h"

/*
 * Append what tells one version of a model from another, which follows the layout in STFS_RECORD_MODEL: the number of files,
 * then each of them in the order of the model. `shown` is the escaped name, `header` the JSON.
 */
int stfs_replay_describe_begin(struct stfs_buf *payload, uint32_t n_files) STFS_MUST_CHECK;
int stfs_replay_describe_file(struct stfs_buf *payload, struct stfs_slice shown, uint64_t size, struct timespec mtime,
			      struct stfs_slice header) STFS_MUST_CHECK;
int stfs_replay_describe_snapshot(struct stfs_buf *payload, const struct stfs_snapshot *file) STFS_MUST_CHECK;

int stfs_replay_describe_model(const struct stfs_model *model, struct stfs_buf *payload) STFS_MUST_CHECK;

/* Writes the first record of a new journal. */
int stfs_replay_start_journal(const struct stfs_view *view, struct stfs_journal *journal) STFS_MUST_CHECK;

/*
 * Applies the journal of the view's stage to its fresh tree. Returns 0, -ESTALE when it is about another version of the model,
 * -EXDEV when it is about a tree of another layout, -EBADMSG when it does not fit, -errno; with a sentence.
 */
int stfs_replay_journal(struct stfs_view *view, struct stfs_diag *diag) STFS_MUST_CHECK;
