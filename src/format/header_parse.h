/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the header parser share; private to the format layer. */
#pragma once

#include "header.h"
#include "json_decode.h"
#include "json_scan.h"

/* A parse under way. */
struct stfs_header_parser {
	struct stfs_json json;
	struct stfs_header *header;
	struct stfs_report *report;
	unsigned flags;
	uint32_t tensors_cap, metadata_cap;
	bool broken_entry; /* an entry could not be understood: what it should cover is unknown */
};

/* Reports the grammar error of the scanner as a violation; returns -EBADMSG. */
int stfs_header_grammar_error(struct stfs_header_parser *parser);

/*
 * Reads the value of a tensor's key into the next row of the header's tensors. Wrong types are violations and are read
 * past (then broken_entry is set); only broken grammar stops. Returns 0, -EBADMSG, -ENOMEM.
 */
int stfs_header_parse_entry(struct stfs_header_parser *parser, struct stfs_tensor *tensor);

/*
 * Sorts the tensors by offset and judges the layout, rules 6 to 11 of the reference: they tile the data section exactly.
 * All violations are reported, none when `known` is false: an entry that could not be understood leaves its bytes
 * uncovered. Sets data_size. Returns 0 or -ENOMEM.
 */
int stfs_layout_check(struct stfs_header *header, uint64_t data_size, unsigned flags, bool known,
		      struct stfs_report *report);

/* Warns of names that trouble whoever takes them for paths, and of a header larger than the Hub reads. */
void stfs_header_check_names(const struct stfs_header *header, struct stfs_report *report);
