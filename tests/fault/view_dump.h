/* SPDX-License-Identifier: Apache-2.0 */
/* All that a view shows, as one text: to compare views before and after a fault. Takes no memory of its own. */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "crc32.h"
#include "view.h"

struct dump {
	char text[65536];
	size_t len;
};

static inline void dump_say(struct dump *dump, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline void dump_say(struct dump *dump, const char *fmt, ...)
{
	size_t room = sizeof(dump->text) - dump->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(dump->text + dump->len, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room)
		abort(); /* no check of the framework: those take memory */
	dump->len += (size_t)n;
}

static inline bool dump_is_text(const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] != '\n' && bytes[i] != '\t' && (bytes[i] < ' ' || bytes[i] > '~'))
			return false;
	}
	return true;
}

static inline int dump_file(struct stfs_view *view, uint64_t ino, struct dump *dump)
{
	static char bytes[65536];
	struct stfs_file *file;
	size_t n = 0;
	int r = stfs_view_open(view, ino, &file);

	if (r < 0)
		return r;
	r = stfs_file_read(file, 0, bytes, sizeof(bytes), &n);
	stfs_file_close(file);
	if (r < 0)
		return r;
	dump_say(dump, " %zu bytes %08x", n, stfs_crc32(0, bytes, n));
	if (n < 4096 && dump_is_text(bytes, n))
		dump_say(dump, ":%.*s", (int)n, bytes);
	return 0;
}

static inline int dump_entry(struct stfs_view *view, uint64_t parent, struct stfs_slice name, const char *path,
			     struct dump *dump);

/* The order of a listing is that of making, which is nothing a view promises. */
static inline void dump_sort(struct stfs_listing *listing)
{
	for (size_t i = 3; i < listing->n; i++) {
		struct stfs_dirent entry = listing->entries[i];
		size_t k = i;

		for (; k > 2 && stfs_slice_compare(listing->entries[k - 1].name, entry.name) > 0; k--)
			listing->entries[k] = listing->entries[k - 1];
		listing->entries[k] = entry;
	}
}

static inline int dump_dir(struct stfs_view *view, uint64_t ino, const char *path, struct dump *dump)
{
	struct stfs_listing *listing;
	int r = stfs_view_list(view, ino, &listing);

	if (r < 0)
		return r;
	dump_sort(listing);
	for (size_t i = 2; r == 0 && i < listing->n; i++)
		r = dump_entry(view, ino, listing->entries[i].name, path, dump);
	stfs_listing_free(listing);
	return r;
}

static inline int dump_entry(struct stfs_view *view, uint64_t parent, struct stfs_slice name, const char *path,
			     struct dump *dump)
{
	struct stfs_attr attr;
	char full[600];
	int r = stfs_view_lookup(view, parent, name, &attr);

	if (r < 0)
		return r;
	snprintf(full, sizeof(full), "%s/%.*s", path, (int)name.len, name.p);
	dump_say(dump, "%s", full);
	if (attr.type == STFS_NODE_DIR) {
		dump_say(dump, " %03o %u:%u\n", attr.perm, attr.uid, attr.gid);
		return dump_dir(view, attr.ino, full, dump);
	}
	dump_say(dump, " %03o %u:%u", attr.perm, attr.uid, attr.gid);
	r = dump_file(view, attr.ino, dump);
	dump_say(dump, "\n");
	return r;
}

/*
 * Dumps the tree of a view that lists every file. Returns 0, or what the first call answered that failed.
 */
static inline int dump_view(struct stfs_view *view, struct dump *dump)
{
	dump->len = 0;
	dump->text[0] = '\0';
	return dump_dir(view, STFS_INO_ROOT, "", dump);
}

static inline bool same_dump(const struct dump *a, const struct dump *b)
{
	return strcmp(a->text, b->text) == 0;
}

/* Tells stderr the lines of `a` that `b` does not have. */
static inline void dump_tell_lines(const struct dump *a, const struct dump *b, const char *sign)
{
	for (const char *line = a->text; *line;) {
		size_t n = strcspn(line, "\n");
		const char *found = memmem(b->text, b->len, line, n);

		if (n && (!found || (found != b->text && found[-1] != '\n') || found[n] != '\n'))
			fprintf(stderr, "%s%.*s\n", sign, (int)STFS_MIN(n, 200), line);
		line += n + (line[n] == '\n');
	}
}

/* What is in `b` and not in `a`, and the other way round. */
static inline void dump_tell(const struct dump *a, const struct dump *b)
{
	dump_tell_lines(a, b, "-");
	dump_tell_lines(b, a, "+");
}
