/* SPDX-License-Identifier: Apache-2.0 */
#include "findings.h"

#include <inttypes.h>
#include <stdbool.h>

static void print_finding(void *user, enum stfs_severity severity, const char *file, const char *sentence)
{
	struct stfs_findings *f = user;
	bool warning = severity == STFS_WARNING;
	uint64_t *shown = warning ? &f->shown_warnings : &f->shown_violations;

	if (*shown >= (warning ? f->max_warnings : f->max_violations))
		return;
	(*shown)++;
	fprintf(f->out, "safetensorsfs: %s%s%s%s\n", warning ? "warning: " : "", file ? file : "", file ? ": " : "",
		sentence);
}

void stfs_findings_init(struct stfs_findings *findings, FILE *out, uint64_t max_violations, uint64_t max_warnings)
{
	*findings = (struct stfs_findings){
		.report = { .emit = print_finding, .user = findings },
		.out = out,
		.max_violations = max_violations,
		.max_warnings = max_warnings,
	};
}

static void print_rest(FILE *out, uint64_t rest, const char *what)
{
	if (rest > 0)
		fprintf(out, "safetensorsfs: and %" PRIu64 " more %s%s\n", rest, what, rest == 1 ? "" : "s");
}

void stfs_findings_finish(const struct stfs_findings *findings)
{
	const struct stfs_report *r = &findings->report;

	print_rest(findings->out, r->violations - findings->shown_violations, "violation");
	print_rest(findings->out, r->warnings - findings->shown_warnings, "warning");
}
