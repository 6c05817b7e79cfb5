/* SPDX-License-Identifier: Apache-2.0 */
/* Writable views for tests of commits, and what they left in the folder. Only within the fixture of model_fixture.h. */
#pragma once

#include <errno.h>
#include <sys/file.h>

#include "commit.h"
#include "model_fixture.h"
#include "view_edit.h"

#define FIXTURE_STAGE ".stage"

/* What a report said, one finding a line. */
struct said {
	struct stfs_report report;
	char text[8192];
};

static inline void said_emit(void *user, enum stfs_severity severity, const char *file, const char *sentence)
{
	struct said *said = user;
	size_t at = strlen(said->text);

	snprintf(said->text + at, sizeof(said->text) - at, "%s%s: %s\n", severity == STFS_WARNING ? "warning: " : "",
		 file ? file : "?", sentence);
}

static inline void said_init(struct said *said)
{
	memset(said, 0, sizeof(*said));
	said->report.emit = said_emit;
	said->report.user = said;
}

/*
 * Opens `name` of the fixture (or with "" its directory) as a writable view on calls of `os`, as a mount does: lock, look for a
 * commit that was cut short, open, replay. Returns what failed; `said` gets the sentence.
 */
static inline int editing_open(const char *name, const struct stfs_os *os, struct said *said, struct stfs_view **ret)
{
	int dir_fd = open(fixture_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stfs_stage_options stage_options = {
		.parent_fd = dir_fd, .name = FIXTURE_STAGE, .holder = "a test", .os = os
	};
	struct stfs_model_options model_options = { 0 };
	struct stfs_view_options view_options = { 0 };
	struct stfs_stage *stage = NULL;
	struct stfs_model *model = NULL;
	struct stfs_view *view = NULL;
	struct stfs_diag diag = { 0 };
	int lock_fd, r;

	ck_assert_int_ge(dir_fd, 0);
	r = stfs_stage_new(&stage_options, &diag, &stage);
	if (r == 0) {
		lock_fd = *name ? openat(dir_fd, name, O_RDONLY | O_CLOEXEC) : dup(dir_fd);
		ck_assert_int_ge(lock_fd, 0);
		r = stfs_stage_lock(stage, lock_fd, &diag);
		close(lock_fd);
	}
	if (r == 0)
		r = stfs_commit_recover(stage, dir_fd, &said->report);
	if (r == 0)
		r = stfs_model_open(fixture_path(name), &model_options, &said->report, &model);
	if (r == 0)
		r = stfs_view_new(model, &view_options, NULL, &diag, &view);
	/* What was finished has another file under the name. */
	if (r == 0 && *name)
		r = stfs_stage_relock(stage, stfs_snapshot_fd(model->files[0]));
	if (r == 0) {
		r = stfs_view_attach_stage(view, stage, &diag);
		stage = NULL;
	}
	close(dir_fd);
	if (diag.text[0])
		said_emit(said, STFS_VIOLATION, NULL, diag.text);
	stfs_stage_free(stage);
	if (r < 0)
		stfs_view_free(view);
	else
		*ret = view;
	return r;
}

static inline struct stfs_view *editing(const char *name)
{
	struct stfs_view *view = NULL;
	struct said said;
	int r;

	said_init(&said);
	r = editing_open(name, stfs_os_real(), &said, &view);
	ck_assert_msg(r == 0, "%s: %s", strerror(-r), said.text);
	return view;
}

/* The inode at a path, 0 when it is not there; *ret_parent and *ret_name say where it would be. */
static inline uint64_t edit_find(struct stfs_view *view, const char *path, uint64_t *ret_parent,
				 struct stfs_slice *ret_name)
{
	uint64_t ino = STFS_INO_ROOT;
	struct stfs_attr attr;

	while (*path) {
		size_t n = strcspn(path, "/");

		ck_assert_msg(ino != 0, "nothing to look for %s in", path);
		*ret_parent = ino;
		*ret_name = (struct stfs_slice){ path, n };
		ino = stfs_view_lookup(view, ino, *ret_name, &attr) < 0 ? 0 : attr.ino;
		path += n + (path[n] == '/');
	}
	return ino;
}

static inline uint64_t edit_ino(struct stfs_view *view, const char *path)
{
	struct stfs_slice name;
	uint64_t parent = 0, ino = edit_find(view, path, &parent, &name);

	ck_assert_msg(ino != 0, "%s is not there", path);
	return ino;
}

static inline bool edit_there(struct stfs_view *view, const char *path)
{
	struct stfs_slice name;
	uint64_t parent = 0;

	return edit_find(view, path, &parent, &name) != 0;
}

static inline void edit_mkdir(struct stfs_view *view, const char *path)
{
	struct stfs_slice name;
	struct stfs_attr attr;
	uint64_t parent = 0;

	edit_find(view, path, &parent, &name);
	ck_assert_int_eq(stfs_view_mkdir(view, parent, name, 0755, (struct stfs_owner){ 0 }, &attr), 0);
}

static inline void edit_rm(struct stfs_view *view, const char *path)
{
	struct stfs_slice name;
	uint64_t parent = 0;

	edit_find(view, path, &parent, &name);
	ck_assert_int_eq(stfs_view_unlink(view, parent, name), 0);
}

/* Removes a tensor: its three files and its directory. */
static inline void edit_rm_tensor(struct stfs_view *view, const char *path)
{
	static const char *const slots[] = { "data", "dtype", "shape" };
	struct stfs_slice name;
	char slot[300];
	uint64_t parent = 0;

	for (int i = 0; i < 3; i++) {
		snprintf(slot, sizeof(slot), "%s/%s", path, slots[i]);
		edit_rm(view, slot);
	}
	edit_find(view, path, &parent, &name);
	ck_assert_int_eq(stfs_view_rmdir(view, parent, name), 0);
}

static inline void edit_mv(struct stfs_view *view, const char *from, const char *to)
{
	struct stfs_slice name, new_name;
	uint64_t parent = 0, new_parent = 0;

	edit_find(view, from, &parent, &name);
	edit_find(view, to, &new_parent, &new_name);
	ck_assert_int_eq(stfs_view_rename(view, parent, name, new_parent, new_name, false), 0);
}

/* Opens a file for writing, made if it is missing. */
static inline struct stfs_file *edit_open(struct stfs_view *view, const char *path, bool truncate)
{
	struct stfs_file *file = NULL;
	struct stfs_slice name;
	struct stfs_attr attr;
	uint64_t parent = 0, ino = edit_find(view, path, &parent, &name);

	if (ino)
		ck_assert_int_eq(stfs_view_open_write(view, ino, truncate, &file), 0);
	else
		ck_assert_int_eq(stfs_view_create(view, parent, name, 0644, (struct stfs_owner){ 0 }, &attr, &file), 0);
	return file;
}

static inline void edit_write(struct stfs_view *view, const char *path, bool truncate, const void *data, size_t size,
			      uint64_t offset)
{
	struct stfs_file *file = edit_open(view, path, truncate);
	size_t written = 0;

	ck_assert_int_eq(stfs_file_write(file, data, size, offset, &written), 0);
	ck_assert_uint_eq(written, size);
	stfs_file_flush(file);
	stfs_file_close(file);
}

/* What `echo text >path` does, without the newline. */
static inline void edit_put(struct stfs_view *view, const char *path, const char *text)
{
	edit_write(view, path, true, text, strlen(text), 0);
}

static inline void edit_resize(struct stfs_view *view, const char *path, uint64_t size)
{
	struct stfs_attr_change change = { .set_size = true, .size = size };
	struct stfs_attr attr;

	ck_assert_int_eq(stfs_view_setattr(view, edit_ino(view, path), &change, &attr), 0);
}

static inline void edit_chmod(struct stfs_view *view, const char *path, mode_t perm)
{
	struct stfs_attr_change change = { .set_perm = true, .perm = perm };
	struct stfs_attr attr;

	ck_assert_int_eq(stfs_view_setattr(view, edit_ino(view, path), &change, &attr), 0);
}

/* All bytes of a file as the view shows them; owned by the caller. */
static inline struct stfs_buf edit_bytes(struct stfs_view *view, const char *path)
{
	struct stfs_buf buf = { 0 };
	struct stfs_file *file;
	char chunk[65536];
	size_t n;

	ck_assert_int_eq(stfs_view_open(view, edit_ino(view, path), &file), 0);
	do {
		ck_assert_int_eq(stfs_file_read(file, buf.len, chunk, sizeof(chunk), &n), 0);
		ck_assert_int_eq(stfs_buf_append(&buf, chunk, n), 0);
	} while (n);
	stfs_file_close(file);
	return buf;
}

static inline void edit_expect(struct stfs_view *view, const char *path, const char *text)
{
	struct stfs_buf buf = edit_bytes(view, path);

	ck_assert_msg(stfs_slice_is(stfs_buf_slice(&buf), text), "%s: %s", path, buf.data);
	stfs_buf_fini(&buf);
}

/* Names in a directory of the fixture ("": itself), sorted and joined by spaces; valid until the next call. */
static inline const char *folder_names(const char *name)
{
	static char text[8192];
	struct dirent **list;
	int n = scandir(fixture_path(name), &list, NULL, alphasort);
	size_t at = 0;

	ck_assert_int_ge(n, 0);
	text[0] = '\0';
	for (int i = 0; i < n; i++) {
		if (strcmp(list[i]->d_name, ".") != 0 && strcmp(list[i]->d_name, "..") != 0)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", at ? " " : "", list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return text;
}

/* All bytes of a file of the fixture; owned by the caller. */
static inline struct stfs_buf file_bytes(const char *name)
{
	FILE *file = fopen(fixture_path(name), "r");
	struct stfs_buf buf = { 0 };
	char chunk[65536];
	size_t n;

	ck_assert_msg(file != NULL, "%s: %s", name, strerror(errno));
	while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0)
		ck_assert_int_eq(stfs_buf_append(&buf, chunk, n), 0);
	fclose(file);
	return buf;
}

static inline void file_put(const char *name, const char *text)
{
	FILE *file = fopen(fixture_path(name), "w");

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fputs(text, file) < 0, 0);
	ck_assert_int_eq(fclose(file), 0);
}

static inline void file_rename(const char *from, const char *to)
{
	int dir_fd = open(fixture_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_eq(renameat(dir_fd, from, dir_fd, to), 0);
	close(dir_fd);
}

static inline void file_link(const char *from, const char *to)
{
	int dir_fd = open(fixture_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_eq(linkat(dir_fd, from, dir_fd, to, 0), 0);
	close(dir_fd);
}

/* What a file should hold, put together by hand. */
struct wanted {
	struct stfs_buf data;
};

/* Bytes as maker_write made them: byte i of the data of the old file is i & 0xff. */
static inline void want_old(struct wanted *wanted, uint64_t offset, size_t size)
{
	for (size_t i = 0; i < size; i++)
		ck_assert_int_eq(stfs_buf_append_char(&wanted->data, (char)((offset + i) & 0xff)), 0);
}

static inline void want_bytes(struct wanted *wanted, const void *data, size_t size)
{
	ck_assert_int_eq(stfs_buf_append(&wanted->data, data, size), 0);
}

static inline void want_zeros(struct wanted *wanted, size_t size)
{
	for (size_t i = 0; i < size; i++)
		ck_assert_int_eq(stfs_buf_append_char(&wanted->data, 0), 0);
}

/* Other bytes at a place where there are some. */
static inline void want_over(struct wanted *wanted, uint64_t offset, const void *data, size_t size)
{
	ck_assert_uint_le(offset + size, wanted->data.len);
	memcpy(wanted->data.data + offset, data, size);
}

/* Compares a committed file: the JSON text, spaces up to where data starts 8-aligned, the data. Resets `wanted`. */
static inline void expect_file(const char *name, const char *json, struct wanted *wanted)
{
	struct stfs_buf file = file_bytes(name);
	size_t json_len = strlen(json);
	uint64_t len = 0;

	ck_assert_uint_ge(file.len, 8 + json_len);
	for (int i = 0; i < 8; i++)
		len |= (uint64_t)(uint8_t)file.data[i] << (8 * i);
	ck_assert_msg(memcmp(file.data + 8, json, json_len) == 0, "%s has %.*s", name, (int)len, file.data + 8);
	ck_assert_uint_eq(len % 8, 0);
	ck_assert_uint_eq(file.len, 8 + len + wanted->data.len);
	for (size_t i = json_len; i < len; i++)
		ck_assert_int_eq(file.data[8 + i], ' ');
	/* Without cloning no more spaces than are needed. */
	ck_assert_uint_lt(len - json_len, 4096);
	ck_assert_int_eq(memcmp(file.data + 8 + len, wanted->data.data ? wanted->data.data : "", wanted->data.len), 0);
	stfs_buf_fini(&file);
	stfs_buf_fini(&wanted->data);
}

/* Commits, and says what happened. */
static inline int commit_options(struct stfs_view *view, const struct stfs_commit_options *options, struct said *said,
				 struct stfs_commit_result *result)
{
	int r;

	said_init(said);
	memset(result, 0, sizeof(*result));
	r = stfs_view_commit(view, options, &said->report, result);
	ck_assert_msg(r == 0 ? said->report.violations == 0 : said->report.violations > 0, "%s: %s", strerror(-r),
		      said->text);
	return r;
}

/* Commits in place, which must succeed without a word. */
static inline struct stfs_commit_result commit(struct stfs_view *view)
{
	struct stfs_commit_options options = { 0 };
	struct stfs_commit_result result;
	struct said said;
	int r = commit_options(view, &options, &said, &result);

	ck_assert_msg(r == 0 && said.text[0] == '\0', "%s: %s", strerror(-r), said.text);
	return result;
}

static inline void editing_teardown(struct stfs_view *view)
{
	char command[200];

	stfs_view_free(view);
	snprintf(command, sizeof(command), "chmod -R u+rwX %s; rm -rf %s", fixture_dir, fixture_dir);
	ck_assert_int_eq(system(command), 0);
}
