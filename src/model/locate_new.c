/* SPDX-License-Identifier: Apache-2.0 */
/* A model that is not there yet. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "locate.h"

#define SUFFIX ".safetensors"

static int fail(struct stfs_report *report, int error, const char *what)
{
	stfs_violation(report, "%s: %s", what, strerror(-error));
	return error;
}

/* Only an empty folder can become a model. */
static int check_empty(int dir_fd, struct stfs_report *report)
{
	bool empty;
	int r = stfs_dir_is_empty(dir_fd, ".", 0, &empty);

	if (r < 0)
		return fail(report, r, "cannot be read");
	if (empty)
		return 0;
	stfs_violation(report, "there is no model in this directory, and it is not empty");
	return -ENOTEMPTY;
}

static int locate_folder(const char *source, struct stfs_report *report, struct stfs_location *location, bool *ret_made)
{
	_cleanup_free_ char *real = NULL;
	int r;

	*ret_made = mkdir(source, 0777) == 0;
	location->dir_fd = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (location->dir_fd < 0)
		return fail(report, -errno, "cannot be made");
	r = check_empty(location->dir_fd, report);
	if (r < 0)
		return r;
	real = realpath(source, NULL);
	if (!real)
		return fail(report, -errno, "has no path");
	location->folder = strdup(source);
	location->label = strdup(strrchr(real, '/') + 1);
	return location->folder && location->label ? 0 : -ENOMEM;
}

static int locate_file(const char *source, struct stfs_report *report, struct stfs_location *location)
{
	const char *slash = strrchr(source, '/'), *base = slash ? slash + 1 : source;
	_cleanup_free_ char *folder = slash ? strndup(source, (size_t)(base - source)) : strdup(".");
	struct stat st;

	if (!folder)
		return -ENOMEM;
	/* A link that leads nowhere is something, too. */
	if (lstat(source, &st) == 0) {
		stfs_violation(report, "there is something of that name");
		return -EEXIST;
	}
	location->dir_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (location->dir_fd < 0)
		return fail(report, -errno, "its folder cannot be opened");
	location->label = strndup(base, strlen(base) - strlen(SUFFIX));
	location->files = calloc(1, sizeof(*location->files));
	if (!location->label || !location->files)
		return -ENOMEM;
	location->files[0] = strdup(base);
	location->n_files = location->files[0] != NULL;
	return location->n_files ? 0 : -ENOMEM;
}

int stfs_locate_new(const char *source, struct stfs_report *report, struct stfs_location *ret, bool *ret_made)
{
	_cleanup_(stfs_location_fini) struct stfs_location location = { .dir_fd = -1 };
	const char *slash = strrchr(source, '/'), *base = slash ? slash + 1 : source;
	size_t len = strlen(base), suffix = strlen(SUFFIX);
	bool made = false;
	int r = -EINVAL;

	if (slash && !*base)
		r = locate_folder(source, report, &location, &made);
	else if (len > suffix && strcmp(base + len - suffix, SUFFIX) == 0)
		r = locate_file(source, report, &location);
	else
		stfs_violation(report, "the name of a new model ends with " SUFFIX ", or for a directory with '/'");
	if (r < 0 && made)
		(void)rmdir(source);
	if (r < 0)
		return r;
	*ret = location;
	location = (struct stfs_location){ .dir_fd = -1 };
	*ret_made = made;
	return 0;
}
