/* SPDX-License-Identifier: Apache-2.0 */
#include "faulty_malloc.h"

#include <errno.h>
#include <execinfo.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * FAULTY_WRAP: the linker sends the calls of our own objects here (--wrap). Otherwise these are the process's malloc and its
 * kin, as glibc allows it, and the real ones are those of the C library by their other names.
 */
#ifdef FAULTY_WRAP
#define OURS(name) __wrap_##name
#define REAL(name) __real_##name
#else
#define OURS(name) name
#define REAL(name) __libc_##name
#endif

void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t n, size_t size);
void *REAL(realloc)(void *p, size_t size);
void REAL(free)(void *p);

void *OURS(malloc)(size_t size);
void *OURS(calloc)(size_t n, size_t size);
void *OURS(realloc)(void *p, size_t size);
void OURS(free)(void *p);

#define FRAMES_MAX 32

/* An allocator has no object to hang these at. */
static enum faulty_malloc_how planted_how;
static atomic_uint planted_at, n_calls, n_failed;
static atomic_size_t n_live;
static void *frames[FRAMES_MAX];
static int n_frames;

/* Counts an allocation. Returns false when it is to fail. */
static bool let_pass(void)
{
	unsigned number = ++n_calls, at = planted_at;

	if (at == 0 || (planted_how == FAULTY_MALLOC_ONCE ? number != at : number < at))
		return true;
	if (n_failed++ == 0) {
		planted_at = 0; /* what this allocates itself */
		n_frames = backtrace(frames, FRAMES_MAX);
		planted_at = at;
	}
	errno = ENOMEM;
	return false;
}

static void *count(void *p)
{
	if (p)
		n_live++;
	return p;
}

void *OURS(malloc)(size_t size)
{
	return let_pass() ? count(REAL(malloc)(size)) : NULL;
}

void *OURS(calloc)(size_t n, size_t size)
{
	return let_pass() ? count(REAL(calloc)(n, size)) : NULL;
}

void *OURS(realloc)(void *p, size_t size)
{
	void *moved;

	if (!p)
		return OURS(malloc)(size);
	if (size && !let_pass())
		return NULL;
	moved = REAL(realloc)(p, size);
	if (!size && !moved)
		n_live--;
	return moved;
}

void OURS(free)(void *p)
{
	if (p)
		n_live--;
	REAL(free)(p);
}

#ifdef FAULTY_WRAP

/* What the C library allocates for its callers. */

void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
char *__wrap_realpath(const char *path, char *resolved);
int __wrap_asprintf(char **ret, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void *__real_reallocarray(void *p, size_t n, size_t size);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
char *__real_realpath(const char *path, char *resolved);

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return let_pass() ? __real_reallocarray(p, n, size) : NULL;
}

char *__wrap_strdup(const char *s)
{
	return let_pass() ? __real_strdup(s) : NULL;
}

char *__wrap_strndup(const char *s, size_t n)
{
	return let_pass() ? __real_strndup(s, n) : NULL;
}

char *__wrap_realpath(const char *path, char *resolved)
{
	return let_pass() ? __real_realpath(path, resolved) : NULL;
}

int __wrap_asprintf(char **ret, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (!let_pass())
		return -1;
	va_start(ap, fmt);
	n = vasprintf(ret, fmt, ap);
	va_end(ap);
	return n;
}

#else

void *__libc_memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size);

void *memalign(size_t alignment, size_t size)
{
	return let_pass() ? count(__libc_memalign(alignment, size)) : NULL;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	void *p = memalign(alignment, size);

	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}

#endif

bool faulty_malloc_works(void)
{
	void *frame, *p;

	/* What it loads for the first time is loaded now. */
	(void)backtrace(&frame, 1);
	faulty_malloc_plant(FAULTY_MALLOC_ONCE, 1);
	p = strdup("something");
	free(p);
	return faulty_malloc_lift() && !p;
}

bool faulty_malloc_is_slow(void)
{
#ifdef FAULTY_WRAP
	return true;
#else
	return false;
#endif
}

void faulty_malloc_plant(enum faulty_malloc_how how, unsigned at)
{
	planted_how = how;
	n_calls = n_failed = 0;
	n_frames = 0;
	planted_at = at;
}

bool faulty_malloc_lift(void)
{
	planted_at = 0;
	return n_failed > 0;
}

unsigned faulty_malloc_calls(void)
{
	return n_calls;
}

size_t faulty_malloc_live(void)
{
#ifdef FAULTY_WRAP
	return 0; /* the sanitizer looks for leaks itself */
#else
	return n_live;
#endif
}

void faulty_malloc_tell(void)
{
	backtrace_symbols_fd(frames, n_frames, STDERR_FILENO);
}
