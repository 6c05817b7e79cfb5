/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the operating system that a signal may interrupt. */
#pragma once

#include <errno.h>

/* The value of `call`, made again as long as it is negative with EINTR. */
#define STFS_RETRY(call)                          \
	({                                        \
		__typeof__(call) _n;              \
		do                                \
			_n = (call);              \
		while (_n < 0 && errno == EINTR); \
		_n;                               \
	})
