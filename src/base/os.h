/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of the operating system that change something on disk, as a table: fault injection replaces it. All return what
 * the call returns, with errno set.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

struct stfs_os {
	void *user; /* handed to each call */
	int (*openat)(void *user, int dir_fd, const char *name, int flags, mode_t mode);
	ssize_t (*pread)(void *user, int fd, void *data, size_t len, off_t offset);
	ssize_t (*pwrite)(void *user, int fd, const void *data, size_t len, off_t offset);
	int (*ftruncate)(void *user, int fd, off_t size);
	int (*fallocate)(void *user, int fd, int mode, off_t offset, off_t len);
	int (*fsync)(void *user, int fd);
	int (*fdatasync)(void *user, int fd);
	int (*renameat2)(void *user, int old_dir, const char *old_name, int new_dir, const char *new_name,
			 unsigned flags);
	int (*unlinkat)(void *user, int dir_fd, const char *name, int flags);
	int (*mkdirat)(void *user, int dir_fd, const char *name, mode_t mode);
	int (*fchmod)(void *user, int fd, mode_t mode);
	int (*fchown)(void *user, int fd, uid_t uid, gid_t gid);
	int (*fstat)(void *user, int fd, struct stat *ret);
	int (*clone_range)(void *user, int to, uint64_t to_offset, int from, uint64_t from_offset, uint64_t len);
	ssize_t (*copy_file_range)(void *user, int from, off_t *from_offset, int to, off_t *to_offset, size_t len);
	/* Tells this boot of the machine from others: what an earlier one did not sync may be gone. 0 when it cannot be told. */
	uint64_t (*boot)(void *user);
	off_t (*lseek)(void *user, int fd, off_t offset, int whence); /* for SEEK_DATA and SEEK_HOLE */
};

/* The system itself; static storage. */
const struct stfs_os *stfs_os_real(void);

/* Writes all of `data` at `offset`. Returns 0 or -errno; *ret_written (may be NULL) is what was written either way. */
int stfs_os_write_full(const struct stfs_os *os, int fd, const void *data, size_t len, uint64_t offset,
		       size_t *ret_written);

/* Reads exactly `len` bytes. Returns 0, -EIO when the file ends before, or -errno. */
int stfs_os_read_full(const struct stfs_os *os, int fd, void *data, size_t len, uint64_t offset);
