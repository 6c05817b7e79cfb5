/* SPDX-License-Identifier: Apache-2.0 */
/* Views for tests, and short ways to ask them. Only within the fixture of model_fixture.h. */
#pragma once

#include <errno.h>

#include "model_fixture.h"
#include "view.h"

static inline struct stfs_view *view_open(const char *name, struct stfs_view_options options)
{
	struct stfs_view *view = NULL;

	ck_assert_int_eq(stfs_view_new(fixture_open(name), &options, NULL, NULL, &view), 0);
	return view;
}

static inline struct stfs_view *view_open_default(const char *name)
{
	return view_open(name, (struct stfs_view_options){ 0 });
}

/* Walks `path` down from the root, component by component, without following symlinks. Returns 0 or the errno. */
static inline int view_walk(struct stfs_view *view, const char *path, struct stfs_attr *ret)
{
	int r = stfs_view_getattr(view, STFS_INO_ROOT, ret);

	while (r == 0 && *path) {
		size_t len = strcspn(path, "/");

		r = stfs_view_lookup(view, ret->ino, (struct stfs_slice){ path, len }, ret);
		path += len + (path[len] == '/');
	}
	return r;
}

/* Attributes of a path that must be there. */
static inline struct stfs_attr view_stat(struct stfs_view *view, const char *path)
{
	struct stfs_attr attr = { 0 };
	int r = view_walk(view, path, &attr);

	ck_assert_msg(r == 0, "%s: %s", path, strerror(-r));
	return attr;
}

static inline uint64_t view_ino(struct stfs_view *view, const char *path)
{
	return view_stat(view, path).ino;
}

/* What a listing of `path` shows, names joined by spaces; valid until the next call. */
static inline const char *view_names(struct stfs_view *view, const char *path)
{
	static char text[4096];
	struct stfs_listing *listing = NULL;
	size_t at = 0;

	ck_assert_int_eq(stfs_view_list(view, view_ino(view, path), &listing), 0);
	for (size_t i = 0; i < listing->n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s", i ? " " : "",
				       (int)listing->entries[i].name.len, listing->entries[i].name.p);
	stfs_listing_free(listing);
	return text;
}

/* Where the symlink at `path` leads; valid until the next call. Its lookup is not forgotten. */
static inline const char *view_link(struct stfs_view *view, const char *path)
{
	static char text[4096];
	struct stfs_attr attr = view_stat(view, path);
	struct stfs_buf buf = { 0 };

	ck_assert_int_eq(attr.type, STFS_NODE_LINK);
	ck_assert_int_eq(stfs_view_readlink(view, attr.ino, &buf), 0);
	ck_assert_uint_eq(buf.len, attr.size);
	snprintf(text, sizeof(text), "%s", buf.data);
	stfs_buf_fini(&buf);
	return text;
}

/* Calls `visit` for every entry that listings show, from the root down, the root first. */
static inline void view_each(struct stfs_view *view, void (*visit)(void *user, const struct stfs_attr *attr),
			     void *user)
{
	struct stfs_buf queue = { 0 };
	uint64_t ino = STFS_INO_ROOT;
	struct stfs_attr attr;

	ck_assert_int_eq(stfs_buf_append(&queue, &ino, sizeof(ino)), 0);
	ck_assert_int_eq(stfs_view_getattr(view, ino, &attr), 0);
	visit(user, &attr);
	for (size_t at = 0; at < queue.len; at += sizeof(ino)) {
		struct stfs_listing *listing = NULL;

		memcpy(&ino, queue.data + at, sizeof(ino));
		if (stfs_view_list(view, ino, &listing) < 0)
			ck_abort_msg("cannot list");
		for (size_t i = 2; i < listing->n; i++) {
			const struct stfs_dirent *entry = &listing->entries[i];

			if (stfs_view_lookup(view, ino, entry->name, &attr) < 0 || attr.ino != entry->ino ||
			    attr.type != entry->type)
				ck_abort_msg("lookup and listing differ at %.*s", (int)entry->name.len, entry->name.p);
			visit(user, &attr);
			if (attr.type == STFS_NODE_DIR && stfs_buf_append(&queue, &attr.ino, sizeof(ino)) < 0)
				ck_abort_msg("out of memory");
		}
		stfs_listing_free(listing);
	}
	stfs_buf_fini(&queue);
}
