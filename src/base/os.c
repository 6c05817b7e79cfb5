/* SPDX-License-Identifier: Apache-2.0 */
#include "os.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cleanup.h"
#include "hash.h"
#include "retry.h"

static int real_openat(void *user, int dir_fd, const char *name, int flags, mode_t mode)
{
	(void)user;
	return openat(dir_fd, name, flags, mode);
}

static ssize_t real_pread(void *user, int fd, void *data, size_t len, off_t offset)
{
	(void)user;
	return pread(fd, data, len, offset);
}

static ssize_t real_pwrite(void *user, int fd, const void *data, size_t len, off_t offset)
{
	(void)user;
	return pwrite(fd, data, len, offset);
}

static int real_ftruncate(void *user, int fd, off_t size)
{
	(void)user;
	return ftruncate(fd, size);
}

static int real_fallocate(void *user, int fd, int mode, off_t offset, off_t len)
{
	(void)user;
	return fallocate(fd, mode, offset, len);
}

static int real_fsync(void *user, int fd)
{
	(void)user;
	return fsync(fd);
}

static int real_fdatasync(void *user, int fd)
{
	(void)user;
	return fdatasync(fd);
}

static int real_renameat2(void *user, int old_dir, const char *old_name, int new_dir, const char *new_name,
			  unsigned flags)
{
	(void)user;
	return renameat2(old_dir, old_name, new_dir, new_name, flags);
}

static int real_unlinkat(void *user, int dir_fd, const char *name, int flags)
{
	(void)user;
	return unlinkat(dir_fd, name, flags);
}

static int real_mkdirat(void *user, int dir_fd, const char *name, mode_t mode)
{
	(void)user;
	return mkdirat(dir_fd, name, mode);
}

static int real_fchmod(void *user, int fd, mode_t mode)
{
	(void)user;
	return fchmod(fd, mode);
}

static int real_fchown(void *user, int fd, uid_t uid, gid_t gid)
{
	(void)user;
	return fchown(fd, uid, gid);
}

static int real_fstat(void *user, int fd, struct stat *ret)
{
	(void)user;
	return fstat(fd, ret);
}

static int real_clone_range(void *user, int to, uint64_t to_offset, int from, uint64_t from_offset, uint64_t len)
{
	struct file_clone_range range = {
		.src_fd = from,
		.src_offset = from_offset,
		.src_length = len,
		.dest_offset = to_offset,
	};

	(void)user;
	return ioctl(to, FICLONERANGE, &range);
}

static ssize_t real_copy_file_range(void *user, int from, off_t *from_offset, int to, off_t *to_offset, size_t len)
{
	(void)user;
	return copy_file_range(from, from_offset, to, to_offset, len, 0);
}

static uint64_t real_boot(void *user)
{
	static const struct stfs_hash_key key = { UINT64_C(0x626f6f74206f6620), UINT64_C(0x6a6f75726e616c0a) };
	_cleanup_close_ int fd = STFS_RETRY(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
	char id[64];
	ssize_t n = fd < 0 ? -1 : STFS_RETRY(read(fd, id, sizeof(id)));

	(void)user;
	return n > 0 ? stfs_hash(key, id, (size_t)n) | 1 : 0;
}

static off_t real_lseek(void *user, int fd, off_t offset, int whence)
{
	(void)user;
	return lseek(fd, offset, whence);
}

const struct stfs_os *stfs_os_real(void)
{
	static const struct stfs_os real = {
		.openat = real_openat,
		.pread = real_pread,
		.pwrite = real_pwrite,
		.ftruncate = real_ftruncate,
		.fallocate = real_fallocate,
		.fsync = real_fsync,
		.fdatasync = real_fdatasync,
		.renameat2 = real_renameat2,
		.unlinkat = real_unlinkat,
		.mkdirat = real_mkdirat,
		.fchmod = real_fchmod,
		.fchown = real_fchown,
		.fstat = real_fstat,
		.clone_range = real_clone_range,
		.copy_file_range = real_copy_file_range,
		.boot = real_boot,
		.lseek = real_lseek,
	};

	return &real;
}

int stfs_os_write_full(const struct stfs_os *os, int fd, const void *data, size_t len, uint64_t offset,
		       size_t *ret_written)
{
	const char *p = data;
	size_t done = 0;
	int r = 0;

	while (done < len) {
		ssize_t n = STFS_RETRY(os->pwrite(os->user, fd, p + done, len - done, (off_t)(offset + done)));

		if (n <= 0) {
			r = n < 0 ? -errno : -EIO; /* 0 would be tried for ever */
			break;
		}
		done += (size_t)n;
	}
	if (ret_written)
		*ret_written = done;
	return r;
}

int stfs_os_read_full(const struct stfs_os *os, int fd, void *data, size_t len, uint64_t offset)
{
	char *p = data;

	while (len > 0) {
		ssize_t n = STFS_RETRY(os->pread(os->user, fd, p, len, (off_t)offset));

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		p += n;
		len -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}
