/* SPDX-License-Identifier: Apache-2.0 */
#include "header.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "array.h"
#include "header_parse.h"
#include "quote.h"
#include "utf8.h"

#define METADATA_KEY "__metadata__"

static struct stfs_table_items tensor_items(const struct stfs_header *header)
{
	return (struct stfs_table_items){ header->tensors, sizeof(*header->tensors) };
}

static struct stfs_table_items metadata_items(const struct stfs_header *header)
{
	return (struct stfs_table_items){ header->metadata, sizeof(*header->metadata) };
}

int stfs_header_length(const uint8_t word[8], uint64_t file_size, struct stfs_report *report, uint64_t *ret_len)
{
	uint64_t n = 0;

	if (file_size < 8) {
		stfs_violation(report, "header too small: expected at least 8 bytes, the file has %" PRIu64, file_size);
		return -EBADMSG;
	}
	for (unsigned i = 0; i < 8; i++)
		n |= (uint64_t)word[i] << (8 * i);
	if (n > STFS_HEADER_MAX) {
		stfs_violation(report,
			       "header too large: its length word says %" PRIu64 " bytes, the limit is %" PRIu64 "%s",
			       n, STFS_HEADER_MAX,
			       __builtin_bswap64(n) <= file_size - 8 ?
				       " (is it big-endian? the format is little-endian)" :
				       "");
		return -EBADMSG;
	}
	if (n > file_size - 8) {
		stfs_violation(report,
			       "invalid header length: %" PRIu64 " bytes of header are announced, the file has %" PRIu64
			       " after its length word (a truncated download?)",
			       n, file_size - 8);
		return -EBADMSG;
	}
	*ret_len = n;
	return 0;
}

int stfs_header_grammar_error(struct stfs_header_parser *parser)
{
	stfs_violation(parser->report, "%s", parser->json.error.text);
	return -EBADMSG;
}

/* Says that a header holds more than we keep; returns -EFBIG. */
static int too_many(struct stfs_header_parser *parser, const char *what)
{
	stfs_violation(parser->report, "too many %s: at most %u are read", what, STFS_TENSORS_MAX);
	return -EFBIG;
}

static int parse_tensor(struct stfs_header_parser *parser, struct stfs_slice name)
{
	struct stfs_header *header = parser->header;
	int r = stfs_array_grow((void **)&header->tensors, header->n_tensors, &parser->tensors_cap, STFS_TENSORS_MAX,
				sizeof(*header->tensors));

	if (r < 0)
		return r == -EFBIG ? too_many(parser, "tensors") : r;
	header->tensors[header->n_tensors] = (struct stfs_tensor){ .name = name };
	r = stfs_table_insert(&header->names, tensor_items(header), header->n_tensors);
	if (r == -EEXIST) {
		parser->broken_entry = true;
		stfs_violation(parser->report, "duplicate name: tensor %s stands in the header more than once",
			       stfs_quote(name).text);
		return stfs_json_skip(&parser->json) < 0 ? stfs_header_grammar_error(parser) : 0;
	}
	if (r < 0)
		return r;
	r = stfs_header_parse_entry(parser, &header->tensors[header->n_tensors]);
	header->n_tensors++;
	return r;
}

/* Reads one member of __metadata__. */
static int parse_metadata_entry(struct stfs_header_parser *parser)
{
	struct stfs_header *header = parser->header;
	struct stfs_json_string literal;
	struct stfs_metadata_entry *entry;
	int r = stfs_array_grow((void **)&header->metadata, header->n_metadata, &parser->metadata_cap, STFS_TENSORS_MAX,
				sizeof(*header->metadata));

	if (r < 0)
		return r == -EFBIG ? too_many(parser, "metadata entries") : r;
	entry = &header->metadata[header->n_metadata];
	if (stfs_json_key(&parser->json, &literal) < 0)
		return stfs_header_grammar_error(parser);
	r = stfs_json_decode(header->decoded, &literal, &entry->key);
	if (r < 0)
		return r;
	if (stfs_json_peek(&parser->json) != '"') {
		stfs_violation(parser->report, METADATA_KEY " key %s: expected a string, found %s",
			       stfs_quote(entry->key).text, stfs_json_kind(&parser->json));
		return stfs_json_skip(&parser->json) < 0 ? stfs_header_grammar_error(parser) : 0;
	}
	if (stfs_json_string(&parser->json, &literal) < 0)
		return stfs_header_grammar_error(parser);
	r = stfs_json_decode(header->decoded, &literal, &entry->value);
	if (r < 0)
		return r;
	r = stfs_table_insert(&header->keys, metadata_items(header), header->n_metadata);
	if (r == -EEXIST) {
		stfs_violation(parser->report, METADATA_KEY " key %s: duplicate key", stfs_quote(entry->key).text);
		return 0;
	}
	if (r == 0)
		header->n_metadata++;
	return r;
}

static int parse_metadata(struct stfs_header_parser *parser, bool duplicate)
{
	int c = stfs_json_peek(&parser->json), r;
	bool first = true;

	if (duplicate)
		stfs_violation(parser->report, "duplicate field " METADATA_KEY);
	if (c != '{') {
		if (c == 'n')
			stfs_warn(parser->report, METADATA_KEY " is null: the format wants an object of strings");
		else
			stfs_violation(parser->report, METADATA_KEY ": expected an object of strings, found %s",
				       stfs_json_kind(&parser->json));
		return stfs_json_skip(&parser->json) < 0 ? stfs_header_grammar_error(parser) : 0;
	}
	parser->header->has_metadata = true;
	if (stfs_json_enter(&parser->json, '{') < 0)
		return stfs_header_grammar_error(parser);
	while ((r = stfs_json_more(&parser->json, '}', first)) > 0) {
		r = parse_metadata_entry(parser);
		if (r < 0)
			return r;
		first = false;
	}
	return r < 0 ? stfs_header_grammar_error(parser) : 0;
}

static int parse_members(struct stfs_header_parser *parser)
{
	bool first = true, seen_metadata = false;
	struct stfs_json_string literal;
	struct stfs_slice key;
	int r;

	if (stfs_json_enter(&parser->json, '{') < 0)
		return stfs_header_grammar_error(parser);
	while ((r = stfs_json_more(&parser->json, '}', first)) > 0) {
		first = false;
		if (stfs_json_key(&parser->json, &literal) < 0)
			return stfs_header_grammar_error(parser);
		r = stfs_json_decode(parser->header->decoded, &literal, &key);
		if (r < 0)
			return r;
		if (stfs_slice_is(key, METADATA_KEY)) {
			r = parse_metadata(parser, seen_metadata);
			seen_metadata = true;
		} else {
			r = parse_tensor(parser, key);
		}
		if (r < 0)
			return r;
	}
	return r < 0 ? stfs_header_grammar_error(parser) : 0;
}

/* What stands after the object: blanks, or with STFS_LAX the NULs some writers pad with. */
static int parse_padding(struct stfs_header_parser *parser)
{
	struct stfs_json *json = &parser->json;
	const char *p;

	if (stfs_json_peek(json) < 0)
		return 0;
	for (p = json->p; p < json->end && *p == '\0'; p++)
		;
	if (p < json->end || p == json->p) {
		stfs_json_end(json);
		return stfs_header_grammar_error(parser);
	}
	stfs_report_add(parser->report, parser->flags & STFS_LAX ? STFS_WARNING : STFS_VIOLATION,
			"header is padded with %zu NUL bytes from byte %zu on: expected spaces%s",
			(size_t)(p - json->p), (size_t)(json->p - json->text),
			parser->flags & STFS_LAX ? "" : " (-o lax reads it all the same)");
	return parser->flags & STFS_LAX ? 0 : -EBADMSG;
}

/* The text as a whole: its encoding and its first byte, then the object and its padding. */
static int parse_text(struct stfs_header_parser *parser)
{
	struct stfs_slice text = { parser->header->text, parser->header->text_len };
	size_t bad = stfs_utf8_invalid(text);
	int r;

	if (bad < text.len) {
		stfs_violation(parser->report, "invalid UTF-8 in header: byte 0x%02X at byte %zu", (uint8_t)text.p[bad],
			       bad);
		return -EBADMSG;
	}
	stfs_json_init(&parser->json, text);
	if (stfs_slice_starts(text, "\xef\xbb\xbf")) {
		stfs_violation(parser->report, "invalid JSON at byte 0: expected '{', found a byte order mark");
		return -EBADMSG;
	}
	if (stfs_json_peek(&parser->json) == '{' && parser->json.p != text.p)
		stfs_warn(parser->report, "header starts with %zu blanks: the format wants '{' as its first byte",
			  (size_t)(parser->json.p - text.p));
	r = parse_members(parser);
	return r < 0 ? r : parse_padding(parser);
}

int stfs_header_parse(char *text, size_t len, uint64_t data_size, unsigned flags, struct stfs_report *report,
		      struct stfs_header **ret_header)
{
	_cleanup_(stfs_header_freep) struct stfs_header *header = calloc(1, sizeof(*header));
	struct stfs_header_parser parser = { .header = header, .report = report, .flags = flags };
	uint64_t before = report->violations;
	int r;

	if (!header)
		return -ENOMEM;
	r = stfs_decoded_new(&header->decoded);
	if (r < 0)
		return r;
	header->text = text;
	header->text_len = len;
	r = parse_text(&parser);
	if (r == 0)
		r = stfs_layout_check(header, data_size, flags, !parser.broken_entry, report);
	if (r == 0)
		stfs_header_check_names(header, report);
	if (r == 0 && report->violations > before)
		r = -EBADMSG;
	if (r < 0) {
		header->text = NULL; /* stays the caller's */
		return r;
	}
	*ret_header = stfs_steal(header);
	return 0;
}

void stfs_header_free(struct stfs_header *header)
{
	if (!header)
		return;
	free(header->text);
	free(header->tensors);
	free(header->metadata);
	stfs_decoded_free(header->decoded);
	stfs_table_fini(&header->names);
	stfs_table_fini(&header->keys);
	free(header);
}

const struct stfs_tensor *stfs_header_find(const struct stfs_header *header, struct stfs_slice name)
{
	uint32_t i = stfs_table_find(&header->names, tensor_items(header), name);

	return i == STFS_TABLE_NONE ? NULL : &header->tensors[i];
}

const struct stfs_metadata_entry *stfs_header_metadata(const struct stfs_header *header, struct stfs_slice key)
{
	uint32_t i = stfs_table_find(&header->keys, metadata_items(header), key);

	return i == STFS_TABLE_NONE ? NULL : &header->metadata[i];
}
