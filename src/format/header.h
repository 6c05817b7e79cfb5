/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of one .safetensors file: 8 bytes of length (little-endian), then one JSON object, then the data.
 * Rules and their order: the reference reader, safetensors 0.8.0 (see docs/FORMAT.md).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"
#include "dtype.h"
#include "report.h"
#include "slice.h"
#include "table.h"

#define STFS_HEADER_MAX UINT64_C(100000000) /* bytes of JSON, padding included; the limit itself is allowed */
#define STFS_TENSORS_MAX 1000000u           /* our own bound on memory: tensors, and metadata entries, of one file */

/* One tensor as the header describes it. Everything it points to lives as long as the header. */
struct stfs_tensor {
	struct stfs_slice name; /* unescaped; any UTF-8, NULs included */
	uint64_t begin, end;    /* bytes, from the start of the data section; end - begin is the size */
	const char *dims;       /* text of the shape's numbers, read with stfs_dims_next */
	uint32_t rank;          /* how many numbers; 0 is a scalar */
	uint8_t dtype;          /* enum stfs_dtype */
};

struct stfs_metadata_entry {
	struct stfs_slice key, value; /* unescaped; live as long as the header */
};

/* A validated header: immutable, owns its text. */
struct stfs_header {
	char *text; /* the JSON as read, `text_len` bytes */
	size_t text_len;
	uint64_t data_size;          /* bytes after the header that belong to tensors */
	struct stfs_tensor *tensors; /* sorted by (begin, end), equal ones as in the header */
	uint32_t n_tensors;
	struct stfs_metadata_entry *metadata; /* in the order of the header */
	uint32_t n_metadata;
	bool has_metadata;             /* `__metadata__` was there, and not null */
	struct stfs_decoded *decoded;  /* strings that had escapes */
	struct stfs_table names, keys; /* by name into tensors, by key into metadata */
};

/* Flags of stfs_header_parse. */
enum {
	STFS_LAX = 1 << 0, /* accept NUL padding after the JSON and bytes after the last tensor, as warnings */
};

/* Bytes from the start of the file to the data section. */
static inline uint64_t stfs_header_data_start(const struct stfs_header *header)
{
	return 8 + (uint64_t)header->text_len;
}

/*
 * Judges the length word, rules 1 to 3 of the reference (header too small, too large, invalid length). `word` holds the
 * first 8 bytes, `file_size` is in bytes. Violations go to `report`. Returns 0 with the JSON's length, or -EBADMSG.
 */
int stfs_header_length(const uint8_t word[8], uint64_t file_size, struct stfs_report *report, uint64_t *ret_len);

/*
 * Parses and validates the JSON part: UTF-8, grammar, nesting, duplicates, integers, then the layout rules 6 to 11
 * against `data_size` (bytes from the end of the JSON to the end of the file). All findings go to `report`, as many as
 * can be told apart. `text` (heap, `len` bytes and a NUL) is owned by the header on success, and stays the caller's on failure.
 * Returns 0, -EBADMSG when there was a violation, -EFBIG over STFS_TENSORS_MAX, -ENOMEM.
 */
int stfs_header_parse(char *text, size_t len, uint64_t data_size, unsigned flags, struct stfs_report *report,
		      struct stfs_header **ret_header);

/* Frees a header and its text; takes NULL. */
void stfs_header_free(struct stfs_header *header);
STFS_DEFINE_CLEANUP(struct stfs_header, stfs_header_free)

/* The tensor of that name, or NULL. */
const struct stfs_tensor *stfs_header_find(const struct stfs_header *header, struct stfs_slice name);

/* The metadata entry of that key, or NULL. */
const struct stfs_metadata_entry *stfs_header_metadata(const struct stfs_header *header, struct stfs_slice key);

/* Walks the numbers of a shape. */
struct stfs_dims {
	const char *p;
	uint32_t left;
};

/* Starts a walk over the shape of `tensor`; valid as long as its header. */
static inline struct stfs_dims stfs_tensor_dims(const struct stfs_tensor *tensor)
{
	return (struct stfs_dims){ tensor->dims, tensor->rank };
}

/* Yields the next dimension; false at the end. */
bool stfs_dims_next(struct stfs_dims *dims, uint64_t *ret);

/* Number of elements (1 for a scalar); it cannot overflow in a validated header. */
uint64_t stfs_tensor_elements(const struct stfs_tensor *tensor);

/*
 * Recognises a file that is something else by its first bytes (git-LFS pointer, HTML, ZIP, pickle, GGUF, HDF5, bare
 * JSON, zeros …). `head` holds up to 512 bytes. Returns a phrase such as "a git-LFS pointer, not the file itself (git lfs
 * pull fetches it)", static storage, or NULL when nothing is recognised or a header may well follow.
 */
const char *stfs_sniff(const uint8_t *head, size_t len);
