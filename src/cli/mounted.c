/* SPDX-License-Identifier: Apache-2.0 */
#include "mounted.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "mountinfo.h"
#include "path.h"
#include "quote.h"
#include "retry.h"

#define QUOTED(s) (stfs_quote(stfs_slice_of(s)).text)
#define CHUNK 65536

/* The mount that the absolute `path` lies in: how much of it leads there. -ENOENT when that is none of ours. */
static int find_above(const char *path, size_t *ret_len)
{
	_cleanup_free_ char *above = strdup(path);
	int r = above ? -ENOENT : -ENOMEM;

	while (r == -ENOENT) {
		_cleanup_mount_ struct stfs_mount mount = { 0 };
		char *slash;

		r = stfs_mountinfo_find(*above ? above : "/", &mount);
		if (r == 0) {
			*ret_len = strlen(above);
			return strcmp(mount.type, STFS_FSTYPE) == 0 ? 0 : -ENOENT;
		}
		slash = strrchr(above, '/');
		if (r != -ENOENT || !slash)
			break;
		*slash = '\0';
	}
	return r;
}

/* Splits `path` where its mount ends. */
static int split(const char *path, size_t len, char **ret_point, char **ret_rest)
{
	char *point = strndup(path, len), *rest = strdup(path + len + (path[len] == '/'));

	if (!point || !rest) {
		free(point);
		free(rest);
		return -ENOMEM;
	}
	*ret_point = point;
	if (ret_rest)
		*ret_rest = stfs_steal(rest);
	free(rest);
	return 0;
}

int stfs_mounted_find(const char *path, char **ret_point, char **ret_rest)
{
	_cleanup_free_ char *anchored = NULL, *resolved = NULL;
	size_t len;
	int r = stfs_path_anchor(path, &anchored);

	if (r < 0)
		return r;
	/* First as it stands, so that a dead mount is found, then by what it may be a link to. */
	r = find_above(anchored, &len);
	if (r == 0)
		return split(anchored, len, ret_point, ret_rest);
	resolved = r == -ENOENT ? realpath(path, NULL) : NULL;
	if (!resolved)
		return r;
	r = find_above(resolved, &len);
	return r == 0 ? split(resolved, len, ret_point, ret_rest) : r;
}

static int open_control(const char *point, const char *name, int flags)
{
	_cleanup_free_ char *path = NULL;
	int fd;

	if (asprintf(&path, "%s/.safetensors/%s", point, name) < 0)
		return -ENOMEM;
	fd = STFS_RETRY(open(path, flags | O_CLOEXEC));
	return fd < 0 ? -errno : fd;
}

/* Appends what the file says from its start on. */
static int read_all(int fd, struct stfs_buf *buf)
{
	off_t offset = 0;
	ssize_t n;
	int r;

	for (;;) {
		r = stfs_buf_reserve(buf, CHUNK);
		if (r < 0)
			return r;
		n = STFS_RETRY(pread(fd, buf->data + buf->len, CHUNK, offset));
		if (n <= 0)
			return n < 0 ? -errno : 0;
		offset += n;
		buf->len += (size_t)n;
		buf->data[buf->len] = '\0';
	}
}

int stfs_mounted_read(const char *point, const char *name, struct stfs_buf *buf)
{
	_cleanup_close_ int fd = open_control(point, name, O_RDONLY);

	return fd < 0 ? fd : read_all(fd, buf);
}

int stfs_mounted_write(const char *point, const char *name, struct stfs_slice text, struct stfs_buf *answer)
{
	_cleanup_close_ int fd = open_control(point, name, O_RDWR);
	ssize_t n;
	int r;

	if (fd < 0)
		return fd;
	/* Not repeated when a signal interrupts it: it does something. */
	n = write(fd, text.p, text.len);
	r = n < 0 ? -errno : (size_t)n == text.len ? 0 : -EIO;
	/* `result` may tell of somebody else's by now. What cannot be read goes unsaid: what is done is done. */
	(void)!read_all(fd, answer);
	return r;
}

bool stfs_mounted_complain(struct stfs_buf *answer)
{
	char *rest = answer->len ? answer->data : NULL, *line;

	while ((line = strsep(&rest, "\n")))
		if (*line)
			fprintf(stderr, "safetensorsfs: %s\n", line);
	return answer->len != 0;
}

bool stfs_mounted_is_read_only(const char *point)
{
	_cleanup_close_ int fd = open_control(point, "commit", O_RDONLY);

	return fd == -ENOENT;
}

int stfs_mounted_refuse(const char *point)
{
	return stfs_exit_with(STFS_EXIT_MOUNTPOINT, "%s is mounted read-only: name the model instead", QUOTED(point));
}

int stfs_mounted_print(const char *point, const char *name)
{
	_cleanup_buf_ struct stfs_buf text = { 0 };
	int r = stfs_mounted_read(point, name, &text);

	if (r == -ENOENT)
		return stfs_mounted_refuse(point);
	if (r < 0)
		return stfs_exit_with(STFS_EXIT_MOUNTPOINT, "%s/.safetensors/%s cannot be read: %s", QUOTED(point),
				      name, strerror(-r));
	fwrite(text.data, 1, text.len, stdout);
	return (int)stfs_finish_stdout();
}

bool stfs_mounted_stays(const char *source)
{
	_cleanup_free_ char *point = NULL;

	return stfs_mountinfo_find_writable(source, &point) == 0;
}
