/* SPDX-License-Identifier: Apache-2.0 */
#include "readahead.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "mountinfo.h"

#define READAHEAD_KB 1024 /* 8192 was slower */

/* Whether the setting is as large already: an administrator's rule may have been faster than we are. */
static int is_enough(int fd)
{
	char text[32] = "";
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	return n > 0 && strtoul(text, NULL, 10) >= READAHEAD_KB;
}

void stfs_readahead_raise(const char *mountpoint)
{
	_cleanup_mount_ struct stfs_mount mount = { 0 };
	_cleanup_close_ int fd = -1;
	char text[64];

	if (stfs_mountinfo_find(mountpoint, &mount) < 0)
		return;
	snprintf(text, sizeof(text), "/sys/class/bdi/%u:%u/read_ahead_kb", mount.major, mount.minor);
	fd = open(text, O_RDWR | O_CLOEXEC);
	if (fd < 0 || is_enough(fd))
		return;
	snprintf(text, sizeof(text), "%d", READAHEAD_KB);
	if (pwrite(fd, text, strlen(text), 0) < 0)
		return; /* slower, not wrong */
}
