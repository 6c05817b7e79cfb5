/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names to paths and back. The first byte says what the rest is: 0 and 1 a tensor name (nested, flat), 2 and 3 a path,
 * 4 a metadata key, 5 the file name of one.
 */
#include <errno.h>
#include <stdint.h>

#include "name.h"
#include "utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char kept[] = "kept";

static void check(bool ok)
{
	if (!ok)
		__builtin_trap();
}

static void start(struct stfs_buf *buf)
{
	check(stfs_buf_append_str(buf, kept) == 0);
}

/* What was appended behind the text of start(). */
static struct stfs_slice appended(const struct stfs_buf *buf)
{
	check(buf->len >= strlen(kept) && memcmp(buf->data, kept, strlen(kept)) == 0 && buf->data[buf->len] == '\0');
	return (struct stfs_slice){ buf->data + strlen(kept), buf->len - strlen(kept) };
}

static void check_component(struct stfs_slice c, bool first, enum stfs_layout layout)
{
	check(c.len > 0 && c.len <= STFS_COMPONENT_MAX && c.p[0] != '.');
	check(layout == STFS_FLAT || !memchr(c.p, '.', c.len));
	check(!stfs_slice_is(c, "data") && !stfs_slice_is(c, "dtype") && !stfs_slice_is(c, "shape"));
	check(!stfs_slice_is(c, "data.npy") && !(first && stfs_slice_is(c, "__metadata__")));
	for (size_t i = 0; i < c.len; i++)
		check((uint8_t)c.p[i] >= 0x20 && c.p[i] != 0x7f && c.p[i] != '/');
}

/* A path: the components are safe to hand to a kernel, and those of the walk. */
static void check_path(struct stfs_slice path, struct stfs_slice name, enum stfs_layout layout)
{
	struct stfs_name_walk walk;
	bool first = true;

	stfs_name_walk_init(&walk, name, layout);
	for (;;) {
		const char *slash = memchr(path.p, '/', path.len);
		struct stfs_slice c = { path.p, slash ? (size_t)(slash - path.p) : path.len };

		check_component(c, first, layout);
		check(stfs_name_walk_next(&walk));
		check(stfs_slice_equal(c, (struct stfs_slice){ walk.component, walk.len }));
		check(walk.component[walk.len] == '\0');
		if (!slash)
			break;
		path.p += c.len + 1;
		path.len -= c.len + 1;
		first = false;
	}
	check(!stfs_name_walk_next(&walk));
}

static void check_name(struct stfs_slice name, enum stfs_layout layout)
{
	_cleanup_buf_ struct stfs_buf path = { 0 }, again = { 0 };
	int r;

	start(&path);
	start(&again);
	check(stfs_name_encode(&path, name, layout) == 0);
	r = stfs_name_decode(&again, appended(&path), layout);
	if (stfs_utf8_invalid(name) < name.len) { /* no name of a model; only memory safety is asked for */
		check(r == -EILSEQ && appended(&again).len == 0);
		return;
	}
	check_path(appended(&path), name, layout);
	check(r == 0 && stfs_slice_equal(appended(&again), name));
}

static void check_decode(struct stfs_slice path, enum stfs_layout layout)
{
	_cleanup_buf_ struct stfs_buf name = { 0 }, again = { 0 };
	int r;

	start(&name);
	start(&again);
	r = stfs_name_decode(&name, path, layout);
	if (r < 0) {
		check(r == -EPERM || r == -EILSEQ || r == -ENAMETOOLONG);
		check(appended(&name).len == 0);
		return;
	}
	check(stfs_utf8_invalid(appended(&name)) == appended(&name).len);
	check(stfs_name_encode(&again, appended(&name), layout) == 0);
	check(stfs_slice_equal(appended(&again), path));
}

static void check_key(struct stfs_slice key)
{
	_cleanup_buf_ struct stfs_buf component = { 0 }, again = { 0 };
	struct stfs_slice c;
	int r;

	start(&component);
	start(&again);
	r = stfs_key_encode(&component, key);
	c = appended(&component);
	if (r < 0) {
		check(r == -ENAMETOOLONG && c.len == 0 && key.len > STFS_COMPONENT_MAX / 3);
		return;
	}
	check(c.len > 0 && c.len <= STFS_COMPONENT_MAX && c.p[0] != '.' && c.p[0] != '#' && c.p[c.len - 1] != '~');
	for (size_t i = 0; i < c.len; i++)
		check((uint8_t)c.p[i] >= 0x20 && c.p[i] != 0x7f && c.p[i] != '/');
	r = stfs_key_decode(&again, c);
	if (stfs_utf8_invalid(key) < key.len)
		check(r == -EILSEQ && appended(&again).len == 0);
	else
		check(r == 0 && stfs_slice_equal(appended(&again), key));
}

static void check_key_decode(struct stfs_slice component)
{
	_cleanup_buf_ struct stfs_buf key = { 0 }, again = { 0 };
	int r;

	start(&key);
	start(&again);
	r = stfs_key_decode(&key, component);
	if (r < 0) {
		check(r == -EPERM || r == -EILSEQ || r == -ENAMETOOLONG);
		check(appended(&key).len == 0);
		return;
	}
	check(stfs_key_encode(&again, appended(&key)) == 0);
	check(stfs_slice_equal(appended(&again), component));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stfs_slice rest;

	if (size == 0)
		return 0;
	rest = (struct stfs_slice){ (const char *)data + 1, size - 1 };
	switch (data[0] % 6) {
	case 0:
	case 1:
		check_name(rest, data[0] % 6 == 0 ? STFS_NESTED : STFS_FLAT);
		break;
	case 2:
	case 3:
		check_decode(rest, data[0] % 6 == 2 ? STFS_NESTED : STFS_FLAT);
		break;
	case 4:
		check_key(rest);
		break;
	default:
		check_key_decode(rest);
	}
	return 0;
}
