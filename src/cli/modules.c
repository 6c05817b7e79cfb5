/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No tree is built: with the names sorted so that all names below a module are neighbours, a module is a range of them
 * and the length of what they have in common.
 */
#include "modules.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#define MAX_DEPTH 8
#define LABEL_MAX 256 /* bytes; longer chains of single children are not joined */
#define CLASSES_MAX 8 /* kinds of layers that a sibling is compared with */
#define RUNS_MAX 6    /* of numbers named in a label */

struct row {
	struct stfs_slice name;
	const struct stfs_tensor *tensor;
};

/* Rows `lo` to `hi`, whose names have their first `prefix` bytes in common: those up to and with a dot. */
struct range {
	size_t lo, hi, prefix;
};

/* A child: its rows (one may be the child itself, all others are below it), and the piece of the name it adds. */
struct child {
	size_t lo, hi;
	struct stfs_slice piece, stem; /* "h_12", "h_" */
	uint32_t number;               /* 12 */
	bool numbered;
	uint64_t bytes;
	size_t same;      /* index + 1 of the next sibling that looks alike, 0: none */
	size_t last_same; /* of a first one: index of the last that looks alike */
	uint64_t count;   /* of a first one: how many; 0 for those that follow */
};

struct children {
	struct child *items;
	size_t n;
};

struct walk {
	const struct row *rows;
	struct stfs_modules *out;
	unsigned max_depth;
};

static void children_fini(struct children *children)
{
	free(children->items);
}

/* Byte order with '.' below all else, which makes the names below a module neighbours. */
static int compare_rows(const void *a, const void *b)
{
	struct stfs_slice x = ((const struct row *)a)->name, y = ((const struct row *)b)->name;
	size_t n = STFS_MIN(x.len, y.len);

	for (size_t i = 0; i < n; i++)
		if (x.p[i] != y.p[i])
			return x.p[i] == '.' ? -1 : y.p[i] == '.' ? 1 : (unsigned char)x.p[i] - (unsigned char)y.p[i];
	return (x.len > y.len) - (x.len < y.len);
}

/* Tells "h_12" as "h_" and 12. A number with leading zeros would not be the same when written again. */
static void split_number(struct child *child)
{
	struct stfs_slice piece = child->piece;
	size_t digits = 0;

	while (digits < piece.len && piece.p[piece.len - digits - 1] >= '0' && piece.p[piece.len - digits - 1] <= '9')
		digits++;
	child->stem = (struct stfs_slice){ piece.p, piece.len - digits };
	child->numbered = digits > 0 && digits < 10 && (digits == 1 || piece.p[piece.len - digits] != '0');
	for (size_t i = piece.len - digits; child->numbered && i < piece.len; i++)
		child->number = child->number * 10 + (uint32_t)(piece.p[i] - '0');
}

/* By what stands before the number, then by its value: h_2 before h_10. */
static int compare_children(const void *a, const void *b)
{
	const struct child *x = a, *y = b;
	int r = stfs_slice_compare(x->stem, y->stem);

	if (r == 0)
		r = (int)x->numbered - (int)y->numbered;
	if (r == 0 && x->numbered)
		r = (x->number > y->number) - (x->number < y->number);
	return r ? r : stfs_slice_compare(x->piece, y->piece);
}

static struct stfs_slice piece_at(struct stfs_slice name, size_t start)
{
	const char *from = name.p + start, *dot = name.len > start ? memchr(from, '.', name.len - start) : NULL;

	return (struct stfs_slice){ from, dot ? (size_t)(dot - from) : name.len - start };
}

/* Finds the children of a range. Returns 0 or -ENOMEM. */
static int split_range(const struct walk *walk, struct range range, struct children *ret)
{
	struct child *items = NULL;
	size_t n = 0, cap = 0;

	for (size_t i = range.lo; i < range.hi; i++) {
		const struct row *row = &walk->rows[i];
		struct stfs_slice piece = piece_at(row->name, range.prefix);

		if (n == 0 || !stfs_slice_equal(items[n - 1].piece, piece)) {
			if (n == cap) {
				struct child *more;

				cap = cap ? 2 * cap : 8;
				more = reallocarray(items, cap, sizeof(*items));
				if (!more) {
					free(items);
					return -ENOMEM;
				}
				items = more;
			}
			items[n] = (struct child){ .lo = i, .piece = piece };
			split_number(&items[n++]);
		}
		items[n - 1].hi = i + 1;
		items[n - 1].bytes += row->tensor->end - row->tensor->begin;
	}
	if (n > 1)
		qsort(items, n, sizeof(*items), compare_children);
	*ret = (struct children){ items, n };
	return 0;
}

static bool same_shape(const struct stfs_tensor *a, const struct stfs_tensor *b)
{
	struct stfs_dims x = stfs_tensor_dims(a), y = stfs_tensor_dims(b);
	uint64_t m, n;

	if (a->dtype != b->dtype || a->rank != b->rank)
		return false;
	while (stfs_dims_next(&x, &m) && stfs_dims_next(&y, &n))
		if (m != n)
			return false;
	return true;
}

/* Whether two children have the same tensors below them. `prefix` is that of their parent. */
static bool look_alike(const struct walk *walk, size_t prefix, const struct child *a, const struct child *b)
{
	size_t skip_a = prefix + a->piece.len, skip_b = prefix + b->piece.len;

	if (a->hi - a->lo != b->hi - b->lo || a->bytes != b->bytes || !stfs_slice_equal(a->stem, b->stem))
		return false;
	for (size_t i = 0; i < a->hi - a->lo; i++) {
		const struct row *x = &walk->rows[a->lo + i], *y = &walk->rows[b->lo + i];

		if (!stfs_slice_equal((struct stfs_slice){ x->name.p + skip_a, x->name.len - skip_a },
				      (struct stfs_slice){ y->name.p + skip_b, y->name.len - skip_b }) ||
		    !same_shape(x->tensor, y->tensor))
			return false;
	}
	return true;
}

/* Chains up numbered siblings that look alike; each is compared with a few kinds only, so that this stays linear. */
static void fold_children(const struct walk *walk, size_t prefix, struct children *children)
{
	size_t recent[CLASSES_MAX], n_kinds = 0;

	for (size_t i = 0; i < children->n; i++) {
		struct child *child = &children->items[i], *first = NULL;

		for (size_t k = 0; child->numbered && !first && k < STFS_MIN(n_kinds, (size_t)CLASSES_MAX); k++)
			if (look_alike(walk, prefix, &children->items[recent[k]], child))
				first = &children->items[recent[k]];
		if (first) {
			children->items[first->last_same].same = i + 1;
			first->last_same = i;
			first->count++;
			continue;
		}
		child->count = 1;
		child->last_same = i;
		if (child->numbered)
			recent[n_kinds++ % CLASSES_MAX] = i;
	}
}

/* Appends "{0..3,5}": the numbers of a chain. */
static int append_numbers(struct stfs_buf *buf, const struct children *children, const struct child *first)
{
	const char *before = "{";
	const struct child *at = first;
	int r = 0;

	for (int runs = 0; at && r >= 0; runs++) {
		uint32_t from = at->number, to = from;

		if (runs == RUNS_MAX) {
			r = stfs_buf_append_str(buf, ",...");
			break;
		}
		while ((at = at->same ? &children->items[at->same - 1] : NULL) && at->number == to + 1)
			to++;
		r = stfs_buf_printf(buf, "%s%" PRIu32, before, from);
		if (r >= 0 && to > from)
			r = stfs_buf_printf(buf, "%s%" PRIu32, to == from + 1 ? "," : "..", to);
		before = ",";
	}
	return r < 0 ? r : stfs_buf_append_char(buf, '}');
}

/* Appends what a child (and those that look like it) adds to a name. A huge piece is cut: a line shows less of it. */
static int append_label(struct stfs_buf *buf, const struct children *children, const struct child *child)
{
	struct stfs_slice text = child->count > 1 ? child->stem : child->piece;
	int r = stfs_buf_append(buf, text.p, STFS_MIN(text.len, (size_t)4 * LABEL_MAX));

	return r >= 0 && child->count > 1 ? append_numbers(buf, children, child) : r;
}

/* What lies below a child: its rows but for the one that is the child itself. */
static struct range range_below(const struct walk *walk, size_t prefix, const struct child *child)
{
	size_t lo = child->lo;

	while (lo < child->hi && walk->rows[lo].name.len == prefix + child->piece.len)
		lo++;
	return (struct range){ lo, child->hi, prefix + child->piece.len + 1 };
}

/*
 * A module with nothing in it but one other (or one chain) shares its line: "layers.{0..31}". Follows such modules down,
 * appending to `module`; *range becomes what lies below the last.
 */
static int join_single(const struct walk *walk, struct stfs_module *module, bool folded, struct range *range)
{
	while (range->lo < range->hi && module->name.len < LABEL_MAX) {
		_cleanup_(children_fini) struct children below = { 0 };
		const struct child *only;
		int r;

		r = split_range(walk, *range, &below);
		if (r < 0)
			return r;
		fold_children(walk, range->prefix, &below);
		only = &below.items[0];
		if (only->count != below.n || (folded && only->count > 1))
			break;
		r = stfs_buf_append_char(&module->name, '.');
		if (r >= 0)
			r = append_label(&module->name, &below, only);
		if (r < 0)
			return r;
		folded |= only->count > 1;
		module->count *= only->count;
		module->bytes = only->bytes;
		*range = range_below(walk, range->prefix, only);
		if (range->hi - range->lo != only->hi - only->lo)
			break; /* it is a tensor too */
	}
	return 0;
}

/* Hands a line over to the output, or counts it when there is no room. */
static int add_line(struct stfs_modules *out, struct stfs_module *module)
{
	if (out->n == out->max) {
		out->more++;
		out->more_bytes += module->count * module->bytes;
		stfs_buf_fini(&module->name);
		return 0;
	}
	if (out->n == out->cap) {
		size_t cap = out->cap ? 2 * out->cap : 16;
		struct stfs_module *lines = reallocarray(out->lines, cap, sizeof(*lines));

		if (!lines)
			return -ENOMEM;
		out->lines = lines;
		out->cap = cap;
	}
	out->lines[out->n++] = *module;
	*module = (struct stfs_module){ 0 };
	return 0;
}

static void module_fini(struct stfs_module *module)
{
	stfs_buf_fini(&module->name);
}

/* Adds the lines of a range; `times` is how many ranges like it there are. Recursion ends at max_depth. */
static int add_range(const struct walk *walk, struct range range, unsigned depth, uint64_t times)
{
	_cleanup_(children_fini) struct children children = { 0 };
	int r = split_range(walk, range, &children);

	if (r < 0)
		return r;
	fold_children(walk, range.prefix, &children);
	/* A tree of several levels that does not fit is not wanted at all. */
	for (size_t i = 0; i < children.n && (walk->max_depth == 1 || walk->out->more == 0); i++) {
		const struct child *child = &children.items[i];
		_cleanup_(module_fini) struct stfs_module module = { .depth = depth,
								     .count = times * child->count,
								     .bytes = child->bytes };
		struct range below = range_below(walk, range.prefix, child);
		uint64_t count;

		if (child->count == 0)
			continue;
		r = append_label(&module.name, &children, child);
		if (r >= 0 && below.hi - below.lo == child->hi - child->lo)
			r = join_single(walk, &module, child->count > 1, &below);
		count = module.count;
		if (r >= 0)
			r = add_line(walk->out, &module);
		if (r >= 0 && depth + 1 < walk->max_depth && below.lo < below.hi)
			r = add_range(walk, below, depth + 1, count);
		if (r < 0)
			return r;
	}
	return 0;
}

static struct row *sorted_rows(const struct stfs_model *model)
{
	struct row *rows = reallocarray(NULL, (size_t)model->n_entries + 1, sizeof(*rows));

	if (!rows)
		return NULL;
	for (uint32_t i = 0; i < model->n_entries; i++) {
		rows[i].tensor = stfs_model_tensor(model, i);
		rows[i].name = rows[i].tensor->name;
	}
	qsort(rows, model->n_entries, sizeof(*rows), compare_rows);
	return rows;
}

/* Tries one depth after the other and keeps the last that fits. */
int stfs_modules_init(const struct stfs_model *model, size_t max_lines, struct stfs_modules *ret_modules)
{
	_cleanup_free_ struct row *rows = sorted_rows(model);
	_cleanup_(stfs_modules_fini) struct stfs_modules best = { 0 };

	if (!rows)
		return -ENOMEM;
	for (unsigned depth = 1; depth <= MAX_DEPTH; depth++) {
		_cleanup_(stfs_modules_fini) struct stfs_modules lines = { .max = max_lines };
		struct walk walk = { .rows = rows, .out = &lines, .max_depth = depth };
		struct stfs_modules previous = best;
		int r = add_range(&walk, (struct range){ 0, model->n_entries, 0 }, 0, 1);

		if (r < 0)
			return r;
		if (depth > 1 && (lines.more > 0 || lines.n == best.n))
			break;
		best = lines;
		lines = previous;
	}
	*ret_modules = best;
	best = (struct stfs_modules){ 0 };
	return 0;
}

void stfs_modules_fini(struct stfs_modules *modules)
{
	for (size_t i = 0; i < modules->n; i++)
		stfs_buf_fini(&modules->lines[i].name);
	free(modules->lines);
}
