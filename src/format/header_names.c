/* SPDX-License-Identifier: Apache-2.0 */
/* Names that the format allows and that trouble whoever takes them for paths or prints them. */
#include <inttypes.h>

#include "header_parse.h"
#include "quote.h"

#define FILE_NAME_MAX 255
#define HUB_HEADER_MAX 25000000

/*
 * How many bytes of prefixes are looked up in one header. Ordinary models of 100,000 tensors need a third of it; a header
 * made of nothing but dots must not cost seconds.
 */
#define PREFIX_BUDGET ((uint64_t)96 * 1024 * 1024)

/* Why one part of a name between slashes is no path component, or NULL. */
static const char *part_trouble(struct stfs_slice part)
{
	if (part.len == 0)
		return "has an empty path part";
	if (stfs_slice_is(part, ".") || stfs_slice_is(part, ".."))
		return "has a path part that means another folder";
	return NULL;
}

/* Why a name is awkward, or NULL. */
static const char *name_trouble(struct stfs_slice name)
{
	size_t part = 0, piece = 0;
	const char *trouble;

	if (name.len == 0)
		return "is empty";
	for (size_t i = 0; i <= name.len; i++) {
		char c = i < name.len ? name.p[i] : '/';

		if ((uint8_t)c < 0x20 || c == 0x7f)
			return c ? "has a control character" : "has a NUL";
		if (c == '.' || c == '/') {
			if (i - piece > FILE_NAME_MAX)
				return "has a part longer than a file name may be";
			piece = i + 1;
		}
		if (c == '/') {
			trouble = part_trouble((struct stfs_slice){ name.p + part, i - part });
			if (trouble)
				return trouble;
			part = i + 1;
		}
	}
	return NULL;
}

/* Warns when another tensor's name is this one's up to a '.' or '/': one path would be both file and folder. */
static void check_prefixes(const struct stfs_header *header, struct stfs_slice name, uint64_t *budget,
			   struct stfs_report *report)
{
	for (size_t i = 0; i < name.len; i++) {
		struct stfs_slice prefix = { name.p, i };

		if (name.p[i] != '.' && name.p[i] != '/')
			continue;
		if (i > *budget)
			return;
		*budget -= i;
		if (stfs_header_find(header, prefix)) {
			stfs_warn(report, "tensor %s is also the folder of tensor %s", stfs_quote(prefix).text,
				  stfs_quote(name).text);
			return;
		}
	}
}

void stfs_header_check_names(const struct stfs_header *header, struct stfs_report *report)
{
	uint64_t budget = PREFIX_BUDGET;

	if (header->text_len > HUB_HEADER_MAX)
		stfs_warn(report, "header of %zu bytes: the Hugging Face Hub reads none over %d", header->text_len,
			  HUB_HEADER_MAX);
	for (uint32_t i = 0; i < header->n_tensors; i++) {
		struct stfs_slice name = header->tensors[i].name;
		const char *trouble = name_trouble(name);

		if (trouble)
			stfs_warn(report, "tensor %s: the name %s", stfs_quote(name).text, trouble);
		check_prefixes(header, name, &budget, report);
	}
}
