/* SPDX-License-Identifier: Apache-2.0 */
#include "acl.h"

#include <endian.h>
#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define LIST_NAME "system.posix_acl_access"
#define ENTRIES_MAX 512 /* more than any filesystem keeps */

/* The list as the kernel gives it; numbers are little-endian. */
struct list {
	struct posix_acl_xattr_header header;
	struct posix_acl_xattr_entry entries[ENTRIES_MAX];
};

/* What all entries of a kind allow together, all of it when there is none. */
static unsigned find_rights(const struct list *list, size_t n, uint16_t tag)
{
	unsigned rights = 7;

	for (size_t i = 0; i < n; i++)
		if (le16toh(list->entries[i].e_tag) == tag)
			rights &= le16toh(list->entries[i].e_perm);
	return rights;
}

static bool has_entry(const struct list *list, size_t n, uint16_t tag)
{
	for (size_t i = 0; i < n; i++)
		if (le16toh(list->entries[i].e_tag) == tag)
			return true;
	return false;
}

/* The same under the mask, which holds for all but the owner and others. */
static unsigned find_masked(const struct list *list, size_t n, uint16_t tag)
{
	return has_entry(list, n, tag) ? find_rights(list, n, tag) & find_rights(list, n, ACL_MASK) : 7;
}

mode_t stfs_acl_narrow(int fd, mode_t mode)
{
	const mode_t rest = ~(mode_t)(S_IRWXG | S_IRWXO);
	struct list list;
	ssize_t size = fgetxattr(fd, LIST_NAME, &list, sizeof(list));
	unsigned users, groups;
	size_t n;

	if (size < 0 && (errno == ENODATA || errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM))
		return mode;
	if (size < (ssize_t)sizeof(list.header) || le32toh(list.header.a_version) != POSIX_ACL_XATTR_VERSION)
		return mode & rest;
	n = ((size_t)size - sizeof(list.header)) / sizeof(list.entries[0]);
	/* Anybody may be one of the users that are named, and who is not of the group may be of one that is named. */
	users = find_masked(&list, n, ACL_USER);
	groups = find_masked(&list, n, ACL_GROUP);
	return mode & (rest | (find_masked(&list, n, ACL_GROUP_OBJ) & users) << 3 | (groups & users));
}
