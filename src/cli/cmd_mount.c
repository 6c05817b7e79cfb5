/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "args.h"
#include "cleanup.h"
#include "command.h"
#include "daemon.h"
#include "findings.h"
#include "log.h"
#include "mounted.h"
#include "mountinfo.h"
#include "mountpoint.h"
#include "options.h"
#include "path.h"
#include "quote.h"
#include "session.h"
#include "workspace.h"

#define MAX_WARNINGS 10 /* printed at a mount; `check` prints them all */

#define QUOTED(s) (stfs_quote(stfs_slice_of(s)).text)

enum { ROW_OPTIONS, ROW_FOREGROUND, ROW_DEBUG, ROW_HELP };

static const struct stfs_option_help mount_rows[] = {
	[ROW_OPTIONS] = { "-o OPTIONS", "mount options, joined with ','" },
	[ROW_FOREGROUND] = { "-f", "stay in the foreground, with the log on stderr" },
	[ROW_DEBUG] = { "-d", "as -f, and print each FUSE request" },
	[ROW_HELP] = { "-h, --help", "this text" },
	{ NULL, NULL },
};

/* What the command line asks for. */
struct request {
	struct stfs_mount_options options;
	const char *source;
	const char *mountpoint; /* NULL: ./LABEL */
	bool foreground, debug, help;
};

STFS_DEFINE_CLEANUP(struct stfs_log, stfs_log_free)

static void close_request(struct request *request)
{
	stfs_mount_options_fini(&request->options);
}

static int add_options(struct request *request, const char *text)
{
	struct stfs_diag diag = { 0 };
	int r = stfs_mount_options_parse(&request->options, text, &diag);

	if (r == -EINVAL)
		return stfs_usage_error(&stfs_cmd_mount, "%s", diag.text);
	return r < 0 ? stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(-r)) : STFS_EXIT_OK;
}

static int read_arguments(struct request *request, int argc, char **argv)
{
	struct stfs_args args;
	int row, code = STFS_EXIT_OK;

	stfs_args_init(&args, &stfs_cmd_mount, argc, argv);
	while (code == STFS_EXIT_OK && (row = stfs_args_next(&args)) >= 0) {
		request->help |= row == ROW_HELP;
		request->debug |= row == ROW_DEBUG;
		request->foreground |= row == ROW_FOREGROUND || row == ROW_DEBUG;
		if (row == ROW_OPTIONS)
			code = add_options(request, optarg);
	}
	if (code != STFS_EXIT_OK || row == STFS_ARGS_ERROR)
		return STFS_MAX(code, STFS_EXIT_USAGE);
	if (request->help)
		return STFS_EXIT_OK;
	if (optind >= argc)
		return stfs_usage_error(&stfs_cmd_mount, "the model to mount is missing");
	if (argc - optind > 2)
		return stfs_usage_error(&stfs_cmd_mount, "too many arguments: %s", QUOTED(argv[optind + 2]));
	request->source = argv[optind];
	request->mountpoint = argv[optind + 1];
	return STFS_EXIT_OK;
}

/* A mount on its way; everything is borrowed. */
struct mount {
	const struct request *request;
	const char *source; /* absolute; as the rest known once the model is open */
	struct stfs_mountpoint *mountpoint;
	struct stfs_workspace *workspace;
	struct stfs_log *log;
	int report_fd; /* where the parent listens; -1 in the foreground */
};

static int new_session(const struct mount *mount, struct stfs_session **ret_session)
{
	const struct stfs_mount_options *options = &mount->request->options;
	const struct stfs_session_config config = {
		.view = mount->workspace->view,
		.source = mount->source,
		.mountpoint = mount->mountpoint->path,
		.options = options->fuse.data,
		.direct_io = options->direct_io,
		.max_read = options->max_read,
		.debug = mount->request->debug,
		.log = mount->log,
	};
	int r = stfs_session_new(&config, ret_session);

	if (r < 0)
		return stfs_exit_with(STFS_EXIT_OTHER, "cannot set up FUSE: %s", strerror(-r));
	return STFS_EXIT_OK;
}

/* Lets go of the terminal, so that whoever reads our output sees its end, and only then lets the parent return. */
static int go_ready(struct mount *mount)
{
	if (mount->report_fd >= 0) {
		int r = stfs_daemon_detach();

		if (r < 0)
			return stfs_exit_with(STFS_EXIT_OTHER, "cannot go into the background: %s", strerror(-r));
		stfs_session_log_to_syslog();
	}
	stfs_log(mount->log, STFS_LOG_INFO, "mounted %s at %s%s", QUOTED(mount->source),
		 QUOTED(mount->mountpoint->path),
		 mount->workspace->state == STFS_WORKSPACE_WRITABLE ? "" : ", read-only");
	stfs_daemon_report(&mount->report_fd, STFS_EXIT_OK);
	return STFS_EXIT_OK;
}

static int serve_session(struct mount *mount)
{
	_cleanup_(stfs_session_freep) struct stfs_session *session = NULL;
	struct stfs_diag diag = { 0 };
	int code = new_session(mount, &session);
	int r;

	if (code != STFS_EXIT_OK)
		return code;
	if (stfs_mountpoint_lock(mount->mountpoint, &diag) < 0)
		return stfs_exit_with(STFS_EXIT_MOUNTPOINT, "%s", diag.text);
	r = stfs_session_mount(session, &diag);
	if (r < 0)
		return stfs_exit_with(STFS_EXIT_FUSE, "%s", diag.text);
	stfs_mountpoint_share(mount->mountpoint);
	code = go_ready(mount);
	if (code != STFS_EXIT_OK)
		return code;
	r = stfs_session_run(session);
	if (r < 0)
		stfs_log(mount->log, STFS_LOG_ERROR, "the mount at %s ended: %s", QUOTED(mount->mountpoint->path),
			 strerror(-r));
	return r < 0 ? STFS_EXIT_OTHER : STFS_EXIT_OK;
}

/* Returns when the mount is gone. What is staged stays for the next one. */
static int serve(struct mount *mount)
{
	struct stfs_view *view = mount->workspace->view;
	int code = serve_session(mount), r;

	r = stfs_view_sync(view);
	if (r < 0) {
		stfs_log(mount->log, STFS_LOG_ERROR, "what is staged cannot be made durable: %s", strerror(-r));
		code = STFS_MAX(code, STFS_EXIT_OTHER);
	}
	stfs_view_tidy(view);
	/* Before the mountpoint: who waits for that to be free may edit the model at once. */
	stfs_workspace_fini(mount->workspace);
	return code;
}

/* The mountpoint must hide neither the source, which was looked at already, nor what is staged for it. */
static int check_stage(const struct mount *mount)
{
	const char *stage = mount->request->options.stage, *point = mount->mountpoint->path;
	_cleanup_free_ char *anchored = NULL, *resolved = stage ? realpath(stage, NULL) : NULL;

	if (!stage || stfs_path_anchor(stage, &anchored) < 0)
		return STFS_EXIT_OK;
	if (!stfs_path_is_within(anchored, point) && !(resolved && stfs_path_is_within(resolved, point)))
		return STFS_EXIT_OK;
	return stfs_exit_with(STFS_EXIT_MOUNTPOINT, "the mountpoint %s would hide the staging area %s", QUOTED(point),
			      QUOTED(stage));
}

/* Tells those who look at the lock where the model is mounted. */
static int name_holder(const struct mount *mount)
{
	_cleanup_free_ char *holder = NULL;
	int r = asprintf(&holder, "mounted at %s", mount->mountpoint->path) < 0 ? -ENOMEM : 0;

	if (r == 0)
		r = stfs_view_set_holder(mount->workspace->view, holder);
	return r < 0 ? stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(-r)) : STFS_EXIT_OK;
}

/* Says why a mount is read-only though nobody asked for it. */
static void explain_state(const struct mount *mount)
{
	const struct stfs_workspace *workspace = mount->workspace;
	const char *source = mount->request->source;
	_cleanup_free_ char *text = NULL, *point = NULL;
	int n = 0;

	switch (workspace->state) {
	case STFS_WORKSPACE_WRITABLE:
	case STFS_WORKSPACE_READ_ONLY:
	case STFS_WORKSPACE_UNFIT:
		return;
	case STFS_WORKSPACE_STALE:
		n = asprintf(
			&text,
			"mounted read-only: %s; nothing is lost: 'safetensorsfs discard %s' drops them, 'safetensorsfs commit "
			"-o stage=DIR --output PATH' with the version they were made for, under its old file name, takes them",
			workspace->why.text, QUOTED(source));
		break;
	case STFS_WORKSPACE_HELD:
		if (stfs_mountinfo_find_writable(source, &point) == 0) {
			n = asprintf(&text, "mounted read-only: it is edited at %s", QUOTED(point));
			break;
		}
		__attribute__((fallthrough));
	default:
		n = asprintf(&text, "mounted read-only: %s", workspace->why.text);
		break;
	}
	if (n < 0)
		return;
	stfs_log(mount->log, STFS_LOG_WARNING, "%s: %s", QUOTED(source), text);
	/* In the foreground the log is on stderr. */
	if (!mount->request->foreground)
		fprintf(stderr, "safetensorsfs: %s: warning: %s\n", QUOTED(source), text);
}

static int serve_at_mountpoint(struct mount *mount)
{
	const struct request *request = mount->request;
	_cleanup_mountpoint_ struct stfs_mountpoint mountpoint = { .lock_fd = -1 };
	_cleanup_free_ char *source = NULL;
	struct stfs_diag diag = { 0 };
	int r = stfs_path_anchor(request->source, &source), code;

	if (r < 0)
		return stfs_exit_with(STFS_EXIT_SOURCE, "%s: %s", QUOTED(request->source), strerror(-r));
	r = stfs_mountpoint_prepare(request->mountpoint, stfs_view_model(mount->workspace->view)->label, source,
				    &mountpoint, &diag);
	if (r < 0)
		return stfs_exit_with(r == -ENOMEM ? STFS_EXIT_OTHER : STFS_EXIT_MOUNTPOINT, "%s",
				      *diag.text ? diag.text : strerror(-r));
	mount->source = source;
	mount->mountpoint = &mountpoint;
	code = check_stage(mount);
	if (code == STFS_EXIT_OK)
		code = name_holder(mount);
	if (code != STFS_EXIT_OK)
		return code;
	explain_state(mount);
	return serve(mount);
}

static int open_workspace(const struct mount *mount, struct stfs_workspace *ret)
{
	const struct stfs_mount_options *asked = &mount->request->options;
	const struct stfs_workspace_options options = {
		.model = asked->model,
		.view = asked->view,
		.stage = asked->stage,
		.holder = "safetensorsfs mount",
		.stays = stfs_mounted_stays,
		.read_only = asked->read_only,
		.create = asked->create,
		.log = mount->log,
		.os = stfs_os_real(),
	};
	struct stfs_findings findings;
	int r;

	/* The first violation decides; the rest is for `check`. */
	stfs_findings_init(&findings, stderr, 1, MAX_WARNINGS);
	r = stfs_workspace_open(mount->request->source, &options, &findings.report, ret);
	stfs_findings_finish(&findings);
	if (r < 0 && findings.report.violations == 0)
		return stfs_exit_with(stfs_exit_of_open(r), "%s: %s", QUOTED(mount->request->source), strerror(-r));
	if (r == 0 && ret->state == STFS_WORKSPACE_UNUSABLE && asked->stage)
		return stfs_exit_with(STFS_EXIT_OTHER, "%s", ret->why.text);
	return (int)stfs_exit_of_open(r);
}

/* Opens the model, then chooses the mountpoint: a source that is no good leaves no directory behind. */
static int mount_model(const struct request *request, int report_fd)
{
	_cleanup_(stfs_log_freep) struct stfs_log *log = NULL;
	_cleanup_workspace_ struct stfs_workspace workspace = { 0 };
	struct mount mount = { .request = request, .workspace = &workspace, .report_fd = report_fd };
	int r = stfs_log_new("safetensorsfs", !request->foreground, &log), code;

	if (r < 0) {
		code = stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(-r));
	} else {
		mount.log = log;
		code = open_workspace(&mount, &workspace);
	}
	if (code == STFS_EXIT_OK) {
		/* What cannot be shown is nobody's to keep from being discarded. */
		stfs_stage_free(stfs_steal(workspace.stage));
		code = serve_at_mountpoint(&mount);
	}
	stfs_daemon_report(&mount.report_fd, code);
	return code;
}

/* The daemon opens the model itself: its lock is to be seen as the daemon's, and to end with it. */
static int mount_source(const struct request *request)
{
	int fd = -1, r;

	if (request->foreground)
		return mount_model(request, -1);
	r = stfs_daemon_fork(&fd);
	if (r < 0)
		return stfs_exit_with(STFS_EXIT_OTHER, "cannot start the daemon: %s", strerror(-r));
	if (r == STFS_FORK_CHILD)
		return mount_model(request, fd);
	return fd < 0 ? stfs_exit_with(STFS_EXIT_OTHER, "the daemon died before the mount was ready") : fd;
}

static int run_mount(int argc, char **argv)
{
	_cleanup_(close_request) struct request request = { 0 };
	int code = read_arguments(&request, argc, argv);

	if (code != STFS_EXIT_OK)
		return code;
	return request.help ? stfs_print_command_help(&stfs_cmd_mount) : mount_source(&request);
}

static void print_mount_options(FILE *out)
{
	struct stfs_option_help lines[] = { { NULL, NULL }, { NULL, NULL } };

	fputs("\nMount options (-o):\n", out);
	for (size_t i = 0; stfs_mount_option_help(i, &lines[0].name, &lines[0].text); i++)
		stfs_print_options(out, lines);
}

const struct stfs_command stfs_cmd_mount = {
	.name = "mount",
	.usage = "[mount] SOURCE [MOUNTPOINT] [-o OPTIONS] [-f]",
	.summary = "Mounts SOURCE, a .safetensors file or a directory of shards",
	.options = mount_rows,
	.print_more = print_mount_options,
	.notes = "Without MOUNTPOINT a directory named after the model is made where you are, and removed when it is\n"
		 "unmounted. The command returns when the mount can be used; 'safetensorsfs umount' ends it.\n",
	.run = run_mount,
};
