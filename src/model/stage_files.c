/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cleanup.h"
#include "retry.h"
#include "stage_private.h"

STFS_DEFINE_CLEANUP(DIR, closedir)

#define BYTES_PREFIX "bytes."
#define NUMBER_DIGITS 16

/* The name of a file of bytes. */
struct bytes_name {
	char text[sizeof(BYTES_PREFIX) + NUMBER_DIGITS];
};

static struct bytes_name bytes_name(uint64_t number)
{
	struct bytes_name name;

	snprintf(name.text, sizeof(name.text), BYTES_PREFIX "%016" PRIx64, number);
	return name;
}

bool stfs_stage_parse_bytes_name(const char *name, uint64_t *ret_number)
{
	const char *digits;

	if (strncmp(name, BYTES_PREFIX, strlen(BYTES_PREFIX)) != 0)
		return false;
	digits = name + strlen(BYTES_PREFIX);
	if (strlen(digits) != NUMBER_DIGITS || strspn(digits, "0123456789abcdef") != NUMBER_DIGITS)
		return false;
	*ret_number = strtoull(digits, NULL, 16);
	return true;
}

int stfs_stage_for_each_name(const struct stfs_stage *stage, int dir_fd, int (*each)(void *user, const char *name),
			     void *user)
{
	const struct stfs_os *os = stage->os;
	_cleanup_(closedirp) DIR *dir = NULL;
	struct dirent *entry;
	int r = 0;
	int fd = STFS_RETRY(os->openat(os->user, dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	while (r == 0) {
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return -errno;
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = each(user, entry->d_name);
	}
	return r;
}

int stfs_stage_remove_name(struct stfs_stage *stage, const char *name)
{
	const struct stfs_os *os = stage->os;

	if (stage->dir_fd < 0 || STFS_RETRY(os->unlinkat(os->user, stage->dir_fd, name, 0)) == 0 || errno == ENOENT)
		return 0;
	return -errno;
}

int stfs_stage_file_create(struct stfs_stage *stage, uint64_t *ret_number, int *ret_fd)
{
	const struct stfs_os *os = stage->os;
	int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	_cleanup_close_ int fd = -1;
	struct bytes_name name;
	uint64_t number;

	if (stage->dir_fd < 0)
		return -ENOENT;
	do {
		number = stage->next_number++;
		name = bytes_name(number);
		fd = STFS_RETRY(os->openat(os->user, stage->dir_fd, name.text, flags, 0600));
	} while (fd < 0 && errno == EEXIST);
	if (fd < 0)
		return -errno;
	/* Whatever the umask says. */
	if (STFS_RETRY(os->fchmod(os->user, fd, 0600)) < 0) {
		int error = errno;

		(void)STFS_RETRY(os->unlinkat(os->user, stage->dir_fd, name.text, 0));
		return -error;
	}
	*ret_number = number;
	*ret_fd = stfs_steal_fd(&fd);
	return 0;
}

int stfs_stage_file_open(struct stfs_stage *stage, uint64_t number, int *ret_fd)
{
	const struct stfs_os *os = stage->os;
	int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (stage->dir_fd < 0)
		return -ENOENT;
	fd = STFS_RETRY(os->openat(os->user, stage->dir_fd, bytes_name(number).text, flags, 0));
	if (fd < 0 || STFS_RETRY(os->fstat(os->user, fd, &st)) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	*ret_fd = stfs_steal_fd(&fd);
	return 0;
}

int stfs_stage_file_remove(struct stfs_stage *stage, uint64_t number)
{
	int r;

	pthread_mutex_lock(&stage->dir_lock);
	r = stfs_stage_remove_name(stage, bytes_name(number).text);
	pthread_mutex_unlock(&stage->dir_lock);
	return r;
}

struct sweep {
	struct stfs_stage *stage;
	bool (*keep)(void *user, uint64_t number);
	void *user;
	int result; /* the first error; the rest is swept all the same */
};

static int sweep_name(void *user, const char *name)
{
	struct sweep *sweep = user;
	uint64_t number;
	int r = 0;

	if (stfs_stage_parse_bytes_name(name, &number) && !sweep->keep(sweep->user, number))
		r = stfs_stage_remove_name(sweep->stage, name);
	if (sweep->result == 0)
		sweep->result = r;
	return 0;
}

int stfs_stage_sweep(struct stfs_stage *stage, bool (*keep)(void *user, uint64_t number), void *user)
{
	struct sweep sweep = { stage, keep, user, 0 };
	int r = stage->dir_fd < 0 ? 0 : stfs_stage_for_each_name(stage, stage->dir_fd, sweep_name, &sweep);

	return r < 0 ? r : sweep.result;
}
