/* SPDX-License-Identifier: Apache-2.0 */
/* A report for tests: keeps all sentences, one a line, "error: …" or "warning: …". */
#pragma once

#include <stdio.h>
#include <string.h>

#include "report.h"

struct findings {
	struct stfs_report report;
	char text[65536];
};

static inline void findings_emit(void *user, enum stfs_severity severity, const char *file, const char *sentence)
{
	struct findings *findings = user;
	size_t n = strlen(findings->text);

	(void)file;
	snprintf(findings->text + n, sizeof(findings->text) - n, "%s: %s\n",
		 severity == STFS_VIOLATION ? "error" : "warning", sentence);
}

static inline void findings_init(struct findings *findings)
{
	findings->text[0] = '\0';
	findings->report = (struct stfs_report){ .emit = findings_emit, .user = findings, .file = "test" };
}
