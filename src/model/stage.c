/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "cleanup.h"
#include "hash.h"
#include "quote.h"
#include "retry.h"
#include "stage_private.h"

/* Whether a name in the directory is one of those that are only ever made by us. */
static bool is_our_name(const char *name)
{
	uint64_t number;

	return strcmp(name, STFS_STAGE_JOURNAL) == 0 || strcmp(name, STFS_STAGE_NEXT) == 0 ||
	       strcmp(name, STFS_STAGE_HOLDER) == 0 || stfs_stage_parse_bytes_name(name, &number);
}

int stfs_stage_open_dir(const struct stfs_stage *stage, struct stfs_diag *diag)
{
	const struct stfs_os *os = stage->os;
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	_cleanup_close_ int fd = STFS_RETRY(os->openat(os->user, stage->parent_fd, stage->name, flags, 0));
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return stfs_fail(diag, -ENOTDIR, "the staging area %s is not a directory", stage->path);
	if (fd < 0 || STFS_RETRY(os->fstat(os->user, fd, &st)) < 0) {
		int error = errno;

		return stfs_fail(diag, -error, "the staging area %s cannot be opened: %s", stage->path,
				 strerror(error));
	}
	if (st.st_uid != geteuid())
		return stfs_fail(diag, -EPERM, "the staging area %s belongs to another user", stage->path);
	if (st.st_mode & 077)
		return stfs_fail(diag, -EPERM, "the staging area %s is open to other users (mode %04o, should be 0700)",
				 stage->path, (unsigned)st.st_mode & 07777);
	return stfs_steal_fd(&fd);
}

struct emptiness {
	const struct stfs_stage *stage;
	struct stfs_diag *diag;
};

static int refuse_foreign_name(void *user, const char *name)
{
	const struct emptiness *check = user;

	if (is_our_name(name))
		return 0;
	return stfs_fail(check->diag, -ENOTEMPTY,
			 "the staging area %s is neither empty nor was used as one: it holds %s", check->stage->path,
			 stfs_quote(stfs_slice_of(name)).text);
}

/* Opens the journal, if there is one, in a directory that may be used. */
static int look_inside(const struct stfs_stage *stage, int dir_fd, struct stfs_diag *diag, struct stfs_journal **ret)
{
	struct emptiness check = { stage, diag };
	int r = stfs_journal_open(stage->os, dir_fd, STFS_STAGE_JOURNAL, false, ret);

	if (r == -ENOENT)
		return stage->shared_dir ? stfs_stage_for_each_name(stage, dir_fd, refuse_foreign_name, &check) : 0;
	if (r == -EBADMSG)
		return stfs_fail(diag, r, "%s/" STFS_STAGE_JOURNAL " is not a journal of staged edits", stage->path);
	if (r < 0)
		return stfs_fail(diag, r, "%s/" STFS_STAGE_JOURNAL " cannot be opened: %s", stage->path, strerror(-r));
	return 0;
}

/* Puts another descriptor, or -1, in the place of the directory's, which is closed. */
static void set_dir(struct stfs_stage *stage, int dir_fd)
{
	pthread_mutex_lock(&stage->dir_lock);
	stfs_closep(&stage->dir_fd);
	stage->dir_fd = dir_fd;
	pthread_mutex_unlock(&stage->dir_lock);
}

int stfs_stage_look(struct stfs_stage *stage, struct stfs_diag *diag)
{
	_cleanup_(stfs_journal_closep) struct stfs_journal *journal = NULL;
	_cleanup_close_ int dir_fd = stfs_stage_open_dir(stage, diag);
	int r = dir_fd;

	if (dir_fd >= 0)
		r = look_inside(stage, dir_fd, diag, &journal);
	if (r < 0 && r != -ENOENT)
		return r;
	stfs_journal_close(stage->journal);
	stage->journal = stfs_steal(journal);
	set_dir(stage, dir_fd < 0 ? -1 : stfs_steal_fd(&dir_fd));
	return 0;
}

/* Opens the folder that `path` lies in and keeps its last component. */
static int split_path(struct stfs_stage *stage, int at, const char *path)
{
	const struct stfs_os *os = stage->os;
	_cleanup_free_ char *folder = strdup(path);
	char *slash;
	size_t len;

	if (!folder)
		return -ENOMEM;
	/* With a slash behind it a link would be followed. */
	for (len = strlen(folder); len > 1 && folder[len - 1] == '/'; len--)
		folder[len - 1] = '\0';
	slash = strrchr(folder, '/');
	stage->name = strdup(slash && slash[1] ? slash + 1 : folder);
	if (!stage->name)
		return -ENOMEM;
	if (slash)
		slash[slash == folder] = '\0'; /* the root keeps its slash */
	stage->parent_fd =
		STFS_RETRY(os->openat(os->user, at, slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
	/* A folder that may be passed but not listed serves too, until its entries are to be made durable. */
	if (stage->parent_fd < 0 && errno == EACCES)
		stage->parent_fd =
			STFS_RETRY(os->openat(os->user, at, slash ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
	return stage->parent_fd < 0 ? -errno : 0;
}

static int show_path(struct stfs_stage *stage, const char *path)
{
	_cleanup_buf_ struct stfs_buf shown = { 0 };
	int r = stfs_append_printable(&shown, stfs_slice_of(path));

	if (r == 0)
		stage->path = stfs_steal(shown.data);
	return r;
}

int stfs_stage_new(const struct stfs_stage_options *options, struct stfs_diag *diag, struct stfs_stage **ret)
{
	_cleanup_(stfs_stage_freep) struct stfs_stage *stage = calloc(1, sizeof(*stage));
	int r;

	if (!stage)
		return -ENOMEM;
	pthread_mutex_init(&stage->dir_lock, NULL); /* cannot fail for a plain one */
	stage->os = options->os;
	stage->shared_dir = options->shared_dir;
	stage->parent_fd = stage->dir_fd = stage->lock_fd = -1;
	/*
	 * Numbers start anywhere, so that none is given twice: after a power cut, an old journal that speaks of a
	 * removed file must not find another one under its number.
	 */
	stage->next_number = stfs_hash_key_random().k0 >> 2;
	stage->holder = strdup(options->holder);
	if (!stage->holder)
		return -ENOMEM;
	r = show_path(stage, options->name);
	if (r < 0)
		return r;
	r = split_path(stage, options->parent_fd, options->name);
	if (r < 0)
		return stfs_fail(diag, r, "the folder of the staging area %s cannot be opened: %s", stage->path,
				 strerror(-r));
	r = stfs_stage_look(stage, diag);
	if (r < 0)
		return r;
	*ret = stfs_steal(stage);
	return 0;
}

void stfs_stage_free(struct stfs_stage *stage)
{
	if (!stage)
		return;
	stfs_stage_unnote_holder(stage);
	stfs_journal_close(stage->journal);
	stfs_closep(&stage->dir_fd);
	stfs_closep(&stage->parent_fd);
	pthread_mutex_destroy(&stage->dir_lock);
	stfs_stage_unlock(stage);
	free(stage->path);
	free(stage->name);
	free(stage->holder);
	free(stage);
}

bool stfs_stage_exists(const struct stfs_stage *stage)
{
	return stage->journal;
}

struct stfs_journal *stfs_stage_journal(struct stfs_stage *stage)
{
	return stage->journal;
}

const char *stfs_stage_path(const struct stfs_stage *stage)
{
	return stage->path;
}

int stfs_stage_space(const struct stfs_stage *stage, struct statvfs *ret)
{
	return fstatvfs(stage->dir_fd >= 0 ? stage->dir_fd : stage->parent_fd, ret) < 0 ? -errno : 0;
}

const struct stfs_os *stfs_stage_os(const struct stfs_stage *stage)
{
	return stage->os;
}

/* Makes the directory, or finds it, and opens it. */
static int make_dir(struct stfs_stage *stage, bool *ret_made)
{
	const struct stfs_os *os = stage->os;
	bool made = STFS_RETRY(os->mkdirat(os->user, stage->parent_fd, stage->name, 0700)) == 0;
	int r;

	if (!made && errno != EEXIST)
		return -errno;
	*ret_made = made;
	r = stfs_stage_look(stage, NULL);
	if (r == 0 && stage->dir_fd < 0)
		r = -ENOENT;
	/* Whatever the umask says. */
	if (r == 0 && made && STFS_RETRY(os->fchmod(os->user, stage->dir_fd, 0700)) < 0)
		r = -errno;
	return r;
}

static bool keep_none(void *user, uint64_t number)
{
	(void)user;
	(void)number;
	return false;
}

/* Removes what there is beside a journal. */
static int remove_rest(struct stfs_stage *stage)
{
	int r = stfs_stage_remove_name(stage, STFS_STAGE_NEXT);

	if (r == 0)
		r = stfs_stage_sweep(stage, keep_none, NULL);
	if (r == 0)
		r = stfs_stage_remove_name(stage, STFS_STAGE_HOLDER);
	if (r == 0)
		stage->noted = false;
	return r;
}

/* Closes the directory and removes it, unless somebody has put something there. */
static int remove_dir(struct stfs_stage *stage)
{
	const struct stfs_os *os = stage->os;

	set_dir(stage, -1);
	stage->named = false;
	if (STFS_RETRY(os->unlinkat(os->user, stage->parent_fd, stage->name, AT_REMOVEDIR)) == 0 || errno == ENOENT ||
	    errno == ENOTEMPTY || errno == EEXIST)
		return 0;
	return -errno;
}

int stfs_stage_create(struct stfs_stage *stage)
{
	bool made = false;
	int r;

	if (stage->journal)
		return 0;
	r = make_dir(stage, &made);
	if (r == 0 && stage->journal) {
		/* Of somebody who does not heed the lock, or left by a making that could not be undone: not to be written to. */
		stfs_journal_close(stage->journal);
		stage->journal = NULL;
		return -EEXIST;
	}
	/* What a clearing that was cut short left must not be taken for part of the new journal. */
	if (r == 0 && !made)
		r = remove_rest(stage);
	stage->named = false;
	if (r == 0)
		r = stfs_journal_open(stage->os, stage->dir_fd, STFS_STAGE_JOURNAL, true, &stage->journal);
	if (r == 0)
		stfs_stage_note_holder(stage);
	else if (made)
		remove_dir(stage);
	return r;
}

int stfs_stage_sync_dir(struct stfs_stage *stage)
{
	const struct stfs_os *os = stage->os;

	if (stage->dir_fd < 0)
		return 0;
	if (STFS_RETRY(os->fsync(os->user, stage->dir_fd)) < 0)
		return -errno;
	/* Names in a directory that is itself lost would not help. */
	if (!stage->named && STFS_RETRY(os->fsync(os->user, stage->parent_fd)) < 0)
		return -errno;
	stage->named = true;
	return 0;
}

int stfs_stage_sync(struct stfs_stage *stage)
{
	int r = stage->named ? 0 : stfs_stage_sync_dir(stage);

	return r < 0 || !stage->journal ? r : stfs_journal_sync(stage->journal);
}

int stfs_stage_next_journal(struct stfs_stage *stage, struct stfs_journal **ret)
{
	int r;

	if (stage->dir_fd < 0)
		return -ENOENT;
	r = stfs_stage_drop_next(stage);
	return r < 0 ? r : stfs_journal_open(stage->os, stage->dir_fd, STFS_STAGE_NEXT, true, ret);
}

int stfs_stage_open_next(struct stfs_stage *stage, struct stfs_journal **ret)
{
	if (stage->dir_fd < 0)
		return -ENOENT;
	return stfs_journal_open(stage->os, stage->dir_fd, STFS_STAGE_NEXT, false, ret);
}

static int apply_nothing(void *user, const struct stfs_record *record)
{
	(void)user;
	(void)record;
	return 0;
}

int stfs_stage_swap_journal(struct stfs_stage *stage)
{
	const struct stfs_os *os = stage->os;
	_cleanup_(stfs_journal_closep) struct stfs_journal *next = NULL;
	int r = stfs_stage_open_next(stage, &next);

	/* A damaged journal must not take the place of a good one, nor one that is not on disk yet. */
	if (r == 0)
		r = stfs_journal_replay(next, apply_nothing, NULL, NULL);
	if (r == 0)
		r = stfs_journal_sync(next);
	if (r < 0)
		return r;
	if (STFS_RETRY(os->renameat2(os->user, stage->dir_fd, STFS_STAGE_NEXT, stage->dir_fd, STFS_STAGE_JOURNAL, 0)) <
	    0)
		return -errno;
	stfs_journal_close(stage->journal);
	stage->journal = stfs_steal(next);
	return stfs_stage_sync_dir(stage);
}

int stfs_stage_drop_next(struct stfs_stage *stage)
{
	return stfs_stage_remove_name(stage, STFS_STAGE_NEXT);
}

int stfs_stage_clear(struct stfs_stage *stage)
{
	int r;

	if (stage->dir_fd < 0)
		return 0;
	/* The journal first, durably: it must never speak of files that are gone. */
	r = stfs_stage_remove_name(stage, STFS_STAGE_JOURNAL);
	if (r < 0)
		return r;
	stfs_journal_close(stage->journal);
	stage->journal = NULL;
	r = stfs_stage_sync_dir(stage);
	if (r == 0)
		r = remove_rest(stage);
	if (r == 0 && !stage->shared_dir)
		r = remove_dir(stage);
	return r;
}
