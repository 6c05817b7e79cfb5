/* SPDX-License-Identifier: Apache-2.0 */
#include "name.h"

#include <errno.h>
#include <stdint.h>

#include "utf8.h"

static const char cut_mark[] = "%+";
static const char empty_mark[] = "%_";
static const char digits[] = "0123456789ABCDEF";

/* Bytes that never stand for themselves in a file name. */
static bool must_escape(uint8_t c)
{
	return c < 0x20 || c == 0x7f || c == '%' || c == '/';
}

static void put_escape(char out[3], uint8_t c)
{
	out[0] = '%';
	out[1] = digits[c >> 4];
	out[2] = digits[c & 15];
}

/*
 * Writes the character at the start of `s` (not empty) to `out`, escaped when it has to be or when `forced` (ASCII
 * only). Returns the bytes written; *ret_used is how many bytes of `s` they stand for.
 */
static size_t encode_char(struct stfs_slice s, bool forced, char out[4], size_t *ret_used)
{
	uint8_t c = (uint8_t)s.p[0];
	uint32_t code;
	size_t n = 1;

	if (forced || must_escape(c)) {
		*ret_used = 1;
		put_escape(out, c);
		return 3;
	}
	if (c >= 0x80)
		n = stfs_utf8_next(s, &code);
	/* A byte that is not UTF-8 passes: decode refuses what it gives, so it can never alias a real name. */
	*ret_used = n ? n : 1;
	memcpy(out, s.p, *ret_used);
	return *ret_used;
}

/* How many bytes at the start of `s`, at most `max`, are ASCII that stands for itself whatever the layout. */
static size_t plain_run(struct stfs_slice s, size_t max)
{
	size_t n = 0;

	max = STFS_MIN(max, s.len);
	while (n < max && (uint8_t)s.p[n] < 0x80 && s.p[n] != '.' && !must_escape((uint8_t)s.p[n]))
		n++;
	return n;
}

/*
 * Appends the bytes that a component stands for. *ret_cut tells whether it ends in the mark of a cut piece. Strict
 * about the form of an escape only: whether it belongs there is for the caller to find, by encoding again.
 */
static int decode_component(struct stfs_buf *buf, struct stfs_slice s, bool *ret_cut)
{
	size_t plain;
	int r = 0;

	*ret_cut = stfs_slice_ends(s, cut_mark);
	if (*ret_cut)
		s.len -= strlen(cut_mark);
	if (stfs_slice_is(s, empty_mark))
		return 0;
	for (; r == 0 && s.len; s.p += plain, s.len -= plain) {
		const char *high, *low, *escape = memchr(s.p, '%', s.len);

		plain = escape ? (size_t)(escape - s.p) : s.len;
		r = stfs_buf_append(buf, s.p, plain);
		if (r < 0 || !escape)
			continue;
		high = s.len - plain < 3 ? NULL : memchr(digits, escape[1], 16);
		low = high ? memchr(digits, escape[2], 16) : NULL;
		if (!low)
			return -EPERM;
		r = stfs_buf_append_char(buf, (char)((high - digits) << 4 | (low - digits)));
		plain += 3;
	}
	return r;
}

/* What is wrong with a component whatever it spells. */
static int check_component(struct stfs_slice s)
{
	if (s.len > STFS_COMPONENT_MAX)
		return -ENAMETOOLONG;
	return stfs_utf8_invalid(s) < s.len ? -EILSEQ : 0;
}

/* What was appended since `start`. */
static struct stfs_slice appended(const struct stfs_buf *buf, size_t start)
{
	return (struct stfs_slice){ buf->data ? buf->data + start : NULL, buf->len - start };
}

/* Takes a failed append back. */
static int undo(struct stfs_buf *buf, size_t len, int error)
{
	buf->len = len;
	if (buf->data)
		buf->data[len] = '\0';
	return error;
}

void stfs_name_walk_init(struct stfs_name_walk *walk, struct stfs_slice name, enum stfs_layout layout)
{
	walk->rest = name;
	walk->layout = layout;
	walk->done = walk->in_piece = false;
	walk->first = true;
	walk->component[0] = '\0';
	walk->len = 0;
}

static bool at_piece_end(const struct stfs_name_walk *walk)
{
	return walk->rest.len == 0 || (walk->layout == STFS_NESTED && walk->rest.p[0] == '.');
}

/* A component that would meet a file of ours: the slots of a tensor, at the root the metadata. */
static bool is_reserved(struct stfs_slice s, bool at_root)
{
	return stfs_slice_is(s, "data") || stfs_slice_is(s, "dtype") || stfs_slice_is(s, "shape") ||
	       stfs_slice_is(s, "data.npy") || (at_root && stfs_slice_is(s, "__metadata__"));
}

/* Completes the component that ends its piece. */
static void finish_piece(struct stfs_name_walk *walk)
{
	char *c = walk->component;

	if (walk->len == 0) {
		memcpy(c, empty_mark, strlen(empty_mark));
		walk->len = strlen(empty_mark);
	} else if (is_reserved((struct stfs_slice){ c, walk->len }, walk->first)) {
		uint8_t first = (uint8_t)c[0];

		memmove(c + 3, c + 1, walk->len - 1);
		put_escape(c, first);
		walk->len += 2;
	}
}

/* Moves `used` bytes of the name into the component as the `n` bytes at `p`. */
static void move_on(struct stfs_name_walk *walk, const char *p, size_t n, size_t used)
{
	memcpy(walk->component + walk->len, p, n);
	walk->len += n;
	walk->rest.p += used;
	walk->rest.len -= used;
}

bool stfs_name_walk_next(struct stfs_name_walk *walk)
{
	bool cut = false;

	if (walk->done)
		return false;
	walk->len = 0;
	while (!cut && !at_piece_end(walk)) {
		size_t used, n = plain_run(walk->rest, STFS_PIECE_MAX - walk->len);
		char out[4];

		if (n) {
			move_on(walk, walk->rest.p, n, n);
			continue;
		}
		/* A dot that opens a component, be it the first or not, could make "..", or a name that `ls` hides. */
		n = encode_char(walk->rest, walk->len == 0 && walk->rest.p[0] == '.', out, &used);
		cut = walk->len + n > STFS_PIECE_MAX;
		if (cut)
			move_on(walk, cut_mark, strlen(cut_mark), 0);
		else
			move_on(walk, out, n, used);
	}
	if (!cut) {
		finish_piece(walk);
		walk->done = walk->rest.len == 0;
		if (!walk->done) { /* at the dot between two pieces */
			walk->rest.p++;
			walk->rest.len--;
		}
	}
	walk->component[walk->len] = '\0';
	walk->in_piece = cut;
	walk->first = false;
	return true;
}

int stfs_name_encode(struct stfs_buf *buf, struct stfs_slice name, enum stfs_layout layout)
{
	struct stfs_name_walk walk;
	size_t start = buf->len;
	int r = 0;

	stfs_name_walk_init(&walk, name, layout);
	for (bool first = true; r == 0 && stfs_name_walk_next(&walk); first = false) {
		if (!first)
			r = stfs_buf_append_char(buf, '/');
		if (r == 0)
			r = stfs_buf_append(buf, walk.component, walk.len);
	}
	return r < 0 ? undo(buf, start, r) : 0;
}

/* The component at the start of a path, without the '/' after it. */
static struct stfs_slice first_component(struct stfs_slice path)
{
	const char *slash = path.len ? memchr(path.p, '/', path.len) : NULL;

	return (struct stfs_slice){ path.p, slash ? (size_t)(slash - path.p) : path.len };
}

/* Whether `path` is exactly what `name` encodes to. */
static bool is_canonical(struct stfs_slice path, struct stfs_slice name, enum stfs_layout layout)
{
	struct stfs_name_walk walk;
	size_t at = 0;

	stfs_name_walk_init(&walk, name, layout);
	while (stfs_name_walk_next(&walk)) {
		if (at > 0 && (at == path.len || path.p[at++] != '/'))
			return false;
		if (path.len - at < walk.len || memcmp(path.p + at, walk.component, walk.len) != 0)
			return false;
		at += walk.len;
	}
	return at == path.len;
}

static int decode_path(struct stfs_buf *buf, struct stfs_slice path, enum stfs_layout layout)
{
	bool cut = true; /* no dot before the first component */

	for (;;) {
		struct stfs_slice component = first_component(path);
		int r = check_component(component);

		if (r == 0 && !cut)
			r = layout == STFS_FLAT ? -EPERM : stfs_buf_append_char(buf, '.');
		if (r == 0)
			r = decode_component(buf, component, &cut);
		if (r < 0 || component.len == path.len)
			return r;
		path.p += component.len + 1;
		path.len -= component.len + 1;
	}
}

int stfs_name_decode(struct stfs_buf *buf, struct stfs_slice path, enum stfs_layout layout)
{
	size_t start = buf->len;
	int r = decode_path(buf, path, layout);

	if (r == 0 && !is_canonical(path, appended(buf, start), layout))
		r = -EPERM;
	return r < 0 ? undo(buf, start, r) : 0;
}

/* The file name of a key into `out`, which has room for a character more than a component may have. */
static int encode_key(struct stfs_slice key, char out[STFS_COMPONENT_MAX + 4], size_t *ret_len)
{
	size_t len = 0;

	if (key.len == 0)
		memcpy(out, empty_mark, len = strlen(empty_mark));
	for (bool first = true; key.len; first = false) {
		bool scratch = (first && (key.p[0] == '.' || key.p[0] == '#')) || (key.len == 1 && key.p[0] == '~');
		size_t used;

		len += encode_char(key, scratch, out + len, &used);
		if (len > STFS_COMPONENT_MAX)
			return -ENAMETOOLONG;
		key.p += used;
		key.len -= used;
	}
	*ret_len = len;
	return 0;
}

int stfs_key_encode(struct stfs_buf *buf, struct stfs_slice key)
{
	char component[STFS_COMPONENT_MAX + 4];
	size_t len;
	int r = encode_key(key, component, &len);

	return r < 0 ? r : stfs_buf_append(buf, component, len);
}

int stfs_key_decode(struct stfs_buf *buf, struct stfs_slice component)
{
	char again[STFS_COMPONENT_MAX + 4];
	size_t len, start = buf->len;
	bool cut = false;
	int r = check_component(component);

	if (r == 0)
		r = decode_component(buf, component, &cut);
	if (r == 0)
		r = encode_key(appended(buf, start), again, &len);
	if (r == 0 && !stfs_slice_equal(component, (struct stfs_slice){ again, len }))
		r = -EPERM;
	return r < 0 ? undo(buf, start, r) : 0;
}
