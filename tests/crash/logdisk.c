/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that remembers the order in which it was written to. It is the file "disk" of a FUSE mount, for a loop device and any
 * filesystem on that. Everything that reaches it is appended to LOG: powercut.py makes of that what a power cut could have left.
 * What is written to the file "mark" goes to the log too, to tell what was begun and done by then.
 *
 * usage: logdisk IMAGE LOG MOUNTPOINT [FUSE OPTIONS]
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum kind { KIND_WRITE = 1, KIND_FLUSH, KIND_MARK };

/* In the log, in this machine's order of bytes; `len` bytes follow. */
struct entry {
	uint64_t kind, offset, len;
};

struct disk {
	int image_fd, log_fd;
	off_t size;
};

static struct disk *disk_of_request(void)
{
	return fuse_get_context()->private_data;
}

static int append(enum kind kind, const char *bytes, size_t len, off_t offset)
{
	struct entry entry = { kind, (uint64_t)offset, len };
	struct iovec parts[] = { { &entry, sizeof(entry) }, { (void *)(uintptr_t)bytes, len } };

	return writev(disk_of_request()->log_fd, parts, ARRAY_SIZE(parts)) == (ssize_t)(sizeof(entry) + len) ? 0 : -EIO;
}

static int disk_getattr(const char *path, struct stat *ret, struct fuse_file_info *fi)
{
	(void)fi;
	*ret = (struct stat){ .st_mode = S_IFDIR | 0700, .st_nlink = 2 };
	if (strcmp(path, "/") == 0)
		return 0;
	*ret = (struct stat){ .st_mode = S_IFREG | 0600, .st_nlink = 1, .st_blksize = 4096 };
	if (strcmp(path, "/disk") == 0)
		ret->st_size = disk_of_request()->size;
	else if (strcmp(path, "/mark") != 0)
		return -ENOENT;
	return 0;
}

static int disk_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	(void)path, (void)size, (void)fi;
	return 0;
}

/* Nothing may stay in the kernel's cache: what the filesystem wrote must come here. */
static int disk_open(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	fi->direct_io = 1;
	return 0;
}

static int disk_read(const char *path, char *buf, size_t len, off_t offset, struct fuse_file_info *fi)
{
	ssize_t n = pread(disk_of_request()->image_fd, buf, len, offset);

	(void)path, (void)fi;
	return n < 0 ? -errno : (int)n;
}

static int disk_write(const char *path, const char *buf, size_t len, off_t offset, struct fuse_file_info *fi)
{
	bool mark = strcmp(path, "/mark") == 0;
	int r;

	(void)fi;
	if (!mark && pwrite(disk_of_request()->image_fd, buf, len, offset) != (ssize_t)len)
		return -EIO;
	r = append(mark ? KIND_MARK : KIND_WRITE, buf, len, offset);
	return r < 0 ? r : (int)len;
}

static int disk_fsync(const char *path, int data_only, struct fuse_file_info *fi)
{
	(void)path, (void)data_only, (void)fi;
	return append(KIND_FLUSH, NULL, 0, 0);
}

static const struct fuse_operations operations = {
	.getattr = disk_getattr,
	.truncate = disk_truncate,
	.open = disk_open,
	.read = disk_read,
	.write = disk_write,
	.fsync = disk_fsync,
};

int main(int argc, char **argv)
{
	/* One thread: the order of the log is that of the requests. */
	char one_thread[] = "-s";
	char *args[16] = { argv[0], one_thread };
	struct disk disk;
	struct stat st;

	if (argc < 4 || (size_t)argc > ARRAY_SIZE(args)) {
		fprintf(stderr, "usage: logdisk IMAGE LOG MOUNTPOINT [FUSE OPTIONS]\n");
		return 2;
	}
	for (int i = 3; i < argc; i++)
		args[i - 1] = argv[i];
	disk.image_fd = open(argv[1], O_RDWR | O_CLOEXEC);
	disk.log_fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	if (disk.image_fd < 0 || disk.log_fd < 0 || fstat(disk.image_fd, &st) < 0) {
		perror("logdisk");
		return 2;
	}
	disk.size = st.st_size;
	return fuse_main(argc - 1, args, &operations, &disk);
}
