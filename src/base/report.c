/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>

void stfs_report_add(struct stfs_report *report, enum stfs_severity severity, const char *fmt, ...)
{
	uint64_t *count = severity == STFS_VIOLATION ? &report->violations : &report->warnings;
	char text[1024];
	va_list ap;

	if ((*count)++ >= STFS_REPORT_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	report->emit(report->user, severity, report->file, text);
}
