/* SPDX-License-Identifier: Apache-2.0 */
#include "ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void stfs_ranges_fini(struct stfs_ranges *ranges)
{
	free(ranges->items);
	*ranges = (struct stfs_ranges){ 0 };
}

/* Index of the first range that ends at `offset` or later. */
static size_t first_ending_from(const struct stfs_ranges *ranges, uint64_t offset)
{
	size_t low = 0, high = ranges->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->items[middle].end < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int stfs_ranges_reserve(struct stfs_ranges *ranges)
{
	size_t cap = ranges->cap ? ranges->cap * 2 : 4;
	struct stfs_range *items;

	if (ranges->n < ranges->cap)
		return 0;
	items = reallocarray(ranges->items, cap, sizeof(*items));
	if (!items)
		return -ENOMEM;
	ranges->items = items;
	ranges->cap = cap;
	return 0;
}

/* Puts `range` in the place of items `first` to `last` - 1, which may be none. */
static int replace(struct stfs_ranges *ranges, size_t first, size_t last, struct stfs_range range)
{
	int r = first == last ? stfs_ranges_reserve(ranges) : 0;

	if (r < 0)
		return r;
	if (last < ranges->n)
		memmove(&ranges->items[first + 1], &ranges->items[last], (ranges->n - last) * sizeof(range));
	ranges->items[first] = range;
	ranges->n = ranges->n + 1 - (last - first);
	return 0;
}

int stfs_ranges_add(struct stfs_ranges *ranges, uint64_t begin, uint64_t end, bool *ret_grew)
{
	size_t first = first_ending_from(ranges, begin), last = first;
	struct stfs_range range = { begin, end };
	bool grew = begin < end;
	int r = 0;

	if (first < ranges->n && ranges->items[first].begin <= begin && end <= ranges->items[first].end)
		grew = false;
	if (grew) {
		for (; last < ranges->n && ranges->items[last].begin <= end; last++) {
			range.begin = STFS_MIN(range.begin, ranges->items[last].begin);
			range.end = STFS_MAX(range.end, ranges->items[last].end);
		}
		r = replace(ranges, first, last, range);
	}
	if (r == 0 && ret_grew)
		*ret_grew = grew;
	return r;
}

/* Puts a range that ends before `begin` and one that starts at `end` in the place of item `i`, which has both in it. */
static int split(struct stfs_ranges *ranges, size_t i, uint64_t begin, uint64_t end)
{
	int r = stfs_ranges_reserve(ranges);

	if (r < 0)
		return r;
	memmove(&ranges->items[i + 1], &ranges->items[i], (ranges->n - i) * sizeof(*ranges->items));
	ranges->items[i].end = begin;
	ranges->items[i + 1].begin = end;
	ranges->n++;
	return 0;
}

int stfs_ranges_remove(struct stfs_ranges *ranges, uint64_t begin, uint64_t end)
{
	size_t first = first_ending_from(ranges, begin), last;

	if (begin >= end)
		return 0;
	if (first < ranges->n && ranges->items[first].begin < begin) {
		if (ranges->items[first].end > end)
			return split(ranges, first, begin, end);
		ranges->items[first++].end = begin;
	}
	for (last = first; last < ranges->n && ranges->items[last].end <= end; last++)
		;
	if (last > first && last < ranges->n)
		memmove(&ranges->items[first], &ranges->items[last], (ranges->n - last) * sizeof(*ranges->items));
	ranges->n -= last - first;
	if (first < ranges->n)
		ranges->items[first].begin = STFS_MAX(ranges->items[first].begin, end);
	return 0;
}

void stfs_ranges_cut(struct stfs_ranges *ranges, uint64_t size)
{
	size_t i = first_ending_from(ranges, size);

	if (i < ranges->n && ranges->items[i].begin < size)
		ranges->items[i++].end = size;
	ranges->n = i;
}

bool stfs_ranges_at(const struct stfs_ranges *ranges, uint64_t offset, uint64_t *ret_end)
{
	size_t i = first_ending_from(ranges, offset);

	/* The end of a range is not in it. */
	if (i < ranges->n && ranges->items[i].end == offset)
		i++;
	if (i == ranges->n) {
		*ret_end = UINT64_MAX;
		return false;
	}
	if (ranges->items[i].begin > offset) {
		*ret_end = ranges->items[i].begin;
		return false;
	}
	*ret_end = ranges->items[i].end;
	return true;
}

uint64_t stfs_ranges_bytes(const struct stfs_ranges *ranges)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < ranges->n; i++)
		bytes += ranges->items[i].end - ranges->items[i].begin;
	return bytes;
}
