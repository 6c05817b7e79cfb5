/* SPDX-License-Identifier: Apache-2.0 */
#include "rename_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "array.h"
#include "json_scan.h"
#include "quote.h"
#include "retry.h"
#include "utf8.h"

#define CHUNK 65536
#define TEXT_MAX ((size_t)256 << 20) /* bytes: more is no list of names */

void stfs_rename_map_fini(struct stfs_rename_map *map)
{
	stfs_buf_fini(&map->text);
	stfs_decoded_free(map->decoded);
	free(map->pairs);
	*map = (struct stfs_rename_map){ 0 };
}

static int read_all(const char *path, struct stfs_buf *buf)
{
	_cleanup_close_ int own = -1;
	int fd = STDIN_FILENO;

	if (strcmp(path, "-") != 0)
		fd = own = STFS_RETRY(open(path, O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return -errno;
	for (;;) {
		int r = stfs_buf_reserve(buf, CHUNK);
		ssize_t n;

		if (r < 0)
			return r;
		n = STFS_RETRY(read(fd, buf->data + buf->len, CHUNK));
		if (n <= 0)
			return n < 0 ? -errno : 0;
		buf->len += (size_t)n;
		buf->data[buf->len] = '\0';
		if (buf->len > TEXT_MAX)
			return -EFBIG;
	}
}

static int add_pair(struct stfs_rename_map *map, struct stfs_slice from, struct stfs_slice to)
{
	int r = stfs_array_grow((void **)&map->pairs, map->n, &map->cap, UINT32_MAX, sizeof(*map->pairs));

	if (r == 0)
		map->pairs[map->n++] = (struct stfs_rename_pair){ from, to };
	return r;
}

static int take_member(struct stfs_rename_map *map, struct stfs_json *json)
{
	struct stfs_json_string key, value;
	struct stfs_slice from, to;
	int r = stfs_json_key(json, &key);

	if (r == 0 && stfs_json_peek(json) != '"')
		return stfs_json_fail(json, "a string, a new name");
	if (r == 0)
		r = stfs_json_string(json, &value);
	if (r == 0)
		r = stfs_json_decode(map->decoded, &key, &from);
	if (r == 0)
		r = stfs_json_decode(map->decoded, &value, &to);
	if (r == 0 && (memchr(from.p, '\0', from.len) || memchr(to.p, '\0', to.len)))
		return stfs_json_fail(json, "a name without a NUL in it");
	return r < 0 ? r : add_pair(map, from, to);
}

static int read_object(struct stfs_rename_map *map, struct stfs_diag *diag)
{
	struct stfs_json json;
	bool first = true;
	int r = stfs_decoded_new(&map->decoded), more = 1;

	stfs_json_init(&json, stfs_buf_slice(&map->text));
	if (r == 0)
		r = stfs_json_enter(&json, '{');
	while (r == 0 && (more = stfs_json_more(&json, '}', first)) > 0) {
		first = false;
		r = take_member(map, &json);
	}
	if (r == 0)
		r = more < 0 ? more : stfs_json_end(&json);
	return r == -EBADMSG ? stfs_fail(diag, -EINVAL, "%s", json.error.text) : r;
}

/* Takes the next line off *rest, without its end. */
static struct stfs_slice take_line(struct stfs_slice *rest)
{
	struct stfs_slice line = stfs_slice_cut(rest, '\n');

	if (line.len && line.p[line.len - 1] == '\r')
		line.len--;
	return line;
}

static int read_columns(struct stfs_rename_map *map, struct stfs_diag *diag)
{
	struct stfs_slice rest = stfs_buf_slice(&map->text);
	int r = 0;

	for (unsigned number = 1; r == 0 && rest.len > 0; number++) {
		struct stfs_slice to = take_line(&rest), from;

		if (to.len == 0)
			continue;
		from = stfs_slice_cut(&to, '\t');
		if (from.len == 0 || to.len == 0 || memchr(to.p, '\t', to.len))
			return stfs_fail(diag, -EINVAL, "line %u is not an old name, a tab and a new name", number);
		r = add_pair(map, from, to);
	}
	return r;
}

int stfs_rename_map_read(const char *path, struct stfs_diag *diag, struct stfs_rename_map *ret)
{
	_cleanup_(stfs_rename_map_fini) struct stfs_rename_map map = { 0 };
	struct stfs_slice text;
	int r = stfs_buf_append_str(&map.text, "");

	if (r == 0)
		r = read_all(path, &map.text);
	if (r < 0)
		return r;
	text = stfs_buf_slice(&map.text);
	if (stfs_utf8_invalid(text) != text.len || memchr(text.p, '\0', text.len))
		return stfs_fail(diag, -EINVAL, "it is no text in UTF-8");
	r = text.p[strspn(text.p, " \t\r\n")] == '{' ? read_object(&map, diag) : read_columns(&map, diag);
	if (r < 0)
		return r;
	*ret = map;
	map = (struct stfs_rename_map){ 0 };
	return 0;
}
