/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of the operating system with a fault planted: a scenario is run once for each call it makes, that call
 * failing, cut short, or being the last thing the process did.
 *
 *	for (unsigned at = 1;; at++) {
 *		faulty_os_plant(&faulty, FAULTY_ONCE, at, EIO);
 *		run(&faulty.os);
 *		if (!faulty.fired)
 *			break;
 *	}
 */
#pragma once

#include <stdbool.h>

#include "os.h"

enum faulty_how {
	FAULTY_NONE,
	FAULTY_ONCE,      /* call number `at` fails with `error` */
	FAULTY_FROM,      /* so does each one after it */
	FAULTY_SHORT,     /* call number `at` does half of its bytes and says so; one without bytes is not hurt */
	FAULTY_KILL,      /* the process is killed instead of call number `at` */
	FAULTY_KILL_HALF, /* the same, but a write has done half of its bytes */
};

/* The kinds of calls, as bits: a fault can be kept to some of them. */
enum faulty_call {
	FAULTY_OPENAT = 1 << 0,
	FAULTY_PREAD = 1 << 1,
	FAULTY_PWRITE = 1 << 2,
	FAULTY_FTRUNCATE = 1 << 3,
	FAULTY_FALLOCATE = 1 << 4,
	FAULTY_FSYNC = 1 << 5,
	FAULTY_FDATASYNC = 1 << 6,
	FAULTY_RENAMEAT2 = 1 << 7,
	FAULTY_UNLINKAT = 1 << 8,
	FAULTY_MKDIRAT = 1 << 9,
	FAULTY_FCHMOD = 1 << 10,
	FAULTY_FCHOWN = 1 << 11,
	FAULTY_FSTAT = 1 << 12,
	FAULTY_CLONE_RANGE = 1 << 13,
	FAULTY_COPY_FILE_RANGE = 1 << 14,
	FAULTY_ANY = (1 << 15) - 1,
};

/* Embedded; must not be moved once initialised. Counters may be touched by several threads at once. */
struct faulty_os {
	struct stfs_os os; /* what to hand to the code under test */
	const struct stfs_os *below;
	enum faulty_how how;
	unsigned at; /* counted from 1 */
	int error;
	unsigned only;           /* the kinds of calls that count */
	_Atomic unsigned calls;  /* of those kinds, since the fault was planted */
	_Atomic unsigned fired;  /* how often the fault happened */
	_Atomic unsigned struck; /* kind of the call it last happened to */
};

/* Prepares a table that hands everything to `below` (borrowed) as long as no fault is planted. */
void faulty_os_init(struct faulty_os *faulty, const struct stfs_os *below);

/* Plants a fault in calls of any kind and sets the counters to zero. */
void faulty_os_plant(struct faulty_os *faulty, enum faulty_how how, unsigned at, int error);

/* The same, for the kinds of calls in `only`. */
void faulty_os_plant_in(struct faulty_os *faulty, unsigned only, enum faulty_how how, unsigned at, int error);

/* Name of a kind of calls, for messages. */
const char *faulty_call_name(unsigned call);

/* Number of descriptors the process has open: to find what a failure leaves open. */
unsigned faulty_open_fds(void);
