/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensor of the model has the name nearest to a new one's: the names are sorted once, for there may be many new ones. */
#include <errno.h>
#include <stdlib.h>

#include "plan_private.h"

static int compare_names(const void *a, const void *b, void *tensors)
{
	const struct stfs_staged_tensor *x = (const struct stfs_staged_tensor *)tensors + *(const uint32_t *)a;
	const struct stfs_staged_tensor *y = (const struct stfs_staged_tensor *)tensors + *(const uint32_t *)b;

	return stfs_slice_compare(x->name, y->name);
}

int stfs_nearest_init(struct stfs_nearest *nearest, const struct stfs_changes *changes)
{
	uint32_t n = 0;

	/* New ones come last. */
	while (n < changes->n_tensors && changes->tensors[n].entry != STFS_ENTRY_NONE)
		n++;
	*nearest = (struct stfs_nearest){ .changes = changes, .n = n };
	nearest->latest = calloc(2 * (size_t)n + 1, sizeof(*nearest->latest));
	if (!nearest->latest)
		return -ENOMEM;
	nearest->by_name = nearest->latest + n;
	for (uint32_t i = 0; i < n; i++)
		nearest->by_name[i] = i;
	if (n)
		qsort_r(nearest->by_name, n, sizeof(*nearest->by_name), compare_names, changes->tensors);
	for (size_t i = n; i-- > 1;)
		nearest->latest[i] = STFS_MAX(nearest->latest[2 * i], nearest->latest[2 * i + 1]);
	return 0;
}

void stfs_nearest_fini(struct stfs_nearest *nearest)
{
	free(nearest->latest);
}

static struct stfs_slice name_at(const struct stfs_nearest *nearest, uint32_t i)
{
	return nearest->changes->tensors[nearest->by_name[i]].name;
}

/* How many names come before all that begin with `start`, or with `after` before all that come after those. */
static uint32_t count_before(const struct stfs_nearest *nearest, struct stfs_slice start, bool after)
{
	uint32_t low = 0, high = nearest->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		struct stfs_slice name = name_at(nearest, middle);

		if (after && name.len > start.len)
			name.len = start.len;
		if (stfs_slice_compare(name, start) < (after ? 1 : 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Bytes of the whole pieces between dots, dots included, that two names have in common at their start. */
static size_t common_pieces(struct stfs_slice a, struct stfs_slice b)
{
	size_t n = STFS_MIN(a.len, b.len), common = 0;

	for (size_t i = 0; i < n && a.p[i] == b.p[i]; i++) {
		if (a.p[i] == '.')
			common = i + 1;
	}
	return common;
}

uint32_t stfs_nearest_find(const struct stfs_nearest *nearest, struct stfs_slice name)
{
	uint32_t at = count_before(nearest, name, false), low, high, latest = 0;
	size_t before = at > 0 ? common_pieces(name, name_at(nearest, at - 1)) : 0;
	size_t behind = at < nearest->n ? common_pieces(name, name_at(nearest, at)) : 0;

	/* No other name has more in common than the two that it would stand between. */
	name.len = STFS_MAX(before, behind);
	if (name.len == 0)
		return UINT32_MAX;
	low = count_before(nearest, name, false) + nearest->n;
	high = count_before(nearest, name, true) + nearest->n;
	for (; low < high; low /= 2, high /= 2) {
		/* At an edge one of two may belong and the other not: then it counts by itself. */
		if (low % 2) {
			latest = STFS_MAX(latest, nearest->latest[low]);
			low++;
		}
		if (high % 2) {
			high--;
			latest = STFS_MAX(latest, nearest->latest[high]);
		}
	}
	return latest;
}
