/* SPDX-License-Identifier: Apache-2.0 */
/* What a commit looks at before and while it writes: is the model what was opened, is there room. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "commit_private.h"
#include "io.h"
#include "open_regular.h"
#include "quote.h"
#include "retry.h"

#define PROBE_BYTES 4096

int stfs_commit_fail(struct stfs_committing *c, int error, const char *what)
{
	stfs_violation(c->report, "%s: %s", what, strerror(-error));
	return error;
}

/* Opens a file of the model by its name again. Returns the descriptor or -errno; says nothing. */
static int open_again(const struct stfs_committing *c, const char *name, struct stat *ret_st)
{
	struct stfs_report silent = { 0 };

	return stfs_open_regular(c->model->dir_fd, name, &silent, ret_st);
}

static int check_name(struct stfs_committing *c, const char *name, const struct stfs_snapshot *file)
{
	const struct stfs_identity *identity = stfs_snapshot_identity(file);
	struct stat st;
	_cleanup_close_ int fd = open_again(c, name, &st);

	if (fd >= 0 && st.st_dev == identity->dev && st.st_ino == identity->ino)
		return 0;
	if (fd >= 0)
		stfs_violation(c->report, "%s: another file has taken its place since it was opened",
			       stfs_snapshot_name(file));
	else
		stfs_violation(c->report, "%s: it is not there any more: %s", stfs_snapshot_name(file), strerror(-fd));
	return -ESTALE;
}

/* The index is compared by its text: it is small, and nothing of it is kept open. */
static int check_index(struct stfs_committing *c)
{
	const struct stfs_model *model = c->model;
	size_t len = strlen(model->index->text);
	_cleanup_free_ char *text = malloc(len + 1);
	struct stat st;
	_cleanup_close_ int fd = open_again(c, model->index_name, &st);

	if (!text)
		return -ENOMEM;
	if (fd >= 0 && (uint64_t)st.st_size == len && stfs_pread_full(fd, text, len, 0) == 0 &&
	    memcmp(text, model->index->text, len) == 0)
		return 0;
	stfs_violation(c->report, "the index %s is not what it was when it was read",
		       stfs_quote(stfs_slice_of(model->index_name)).text);
	return -ESTALE;
}

int stfs_commit_check_sources(struct stfs_committing *c, bool names)
{
	const struct stfs_model *model = c->model;
	int error = 0;

	for (uint32_t i = 0; i < model->n_files; i++) {
		struct stfs_diag diag = { 0 };
		int r = stfs_snapshot_check(model->files[i], &diag, NULL);

		if (r < 0)
			stfs_violation(c->report, "%s", diag.text);
		else if (names)
			r = check_name(c, model->file_names[i], model->files[i]);
		if (r < 0)
			error = r;
	}
	if (error == 0 && names && model->index)
		error = check_index(c);
	return error;
}

int stfs_commit_check_space(struct stfs_committing *c, int dir_fd)
{
	struct statvfs fs;
	uint64_t blocks, free_bytes;

	/* A filesystem that tells of no blocks at all cannot tell. */
	if (c->clones || fstatvfs(dir_fd, &fs) < 0 || fs.f_blocks == 0)
		return 0;
	blocks = geteuid() == 0 ? fs.f_bfree : fs.f_bavail;
	if (__builtin_mul_overflow(blocks, (uint64_t)fs.f_frsize, &free_bytes) || c->plan->bytes <= free_bytes)
		return 0;
	stfs_violation(c->report, "no space: %" PRIu64 " bytes are to be written, %" PRIu64 " are free in the folder",
		       c->plan->bytes, free_bytes);
	return -ENOSPC;
}

bool stfs_commit_can_clone(const struct stfs_committing *c, int dir_fd)
{
	const struct stfs_os *os = c->os;
	_cleanup_close_ int fd = -1;

	if (c->model->n_files == 0 || stfs_snapshot_identity(c->model->files[0])->size < PROBE_BYTES)
		return false;
	fd = STFS_RETRY(os->openat(os->user, dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
	return fd >= 0 &&
	       STFS_RETRY(os->clone_range(os->user, fd, 0, stfs_snapshot_fd(c->model->files[0]), 0, PROBE_BYTES)) == 0;
}
