/* SPDX-License-Identifier: Apache-2.0 */
#include "stop_signals.h"

#include <stddef.h>

#include "macros.h"

sigset_t stfs_stop_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < STFS_ARRAY_SIZE(numbers); i++)
		if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&set, numbers[i]);
	return set;
}
