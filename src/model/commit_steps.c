/* SPDX-License-Identifier: Apache-2.0 */
#include "commit_steps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "array.h"
#include "journal.h"
#include "retry.h"

#define STEPS_MAX 200000u
#define TEMP_SUFFIX ".stfs-commit"

enum {
	FLAG_KEEP_JOURNAL = 1 << 0,
	FLAG_MADE_STAGE = 1 << 1,
};

void stfs_commit_steps_fini(struct stfs_commit_steps *steps)
{
	for (uint32_t i = 0; i < steps->n; i++) {
		free(steps->steps[i].temp);
		free(steps->steps[i].target);
	}
	for (uint32_t i = 0; i < steps->n_removed; i++)
		free(steps->removed[i]);
	free(steps->steps);
	free(steps->removed);
	*steps = (struct stfs_commit_steps){ 0 };
}

/* Bytes of the folder part of a name, its last slash included. */
static size_t folder_len(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash ? (size_t)(slash - name) + 1 : 0;
}

/* The hidden name beside `target` under which its file is built; NULL without memory. */
static char *temp_name(const char *target)
{
	size_t folder = folder_len(target), len = strlen(target + folder);
	size_t room = NAME_MAX - 1 - strlen(TEMP_SUFFIX);
	/* Of a name that is too long its end is kept, where the numbers of shards are. */
	size_t skip = len > room ? len - room : 0;
	char *name = NULL;

	if (asprintf(&name, "%.*s.%s" TEMP_SUFFIX, (int)folder, target, target + folder + skip) < 0)
		return NULL;
	return name;
}

int stfs_commit_steps_add(struct stfs_commit_steps *steps, struct stfs_slice target, const struct stfs_slice *temp,
			  bool fresh)
{
	struct stfs_commit_step *step;
	int r = stfs_array_grow((void **)&steps->steps, steps->n, &steps->cap, STEPS_MAX, sizeof(*step));

	if (r < 0)
		return r;
	step = &steps->steps[steps->n];
	*step = (struct stfs_commit_step){ .target = strndup(target.p, target.len), .fresh = fresh };
	if (step->target)
		step->temp = temp ? strndup(temp->p, temp->len) : temp_name(step->target);
	if (!step->temp) {
		free(step->target);
		return -ENOMEM;
	}
	steps->n++;
	return 0;
}

int stfs_commit_steps_add_removed(struct stfs_commit_steps *steps, struct stfs_slice name)
{
	int r = stfs_array_grow((void **)&steps->removed, steps->n_removed, &steps->removed_cap, STEPS_MAX,
				sizeof(*steps->removed));

	if (r < 0)
		return r;
	steps->removed[steps->n_removed] = strndup(name.p, name.len);
	if (!steps->removed[steps->n_removed])
		return -ENOMEM;
	steps->n_removed++;
	return 0;
}

static int encode_step(const struct stfs_commit_step *step, struct stfs_buf *payload)
{
	int r = stfs_payload_bytes(payload, stfs_slice_of(step->target));

	if (r == 0)
		r = stfs_payload_u64(payload, step->fresh);
	if (r == 0)
		r = stfs_payload_u64(payload, step->size);
	if (r == 0)
		r = stfs_payload_u64(payload, (uint64_t)step->mtime.tv_sec);
	return r < 0 ? r : stfs_payload_u64(payload, (uint64_t)step->mtime.tv_nsec);
}

int stfs_commit_steps_encode(const struct stfs_commit_steps *steps, struct stfs_buf *payload)
{
	uint64_t flags = (steps->keep_journal ? FLAG_KEEP_JOURNAL : 0) | (steps->made_stage ? FLAG_MADE_STAGE : 0);
	int r = stfs_payload_u64(payload, flags);

	if (r == 0)
		r = stfs_payload_u64(payload, steps->n);
	for (uint32_t i = 0; r == 0 && i < steps->n; i++)
		r = encode_step(&steps->steps[i], payload);
	if (r == 0)
		r = stfs_payload_u64(payload, steps->n_removed);
	for (uint32_t i = 0; r == 0 && i < steps->n_removed; i++)
		r = stfs_payload_bytes(payload, stfs_slice_of(steps->removed[i]));
	return r;
}

/* A relative path that stays in its folder. */
static bool is_plain(struct stfs_slice name)
{
	size_t part = 0;

	if (name.len == 0 || name.len >= PATH_MAX || name.p[0] == '/' || memchr(name.p, '\0', name.len))
		return false;
	for (size_t i = 0; i <= name.len; i++) {
		if (i < name.len && name.p[i] != '/')
			continue;
		if (i - part == 2 && memcmp(name.p + part, "..", 2) == 0)
			return false;
		part = i + 1;
	}
	return name.p[name.len - 1] != '/';
}

static int decode_step(struct stfs_commit_steps *steps, struct stfs_slice *payload)
{
	uint64_t fresh, size, sec, nsec;
	struct stfs_slice target;
	int r;

	if (!stfs_payload_take_bytes(payload, &target) || !stfs_payload_take_u64(payload, &fresh) ||
	    !stfs_payload_take_u64(payload, &size) || !stfs_payload_take_u64(payload, &sec) ||
	    !stfs_payload_take_u64(payload, &nsec) || !is_plain(target))
		return -EBADMSG;
	r = stfs_commit_steps_add(steps, target, NULL, fresh != 0);
	if (r < 0)
		return r;
	steps->steps[steps->n - 1].size = size;
	steps->steps[steps->n - 1].mtime = (struct timespec){ (time_t)sec, (long)nsec };
	return 0;
}

int stfs_commit_steps_decode(struct stfs_commit_steps *steps, struct stfs_slice payload)
{
	uint64_t flags, n, n_removed;
	int r = 0;

	if (!stfs_payload_take_u64(&payload, &flags) || !stfs_payload_take_u64(&payload, &n))
		return -EBADMSG;
	for (uint64_t i = 0; r == 0 && i < n; i++)
		r = decode_step(steps, &payload);
	if (r == 0 && !stfs_payload_take_u64(&payload, &n_removed))
		r = -EBADMSG;
	for (uint64_t i = 0; r == 0 && i < n_removed; i++) {
		struct stfs_slice name;

		if (!stfs_payload_take_bytes(&payload, &name) || !is_plain(name))
			r = -EBADMSG;
		else
			r = stfs_commit_steps_add_removed(steps, name);
	}
	if (r < 0 || payload.len)
		return r < 0 ? r : -EBADMSG;
	steps->keep_journal = flags & FLAG_KEEP_JOURNAL;
	steps->made_stage = flags & FLAG_MADE_STAGE;
	return 0;
}

/* Whether no folder that the name goes through is a link. */
static bool name_stays(const char *name, int dir_fd)
{
	size_t len = strlen(name);
	char path[PATH_MAX];
	struct stat st;

	if (len >= sizeof(path))
		return false;
	memcpy(path, name, len + 1);
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		bool is_link;

		*slash = '\0';
		is_link = fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
		*slash = '/';
		if (is_link)
			return false;
	}
	return true;
}

bool stfs_commit_steps_stay(const struct stfs_commit_steps *steps, int dir_fd)
{
	bool stay = true;

	for (uint32_t i = 0; stay && i < steps->n; i++)
		stay = name_stays(steps->steps[i].target, dir_fd);
	for (uint32_t i = 0; stay && i < steps->n_removed; i++)
		stay = name_stays(steps->removed[i], dir_fd);
	return stay;
}

/* Whether the file called `name` is the one that was built. */
static bool is_built(const struct stfs_commit_step *step, int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == step->size && st.st_mtim.tv_sec == step->mtime.tv_sec &&
	       st.st_mtim.tv_nsec == step->mtime.tv_nsec;
}

void stfs_commit_steps_look(const struct stfs_commit_steps *steps, int dir_fd, struct stfs_commit_progress *ret)
{
	*ret = (struct stfs_commit_progress){ 0 };
	for (uint32_t i = 0; i < steps->n; i++) {
		const struct stfs_commit_step *step = &steps->steps[i];

		if (is_built(step, dir_fd, step->temp))
			ret->todo++;
		else if (is_built(step, dir_fd, step->target))
			ret->done++;
		else
			ret->lost++;
	}
}

int stfs_commit_rename_fresh(const struct stfs_os *os, int dir_fd, const char *from, const char *to)
{
	struct stat st;

	if (STFS_RETRY(os->renameat2(os->user, dir_fd, from, dir_fd, to, RENAME_NOREPLACE)) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* Some filesystems cannot look and rename in one step. */
	if (fstatat(dir_fd, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return STFS_RETRY(os->renameat2(os->user, dir_fd, from, dir_fd, to, 0)) < 0 ? -errno : 0;
}

int stfs_commit_steps_rename(const struct stfs_commit_steps *steps, const struct stfs_os *os, int dir_fd,
			     uint32_t *ret_done)
{
	int r = 0;

	for (*ret_done = 0; *ret_done < steps->n; (*ret_done)++) {
		const struct stfs_commit_step *step = &steps->steps[*ret_done];

		if (!is_built(step, dir_fd, step->temp) && is_built(step, dir_fd, step->target))
			continue;
		if (step->fresh)
			r = stfs_commit_rename_fresh(os, dir_fd, step->temp, step->target);
		else if (STFS_RETRY(os->renameat2(os->user, dir_fd, step->temp, dir_fd, step->target, 0)) < 0)
			r = -errno;
		if (r < 0)
			return r;
	}
	return 0;
}

static int unlink_name(const struct stfs_os *os, int dir_fd, const char *name)
{
	if (STFS_RETRY(os->unlinkat(os->user, dir_fd, name, 0)) == 0 || errno == ENOENT || errno == ENOTDIR)
		return 0;
	return -errno;
}

int stfs_commit_steps_remove(const struct stfs_commit_steps *steps, const struct stfs_os *os, int dir_fd)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < steps->n_removed; i++)
		r = unlink_name(os, dir_fd, steps->removed[i]);
	return r;
}

int stfs_commit_steps_unlink_temps(const struct stfs_commit_steps *steps, const struct stfs_os *os, int dir_fd)
{
	int error = 0;

	for (uint32_t i = 0; i < steps->n; i++) {
		int r = unlink_name(os, dir_fd, steps->steps[i].temp);

		if (error == 0)
			error = r;
	}
	return error;
}

static int sync_folder(const struct stfs_os *os, int dir_fd, const char *folder)
{
	_cleanup_close_ int fd =
		STFS_RETRY(os->openat(os->user, dir_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));

	if (fd < 0)
		return -errno;
	/* EINVAL: a filesystem whose folders cannot be synced, and need not be. */
	return STFS_RETRY(os->fsync(os->user, fd)) < 0 && errno != EINVAL ? -errno : 0;
}

/* Syncs the folder that holds `name`, and those that it lies in: they may be new as well. */
static int sync_folders(const struct stfs_os *os, int dir_fd, const char *name)
{
	size_t len = folder_len(name);
	char folder[PATH_MAX];
	int r = 0;

	if (len >= sizeof(folder))
		return -ENAMETOOLONG;
	/* No memory is taken: the commit is decided by now. */
	memcpy(folder, name, len);
	for (; r == 0 && len > 0; len = folder_len(folder)) {
		folder[len - 1] = '\0';
		r = sync_folder(os, dir_fd, folder);
	}
	return r < 0 ? r : sync_folder(os, dir_fd, ".");
}

static bool same_folder(const char *a, const char *b)
{
	return folder_len(a) == folder_len(b) && memcmp(a, b, folder_len(a)) == 0;
}

int stfs_commit_steps_sync(const struct stfs_commit_steps *steps, const struct stfs_os *os, int dir_fd)
{
	const char *last = NULL;
	int r = 0;

	/* Files of one folder mostly stand together: syncing one twice costs little. */
	for (uint32_t i = 0; r == 0 && i < steps->n + steps->n_removed; i++) {
		const char *name = i < steps->n ? steps->steps[i].target : steps->removed[i - steps->n];

		if (!last || !same_folder(last, name))
			r = sync_folders(os, dir_fd, name);
		last = name;
	}
	return r;
}
