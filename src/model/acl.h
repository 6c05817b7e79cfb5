/* SPDX-License-Identifier: Apache-2.0 */
/* Access control lists of POSIX, which a mount does not have: what they take away must not come back with the mode. */
#pragma once

#include <sys/types.h>

/*
 * The mode of the open file `fd`, as stat gives it in `mode`, without the rights that its list denies to somebody to whom the
 * mode alone would give them: what stat calls the group's rights is the mask of the list. As it is where there is no list;
 * only the owner's rights where the list cannot be understood.
 */
mode_t stfs_acl_narrow(int fd, mode_t mode);
