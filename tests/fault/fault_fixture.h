/* SPDX-License-Identifier: Apache-2.0 */
/* Models that are made anew for each fault, and what became of their files. Only within the fixture of model_fixture.h. */
#pragma once

#include "commit_fixture.h"

#define FILES_MAX 8

/* The files of a model; all zero is none. */
struct files {
	char names[1024];
	struct stfs_buf bytes[FILES_MAX];
	unsigned n;
};

/* In memory if that can be: nothing here depends on what a disk keeps. */
static inline void make_folder(void)
{
	strcpy(fixture_dir, access("/dev/shm", W_OK) == 0 ? "/dev/shm/stfs-fault-XXXXXX" : "/tmp/stfs-fault-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(fixture_dir));
}

static inline void remove_names(const char *name)
{
	DIR *dir = opendir(fixture_path(name));
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}

static inline void empty_folder(void)
{
	remove_names(FIXTURE_STAGE);
	rmdir(fixture_path(FIXTURE_STAGE));
	remove_names("");
}

static inline void remove_folder(void)
{
	empty_folder();
	ck_assert_int_eq(rmdir(fixture_dir), 0);
}

static inline void free_files(struct files *files)
{
	for (unsigned i = 0; i < files->n; i++)
		stfs_buf_fini(&files->bytes[i]);
	*files = (struct files){ 0 };
}

/* Reads what is in the folder beside the staging area. */
static inline void read_files(struct files *files)
{
	const char *names = folder_names("");
	char copy[1024], *name, *rest = copy;

	free_files(files);
	snprintf(copy, sizeof(copy), "%s", names);
	while ((name = strsep(&rest, " "))) {
		if (strcmp(name, FIXTURE_STAGE) == 0)
			continue;
		ck_assert_uint_lt(files->n, FILES_MAX);
		strcat(strcat(files->names, " "), name);
		files->bytes[files->n++] = file_bytes(name);
	}
}

static inline bool same_files(const struct files *a, const struct files *b)
{
	if (strcmp(a->names, b->names) != 0)
		return false;
	for (unsigned i = 0; i < a->n; i++) {
		if (!stfs_slice_equal(stfs_buf_slice(&a->bytes[i]), stfs_buf_slice(&b->bytes[i])))
			return false;
	}
	return true;
}
