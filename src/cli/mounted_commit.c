/* SPDX-License-Identifier: Apache-2.0 */
#include "mounted_commit.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "committing.h"
#include "mounted.h"
#include "progress.h"
#include "quote.h"

#define POLL_MS 100
#define WARNING "warning: " /* how such a line of the result begins */
#define QUOTED(s) (stfs_quote(stfs_slice_of(s)).text)

/* The write does not return before the commit is over: a thread of its own waits for that. */
struct writing {
	const char *point, *line;
	struct stfs_buf answer;
	int result;
	atomic_bool over;
};

static void *write_line(void *arg)
{
	struct writing *writing = arg;

	writing->result = stfs_mounted_write(writing->point, "commit", stfs_slice_of(writing->line), &writing->answer);
	atomic_store(&writing->over, true);
	return NULL;
}

/* "commit DONE TOTAL" */
static void show_progress(const char *point, struct stfs_progress *progress)
{
	_cleanup_buf_ struct stfs_buf text = { 0 };
	uint64_t done, total;

	if (stfs_mounted_read(point, "progress", &text) == 0 && text.len &&
	    sscanf(text.data, "commit %" SCNu64 " %" SCNu64, &done, &total) == 2)
		stfs_progress_update(progress, done, total);
}

static void watch(struct writing *writing, bool quiet)
{
	const struct timespec step = { .tv_nsec = POLL_MS * 1000000L / 10 };
	struct stfs_progress progress;

	stfs_progress_init(&progress, quiet);
	/* Ten times as often as is drawn: most commits are over in no time. */
	for (unsigned i = 1; !atomic_load(&writing->over); i++) {
		nanosleep(&step, NULL);
		if (progress.shown && i % 10 == 0)
			show_progress(writing->point, &progress);
	}
	stfs_progress_fini(&progress);
}

/* Warnings are no part of what -q takes away. */
static int tell_done(const struct writing *writing, bool quiet)
{
	_cleanup_buf_ struct stfs_buf where = { 0 };
	char *rest, *line;
	int r = stfs_append_printable(&where, stfs_slice_of(writing->point));

	for (rest = r == 0 && writing->answer.len ? writing->answer.data : NULL; (line = strsep(&rest, "\n"));) {
		if (strncmp(line, WARNING, strlen(WARNING)) == 0)
			fprintf(stderr, "safetensorsfs: %s\n", line);
		else if (*line && !quiet)
			printf("%s: %s\n", where.data, line);
	}
	return (int)stfs_finish_stdout();
}

static int tell(struct writing *writing, bool quiet)
{
	enum stfs_exit code = stfs_exit_of_commit(writing->result);

	if (code == STFS_EXIT_OK)
		return tell_done(writing, quiet);
	if (stfs_mounted_complain(&writing->answer))
		return (int)code;
	return stfs_exit_with(code, "%s: the commit failed: %s", QUOTED(writing->point), strerror(-writing->result));
}

int stfs_mounted_commit(const char *point, const char *line, bool quiet)
{
	struct writing writing = { .point = point, .line = line };
	pthread_t thread;
	int r = pthread_create(&thread, NULL, write_line, &writing), code;

	if (r != 0)
		return stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(r));
	watch(&writing, quiet);
	pthread_join(thread, NULL);
	if (writing.result == -ENOENT && stfs_mounted_is_read_only(point))
		return stfs_exit_with(STFS_EXIT_MOUNTPOINT, "%s is mounted read-only: nothing can be committed there",
				      QUOTED(point));
	code = tell(&writing, quiet);
	stfs_buf_fini(&writing.answer);
	return code;
}
