/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of the kernel, by kind. Private to this layer. */
#pragma once

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "buf.h"
#include "edit.h"
#include "jobs.h"
#include "log.h"
#include "notify.h"
#include "view.h"
#include "view_control.h"
#include "view_edit.h"

/* An open file or directory. Linked, because the kernel sends no RELEASE for what is open when a session is cut off. */
struct stfs_handle {
	struct stfs_handle *prev, *next;
	atomic_uint refs;             /* one while it is open, one for each read being answered */
	atomic_flag complained;       /* that its bytes cannot be read: one line in the log is enough */
	struct stfs_file *file;       /* of a file */
	struct stfs_listing *listing; /* of a directory */
	fuse_ino_t ino;
	bool writable;
	enum stfs_control_kind control;

	/* Of a control file. The answer is protected by the front's lock. */
	atomic_bool cut;        /* a line was written that had no end */
	struct stfs_buf answer; /* what its last words led to; read in place of its text */
	bool answered;
};

/* What the requests work on; libfuse's userdata. */
struct stfs_front {
	struct stfs_view *view;
	struct stfs_log *log;
	struct fuse_session *fuse; /* borrowed */
	const char *mountpoint;    /* absolute */
	bool writable;
	bool direct_io;
	unsigned max_read;          /* bytes; 0: no limit of ours */
	pthread_mutex_t lock;       /* protects `handles`, and answers; a leaf lock, held for a few instructions only */
	struct stfs_handle handles; /* head of a ring */

	/* Of a writable mount. */
	atomic_bool closing; /* it is about to end: no edits any more */
	struct stfs_parking parking;
	struct stfs_notifier notifier;
	struct stfs_jobs jobs;
};

/* Starts without handles. Returns 0 or -errno. */
int stfs_front_init(struct stfs_front *front);

/* Closes every handle that is left. No request may be running. */
void stfs_front_fini(struct stfs_front *front);

/* A handle like `init`, whose file or listing it takes over (also on failure). Returns 0 or -ENOMEM. */
int stfs_handle_new(struct stfs_front *front, const struct stfs_handle *init, struct stfs_handle **ret_handle);

/* An open file of that inode number, with a reference, or NULL. */
struct stfs_handle *stfs_handle_find(struct stfs_front *front, fuse_ino_t ino);

/*
 * Lists the inode numbers of files that are open for writing, each once. Returns 0 or -ENOMEM. The caller frees *ret_inos.
 */
int stfs_handle_list_writable(struct stfs_front *front, fuse_ino_t **ret_inos, size_t *ret_n);

/*
 * Takes and drops a reference; the last drop closes the handle. A reply ends the request while it is still being sent:
 * the client can close the file then, and RELEASE can overtake the thread that answers the read.
 */
void stfs_handle_ref(struct stfs_handle *handle);
void stfs_handle_unref(struct stfs_front *front, struct stfs_handle *handle);

/* Sets what readers of an open control file get from now on (copied); without memory for it, nothing. */
void stfs_handle_set_answer(struct stfs_front *front, struct stfs_handle *handle, struct stfs_slice text);

static inline struct stfs_front *stfs_front_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static inline struct stfs_handle *stfs_handle_of(const struct fuse_file_info *fi)
{
	return (struct stfs_handle *)(uintptr_t)fi->fh;
}

/* Answers with a result: 0 or -errno. Every request that has nothing else to say ends here. */
static inline void stfs_reply(fuse_req_t req, int result)
{
	fuse_reply_err(req, -result);
}

/* What stat shows, in the kernel's terms. */
void stfs_attr_to_stat(const struct stfs_attr *attr, struct stat *ret);

/* For how many seconds the kernel may keep attributes. */
double stfs_attr_keep(const struct stfs_front *front, const struct stfs_attr *attr);

/* Fills the answer of a lookup: attributes, and how long they may be kept. */
void stfs_attr_to_entry(const struct stfs_front *front, const struct stfs_attr *attr, struct fuse_entry_param *ret);

/* The table of requests. */
extern const struct fuse_lowlevel_ops stfs_ops;

/* meta */
void stfs_op_init(void *userdata, struct fuse_conn_info *conn);
void stfs_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void stfs_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n);
void stfs_op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);
void stfs_op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void stfs_op_readlink(fuse_req_t req, fuse_ino_t ino);
void stfs_op_statfs(fuse_req_t req, fuse_ino_t ino);

/* dir */
void stfs_op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void stfs_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void stfs_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void stfs_op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void stfs_op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);

/* data */
void stfs_op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void stfs_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void stfs_op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);

void stfs_op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
		   struct fuse_file_info *fi);
void stfs_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void stfs_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void stfs_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length, struct fuse_file_info *fi);
void stfs_op_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t offset_in, struct fuse_file_info *fi_in,
			     fuse_ino_t ino_out, off_t offset_out, struct fuse_file_info *fi_out, size_t len,
			     int flags);

/* Answers an open with `file`, which is handed over; `created` has the attributes of one that was just made, else NULL. */
void stfs_reply_opened(fuse_req_t req, struct stfs_handle *init, const struct stfs_attr *created,
		       struct fuse_file_info *fi);

/* edit: what a read-only mount is asked for too (after `mount -o remount,rw`), and answers with EROFS */
void stfs_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi);
void stfs_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev);
void stfs_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void stfs_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void stfs_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void stfs_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void stfs_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name);
void stfs_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
		    unsigned flags);
void stfs_op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi);
