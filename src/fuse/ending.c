/* SPDX-License-Identifier: Apache-2.0 */
#include "ending.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include "cleanup.h"
#include "ops.h"
#include "stop_signals.h"

#define KICK_MS 20

static void end_edits(struct stfs_front *front)
{
	int r;

	stfs_jobs_launder(front);
	atomic_store(&front->closing, true);
	stfs_jobs_stop(&front->jobs);
	stfs_notifier_stop(&front->notifier);
	r = stfs_view_sync(front->view);
	if (r < 0)
		stfs_log(front->log, STFS_LOG_ERROR, "what is staged cannot be made durable: %s", strerror(-r));
}

/* Waits for a signal. Returns false when the loop ended first. */
static bool await_signal(const struct stfs_ending *ending)
{
	struct pollfd fds[] = {
		{ .fd = ending->signal_fd, .events = POLLIN },
		{ .fd = ending->stop_fd, .events = POLLIN },
	};

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	return !fds[1].revents;
}

static void *wait_for_end(void *arg)
{
	struct stfs_ending *ending = arg;
	struct pollfd stop = { .fd = ending->stop_fd, .events = POLLIN };

	if (!await_signal(ending))
		return NULL;
	end_edits(ending->front);
	fuse_session_exit(ending->fuse);
	/* libfuse's loop looks at that only when a signal wakes it, and not when the signal comes a moment too early. */
	while (!atomic_load(&ending->served)) {
		pthread_kill(ending->server, SIGUSR1);
		poll(&stop, 1, KICK_MS);
	}
	return NULL;
}

static void wake(int number)
{
	(void)number;
}

int stfs_ending_block_signals(void)
{
	struct sigaction action = { .sa_handler = wake };
	sigset_t waking, ending = stfs_stop_signals();
	int error;

	sigemptyset(&waking);
	sigaddset(&waking, SIGUSR1);
	if (sigaction(SIGUSR1, &action, NULL) < 0)
		return -errno;
	error = pthread_sigmask(SIG_UNBLOCK, &waking, NULL);
	return error ? -error : -pthread_sigmask(SIG_BLOCK, &ending, NULL);
}

int stfs_ending_start(struct stfs_ending *ending, struct stfs_front *front, struct fuse_session *fuse)
{
	_cleanup_close_ int signal_fd = -1, stop_fd = -1;
	sigset_t set = stfs_stop_signals();
	int r;

	signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	stop_fd = eventfd(0, EFD_CLOEXEC);
	if (signal_fd < 0 || stop_fd < 0)
		return -errno;
	*ending = (struct stfs_ending){
		.front = front,
		.fuse = fuse,
		.server = pthread_self(),
		.signal_fd = signal_fd,
		.stop_fd = stop_fd,
	};
	r = -pthread_create(&ending->thread, NULL, wait_for_end, ending);
	if (r < 0)
		return r;
	ending->started = true;
	stfs_steal_fd(&signal_fd);
	stfs_steal_fd(&stop_fd);
	return 0;
}

void stfs_ending_stop(struct stfs_ending *ending)
{
	if (!ending->started)
		return;
	atomic_store(&ending->served, true);
	(void)!eventfd_write(ending->stop_fd, 1);
	pthread_join(ending->thread, NULL);
	stfs_closep(&ending->signal_fd);
	stfs_closep(&ending->stop_fd);
	ending->started = false;
}
