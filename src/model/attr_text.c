/* SPDX-License-Identifier: Apache-2.0 */
#include "attr_text.h"

#include <errno.h>
#include <inttypes.h>

struct stfs_slice stfs_value_of_text(struct stfs_slice text)
{
	if (text.len && text.p[text.len - 1] == '\n')
		text.len--;
	return text;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct stfs_slice trim(struct stfs_slice s)
{
	while (s.len && is_blank(s.p[0]))
		s = (struct stfs_slice){ s.p + 1, s.len - 1 };
	while (s.len && is_blank(s.p[s.len - 1]))
		s.len--;
	return s;
}

bool stfs_dtype_of_text(struct stfs_slice text, enum stfs_dtype *ret)
{
	return stfs_dtype_parse(trim(text), ret);
}

/* Takes brackets off; one without its partner makes the rest unreadable, which is then said. */
static struct stfs_slice unwrap(struct stfs_slice s)
{
	if (s.len >= 2 && ((s.p[0] == '[' && s.p[s.len - 1] == ']') || (s.p[0] == '(' && s.p[s.len - 1] == ')')))
		return trim((struct stfs_slice){ s.p + 1, s.len - 2 });
	return s;
}

/* Takes the number at the start of *s. Plain digits only, as in a header. */
static bool take_number(struct stfs_slice *s, uint64_t *ret)
{
	uint64_t v = 0;
	size_t n = 0;

	for (; n < s->len && s->p[n] >= '0' && s->p[n] <= '9'; n++) {
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(s->p[n] - '0'), &v))
			return false;
	}
	if (n == 0)
		return false;
	*s = (struct stfs_slice){ s->p + n, s->len - n };
	*ret = v;
	return true;
}

/* Takes what stands between two numbers: blanks, and at most one ',' or 'x'. Returns false when there is nothing. */
static bool take_separator(struct stfs_slice *s)
{
	struct stfs_slice rest = trim(*s);
	bool found = rest.p != s->p;

	if (rest.len && (rest.p[0] == ',' || rest.p[0] == 'x')) {
		rest = trim((struct stfs_slice){ rest.p + 1, rest.len - 1 });
		found = true;
	}
	*s = rest;
	return found;
}

static int append_dims(struct stfs_slice s, struct stfs_buf *dims, uint32_t *ret_rank)
{
	uint32_t rank = 0;
	uint64_t dim;
	int r;

	while (s.len) {
		if ((rank && !take_separator(&s)) || !take_number(&s, &dim))
			return -EINVAL;
		r = stfs_buf_printf(dims, "%s%" PRIu64, rank++ ? "," : "", dim);
		if (r < 0)
			return r;
	}
	*ret_rank = rank;
	return 0;
}

int stfs_shape_of_text(struct stfs_slice text, struct stfs_buf *dims, uint32_t *ret_rank)
{
	struct stfs_slice s = trim(text), inner = unwrap(s);
	size_t before = dims->len;
	int r;

	/* "(3,)" is how Python writes one dimension. */
	if (s.len && s.p[0] == '(' && inner.len > 1 && inner.p[inner.len - 1] == ',')
		inner = trim((struct stfs_slice){ inner.p, inner.len - 1 });
	r = append_dims(inner, dims, ret_rank);
	if (r < 0)
		dims->len = before;
	return r;
}
