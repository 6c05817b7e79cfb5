/* SPDX-License-Identifier: Apache-2.0 */
/* Models for tests: real files in a directory of their own. */
#pragma once

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "model.h"

static char fixture_dir[64];

static inline void fixture_setup(void)
{
	strcpy(fixture_dir, "/tmp/stfs-unit-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(fixture_dir));
}

/* The directory is flat. */
static inline void fixture_teardown(void)
{
	DIR *dir = opendir(fixture_dir);
	struct dirent *entry;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	ck_assert_int_eq(rmdir(fixture_dir), 0);
}

static inline const char *fixture_path(const char *name)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s/%s", fixture_dir, name);
	return path;
}

/* A file in the making: members of the header, and how many bytes they speak of. Byte i of the data is i & 0xff. */
struct maker {
	struct stfs_buf header;
	uint64_t size;
};

static inline void maker_member(struct maker *maker)
{
	ck_assert_int_eq(stfs_buf_append_str(&maker->header, maker->header.len ? "," : "{"), 0);
}

/* `metadata` is the JSON object. */
static inline void maker_metadata(struct maker *maker, const char *metadata)
{
	maker_member(maker);
	ck_assert_int_eq(stfs_buf_printf(&maker->header, "\"__metadata__\":%s", metadata), 0);
}

/* `name` is the inside of a JSON string, `shape` that of a JSON array; `size` in bytes. */
static inline void maker_tensor(struct maker *maker, const char *name, const char *dtype, const char *shape,
				uint64_t size)
{
	maker_member(maker);
	ck_assert_int_eq(stfs_buf_printf(&maker->header,
					 "\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%llu,%llu]}", name,
					 dtype, shape, (unsigned long long)maker->size,
					 (unsigned long long)(maker->size + size)),
			 0);
	maker->size += size;
}

/* An F32 scalar. */
static inline void maker_scalar(struct maker *maker, const char *name)
{
	maker_tensor(maker, name, "F32", "", 4);
}

/* Writes the file, mode 0644, and resets the maker. */
static inline void maker_write(struct maker *maker, const char *name)
{
	FILE *file = fopen(fixture_path(name), "w");
	uint64_t len;

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(stfs_buf_append_str(&maker->header, maker->header.len ? "}" : "{}"), 0);
	len = maker->header.len;
	for (int i = 0; i < 8; i++)
		fputc((int)(len >> (8 * i) & 0xff), file);
	fwrite(maker->header.data, 1, maker->header.len, file);
	for (uint64_t i = 0; i < maker->size; i++)
		fputc((int)(i & 0xff), file);
	ck_assert_int_eq(fchmod(fileno(file), 0644), 0);
	ck_assert_int_eq(fclose(file), 0);
	stfs_buf_fini(&maker->header);
	maker->size = 0;
}

static inline void fixture_emit(void *user, enum stfs_severity severity, const char *file, const char *sentence)
{
	(void)user;
	if (severity == STFS_VIOLATION)
		fprintf(stderr, "%s: %s\n", file ? file : "?", sentence);
}

/* Opens a file of the fixture, or the whole directory when `name` is "". */
static inline struct stfs_model *fixture_open_io(const char *name, enum stfs_io io)
{
	struct stfs_model_options options = { .io = io };
	struct stfs_report report = { .emit = fixture_emit };
	struct stfs_model *model = NULL;

	ck_assert_int_eq(stfs_model_open(fixture_path(name), &options, &report, &model), 0);
	return model;
}

static inline struct stfs_model *fixture_open(const char *name)
{
	return fixture_open_io(name, STFS_IO_AUTO);
}
