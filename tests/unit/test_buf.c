/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "buf.h"
#include "run_tests.h"

START_TEST(test_append)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };

	ck_assert_int_eq(stfs_buf_append_str(&buf, "one"), 0);
	ck_assert_int_eq(stfs_buf_append_char(&buf, ' '), 0);
	ck_assert_int_eq(stfs_buf_append(&buf, "t\0o", 3), 0);
	ck_assert_int_eq(stfs_buf_printf(&buf, "%s=%d", "x", -7), 0);
	ck_assert_uint_eq(buf.len, 11);
	ck_assert_mem_eq(buf.data, "one t\0ox=-7", 12);
	ck_assert(stfs_slice_equal(stfs_buf_slice(&buf), (struct stfs_slice){ "one t\0ox=-7", 11 }));
}
END_TEST

START_TEST(test_nothing)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };

	/* Nothing from nowhere is allowed, and still gives a string. */
	ck_assert_int_eq(stfs_buf_append(&buf, NULL, 0), 0);
	ck_assert_uint_eq(buf.len, 0);
	ck_assert_str_eq(buf.data, "");
	stfs_buf_fini(&buf);
	ck_assert_ptr_null(buf.data);
	ck_assert_uint_eq(buf.cap, 0);
	stfs_buf_fini(&buf);
}
END_TEST

/* Each append may move the bytes: they must come along, and the NUL must follow them. */
START_TEST(test_growth)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };

	for (size_t i = 0; i < 5000; i++) {
		ck_assert_int_eq(stfs_buf_append_char(&buf, (char)('a' + i % 26)), 0);
		ck_assert_uint_eq(buf.len, i + 1);
		ck_assert_uint_lt(buf.len, buf.cap);
		ck_assert_int_eq(buf.data[buf.len], '\0');
	}
	for (size_t i = 0; i < buf.len; i++)
		ck_assert_int_eq(buf.data[i], (char)('a' + i % 26));
}
END_TEST

START_TEST(test_reserve)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };
	char *data;

	ck_assert_int_eq(stfs_buf_reserve(&buf, 5000), 0);
	ck_assert_uint_eq(buf.len, 0);
	data = buf.data;
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(stfs_buf_append_str(&buf, "12345"), 0);
	ck_assert_ptr_eq(buf.data, data);
}
END_TEST

START_TEST(test_too_much)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };

	ck_assert_int_eq(stfs_buf_append_str(&buf, "kept"), 0);
	ck_assert_int_eq(stfs_buf_reserve(&buf, SIZE_MAX), -ENOMEM);
	ck_assert_int_eq(stfs_buf_reserve(&buf, SIZE_MAX - 4), -ENOMEM);
	ck_assert_str_eq(buf.data, "kept");
	ck_assert_uint_eq(buf.len, 4);
}
END_TEST

/* The sister for items: room for one more, doubled, and never past the limit. */
START_TEST(test_array)
{
	uint32_t *items = NULL;
	uint32_t cap = 0;
	void *p;

	for (uint32_t n = 0; n < 1000; n++) {
		p = items;
		ck_assert_int_eq(stfs_array_grow(&p, n, &cap, 1000, sizeof(*items)), 0);
		items = p;
		ck_assert_uint_gt(cap, n);
		ck_assert_uint_le(cap, 1000);
		items[n] = n;
	}
	p = items;
	ck_assert_int_eq(stfs_array_grow(&p, 1000, &cap, 1000, sizeof(*items)), -EFBIG);
	ck_assert_ptr_eq(p, items);
	ck_assert_uint_eq(cap, 1000);
	for (uint32_t n = 0; n < 1000; n++)
		ck_assert_uint_eq(items[n], n);
	free(items);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("buf");

	tcase_add_test(tcase, test_append);
	tcase_add_test(tcase, test_nothing);
	tcase_add_test(tcase, test_growth);
	tcase_add_test(tcase, test_reserve);
	tcase_add_test(tcase, test_too_much);
	tcase_add_test(tcase, test_array);
	return run_tests("buf", tcase);
}
