/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "acl.h"
#include "run_tests.h"

/* A list in short: u and g are named ones, G is the group, m the mask, o others; each with its rights. */
static const struct {
	const char *list;
	mode_t narrowed;
} cases[] = {
	{ "G4 o4", 0644 },       { "u4 G0 m4 o0", 0600 }, /* stat says 0640 */
	{ "u6 G4 m6 o4", 0644 },                          /* stat says 0664 */
	{ "u0 G4 m4 o4", 0600 }, { "u4 G4 g0 m4 o4", 0640 }, { "G4 g4 m4 o4", 0644 },
	{ "G4 g4 m0 o4", 0600 }, { "G4 m0 o4", 0604 },       { "u4 u0 G4 m7 o4", 0600 },
};

static uint16_t tag_of(char kind)
{
	switch (kind) {
	case 'u':
		return ACL_USER;
	case 'g':
		return ACL_GROUP;
	case 'G':
		return ACL_GROUP_OBJ;
	case 'm':
		return ACL_MASK;
	default:
		return ACL_OTHER;
	}
}

static void add_entry(struct posix_acl_xattr_entry *entry, uint16_t tag, unsigned perm, unsigned id)
{
	*entry = (struct posix_acl_xattr_entry){ htole16(tag), htole16(perm), htole32(id) };
}

/* Gives the file that list, with rights 6 for the owner. Returns whether its filesystem has such. */
static bool set_list(int fd, const char *text)
{
	struct {
		struct posix_acl_xattr_header header;
		struct posix_acl_xattr_entry entries[16];
	} list = { .header.a_version = htole32(POSIX_ACL_XATTR_VERSION) };
	size_t n = 1;

	add_entry(&list.entries[0], ACL_USER_OBJ, 6, ~0u);
	for (; *text; text += text[2] ? 3 : 2, n++) {
		uint16_t tag = tag_of(text[0]);
		bool named = tag == ACL_USER || tag == ACL_GROUP;

		add_entry(&list.entries[n], tag, (unsigned)(text[1] - '0'), named ? 1000 + (unsigned)n : ~0u);
	}
	if (fsetxattr(fd, "system.posix_acl_access", &list, sizeof(list.header) + n * sizeof(list.entries[0]), 0) == 0)
		return true;
	ck_assert_int_eq(errno, EOPNOTSUPP);
	return false;
}

START_TEST(test_narrow)
{
	char path[] = "/tmp/stfs-unit-XXXXXX";
	int fd = mkstemp(path);
	struct stat st;

	ck_assert_int_ge(fd, 0);
	if (set_list(fd, cases[_i].list)) {
		ck_assert_int_eq(fstat(fd, &st), 0);
		ck_assert_uint_eq(stfs_acl_narrow(fd, st.st_mode), S_IFREG | cases[_i].narrowed);
	} else {
		printf("no access control lists in /tmp\n");
	}
	close(fd);
	unlink(path);
}
END_TEST

START_TEST(test_no_list)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), pipe_fds[2];

	ck_assert_uint_eq(stfs_acl_narrow(fd, 0644), 0644);
	close(fd);
	ck_assert_int_eq(pipe(pipe_fds), 0);
	ck_assert_uint_eq(stfs_acl_narrow(pipe_fds[0], 0644), 0644);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	/* What cannot be told is nobody's but the owner's. */
	ck_assert_uint_eq(stfs_acl_narrow(-1, 04777), 04700);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, test_narrow, 0, sizeof(cases) / sizeof(cases[0]));
	tcase_add_test(tcase, test_no_list);
	return run_tests("acl", tcase);
}
