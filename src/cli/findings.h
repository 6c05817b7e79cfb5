/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what checks find, one line a finding, to stderr or wherever a command wants it. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "report.h"

/* A report that prints. Embedded; pass `&findings.report` to whoever checks. */
struct stfs_findings {
	struct stfs_report report;
	FILE *out;               /* borrowed */
	uint64_t max_violations; /* lines printed of a severity; the rest is counted */
	uint64_t max_warnings;
	uint64_t shown_violations, shown_warnings;
};

/* Starts a report that prints at most so many lines of each severity (UINT64_MAX: all of them) to `out` (borrowed). */
void stfs_findings_init(struct stfs_findings *findings, FILE *out, uint64_t max_violations, uint64_t max_warnings);

/* Prints how many findings were not shown, if any. */
void stfs_findings_finish(const struct stfs_findings *findings);
