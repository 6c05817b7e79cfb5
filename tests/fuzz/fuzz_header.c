/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header parser on any bytes: the input is a whole file. What is accepted must hold together, and what our writer makes
 * of it must be accepted again with the same tensors.
 */
#include <stdlib.h>
#include <string.h>

#include "header.h"
#include "header_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(void *user, enum stfs_severity severity, const char *file, const char *sentence)
{
	(void)user;
	(void)severity;
	(void)file;
	if (strlen(sentence) == 0)
		__builtin_trap();
}

static struct stfs_header *parse(const void *json, size_t len, uint64_t data_size, unsigned flags)
{
	struct stfs_report report = { .emit = ignore };
	struct stfs_header *header = NULL;
	char *text = malloc(len + 1);
	int r;

	if (!text)
		return NULL;
	if (len)
		memcpy(text, json, len);
	text[len] = '\0';
	r = stfs_header_parse(text, len, data_size, flags, &report, &header);
	if (r < 0)
		free(text);
	/* A refusal always says why. */
	if ((r < 0) != (report.violations > 0))
		__builtin_trap();
	return header;
}

static void check_header(const struct stfs_header *header, uint64_t data_size)
{
	uint64_t covered = 0;

	for (uint32_t i = 0; i < header->n_tensors; i++) {
		const struct stfs_tensor *tensor = &header->tensors[i];
		uint64_t bits = stfs_tensor_elements(tensor) * stfs_dtype_info(tensor->dtype)->bits;

		if (tensor->begin != covered || tensor->end - tensor->begin != bits / 8)
			__builtin_trap();
		covered = tensor->end;
		if (stfs_header_find(header, tensor->name) != tensor)
			__builtin_trap();
	}
	if (covered != header->data_size || covered > data_size)
		__builtin_trap();
	for (uint32_t i = 0; i < header->n_metadata; i++) {
		if (stfs_header_metadata(header, header->metadata[i].key) != &header->metadata[i])
			__builtin_trap();
	}
}

static void check_written(const struct stfs_header *header)
{
	struct stfs_buf buf = { 0 };
	struct stfs_header *again;

	if (stfs_header_write(&buf, header) < 0)
		return;
	again = parse(buf.data, buf.len, header->data_size, 0);
	if (!again || again->n_tensors != header->n_tensors || again->n_metadata != header->n_metadata)
		__builtin_trap();
	for (uint32_t i = 0; i < header->n_tensors; i++) {
		if (!stfs_slice_equal(again->tensors[i].name, header->tensors[i].name) ||
		    again->tensors[i].begin != header->tensors[i].begin)
			__builtin_trap();
	}
	stfs_header_free(again);
	stfs_buf_fini(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stfs_report report = { .emit = ignore };
	struct stfs_header *header;
	uint64_t len;

	stfs_sniff(data, size < 512 ? size : 512);
	if (size < 8 || stfs_header_length(data, size, &report, &len) < 0)
		return 0;
	for (unsigned flags = 0; flags <= STFS_LAX; flags += STFS_LAX) {
		header = parse(data + 8, len, size - 8 - len, flags);
		if (!header)
			continue;
		check_header(header, size - 8 - len);
		check_written(header);
		stfs_header_free(header);
	}
	return 0;
}
