/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that runs out: the program that links this has its allocator replaced, for all libraries it uses. A scenario is run
 * once for each allocation it makes, that one failing, or that one and all that follow it, as SQLite's tests do.
 *
 *	for (unsigned at = 1;; at++) {
 *		faulty_malloc_plant(FAULTY_MALLOC_ONCE, at);
 *		run();
 *		if (!faulty_malloc_lift())
 *			break;
 *	}
 *
 * Under a sanitizer, which has an allocator of its own, only calls of our own code fail and nothing is counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum faulty_malloc_how {
	FAULTY_MALLOC_ONCE, /* allocation number `at` fails */
	FAULTY_MALLOC_FROM, /* so does each one after it */
};

/* Whether allocations of this program can be made to fail at all. */
bool faulty_malloc_works(void);

/* Whether it is a sanitizer whose allocator is used. */
bool faulty_malloc_is_slow(void);

/* Lets allocation number `at` from here on fail, counted from 1; 0 is none of them. */
void faulty_malloc_plant(enum faulty_malloc_how how, unsigned at);

/* Ends that. Returns whether any failed. */
bool faulty_malloc_lift(void);

/* Allocations since the last plant. */
unsigned faulty_malloc_calls(void);

/* Pieces of memory that were handed out and not given back. */
size_t faulty_malloc_live(void);

/* Tells stderr from where the first allocation came that failed, as addresses for addr2line. */
void faulty_malloc_tell(void);
