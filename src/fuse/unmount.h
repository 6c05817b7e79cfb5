/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "diag.h"

/*
 * Unmounts the safetensorsfs mount at `path`, dead or alive, and waits until its daemon is gone: a minute at most, and not when
 * the filesystem is mounted elsewhere too. `lazy` takes it out of sight at once and lets those who use it finish. Returns 0,
 * -EINVAL when `path` is no such mount, -EBUSY, or another errno; each with a sentence in `diag`.
 */
int stfs_unmount(const char *path, bool lazy, struct stfs_diag *diag);
