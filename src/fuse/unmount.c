/* SPDX-License-Identifier: Apache-2.0 */
#include "unmount.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>

#include "buf.h"
#include "cleanup.h"
#include "mountinfo.h"
#include "path.h"
#include "quote.h"

#define QUOTED(s) (stfs_quote(stfs_slice_of(s)).text)

/* How long a daemon may take to end, a minute: a busy disk makes it slow to sync what is staged. */
#define WAIT_STEP_MS 5
#define WAIT_STEPS 12000
#define GRACE_STEPS 20 /* for who looks at the filesystem in passing, and keeps it for a moment */

/* Finds the mount without touching it: first under the name as it stands, then under what that is a link to. */
static int find_mount(const char *path, char **ret_path, struct stfs_mount *ret_mount)
{
	_cleanup_free_ char *anchored = NULL, *resolved = NULL;
	int r = stfs_path_anchor(path, &anchored);

	if (r < 0)
		return r;
	r = stfs_mountinfo_find(anchored, ret_mount);
	if (r == 0) {
		*ret_path = stfs_steal(anchored);
		return 0;
	}
	resolved = r == -ENOENT ? realpath(path, NULL) : NULL;
	if (!resolved)
		return r == -ENOENT ? -errno : r;
	r = stfs_mountinfo_find(resolved, ret_mount);
	if (r == 0)
		*ret_path = stfs_steal(resolved);
	return r == -ENOENT ? -EINVAL : r;
}

/* Reads what a child writes, up to a limit; the rest is thrown away. */
static int read_all(int fd, char *text, size_t size)
{
	size_t used = 0;
	char chunk[256];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) > 0 || (n < 0 && errno == EINTR)) {
		size_t take = n < 0 ? 0 : STFS_MIN((size_t)n, size - 1 - used);

		memcpy(text + used, chunk, take);
		used += take;
	}
	while (used > 0 && text[used - 1] == '\n')
		used--;
	text[used] = '\0';
	return n < 0 ? -errno : 0;
}

/* Runs fusermount3, which may unmount what its caller mounted. Fills `ret_text` with its complaint. */
static int run_fusermount(const char *path, bool lazy, char *ret_text, size_t size)
{
	const char *argv[] = { "fusermount3", lazy ? "-uz" : "-u", "--", path, NULL };
	_cleanup_close_ int reader = -1, writer = -1;
	posix_spawn_file_actions_t actions;
	int fds[2], status, r;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	reader = fds[0];
	writer = fds[1];
	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return -r;
	r = posix_spawn_file_actions_adddup2(&actions, writer, STDERR_FILENO);
	if (r == 0)
		r = posix_spawnp(&pid, argv[0], &actions, NULL, (char **)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r != 0)
		return -r;
	stfs_closep(&writer);
	r = read_all(reader, ret_text, size);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (r < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return r;
	/* It has no other way to tell, and does not translate its messages. */
	return strstr(ret_text, "busy") ? -EBUSY : -EPERM;
}

static int unmount_now(const char *path, bool lazy, struct stfs_diag *diag)
{
	char text[512] = "";
	int r = umount2(path, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) < 0 ? -errno : 0;

	if (r == -EPERM)
		r = run_fusermount(path, lazy, text, sizeof(text));
	if (r == -EBUSY)
		return stfs_fail(diag, r,
				 "%s is busy: somebody has a file open there or stands in it "
				 "('fuser -vm' shows who, 'umount -l' takes it away all the same)",
				 QUOTED(path));
	if (r < 0)
		return stfs_fail(diag, r, "cannot unmount %s: %s", QUOTED(path), *text ? QUOTED(text) : strerror(-r));
	return 0;
}

/* Whether the filesystem is mounted all the same: at a second place, or in the mount namespace of a container. */
static bool lives_on(const struct stfs_mount *mount)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u", mount->major, mount->minor);
	return access(path, F_OK) == 0;
}

static bool is_mounted(const char *path)
{
	_cleanup_mount_ struct stfs_mount mount = { 0 };

	return stfs_mountinfo_find(path, &mount) != -ENOENT;
}

/*
 * The daemon holds a lock on the directory below its mount until it is gone; if it made it, it removes it. As long as the
 * filesystem lives on elsewhere the daemon has no reason to end.
 */
static void await_daemon(const char *path, const struct stfs_mount *mount)
{
	const struct timespec step = { .tv_nsec = WAIT_STEP_MS * 1000000L };
	_cleanup_close_ int fd = -1;
	bool alive = lives_on(mount); /* once it is gone, another may get its number */

	if (is_mounted(path))
		return; /* mounts were stacked: what is there now is somebody else's */
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	for (int i = 0; fd >= 0 && i < WAIT_STEPS; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
			return;
		alive = alive && lives_on(mount);
		/* Who mounts there in the meantime holds the lock as well. */
		if (i >= GRACE_STEPS && (alive || is_mounted(path)))
			return;
		nanosleep(&step, NULL);
	}
}

int stfs_unmount(const char *path, bool lazy, struct stfs_diag *diag)
{
	_cleanup_mount_ struct stfs_mount mount = { 0 };
	_cleanup_free_ char *found = NULL;
	int r = find_mount(path, &found, &mount);

	if (r == -EINVAL || (r == 0 && strcmp(mount.type, STFS_FSTYPE) != 0))
		return stfs_fail(diag, -EINVAL, "%s is not a safetensorsfs mount", QUOTED(path));
	if (r < 0)
		return stfs_fail(diag, r, "cannot unmount %s: %s", QUOTED(path), strerror(-r));
	r = unmount_now(found, lazy, diag);
	if (r == 0 && !lazy)
		await_daemon(found, &mount);
	return r;
}
