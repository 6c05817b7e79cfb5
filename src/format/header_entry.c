/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "header_parse.h"
#include "quote.h"

/* The three fields of an entry; their order is that of the table below. */
enum field {
	FIELD_DTYPE,
	FIELD_SHAPE,
	FIELD_OFFSETS,
	FIELD_COUNT,
	FIELD_UNKNOWN = FIELD_COUNT,
};

static const char *const field_names[FIELD_COUNT] = { "dtype", "shape", "data_offsets" };

static enum field field_of(struct stfs_slice key)
{
	for (unsigned i = 0; i < FIELD_COUNT; i++) {
		if (stfs_slice_is(key, field_names[i]))
			return (enum field)i;
	}
	return FIELD_UNKNOWN;
}

/* Reports that `what` of a tensor has the wrong type, and reads past it. `what` says what was expected. */
static int skip_wrong_value(struct stfs_header_parser *parser, const struct stfs_tensor *tensor, const char *what)
{
	const char *kind = stfs_json_kind(&parser->json);
	const char *start = parser->json.p;

	if (stfs_json_skip(&parser->json) < 0)
		return stfs_header_grammar_error(parser);
	parser->broken_entry = true;
	stfs_violation(parser->report, "tensor %s: expected %s, found %s: %s", stfs_quote(tensor->name).text, what,
		       kind, stfs_quote((struct stfs_slice){ start, (size_t)(parser->json.p - start) }).text);
	return 0;
}

static int parse_dtype(struct stfs_header_parser *parser, struct stfs_tensor *tensor)
{
	struct stfs_json_string literal;
	struct stfs_slice name;
	enum stfs_dtype dtype;
	int r;

	if (stfs_json_peek(&parser->json) != '"')
		return skip_wrong_value(parser, tensor, "dtype to be a string");
	if (stfs_json_string(&parser->json, &literal) < 0)
		return stfs_header_grammar_error(parser);
	r = stfs_json_decode(parser->header->decoded, &literal, &name);
	if (r < 0)
		return r;
	if (!stfs_dtype_parse(name, &dtype)) {
		parser->broken_entry = true;
		stfs_violation(parser->report,
			       "tensor %s: expected one of the %d dtypes of the format (such as F32 or BF16), found %s",
			       stfs_quote(tensor->name).text, STFS_DTYPE_COUNT, stfs_quote(name).text);
		return 0;
	}
	tensor->dtype = (uint8_t)dtype;
	return 0;
}

static int parse_shape(struct stfs_header_parser *parser, struct stfs_tensor *tensor)
{
	uint64_t head[2];
	int r = stfs_json_uint_list(&parser->json, head, &tensor->rank, &tensor->dims);

	if (r < 0)
		return stfs_header_grammar_error(parser);
	return r > 0 ? 0 : skip_wrong_value(parser, tensor, "shape to be a list of whole numbers from 0 to 2^64-1");
}

static int parse_offsets(struct stfs_header_parser *parser, struct stfs_tensor *tensor)
{
	const char *numbers;
	struct stfs_json start = parser->json;
	uint64_t head[2] = { 0, 0 };
	uint32_t n = 0;
	int r = stfs_json_uint_list(&parser->json, head, &n, &numbers);

	if (r < 0)
		return stfs_header_grammar_error(parser);
	if (r == 0 || n != 2) {
		parser->json = start;
		return skip_wrong_value(parser, tensor, "data_offsets to be two whole numbers from 0 to 2^64-1");
	}
	tensor->begin = head[0];
	tensor->end = head[1];
	return 0;
}

/* Reads one field of an entry; `seen` has a bit for each known field that was there before. */
static int parse_field(struct stfs_header_parser *parser, struct stfs_tensor *tensor, unsigned *seen)
{
	struct stfs_json_string literal;
	struct stfs_slice key;
	enum field field;
	int r;

	if (stfs_json_key(&parser->json, &literal) < 0)
		return stfs_header_grammar_error(parser);
	r = stfs_json_decode(parser->header->decoded, &literal, &key);
	if (r < 0)
		return r;
	field = field_of(key);
	if (field == FIELD_UNKNOWN) {
		stfs_warn(parser->report, "tensor %s: unknown field %s is ignored", stfs_quote(tensor->name).text,
			  stfs_quote(key).text);
		return stfs_json_skip(&parser->json) < 0 ? stfs_header_grammar_error(parser) : 0;
	}
	if (*seen & 1u << field) {
		parser->broken_entry = true;
		stfs_violation(parser->report, "tensor %s: duplicate field %s", stfs_quote(tensor->name).text,
			       field_names[field]);
	}
	*seen |= 1u << field;
	if (field == FIELD_DTYPE)
		return parse_dtype(parser, tensor);
	return field == FIELD_SHAPE ? parse_shape(parser, tensor) : parse_offsets(parser, tensor);
}

int stfs_header_parse_entry(struct stfs_header_parser *parser, struct stfs_tensor *tensor)
{
	unsigned seen = 0;
	bool first = true;
	int r;

	if (stfs_json_peek(&parser->json) != '{')
		return skip_wrong_value(parser, tensor, "an object with dtype, shape and data_offsets");
	if (stfs_json_enter(&parser->json, '{') < 0)
		return stfs_header_grammar_error(parser);
	while ((r = stfs_json_more(&parser->json, '}', first)) > 0) {
		r = parse_field(parser, tensor, &seen);
		if (r < 0)
			return r;
		first = false;
	}
	if (r < 0)
		return stfs_header_grammar_error(parser);
	for (unsigned i = 0; i < FIELD_COUNT; i++) {
		if (seen & 1u << i)
			continue;
		parser->broken_entry = true;
		stfs_violation(parser->report, "tensor %s: expected a field %s, found none",
			       stfs_quote(tensor->name).text, field_names[i]);
	}
	return 0;
}
