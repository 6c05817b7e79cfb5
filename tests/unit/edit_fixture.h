/* SPDX-License-Identifier: Apache-2.0 */
/* One writable view of a small model, told by path. Only within the fixture of model_fixture.h. */
#pragma once

#include <errno.h>
#include <sys/file.h>

#include "changes.h"
#include "model_fixture.h"
#include "view_edit.h"

static struct stfs_view *view;
static enum stfs_layout view_layout;
static const struct stfs_os *view_os; /* NULL: the real one */
static struct stfs_log *view_log;     /* NULL: none */
static const struct stfs_owner owner = { 1000, 1000 };

static inline void open_view(enum stfs_layout layout)
{
	struct stfs_view_options options = { .layout = layout };
	int fd = open(fixture_dir, O_RDONLY | O_DIRECTORY);
	struct stfs_stage_options stage_options = {
		.parent_fd = fd, .name = ".m.stage", .holder = "test", .os = view_os ? view_os : stfs_os_real()
	};
	struct stfs_stage *stage = NULL;
	struct stfs_diag diag = { 0 };

	view_layout = layout;
	ck_assert_int_eq(stfs_view_new(fixture_open("m.safetensors"), &options, view_log, &diag, &view), 0);
	ck_assert_msg(stfs_stage_new(&stage_options, &diag, &stage) == 0, "%s", diag.text);
	ck_assert_msg(stfs_stage_lock(stage, stfs_snapshot_fd(stfs_view_model(view)->files[0]), &diag) == 0, "%s",
		      diag.text);
	ck_assert_msg(stfs_view_attach_stage(view, stage, &diag) == 0, "%s", diag.text);
	close(fd);
}

static inline void close_view(void)
{
	stfs_view_free(view);
	view = NULL;
}

static inline void reopen(void)
{
	close_view();
	open_view(view_layout);
}

static inline void setup(void)
{
	struct maker maker = { 0 };

	fixture_setup();
	maker_metadata(&maker, "{\"format\":\"pt\",\"note\":\"x\"}");
	maker_tensor(&maker, "model.a.w", "F32", "2,3", 24);
	maker_tensor(&maker, "model.a.b", "U8", "5", 5);
	maker_tensor(&maker, "model.big", "U8", "100000", 100000);
	maker_write(&maker, "m.safetensors");
	open_view(STFS_NESTED);
}

static inline void teardown(void)
{
	char command[200];

	close_view();
	snprintf(command, sizeof(command), "rm -rf %s", fixture_dir);
	ck_assert_int_eq(system(command), 0);
}

/* The inode at a path, 0 when there is none; *ret_parent is that of its directory. */
static inline uint64_t lookup(const char *path, uint64_t *ret_parent, struct stfs_slice *ret_name)
{
	uint64_t ino = STFS_INO_ROOT;
	struct stfs_attr attr;

	while (*path) {
		size_t n = strcspn(path, "/");

		*ret_parent = ino;
		*ret_name = (struct stfs_slice){ path, n };
		if (stfs_view_lookup(view, ino, *ret_name, &attr) < 0)
			return path[n] ? UINT64_MAX : 0;
		ino = attr.ino;
		path += n + (path[n] == '/');
	}
	return ino;
}

static inline uint64_t ino_of(const char *path)
{
	struct stfs_slice name;
	uint64_t parent = 0;
	uint64_t ino = lookup(path, &parent, &name);

	ck_assert_msg(ino && ino != UINT64_MAX, "%s is not there", path);
	return ino;
}

static inline bool is_there(const char *path)
{
	struct stfs_slice name;
	uint64_t parent = 0, ino = lookup(path, &parent, &name);

	return ino && ino != UINT64_MAX;
}

static inline int do_mkdir(const char *path)
{
	struct stfs_slice name;
	struct stfs_attr attr;
	uint64_t parent = 0;

	lookup(path, &parent, &name);
	return stfs_view_mkdir(view, parent, name, 0755, owner, &attr);
}

static inline int do_unlink(const char *path)
{
	struct stfs_slice name;
	uint64_t parent = 0;

	lookup(path, &parent, &name);
	return stfs_view_unlink(view, parent, name);
}

static inline int do_rmdir(const char *path)
{
	struct stfs_slice name;
	uint64_t parent = 0;

	lookup(path, &parent, &name);
	return stfs_view_rmdir(view, parent, name);
}

static inline int do_rename(const char *from, const char *to)
{
	struct stfs_slice name, new_name;
	uint64_t parent = 0, new_parent = 0;

	lookup(from, &parent, &name);
	lookup(to, &new_parent, &new_name);
	return stfs_view_rename(view, parent, name, new_parent, new_name, false);
}

/* Opens for writing as the shell does: an existing file is emptied, else one is made. */
static inline struct stfs_file *open_write(const char *path, bool truncate)
{
	struct stfs_file *file = NULL;
	struct stfs_slice name;
	struct stfs_attr attr;
	uint64_t parent = 0, ino = lookup(path, &parent, &name);

	if (ino)
		ck_assert_int_eq(stfs_view_open_write(view, ino, truncate, &file), 0);
	else
		ck_assert_int_eq(stfs_view_create(view, parent, name, 0644, owner, &attr, &file), 0);
	return file;
}

static inline int write_at(const char *path, bool truncate, const void *data, size_t size, uint64_t offset)
{
	struct stfs_file *file = open_write(path, truncate);
	size_t written = 0;
	int r = stfs_file_write(file, data, size, offset, &written);

	if (r == 0)
		ck_assert_uint_eq(written, size);
	stfs_file_flush(file);
	stfs_file_close(file);
	return r;
}

static inline int put(const char *path, const char *text)
{
	return write_at(path, true, text, strlen(text), 0);
}

/* All bytes of a file; owned by the caller. */
static inline struct stfs_buf bytes_of(const char *path)
{
	struct stfs_buf buf = { 0 };
	struct stfs_file *file;
	char chunk[70000];
	size_t n;

	ck_assert_int_eq(stfs_view_open(view, ino_of(path), &file), 0);
	do {
		ck_assert_int_eq(stfs_file_read(file, buf.len, chunk, sizeof(chunk), &n), 0);
		ck_assert_int_eq(stfs_buf_append(&buf, chunk, n), 0);
	} while (n);
	stfs_file_close(file);
	return buf;
}

static inline void expect(const char *path, const char *text)
{
	struct stfs_buf buf = bytes_of(path);
	struct stfs_attr attr;

	ck_assert_msg(stfs_slice_is(stfs_buf_slice(&buf), text), "%s: %s", path, buf.data);
	ck_assert_int_eq(stfs_view_getattr(view, ino_of(path), &attr), 0);
	ck_assert_uint_eq(attr.size, buf.len);
	stfs_buf_fini(&buf);
}

static inline void expect_fill(const char *path, size_t n, char fill)
{
	struct stfs_buf buf = bytes_of(path);

	ck_assert_uint_eq(buf.len, n);
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(buf.data[i] == fill, "%s: byte %zu is %d", path, i, buf.data[i]);
	stfs_buf_fini(&buf);
}

static inline struct timespec mtime_of(const char *path)
{
	struct stfs_attr attr;

	ck_assert_int_eq(stfs_view_getattr(view, ino_of(path), &attr), 0);
	return attr.mtime;
}

static inline void set_mtime(const char *path, time_t sec)
{
	struct stfs_attr_change change = { .set_mtime = true, .mtime = { .tv_sec = sec } };
	struct stfs_attr attr;

	ck_assert_int_eq(stfs_view_setattr(view, ino_of(path), &change, &attr), 0);
}

static inline void expect_status(const char *text)
{
	_cleanup_(stfs_changes_freep) struct stfs_changes *changes = NULL;
	_cleanup_buf_ struct stfs_buf buf = { 0 };

	ck_assert_int_eq(stfs_changes_collect(view, &changes), 0);
	ck_assert_int_eq(stfs_changes_text(changes, stfs_view_model(view), &buf), 0);
	ck_assert_str_eq(buf.data, text);
}

#define NPY_HEAD 128

/* A NumPy file of `n` bytes (dtype U1), each of them `fill`. Owned by the caller. */
static inline char *make_npy(size_t n, char fill)
{
	char *npy = malloc(NPY_HEAD + n);
	int len;

	ck_assert_ptr_nonnull(npy);
	memset(npy, ' ', NPY_HEAD);
	memcpy(npy, "\x93NUMPY\x01\x00v\x00", 10);
	len = snprintf(npy + 10, 100, "{'descr': '|u1', 'fortran_order': False, 'shape': (%zu,), }", n);
	npy[10 + len] = ' ';
	npy[NPY_HEAD - 1] = '\n';
	memset(npy + NPY_HEAD, fill, n);
	return npy;
}
