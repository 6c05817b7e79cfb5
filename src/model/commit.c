/* SPDX-License-Identifier: Apache-2.0 */
/* What commits of all kinds begin and end with. */
#include "commit.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "commit_private.h"
#include "view_publish.h"

static double seconds_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

static void committing_fini(struct stfs_committing *c)
{
	stfs_commit_steps_fini(&c->steps);
	stfs_plan_free(c->plan);
	stfs_changes_free(c->changes);
	stfs_snapshot_unref(c->built);
}

/* Stops edits. A read-only view has none, and may only write elsewhere. */
static int freeze(struct stfs_committing *c)
{
	int r = c->view->stage || !c->options->output ? stfs_view_freeze(c->view) : 0;

	if (r == -EBUSY)
		stfs_violation(c->report, "another commit is running");
	else if (r < 0)
		stfs_violation(c->report, "nothing can be committed here: it is open for reading only");
	return r;
}

/* What can be said against a commit before it is planned. */
static int judge(struct stfs_committing *c)
{
	if (c->options->output)
		return 0;
	if (c->options->plan.reshape && (c->model->n_files || c->model->new_name)) {
		stfs_violation(c->report, "a model is divided into other files only at another place");
		return -EINVAL;
	}
	/* Its index would forget the tensors that are not here. */
	if (c->model->damaged) {
		stfs_violation(c->report, "parts of the model are missing: it can only be written to another place");
		return -EINVAL;
	}
	return 0;
}

static int make_plan(struct stfs_committing *c, int dir_fd)
{
	struct stfs_plan_options options = c->options->plan;
	int r = stfs_changes_collect(c->view, &c->changes);

	if (r < 0)
		return stfs_commit_fail(c, r, "what is staged cannot be read");
	c->clones = stfs_commit_can_clone(c, dir_fd);
	options.all |= c->options->output != NULL;
	if (!options.new_name)
		options.new_name = c->model->new_name;
	/* Sorting is for those who want the reference writer's bytes. */
	options.keep_offset |= c->clones && !options.sort;
	r = stfs_plan_make(c->model, c->changes, &options, c->report, &c->plan);
	if (r == 0 && c->plan->index_name.len && c->changes->n_tensors == 0) {
		stfs_violation(c->report, "no tensor would be left, and an index without one names no file");
		return -EINVAL;
	}
	return r;
}

/* What a dry run tells. */
static void count_plan(struct stfs_committing *c)
{
	for (uint32_t i = 0; i < c->plan->n_files; i++)
		c->result.files += c->plan->files[i].changed;
	c->result.files += c->plan->index_name.len != 0;
	c->result.bytes = c->plan->bytes;
}

static int carry_out(struct stfs_committing *c)
{
	_cleanup_(stfs_commit_output_fini) struct stfs_commit_output output = { .dir_fd = -1 };
	const struct stfs_commit_options *options = c->options;
	int r = judge(c), dir_fd = c->model->dir_fd;

	if (r == 0)
		r = stfs_commit_check_sources(c, !options->output);
	if (r == 0 && options->output)
		r = stfs_commit_open_output(c, &output);
	if (r < 0)
		return r;
	if (options->output)
		dir_fd = output.dir_fd;
	r = make_plan(c, dir_fd);
	if (r < 0)
		return r;
	c->result.nothing = !options->output && !options->plan.sort && c->changes->n_changed == 0;
	if (c->result.nothing)
		return 0;
	r = stfs_commit_check_space(c, dir_fd);
	if (r == 0 && options->dry_run)
		count_plan(c);
	if (r < 0 || options->dry_run)
		return r;
	return options->output ? stfs_commit_write_output(c, &output) : stfs_commit_in_place(c);
}

static void sum_stats(struct stfs_committing *c)
{
	c->result.stats = (struct stfs_copy_stats){
		.cloned = c->run_stats.cloned + c->staged_stats.cloned,
		.in_kernel = c->run_stats.in_kernel + c->staged_stats.in_kernel,
		.buffered = c->run_stats.buffered + c->staged_stats.buffered,
		.holes = c->run_stats.holes + c->staged_stats.holes,
		.no_clone = c->run_stats.no_clone,
		.no_in_kernel = c->run_stats.no_in_kernel,
	};
}

int stfs_view_commit(struct stfs_view *view, const struct stfs_commit_options *options, struct stfs_report *report,
		     struct stfs_commit_result *ret)
{
	_cleanup_(committing_fini) struct stfs_committing c = {
		.view = view,
		.options = options,
		.report = report,
		.os = view->stage ? stfs_stage_os(view->stage) : stfs_os_real(),
	};
	const char *caller_file = report->file;
	uint64_t before = report->violations;
	struct timespec start;
	int r;

	clock_gettime(CLOCK_MONOTONIC, &start);
	r = freeze(&c);
	if (r == 0) {
		c.model = view->model; /* not before: a commit that ends puts another in its place */
		report->file = c.model->name;
		r = carry_out(&c);
		if (view->stage)
			stfs_view_thaw(view);
	}
	/* Not without a sentence. */
	if (r < 0 && report->violations == before)
		stfs_violation(report, r == -ECANCELED ? "the commit was stopped" : "the commit failed: %s",
			       strerror(-r));
	report->file = caller_file;
	if (r < 0)
		return r;
	sum_stats(&c);
	c.result.seconds = seconds_since(&start);
	*ret = c.result;
	return 0;
}
