/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cleanup.h"
#include "copy.h"
#include "faulty_os.h"
#include "run_tests.h"

#define KIB ((uint64_t)1024)
#define MIB (KIB * 1024)
#define FILE_BYTES (3 * MIB)
#define BLANK 0xee /* what the target holds before */

struct copying {
	int from, to;
	unsigned char *before;  /* the bytes of the source */
	struct stfs_os cloning; /* the system, on a filesystem that clones */
	struct faulty_os faulty;
	struct stfs_copy_stats stats;
};

/* What a filesystem that clones does, and refuses. */
static int pretend_clone(void *user, int to, uint64_t to_offset, int from, uint64_t from_offset, uint64_t len)
{
	_cleanup_free_ char *data = malloc(len);
	const struct stfs_os *real = stfs_os_real();

	(void)user;
	ck_assert_ptr_nonnull(data);
	if (to_offset % 4096 || from_offset % 4096 || len % 4096 || len == 0) {
		errno = EINVAL;
		return -1;
	}
	if (stfs_os_read_full(real, from, data, len, from_offset) < 0) {
		errno = EINVAL; /* as the system says of a range beyond the end */
		return -1;
	}
	ck_assert_int_eq(stfs_os_write_full(real, to, data, len, to_offset, NULL), 0);
	return 0;
}

static void blank_target(struct copying *copying)
{
	_cleanup_free_ unsigned char *blank = malloc(FILE_BYTES);

	ck_assert_ptr_nonnull(blank);
	memset(blank, BLANK, FILE_BYTES);
	ck_assert_int_eq(ftruncate(copying->to, 0), 0);
	ck_assert_int_eq(stfs_os_write_full(stfs_os_real(), copying->to, blank, FILE_BYTES, 0, NULL), 0);
	copying->stats = (struct stfs_copy_stats){ 0 };
}

static void copying_init(struct copying *copying)
{
	uint32_t state = 1;

	*copying = (struct copying){ .cloning = *stfs_os_real() };
	copying->cloning.clone_range = pretend_clone;
	faulty_os_init(&copying->faulty, &copying->cloning);
	copying->from = memfd_create("from", MFD_CLOEXEC);
	copying->to = memfd_create("to", MFD_CLOEXEC);
	ck_assert(copying->from >= 0 && copying->to >= 0);
	copying->before = malloc(FILE_BYTES);
	ck_assert_ptr_nonnull(copying->before);
	for (size_t i = 0; i < FILE_BYTES; i++) {
		state = state * 1664525 + 1013904223;
		copying->before[i] = (unsigned char)(state >> 24);
	}
	ck_assert_int_eq(stfs_os_write_full(stfs_os_real(), copying->from, copying->before, FILE_BYTES, 0, NULL), 0);
	blank_target(copying);
}

static void copying_fini(struct copying *copying)
{
	free(copying->before);
	close(copying->from);
	close(copying->to);
}

static int run(struct copying *copying, uint64_t from, uint64_t to, uint64_t len)
{
	return stfs_copy_range(&copying->faulty.os, copying->from, from, copying->to, to, len, &copying->stats, NULL,
			       NULL);
}

/* The target holds `len` bytes of the source and is otherwise as it was. */
static void compare(const struct copying *copying, uint64_t from, uint64_t to, uint64_t len)
{
	_cleanup_free_ unsigned char *after = malloc(FILE_BYTES), *wanted = malloc(FILE_BYTES);

	ck_assert(after && wanted);
	memset(wanted, BLANK, FILE_BYTES);
	memcpy(wanted + to, copying->before + from, len);
	ck_assert_int_eq(stfs_os_read_full(stfs_os_real(), copying->to, after, FILE_BYTES, 0), 0);
	ck_assert_int_eq(memcmp(after, wanted, FILE_BYTES), 0);
	ck_assert_int_eq(lseek(copying->to, 0, SEEK_END), FILE_BYTES);
}

START_TEST(test_places)
{
	static const struct {
		uint64_t from, to, len, cloned;
	} places[] = {
		{ 0, 0, 0, 0 },
		{ 0, 0, 1, 0 },
		{ 5, 4096 + 5, 64 * KIB - 1, 0 }, /* not worth it */
		{ 0, 0, 64 * KIB, 64 * KIB },
		{ 0, 8, 1 * MIB, 0 }, /* cannot be */
		{ 1, 4096 + 1, 64 * KIB, 60 * KIB },
		{ 4095, 4095, 64 * KIB + 1, 64 * KIB },
		{ 100, 8192 + 100, 1 * MIB + 1000, 1 * MIB - 4096 },
		{ 8192, 0, 2 * MIB + 5, 2 * MIB },
		{ 0, 0, FILE_BYTES, FILE_BYTES },
	};
	struct copying copying;

	copying_init(&copying);
	for (size_t i = 0; i < STFS_ARRAY_SIZE(places); i++) {
		blank_target(&copying);
		ck_assert_int_eq(run(&copying, places[i].from, places[i].to, places[i].len), 0);
		compare(&copying, places[i].from, places[i].to, places[i].len);
		ck_assert_uint_eq(copying.stats.cloned, places[i].cloned);
		ck_assert_uint_eq(copying.stats.in_kernel, places[i].len - places[i].cloned);
		ck_assert_uint_eq(copying.stats.buffered, 0);
	}
	copying_fini(&copying);
}
END_TEST

/* The ways that do not work here are left, once for all, and the bytes arrive all the same. */
START_TEST(test_fall_back)
{
	static const int no_clone[] = { EOPNOTSUPP, EXDEV, EINVAL, ENOTTY, EPERM, ENOSYS };
	static const int no_in_kernel[] = { EXDEV, ENOSYS, EOPNOTSUPP, EINVAL, EPERM, EBADF };
	struct copying copying;

	copying_init(&copying);
	for (size_t i = 0; i < STFS_ARRAY_SIZE(no_clone); i++) {
		blank_target(&copying);
		faulty_os_plant_in(&copying.faulty, FAULTY_CLONE_RANGE, FAULTY_FROM, 1, no_clone[i]);
		ck_assert_int_eq(run(&copying, 10, 10, 1 * MIB), 0);
		compare(&copying, 10, 10, 1 * MIB);
		ck_assert(copying.stats.no_clone && !copying.stats.no_in_kernel);
		ck_assert_int_eq(run(&copying, 10, 10, 1 * MIB), 0);
		ck_assert_uint_eq(copying.faulty.calls, 1);
		ck_assert_uint_eq(copying.stats.in_kernel, 2 * MIB);
	}
	for (size_t i = 0; i < STFS_ARRAY_SIZE(no_in_kernel); i++) {
		blank_target(&copying);
		copying.stats.no_clone = true;
		faulty_os_plant_in(&copying.faulty, FAULTY_COPY_FILE_RANGE, FAULTY_FROM, 1, no_in_kernel[i]);
		ck_assert_int_eq(run(&copying, 10, 20, 2 * MIB + 3), 0);
		compare(&copying, 10, 20, 2 * MIB + 3);
		ck_assert(copying.stats.no_in_kernel);
		ck_assert_int_eq(run(&copying, 10, 20, 1), 0);
		ck_assert_uint_eq(copying.faulty.calls, 1);
		ck_assert_uint_eq(copying.stats.buffered, 2 * MIB + 4);
	}
	copying_fini(&copying);
}
END_TEST

START_TEST(test_errors)
{
	struct copying copying;

	copying_init(&copying);
	faulty_os_plant_in(&copying.faulty, FAULTY_CLONE_RANGE, FAULTY_ONCE, 1, ENOSPC);
	ck_assert_int_eq(run(&copying, 0, 0, MIB), -ENOSPC);
	faulty_os_plant_in(&copying.faulty, FAULTY_COPY_FILE_RANGE, FAULTY_ONCE, 1, EIO);
	ck_assert_int_eq(run(&copying, 0, 1, MIB), -EIO);
	ck_assert(!copying.stats.no_clone && !copying.stats.no_in_kernel);
	ck_assert_uint_eq(copying.stats.cloned + copying.stats.in_kernel + copying.stats.buffered, 0);
	ck_assert_int_eq(run(&copying, UINT64_MAX, 0, 1), -EFBIG);
	ck_assert_int_eq(run(&copying, 0, UINT64_MAX - 5, 5), -EFBIG);
	ck_assert_int_eq(run(&copying, INT64_MAX, 0, 1), -EFBIG);
	copying_fini(&copying);
}
END_TEST

/* A source that ends too early is an error in each way of copying. */
START_TEST(test_source_ends)
{
	struct copying copying;

	copying_init(&copying);
	ck_assert_int_eq(run(&copying, MIB, MIB, 2 * MIB + 1), -EIO);
	blank_target(&copying);
	ck_assert_int_eq(run(&copying, 2 * MIB, 1, MIB + 1), -EIO);
	ck_assert_uint_eq(copying.stats.in_kernel, MIB);
	copying.stats.no_in_kernel = true;
	ck_assert_int_eq(run(&copying, 2 * MIB, 1, MIB + 1), -EIO);
	ck_assert_int_eq(run(&copying, 2 * MIB, 1, MIB), 0);
	copying_fini(&copying);
}
END_TEST

/* Files as they are here: by whatever way the filesystem has. TMPDIR can name one that clones. */
START_TEST(test_real_files)
{
	const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	struct copying copying;

	copying_init(&copying);
	close(copying.from);
	close(copying.to);
	copying.from = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	copying.to = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	ck_assert(copying.from >= 0 && copying.to >= 0);
	ck_assert_int_eq(stfs_os_write_full(stfs_os_real(), copying.from, copying.before, FILE_BYTES, 0, NULL), 0);
	blank_target(&copying);
	ck_assert_int_eq(stfs_copy_range(stfs_os_real(), copying.from, 100, copying.to, 8192 + 100, 2 * MIB,
					 &copying.stats, NULL, NULL),
			 0);
	compare(&copying, 100, 8192 + 100, 2 * MIB);
	ck_assert_uint_eq(copying.stats.cloned, copying.stats.no_clone ? 0 : 2 * MIB - 4096);
	ck_assert_uint_eq(copying.stats.cloned + copying.stats.in_kernel + copying.stats.buffered, 2 * MIB);
	copying_fini(&copying);
}
END_TEST

static uint64_t blocks_of(int fd)
{
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void punch(struct copying *copying, uint64_t begin, uint64_t end)
{
	int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	ck_assert_int_eq(fallocate(copying->from, mode, (off_t)begin, (off_t)(end - begin)), 0);
	memset(copying->before + begin, 0, end - begin);
}

/* Holes stay holes, also between files that do not lie alike; in a short copy, and where they cannot be, they are zeros. */
START_TEST(test_holes)
{
	struct copying copying;

	copying_init(&copying);
	copying.stats.no_clone = true;
	punch(&copying, 0, MIB);
	punch(&copying, 2 * MIB - 4096, 2 * MIB);
	punch(&copying, 2 * MIB + 64 * KIB, FILE_BYTES);
	ck_assert_int_eq(run(&copying, 3, 100, FILE_BYTES - 200), 0);
	compare(&copying, 3, 100, FILE_BYTES - 200);
	ck_assert_uint_eq(copying.stats.holes, 2 * MIB - 64 * KIB - 200 + 4096);
	ck_assert_uint_eq(copying.stats.in_kernel, MIB + 64 * KIB - 4096);
	ck_assert_uint_le(blocks_of(copying.to), MIB + 64 * KIB + 8 * 4096);

	blank_target(&copying);
	copying.stats.no_clone = true;
	ck_assert_int_eq(run(&copying, 0, 0, 64 * KIB - 1), 0);
	ck_assert_uint_eq(copying.stats.holes, 0);
	ck_assert_uint_eq(copying.stats.in_kernel, 64 * KIB - 1);

	blank_target(&copying);
	copying.stats.no_clone = true;
	faulty_os_plant_in(&copying.faulty, FAULTY_FALLOCATE, FAULTY_FROM, 1, EOPNOTSUPP);
	ck_assert_int_eq(run(&copying, 0, 8, MIB + 1), 0);
	compare(&copying, 0, 8, MIB + 1);
	ck_assert(copying.stats.no_holes && copying.stats.in_kernel == MIB + 1);
	ck_assert_int_eq(run(&copying, 0, 8, MIB + 1), 0);
	ck_assert_uint_eq(copying.faulty.calls, 1);

	copying.stats.no_holes = false;
	faulty_os_plant_in(&copying.faulty, FAULTY_FALLOCATE, FAULTY_ONCE, 1, EIO);
	ck_assert_int_eq(run(&copying, 0, 8, MIB), -EIO);
	ck_assert_int_eq(run(&copying, FILE_BYTES - MIB, 0, MIB + 1), -EIO);
	copying_fini(&copying);
}
END_TEST

/* A filesystem that calls all of a file a hole. */
static off_t see_no_data(void *user, int fd, off_t offset, int whence)
{
	(void)user;
	(void)fd;
	if (whence == SEEK_HOLE)
		return offset;
	errno = ENXIO;
	return -1;
}

START_TEST(test_a_hole_that_is_none)
{
	struct copying copying;

	copying_init(&copying);
	copying.cloning.lseek = see_no_data;
	copying.stats.no_clone = true;
	punch(&copying, 0, MIB);
	copying.before[MIB - 1] = 1;
	ck_assert_int_eq(stfs_os_write_full(stfs_os_real(), copying.from, "\1", 1, MIB - 1, NULL), 0);
	ck_assert_int_eq(run(&copying, 0, 8, FILE_BYTES - 8), 0);
	compare(&copying, 0, 8, FILE_BYTES - 8);
	ck_assert_uint_eq(copying.stats.in_kernel, FILE_BYTES - 8);
	copying_fini(&copying);
}
END_TEST

struct watch {
	unsigned calls, stop_at;
	uint64_t bytes;
};

static int watch_progress(void *user, uint64_t bytes)
{
	struct watch *watch = user;

	ck_assert_uint_gt(bytes, 0);
	ck_assert_uint_le(bytes, 16 * MIB);
	watch->bytes += bytes;
	return ++watch->calls == watch->stop_at ? -ECANCELED : 0;
}

START_TEST(test_progress)
{
	const uint64_t len = 40 * MIB + 7;
	struct copying copying;

	copying_init(&copying);
	ck_assert_int_eq(ftruncate(copying.from, (off_t)(len + 3)), 0);
	for (int way = 0; way < 4; way++) {
		struct watch watch = { 0 };

		copying.stats =
			(struct stfs_copy_stats){ .no_clone = way > 0, .no_holes = way > 1, .no_in_kernel = way > 2 };
		ck_assert_int_eq(stfs_copy_range(&copying.faulty.os, copying.from, 3, copying.to, 3, len,
						 &copying.stats, watch_progress, &watch),
				 0);
		ck_assert_uint_eq(watch.bytes, len);
		ck_assert_uint_ge(watch.calls, 3);
		watch = (struct watch){ .stop_at = 2 };
		ck_assert_int_eq(stfs_copy_range(&copying.faulty.os, copying.from, 3, copying.to, 3, len,
						 &copying.stats, watch_progress, &watch),
				 -ECANCELED);
		ck_assert_uint_eq(watch.calls, 2);
	}
	copying_fini(&copying);
}
END_TEST

/* Copies in each of the three ways; the result of the first that failed. */
static int run_all_ways(struct copying *copying)
{
	int r = run(copying, 10, 10, MIB + 100);

	if (r == 0)
		r = run(copying, 2 * MIB, 2 * MIB + 1, 100 * KIB);
	copying->stats.no_in_kernel = true;
	if (r == 0)
		r = run(copying, 0, 10 + MIB + 100, 1000);
	return r;
}

/* Each call failing in turn gives its error, or is got round; short and interrupted calls are made whole. */
START_TEST(test_each_call)
{
	static const struct {
		enum faulty_how how;
		int error;
	} faults[] = {
		{ FAULTY_ONCE, EIO },   { FAULTY_FROM, EDQUOT }, { FAULTY_ONCE, EOPNOTSUPP },
		{ FAULTY_ONCE, EINTR }, { FAULTY_SHORT, 0 },
	};
	struct copying copying;

	copying_init(&copying);
	for (size_t i = 0; i < STFS_ARRAY_SIZE(faults); i++) {
		unsigned at = 0;

		do {
			int r;

			blank_target(&copying);
			faulty_os_plant(&copying.faulty, faults[i].how, ++at, faults[i].error);
			r = run_all_ways(&copying);
			if (copying.faulty.fired && (faults[i].error == EIO || faults[i].error == EDQUOT))
				ck_assert_int_eq(r, -faults[i].error);
			else if (copying.faulty.fired && faults[i].error == EOPNOTSUPP &&
				 copying.faulty.struck & (FAULTY_PREAD | FAULTY_PWRITE))
				ck_assert_int_eq(r, -EOPNOTSUPP);
			else
				ck_assert_int_eq(r, 0);
		} while (copying.faulty.fired);
		ck_assert_uint_gt(at, 5);
	}
	/* The last run had no fault. */
	ck_assert_uint_eq(copying.stats.cloned, MIB - 4096);
	ck_assert_uint_eq(copying.stats.buffered, 1000);
	copying_fini(&copying);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("copy");

	tcase_add_test(tcase, test_places);
	tcase_add_test(tcase, test_fall_back);
	tcase_add_test(tcase, test_errors);
	tcase_add_test(tcase, test_source_ends);
	tcase_add_test(tcase, test_real_files);
	tcase_add_test(tcase, test_holes);
	tcase_add_test(tcase, test_a_hole_that_is_none);
	tcase_add_test(tcase, test_progress);
	tcase_add_test(tcase, test_each_call);
	tcase_set_timeout(tcase, 60);
	return run_tests("copy", tcase);
}
