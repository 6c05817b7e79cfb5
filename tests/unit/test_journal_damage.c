/* SPDX-License-Identifier: Apache-2.0 */
/* Journals that were cut, flipped or overwritten: what is torn is cut off, what is damaged is refused. */
#include <errno.h>

#include "journal_fixture.h"
#include "run_tests.h"

/* Cut at every byte: what was whole is there, the rest is cut off, and the journal goes on. */
START_TEST(test_torn_anywhere)
{
	uint64_t ends[6];
	struct seen seen;

	make(4, ends);
	remove_journal();
	for (uint64_t size = 0; size <= ends[4]; size++) {
		_cleanup_journal_ struct stfs_journal *journal = NULL;
		unsigned whole = 0;

		make(4, ends);
		cut_file(size);
		while (whole < 4 && ends[whole + 1] <= size)
			whole++;
		ck_assert_int_eq(replay(&seen, NULL), 0);
		ck_assert_uint_eq(seen.n, whole);
		ck_assert_uint_eq(file_size(), ends[whole]);
		journal = opened(false);
		ck_assert_int_eq(stfs_journal_replay(journal, see, &seen, NULL), 0);
		ck_assert_int_eq(append(journal, 77, "after"), 0);
		ck_assert_int_eq(replay(&seen, NULL), 0);
		ck_assert_uint_eq(seen.n, whole + 1);
		ck_assert_str_eq(seen.texts[whole], "after");
		remove_journal();
	}
}
END_TEST

/* Every bit of the last record flipped: torn. Of an earlier one: damaged, refused, and left as it is. */
START_TEST(test_flipped_bits)
{
	uint64_t ends[6], size;
	struct seen seen;

	make(3, ends);
	size = ends[3];
	for (uint64_t bit = 16 * 8; bit < size * 8; bit++) {
		struct stfs_diag diag = { 0 };
		unsigned char was, now;
		unsigned whole = 0;
		int r;

		get_bytes(bit / 8, &was, 1);
		now = was ^ (unsigned char)(1 << bit % 8);
		put_bytes(bit / 8, &now, 1);
		while (ends[whole + 1] <= bit / 8)
			whole++;
		r = replay(&seen, &diag);
		ck_assert_uint_eq(seen.n, whole);
		if (whole < 2) {
			char place[64];

			ck_assert_int_eq(r, -EBADMSG);
			snprintf(place, sizeof(place), "damaged at byte %d,", (int)ends[whole]);
			ck_assert_ptr_nonnull(strstr(diag.text, place));
			ck_assert_uint_eq(file_size(), size);
			put_bytes(bit / 8, &was, 1);
		} else {
			ck_assert_int_eq(r, 0);
			ck_assert_uint_eq(file_size(), ends[2]);
			remove_journal();
			make(3, ends);
		}
	}
}
END_TEST

static uint64_t other_boot(void *user)
{
	(void)user;
	return 77;
}

/* Replays as after a new start of the machine. */
static int replay_later(struct seen *seen, struct stfs_diag *diag)
{
	struct stfs_os os = *stfs_os_real();
	_cleanup_journal_ struct stfs_journal *journal = NULL;

	os.boot = other_boot;
	ck_assert_int_eq(stfs_journal_open(&os, dir_fd, "j", false, &journal), 0);
	*seen = (struct seen){ 0 };
	return stfs_journal_replay(journal, see, seen, diag);
}

/* A power cut may take a page and leave the next one: what was never on disk as a whole is torn. */
START_TEST(test_hole_before_sync)
{
	char zeros[48] = { 0 };
	struct stfs_diag diag = { 0 };
	uint64_t ends[6];
	struct seen seen;

	make(4, ends);
	put_bytes(ends[1], zeros, ends[2] - ends[1]);
	/* Nothing of the kind happens to a process that was killed. */
	ck_assert_int_eq(replay(&seen, &diag), -EBADMSG);
	ck_assert_uint_eq(file_size(), ends[4]);
	ck_assert_int_eq(replay_later(&seen, NULL), 0);
	ck_assert_uint_eq(seen.n, 1);
	ck_assert_uint_eq(file_size(), ends[1]);
}
END_TEST

/* What a sync had vouched for is not lost in a power cut, but by something worse: nothing is cut off then. */
START_TEST(test_hole_before_a_later_word)
{
	char zeros[48] = { 0 };

	for (int sealed = 0; sealed < 2; sealed++) {
		struct stfs_journal *journal = opened(true);
		struct stfs_diag diag = { 0 };
		uint64_t end, size;
		struct seen seen;

		ck_assert_int_eq(append(journal, 1, "one"), 0);
		end = stfs_journal_size(journal);
		ck_assert_int_eq(append(journal, 2, "two"), 0);
		if (sealed) {
			ck_assert_int_eq(stfs_journal_seal(journal, 3), 0);
			size = stfs_journal_size(journal);
			ck_assert_int_eq(stfs_journal_seal(journal, 3), 0);
			ck_assert_uint_eq(stfs_journal_size(journal), size);
		} else {
			ck_assert_int_eq(stfs_journal_sync(journal), 0);
			ck_assert_int_eq(append(journal, 3, "after a sync"), 0);
			size = stfs_journal_size(journal);
		}
		stfs_journal_close(journal);
		ck_assert_int_eq(replay_later(&seen, &diag), 0);
		ck_assert_uint_eq(seen.n, 3);
		put_bytes(end, zeros, sizeof(zeros));
		ck_assert_int_eq(replay_later(&seen, &diag), -EBADMSG);
		ck_assert_ptr_nonnull(strstr(diag.text, "is whole"));
		ck_assert_uint_eq(file_size(), size);
		remove_journal();
	}
}
END_TEST

/* What is known to be on disk is known again after reading it back, and so is the seal. */
START_TEST(test_synced_comes_back)
{
	char zeros[48] = { 0 };
	struct stfs_journal *journal = opened(true);
	struct seen seen = { 0 };
	uint64_t sealed;

	ck_assert_int_eq(append(journal, 1, "one"), 0);
	ck_assert_int_eq(stfs_journal_seal(journal, 3), 0);
	sealed = stfs_journal_size(journal);
	stfs_journal_close(journal);
	journal = opened(false);
	ck_assert_int_eq(stfs_journal_replay(journal, see, &seen, NULL), 0);
	ck_assert_int_eq(stfs_journal_seal(journal, 3), 0);
	ck_assert_uint_eq(stfs_journal_size(journal), sealed);
	ck_assert_int_eq(append(journal, 2, "two"), 0);
	stfs_journal_close(journal);
	/* "one" and the seal are gone, and only "two", of a later session, is left to tell that they were on disk. */
	put_bytes(16, zeros, sizeof(zeros));
	put_bytes(64, zeros, 40);
	ck_assert_int_eq(replay_later(&seen, NULL), -EBADMSG);
}
END_TEST

/* What others append while a journal is sealed. */
static int append_and_sync(void *user, int fd)
{
	struct stfs_journal **journal = user;
	struct stfs_journal *once = *journal;

	*journal = NULL;
	if (once)
		ck_assert_int_eq(append(once, 1, "meanwhile"), 0);
	return fdatasync(fd);
}

START_TEST(test_seal_is_behind_all)
{
	struct stfs_os os = *stfs_os_real();
	_cleanup_journal_ struct stfs_journal *journal = NULL;
	struct stfs_journal *racing;
	uint64_t size;

	os.user = &racing;
	os.fdatasync = append_and_sync;
	ck_assert_int_eq(stfs_journal_open(&os, dir_fd, "j", true, &journal), 0);
	racing = journal;
	ck_assert_int_eq(append(journal, 1, "one"), 0);
	ck_assert_int_eq(stfs_journal_seal(journal, 3), 0);
	ck_assert_ptr_null(racing);
	size = stfs_journal_size(journal);
	/* The first seal does not speak of what came meanwhile. */
	ck_assert_int_eq(stfs_journal_seal(journal, 3), 0);
	ck_assert_uint_gt(stfs_journal_size(journal), size);
	size = stfs_journal_size(journal);
	ck_assert_int_eq(stfs_journal_seal(journal, 3), 0);
	ck_assert_uint_eq(stfs_journal_size(journal), size);
}
END_TEST

/* Filesystems leave zeros behind what was written, from any place on. */
START_TEST(test_zero_tail)
{
	char zeros[8192] = { 0 };
	uint64_t ends[6];
	struct seen seen;

	for (unsigned whole = 0; whole <= 3; whole++) {
		make(3, ends);
		put_bytes(ends[whole], zeros, sizeof(zeros) - whole);
		ck_assert_int_eq(replay(&seen, NULL), 0);
		ck_assert_uint_eq(seen.n, whole);
		ck_assert_uint_eq(file_size(), ends[whole]);
		remove_journal();
	}
}
END_TEST

/* What was cut off must not come back behind what is appended, as it could if only that got to the disk. */
START_TEST(test_cut_is_on_disk)
{
	uint64_t ends[6];
	struct seen seen;

	make(3, ends);
	cut_file(ends[3] - 1);
	faulty_os_plant_in(&faulty, FAULTY_FDATASYNC, FAULTY_ONCE, 1, EIO);
	ck_assert_int_eq(replay(&seen, NULL), -EIO);
	ck_assert_uint_eq(file_size(), ends[2]);
	faulty_os_plant_in(&faulty, FAULTY_FDATASYNC, FAULTY_NONE, 1, 0);
	ck_assert_int_eq(replay(&seen, NULL), 0);
	ck_assert_uint_eq(seen.n, 2);
	/* Nothing was torn this time. */
	ck_assert_uint_eq(faulty.calls, 0);
}
END_TEST

/* A crash right after the making leaves no head, or zeros; records without a head are damage. */
START_TEST(test_no_head)
{
	char zeros[8192] = { 0 };
	struct stfs_diag diag = { 0 };
	uint64_t ends[6];
	struct seen seen;

	put_bytes(0, zeros, sizeof(zeros));
	ck_assert_int_eq(replay(&seen, NULL), 0);
	ck_assert_uint_eq(seen.n, 0);
	ck_assert_uint_eq(file_size(), 16);
	remove_journal();
	make(3, ends);
	put_bytes(0, zeros, 20);
	ck_assert_int_eq(replay(&seen, &diag), -EBADMSG);
	ck_assert_uint_eq(seen.n, 0);
	ck_assert_ptr_nonnull(strstr(diag.text, "damaged at byte 0,"));
	ck_assert_uint_eq(file_size(), ends[3]);
}
END_TEST

/* What is whole but lies between two records is damage too: nothing may be cut off that holds a record. */
START_TEST(test_record_behind_gap)
{
	char zeros[4096] = { 0 }, record[48];
	struct stfs_diag diag = { 0 };
	uint64_t ends[6];
	struct seen seen;

	make(2, ends);
	get_bytes(ends[1], record, sizeof(record));
	put_bytes(ends[1], zeros, sizeof(zeros));
	put_bytes(8192, record, sizeof(record));
	ck_assert_int_eq(replay(&seen, &diag), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(diag.text, "from byte 8192 on"));
	ck_assert_uint_eq(file_size(), 8192 + sizeof(record));
	/* Records stand at multiples of 8 only. */
	cut_file(ends[1]);
	put_bytes(8196, record, sizeof(record));
	ck_assert_int_eq(replay(&seen, &diag), 0);
	ck_assert_uint_eq(seen.n, 1);
	ck_assert_uint_eq(file_size(), ends[1]);
}
END_TEST

/* A tail made of heads that each speak of half a megabyte is given up on, not worked at for an hour. */
START_TEST(test_costly_tail)
{
	const size_t bytes = 1024 * 1024;
	_cleanup_free_ uint64_t *heads = calloc(1, bytes);
	struct stfs_diag diag = { 0 };
	uint64_t ends[6];
	struct seen seen;

	ck_assert_ptr_nonnull(heads);
	for (size_t i = 0; i < bytes / 8; i++)
		heads[i] = bytes / 2;
	make(1, ends);
	put_bytes(ends[1], heads, bytes);
	ck_assert_int_eq(replay(&seen, &diag), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(diag.text, "cannot be told"));
	ck_assert_uint_eq(file_size(), ends[1] + bytes);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("journal");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_torn_anywhere);
	tcase_add_test(tcase, test_flipped_bits);
	tcase_add_test(tcase, test_hole_before_sync);
	tcase_add_test(tcase, test_hole_before_a_later_word);
	tcase_add_test(tcase, test_synced_comes_back);
	tcase_add_test(tcase, test_seal_is_behind_all);
	tcase_add_test(tcase, test_zero_tail);
	tcase_add_test(tcase, test_cut_is_on_disk);
	tcase_add_test(tcase, test_no_head);
	tcase_add_test(tcase, test_record_behind_gap);
	tcase_add_test(tcase, test_costly_tail);
	tcase_set_timeout(tcase, 60);
	return run_tests("journal_damage", tcase);
}
