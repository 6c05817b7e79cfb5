/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model opened for editing, by a mount or by a command: found, locked, put in order after a crash, opened, and shown with
 * what is staged for it. One writer a model; whoever cannot be that gets a view for reading, and the reason.
 */
#pragma once

#include "model.h"
#include "os.h"
#include "stage.h"
#include "view_edit.h"

/* All strings are borrowed during the call. */
struct stfs_workspace_options {
	struct stfs_model_options model;
	struct stfs_view_options view;
	const char *stage;  /* directory of what is staged, NULL: beside the model */
	const char *holder; /* what others are told of us: "safetensorsfs commit" */
	/* Whether whoever edits `source` is there to stay; else he is about to end, and is waited for a little. NULL: yes */
	bool (*stays)(const char *source);
	bool read_only;       /* no lock is taken, and what is staged is not looked at */
	bool any_layout;      /* what is staged in the other layout is shown in that one */
	bool create;          /* a source that is not there is a model without tensors, whose first commit makes it */
	struct stfs_log *log; /* borrowed by the view, may be NULL */
	const struct stfs_os *os;
};

enum stfs_workspace_state {
	STFS_WORKSPACE_WRITABLE,
	STFS_WORKSPACE_READ_ONLY, /* as was asked for */
	STFS_WORKSPACE_UNFIT,     /* opened with lax or partial: what is there cannot be told from what is broken */
	STFS_WORKSPACE_HELD,      /* another process edits it */
	STFS_WORKSPACE_STALE,     /* what is staged was made for another version of the model */
	STFS_WORKSPACE_LAYOUT,    /* what is staged was made in a tree of the other layout */
	STFS_WORKSPACE_DAMAGED, /* what is staged, or what a commit left when it was cut short, cannot be made sense of */
	STFS_WORKSPACE_UNUSABLE, /* the place of the staging area cannot be used */
};

/* Embedded, released with stfs_workspace_fini. */
struct stfs_workspace {
	struct stfs_view *view;
	enum stfs_workspace_state state;
	struct stfs_diag why;     /* a sentence, for all states but the first two */
	struct stfs_stage *stage; /* when stale or damaged: what is staged, locked, apart from the view; else NULL */
	char *made; /* a directory that was made for a new model, and goes if it is still empty in the end; or NULL */
};

/*
 * Opens `source` for editing. The view is writable in the first state only; nothing that is staged is lost in any. Returns 0,
 * or an error as stfs_model_open and stfs_view_new when the model cannot be shown at all (told in `report`).
 */
int stfs_workspace_open(const char *source, const struct stfs_workspace_options *options, struct stfs_report *report,
			struct stfs_workspace *ret);

/* Frees the view and lets go of the lock. */
void stfs_workspace_fini(struct stfs_workspace *workspace);
#define _cleanup_workspace_ _cleanup_(stfs_workspace_fini)

/* Changes what others are told of us, once it is known. Does nothing for a view for reading. Returns 0 or -ENOMEM. */
int stfs_view_set_holder(struct stfs_view *view, const char *holder) STFS_MUST_CHECK;
