/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "crc32.h"
#include "run_tests.h"

/* Bit by bit, as the definition says. */
static uint32_t reference(const unsigned char *p, size_t len)
{
	uint32_t crc = 0xffffffff;

	for (; len > 0; p++, len--) {
		crc ^= *p;
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	}
	return ~crc;
}

START_TEST(test_known)
{
	ck_assert_uint_eq(stfs_crc32(0, NULL, 0), 0);
	ck_assert_uint_eq(stfs_crc32(0, "123456789", 9), 0xcbf43926);
	ck_assert_uint_eq(stfs_crc32(0, "a", 1), 0xe8b7be43);
	ck_assert_uint_eq(stfs_crc32(0, "The quick brown fox jumps over the lazy dog", 43), 0x414fa339);
}
END_TEST

/* Every byte in every place of a step of eight, at any alignment; and in two pieces. */
START_TEST(test_reference)
{
	unsigned char data[4096 + 16];
	uint32_t state = 1;

	for (size_t i = 0; i < sizeof(data); i++) {
		state = state * 1664525 + 1013904223;
		data[i] = (unsigned char)(state >> 24);
	}
	for (size_t begin = 0; begin < 9; begin++) {
		for (size_t len = 0; len < 70; len++)
			ck_assert_uint_eq(stfs_crc32(0, data + begin, len), reference(data + begin, len));
	}
	for (size_t cut = 0; cut < 4096; cut += 13) {
		uint32_t crc = stfs_crc32(0, data, cut);

		ck_assert_uint_eq(stfs_crc32(crc, data + cut, 4096 - cut), reference(data, 4096));
	}
	for (unsigned byte = 0; byte < 256; byte++) {
		for (size_t place = 0; place < 8; place++) {
			unsigned char step[8] = { 0 };

			step[place] = (unsigned char)byte;
			ck_assert_uint_eq(stfs_crc32(0, step, 8), reference(step, 8));
		}
	}
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("crc32");

	tcase_add_test(tcase, test_known);
	tcase_add_test(tcase, test_reference);
	return run_tests("crc32", tcase);
}
