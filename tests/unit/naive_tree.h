/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a writable view should show, as a naive tree: a list of paths and bytes, with nothing clever in it. Beside the view of
 * edit_fixture.h.
 */
#pragma once

#include "edit_fixture.h"

#define ENTRIES_MAX 300
#define BYTES_MAX 14000
#define HANDLES 3

/* A file: named by an entry, by a handle, or both. */
struct object {
	unsigned refs;
	char home[64]; /* of a file of the model: its path there, which is its inode number for good */
	size_t len;
	char bytes[BYTES_MAX];
};

/* A directory has no object. */
struct entry {
	char path[256];
	struct object *object;
};

static struct entry entries[ENTRIES_MAX];
static size_t n_entries;
static struct {
	struct stfs_file *file;
	struct object *object;
} handles[HANDLES];

static inline void unref(struct object *object)
{
	if (object && --object->refs == 0)
		free(object);
}

static inline struct entry *find(const char *path)
{
	for (size_t i = 0; i < n_entries; i++) {
		if (strcmp(entries[i].path, path) == 0)
			return &entries[i];
	}
	return NULL;
}

static inline bool is_dir(const char *path)
{
	struct entry *entry = find(path);

	return !*path || (entry && !entry->object);
}

static inline bool is_under(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return n == 0 || (strncmp(path, dir, n) == 0 && path[n] == '/');
}

static inline bool is_empty(const char *dir)
{
	for (size_t i = 0; i < n_entries; i++) {
		if (is_under(entries[i].path, dir))
			return false;
	}
	return true;
}

static inline struct object *add(const char *path, bool dir)
{
	struct entry *entry = &entries[n_entries++];

	ck_assert_uint_le(n_entries, ENTRIES_MAX);
	snprintf(entry->path, sizeof(entry->path), "%s", path);
	entry->object = dir ? NULL : calloc(1, sizeof(struct object));
	if (entry->object)
		entry->object->refs = 1;
	return entry->object;
}

static inline void drop(const char *path)
{
	struct entry *entry = find(path);

	ck_assert_ptr_nonnull(entry);
	unref(entry->object);
	*entry = entries[--n_entries];
}

static inline void set_bytes(struct object *object, const void *bytes, size_t len)
{
	memcpy(object->bytes, bytes, len);
	object->len = len;
}

/* An object under that name, a new one or the one there is, with that text. */
static inline void set_file(const char *path, const void *bytes, size_t len)
{
	struct entry *entry = find(path);
	struct object *object = entry ? entry->object : add(path, false);

	ck_assert_ptr_nonnull(object);
	set_bytes(object, bytes, len);
}

static inline const char *join(const char *dir, const char *name)
{
	static char paths[4][512];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s%s%s", dir, *dir ? "/" : "", name);
	return path;
}

static inline void add_tensor(const char *name, const char *dtype, const char *shape, unsigned begin, size_t size)
{
	char path[256], *p = path;
	char bytes[BYTES_MAX];

	snprintf(path, sizeof(path), "%s", name);
	for (; view_layout == STFS_NESTED && (p = strchr(p, '.')); *p++ = '/') {
		*p = '\0';
		if (!find(path))
			add(path, true);
	}
	if (!find(path))
		add(path, true);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)(begin + i);
	set_file(join(path, "data"), bytes, size);
	set_file(join(path, "dtype"), dtype, strlen(dtype));
	set_file(join(path, "shape"), shape, strlen(shape));
}

/* Who has a file of the model open has it open again when it is back, wherever it was meanwhile. */
static inline void go_home(struct entry *entry)
{
	struct object *open = NULL;

	if (!entry->object)
		return;
	snprintf(entry->object->home, sizeof(entry->object->home), "%.63s", entry->path);
	for (unsigned i = 0; i < HANDLES; i++) {
		if (handles[i].object && strcmp(handles[i].object->home, entry->path) == 0)
			open = handles[i].object;
	}
	if (!open)
		return;
	set_bytes(open, entry->object->bytes, entry->object->len);
	unref(entry->object);
	entry->object = open;
	open->refs++;
}

static inline void fresh_tree(void)
{
	while (n_entries)
		unref(entries[--n_entries].object);
	add("__metadata__", true);
	set_file("__metadata__/format", "pt\n", 3);
	set_file("__metadata__/note", "x\n", 2);
	add_tensor("a.w", "F32\n", "2 3\n", 0, 24);
	add_tensor("a.b", "U8\n", "5\n", 24, 5);
	add_tensor("a", "U8\n", "0\n", 29, 0);
	add_tensor("big", "U8\n", "9000\n", 29, 9000);
	add_tensor("c.w", "U8\n", "5000\n", 9029, 5000);
	add_tensor("c.b", "U8\n", "7000\n", 14029, 7000);
	for (size_t i = 0; i < n_entries; i++)
		go_home(&entries[i]);
}

static inline const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static inline bool is_slot_name(const char *name)
{
	return strcmp(name, "data") == 0 || strcmp(name, "dtype") == 0 || strcmp(name, "shape") == 0;
}

/* Whether a directory may have that name there. */
static inline bool dir_may_be(const char *dir, const char *name)
{
	if (strcmp(dir, "__metadata__") == 0 || is_slot_name(name))
		return false;
	if (view_layout == STFS_FLAT)
		return name[0] != '.';
	return strcmp(name, "x.y") != 0 || !find(join(dir, "x/y"));
}

static inline bool may_rename(const char *from, const char *dir, const char *name, const char *to)
{
	struct entry *target = find(to);
	bool dir_moves = is_dir(from);

	if (strcmp(from, "__metadata__") == 0 || (dir_moves && (strcmp(dir, from) == 0 || is_under(dir, from))))
		return false;
	if (dir_moves &&
	    (strcmp(dir, "__metadata__") == 0 || is_slot_name(name) || (view_layout == STFS_FLAT && name[0] == '.')))
		return false;
	if (!target)
		return !dir_moves || dir_may_be(dir, name);
	if (strcmp(from, to) == 0)
		return true;
	if (dir_moves != !target->object)
		return false;
	return !dir_moves || (is_empty(to) && strcmp(to, "__metadata__") != 0);
}

static inline void apply_rename(const char *from, const char *to)
{
	size_t n = strlen(from);

	if (strcmp(from, to) == 0)
		return;
	if (find(to))
		drop(to);
	for (size_t i = 0; i < n_entries; i++) {
		char rest[256];

		if (strcmp(entries[i].path, from) != 0 && !is_under(entries[i].path, from))
			continue;
		strcpy(rest, entries[i].path + n);
		ck_assert_int_lt(snprintf(entries[i].path, sizeof(entries[i].path), "%s%s", to, rest), 256);
	}
}

static inline void write_object(struct object *object, const char *bytes, size_t n, size_t offset)
{
	if (offset > object->len)
		memset(object->bytes + object->len, 0, offset - object->len);
	memcpy(object->bytes + offset, bytes, n);
	object->len = STFS_MAX(object->len, offset + n);
}

/* What the naive tree makes of a tensor's directory: -1 nothing, 0 incomplete, 1 a tensor. */
static inline int judge(const char *dir)
{
	struct entry *data = find(join(dir, "data")), *dtype = find(join(dir, "dtype")),
		     *shape = find(join(dir, "shape"));
	struct {
		const char *name;
		size_t bits;
	} dtypes[] = { { "U8", 8 }, { "F32", 32 }, { "BF16", 16 }, { "F4", 4 } };
	char text[BYTES_MAX + 1], *p, *end;
	size_t bits = 0;

	if (!*dir || strcmp(dir, "__metadata__") == 0)
		return -1;
	if (find(join(dir, "data.npy")))
		return 0;
	if (!data && !dtype && !shape)
		return -1;
	if (!data || !dtype || !shape || (view_layout == STFS_FLAT && strchr(dir, '/')))
		return 0;
	snprintf(text, sizeof(text), "%.*s", (int)dtype->object->len, dtype->object->bytes);
	if (strlen(text) != dtype->object->len)
		return 0;
	for (size_t i = 0; i < STFS_ARRAY_SIZE(dtypes); i++) {
		if (strncmp(text, dtypes[i].name, strlen(dtypes[i].name)) == 0 &&
		    strspn(text + strlen(dtypes[i].name), "\n") == strlen(text) - strlen(dtypes[i].name))
			bits = dtypes[i].bits;
	}
	snprintf(text, sizeof(text), "%.*s", (int)shape->object->len, shape->object->bytes);
	if (!bits || strlen(text) != shape->object->len)
		return 0;
	p = text[0] == '[' && strchr(text, ']') ? text + 1 : text;
	if (p > text)
		*strchr(text, ']') = '\0';
	for (; *(p += strspn(p, " \n")); p = end) {
		size_t dim = strtoul(p, &end, 10);

		if (end == p || (*end && *end != ' ' && *end != '\n'))
			return 0;
		bits *= dim;
	}
	return bits == data->object->len * 8;
}
