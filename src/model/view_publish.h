/* SPDX-License-Identifier: Apache-2.0 */
/* What a commit does to its view; private to the model layer. */
#pragma once

#include "changes.h"
#include "edit_private.h"

/* Stops edits: later ones answer -EBUSY; waits for those under way. Returns 0, -EROFS, -EBUSY when stopped already. */
int stfs_view_freeze(struct stfs_view *view) STFS_MUST_CHECK;

/* Lets edits go on, unless they were stopped. */
void stfs_view_thaw(struct stfs_view *view);

/* Keeps a frozen view so for good: edits answer -EROFS. What is staged is for the next mount to put in order. */
void stfs_view_stop(struct stfs_view *view);

/* Makes scratch files stand alone: what they refer to in the model is about to go. Returns 0 or -errno. */
int stfs_view_detach_scratch(struct stfs_view *view) STFS_MUST_CHECK;

/*
 * Writes the records that make the scratch files of this view again, on top of its next model, and give the directories their
 * attributes, to a new journal. `changes` are those that are committed.
 */
int stfs_view_dump_scratch(struct stfs_view *view, const struct stfs_changes *changes, struct stfs_journal *journal)
	STFS_MUST_CHECK;

/*
 * Shows `model` (owned by the view from here) in the place of the old one: what `changes` planned is now a part of it.
 * Cannot fail once it has begun; memory is taken first. Returns 0 or -ENOMEM (nothing changed, `model` stays the
 * caller's). When there is no memory to give names that were spelt with dots their place, edits are stopped
 * (stfs_view_stop). Names and shapes in `changes` may point into the old model: after this they may only be freed.
 */
int stfs_view_publish(struct stfs_view *view, struct stfs_model *model, const struct stfs_changes *changes);
