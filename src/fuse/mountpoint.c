/* SPDX-License-Identifier: Apache-2.0 */
#include "mountpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "mountinfo.h"
#include "path.h"
#include "quote.h"

#define QUOTED(s) (stfs_quote(stfs_slice_of(s)).text)

/* How long another may take to mount, two seconds; anybody who can open the directory could hold its lock. */
#define TURN_STEP_MS 5
#define TURN_STEPS 400

/* The absolute name of a directory; one that cannot be looked at (a dead mount) is named without touching it. */
static int resolve_directory(const char *path, char **ret_path)
{
	char *resolved = realpath(path, NULL);

	if (!resolved && (errno == ENOENT || errno == ENOTDIR || errno == ENOMEM))
		return -errno;
	if (!resolved)
		return stfs_path_anchor(path, ret_path);
	*ret_path = resolved;
	return 0;
}

/* autofs (an automount of systemd, or of fstab(5)) is mounted where it waits for a mount on top of it. */
static bool is_awaiting(const struct stfs_mount *mount)
{
	return strcmp(mount->type, "autofs") == 0;
}

/* The same of a directory; who opens such a one waits for the mount. */
static bool is_awaited(const char *path)
{
	_cleanup_mount_ struct stfs_mount mount = { 0 };

	return stfs_mountinfo_find(path, &mount) == 0 && is_awaiting(&mount);
}

static int refuse_mounted(const char *path, struct stfs_diag *diag)
{
	_cleanup_mount_ struct stfs_mount mount = { 0 };
	int r = stfs_mountinfo_find(path, &mount);

	if (r == -ENOENT || (r == 0 && is_awaiting(&mount)))
		return 0;
	if (r < 0)
		return stfs_fail(diag, r, "cannot read /proc/self/mountinfo: %s", strerror(-r));
	if (strcmp(mount.type, STFS_FSTYPE) == 0)
		return stfs_fail(diag, -EBUSY, "%s is a mount already, of %s: unmount it first (safetensorsfs umount)",
				 QUOTED(path), QUOTED(mount.source));
	return stfs_fail(diag, -EBUSY, "%s is a mount already, of type %s", QUOTED(path), QUOTED(mount.type));
}

static int refuse_other_kinds(const char *path, struct stfs_diag *diag)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return stfs_fail(diag, -errno, "the mountpoint %s cannot be used: %s", QUOTED(path), strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return stfs_fail(diag, -ENOTDIR, "the mountpoint %s is not a directory", QUOTED(path));
	/* fusermount3 demands the same; its own words for it are less clear. */
	if (geteuid() != 0 && access(path, W_OK) < 0)
		return stfs_fail(diag, -errno, "the mountpoint %s cannot be used: you may not write to it",
				 QUOTED(path));
	return 0;
}

/* The source as named, and what it is a link to, must both lie outside. */
static int refuse_source_within(const char *path, const char *source, struct stfs_diag *diag)
{
	_cleanup_free_ char *anchored = NULL, *resolved = realpath(source, NULL);
	int r = stfs_path_anchor(source, &anchored);

	if (r < 0)
		return stfs_fail(diag, r, "cannot resolve %s: %s", QUOTED(source), strerror(-r));
	if (stfs_path_is_within(anchored, path) || (resolved && stfs_path_is_within(resolved, path)))
		return stfs_fail(diag, -EINVAL, "the mountpoint %s would hide the source %s", QUOTED(path),
				 QUOTED(source));
	return 0;
}

static int check_directory(const char *path, const char *source, struct stfs_diag *diag)
{
	int r = refuse_mounted(path, diag);

	if (r == 0)
		r = refuse_other_kinds(path, diag);
	if (r == 0)
		r = refuse_source_within(path, source, diag);
	return r;
}

static int prepare_given(const char *given, const char *source, struct stfs_mountpoint *mp, struct stfs_diag *diag)
{
	int r = resolve_directory(given, &mp->path);

	if (r == -ENOENT)
		return stfs_fail(diag, r, "the mountpoint %s does not exist", QUOTED(given));
	if (r < 0)
		return stfs_fail(diag, r, "the mountpoint %s cannot be used: %s", QUOTED(given), strerror(-r));
	return check_directory(mp->path, source, diag);
}

static void close_directory(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static int refuse_full(const char *path, const char *shown, struct stfs_diag *diag)
{
	_cleanup_(close_directory) DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		return stfs_fail(diag, -errno, "cannot look into %s: %s", QUOTED(shown), strerror(errno));
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			return stfs_fail(diag, -ENOTEMPTY, "%s is there already and not empty: name another mountpoint",
					 QUOTED(shown));
	return 0;
}

static int use_existing(const char *path, const char *shown, const char *source, struct stfs_diag *diag)
{
	struct stat st;
	int r = refuse_mounted(path, diag);

	if (r < 0)
		return r;
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return stfs_fail(diag, -ENOTDIR, "%s is there already and not a directory: name another mountpoint",
				 QUOTED(shown));
	r = refuse_full(path, shown, diag);
	return r < 0 ? r : check_directory(path, source, diag);
}

static int prepare_label(const char *label, const char *source, struct stfs_mountpoint *mp, struct stfs_diag *diag)
{
	_cleanup_free_ char *shown = NULL;
	int r;

	if (!*label || strchr(label, '/') || strcmp(label, ".") == 0 || strcmp(label, "..") == 0)
		return stfs_fail(diag, -EINVAL, "the source gives no name to mount at: name a mountpoint");
	if (asprintf(&shown, "./%s", label) < 0)
		return -ENOMEM;
	r = stfs_path_anchor(shown, &mp->path);
	if (r < 0)
		return stfs_fail(diag, r, "cannot tell the working directory: %s", strerror(-r));
	if (mkdir(mp->path, 0777) == 0) {
		mp->made = true;
		return 0;
	}
	if (errno == EEXIST)
		return use_existing(mp->path, shown, source, diag);
	return stfs_fail(diag, -errno, "cannot make the mountpoint %s: %s", QUOTED(shown), strerror(errno));
}

int stfs_mountpoint_prepare(const char *given, const char *label, const char *source, struct stfs_mountpoint *ret,
			    struct stfs_diag *diag)
{
	_cleanup_mountpoint_ struct stfs_mountpoint mp = { .lock_fd = -1 };
	int r = given ? prepare_given(given, source, &mp, diag) : prepare_label(label, source, &mp, diag);

	if (r < 0)
		return r;
	*ret = mp;
	mp = (struct stfs_mountpoint){ .lock_fd = -1 };
	return 0;
}

/* Waits for one lock, or for the other if that can be had first. Returns whether it is held. */
static bool await_lock(int fd, int lock, int other)
{
	const struct timespec step = { .tv_nsec = TURN_STEP_MS * 1000000L };

	for (int i = 0; i < TURN_STEPS; i++) {
		if (flock(fd, lock | LOCK_NB) == 0 || (errno == EWOULDBLOCK && flock(fd, other | LOCK_NB) == 0))
			return true;
		if (errno != EWOULDBLOCK)
			return false;
		nanosleep(&step, NULL);
	}
	return false;
}

int stfs_mountpoint_lock(struct stfs_mountpoint *mountpoint, struct stfs_diag *diag)
{
	if (!is_awaited(mountpoint->path))
		mountpoint->lock_fd = open(mountpoint->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/*
	 * Alone, so that nobody else is about to mount there. Daemons that serve share the lock, also one whose mount was taken
	 * away lazily: where only they are, no turn can be told. Where directories cannot be locked, `umount` does not wait.
	 */
	if (mountpoint->lock_fd >= 0 && !await_lock(mountpoint->lock_fd, LOCK_EX, LOCK_SH))
		stfs_closep(&mountpoint->lock_fd);
	/* Whoever was first has mounted by now. */
	return refuse_mounted(mountpoint->path, diag);
}

void stfs_mountpoint_share(struct stfs_mountpoint *mountpoint)
{
	/* Changing a lock lets go of it: somebody who is about to look may be faster. */
	if (mountpoint->lock_fd >= 0 && !await_lock(mountpoint->lock_fd, LOCK_SH, LOCK_SH))
		stfs_closep(&mountpoint->lock_fd);
}

void stfs_mountpoint_fini(struct stfs_mountpoint *mountpoint)
{
	if (mountpoint->made)
		rmdir(mountpoint->path);
	free(mountpoint->path);
	stfs_closep(&mountpoint->lock_fd);
	*mountpoint = (struct stfs_mountpoint){ .lock_fd = -1 };
}
