/* SPDX-License-Identifier: Apache-2.0 */
#include "mountinfo.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "macros.h"
#include "path.h"

static void close_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* Undoes \ooo, as the kernel writes blanks and backslashes, in place. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; to++) {
		if (s[0] == '\\' && is_octal(s[1]) && is_octal(s[2]) && is_octal(s[3])) {
			*to = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*to = *s++;
		}
	}
	*to = '\0';
}

/* Where the fields of interest stand: "36 35 98:0 /root /point options [optional ...] - type source options". */
struct fields {
	char *device, *point, *options, *type, *source;
};

static bool split_line(char *line, struct fields *ret)
{
	char *head[6], *rest, *end = line;

	line[strcspn(line, "\n")] = '\0';
	rest = strstr(line, " - ");
	if (!rest)
		return false;
	*rest = '\0';
	rest += strlen(" - ");
	for (size_t i = 0; i < STFS_ARRAY_SIZE(head); i++) {
		head[i] = strsep(&end, " ");
		if (!head[i])
			return false;
	}
	*ret = (struct fields){ .device = head[2], .point = head[4], .options = head[5] };
	ret->type = strsep(&rest, " ");
	ret->source = strsep(&rest, " ");
	if (!ret->source)
		return false;
	unescape(ret->point);
	unescape(ret->type);
	unescape(ret->source);
	return true;
}

static int take_mount(const struct fields *f, struct stfs_mount *mount)
{
	struct stfs_mount found = { .type = strdup(f->type), .source = strdup(f->source) };

	if (!found.type || !found.source || sscanf(f->device, "%u:%u", &found.major, &found.minor) != 2) {
		stfs_mount_fini(&found);
		return -ENOMEM;
	}
	stfs_mount_fini(mount);
	*mount = found;
	return 0;
}

int stfs_mountinfo_find(const char *path, struct stfs_mount *ret)
{
	_cleanup_(close_file) FILE *file = fopen("/proc/self/mountinfo", "re");
	_cleanup_mount_ struct stfs_mount found = { 0 };
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	if (!file)
		return -errno;
	errno = 0;
	while (getline(&line, &size, file) >= 0) {
		struct fields fields;

		if (!split_line(line, &fields) || strcmp(fields.point, path) != 0)
			continue;
		if (take_mount(&fields, &found) < 0)
			return -ENOMEM;
	}
	if (ferror(file))
		return errno ? -errno : -EIO;
	if (!found.type)
		return -ENOENT;
	*ret = found;
	found = (struct stfs_mount){ 0 };
	return 0;
}

/* A source that is looked for: a file by whatever name, or one that is not there yet by its name. */
struct wanted {
	struct stat st;
	char *path; /* absolute; NULL for a file that is there */
};

static void wanted_fini(struct wanted *wanted)
{
	free(wanted->path);
}

static int wanted_init(struct wanted *wanted, const char *source)
{
	*wanted = (struct wanted){ .path = NULL };
	if (stat(source, &wanted->st) == 0)
		return 0;
	return errno == ENOENT ? stfs_path_anchor(source, &wanted->path) : -errno;
}

/* Whether a mount's source is that. The list is foreign text: only looked at, never opened. */
static bool is_mount_of(const struct fields *f, const struct wanted *wanted)
{
	_cleanup_free_ char *path = NULL;
	struct stat st;

	if (strcmp(f->type, STFS_FSTYPE) != 0 || strncmp(f->options, "rw", 2) != 0 || f->source[0] != '/')
		return false;
	if (wanted->path)
		return stfs_path_anchor(f->source, &path) == 0 && strcmp(path, wanted->path) == 0;
	return stat(f->source, &st) == 0 && st.st_dev == wanted->st.st_dev && st.st_ino == wanted->st.st_ino;
}

int stfs_mountinfo_find_writable(const char *source, char **ret_point)
{
	_cleanup_(close_file) FILE *file = fopen("/proc/self/mountinfo", "re");
	_cleanup_(wanted_fini) struct wanted wanted = { .path = NULL };
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	int r = file ? wanted_init(&wanted, source) : -errno;

	if (r < 0)
		return r;
	while (getline(&line, &size, file) >= 0) {
		struct fields fields;

		if (!split_line(line, &fields) || !is_mount_of(&fields, &wanted))
			continue;
		*ret_point = strdup(fields.point);
		return *ret_point ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

void stfs_mount_fini(struct stfs_mount *mount)
{
	free(mount->type);
	free(mount->source);
	*mount = (struct stfs_mount){ 0 };
}
