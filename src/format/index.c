/* SPDX-License-Identifier: Apache-2.0 */
#include "index.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "json_decode.h"
#include "json_scan.h"
#include "quote.h"
#include "utf8.h"

/* Bounds on what an index may list; a file name is counted once. */
#define ENTRIES_MAX 4000000u
#define FILES_MAX 100000u

/* A parse under way. */
struct parser {
	struct stfs_json json;
	struct stfs_index *index;
	struct stfs_report *report;
	struct stfs_table by_file;
	uint32_t entries_cap, files_cap;
	bool has_map;
};

static int grammar_error(struct parser *parser)
{
	stfs_violation(parser->report, "%s", parser->json.error.text);
	return -EBADMSG;
}

static int skip_value(struct parser *parser)
{
	return stfs_json_skip(&parser->json) < 0 ? grammar_error(parser) : 0;
}

/* A path component that leaves its folder, by the rules of any system. */
static bool has_parent_part(struct stfs_slice name)
{
	size_t part = 0;

	for (size_t i = 0; i <= name.len; i++) {
		if (i < name.len && name.p[i] != '/')
			continue;
		if (i - part == 2 && name.p[part] == '.' && name.p[part + 1] == '.')
			return true;
		part = i + 1;
	}
	return false;
}

const char *stfs_index_file_error(struct stfs_slice name)
{
	if (name.len == 0)
		return "is empty";
	if (name.len > 4000)
		return "is too long for a path";
	for (size_t i = 0; i < name.len; i++) {
		if ((uint8_t)name.p[i] < 0x20 || name.p[i] == 0x7f)
			return name.p[i] ? "has a control character" : "has a NUL";
		if (name.p[i] == '\\')
			return "has a backslash";
	}
	if (name.p[0] == '/')
		return "is absolute";
	if (name.len >= 2 && isalpha((uint8_t)name.p[0]) && name.p[1] == ':')
		return "has a drive letter";
	if (has_parent_part(name))
		return "leaves its folder with \"..\"";
	if (!stfs_slice_ends(name, ".safetensors"))
		return "does not end in .safetensors";
	return NULL;
}

/* The number of the file called `name`, entered on first use. */
static int intern_file(struct parser *parser, struct stfs_slice name, uint32_t *ret)
{
	struct stfs_index *index = parser->index;
	struct stfs_table_items items = { index->files, sizeof(*index->files) };
	uint32_t at = stfs_table_find(&parser->by_file, items, name);
	int r;

	if (at != STFS_TABLE_NONE) {
		*ret = at;
		return 0;
	}
	r = stfs_array_grow((void **)&index->files, index->n_files, &parser->files_cap, FILES_MAX,
			    sizeof(*index->files));
	if (r < 0)
		return r;
	index->files[index->n_files] = name;
	items.base = index->files;
	r = stfs_table_insert(&parser->by_file, items, index->n_files);
	if (r == 0)
		*ret = index->n_files++;
	return r;
}

/* Reads the file name of a tensor and enters the pair. */
static int parse_file(struct parser *parser, struct stfs_slice tensor)
{
	struct stfs_index *index = parser->index;
	struct stfs_json_string literal;
	struct stfs_slice file;
	const char *error;
	int r;

	if (stfs_json_peek(&parser->json) != '"') {
		stfs_violation(parser->report, "weight_map: tensor %s: expected a file name, found %s",
			       stfs_quote(tensor).text, stfs_json_kind(&parser->json));
		return skip_value(parser);
	}
	if (stfs_json_string(&parser->json, &literal) < 0)
		return grammar_error(parser);
	r = stfs_json_decode(index->decoded, &literal, &file);
	if (r < 0)
		return r;
	error = stfs_index_file_error(file);
	if (error) {
		stfs_violation(
			parser->report,
			"weight_map: tensor %s: expected the plain name of a .safetensors file, found %s, which %s",
			stfs_quote(tensor).text, stfs_quote(file).text, error);
		return 0;
	}
	return intern_file(parser, file, &index->entries[index->n_entries].file);
}

static int parse_entry(struct parser *parser)
{
	struct stfs_index *index = parser->index;
	struct stfs_json_string literal;
	struct stfs_slice tensor;
	int r = stfs_array_grow((void **)&index->entries, index->n_entries, &parser->entries_cap, ENTRIES_MAX,
				sizeof(*index->entries));

	if (r < 0)
		return r;
	if (stfs_json_key(&parser->json, &literal) < 0)
		return grammar_error(parser);
	r = stfs_json_decode(index->decoded, &literal, &tensor);
	if (r < 0)
		return r;
	index->entries[index->n_entries] = (struct stfs_index_entry){ .tensor = tensor };
	r = stfs_table_insert(&index->names, (struct stfs_table_items){ index->entries, sizeof(*index->entries) },
			      index->n_entries);
	if (r == -EEXIST) {
		stfs_violation(parser->report, "weight_map: duplicate name %s", stfs_quote(tensor).text);
		return skip_value(parser);
	}
	if (r == 0)
		r = parse_file(parser, tensor);
	index->n_entries++;
	return r;
}

static int parse_weight_map(struct parser *parser)
{
	bool first = true;
	int r;

	if (parser->has_map)
		stfs_violation(parser->report, "duplicate key weight_map");
	parser->has_map = true;
	if (stfs_json_peek(&parser->json) != '{') {
		stfs_violation(parser->report,
			       "weight_map: expected an object of tensor names and file names, found %s",
			       stfs_json_kind(&parser->json));
		return skip_value(parser);
	}
	if (stfs_json_enter(&parser->json, '{') < 0)
		return grammar_error(parser);
	while ((r = stfs_json_more(&parser->json, '}', first)) > 0) {
		r = parse_entry(parser);
		if (r < 0)
			return r;
		first = false;
	}
	return r < 0 ? grammar_error(parser) : 0;
}

/* Reads one member of the free-form `metadata` object, of which only the totals mean anything to us. */
static int parse_metadata_member(struct parser *parser)
{
	struct stfs_index *index = parser->index;
	struct stfs_json_string literal;
	struct stfs_slice key, value;
	double number;
	int r;

	if (stfs_json_key(&parser->json, &literal) < 0)
		return grammar_error(parser);
	r = stfs_json_decode(index->decoded, &literal, &key);
	if (r < 0)
		return r;
	stfs_json_peek(&parser->json);
	value.p = parser->json.p;
	if (stfs_json_skip(&parser->json) < 0)
		return grammar_error(parser);
	value.len = (size_t)(parser->json.p - value.p);
	if (stfs_slice_is(key, "total_size") && stfs_json_decode_number(value, &number)) {
		index->has_total_size = true;
		index->total_size = number;
	} else if (stfs_slice_is(key, "total_parameters") && stfs_json_decode_number(value, &number)) {
		index->has_total_parameters = true;
		index->total_parameters = number;
	}
	return 0;
}

static int parse_metadata(struct parser *parser)
{
	const char *start;
	bool first = true;
	int r;

	if (stfs_json_peek(&parser->json) != '{')
		return skip_value(parser);
	start = parser->json.p;
	if (stfs_json_enter(&parser->json, '{') < 0)
		return grammar_error(parser);
	while ((r = stfs_json_more(&parser->json, '}', first)) > 0) {
		r = parse_metadata_member(parser);
		if (r < 0)
			return r;
		first = false;
	}
	if (r < 0)
		return grammar_error(parser);
	parser->index->metadata = (struct stfs_slice){ start, (size_t)(parser->json.p - start) };
	return 0;
}

static int parse_members(struct parser *parser)
{
	struct stfs_json_string literal;
	struct stfs_slice key;
	bool first = true;
	int r;

	if (stfs_json_enter(&parser->json, '{') < 0)
		return grammar_error(parser);
	while ((r = stfs_json_more(&parser->json, '}', first)) > 0) {
		first = false;
		if (stfs_json_key(&parser->json, &literal) < 0)
			return grammar_error(parser);
		r = stfs_json_decode(parser->index->decoded, &literal, &key);
		if (r < 0)
			return r;
		if (stfs_slice_is(key, "weight_map"))
			r = parse_weight_map(parser);
		else if (stfs_slice_is(key, "metadata"))
			r = parse_metadata(parser);
		else
			r = skip_value(parser);
		if (r < 0)
			return r;
	}
	if (r < 0 || stfs_json_end(&parser->json) < 0)
		return grammar_error(parser);
	if (!parser->has_map)
		stfs_violation(parser->report, "expected a weight_map, found none");
	else if (parser->index->n_files == 0)
		stfs_violation(parser->report, "weight_map names no file");
	return 0;
}

static int parse_text(struct parser *parser, struct stfs_slice text)
{
	size_t bad = stfs_utf8_invalid(text);
	int r;

	if (bad < text.len) {
		stfs_violation(parser->report, "invalid UTF-8: byte 0x%02X at byte %zu", (uint8_t)text.p[bad], bad);
		return -EBADMSG;
	}
	stfs_json_init(&parser->json, text);
	r = parse_members(parser);
	if (r == -EFBIG)
		stfs_violation(parser->report, "too many entries: at most %u tensors in %u files are read", ENTRIES_MAX,
			       FILES_MAX);
	return r;
}

int stfs_index_parse(char *text, size_t len, struct stfs_report *report, struct stfs_index **ret_index)
{
	_cleanup_(stfs_index_freep) struct stfs_index *index = calloc(1, sizeof(*index));
	struct parser parser = { .index = index, .report = report };
	uint64_t before = report->violations;
	int r;

	if (!index)
		return -ENOMEM;
	r = stfs_decoded_new(&index->decoded);
	if (r == 0)
		r = parse_text(&parser, (struct stfs_slice){ text, len });
	stfs_table_fini(&parser.by_file);
	if (r == 0 && report->violations > before)
		r = -EBADMSG;
	if (r < 0)
		return r;
	index->text = text;
	*ret_index = stfs_steal(index);
	return 0;
}

const struct stfs_index_entry *stfs_index_find(const struct stfs_index *index, struct stfs_slice tensor)
{
	uint32_t i = stfs_table_find(&index->names,
				     (struct stfs_table_items){ index->entries, sizeof(*index->entries) }, tensor);

	return i == STFS_TABLE_NONE ? NULL : &index->entries[i];
}

void stfs_index_free(struct stfs_index *index)
{
	if (!index)
		return;
	free(index->text);
	free(index->entries);
	free(index->files);
	stfs_decoded_free(index->decoded);
	stfs_table_fini(&index->names);
	free(index);
}
