/* SPDX-License-Identifier: Apache-2.0 */
/* What stfs_commit_recover makes of a journal.next, by hand: finished, undone, or refused without touching anything. */
#include "commit_fixture.h"
#include "commit_steps.h"
#include "faulty_os.h"
#include "record.h"
#include "run_tests.h"

#define TEMP_A ".a.safetensors.stfs-commit"
#define TEMP_B ".b.safetensors.stfs-commit"

static int dir_fd;
static struct stfs_stage *stage;
static struct stfs_journal *next;
static struct stfs_commit_steps steps;
static struct said said;
static struct faulty_os faulty;

static void setup(void)
{
	struct stfs_stage_options options = { .name = FIXTURE_STAGE, .holder = "a test", .os = &faulty.os };

	fixture_setup();
	faulty_os_init(&faulty, stfs_os_real());
	dir_fd = open(fixture_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	options.parent_fd = dir_fd;
	ck_assert_int_eq(stfs_stage_new(&options, NULL, &stage), 0);
	ck_assert_int_eq(stfs_stage_create(stage), 0);
	ck_assert_int_eq(stfs_stage_next_journal(stage, &next), 0);
	file_put("a.safetensors", "old a");
	file_put("b.safetensors", "old b");
	file_put("c.safetensors", "old c");
}

static void teardown(void)
{
	stfs_journal_close(next);
	stfs_commit_steps_fini(&steps);
	stfs_stage_free(stage);
	close(dir_fd);
	editing_teardown(NULL);
}

static void expect(const char *name, const char *text)
{
	struct stfs_buf buf = file_bytes(name);

	ck_assert_str_eq(buf.data, text);
	stfs_buf_fini(&buf);
}

static void add(const char *target)
{
	ck_assert_int_eq(stfs_commit_steps_add(&steps, stfs_slice_of(target), NULL, false), 0);
}

/* Makes the temporary files of all steps, and notes what they are. */
static void build(void)
{
	for (uint32_t i = 0; i < steps.n; i++) {
		struct stat st;

		file_put(steps.steps[i].temp, "new");
		ck_assert_int_eq(lstat(fixture_path(steps.steps[i].temp), &st), 0);
		steps.steps[i].size = (uint64_t)st.st_size;
		steps.steps[i].mtime = st.st_mtim;
	}
}

static void write_record(enum stfs_record_type type)
{
	_cleanup_buf_ struct stfs_buf payload = { 0 };

	ck_assert_int_eq(stfs_commit_steps_encode(&steps, &payload), 0);
	ck_assert_int_eq(stfs_journal_append(next, type, stfs_buf_slice(&payload)), 0);
}

static int recover(void)
{
	int r;

	stfs_journal_close(next);
	next = NULL;
	said_init(&said);
	r = stfs_commit_recover(stage, dir_fd, &said.report);
	ck_assert_int_eq(r<0, said.report.violations> 0);
	return r;
}

static bool has_next(void)
{
	return access(fixture_path(FIXTURE_STAGE "/journal.next"), F_OK) == 0;
}

START_TEST(names_of_temporary_files_follow)
{
	add("a.safetensors");
	add("sub/b.safetensors");
	ck_assert_str_eq(steps.steps[0].temp, TEMP_A);
	ck_assert_str_eq(steps.steps[1].temp, "sub/" TEMP_B);
}
END_TEST

START_TEST(a_list_is_read_back)
{
	struct stfs_commit_steps back = { 0 };
	struct stfs_buf payload = { 0 };

	add("a.safetensors");
	add("b.safetensors");
	ck_assert_int_eq(stfs_commit_steps_add_removed(&steps, stfs_slice_of("c.safetensors")), 0);
	steps.steps[1] = (struct stfs_commit_step){
		.temp = steps.steps[1].temp,
		.target = steps.steps[1].target,
		.fresh = true,
		.size = 7,
		.mtime = { 5, 6 },
	};
	steps.keep_journal = true;
	ck_assert_int_eq(stfs_commit_steps_encode(&steps, &payload), 0);
	ck_assert_int_eq(stfs_commit_steps_decode(&back, stfs_buf_slice(&payload)), 0);
	ck_assert_uint_eq(back.n, 2);
	ck_assert_str_eq(back.steps[1].target, "b.safetensors");
	ck_assert_str_eq(back.steps[1].temp, TEMP_B);
	ck_assert(!back.steps[0].fresh && back.steps[1].fresh && back.keep_journal && !back.made_stage);
	ck_assert_uint_eq(back.steps[1].size, 7);
	ck_assert_int_eq(back.steps[1].mtime.tv_nsec, 6);
	ck_assert_uint_eq(back.n_removed, 1);
	ck_assert_str_eq(back.removed[0], "c.safetensors");
	stfs_commit_steps_fini(&back);
	/* Cut anywhere it is none. */
	for (size_t len = 0; len < payload.len; len++) {
		ck_assert_int_eq(stfs_commit_steps_decode(&back, (struct stfs_slice){ payload.data, len }), -EBADMSG);
		stfs_commit_steps_fini(&back);
	}
	stfs_buf_fini(&payload);
}
END_TEST

START_TEST(nothing_to_do)
{
	stfs_journal_close(next);
	next = NULL;
	ck_assert_int_eq(stfs_stage_drop_next(stage), 0);
	ck_assert_int_eq(recover(), 0);
	ck_assert(stfs_stage_exists(stage));
}
END_TEST

START_TEST(an_empty_one_is_dropped)
{
	ck_assert_int_eq(recover(), 0);
	ck_assert(!has_next() && stfs_stage_exists(stage));
}
END_TEST

START_TEST(what_was_not_decided_is_undone)
{
	add("a.safetensors");
	add("b.safetensors");
	write_record(STFS_RECORD_TEMPS);
	file_put(TEMP_A, "half");
	file_put(".z.safetensors.stfs-commit", "of somebody else");
	ck_assert_int_eq(recover(), 0);
	ck_assert(!has_next());
	ck_assert_str_eq(folder_names(""),
			 FIXTURE_STAGE " .z.safetensors.stfs-commit a.safetensors b.safetensors c.safetensors");
	expect("a.safetensors", "old a");
}
END_TEST

START_TEST(the_word_stays_until_the_files_are_gone_for_good)
{
	add("a.safetensors");
	write_record(STFS_RECORD_TEMPS);
	file_put(TEMP_A, "half");
	faulty_os_plant_in(&faulty, FAULTY_FSYNC, FAULTY_ONCE, 1, EIO);
	ck_assert_int_eq(recover(), -EIO);
	ck_assert(has_next());
	ck_assert_int_eq(recover(), 0);
	ck_assert(!has_next());
}
END_TEST

/* The last word was being written when the process died. */
START_TEST(a_torn_decision_is_none)
{
	struct stat st;

	add("a.safetensors");
	write_record(STFS_RECORD_TEMPS);
	build();
	write_record(STFS_RECORD_COMMIT);
	ck_assert_int_eq(stat(fixture_path(FIXTURE_STAGE "/journal.next"), &st), 0);
	ck_assert_int_eq(truncate(fixture_path(FIXTURE_STAGE "/journal.next"), st.st_size - 9), 0);
	ck_assert_int_eq(recover(), 0);
	expect("a.safetensors", "old a");
	ck_assert_str_eq(folder_names(""), FIXTURE_STAGE " a.safetensors b.safetensors c.safetensors");
}
END_TEST

START_TEST(what_was_decided_is_finished)
{
	add("a.safetensors");
	add("b.safetensors");
	ck_assert_int_eq(stfs_commit_steps_add_removed(&steps, stfs_slice_of("c.safetensors")), 0);
	write_record(STFS_RECORD_TEMPS);
	build();
	write_record(STFS_RECORD_COMMIT);
	/* One has its name already. */
	file_rename(TEMP_A, "a.safetensors");
	ck_assert_int_eq(recover(), 0);
	expect("a.safetensors", "new");
	expect("b.safetensors", "new");
	ck_assert_str_eq(folder_names(""), "a.safetensors b.safetensors");
	ck_assert(!stfs_stage_exists(stage));
}
END_TEST

START_TEST(scratch_files_go_on)
{
	steps.keep_journal = true;
	add("a.safetensors");
	write_record(STFS_RECORD_TEMPS);
	build();
	write_record(STFS_RECORD_COMMIT);
	ck_assert_int_eq(recover(), 0);
	expect("a.safetensors", "new");
	ck_assert(!has_next() && stfs_stage_exists(stage));
	ck_assert_str_eq(folder_names(FIXTURE_STAGE), "journal");
}
END_TEST

/* It had been taken back, and only the word came back after a power cut. */
START_TEST(a_decision_without_files_is_undone)
{
	add("a.safetensors");
	add("b.safetensors");
	build();
	write_record(STFS_RECORD_COMMIT);
	ck_assert_int_eq(unlink(fixture_path(TEMP_A)), 0);
	ck_assert_int_eq(recover(), 0);
	ck_assert_str_eq(folder_names(""), FIXTURE_STAGE " a.safetensors b.safetensors c.safetensors");
	expect("b.safetensors", "old b");
	ck_assert(!has_next());
}
END_TEST

START_TEST(half_a_commit_is_left_to_a_human)
{
	add("a.safetensors");
	add("b.safetensors");
	build();
	write_record(STFS_RECORD_COMMIT);
	file_rename(TEMP_A, "a.safetensors");
	ck_assert_int_eq(unlink(fixture_path(TEMP_B)), 0);
	ck_assert_int_eq(recover(), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(said.text, "1 of its 2 files are in place, 1 are gone"));
	ck_assert(has_next());
	expect("b.safetensors", "old b");
}
END_TEST

/* A file that somebody put where a new one was to be. */
START_TEST(a_new_file_replaces_nothing)
{
	ck_assert_int_eq(stfs_commit_steps_add(&steps, stfs_slice_of("a.safetensors"), NULL, true), 0);
	build();
	write_record(STFS_RECORD_COMMIT);
	ck_assert_int_eq(recover(), -EEXIST);
	expect("a.safetensors", "old a");
	expect(TEMP_A, "new");
	ck_assert(has_next());
}
END_TEST

START_TEST(names_that_leave_the_folder_are_refused)
{
	static const char *const names[] = { "/etc/passwd", "../a", "sub/../../a", "..", "", "a/", "a/.." };

	add(names[_i]);
	write_record(_i % 2 ? STFS_RECORD_COMMIT : STFS_RECORD_TEMPS);
	ck_assert_int_eq(recover(), -EBADMSG);
	ck_assert(has_next());
}
END_TEST

/* Also by a link that came with the model. */
START_TEST(links_out_of_the_folder_are_refused)
{
	ck_assert_int_eq(mkdir(fixture_path("outside"), 0755), 0);
	ck_assert_int_eq(mkdir(fixture_path("sub"), 0755), 0);
	ck_assert_int_eq(symlink("../outside", fixture_path("sub/link")), 0);
	add("sub/link/a.safetensors");
	build();
	write_record(STFS_RECORD_COMMIT);
	ck_assert_int_eq(recover(), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(said.text, "a link"));
	ck_assert_str_eq(folder_names("outside"), TEMP_A);
}
END_TEST

START_TEST(a_damaged_one_is_refused)
{
	int fd;

	add("a.safetensors");
	write_record(STFS_RECORD_TEMPS);
	build();
	write_record(STFS_RECORD_COMMIT);
	fd = open(fixture_path(FIXTURE_STAGE "/journal.next"), O_WRONLY);
	ck_assert_int_eq(pwrite(fd, "!", 1, 50), 1);
	close(fd);
	ck_assert_int_eq(recover(), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(said.text, "damaged at byte 16"));
	ck_assert(has_next());
	expect(TEMP_A, "new");
	file_put(FIXTURE_STAGE "/journal.next", "this is not a journal");
	ck_assert_int_eq(recover(), -EBADMSG);
	expect("a.safetensors", "old a");
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("commit_recover");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, names_of_temporary_files_follow);
	tcase_add_test(tcase, a_list_is_read_back);
	tcase_add_test(tcase, nothing_to_do);
	tcase_add_test(tcase, an_empty_one_is_dropped);
	tcase_add_test(tcase, what_was_not_decided_is_undone);
	tcase_add_test(tcase, the_word_stays_until_the_files_are_gone_for_good);
	tcase_add_test(tcase, a_torn_decision_is_none);
	tcase_add_test(tcase, what_was_decided_is_finished);
	tcase_add_test(tcase, scratch_files_go_on);
	tcase_add_test(tcase, a_decision_without_files_is_undone);
	tcase_add_test(tcase, half_a_commit_is_left_to_a_human);
	tcase_add_test(tcase, a_new_file_replaces_nothing);
	tcase_add_loop_test(tcase, names_that_leave_the_folder_are_refused, 0, 7);
	tcase_add_test(tcase, links_out_of_the_folder_are_refused);
	tcase_add_test(tcase, a_damaged_one_is_refused);
	return run_tests("commit_recover", tcase);
}
