/* SPDX-License-Identifier: Apache-2.0 */
/* Typed scope cleanup: a resource is released when its variable leaves scope, unless it was handed over ("stolen"). */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))

static inline void stfs_freep(void *p)
{
	free(*(void **)p);
}

/* Closes and resets to -1; errno is kept, so that it can run after a failure. */
static inline void stfs_closep(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;

		close(*fd);
		errno = saved;
	}
	*fd = -1;
}

#define _cleanup_free_ _cleanup_(stfs_freep)
#define _cleanup_close_ _cleanup_(stfs_closep)

/* Hand a pointer over: yields its value and leaves NULL behind. */
#define stfs_steal(ptr)                       \
	({                                    \
		__typeof__(ptr) *_p = &(ptr); \
		__typeof__(ptr) _v = *_p;     \
		*_p = NULL;                   \
		_v;                           \
	})

/* Hand a file descriptor over: yields its value and leaves -1 behind. */
static inline int stfs_steal_fd(int *fd)
{
	int v = *fd;

	*fd = -1;
	return v;
}

/* Defines NAME##p, a cleanup function for a pointer whose destructor takes NULL. */
#define STFS_DEFINE_CLEANUP(type, destructor)      \
	static inline void destructor##p(type **p) \
	{                                          \
		if (*p)                            \
			destructor(*p);            \
	}
