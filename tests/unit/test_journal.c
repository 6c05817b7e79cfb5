/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "journal_fixture.h"
#include "run_tests.h"

START_TEST(test_payload)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };
	struct stfs_slice payload, bytes, before;
	uint64_t v;

	ck_assert_int_eq(stfs_payload_u64(&buf, 0x0102030405060708), 0);
	ck_assert_int_eq(stfs_payload_bytes(&buf, (struct stfs_slice){ "a\0b", 3 }), 0);
	ck_assert_int_eq(stfs_payload_bytes(&buf, (struct stfs_slice){ NULL, 0 }), 0);
	ck_assert_int_eq(stfs_payload_u64(&buf, UINT64_MAX), 0);
	ck_assert_uint_eq(buf.len, 8 + 11 + 8 + 8);
	ck_assert_mem_eq(buf.data, "\x08\x07\x06\x05\x04\x03\x02\x01\x03\0\0\0\0\0\0\0a\0b", 19);
	payload = stfs_buf_slice(&buf);
	ck_assert(stfs_payload_take_u64(&payload, &v));
	ck_assert_uint_eq(v, 0x0102030405060708);
	ck_assert(stfs_payload_take_bytes(&payload, &bytes));
	ck_assert(stfs_slice_equal(bytes, (struct stfs_slice){ "a\0b", 3 }));
	ck_assert(stfs_payload_take_bytes(&payload, &bytes));
	ck_assert_uint_eq(bytes.len, 0);
	/* A length of more than there is: nothing is taken. */
	before = payload;
	ck_assert(!stfs_payload_take_bytes(&payload, &bytes));
	ck_assert(stfs_slice_equal(payload, before));
	ck_assert(stfs_payload_take_u64(&payload, &v));
	ck_assert_uint_eq(v, UINT64_MAX);
	ck_assert(!stfs_payload_take_u64(&payload, &v));
	ck_assert(!stfs_payload_take_bytes(&payload, &bytes));
	payload = (struct stfs_slice){ "1234567", 7 };
	ck_assert(!stfs_payload_take_u64(&payload, &v));
}
END_TEST

START_TEST(test_append_and_replay)
{
	struct stfs_diag diag = { 0 };
	uint64_t ends[6];
	struct seen seen;

	make(5, ends);
	ck_assert_uint_eq(ends[0], 16);
	ck_assert_uint_eq(ends[1], 16 + 48);
	ck_assert_uint_eq(ends[4], ends[3] + 40);
	ck_assert_uint_eq(file_size(), ends[5]);
	for (int again = 0; again < 2; again++) {
		ck_assert_int_eq(replay(&seen, &diag), 0);
		ck_assert_uint_eq(seen.n, 5);
		ck_assert_str_eq(seen.texts[0], "one");
		ck_assert_str_eq(seen.texts[2], "three--8");
		ck_assert_str_eq(seen.texts[3], "");
		ck_assert_str_eq(seen.texts[4], "five");
		ck_assert_uint_eq(seen.types[4], 4);
	}
	ck_assert_str_eq(diag.text, "");
	ck_assert_uint_eq(file_size(), ends[5]);
}
END_TEST

/* The bytes on disk are those the header describes. */
START_TEST(test_layout)
{
	_cleanup_journal_ struct stfs_journal *journal = opened(true);
	struct timespec now;
	unsigned char b[64];
	uint64_t time = 0;

	ck_assert_int_eq(append(journal, 0x01020304, "abc"), 0);
	clock_gettime(CLOCK_REALTIME, &now);
	get_bytes(0, b, sizeof(b));
	ck_assert_mem_eq(b, "STFSJ2\n\0\0\0\0\0\0\0\0\0", 16);
	ck_assert_mem_eq(b + 16, "\x03\0\0\0", 4);
	ck_assert_mem_ne(b + 32, "\0\0\0\0\0\0\0\0", 8);
	ck_assert_mem_eq(b + 40, "\0\0\0\0\0\0\0\0\x04\x03\x02\x01\0\0\0\0abc\0\0\0\0\0", 24);
	for (int i = 7; i >= 0; i--)
		time = time << 8 | b[24 + i];
	ck_assert_uint_le(time / 1000000000, (uint64_t)now.tv_sec);
	ck_assert_uint_ge(time / 1000000000, (uint64_t)now.tv_sec - 60);
	ck_assert_uint_eq(file_size(), sizeof(b));
}
END_TEST

START_TEST(test_open)
{
	struct stfs_journal *journal = NULL;
	struct stat st;

	ck_assert_int_eq(open_journal(false, &journal), -ENOENT);
	umask(0277);
	stfs_journal_close(opened(true));
	umask(022);
	ck_assert_int_eq(fstatat(dir_fd, "j", &st, 0), 0);
	ck_assert_uint_eq(st.st_mode, S_IFREG | 0600);
	ck_assert_int_eq(open_journal(true, &journal), -EEXIST);
	put_bytes(0, "STFSJ1", 6);
	ck_assert_int_eq(open_journal(false, &journal), -EBADMSG);
	put_bytes(0, "STFSJ2\n\0\0\0\0\0\0\0\0x", 16);
	ck_assert_int_eq(open_journal(false, &journal), -EBADMSG);
	cut_file(0);
	put_bytes(0, "other", 5);
	ck_assert_int_eq(open_journal(false, &journal), -EBADMSG);
	remove_journal();
	ck_assert_int_eq(mkfifoat(dir_fd, "j", 0600), 0);
	ck_assert_int_eq(open_journal(false, &journal), -EBADMSG);
	remove_journal();
	ck_assert_int_eq(symlinkat("elsewhere", dir_fd, "j"), 0);
	ck_assert_int_eq(open_journal(false, &journal), -ELOOP);
	ck_assert_int_eq(open_journal(true, &journal), -EEXIST);
	ck_assert_ptr_null(journal);
	stfs_journal_close(NULL);
}
END_TEST

/* An opened journal is read back before it is added to. */
START_TEST(test_append_order)
{
	_cleanup_journal_ struct stfs_journal *journal = NULL;
	struct seen seen = { 0 };
	uint64_t ends[6];

	make(2, ends);
	journal = opened(false);
	ck_assert_int_eq(append(journal, 9, "x"), -EINVAL);
	ck_assert_int_eq(stfs_journal_replay(journal, see, &seen, NULL), 0);
	ck_assert_int_eq(append(journal, 9, "x"), 0);
	ck_assert_int_eq(replay(&seen, NULL), 0);
	ck_assert_uint_eq(seen.n, 3);
	ck_assert_uint_eq(seen.types[2], 9);
}
END_TEST

START_TEST(test_apply_stops)
{
	_cleanup_journal_ struct stfs_journal *journal = NULL;
	struct seen seen = { .stop_at = 2 };
	uint64_t ends[6];

	make(3, ends);
	put_bytes(ends[3], "garbage", 7);
	journal = opened(false);
	ck_assert_int_eq(stfs_journal_replay(journal, see, &seen, NULL), -ECANCELED);
	ck_assert_uint_eq(seen.n, 2);
	ck_assert_uint_eq(file_size(), ends[3] + 7);
	ck_assert_int_eq(append(journal, 1, "x"), -EINVAL);
}
END_TEST

START_TEST(test_big_records)
{
	const size_t sizes[] = { 65536 - 40, 65536, 1000001, STFS_JOURNAL_RECORD_MAX };
	_cleanup_free_ char *data = calloc(1, STFS_JOURNAL_RECORD_MAX + 1);
	_cleanup_journal_ struct stfs_journal *journal = opened(true);
	struct seen seen = { 0 };

	ck_assert_ptr_nonnull(data);
	memset(data, 'x', STFS_JOURNAL_RECORD_MAX);
	for (size_t i = 0; i < STFS_ARRAY_SIZE(sizes); i++) {
		ck_assert_int_eq(stfs_journal_append(journal, 1, (struct stfs_slice){ data, sizes[i] }), 0);
		ck_assert_int_eq(append(journal, 2, "small"), 0);
	}
	ck_assert_int_eq(stfs_journal_append(journal, 1, (struct stfs_slice){ data, STFS_JOURNAL_RECORD_MAX + 1 }),
			 -EFBIG);
	ck_assert_int_eq(replay(&seen, NULL), 0);
	ck_assert_uint_eq(seen.n, 8);
	for (size_t i = 0; i < STFS_ARRAY_SIZE(sizes); i++) {
		ck_assert_uint_eq(seen.lens[2 * i], sizes[i]);
		ck_assert_str_eq(seen.texts[2 * i + 1], "small");
	}
}
END_TEST

#define THREADS 4
#define PER_THREAD 500

static void *append_many(void *arg)
{
	struct stfs_journal *journal = arg;

	for (unsigned i = 0; i < PER_THREAD; i++) {
		_cleanup_buf_ struct stfs_buf payload = { 0 };

		if (stfs_payload_u64(&payload, i) < 0 ||
		    stfs_journal_append(journal, 5, stfs_buf_slice(&payload)) < 0 ||
		    (i % 50 == 0 && stfs_journal_sync(journal) < 0))
			return arg;
	}
	return NULL;
}

static int count_up(void *user, const struct stfs_record *record)
{
	struct stfs_slice payload = record->payload;
	unsigned *counts = user;
	uint64_t i;

	ck_assert(stfs_payload_take_u64(&payload, &i) && i < PER_THREAD);
	counts[i]++;
	return 0;
}

START_TEST(test_threads)
{
	_cleanup_journal_ struct stfs_journal *journal = opened(true), *again = NULL;
	unsigned counts[PER_THREAD] = { 0 };
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, append_many, journal), 0);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
		ck_assert_ptr_null(failed);
	}
	again = opened(false);
	ck_assert_int_eq(stfs_journal_replay(again, count_up, counts, NULL), 0);
	for (unsigned i = 0; i < PER_THREAD; i++)
		ck_assert_uint_eq(counts[i], THREADS);
	ck_assert_uint_eq(stfs_journal_size(again), 16 + THREADS * PER_THREAD * 48);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("journal");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_payload);
	tcase_add_test(tcase, test_append_and_replay);
	tcase_add_test(tcase, test_layout);
	tcase_add_test(tcase, test_open);
	tcase_add_test(tcase, test_append_order);
	tcase_add_test(tcase, test_apply_stops);
	tcase_add_test(tcase, test_big_records);
	tcase_add_test(tcase, test_threads);
	tcase_set_timeout(tcase, 60);
	return run_tests("journal", tcase);
}
