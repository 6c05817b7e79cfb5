/* SPDX-License-Identifier: Apache-2.0 */
/* Where checks send what they find: each finding is one sentence about one file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "macros.h"

enum stfs_severity {
	STFS_WARNING,   /* odd, but readable */
	STFS_VIOLATION, /* breaks a rule: the file must not be used */
};

/* How many sentences of a severity are formatted for one report; the rest are only counted. */
#define STFS_REPORT_MAX 100

/*
 * Embedded, owned by the caller of a check; all zero counts and tells nobody. `emit` gets each finding (the text is valid
 * during the call only, already escaped, without a final newline or file name); `file` is set by whoever opens a file, as
 * it should be shown (escaped).
 */
struct stfs_report {
	void (*emit)(void *user, enum stfs_severity severity, const char *file, const char *sentence);
	void *user;
	const char *file;
	uint64_t violations;
	uint64_t warnings;
};

/* Formats and emits one finding, uncounted: use the macros below. */
void stfs_report_emit(struct stfs_report *report, enum stfs_severity severity, const char *fmt, ...) STFS_PRINTF(3, 4);

/* Counts a finding. Returns false when enough sentences of its severity have been told. */
static inline bool stfs_report_count(struct stfs_report *report, enum stfs_severity severity)
{
	uint64_t *count = severity == STFS_VIOLATION ? &report->violations : &report->warnings;

	return (*count)++ < STFS_REPORT_MAX;
}

/*
 * Reports one finding: report, severity, format and arguments. A macro, because a hostile file has millions of findings:
 * beyond STFS_REPORT_MAX of a severity they are only counted and the arguments (quoted names) are not even computed.
 */
#define stfs_report_add(report, severity, ...)                               \
	do {                                                                 \
		if (stfs_report_count((report), (severity)))                 \
			stfs_report_emit((report), (severity), __VA_ARGS__); \
	} while (0)

/* Short forms of stfs_report_add. */
#define stfs_warn(report, ...) stfs_report_add(report, STFS_WARNING, __VA_ARGS__)
#define stfs_violation(report, ...) stfs_report_add(report, STFS_VIOLATION, __VA_ARGS__)
