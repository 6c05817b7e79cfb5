/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "checked.h"
#include "header_parse.h"
#include "quote.h"

bool stfs_dims_next(struct stfs_dims *dims, uint64_t *ret)
{
	uint64_t v = 0;

	if (dims->left == 0)
		return false;
	while (*dims->p < '0' || *dims->p > '9')
		dims->p++;
	for (; *dims->p >= '0' && *dims->p <= '9'; dims->p++)
		v = v * 10 + (uint64_t)(*dims->p - '0');
	dims->left--;
	*ret = v;
	return true;
}

/* Multiplies left to right as the reference does, so that [2^64-1, 9, 0] overflows and [0, 2^64-1, 9] does not. */
static bool count_elements(const struct stfs_tensor *tensor, uint64_t *ret)
{
	struct stfs_dims dims = stfs_tensor_dims(tensor);
	uint64_t n = 1, dim;

	while (stfs_dims_next(&dims, &dim)) {
		if (!stfs_mul(n, dim, &n))
			return false;
	}
	*ret = n;
	return true;
}

uint64_t stfs_tensor_elements(const struct stfs_tensor *tensor)
{
	uint64_t n = 0;

	return count_elements(tensor, &n) ? n : 0;
}

/* "F32 [2,3]" for a message, cut when the shape is long. */
struct type_text {
	char text[160];
};

static struct type_text describe_type(const struct stfs_tensor *tensor)
{
	struct stfs_dims dims = stfs_tensor_dims(tensor);
	struct type_text ret;
	size_t size = sizeof(ret.text), n;
	const char *separator = "";
	uint64_t dim;

	n = (size_t)snprintf(ret.text, size, "%s [", stfs_dtype_info(tensor->dtype)->name);
	while (stfs_dims_next(&dims, &dim)) {
		if (size - n < 32) {
			n += (size_t)snprintf(ret.text + n, size - n, "%s…", separator);
			break;
		}
		n += (size_t)snprintf(ret.text + n, size - n, "%s%" PRIu64, separator, dim);
		separator = ",";
	}
	snprintf(ret.text + n, size - n, "]");
	return ret;
}

/* Rules 7 to 10: the size that shape and dtype ask for is what the offsets span. */
static void check_extent(const struct stfs_tensor *tensor, struct stfs_report *report)
{
	uint64_t elements, bits;

	if (!count_elements(tensor, &elements) || !stfs_mul(elements, stfs_dtype_info(tensor->dtype)->bits, &bits)) {
		stfs_violation(report, "tensor %s: overflow computing the size of %s", stfs_quote(tensor->name).text,
			       describe_type(tensor).text);
	} else if (bits % 8 != 0) {
		stfs_violation(report, "tensor %s: %s is %" PRIu64 " bits, which do not end up at a byte boundary",
			       stfs_quote(tensor->name).text, describe_type(tensor).text, bits);
	} else if (tensor->end >= tensor->begin && tensor->end - tensor->begin != bits / 8) {
		stfs_violation(report,
			       "tensor %s: %s needs %" PRIu64 " bytes, data_offsets [%" PRIu64 ",%" PRIu64
			       "] hold %" PRIu64,
			       stfs_quote(tensor->name).text, describe_type(tensor).text, bits / 8, tensor->begin,
			       tensor->end, tensor->end - tensor->begin);
	}
}

/* Rule 6: each tensor begins where the one before it ended. `previous` is NULL for the first. */
static void check_begin(const struct stfs_tensor *tensor, const struct stfs_tensor *previous, uint64_t expected,
			struct stfs_report *report)
{
	if (tensor->end < tensor->begin)
		stfs_violation(report,
			       "invalid offset for tensor %s: data_offsets [%" PRIu64 ",%" PRIu64
			       "] end before they begin",
			       stfs_quote(tensor->name).text, tensor->begin, tensor->end);
	else if (tensor->begin > expected)
		stfs_violation(report,
			       "invalid offset for tensor %s: expected to begin at %" PRIu64 ", found %" PRIu64
			       " (%" PRIu64 " bytes belong to no tensor)",
			       stfs_quote(tensor->name).text, expected, tensor->begin, tensor->begin - expected);
	else if (tensor->begin < expected)
		stfs_violation(report,
			       "invalid offset for tensor %s: expected to begin at %" PRIu64 ", found %" PRIu64
			       " (its bytes overlap those of tensor %s)",
			       stfs_quote(tensor->name).text, expected, tensor->begin,
			       previous ? stfs_quote(previous->name).text : "none");
}

/* Rule 11: the last tensor ends where the file ends. */
static void check_end(uint64_t covered, uint64_t data_size, unsigned flags, struct stfs_report *report)
{
	if (covered > data_size)
		stfs_violation(report,
			       "file is cut short: the tensors need %" PRIu64 " bytes of data, the file has %" PRIu64
			       " (%" PRIu64 " bytes are missing: a truncated download?)",
			       covered, data_size, covered - data_size);
	else if (covered < data_size)
		stfs_report_add(report, flags & STFS_LAX ? STFS_WARNING : STFS_VIOLATION,
				"%" PRIu64 " bytes after the last tensor: the tensors cover %" PRIu64
				" bytes of data, the file has %" PRIu64 "%s",
				data_size - covered, covered, data_size,
				flags & STFS_LAX ? "" : " (-o lax reads it all the same)");
}

static int compare_tensors(const struct stfs_tensor *a, const struct stfs_tensor *b)
{
	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return (a->end > b->end) - (a->end < b->end);
}

static int compare_order(const void *a, const void *b, void *tensors)
{
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	int r = compare_tensors((const struct stfs_tensor *)tensors + i, (const struct stfs_tensor *)tensors + k);

	/* Equal ones keep the order of the header, so that a listing is the same each time. */
	return r ? r : (i > k) - (i < k);
}

/* Puts tensor order[i] at place i, following the cycles: a second array of a million tensors would be too much. */
static void permute_tensors(struct stfs_tensor *tensors, uint32_t *order, uint32_t n)
{
	for (uint32_t start = 0; start < n; start++) {
		struct stfs_tensor first = tensors[start];
		uint32_t i = start;

		while (order[i] != start) {
			uint32_t from = order[i];

			tensors[i] = tensors[from];
			order[i] = i;
			i = from;
		}
		tensors[i] = first;
		order[i] = i;
	}
}

static int sort_tensors(struct stfs_header *header)
{
	_cleanup_free_ uint32_t *order = NULL;
	uint32_t i;

	for (i = 1; i < header->n_tensors; i++) {
		if (compare_tensors(&header->tensors[i - 1], &header->tensors[i]) > 0)
			break;
	}
	if (i >= header->n_tensors)
		return 0;
	order = malloc(header->n_tensors * sizeof(*order));
	if (!order)
		return -ENOMEM;
	for (i = 0; i < header->n_tensors; i++)
		order[i] = i;
	qsort_r(order, header->n_tensors, sizeof(*order), compare_order, header->tensors);
	permute_tensors(header->tensors, order, header->n_tensors);
	stfs_table_rebuild(&header->names, (struct stfs_table_items){ header->tensors, sizeof(*header->tensors) });
	return 0;
}

int stfs_layout_check(struct stfs_header *header, uint64_t data_size, unsigned flags, bool known,
		      struct stfs_report *report)
{
	const struct stfs_tensor *previous = NULL;
	uint64_t covered = 0;
	int r = sort_tensors(header);

	if (r < 0)
		return r;
	for (uint32_t i = 0; known && i < header->n_tensors; i++) {
		const struct stfs_tensor *tensor = &header->tensors[i];

		check_begin(tensor, previous, covered, report);
		check_extent(tensor, report);
		if (tensor->end >= tensor->begin && tensor->end >= covered) {
			covered = tensor->end;
			previous = tensor;
		}
	}
	if (known)
		check_end(covered, data_size, flags, report);
	header->data_size = covered;
	return 0;
}
