/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "format_size.h"
#include "macros.h"

#define FIRST_AFTER 0.3 /* seconds: what is quicker needs no bar */
#define EVERY 0.1       /* seconds */
#define BAR_MAX 60
#define COLUMNS_MAX 200

void stfs_progress_init(struct stfs_progress *progress, bool quiet)
{
	struct winsize size = { 0 };

	*progress = (struct stfs_progress){ .shown = !quiet && isatty(STDERR_FILENO) == 1, .columns = 80 };
	if (progress->shown && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		progress->columns = STFS_MIN(size.ws_col, COLUMNS_MAX);
	clock_gettime(CLOCK_MONOTONIC, &progress->start);
	progress->last = progress->start;
}

static double seconds_between(const struct timespec *from, const struct timespec *to)
{
	return (double)(to->tv_sec - from->tv_sec) + (double)(to->tv_nsec - from->tv_nsec) / 1e9;
}

/* "45%  6.5 GB of 14.5 GB  1.2 GB/s  0:07 left" */
static void format_figures(char *text, size_t size, uint64_t done, uint64_t total, double seconds)
{
	double rate = (double)done / seconds;
	uint64_t left = rate > 0 ? (uint64_t)((double)(total - done) / rate) : 0;

	snprintf(text, size, "%3.0f%%  %s of %s  %s/s  %" PRIu64 ":%02u left", 100.0 * (double)done / (double)total,
		 stfs_format_size(done).text, stfs_format_size(total).text, stfs_format_size((uint64_t)rate).text,
		 left / 60, (unsigned)(left % 60));
}

static void draw(const struct stfs_progress *progress, uint64_t done, uint64_t total, double seconds)
{
	char figures[COLUMNS_MAX + 1], bar[BAR_MAX + 1];
	size_t width, room, filled;

	format_figures(figures, sizeof(figures), done, total, seconds);
	width = strlen(figures);
	/* The last column stays free: some terminals would go on to the next line. */
	room = progress->columns > width + 5 ? STFS_MIN(progress->columns - width - 5, BAR_MAX) : 0;
	filled = (size_t)((double)done / (double)total * (double)room);
	memset(bar, '#', filled);
	memset(bar + filled, '.', room - filled);
	bar[room] = '\0';
	if (room > 0)
		fprintf(stderr, "\r[%s]  %s\033[K", bar, figures);
	else
		fprintf(stderr, "\r%.*s\033[K", (int)progress->columns - 1, figures);
	fflush(stderr);
}

void stfs_progress_update(struct stfs_progress *progress, uint64_t done, uint64_t total)
{
	struct timespec now;
	double seconds;

	if (!progress->shown || total == 0)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	seconds = seconds_between(&progress->start, &now);
	if (seconds < FIRST_AFTER || (progress->drawn && seconds_between(&progress->last, &now) < EVERY))
		return;
	draw(progress, STFS_MIN(done, total), total, seconds);
	progress->drawn = true;
	progress->last = now;
}

void stfs_progress_fini(struct stfs_progress *progress)
{
	if (progress->drawn)
		fputs("\r\033[K", stderr);
	progress->drawn = false;
}
