/* SPDX-License-Identifier: Apache-2.0 */
#include "diag.h"

#include <stdarg.h>
#include <stdio.h>

void stfs_diag_set(struct stfs_diag *diag, const char *fmt, ...)
{
	va_list ap;

	if (!diag)
		return;
	va_start(ap, fmt);
	vsnprintf(diag->text, sizeof(diag->text), fmt, ap);
	va_end(ap);
}

int stfs_fail(struct stfs_diag *diag, int error, const char *fmt, ...)
{
	va_list ap;

	if (!diag)
		return error;
	va_start(ap, fmt);
	vsnprintf(diag->text, sizeof(diag->text), fmt, ap);
	va_end(ap);
	return error;
}
