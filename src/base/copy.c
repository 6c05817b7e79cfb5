/* SPDX-License-Identifier: Apache-2.0 */
#include "copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checked.h"
#include "cleanup.h"
#include "retry.h"

#define CLONE_BLOCK 4096                /* what filesystems that clone want offsets and lengths to be multiples of */
#define CLONE_MIN ((uint64_t)64 * 1024) /* below, sharing blocks costs more than it saves */
#define PART_MAX ((uint64_t)16 * 1024 * 1024) /* between two calls of progress */
#define HOLE_MIN ((uint64_t)64 * 1024)        /* a copy of less is not worth looking for holes */
#define BUFFER_BYTES ((size_t)1024 * 1024)

/* A copy under way: the offsets move on with each byte copied. */
struct copy {
	const struct stfs_os *os;
	int from, to;
	uint64_t from_offset, to_offset;
	bool aligned; /* both offsets are at the same place of a block, and it is worth while */
	struct stfs_copy_stats *stats;
	uint64_t data_end; /* the source is known to have data up to there */
	char *buffer;      /* BUFFER_BYTES, once it is needed */
};

static void copy_fini(struct copy *copy)
{
	free(copy->buffer);
}

static void advance(struct copy *copy, uint64_t n, uint64_t *counter)
{
	copy->from_offset += n;
	copy->to_offset += n;
	*counter += n;
}

static bool means_no_clone(int error)
{
	return error == EOPNOTSUPP || error == EXDEV || error == EINVAL || error == ENOTTY || error == EPERM ||
	       error == ENOSYS;
}

static bool means_no_in_kernel(int error)
{
	return error == EXDEV || error == ENOSYS || error == EOPNOTSUPP || error == EINVAL || error == EPERM ||
	       error == EBADF;
}

static bool means_no_punch(int error)
{
	return error == EOPNOTSUPP || error == ENOSYS || error == EINVAL || error == EPERM;
}

/* Reads what comes next into the buffer. */
static int read_next(struct copy *copy, uint64_t offset, size_t len)
{
	if (!copy->buffer)
		copy->buffer = malloc(BUFFER_BYTES);
	if (!copy->buffer)
		return -ENOMEM;
	return stfs_os_read_full(copy->os, copy->from, copy->buffer, len, offset);
}

/* The next four move what lies before `end`; 0 with something left means that the way does not work here. */
static int clone_until(struct copy *copy, uint64_t end)
{
	const struct stfs_os *os = copy->os;
	uint64_t len = end - copy->from_offset;

	if (STFS_RETRY(os->clone_range(os->user, copy->to, copy->to_offset, copy->from, copy->from_offset, len)) < 0) {
		if (!means_no_clone(errno))
			return -errno;
		copy->stats->no_clone = true;
		return 0;
	}
	advance(copy, len, &copy->stats->cloned);
	return 0;
}

static int copy_in_kernel_until(struct copy *copy, uint64_t end)
{
	const struct stfs_os *os = copy->os;

	while (copy->from_offset < end && !copy->stats->no_in_kernel) {
		off_t from_offset = (off_t)copy->from_offset, to_offset = (off_t)copy->to_offset;
		size_t len = (size_t)(end - copy->from_offset);
		ssize_t n =
			STFS_RETRY(os->copy_file_range(os->user, copy->from, &from_offset, copy->to, &to_offset, len));

		if (n < 0 && !means_no_in_kernel(errno))
			return -errno;
		/* Some kernels say 0 of files they cannot copy: reading will tell them from a file that ends here. */
		if (n <= 0)
			copy->stats->no_in_kernel = true;
		else
			advance(copy, (uint64_t)n, &copy->stats->in_kernel);
	}
	return 0;
}

static int copy_buffered_until(struct copy *copy, uint64_t end)
{
	while (copy->from_offset < end) {
		size_t len = (size_t)STFS_MIN(end - copy->from_offset, BUFFER_BYTES);
		int r = read_next(copy, copy->from_offset, len);

		if (r == 0)
			r = stfs_os_write_full(copy->os, copy->to, copy->buffer, len, copy->to_offset, NULL);
		if (r < 0)
			return r;
		advance(copy, len, &copy->stats->buffered);
	}
	return 0;
}

/* Filesystems were wrong about their holes before: what they call one is read, and is one if it is all zero. */
static int leave_hole_until(struct copy *copy, uint64_t end)
{
	const struct stfs_os *os = copy->os;
	uint64_t len = end - copy->from_offset;

	for (uint64_t at = copy->from_offset; at < end; at += BUFFER_BYTES) {
		size_t part = (size_t)STFS_MIN(end - at, BUFFER_BYTES);
		int r = read_next(copy, at, part);

		if (r < 0)
			return r;
		if (copy->buffer[0] || memcmp(copy->buffer, copy->buffer + 1, part - 1) != 0)
			return 0;
	}
	if (STFS_RETRY(os->fallocate(os->user, copy->to, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				     (off_t)copy->to_offset, (off_t)len)) < 0) {
		if (!means_no_punch(errno))
			return -errno;
		copy->stats->no_holes = true;
		return 0;
	}
	advance(copy, len, &copy->stats->holes);
	return 0;
}

/* Where the run of data, or the hole, ends that comes next; `end` where none can be told from the other. */
static uint64_t find_next_end(struct copy *copy, uint64_t end, bool *ret_hole)
{
	const struct stfs_os *os = copy->os;
	off_t at = (off_t)copy->from_offset, data, hole;

	*ret_hole = false;
	if (copy->stats->no_holes || end - copy->from_offset < HOLE_MIN)
		return end;
	if (copy->from_offset < copy->data_end)
		return STFS_MIN(end, copy->data_end);
	data = os->lseek(os->user, copy->from, at, SEEK_DATA);
	if (data < 0 && errno != ENXIO)
		return end;
	*ret_hole = data < 0 || data > at;
	if (*ret_hole)
		return data < 0 ? end : STFS_MIN(end, (uint64_t)data);
	hole = os->lseek(os->user, copy->from, at, SEEK_HOLE);
	copy->data_end = hole > at ? (uint64_t)hole : end;
	return STFS_MIN(end, copy->data_end);
}

/* How much of `left` to move next, and whether it can be tried to clone it: whole blocks between a head and a tail. */
static uint64_t next_part(const struct copy *copy, uint64_t left, bool *ret_clone)
{
	uint64_t into_block = copy->from_offset % CLONE_BLOCK;

	*ret_clone = false;
	if (!copy->aligned || copy->stats->no_clone || left < CLONE_BLOCK)
		return STFS_MIN(left, PART_MAX);
	if (into_block)
		return STFS_MIN(left, CLONE_BLOCK - into_block);
	*ret_clone = true;
	return STFS_MIN(left - left % CLONE_BLOCK, PART_MAX);
}

static int copy_part(struct copy *copy, uint64_t len, bool clone)
{
	uint64_t part_end = copy->from_offset + len;
	int r = clone ? clone_until(copy, part_end) : 0;

	while (r == 0 && copy->from_offset < part_end) {
		bool hole;
		uint64_t end = find_next_end(copy, part_end, &hole);

		if (hole)
			r = leave_hole_until(copy, end);
		if (r == 0)
			r = copy_in_kernel_until(copy, end);
		if (r == 0)
			r = copy_buffered_until(copy, end);
	}
	return r;
}

int stfs_copy_range(const struct stfs_os *os, int from, uint64_t from_offset, int to, uint64_t to_offset, uint64_t len,
		    struct stfs_copy_stats *stats, stfs_copy_progress progress, void *user)
{
	_cleanup_(copy_fini) struct copy copy = {
		.os = os,
		.from = from,
		.to = to,
		.from_offset = from_offset,
		.to_offset = to_offset,
		.aligned = from_offset % CLONE_BLOCK == to_offset % CLONE_BLOCK && len >= CLONE_MIN,
		.stats = stats,
	};
	uint64_t from_end, to_end;

	if (!stfs_add(from_offset, len, &from_end) || !stfs_add(to_offset, len, &to_end) || from_end > INT64_MAX ||
	    to_end > INT64_MAX)
		return -EFBIG;
	while (copy.from_offset < from_end) {
		bool clone;
		uint64_t part = next_part(&copy, from_end - copy.from_offset, &clone);
		int r = copy_part(&copy, part, clone);

		if (r == 0 && progress)
			r = progress(user, part);
		if (r != 0)
			return r;
	}
	return 0;
}

int stfs_copy_describe(const struct stfs_copy_stats *stats, int (*append)(struct stfs_buf *buf, uint64_t bytes),
		       struct stfs_buf *buf)
{
	const struct {
		uint64_t bytes;
		const char *way;
	} ways[] = {
		{ stats->cloned, "cloned" },
		{ stats->in_kernel, "copied in the kernel" },
		{ stats->buffered, "copied" },
		{ stats->holes, "left as holes" },
	};
	const char *separator = " (";
	int r = 0;

	for (size_t i = 0; r == 0 && i < STFS_ARRAY_SIZE(ways); i++) {
		if (ways[i].bytes == 0)
			continue;
		r = stfs_buf_append_str(buf, separator);
		if (r == 0)
			r = append(buf, ways[i].bytes);
		if (r == 0)
			r = stfs_buf_printf(buf, " %s", ways[i].way);
		separator = ", ";
	}
	return r < 0 || separator[0] == ' ' ? r : stfs_buf_append_char(buf, ')');
}
