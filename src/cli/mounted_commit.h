/* SPDX-License-Identifier: Apache-2.0 */
/* A commit that a mount carries out, watched from here. */
#pragma once

#include <stdbool.h>

/*
 * Tells the mount at `point` to commit, by writing `line` to its control file; shows how far it is, then what it says of the
 * result: on stdout (not with `quiet`), or on stderr when it failed. Returns an enum stfs_exit.
 */
int stfs_mounted_commit(const char *point, const char *line, bool quiet);
