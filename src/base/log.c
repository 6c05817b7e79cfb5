/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048 /* one line with its prefix; longer ones are cut */

struct stfs_log {
	const char *prefix;
	bool to_syslog;
};

int stfs_log_new(const char *prefix, bool to_syslog, struct stfs_log **ret_log)
{
	struct stfs_log *log = malloc(sizeof(*log));

	if (!log)
		return -ENOMEM;
	*log = (struct stfs_log){ prefix, to_syslog };
	if (to_syslog)
		openlog(prefix, LOG_PID, LOG_DAEMON);
	*ret_log = log;
	return 0;
}

void stfs_log_free(struct stfs_log *log)
{
	if (log && log->to_syslog)
		closelog();
	free(log);
}

/* One write, so that lines of several threads never mix. */
static void STFS_PRINTF(2, 0) write_stderr(const char *prefix, const char *fmt, va_list ap)
{
	char line[LINE_MAX_BYTES];
	size_t room = sizeof(line) - 1; /* one byte is kept for the newline */
	size_t len = 0;
	int n;

	n = snprintf(line, room, "%s: ", prefix);
	if (n > 0)
		len = (size_t)n < room ? (size_t)n : room - 1;
	n = vsnprintf(line + len, room - len, fmt, ap);
	if (n > 0)
		len += (size_t)n < room - len ? (size_t)n : room - len - 1;
	line[len++] = '\n';
	/* A log that cannot be written has nobody to complain to. */
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}

void stfs_log(struct stfs_log *log, enum stfs_log_level level, const char *fmt, ...)
{
	static const int priorities[] = {
		[STFS_LOG_ERROR] = LOG_ERR,
		[STFS_LOG_WARNING] = LOG_WARNING,
		[STFS_LOG_INFO] = LOG_INFO,
	};
	int saved = errno;
	va_list ap;

	if (!log)
		return;
	va_start(ap, fmt);
	if (log->to_syslog)
		vsyslog(priorities[level], fmt, ap);
	else
		write_stderr(log->prefix, fmt, ap);
	va_end(ap);
	errno = saved;
}
