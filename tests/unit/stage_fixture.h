/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with a model in it, and the staging area beside that. */
#pragma once

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "faulty_os.h"
#include "stage.h"

#define _cleanup_stage_ _cleanup_(stfs_stage_freep)
#define _cleanup_journal_ _cleanup_(stfs_journal_closep)

#define NAME ".m.safetensors.stage"

/* A folder with a model in it, which is what the lock is taken on. */
static char folder_path[64];
static int folder_fd, model_fd;
static struct faulty_os faulty;

static inline void setup(void)
{
	strcpy(folder_path, "/tmp/stfs-unit-stage-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder_path));
	folder_fd = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	model_fd = openat(folder_fd, "m.safetensors", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert(folder_fd >= 0 && model_fd >= 0);
	faulty_os_init(&faulty, stfs_os_real());
}

static inline void empty(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		unlinkat(fd, entry->d_name, 0);
	if (dir)
		closedir(dir);
}

static inline void teardown(void)
{
	empty(folder_fd, NAME);
	unlinkat(folder_fd, NAME, AT_REMOVEDIR);
	empty(folder_fd, ".");
	close(folder_fd);
	close(model_fd);
	ck_assert_int_eq(rmdir(folder_path), 0);
}

static inline int stage_new(bool shared, struct stfs_diag *diag, struct stfs_stage **ret)
{
	struct stfs_stage_options options = {
		.parent_fd = folder_fd,
		.name = NAME,
		.shared_dir = shared,
		.holder = "mounted at /mnt/m",
		.os = &faulty.os,
	};

	return stfs_stage_new(&options, diag, ret);
}

static inline struct stfs_stage *made(bool shared)
{
	struct stfs_stage *stage = NULL;

	ck_assert_int_eq(stage_new(shared, NULL, &stage), 0);
	return stage;
}

static inline struct stfs_stage *locked(bool shared)
{
	struct stfs_stage *stage = made(shared);

	ck_assert_int_eq(stfs_stage_lock(stage, model_fd, NULL), 0);
	return stage;
}

static inline bool there(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), NAME "/%s", name);
	return faccessat(folder_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Number of entries in the staging directory; -1 when it is not there. */
static inline int count_names(void)
{
	int fd = openat(folder_fd, NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = -2;
	DIR *dir;

	if (fd < 0)
		return -1;
	dir = fdopendir(fd);
	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static inline void put_file(const char *path, const char *text)
{
	_cleanup_close_ int fd = openat(folder_fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static inline void add_record(struct stfs_journal *journal, const char *text)
{
	ck_assert_int_eq(stfs_journal_append(journal, 1, stfs_slice_of(text)), 0);
}

static inline int collect(void *user, const struct stfs_record *record)
{
	struct stfs_buf *buf = user;

	return stfs_buf_append(buf, record->payload.p, record->payload.len);
}

/* The records of a journal, one behind the other. */
static inline void check_records(struct stfs_journal *journal, const char *wanted)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };

	ck_assert_ptr_nonnull(journal);
	ck_assert_int_eq(stfs_journal_replay(journal, collect, &buf, NULL), 0);
	ck_assert_str_eq(buf.data ? buf.data : "", wanted);
}
