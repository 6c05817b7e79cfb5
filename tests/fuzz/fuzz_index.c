/* SPDX-License-Identifier: Apache-2.0 */
/* The index parser on any bytes: every file name that it lets through must stay in its folder. */
#include <stdlib.h>
#include <string.h>

#include "index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(void *user, enum stfs_severity severity, const char *file, const char *sentence)
{
	(void)user;
	(void)severity;
	(void)file;
	if (strlen(sentence) == 0)
		__builtin_trap();
}

/* Written apart from the parser's own check: walks the path and counts how deep it is. */
static void check_stays(struct stfs_slice name)
{
	int depth = 0;

	if (name.len == 0 || name.p[0] == '/' || memchr(name.p, '\0', name.len) || memchr(name.p, '\\', name.len))
		__builtin_trap();
	for (size_t i = 0; i < name.len;) {
		const char *slash = memchr(name.p + i, '/', name.len - i);
		size_t n = slash ? (size_t)(slash - (name.p + i)) : name.len - i;

		if (n == 2 && memcmp(name.p + i, "..", 2) == 0)
			depth--;
		else if (n > 0 && !(n == 1 && name.p[i] == '.'))
			depth++;
		if (depth < 0)
			__builtin_trap();
		i += n + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stfs_report report = { .emit = ignore };
	struct stfs_index *index = NULL;
	char *text = malloc(size + 1);
	int r;

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	r = stfs_index_parse(text, size, &report, &index);
	if ((r < 0) != (report.violations > 0))
		__builtin_trap();
	if (r < 0) {
		free(text);
		return 0;
	}
	for (uint32_t i = 0; i < index->n_files; i++)
		check_stays(index->files[i]);
	for (uint32_t i = 0; i < index->n_entries; i++) {
		if (index->entries[i].file >= index->n_files ||
		    stfs_index_find(index, index->entries[i].tensor) != &index->entries[i])
			__builtin_trap();
	}
	stfs_index_free(index);
	return 0;
}
