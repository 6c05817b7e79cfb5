/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "options.h"
#include "run_tests.h"

static int parse(struct stfs_mount_options *options, const char *text, struct stfs_diag *diag)
{
	*diag = (struct stfs_diag){ 0 };
	return stfs_mount_options_parse(options, text, diag);
}

START_TEST(test_defaults)
{
	_cleanup_mount_options_ struct stfs_mount_options o = { 0 };
	struct stfs_diag diag;

	ck_assert_int_eq(parse(&o, "", &diag), 0);
	ck_assert_int_eq(parse(&o, ",,", &diag), 0);
	ck_assert_int_eq(o.view.layout, STFS_NESTED);
	ck_assert_int_eq(o.view.npy, STFS_HIDE);
	ck_assert_int_eq(o.view.control, STFS_HIDE);
	ck_assert_int_eq(o.model.io, STFS_IO_AUTO);
	ck_assert(!o.direct_io && !o.model.lax && !o.model.partial && !o.model.index);
	ck_assert_uint_eq(o.fuse.len, 0);
}
END_TEST

START_TEST(test_own)
{
	_cleanup_mount_options_ struct stfs_mount_options o = { 0 };
	struct stfs_diag diag;

	ck_assert_int_eq(parse(&o, "flat,npy=list,control=list,lax,partial,io=pread,direct_io", &diag), 0);
	ck_assert_int_eq(o.view.layout, STFS_FLAT);
	ck_assert_int_eq(o.view.npy, STFS_LIST);
	ck_assert_int_eq(o.view.control, STFS_LIST);
	ck_assert_int_eq(o.model.io, STFS_IO_PREAD);
	ck_assert(o.direct_io && o.model.lax && o.model.partial);
	ck_assert_int_eq(parse(&o, "npy=off,io=map", &diag), 0);
	ck_assert_int_eq(o.view.npy, STFS_OFF);
	ck_assert_int_eq(o.model.io, STFS_IO_MAP);
	ck_assert_uint_eq(o.fuse.len, 0);
}
END_TEST

START_TEST(test_passed_on)
{
	_cleanup_mount_options_ struct stfs_mount_options o = { 0 };
	struct stfs_diag diag;

	ck_assert_int_eq(parse(&o, "rw,noexec,allow_other,max_read=65536,suid,dev,allow_other", &diag), 0);
	ck_assert_int_eq(parse(&o, "noatime,ro,defaults", &diag), 0);
	ck_assert_str_eq(o.fuse.data, "noexec,allow_other,max_read=65536,noatime");
	ck_assert_uint_eq(o.max_read, 65536);
}
END_TEST

/* What mount(8) hands on of what fstab(5) may say; it keeps the rest to itself. */
START_TEST(test_words_of_mount)
{
	_cleanup_mount_options_ struct stfs_mount_options o = { 0 };
	struct stfs_diag diag;

	ck_assert_int_eq(parse(&o, "defaults,rw,suid,dev,exec,async,nofail,_netdev", &diag), 0);
	ck_assert_int_eq(parse(&o, "sync,dirsync,silent,atime,relatime,strictatime,nodiratime,lazytime", &diag), 0);
	ck_assert_uint_eq(o.fuse.len, 0);
}
END_TEST

START_TEST(test_index)
{
	_cleanup_mount_options_ struct stfs_mount_options o = { 0 };
	struct stfs_diag diag;

	ck_assert_int_eq(parse(&o, "index=first,index=a\\,b\\\\c.json,flat", &diag), 0);
	ck_assert_str_eq(o.model.index, "a,b\\c.json");
	ck_assert_ptr_eq(o.model.index, o.index);
	ck_assert_int_eq(o.view.layout, STFS_FLAT);
	ck_assert_int_eq(parse(&o, "index=../x", &diag), -EINVAL);
	ck_assert_int_eq(parse(&o, "index=", &diag), -EINVAL);
	ck_assert_str_eq(o.model.index, "a,b\\c.json");
}
END_TEST

START_TEST(test_refused)
{
	static const struct {
		const char *text, *sentence;
	} cases[] = {
		{ "bad", "unknown option -o \"bad\"" },
		{ "fla", "unknown option -o \"fla\"" },
		{ "flat2", "unknown option -o \"flat2\"" },
		{ "=x", "unknown option -o \"=x\"" },
		{ "fsname=x", "unknown option -o \"fsname=x\"" },
		{ "subtype=x", "unknown option -o \"subtype=x\"" },
		{ "x\x1b[2J", "unknown option -o \"x\\x1b[2J\"" },
		{ "flat=yes", "option -o flat takes no value" },
		{ "flat=", "option -o flat takes no value" },
		{ "npy", "option -o npy=hide|list|off needs a value" },
		{ "npy=", "option -o npy=hide|list|off cannot be \"\"" },
		{ "npy=li", "option -o npy=hide|list|off cannot be \"li\"" },
		{ "npy=hide|list", "option -o npy=hide|list|off cannot be \"hide|list\"" },
		{ "control=off", "option -o control=hide|list cannot be \"off\"" },
		{ "max_read=1", "option -o max_read=BYTES cannot be \"1\"" },
		{ "max_read=99999999999999999999", "option -o max_read=BYTES cannot be \"99999999999999999999\"" },
		{ "max_read=-4096", "option -o max_read=BYTES cannot be \"-4096\"" },
		{ "allow_root,allow_other", "options -o allow_other and -o allow_root exclude each other" },
	};

	for (size_t i = 0; i < STFS_ARRAY_SIZE(cases); i++) {
		_cleanup_mount_options_ struct stfs_mount_options o = { 0 };
		struct stfs_diag diag;

		ck_assert_int_eq(parse(&o, cases[i].text, &diag), -EINVAL);
		ck_assert_str_eq(diag.text, cases[i].sentence);
	}
}
END_TEST

/* What --help shows is what is accepted, name for name. */
START_TEST(test_help)
{
	const char *name, *text;
	size_t n = 0;

	for (; stfs_mount_option_help(n, &name, &text); n++) {
		_cleanup_mount_options_ struct stfs_mount_options o = { 0 };
		struct stfs_diag diag;

		ck_assert(*name && *text);
		if (!strchr(name, '='))
			ck_assert_msg(parse(&o, name, &diag) == 0, "%s", name);
	}
	ck_assert_uint_ge(n, 12);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("options");

	tcase_add_test(tcase, test_defaults);
	tcase_add_test(tcase, test_own);
	tcase_add_test(tcase, test_passed_on);
	tcase_add_test(tcase, test_words_of_mount);
	tcase_add_test(tcase, test_index);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_help);
	return run_tests("options", tcase);
}
