/* SPDX-License-Identifier: Apache-2.0 */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "cleanup.h"
#include "os.h"
#include "retry.h"

int stfs_pread_full(int fd, void *data, size_t len, uint64_t offset)
{
	return stfs_os_read_full(stfs_os_real(), fd, data, len, offset);
}

int stfs_write_full(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = STFS_RETRY(write(fd, p, len));

		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

DIR *stfs_opendirat(int dir_fd, const char *name, int flags)
{
	_cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir)
		(void)stfs_steal_fd(&fd);
	return dir;
}

int stfs_dir_is_empty(int dir_fd, const char *name, int flags, bool *ret)
{
	DIR *dir = stfs_opendirat(dir_fd, name, flags);
	struct dirent *entry;
	bool empty = true;
	int r;

	if (!dir)
		return -errno;
	while (empty && (errno = 0, entry = readdir(dir)))
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	r = empty ? -errno : 0;
	closedir(dir);
	if (r == 0)
		*ret = empty;
	return r;
}
