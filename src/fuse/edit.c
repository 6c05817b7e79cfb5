/* SPDX-License-Identifier: Apache-2.0 */
#include "edit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "io.h"
#include "ops.h"

#define MEMORY_MAX \
	(64u << 20) /* bytes of parked data kept in memory; more goes to a file, which a busy disk makes slow */

/* A request that waits, with copies of all it points to. */
struct stfs_parked {
	struct stfs_parked *next;
	struct stfs_edit edit;
	char *names[2], *data;
	size_t kept;           /* bytes of data in memory */
	uint64_t spill_offset; /* of data that is not */
};

void stfs_parking_init(struct stfs_parking *parking)
{
	*parking = (struct stfs_parking){ .last = &parking->first, .spill_fd = -1 };
	pthread_mutex_init(&parking->lock, NULL); /* cannot fail for a plain one */
}

void stfs_parking_fini(struct stfs_parking *parking)
{
	stfs_closep(&parking->spill_fd);
	pthread_mutex_destroy(&parking->lock);
}

static void free_parked(struct stfs_front *front, struct stfs_parked *parked)
{
	if (parked->edit.handle)
		stfs_handle_unref(front, parked->edit.handle);
	if (parked->edit.source)
		stfs_handle_unref(front, parked->edit.source);
	free(parked->names[0]);
	free(parked->names[1]);
	free(parked->data);
	free(parked);
}

static int copy_name(const char *name, char **ret)
{
	*ret = name ? strdup(name) : NULL;
	return name && !*ret ? -ENOMEM : 0;
}

/* Puts data into the file for what is too much. With the lock held. Memory is what is left when that fails. */
static bool spill(struct stfs_parking *parking, struct stfs_parked *parked)
{
	uint64_t offset = parking->spill_end;

	if (parking->spill_fd < 0)
		parking->spill_fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (parking->spill_fd < 0)
		return false;
	for (size_t done = 0; done < parked->edit.size;) {
		ssize_t n = pwrite(parking->spill_fd, parked->edit.data + done, parked->edit.size - done,
				   (off_t)(offset + done));

		if (n <= 0 && errno != EINTR)
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	parked->spill_offset = offset;
	parking->spill_end += parked->edit.size;
	return true;
}

static int keep_data(struct stfs_parking *parking, struct stfs_parked *parked)
{
	size_t size = parked->edit.size;

	if (size == 0 || (parking->bytes + size > MEMORY_MAX && spill(parking, parked)))
		return 0;
	parked->data = malloc(size);
	if (!parked->data)
		return -ENOMEM;
	memcpy(parked->data, parked->edit.data, size);
	parked->kept = size;
	parking->bytes += size;
	return 0;
}

static int copy_edit(struct stfs_parking *parking, const struct stfs_edit *edit, struct stfs_parked **ret)
{
	struct stfs_parked *parked = calloc(1, sizeof(*parked));
	int r;

	if (!parked)
		return -ENOMEM;
	parked->edit = *edit;
	parked->edit.handle = parked->edit.source = NULL;
	r = copy_name(edit->name, &parked->names[0]);
	if (r == 0)
		r = copy_name(edit->new_name, &parked->names[1]);
	if (r == 0)
		r = keep_data(parking, parked);
	if (r < 0) {
		free_parked(NULL, parked);
		return r;
	}
	parked->edit.name = parked->names[0];
	parked->edit.new_name = parked->names[1];
	parked->edit.data = parked->data;
	/* The file stays open for it: RELEASE can come while a write-back waits. */
	parked->edit.handle = edit->handle;
	parked->edit.source = edit->source;
	if (edit->handle)
		stfs_handle_ref(edit->handle);
	if (edit->source)
		stfs_handle_ref(edit->source);
	*ret = parked;
	return 0;
}

/* Returns 0 when it waits now, -EAGAIN when there is nothing to wait for, -ENOMEM. */
static int park(struct stfs_parking *parking, const struct stfs_edit *edit)
{
	struct stfs_parked *parked;
	int r = -EAGAIN;

	pthread_mutex_lock(&parking->lock);
	if (parking->closed)
		r = copy_edit(parking, edit, &parked);
	if (r == 0) {
		*parking->last = parked;
		parking->last = &parked->next;
	}
	pthread_mutex_unlock(&parking->lock);
	return r;
}

void stfs_edit_run(struct stfs_front *front, const struct stfs_edit *edit)
{
	bool again = false;
	int r;

	if (atomic_load(&front->closing)) {
		stfs_reply(edit->req, -ENOTCONN);
		return;
	}
	for (;;) {
		if (edit->run(front, edit) == 0)
			return;
		r = park(&front->parking, edit);
		if (r == 0)
			return;
		/* A commit that ended just now; or else the thing is busy in its own right. */
		if (r == -ENOMEM || again)
			break;
		again = true;
	}
	stfs_reply(edit->req, r == -ENOMEM ? r : -EBUSY);
}

void stfs_parking_close(struct stfs_front *front)
{
	pthread_mutex_lock(&front->parking.lock);
	front->parking.closed = true;
	pthread_mutex_unlock(&front->parking.lock);
}

/* Runs a request that waited, with its data read back. */
static void run_parked(struct stfs_front *front, struct stfs_parked *parked)
{
	_cleanup_free_ char *data = NULL;
	int r = 0;

	if (parked->edit.size && !parked->data) {
		data = malloc(parked->edit.size);
		r = data ? stfs_pread_full(front->parking.spill_fd, data, parked->edit.size, parked->spill_offset) :
			   -ENOMEM;
		parked->edit.data = data;
	}
	if (r == 0)
		r = parked->edit.run(front, &parked->edit);
	if (r < 0)
		stfs_reply(parked->edit.req, r);
	free_parked(front, parked);
}

void stfs_parking_open(struct stfs_front *front)
{
	struct stfs_parking *parking = &front->parking;
	struct stfs_parked *parked;

	pthread_mutex_lock(&parking->lock);
	parking->closed = false;
	parked = parking->first;
	parking->first = NULL;
	parking->last = &parking->first;
	parking->bytes = 0;
	pthread_mutex_unlock(&parking->lock);
	while (parked) {
		struct stfs_parked *next = parked->next;

		run_parked(front, parked);
		parked = next;
	}
	/* All has been read back; nobody adds to it while no commit runs. */
	pthread_mutex_lock(&parking->lock);
	stfs_closep(&parking->spill_fd);
	parking->spill_end = 0;
	pthread_mutex_unlock(&parking->lock);
}
