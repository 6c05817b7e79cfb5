/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To be preloaded into a program under test: its allocations fail now and then, one in FAULTY_MALLOC_ONE_IN, from one SIGUSR2 to
 * the next; the file FAULTY_MALLOC_STATE says "on" or "off" then. Those of a hundred kilobytes and more never do: a thread
 * of libfuse that gets no buffer for requests ends the session.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE ((size_t)100000)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

/* A preloaded library has no object to hang these at. */
static atomic_bool failing;
static _Atomic uint32_t state = 1;
static unsigned one_in;
static const char *state_path;

static bool let_pass(size_t size)
{
	uint32_t step;

	if (!failing || size >= LARGE)
		return true;
	/* Any step of a linear congruence will do: threads share it, so that no run is like another. */
	step = state * 1664525 + 1013904223;
	state = step;
	if ((step >> 8) % one_in)
		return true;
	errno = ENOMEM;
	return false;
}

void *malloc(size_t size)
{
	return let_pass(size) ? __libc_malloc(size) : NULL;
}

void *calloc(size_t n, size_t size)
{
	return let_pass(size ? n * size : 0) ? __libc_calloc(n, size) : NULL;
}

void *realloc(void *p, size_t size)
{
	return size == 0 || let_pass(size) ? __libc_realloc(p, size) : NULL;
}

/* Says which it is now, for whoever sent the signal. */
static void toggle(int number)
{
	int saved = errno, fd;
	const char *text;

	(void)number;
	failing = !failing;
	text = failing ? "on" : "off";
	fd = open(state_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	(void)!write(fd, text, strlen(text));
	close(fd);
	errno = saved;
}

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("FAULTY_MALLOC_ONE_IN");

	one_in = text ? (unsigned)strtoul(text, NULL, 10) : 0;
	state_path = getenv("FAULTY_MALLOC_STATE");
	if (one_in && state_path)
		signal(SIGUSR2, toggle);
}
