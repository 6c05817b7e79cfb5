/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "ending.h"
#include "mountinfo.h"
#include "ops.h"
#include "quote.h"
#include "readahead.h"

#define IDLE_THREADS 4 /* fewer: threads come and go with each burst; more: a small read wakes a cold one */
#define MIN_THREADS 4  /* so that one reader waiting for the disk does not hold up the rest */
#define MAX_THREADS 16

struct stfs_session {
	struct stfs_front front;
	struct fuse_session *fuse;
	struct stfs_ending ending;
	const char *mountpoint; /* borrowed */
	bool handles_signals, mounted;
};

/* "-o" for libfuse. Our own options come last, so that they count. */
static int build_options(const struct stfs_session_config *config, char **ret_options)
{
	char *options = NULL, *fsname = NULL;
	bool done = (!config->options || !*config->options || fuse_opt_add_opt(&options, config->options) == 0) &&
		    fuse_opt_add_opt(&options, stfs_view_is_writable(config->view) ? "rw" : "ro") == 0 &&
		    fuse_opt_add_opt(&options, "default_permissions,nosuid,nodev,subtype=" STFS_SUBTYPE) == 0 &&
		    asprintf(&fsname, "fsname=%s", config->source) >= 0 &&
		    fuse_opt_add_opt_escaped(&options, fsname) == 0;

	free(fsname);
	if (!done) {
		free(options);
		return -ENOMEM;
	}
	*ret_options = options;
	return 0;
}

static int new_fuse_session(struct stfs_session *s, const struct stfs_session_config *config)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_lowlevel_ops ops = stfs_ops;
	_cleanup_free_ char *options = NULL;
	int r = build_options(config, &options);

	/* With it, a killed reader of a stopped daemon cannot die; only what is written needs it. */
	if (!s->front.writable)
		ops.flush = NULL;

	if (r < 0)
		return r;
	if (fuse_opt_add_arg(&args, "safetensorsfs") < 0 || fuse_opt_add_arg(&args, "-o") < 0 ||
	    fuse_opt_add_arg(&args, options) < 0 || (config->debug && fuse_opt_add_arg(&args, "-d") < 0))
		r = -ENOMEM;
	if (r == 0) {
		s->fuse = fuse_session_new(&args, &ops, sizeof(ops), &s->front);
		r = s->fuse ? 0 : -EINVAL;
	}
	fuse_opt_free_args(&args);
	return r;
}

static int ignore_signal(int number)
{
	struct sigaction action = { .sa_handler = SIG_IGN };

	return sigaction(number, &action, NULL) < 0 ? -errno : 0;
}

static int set_signals(struct stfs_session *s)
{
	int r = ignore_signal(SIGPIPE);

	if (r == 0)
		r = ignore_signal(SIGXFSZ);
	if (r < 0)
		return r;
	if (fuse_set_signal_handlers(s->fuse) < 0)
		return -EINVAL;
	s->handles_signals = true;
	return 0;
}

int stfs_session_new(const struct stfs_session_config *config, struct stfs_session **ret_session)
{
	struct stfs_session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->front.view = config->view;
	s->front.log = config->log;
	s->front.writable = stfs_view_is_writable(config->view);
	s->front.direct_io = config->direct_io;
	s->front.max_read = config->max_read;
	s->mountpoint = s->front.mountpoint = config->mountpoint;
	if (s->front.writable) {
		struct stfs_view_watcher watcher = stfs_notifier_watcher(&s->front.notifier);

		stfs_view_set_watcher(config->view, &watcher);
	}
	r = stfs_front_init(&s->front);
	if (r < 0) {
		free(s);
		return r;
	}
	r = new_fuse_session(s, config);
	s->front.fuse = s->fuse;
	if (r == 0)
		r = set_signals(s);
	if (r < 0) {
		stfs_session_free(s);
		return r;
	}
	*ret_session = s;
	return 0;
}

/* Says in plain words what libfuse would only say in part: an absent or closed device is the usual cause. */
static int check_device(struct stfs_diag *diag)
{
	_cleanup_close_ int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return 0;
	if (errno == ENOENT || errno == ENODEV || errno == ENXIO)
		return stfs_fail(diag, -errno,
				 "FUSE refused the mount: there is no /dev/fuse "
				 "(load the module with 'modprobe fuse'; a container needs --device /dev/fuse)");
	return stfs_fail(diag, -errno, "FUSE refused the mount: cannot open /dev/fuse: %s", strerror(errno));
}

/*
 * The kernel's first request is INIT, and everybody else waits until it is answered: after this, the mount is ready.
 * Done here rather than in the loop, where nothing tells when the answer has reached the kernel.
 */
static int answer_init(struct stfs_session *s)
{
	struct fuse_buf buf = { .mem = NULL };
	int r;

	do {
		r = fuse_session_receive_buf(s->fuse, &buf);
	} while (r == -EINTR && !fuse_session_exited(s->fuse));
	if (r > 0)
		fuse_session_process_buf(s->fuse, &buf);
	free(buf.mem);
	if (r < 0)
		return r;
	return r == 0 || fuse_session_exited(s->fuse) ? -ECONNABORTED : 0;
}

int stfs_session_mount(struct stfs_session *session, struct stfs_diag *diag)
{
	int r = check_device(diag);

	if (r < 0)
		return r;
	if (fuse_session_mount(session->fuse, session->mountpoint) < 0)
		return stfs_fail(diag, -EPERM, "FUSE refused the mount at %s (the line above says why)",
				 stfs_quote(stfs_slice_of(session->mountpoint)).text);
	session->mounted = true;
	r = answer_init(session);
	if (r < 0)
		return stfs_fail(diag, r, "the mount at %s ended before it was ready: %s",
				 stfs_quote(stfs_slice_of(session->mountpoint)).text, strerror(-r));
	stfs_readahead_raise(session->mountpoint);
	return 0;
}

STFS_PRINTF(2, 0) static void log_to_syslog(enum fuse_log_level level, const char *fmt, va_list args)
{
	vsyslog((int)level, fmt, args);
}

void stfs_session_log_to_syslog(void)
{
	fuse_set_log_func(log_to_syslog);
}

#ifdef HAVE_FUSE_LOOP_CFG_CREATE
static unsigned count_threads(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	return cores < MIN_THREADS ? MIN_THREADS : (unsigned)STFS_MIN(cores, MAX_THREADS);
}

static int run_loop(struct fuse_session *fuse)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int r;

	if (!config)
		return -ENOMEM;
#ifdef HAVE_FUSE_LOOP_CFG_SET_MAX_THREADS
	fuse_loop_cfg_set_max_threads(config, count_threads());
#endif
#ifdef HAVE_FUSE_LOOP_CFG_SET_IDLE_THREADS
	fuse_loop_cfg_set_idle_threads(config, IDLE_THREADS);
#endif
	r = fuse_session_loop_mt(fuse, config);
	fuse_loop_cfg_destroy(config);
	return r;
}
#else
static int run_loop(struct fuse_session *fuse)
{
	struct fuse_loop_config config = { .clone_fd = 0, .max_idle_threads = IDLE_THREADS };

	return fuse_session_loop_mt(fuse, &config);
}
#endif

static int start_threads(struct stfs_session *session)
{
	struct stfs_front *front = &session->front;
	int r = stfs_ending_block_signals();

	if (r == 0)
		r = stfs_notifier_start(&front->notifier, session->fuse);
	if (r == 0)
		r = stfs_jobs_start(front);
	if (r == 0)
		r = stfs_ending_start(&session->ending, front, session->fuse);
	return r;
}

static void stop_threads(struct stfs_session *session)
{
	stfs_ending_stop(&session->ending);
	atomic_store(&session->front.closing, true);
	stfs_jobs_stop(&session->front.jobs);
	stfs_notifier_stop(&session->front.notifier);
}

/*
 * The end of libfuse's loop cancels its threads, for which the C library loads a library when it is first needed, and aborts
 * when there is no memory for that. A look at the stack needs the same one.
 */
static void load_unwinder(void)
{
	void *frame;

	(void)backtrace(&frame, 1);
}

int stfs_session_run(struct stfs_session *session)
{
	int r = session->front.writable ? start_threads(session) : 0;

	load_unwinder();
	if (r == 0)
		r = run_loop(session->fuse);
	stop_threads(session);
	return r > 0 ? 0 : r; /* positive: the signal that ended it */
}

void stfs_session_free(struct stfs_session *session)
{
	if (!session)
		return;
	if (session->handles_signals)
		fuse_remove_signal_handlers(session->fuse);
	if (session->mounted)
		fuse_session_unmount(session->fuse);
	if (session->fuse)
		fuse_session_destroy(session->fuse);
	if (session->front.writable)
		stfs_view_set_watcher(session->front.view, &(struct stfs_view_watcher){ 0 });
	stfs_front_fini(&session->front);
	free(session);
}
