/* SPDX-License-Identifier: Apache-2.0 */
#include "open_regular.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "buf.h"
#include "io.h"
#include "slice.h"

#define LINK_TEXT_MAX 256

static const char *describe_kind(mode_t mode)
{
	if (S_ISDIR(mode))
		return "a directory";
	if (S_ISFIFO(mode))
		return "a named pipe";
	if (S_ISSOCK(mode))
		return "a socket";
	return "a device";
}

static int open_checked(int dir_fd, const char *name, struct stfs_report *report, struct stat *ret_st)
{
	_cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fstat(fd, ret_st) < 0) {
		int error = errno;

		stfs_violation(report, "cannot be opened: %s", strerror(error));
		return -error;
	}
	if (!S_ISREG(ret_st->st_mode)) {
		stfs_violation(report, "expected a regular file, found %s", describe_kind(ret_st->st_mode));
		return S_ISDIR(ret_st->st_mode) ? -EISDIR : -EINVAL;
	}
	fcntl(fd, F_SETFL, 0); /* O_NONBLOCK was for the open only */
	return stfs_steal_fd(&fd);
}

/* Reads the text of a lost link into `ret`: some "../", "blobs/", and the hash that names a blob; nothing else. */
static bool read_link_text(int fd, uint64_t size, char ret[LINK_TEXT_MAX])
{
	const char *p = ret;

	if (size < 9 || size >= LINK_TEXT_MAX || stfs_pread_full(fd, ret, (size_t)size, 0) < 0)
		return false;
	ret[size] = '\0';
	while (strncmp(p, "../", 3) == 0)
		p += 3;
	if (p == ret || strncmp(p, "blobs/", 6) != 0)
		return false;
	for (p += 6; isalnum((unsigned char)*p); p++)
		;
	return p == ret + size && p[-1] != '/';
}

/* Appends the path of a link's target: the link's folder, then the text. */
static int join_target(struct stfs_buf *buf, const char *name, const char *text)
{
	const char *slash = strrchr(name, '/');
	int r = slash ? stfs_buf_append(buf, name, (size_t)(slash - name) + 1) : 0;

	return r < 0 ? r : stfs_buf_append_str(buf, text);
}

int stfs_open_regular(int dir_fd, const char *name, struct stfs_report *report, struct stat *ret_st)
{
	_cleanup_close_ int fd = open_checked(dir_fd, name, report, ret_st);
	_cleanup_buf_ struct stfs_buf target = { 0 };
	char text[LINK_TEXT_MAX];
	int r;

	if (fd < 0)
		return stfs_steal_fd(&fd);
	if (!read_link_text(fd, (uint64_t)ret_st->st_size, text))
		return stfs_steal_fd(&fd);
	r = join_target(&target, name, text);
	return r < 0 ? r : open_checked(dir_fd, target.data, report, ret_st);
}
