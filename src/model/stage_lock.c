/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>

#include "cleanup.h"
#include "quote.h"
#include "retry.h"
#include "stage_private.h"

#define NOTE_MAX 512 /* bytes read of a note */

/* Unlocks before closing: others may have the same open file, as the caller of the lock does. */
static void unlock_and_close(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;

		flock(*fd, LOCK_UN);
		errno = saved;
	}
	stfs_closep(fd);
}

/* A filesystem that has no locks, or NFS, where only a descriptor open for writing can be locked. */
static bool means_no_locks(int error)
{
	return error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS || error == EBADF;
}

/* Returns a locked copy of `lock_fd`, -EBUSY or -errno. */
static int lock_copy(int lock_fd)
{
	_cleanup_close_ int fd = fcntl(lock_fd, F_DUPFD_CLOEXEC, 3);
	int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	if (flags & O_PATH)
		return -EBADF;
	if (STFS_RETRY(flock(fd, LOCK_EX | LOCK_NB)) < 0 && !means_no_locks(errno))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return stfs_steal_fd(&fd);
}

/* Reads "PID TEXT" as another process left it; the text is escaped. */
static bool read_note(const struct stfs_stage *stage, long *ret_pid, struct stfs_buf *ret_text)
{
	const struct stfs_os *os = stage->os;
	_cleanup_close_ int dir_fd = stfs_stage_open_dir(stage, NULL), fd = -1;
	int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
	char note[NOTE_MAX + 1], *end;
	ssize_t n;

	if (dir_fd < 0)
		return false;
	fd = STFS_RETRY(os->openat(os->user, dir_fd, STFS_STAGE_HOLDER, flags, 0));
	n = fd < 0 ? -1 : STFS_RETRY(os->pread(os->user, fd, note, NOTE_MAX, 0));
	if (n <= 0)
		return false;
	note[n] = '\0';
	note[strcspn(note, "\n")] = '\0';
	*ret_pid = strtol(note, &end, 10);
	if (*ret_pid <= 0 || *ret_pid > INT32_MAX || *end != ' ')
		return false;
	return stfs_append_printable(ret_text, stfs_slice_of(end + 1)) == 0;
}

static int say_busy(const struct stfs_stage *stage, struct stfs_diag *diag)
{
	_cleanup_buf_ struct stfs_buf text = { 0 };
	long pid;

	/* The note of a process that is gone is from before the present holder. */
	if (read_note(stage, &pid, &text) && (kill((pid_t)pid, 0) == 0 || errno == EPERM))
		return stfs_fail(diag, -EBUSY, "another process is editing this model: %ld, %s", pid, text.data);
	return stfs_fail(diag, -EBUSY, "another process is editing this model");
}

int stfs_stage_lock(struct stfs_stage *stage, int lock_fd, struct stfs_diag *diag)
{
	_cleanup_(unlock_and_close) int fd = -1;
	int r;

	if (stage->lock_fd >= 0)
		return 0;
	fd = lock_copy(lock_fd);
	if (fd == -EBUSY)
		return say_busy(stage, diag);
	if (fd < 0)
		return stfs_fail(diag, fd, "the model cannot be locked: %s", strerror(-fd));
	/* What was seen without the lock may be of the past. */
	r = stfs_stage_look(stage, diag);
	if (r < 0)
		return r;
	stage->lock_fd = stfs_steal_fd(&fd);
	stfs_stage_note_holder(stage);
	return 0;
}

/* Whether the lock is on that file already, by whatever descriptor. */
static bool is_locked_file(const struct stfs_stage *stage, int fd)
{
	const struct stfs_os *os = stage->os;
	struct stat ours, other;

	return stage->lock_fd >= 0 && STFS_RETRY(os->fstat(os->user, stage->lock_fd, &ours)) == 0 &&
	       STFS_RETRY(os->fstat(os->user, fd, &other)) == 0 && ours.st_dev == other.st_dev &&
	       ours.st_ino == other.st_ino;
}

int stfs_stage_relock(struct stfs_stage *stage, int lock_fd)
{
	int fd;

	if (is_locked_file(stage, lock_fd))
		return 0;
	fd = lock_copy(lock_fd);
	if (fd < 0)
		return fd;
	unlock_and_close(&stage->lock_fd);
	stage->lock_fd = fd;
	return 0;
}

void stfs_stage_unlock(struct stfs_stage *stage)
{
	unlock_and_close(&stage->lock_fd);
}

void stfs_stage_note_holder(struct stfs_stage *stage)
{
	const struct stfs_os *os = stage->os;
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	_cleanup_buf_ struct stfs_buf text = { 0 };
	_cleanup_close_ int fd = -1;

	if (stage->lock_fd < 0 || stage->dir_fd < 0)
		return;
	if (stfs_buf_printf(&text, "%ld %s\n", (long)getpid(), stage->holder) < 0)
		return;
	(void)STFS_RETRY(os->unlinkat(os->user, stage->dir_fd, STFS_STAGE_HOLDER, 0));
	fd = STFS_RETRY(os->openat(os->user, stage->dir_fd, STFS_STAGE_HOLDER, flags, 0600));
	if (fd < 0)
		return;
	stage->noted = true;
	if (stfs_os_write_full(os, fd, text.data, text.len, 0, NULL) < 0)
		stfs_stage_unnote_holder(stage);
}

void stfs_stage_unnote_holder(struct stfs_stage *stage)
{
	const struct stfs_os *os = stage->os;

	if (stage->noted)
		(void)STFS_RETRY(os->unlinkat(os->user, stage->dir_fd, STFS_STAGE_HOLDER, 0));
	stage->noted = false;
}

int stfs_stage_set_holder(struct stfs_stage *stage, const char *holder)
{
	char *copy = strdup(holder);

	if (!copy)
		return -ENOMEM;
	free(stage->holder);
	stage->holder = copy;
	stfs_stage_note_holder(stage);
	return 0;
}
