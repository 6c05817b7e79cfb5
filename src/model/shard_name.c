/* SPDX-License-Identifier: Apache-2.0 */
#include "shard_name.h"

#include <string.h>

#define EXTENSION ".safetensors"
#define OLD_INDEX ".index.json"

static struct stfs_slice cut_end(struct stfs_slice s, size_t n)
{
	return (struct stfs_slice){ s.p, s.len - n };
}

/* Takes the digits at the end of *s away. Returns false when there are none, or too many to be a number of ours. */
static bool take_number(struct stfs_slice *s, uint64_t *ret)
{
	size_t start = s->len;
	uint64_t v = 0;

	while (start > 0 && s->p[start - 1] >= '0' && s->p[start - 1] <= '9')
		start--;
	if (start == s->len || s->len - start > 9)
		return false;
	for (size_t i = start; i < s->len; i++)
		v = v * 10 + (uint64_t)(s->p[i] - '0');
	s->len = start;
	*ret = v;
	return true;
}

/* Takes "-00001-of-00003" at the end of *s away. */
static bool take_suffix(struct stfs_slice *s, struct stfs_shard_name *ret)
{
	struct stfs_slice rest = *s;
	uint64_t number, total;

	if (!take_number(&rest, &total) || !stfs_slice_ends(rest, "-of-"))
		return false;
	rest.len -= 4;
	if (!take_number(&rest, &number) || !stfs_slice_ends(rest, "-"))
		return false;
	rest.len -= 1;
	ret->numbered = true;
	ret->number = number;
	ret->total = total;
	*s = rest;
	return true;
}

/* Splits "model.fp16" at its last dot. */
static void split_variant(struct stfs_slice s, struct stfs_shard_name *ret)
{
	ret->stem = s;
	for (size_t i = s.len; i > 0; i--) {
		if (s.p[i - 1] == '.') {
			ret->stem = (struct stfs_slice){ s.p, i - 1 };
			ret->variant = (struct stfs_slice){ s.p + i, s.len - i };
			return;
		}
	}
}

bool stfs_shard_name_parse(struct stfs_slice name, struct stfs_shard_name *ret)
{
	struct stfs_shard_name parsed = { 0 };
	struct stfs_slice base;

	if (!stfs_slice_ends(name, EXTENSION) || name.len == strlen(EXTENSION))
		return false;
	base = cut_end(name, strlen(EXTENSION));
	if (take_suffix(&base, &parsed)) {
		split_variant(base, &parsed);
	} else {
		split_variant(base, &parsed);
		/* The older order: model-00001-of-00002.fp16.safetensors. */
		take_suffix(&parsed.stem, &parsed);
	}
	*ret = parsed;
	return true;
}

bool stfs_index_name_parse(struct stfs_slice name, struct stfs_shard_name *ret)
{
	struct stfs_shard_name parsed = { 0 };

	for (size_t i = 0; i + strlen(EXTENSION) < name.len; i++) {
		struct stfs_slice tail = { name.p + i, name.len - i };

		if (!stfs_slice_starts(tail, EXTENSION ".") || i == 0)
			continue;
		parsed.stem = (struct stfs_slice){ name.p, i };
		tail = (struct stfs_slice){ tail.p + strlen(EXTENSION), tail.len - strlen(EXTENSION) };
		if (stfs_slice_is(tail, OLD_INDEX)) {
			*ret = parsed;
			return true;
		}
		if (stfs_slice_starts(tail, ".index.") && stfs_slice_ends(tail, ".json"))
			parsed.variant = (struct stfs_slice){ tail.p + 7, tail.len - 7 - 5 };
		else if (stfs_slice_ends(tail, OLD_INDEX))
			parsed.variant = (struct stfs_slice){ tail.p + 1, tail.len - 1 - strlen(OLD_INDEX) };
		else
			return false;
		*ret = parsed;
		return true;
	}
	return false;
}

int stfs_shard_name_compare(const char *a, const char *b)
{
	return strverscmp(a, b);
}

bool stfs_shard_name_same_set(const struct stfs_shard_name *a, const struct stfs_shard_name *b)
{
	return a->numbered && b->numbered && a->total == b->total && stfs_slice_equal(a->stem, b->stem) &&
	       stfs_slice_equal(a->variant, b->variant);
}
