/* SPDX-License-Identifier: Apache-2.0 */
#include "committing.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "findings.h"
#include "format_size.h"
#include "parse_size.h"
#include "progress.h"
#include "quote.h"
#include "stop_signals.h"

enum stfs_exit stfs_exit_of_commit(int error)
{
	switch (error) {
	case 0:
		return STFS_EXIT_OK;
	case -EINVAL:
	case -EFBIG:
		return STFS_EXIT_MODEL;
	case -ESTALE:
		return STFS_EXIT_SOURCE;
	case -EBUSY:
	case -EAGAIN:
	case -ENOTCONN: /* a mount whose daemon is dead */
		return STFS_EXIT_MOUNTPOINT;
	default:
		return STFS_EXIT_OTHER;
	}
}

int stfs_plan_option(const struct stfs_args *args, int row, struct stfs_plan_options *plan)
{
	const char *name = args->command->options[row].name;

	if (strcmp(name, "--sort") == 0) {
		plan->sort = true;
	} else if (strcmp(name, "--single") == 0) {
		plan->reshape = true;
		plan->max_shard_size = 0;
	} else if (strcmp(name, "--max-shard-size SIZE") == 0) {
		plan->reshape = true;
		if (!stfs_parse_size(optarg, &plan->max_shard_size))
			return stfs_usage_error(args->command, "%s is no size such as 5GB or 500MB",
						stfs_quote(stfs_slice_of(optarg)).text);
	}
	return STFS_EXIT_OK;
}

/* A commit on its way. */
struct run {
	struct stfs_progress progress;
	struct stfs_findings findings;
	void (*print_finding)(void *user, enum stfs_severity severity, const char *file, const char *sentence);
};

/* A sentence needs a line of its own. */
static void on_finding(void *user, enum stfs_severity severity, const char *file, const char *sentence)
{
	struct run *run = user;

	stfs_progress_fini(&run->progress);
	run->print_finding(&run->findings, severity, file, sentence);
}

static void begin_run(struct run *run, bool quiet)
{
	stfs_findings_init(&run->findings, stderr, UINT64_MAX, UINT64_MAX);
	run->print_finding = run->findings.report.emit;
	run->findings.report.emit = on_finding;
	run->findings.report.user = run;
	stfs_progress_init(&run->progress, quiet);
}

/* Signals wait during a commit, and are asked for now and then: no handler, and no half-made file. */
static void hold_signals(sigset_t *ret_before)
{
	sigset_t set = stfs_stop_signals();

	sigprocmask(SIG_BLOCK, &set, ret_before);
}

static int on_progress(void *user, uint64_t done, uint64_t total)
{
	struct run *run = user;
	sigset_t pending;

	stfs_progress_update(&run->progress, done, total);
	sigpending(&pending);
	return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
	       sigismember(&pending, SIGHUP) == 1;
}

static int append_size(struct stfs_buf *text, uint64_t bytes)
{
	return stfs_buf_append_str(text, stfs_format_size(bytes).text);
}

static void print_result(const char *where, const struct stfs_commit_options *options,
			 const struct stfs_commit_result *result)
{
	const char *s = result->files == 1 ? "" : "s";
	_cleanup_buf_ struct stfs_buf ways = { 0 };

	if (result->nothing) {
		printf("%s: nothing is staged, and no file was written\n", where);
	} else if (options->dry_run) {
		printf("%s: would write %u file%s, %s\n", where, result->files, s,
		       stfs_format_size(result->bytes).text);
	} else {
		/* Without memory they are not told. */
		(void)!stfs_copy_describe(&result->stats, append_size, &ways);
		printf("%s: wrote %u file%s, %s%s in %.2f s\n", where, result->files, s,
		       stfs_format_size(result->bytes).text, ways.data ? ways.data : "", result->seconds);
	}
	if (result->link_replaced)
		printf("%s: its link into a cache is a file of its own now, and the cached file was not touched "
		       "(--output PATH leaves both alone)\n",
		       where);
}

/* A power cut right now may bring the old model back: not quite what was asked for, but the new one is there. */
static void warn_not_durable(const char *where)
{
	fprintf(stderr,
		"safetensorsfs: %s: warning: the folder could not be synced; a power cut now may undo the commit\n",
		where);
}

/* Runs it between the two. The model of the view may be another one afterwards. */
static int commit_held(struct stfs_view *view, const struct stfs_commit_options *options, bool quiet,
		       struct stfs_commit_result *result)
{
	struct stfs_commit_options own = *options;
	struct run run;
	int r;

	begin_run(&run, quiet);
	own.progress = on_progress;
	own.user = &run;
	r = stfs_view_commit(view, &own, &run.findings.report, result);
	stfs_progress_fini(&run.progress);
	stfs_findings_finish(&run.findings);
	return r;
}

int stfs_commit_run(struct stfs_view *view, const struct stfs_commit_options *options, bool quiet)
{
	const char *place = options->output ? options->output : stfs_view_model(view)->source;
	_cleanup_buf_ struct stfs_buf where = { 0 };
	struct stfs_commit_result result;
	sigset_t before;
	int r = stfs_append_printable(&where, stfs_slice_of(place));

	if (r < 0)
		return stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(-r));
	hold_signals(&before);
	r = commit_held(view, options, quiet, &result);
	if (r == 0 && result.not_durable)
		warn_not_durable(where.data);
	if (r == 0 && !quiet)
		print_result(where.data, options, &result);
	/* A crash right after an edit began leaves a staging area with nothing in it. */
	if (r == 0 && result.nothing && !options->dry_run)
		stfs_view_tidy(view);
	fflush(stdout);
	/* What waited ends the process here. */
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r == 0 ? (int)stfs_finish_stdout() : (int)stfs_exit_of_commit(r);
}
