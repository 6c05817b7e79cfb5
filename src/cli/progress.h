/* SPDX-License-Identifier: Apache-2.0 */
/* A bar on the terminal that shows how far a copy is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Embedded. It is drawn on stderr, in one line that goes away at the end. */
struct stfs_progress {
	bool shown; /* stderr is a terminal, and nobody asked for quiet */
	bool drawn;
	unsigned columns;
	struct timespec start, last;
};

/* Starts the clock. With `quiet`, or without a terminal, nothing is ever drawn. */
void stfs_progress_init(struct stfs_progress *progress, bool quiet);

/* Tells how many bytes of `total` are done; draws a few times a second. */
void stfs_progress_update(struct stfs_progress *progress, uint64_t done, uint64_t total);

/* Takes the bar away. */
void stfs_progress_fini(struct stfs_progress *progress);
