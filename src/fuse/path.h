/* SPDX-License-Identifier: Apache-2.0 */
/* Absolute names of things that must not be touched: a mount may be dead, or hang. */
#pragma once

#include <stdbool.h>

/*
 * The absolute name of `path`: its folder is resolved, its last component is taken as it stands (it need not exist, and
 * a link is not followed). Returns 0, -ENOMEM, or the errno of resolving the folder. The caller frees *ret_path.
 */
int stfs_path_anchor(const char *path, char **ret_path);

/* Whether `path` is `dir` or lies below it; both absolute. */
bool stfs_path_is_within(const char *path, const char *dir);
