/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>

void stfs_report_emit(struct stfs_report *report, enum stfs_severity severity, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (!report->emit)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	report->emit(report->user, severity, report->file, text);
}
