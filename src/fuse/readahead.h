/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Raises the kernel's readahead of the mount at `mountpoint` (absolute) to 1 MiB: it starts FUSE mounts with 128 KiB,
 * which halves the speed of read and costs mmap even more. The daemon's own mount is not touched. Needs the right to
 * write to /sys; silently does nothing without. To be called after the INIT request was answered, which sets it back.
 */
void stfs_readahead_raise(const char *mountpoint);
