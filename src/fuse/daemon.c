/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "cleanup.h"
#include "io.h"

/* The byte the child reports, or -1 when it closes the pipe without one. */
static int await_report(int fd)
{
	unsigned char code;
	ssize_t n;

	do {
		n = read(fd, &code, 1);
	} while (n < 0 && errno == EINTR);
	return n == 1 ? code : -1;
}

/* A shell or nohup has them ignored for the sake of a terminal, which a daemon leaves. */
static void heed_signals(void)
{
	signal(SIGHUP, SIG_DFL);
	signal(SIGINT, SIG_DFL);
}

int stfs_daemon_fork(int *ret)
{
	_cleanup_close_ int reader = -1, writer = -1;
	int fds[2];
	pid_t pid;

	fflush(NULL);
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	reader = fds[0];
	writer = fds[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		heed_signals();
		*ret = stfs_steal_fd(&writer);
		return STFS_FORK_CHILD;
	}
	stfs_closep(&writer);
	*ret = await_report(reader);
	/* A child that failed is at its end: wait, so that what it made is removed when we return. */
	if (*ret != 0)
		waitpid(pid, NULL, 0);
	return STFS_FORK_PARENT;
}

void stfs_daemon_report(int *fd, int code)
{
	unsigned char byte = (unsigned char)code;

	/* Nobody waits any more when this fails. */
	if (*fd >= 0 && stfs_write_full(*fd, &byte, 1) < 0)
		errno = 0;
	stfs_closep(fd);
}

int stfs_daemon_detach(void)
{
	_cleanup_close_ int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (setsid() < 0 || chdir("/") < 0)
		return -errno;
	for (int i = 0; i <= 2; i++)
		if (dup2(fd, i) < 0)
			return -errno;
	/* When the standard descriptors were closed, /dev/null became one of them: keep it. */
	if (fd <= 2)
		stfs_steal_fd(&fd);
	return 0;
}
