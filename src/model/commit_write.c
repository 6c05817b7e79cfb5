/* SPDX-License-Identifier: Apache-2.0 */
/* Building one file of a commit. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>

#include "commit_private.h"
#include "io.h"
#include "quote.h"
#include "retry.h"

#define EXTENTS 16
#define TELL_BYTES ((uint64_t)16 * 1024 * 1024) /* between two calls of progress */
#define WRITE_MAX ((size_t)8 * 1024 * 1024)     /* at a time, of bytes in memory */

/* A file that is being built. */
struct building {
	struct stfs_committing *c;
	int dir_fd, fd;
	struct stfs_commit_step *step;
	char *shown; /* its final name, escaped */
};

static void building_fini(struct building *building)
{
	stfs_closep(&building->fd);
	free(building->shown);
}

static int fail(const struct building *building, int error, const char *what)
{
	stfs_violation(building->c->report, "%s: %s: %s", building->shown, what, strerror(-error));
	return error;
}

/* Counts bytes that were written; stops the commit when its caller wants that. */
static int count(void *user, uint64_t bytes)
{
	struct stfs_committing *c = user;
	const struct stfs_commit_options *options = c->options;

	c->done += bytes;
	if (!options->progress || (c->done - c->told < TELL_BYTES && c->done < c->plan->bytes))
		return 0;
	c->told = c->done;
	return options->progress(options->user, c->done, c->plan->bytes) ? -ECANCELED : 0;
}

static int begin(struct building *building, const struct stfs_commit_look *look)
{
	const struct stfs_os *os = building->c->os;
	int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	mode_t mode = look->give ? 0600 : look->mode;
	_cleanup_buf_ struct stfs_buf shown = { 0 };
	int r = stfs_append_printable(&shown, stfs_slice_of(building->step->target));

	if (r < 0)
		return r;
	building->shown = stfs_steal(shown.data);
	building->fd = STFS_RETRY(os->openat(os->user, building->dir_fd, building->step->temp, flags, mode));
	return building->fd < 0 ? fail(building, -errno, "cannot be made") : 0;
}

/* Takes the room the file needs, so that a full disk shows now; what is not written to it reads as zeros. */
static int reserve(struct building *building, uint64_t size)
{
	const struct stfs_os *os = building->c->os;

	if (size > INT64_MAX)
		return fail(building, -EFBIG, "cannot be made");
	/* Where blocks are shared, room of its own would be taken for nothing. */
	if (!building->c->clones) {
		if (STFS_RETRY(os->fallocate(os->user, building->fd, 0, 0, (off_t)size)) == 0)
			return 0;
		if (errno != EOPNOTSUPP && errno != ENOSYS)
			return fail(building, -errno, "no room can be taken for it");
	}
	return STFS_RETRY(os->ftruncate(os->user, building->fd, (off_t)size)) < 0 ?
		       fail(building, -errno, "cannot be made as large as it will be") :
		       0;
}

static int write_bytes(struct building *building, const char *data, size_t len, uint64_t offset)
{
	while (len) {
		size_t part = STFS_MIN(len, WRITE_MAX);
		int r = stfs_os_write_full(building->c->os, building->fd, data, part, offset, NULL);

		if (r == 0)
			r = count(building->c, part);
		if (r < 0)
			return r;
		data += part;
		len -= part;
		offset += part;
	}
	return 0;
}

/* Copies entries of the model that lie side by side in the old file and in the new one. *ret_n is how many. */
static int copy_entries(struct building *building, const struct stfs_plan_copy *copies, uint32_t n, uint32_t *ret_n)
{
	const struct stfs_model *model = building->c->model;
	struct stfs_snapshot *file = stfs_model_file(model, copies[0].entry);
	uint64_t begin = stfs_model_offset(model, copies[0].entry), size = copies[0].size;
	uint32_t i;

	for (i = 1; i < n && copies[i].entry != STFS_ENTRY_NONE; i++) {
		if (stfs_model_file(model, copies[i].entry) != file ||
		    stfs_model_offset(model, copies[i].entry) != begin + size ||
		    copies[i].offset != copies[0].offset + size)
			break;
		size += copies[i].size;
	}
	*ret_n = i;
	return stfs_copy_range(building->c->os, stfs_snapshot_fd(file), begin, building->fd, copies[0].offset, size,
			       &building->c->run_stats, count, building->c);
}

static int write_extent(struct building *building, const struct stfs_extent *extent, uint64_t offset)
{
	struct stfs_committing *c = building->c;

	if (extent->hole)
		return count(c, extent->len); /* the room that was taken is zeros */
	if (extent->fd < 0)
		return write_bytes(building, extent->mem, extent->len, offset);
	return stfs_copy_range(c->os, extent->fd, extent->offset, building->fd, offset, extent->len, &c->staged_stats,
			       count, c);
}

/* Writes the bytes of an opened content. */
static int write_extents(struct building *building, const struct stfs_plan_copy *copy)
{
	_cleanup_lease_ struct stfs_lease lease = { 0 };
	struct stfs_extent extents[EXTENTS];
	uint64_t at = 0;

	while (at < copy->size) {
		int n = stfs_content_map(copy->data, at, copy->size - at, &lease, extents, EXTENTS, NULL, NULL);
		int r = n == 0 ? -EIO : n;

		for (int i = 0; i < n && r >= 0; i++) {
			r = write_extent(building, &extents[i], copy->offset + at);
			at += extents[i].len;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int write_content(struct building *building, const struct stfs_plan_copy *copy)
{
	int r = stfs_content_open(copy->data);

	if (r < 0)
		return r;
	r = write_extents(building, copy);
	stfs_content_close(copy->data);
	return r;
}

static int write_copies(struct building *building, const struct stfs_plan_file *file)
{
	uint32_t n;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < file->n_copies; i += n) {
		n = 1;
		if (file->copies[i].entry != STFS_ENTRY_NONE)
			r = copy_entries(building, &file->copies[i], file->n_copies - i, &n);
		else
			r = write_content(building, &file->copies[i]);
	}
	return r;
}

/* True for an error that says that this process may not give files away. */
static bool means_may_not(int error)
{
	return error == EPERM || error == EINVAL || error == EOPNOTSUPP || error == ENOSYS;
}

/* Gives the file owner and permissions. Where the owner cannot be given, nobody new may read the file for it. */
static int give_look(struct building *building, const struct stfs_commit_look *look)
{
	const struct stfs_os *os = building->c->os;
	mode_t mode = look->mode & 07777;
	int r = STFS_RETRY(os->fchown(os->user, building->fd, look->uid, look->gid));

	if (r < 0 && means_may_not(errno)) {
		r = STFS_RETRY(os->fchown(os->user, building->fd, (uid_t)-1, look->gid));
		mode &= 0777;
		if (r < 0 && means_may_not(errno)) {
			mode &= ~(mode_t)070 | (mode & 07) << 3;
			r = 0;
		}
	}
	if (r < 0)
		return fail(building, -errno, "cannot be given the owner of the old file");
	if (STFS_RETRY(os->fchmod(os->user, building->fd, mode)) < 0)
		return fail(building, -errno, "cannot be given the permissions of the old file");
	return 0;
}

/* Owner and permissions, and all of it on disk; then size and time are what they stay. */
static int end(struct building *building, const struct stfs_commit_look *look, struct stat *ret_st)
{
	const struct stfs_os *os = building->c->os;
	struct stfs_commit_step *step = building->step;
	int r = look->give ? give_look(building, look) : 0;

	if (r < 0)
		return r;
	if (STFS_RETRY(os->fsync(os->user, building->fd)) < 0)
		return fail(building, -errno, "cannot be written to disk");
	if (STFS_RETRY(os->fstat(os->user, building->fd, ret_st)) < 0)
		return fail(building, -errno, "cannot be looked at");
	step->size = (uint64_t)ret_st->st_size;
	step->mtime = ret_st->st_mtim;
	building->c->result.files++;
	building->c->result.bytes += step->size;
	return 0;
}

/* Passes on what is wrong, and lets pass what is only odd: the names are the user's. */
static void emit_violation(void *user, enum stfs_severity severity, const char *file, const char *sentence)
{
	struct building *building = user;

	(void)file;
	if (severity == STFS_VIOLATION)
		stfs_violation(building->c->report, "%s: the new file is not right: %s", building->shown, sentence);
}

/* Reads the new file as any reader would, and compares it with the plan. */
static int check_file(struct building *building, const struct stfs_plan_file *file, const struct stat *st)
{
	struct stfs_report report = { .emit = emit_violation, .user = building };
	_cleanup_(stfs_snapshot_unrefp) struct stfs_snapshot *snapshot = NULL;
	const struct stfs_identity *identity;
	const struct stfs_header *header;
	int r = stfs_snapshot_open(building->dir_fd, building->step->temp, building->shown, 0, STFS_IO_PREAD, &report,
				   &snapshot);

	if (r < 0)
		return r;
	identity = stfs_snapshot_identity(snapshot);
	header = stfs_snapshot_header(snapshot);
	if (identity->dev != st->st_dev || identity->ino != st->st_ino || identity->size != file->size ||
	    header->text_len + 8 != file->header.len ||
	    memcmp(header->text, file->header.data + 8, header->text_len) != 0) {
		stfs_violation(building->c->report, "%s: the new file reads back as another one", building->shown);
		return -EIO;
	}
	stfs_snapshot_unref(building->c->built);
	building->c->built = stfs_steal(snapshot);
	return 0;
}

int stfs_commit_build_file(struct stfs_committing *c, int dir_fd, struct stfs_commit_step *step,
			   const struct stfs_plan_file *file, const struct stfs_commit_look *look)
{
	_cleanup_(building_fini) struct building building = { .c = c, .dir_fd = dir_fd, .fd = -1, .step = step };
	struct stat st;
	int r = begin(&building, look);

	if (r == 0)
		r = reserve(&building, file->size);
	if (r < 0)
		return r;
	r = write_bytes(&building, file->header.data, file->header.len, 0);
	if (r == 0)
		r = write_copies(&building, file);
	if (r == -ECANCELED)
		return r;
	if (r < 0) {
		/* A source that changed is the better reason. */
		int stale = stfs_commit_check_sources(c, false);

		return stale < 0 ? stale : fail(&building, r, "cannot be written");
	}
	r = end(&building, look, &st);
	return r < 0 ? r : check_file(&building, file, &st);
}

/* Reads the new index back. */
static int check_index(struct building *building)
{
	struct stfs_report report = { .emit = emit_violation, .user = building };
	const struct stfs_buf *planned = &building->c->plan->index;
	_cleanup_free_ char *text = malloc(planned->len + 1);
	struct stfs_index *index = NULL;
	int r = text ? stfs_pread_full(building->fd, text, planned->len, 0) : -ENOMEM;

	if (r < 0)
		return fail(building, r, "cannot be read back");
	text[planned->len] = '\0';
	if (memcmp(text, planned->data, planned->len) != 0)
		return fail(building, -EIO, "reads back as another one");
	r = stfs_index_parse(text, planned->len, &report, &index);
	if (r < 0)
		return r;
	text = NULL; /* the index's from here */
	stfs_index_free(index);
	return 0;
}

int stfs_commit_build_index(struct stfs_committing *c, int dir_fd, struct stfs_commit_step *step,
			    const struct stfs_commit_look *look)
{
	_cleanup_(building_fini) struct building building = { .c = c, .dir_fd = dir_fd, .fd = -1, .step = step };
	const struct stfs_buf *index = &c->plan->index;
	struct stat st;
	int r = begin(&building, look);

	if (r < 0)
		return r;
	r = write_bytes(&building, index->data, index->len, 0);
	if (r < 0)
		return r == -ECANCELED ? r : fail(&building, r, "cannot be written");
	r = end(&building, look, &st);
	return r < 0 ? r : check_index(&building);
}
