/* SPDX-License-Identifier: Apache-2.0 */
#include "faulty_os.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <unistd.h>

static void die(void)
{
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

/*
 * Counts a call of `bytes` bytes (NULL: of none) and lets the fault happen when it is its turn. Returns whether the
 * call is to be made; *bytes may be fewer then, and the process is to die after it if *ret_die.
 */
static bool let_pass(struct faulty_os *faulty, enum faulty_call call, size_t *bytes, bool *ret_die)
{
	unsigned number;

	*ret_die = false;
	if (!(faulty->only & call))
		return true;
	number = ++faulty->calls;
	if (faulty->how == FAULTY_NONE || (faulty->how == FAULTY_FROM ? number < faulty->at : number != faulty->at))
		return true;
	faulty->fired++;
	faulty->struck = call;
	if (faulty->how == FAULTY_KILL || (faulty->how == FAULTY_KILL_HALF && !bytes))
		die();
	if (faulty->how == FAULTY_ONCE || faulty->how == FAULTY_FROM) {
		errno = faulty->error;
		return false;
	}
	*ret_die = faulty->how == FAULTY_KILL_HALF;
	if (bytes && *bytes > 1)
		*bytes /= 2;
	return true;
}

/* For calls that move no bytes. */
static bool passes(struct faulty_os *faulty, enum faulty_call call)
{
	bool dies;

	return let_pass(faulty, call, NULL, &dies);
}

static int faulty_openat(void *user, int dir_fd, const char *name, int flags, mode_t mode)
{
	struct faulty_os *faulty = user;

	return passes(faulty, FAULTY_OPENAT) ? faulty->below->openat(faulty->below->user, dir_fd, name, flags, mode) :
					       -1;
}

static ssize_t faulty_pread(void *user, int fd, void *data, size_t len, off_t offset)
{
	struct faulty_os *faulty = user;
	ssize_t n = -1;
	bool dies;

	if (let_pass(faulty, FAULTY_PREAD, &len, &dies))
		n = faulty->below->pread(faulty->below->user, fd, data, len, offset);
	if (dies)
		die();
	return n;
}

static ssize_t faulty_pwrite(void *user, int fd, const void *data, size_t len, off_t offset)
{
	struct faulty_os *faulty = user;
	ssize_t n = -1;
	bool dies;

	if (let_pass(faulty, FAULTY_PWRITE, &len, &dies))
		n = faulty->below->pwrite(faulty->below->user, fd, data, len, offset);
	if (dies)
		die();
	return n;
}

static int faulty_ftruncate(void *user, int fd, off_t size)
{
	struct faulty_os *faulty = user;

	return passes(faulty, FAULTY_FTRUNCATE) ? faulty->below->ftruncate(faulty->below->user, fd, size) : -1;
}

static int faulty_fallocate(void *user, int fd, int mode, off_t offset, off_t len)
{
	struct faulty_os *faulty = user;

	return passes(faulty, FAULTY_FALLOCATE) ? faulty->below->fallocate(faulty->below->user, fd, mode, offset, len) :
						  -1;
}

static int faulty_fsync(void *user, int fd)
{
	struct faulty_os *faulty = user;

	return passes(faulty, FAULTY_FSYNC) ? faulty->below->fsync(faulty->below->user, fd) : -1;
}

static int faulty_fdatasync(void *user, int fd)
{
	struct faulty_os *faulty = user;

	return passes(faulty, FAULTY_FDATASYNC) ? faulty->below->fdatasync(faulty->below->user, fd) : -1;
}

static int faulty_renameat2(void *user, int old_dir, const char *old_name, int new_dir, const char *new_name,
			    unsigned flags)
{
	struct faulty_os *faulty = user;
	const struct stfs_os *below = faulty->below;

	return passes(faulty, FAULTY_RENAMEAT2) ?
		       below->renameat2(below->user, old_dir, old_name, new_dir, new_name, flags) :
		       -1;
}

static int faulty_unlinkat(void *user, int dir_fd, const char *name, int flags)
{
	struct faulty_os *faulty = user;

	return passes(faulty, FAULTY_UNLINKAT) ? faulty->below->unlinkat(faulty->below->user, dir_fd, name, flags) : -1;
}

static int faulty_mkdirat(void *user, int dir_fd, const char *name, mode_t mode)
{
	struct faulty_os *faulty = user;

	return passes(faulty, FAULTY_MKDIRAT) ? faulty->below->mkdirat(faulty->below->user, dir_fd, name, mode) : -1;
}

static int faulty_fchmod(void *user, int fd, mode_t mode)
{
	struct faulty_os *faulty = user;

	return passes(faulty, FAULTY_FCHMOD) ? faulty->below->fchmod(faulty->below->user, fd, mode) : -1;
}

static int faulty_fchown(void *user, int fd, uid_t uid, gid_t gid)
{
	struct faulty_os *faulty = user;

	return passes(faulty, FAULTY_FCHOWN) ? faulty->below->fchown(faulty->below->user, fd, uid, gid) : -1;
}

static int faulty_fstat(void *user, int fd, struct stat *ret)
{
	struct faulty_os *faulty = user;

	return passes(faulty, FAULTY_FSTAT) ? faulty->below->fstat(faulty->below->user, fd, ret) : -1;
}

/* All or nothing: it is never short. */
static int faulty_clone_range(void *user, int to, uint64_t to_offset, int from, uint64_t from_offset, uint64_t len)
{
	struct faulty_os *faulty = user;
	const struct stfs_os *below = faulty->below;

	return passes(faulty, FAULTY_CLONE_RANGE) ?
		       below->clone_range(below->user, to, to_offset, from, from_offset, len) :
		       -1;
}

/* Never fails, and is not counted. */
static uint64_t faulty_boot(void *user)
{
	const struct faulty_os *faulty = user;

	return faulty->below->boot(faulty->below->user);
}

static ssize_t faulty_copy_file_range(void *user, int from, off_t *from_offset, int to, off_t *to_offset, size_t len)
{
	struct faulty_os *faulty = user;
	ssize_t n = -1;
	bool dies;

	if (let_pass(faulty, FAULTY_COPY_FILE_RANGE, &len, &dies))
		n = faulty->below->copy_file_range(faulty->below->user, from, from_offset, to, to_offset, len);
	if (dies)
		die();
	return n;
}

/* Looking for holes is no call that counts: where it fails, bytes are copied as they would be without it. */
static off_t pass_lseek(void *user, int fd, off_t offset, int whence)
{
	const struct stfs_os *below = ((struct faulty_os *)user)->below;

	return below->lseek(below->user, fd, offset, whence);
}

void faulty_os_init(struct faulty_os *faulty, const struct stfs_os *below)
{
	*faulty = (struct faulty_os){
		.os = {
			.user = faulty,
			.openat = faulty_openat,
			.pread = faulty_pread,
			.pwrite = faulty_pwrite,
			.ftruncate = faulty_ftruncate,
			.fallocate = faulty_fallocate,
			.fsync = faulty_fsync,
			.fdatasync = faulty_fdatasync,
			.renameat2 = faulty_renameat2,
			.unlinkat = faulty_unlinkat,
			.mkdirat = faulty_mkdirat,
			.fchmod = faulty_fchmod,
			.fchown = faulty_fchown,
			.fstat = faulty_fstat,
			.clone_range = faulty_clone_range,
			.copy_file_range = faulty_copy_file_range,
			.boot = faulty_boot,
			.lseek = pass_lseek,
		},
		.below = below,
		.only = FAULTY_ANY,
	};
}

void faulty_os_plant_in(struct faulty_os *faulty, unsigned only, enum faulty_how how, unsigned at, int error)
{
	faulty->how = how;
	faulty->at = at;
	faulty->error = error;
	faulty->only = only;
	faulty->calls = 0;
	faulty->fired = 0;
	faulty->struck = 0;
}

void faulty_os_plant(struct faulty_os *faulty, enum faulty_how how, unsigned at, int error)
{
	faulty_os_plant_in(faulty, FAULTY_ANY, how, at, error);
}

const char *faulty_call_name(unsigned call)
{
	static const char *const names[] = {
		"openat", "pread",     "pwrite",    "ftruncate",   "fallocate",
		"fsync",  "fdatasync", "renameat2", "unlinkat",    "mkdirat",
		"fchmod", "fchown",    "fstat",     "clone_range", "copy_file_range",
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (call == 1u << i)
			return names[i];
	}
	return "no call";
}

unsigned faulty_open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}
