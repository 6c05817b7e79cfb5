/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds files, or all regular files of directories, to a fuzz target, so that its corpus is a test that needs no
 * fuzzer. A target that finds something traps. Fails too when there was nothing to feed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

#include "buf.h"
#include "cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_all(int fd, struct stfs_buf *buf)
{
	for (;;) {
		char chunk[65536];
		ssize_t n = read(fd, chunk, sizeof(chunk));
		int r;

		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		r = stfs_buf_append(buf, chunk, (size_t)n);
		if (r < 0)
			return r;
	}
}

static int replay_file(int fd)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };
	_cleanup_free_ uint8_t *exact = NULL;
	int r = read_all(fd, &buf);

	if (r < 0)
		return r;
	/* A copy without spare room behind it, for a sanitizer to see one byte too far. */
	exact = malloc(buf.len ? buf.len : 1);
	if (!exact)
		return -ENOMEM;
	if (buf.len)
		memcpy(exact, buf.data, buf.len);
	LLVMFuzzerTestOneInput(exact, buf.len);
	return 0;
}

/* Counts what was fed in *fed. Directories in a directory are left out. */
static int replay(int at, const char *path, bool descend, unsigned *fed)
{
	_cleanup_close_ int fd = openat(at, path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	struct dirent *entry;
	DIR *dir;
	int r = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode)) {
		++*fed;
		return replay_file(fd);
	}
	if (!S_ISDIR(st.st_mode) || !descend)
		return 0;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	fd = -1; /* the directory's now */
	while (r == 0 && (entry = readdir(dir)))
		r = replay(dirfd(dir), entry->d_name, false, fed);
	closedir(dir);
	return r;
}

int main(int argc, char **argv)
{
	unsigned fed = 0;

	for (int i = 1; i < argc; i++) {
		int r = replay(AT_FDCWD, argv[i], true, &fed);

		if (r < 0) {
			fprintf(stderr, "%s: %s\n", argv[i], strerror(-r));
			return EXIT_FAILURE;
		}
	}
	printf("%u inputs\n", fed);
	return fed ? EXIT_SUCCESS : EXIT_FAILURE;
}
