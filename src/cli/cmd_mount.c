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
#include "model.h"
#include "mountpoint.h"
#include "options.h"
#include "path.h"
#include "quote.h"
#include "session.h"
#include "view.h"

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

static int open_model(const struct request *request, struct stfs_model **ret_model)
{
	struct stfs_findings findings;
	int r;

	/* The first violation decides; the rest is for `check`. */
	stfs_findings_init(&findings, stderr, 1, MAX_WARNINGS);
	r = stfs_model_open(request->source, &request->options.model, &findings.report, ret_model);
	stfs_findings_finish(&findings);
	if (r < 0 && findings.report.violations == 0)
		return stfs_exit_with(stfs_exit_of_open(r), "%s: %s", QUOTED(request->source), strerror(-r));
	return (int)stfs_exit_of_open(r);
}

/* A mount on its way; everything is borrowed but what `serve` takes over. */
struct mount {
	const struct request *request;
	const char *source; /* absolute */
	struct stfs_mountpoint *mountpoint;
	struct stfs_log *log;
	int report_fd; /* where the parent listens; -1 in the foreground */
};

static int new_session(const struct mount *mount, struct stfs_view *view, struct stfs_session **ret_session)
{
	const struct stfs_mount_options *options = &mount->request->options;
	const struct stfs_session_config config = {
		.view = view,
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
	stfs_log(mount->log, STFS_LOG_INFO, "mounted %s at %s", QUOTED(mount->source), QUOTED(mount->mountpoint->path));
	stfs_daemon_report(&mount->report_fd, STFS_EXIT_OK);
	return STFS_EXIT_OK;
}

static int serve_view(struct mount *mount, struct stfs_view *view)
{
	_cleanup_(stfs_session_freep) struct stfs_session *session = NULL;
	struct stfs_diag diag = { 0 };
	int code = new_session(mount, view, &session);
	int r;

	if (code != STFS_EXIT_OK)
		return code;
	stfs_mountpoint_lock(mount->mountpoint);
	r = stfs_session_mount(session, &diag);
	if (r < 0)
		return stfs_exit_with(STFS_EXIT_FUSE, "%s", diag.text);
	code = go_ready(mount);
	if (code != STFS_EXIT_OK)
		return code;
	r = stfs_session_run(session);
	if (r < 0)
		stfs_log(mount->log, STFS_LOG_ERROR, "the mount at %s ended: %s", QUOTED(mount->mountpoint->path),
			 strerror(-r));
	return r < 0 ? STFS_EXIT_OTHER : STFS_EXIT_OK;
}

/* Takes `model` over. Returns when the mount is gone. */
static int serve(struct mount *mount, struct stfs_model *model)
{
	_cleanup_(stfs_view_freep) struct stfs_view *view = NULL;
	struct stfs_diag diag = { 0 };
	int r = stfs_view_new(model, &mount->request->options.view, mount->log, &diag, &view);

	if (r < 0)
		return stfs_exit_with(stfs_exit_of_open(r), "%s", *diag.text ? diag.text : strerror(-r));
	return serve_view(mount, view);
}

/* The parent's half of going into the background. */
static int answer_for_child(struct stfs_mountpoint *mountpoint, int reported)
{
	mountpoint->made = false; /* the child's to remove */
	if (reported < 0)
		return stfs_exit_with(STFS_EXIT_OTHER, "the daemon died before the mount was ready");
	return reported;
}

static int run_model(const struct request *request, const char *source, struct stfs_model *model,
		     struct stfs_mountpoint *mountpoint)
{
	_cleanup_(stfs_log_freep) struct stfs_log *log = NULL;
	_cleanup_(stfs_model_freep) struct stfs_model *owned = model;
	struct mount mount = {
		.request = request,
		.source = source,
		.mountpoint = mountpoint,
		.report_fd = -1,
	};
	int r, code, fd = -1;

	if (!request->foreground) {
		r = stfs_daemon_fork(&fd);
		if (r < 0)
			return stfs_exit_with(STFS_EXIT_OTHER, "cannot start the daemon: %s", strerror(-r));
		if (r == STFS_FORK_PARENT)
			return answer_for_child(mountpoint, fd);
	}
	mount.report_fd = fd;
	r = stfs_log_new("safetensorsfs", !request->foreground, &log);
	if (r < 0)
		code = stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(-r));
	else {
		mount.log = log;
		code = serve(&mount, stfs_steal(owned));
	}
	stfs_daemon_report(&mount.report_fd, code);
	return code;
}

/* Opens the model, then chooses the mountpoint: a source that is no good leaves no directory behind. */
static int mount_source(const struct request *request)
{
	_cleanup_mountpoint_ struct stfs_mountpoint mountpoint = { .lock_fd = -1 };
	_cleanup_(stfs_model_freep) struct stfs_model *model = NULL;
	_cleanup_free_ char *source = NULL;
	struct stfs_diag diag = { 0 };
	int code = open_model(request, &model);
	int r;

	if (code != STFS_EXIT_OK)
		return code;
	r = stfs_path_anchor(request->source, &source);
	if (r < 0)
		return stfs_exit_with(STFS_EXIT_SOURCE, "%s: %s", QUOTED(request->source), strerror(-r));
	r = stfs_mountpoint_prepare(request->mountpoint, model->label, source, &mountpoint, &diag);
	if (r < 0)
		return stfs_exit_with(r == -ENOMEM ? STFS_EXIT_OTHER : STFS_EXIT_MOUNTPOINT, "%s",
				      *diag.text ? diag.text : strerror(-r));
	return run_model(request, source, stfs_steal(model), &mountpoint);
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
	.summary = "Mounts SOURCE, a .safetensors file or a directory of shards, read-only",
	.options = mount_rows,
	.print_more = print_mount_options,
	.notes = "Without MOUNTPOINT a directory named after the model is made where you are, and removed when it is\n"
		 "unmounted. The command returns when the mount can be used; 'safetensorsfs umount' ends it.\n",
	.run = run_mount,
};
