/* SPDX-License-Identifier: Apache-2.0 */
#include "path.h"

#include <errno.h>
#include <string.h>

#include "cleanup.h"

static int resolve(const char *path, char **ret_path)
{
	char *resolved = realpath(path, NULL);

	if (!resolved)
		return -errno;
	*ret_path = resolved;
	return 0;
}

int stfs_path_anchor(const char *path, char **ret_path)
{
	_cleanup_free_ char *copy = strdup(path), *folder = NULL;
	char *base, *joined;
	size_t len;
	int r;

	if (!copy)
		return -ENOMEM;
	for (len = strlen(copy); len > 1 && copy[len - 1] == '/'; len--)
		copy[len - 1] = '\0';
	base = strrchr(copy, '/');
	base = base ? base + 1 : copy;
	if (!*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
		return resolve(copy, ret_path);
	if (base == copy) {
		r = resolve(".", &folder);
	} else {
		base[-1] = '\0';
		r = resolve(*copy ? copy : "/", &folder);
	}
	if (r < 0)
		return r;
	if (asprintf(&joined, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, base) < 0)
		return -ENOMEM;
	*ret_path = joined;
	return 0;
}

bool stfs_path_is_within(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return true;
	return strncmp(path, dir, len) == 0 && (path[len] == '\0' || path[len] == '/');
}
