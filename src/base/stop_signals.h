/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <signal.h>

/*
 * Those of SIGINT, SIGTERM and SIGHUP, by which users ask a program to stop, that are not ignored. Who waits for such a signal
 * must leave an ignored one alone, as nohup and background jobs of shells have it: once it is blocked, the kernel keeps it.
 */
sigset_t stfs_stop_signals(void);
