/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commit_words.h"
#include "ops.h"
#include "path.h"
#include "quote.h"

#define PIECE_MIN 512 /* bytes that programs collect before they write, at the least: dd, others 4096 and more */

struct stfs_job {
	struct stfs_job *next;
	fuse_req_t req;
	struct stfs_handle *handle;        /* with a reference */
	size_t size;                       /* of the write, which is what its answer says */
	struct stfs_commit_options commit; /* borrows from the text */
	char text[];
};

void stfs_jobs_init(struct stfs_jobs *jobs)
{
	*jobs = (struct stfs_jobs){ .last = &jobs->first };
	pthread_mutex_init(&jobs->lock, NULL); /* neither can fail for plain ones */
	pthread_cond_init(&jobs->changed, NULL);
}

void stfs_jobs_launder(struct stfs_front *front)
{
	_cleanup_free_ fuse_ino_t *inos = NULL;
	size_t n = 0;

	/* Without memory for the list the pages come when the kernel likes. */
	if (stfs_handle_list_writable(front, &inos, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		fuse_lowlevel_notify_inval_inode(front->fuse, inos[i], 0, 0);
}

/* Collects findings as the text of `result`. */
static void collect_finding(void *user, enum stfs_severity severity, const char *file, const char *sentence)
{
	struct stfs_buf *text = user;

	(void)!stfs_buf_printf(text, "%s%s%s%s\n", severity == STFS_WARNING ? "warning: " : "", file ? file : "",
			       file ? ": " : "", sentence);
}

/* Who asked can be interrupted, and the mount can end. */
static int report_progress(void *user, uint64_t done, uint64_t total)
{
	const struct stfs_job *job = user;
	struct stfs_front *front = stfs_front_of(job->req);

	stfs_view_set_progress(front->view, done, total);
	return fuse_req_interrupted(job->req) || atomic_load(&front->closing);
}

static int append_bytes(struct stfs_buf *text, uint64_t bytes)
{
	return stfs_buf_printf(text, "%" PRIu64, bytes);
}

static int describe_commit(struct stfs_buf *text, const struct stfs_commit_result *result, bool dry_run)
{
	int r;

	if (result->nothing)
		return stfs_buf_append_str(text, "nothing is staged, and no file was written\n");
	if (dry_run)
		return stfs_buf_printf(text, "would write %u %s, %" PRIu64 " bytes\n", result->files,
				       result->files == 1 ? "file" : "files", result->bytes);
	r = stfs_buf_printf(text, "wrote %u %s, %" PRIu64 " bytes", result->files,
			    result->files == 1 ? "file" : "files", result->bytes);
	if (r == 0)
		r = stfs_copy_describe(&result->stats, append_bytes, text);
	if (r == 0)
		r = stfs_buf_printf(text, " in %.2f s\n", result->seconds);
	if (r == 0 && result->link_replaced)
		r = stfs_buf_append_str(
			text, "its link into a cache is a file of its own now, and the cached file was not touched "
			      "(--output PATH leaves both alone)\n");
	if (r == 0 && result->not_durable)
		r = stfs_buf_append_str(
			text, "warning: the folder could not be synced; a power cut now may undo the commit\n");
	return r;
}

/* A commit that wrote into its own mount would wait for itself. */
static bool is_inside(const struct stfs_front *front, const char *path)
{
	_cleanup_free_ char *anchored = NULL;

	return stfs_path_anchor(path, &anchored) == 0 && stfs_path_is_within(anchored, front->mountpoint);
}

static int run_commit(struct stfs_front *front, struct stfs_job *job, struct stfs_buf *text)
{
	struct stfs_commit_options options = job->commit;
	struct stfs_report report = { .emit = collect_finding, .user = text };
	struct stfs_commit_result result;
	int r;

	options.progress = report_progress;
	options.user = job;
	if (options.output && is_inside(front, options.output)) {
		(void)!stfs_buf_append_str(text, "the output cannot be made inside the mount that it is made from\n");
		return -EINVAL;
	}
	stfs_view_set_progress(front->view, 0, 0);
	/* What clients store in a map is only known here when it is written back. */
	stfs_jobs_launder(front);
	stfs_parking_close(front);
	r = stfs_view_commit(front->view, &options, &report, &result);
	stfs_parking_open(front);
	if (r == 0)
		(void)!describe_commit(text, &result, options.dry_run);
	stfs_view_end_progress(front->view);
	return r == -ECANCELED && fuse_req_interrupted(job->req) ? -EINTR : r;
}

static int discard_one(struct stfs_front *front, struct stfs_slice path, struct stfs_buf *text)
{
	struct stfs_diag diag = { 0 };
	int r;

	while (path.len && path.p[0] == '/')
		path = (struct stfs_slice){ path.p + 1, path.len - 1 };
	r = stfs_view_discard(front->view, path, &diag);
	if (r < 0)
		(void)!stfs_buf_printf(text, "%s: %s\n", path.len ? stfs_quote(path).text : "all",
				       *diag.text   ? diag.text :
				       r == -ENOENT ? "there is nothing of that path" :
						      strerror(-r));
	return r;
}

/* "all", or paths, one a line. */
static int run_discard(struct stfs_front *front, struct stfs_job *job, struct stfs_buf *text)
{
	unsigned n = 0;
	int error = 0;

	stfs_jobs_launder(front);
	for (char *rest = job->text, *line; (line = strsep(&rest, "\n"));) {
		int r;

		if (!*line)
			continue;
		r = discard_one(front, stfs_slice_of(strcmp(line, "all") == 0 ? "" : line), text);
		n += r == 0;
		if (error == 0)
			error = r;
	}
	(void)!stfs_buf_printf(text, "discarded what was staged at %u %s\n", n, n == 1 ? "place" : "places");
	return error;
}

static void run_job(struct stfs_front *front, struct stfs_job *job)
{
	_cleanup_buf_ struct stfs_buf text = { 0 };
	bool commits = job->handle->control == STFS_CONTROL_COMMIT;
	int r = commits ? run_commit(front, job, &text) : run_discard(front, job, &text);

	stfs_view_set_result(front->view, stfs_buf_slice(&text));
	stfs_handle_set_answer(front, job->handle, stfs_buf_slice(&text));
	stfs_log(front->log, r < 0 ? STFS_LOG_WARNING : STFS_LOG_INFO, "%s: %s", commits ? "commit" : "discard",
		 r < 0 ? strerror(-r) : "done");
	/* Whoever asked sees the new state at once. */
	stfs_notifier_drain(&front->notifier);
	if (r < 0)
		stfs_reply(job->req, r);
	else
		fuse_reply_write(job->req, job->size);
}

static void free_job(struct stfs_front *front, struct stfs_job *job)
{
	stfs_handle_unref(front, job->handle);
	free(job);
}

/* The next job, or NULL at the end. */
static struct stfs_job *take_job(struct stfs_jobs *jobs)
{
	struct stfs_job *job;

	pthread_mutex_lock(&jobs->lock);
	while (!jobs->first && !jobs->stop)
		pthread_cond_wait(&jobs->changed, &jobs->lock);
	job = jobs->first;
	if (job) {
		jobs->first = job->next;
		if (!jobs->first)
			jobs->last = &jobs->first;
	}
	pthread_mutex_unlock(&jobs->lock);
	return job;
}

static void *work(void *arg)
{
	struct stfs_front *front = arg;
	struct stfs_job *job;

	while ((job = take_job(&front->jobs))) {
		if (atomic_load(&front->closing))
			stfs_reply(job->req, -ENOTCONN);
		else
			run_job(front, job);
		free_job(front, job);
	}
	return NULL;
}

int stfs_jobs_start(struct stfs_front *front)
{
	struct stfs_jobs *jobs = &front->jobs;
	int error = pthread_create(&jobs->thread, NULL, work, front);

	jobs->started = error == 0;
	return -error;
}

/*
 * Judges paths by how they are written. Programs that write a long list do so in pieces, which end anywhere, and half a path can
 * be that of something else. A line without an end is taken for a whole one only in a short list, and if it is the last.
 */
static int check_lines(struct stfs_job *job)
{
	bool ends = job->size && job->text[job->size - 1] == '\n';

	if (job->size == strspn(job->text, "\n") || atomic_load(&job->handle->cut))
		return -EINVAL;
	atomic_store(&job->handle->cut, !ends);
	return ends || job->size < PIECE_MIN ? 0 : -EINVAL;
}

/* Reads what was written to a control file. Files are made elsewhere for nobody but the owner of the mount. */
static int read_words(struct stfs_job *job)
{
	uid_t uid = fuse_req_ctx(job->req)->uid;
	int r;

	if (memchr(job->text, '\0', job->size))
		return -EINVAL;
	if (job->handle->control != STFS_CONTROL_COMMIT)
		return check_lines(job);
	r = stfs_commit_words_parse(job->text, &job->commit);
	return r == 0 && job->commit.output && uid != 0 && uid != geteuid() ? -EPERM : r;
}

void stfs_jobs_add(struct stfs_front *front, fuse_req_t req, struct stfs_handle *handle, const char *data, size_t size)
{
	struct stfs_jobs *jobs = &front->jobs;
	struct stfs_job *job = malloc(sizeof(*job) + size + 1);
	int r = job ? 0 : -ENOMEM;

	if (r == 0) {
		*job = (struct stfs_job){ .req = req, .handle = handle, .size = size };
		stfs_handle_ref(handle);
		/* What was read there before is of other words. */
		stfs_handle_set_answer(front, handle, (struct stfs_slice){ 0 });
		memcpy(job->text, data, size);
		job->text[size] = '\0';
		r = read_words(job);
	}
	if (r == 0) {
		pthread_mutex_lock(&jobs->lock);
		r = jobs->stop ? -ENOTCONN : 0;
		if (r == 0) {
			*jobs->last = job;
			jobs->last = &job->next;
			pthread_cond_signal(&jobs->changed);
		}
		pthread_mutex_unlock(&jobs->lock);
	}
	if (r < 0) {
		if (job)
			free_job(front, job);
		stfs_reply(req, r);
	}
}

void stfs_jobs_stop(struct stfs_jobs *jobs)
{
	if (!jobs->started)
		return;
	pthread_mutex_lock(&jobs->lock);
	jobs->stop = true;
	pthread_cond_signal(&jobs->changed);
	pthread_mutex_unlock(&jobs->lock);
	pthread_join(jobs->thread, NULL);
	jobs->started = false;
}

void stfs_jobs_fini(struct stfs_jobs *jobs)
{
	stfs_jobs_stop(jobs);
	pthread_cond_destroy(&jobs->changed);
	pthread_mutex_destroy(&jobs->lock);
}
