/* SPDX-License-Identifier: Apache-2.0 */
#include "locate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array.h"
#include "buf.h"
#include "io.h"
#include "quote.h"
#include "shard_name.h"

/* More weight files than this in one folder is no model. */
#define FILES_MAX 100000u

/* File names found in a folder, sorted. */
struct names {
	char **names;
	uint32_t n, cap;
};

/* What a folder holds. */
struct folder {
	struct names indexes, weights;
};

static void names_fini(struct names *names)
{
	for (uint32_t i = 0; i < names->n; i++)
		free(names->names[i]);
	free(names->names);
	*names = (struct names){ 0 };
}

static void folder_fini(struct folder *folder)
{
	names_fini(&folder->indexes);
	names_fini(&folder->weights);
}

static int names_add(struct names *names, const char *name)
{
	int r = stfs_array_grow((void **)&names->names, names->n, &names->cap, FILES_MAX, sizeof(*names->names));

	if (r < 0)
		return r;
	names->names[names->n] = strdup(name);
	if (!names->names[names->n])
		return -ENOMEM;
	names->n++;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return stfs_shard_name_compare(*(char *const *)a, *(char *const *)b);
}

void stfs_location_fini(struct stfs_location *location)
{
	struct names files = { location->files, location->n_files, 0 };
	struct names others = { location->others, location->n_others, 0 };

	names_fini(&files);
	names_fini(&others);
	free(location->folder);
	free(location->label);
	free(location->index);
	if (location->dir_fd >= 0)
		close(location->dir_fd);
	*location = (struct stfs_location){ .dir_fd = -1 };
}

/* Appends the names to a message, a few of them. */
static const char *join_names(const struct names *names, struct stfs_buf *buf)
{
	for (uint32_t i = 0; i < names->n; i++) {
		if (i == 8) {
			if (stfs_buf_printf(buf, " and %u more", names->n - i) < 0)
				break;
			break;
		}
		if (stfs_buf_printf(buf, "%s%s", i ? ", " : "", stfs_quote(stfs_slice_of(names->names[i])).text) < 0)
			break;
	}
	return buf->data ? buf->data : "";
}

/* Reads the weight files and indexes of the folder `dir_fd`. */
static int scan_folder(int dir_fd, struct folder *ret)
{
	DIR *dir = stfs_opendirat(dir_fd, ".", 0);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		struct stfs_slice name = stfs_slice_of(entry->d_name);
		struct stfs_shard_name parsed;

		/* A leading dot is somebody's temporary or metadata file ("._model.safetensors"). */
		if (entry->d_name[0] == '.')
			continue;
		if (stfs_index_name_parse(name, &parsed))
			r = names_add(&ret->indexes, entry->d_name);
		else if (stfs_shard_name_parse(name, &parsed))
			r = names_add(&ret->weights, entry->d_name);
	}
	if (r == 0 && errno != 0)
		r = -errno;
	closedir(dir);
	if (ret->indexes.n)
		qsort(ret->indexes.names, ret->indexes.n, sizeof(char *), compare_names);
	if (ret->weights.n)
		qsort(ret->weights.names, ret->weights.n, sizeof(char *), compare_names);
	return r;
}

/* Takes the index at place `i`; the weight files of the folder become the others. */
static int take_index(struct folder *folder, uint32_t i, struct stfs_location *location)
{
	location->index = strdup(folder->indexes.names[i]);
	if (!location->index)
		return -ENOMEM;
	location->others = stfs_steal(folder->weights.names);
	location->n_others = folder->weights.n;
	folder->weights = (struct names){ 0 };
	return 0;
}

/* Takes one weight file, and warns of those left out. */
static int take_file(struct folder *folder, uint32_t i, struct stfs_report *report, struct stfs_location *location)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };
	struct names files = { 0 }, others = { 0 };
	int r = names_add(&files, folder->weights.names[i]);

	for (uint32_t k = 0; r == 0 && k < folder->weights.n; k++) {
		if (k != i)
			r = names_add(&others, folder->weights.names[k]);
	}
	if (r == 0 && others.n)
		stfs_warn(report, "%s is taken, and %s left out", stfs_quote(stfs_slice_of(files.names[0])).text,
			  join_names(&others, &buf));
	location->files = files.names;
	location->n_files = files.n;
	location->others = others.names;
	location->n_others = others.n;
	return r;
}

/* Takes all weight files of the folder. */
static void take_all(struct folder *folder, struct stfs_location *location)
{
	location->files = stfs_steal(folder->weights.names);
	location->n_files = folder->weights.n;
	folder->weights = (struct names){ 0 };
}

static int refuse(struct stfs_report *report, const char *what, const struct names *names)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };

	stfs_violation(report, "%s: %s", what, join_names(names, &buf));
	return -EBADMSG;
}

/* Several indexes: one stem, and a plain one among its variants, or it is nobody's to guess. */
static int choose_index(struct folder *folder, struct stfs_report *report, struct stfs_location *location)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };
	struct stfs_shard_name first, name;
	uint32_t plain = UINT32_MAX;
	struct names others = { 0 };

	stfs_index_name_parse(stfs_slice_of(folder->indexes.names[0]), &first);
	for (uint32_t i = 0; i < folder->indexes.n; i++) {
		stfs_index_name_parse(stfs_slice_of(folder->indexes.names[i]), &name);
		if (!stfs_slice_equal(name.stem, first.stem))
			return refuse(report, "several models in one directory, pick one with -o index=NAME",
				      &folder->indexes);
		if (name.variant.len == 0)
			plain = i;
	}
	if (plain == UINT32_MAX && folder->indexes.n > 1)
		return refuse(report, "several variants and no plain one, pick one with -o index=NAME",
			      &folder->indexes);
	if (folder->indexes.n == 1)
		return take_index(folder, 0, location);
	for (uint32_t i = 0; i < folder->indexes.n; i++) {
		if (i != plain && names_add(&others, folder->indexes.names[i]) < 0)
			break;
	}
	stfs_warn(report, "the plain index %s is taken, and %s left out",
		  stfs_quote(stfs_slice_of(folder->indexes.names[plain])).text, join_names(&others, &buf));
	names_fini(&others);
	return take_index(folder, plain, location);
}

/* Demands that the numbers of a set are all there, from 0 or from 1 on. */
static int check_sequence(struct folder *folder, bool partial, struct stfs_report *report,
			  struct stfs_location *location)
{
	struct stfs_shard_name first, name;
	uint32_t n = folder->weights.n;
	uint64_t base, expected;

	stfs_shard_name_parse(stfs_slice_of(folder->weights.names[0]), &first);
	base = first.number == 0 ? 0 : 1;
	expected = base;
	for (uint32_t i = 0; i <= n; i++, expected++) {
		if (i < n)
			stfs_shard_name_parse(stfs_slice_of(folder->weights.names[i]), &name);
		if (i < n ? name.number == expected : first.total < n || expected == base + first.total)
			continue;
		stfs_report_add(report, partial ? STFS_WARNING : STFS_VIOLATION,
				"shard number %" PRIu64 " of %" PRIu64
				" is missing beside %s (an incomplete download?)%s",
				expected, first.total, stfs_quote(stfs_slice_of(folder->weights.names[0])).text,
				partial ? "" : "; -o partial mounts what is there");
		if (!partial)
			return -EBADMSG;
		location->incomplete = true;
		break;
	}
	if (n > 1)
		stfs_warn(report, "no index: %u shards are joined by their names", n);
	take_all(folder, location);
	return 0;
}

/* Without an index: one file, a plain one beside its variants, or one complete numbered set. */
static int choose_files(struct folder *folder, bool partial, struct stfs_report *report, struct stfs_location *location)
{
	bool one_set = true, one_stem = true;
	uint32_t plain = UINT32_MAX;
	struct stfs_shard_name first, name;

	stfs_shard_name_parse(stfs_slice_of(folder->weights.names[0]), &first);
	for (uint32_t i = 0; i < folder->weights.n; i++) {
		stfs_shard_name_parse(stfs_slice_of(folder->weights.names[i]), &name);
		one_set &= stfs_shard_name_same_set(&first, &name);
		one_stem &= !name.numbered && stfs_slice_equal(first.stem, name.stem);
		if (name.variant.len == 0)
			plain = i;
	}
	if (one_set && (first.total > 1 || folder->weights.n > 1))
		return check_sequence(folder, partial, report, location);
	if (folder->weights.n == 1)
		return take_file(folder, 0, report, location);
	if (one_stem && plain != UINT32_MAX)
		return take_file(folder, plain, report, location);
	/* Opened all the same, to tell slices of one tensor from models that merely share a folder. */
	take_all(folder, location);
	location->unrelated = true;
	return 0;
}

/* Lists the subfolders that hold weights: a pipeline has one model in each. */
static int refuse_empty(int dir_fd, struct stfs_report *report)
{
	_cleanup_(names_fini) struct names parts = { 0 };
	DIR *dir = stfs_opendirat(dir_fd, ".", 0);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		_cleanup_(folder_fini) struct folder sub = { 0 };
		_cleanup_close_ int sub_fd = -1;

		if (entry->d_name[0] == '.')
			continue;
		sub_fd = openat(dir_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
		if (sub_fd >= 0 && scan_folder(sub_fd, &sub) == 0 && (sub.indexes.n || sub.weights.n) &&
		    names_add(&parts, entry->d_name) < 0)
			break;
	}
	if (dir)
		closedir(dir);
	if (parts.n) {
		qsort(parts.names, parts.n, sizeof(char *), compare_names);
		return refuse(report, "no weights here, but in subfolders, each a model of its own", &parts);
	}
	stfs_violation(report, "no .safetensors file and no index in this directory");
	return -EBADMSG;
}

/* Takes what -o index=NAME asks for. */
static int take_picked(struct folder *folder, const char *pick, struct stfs_report *report,
		       struct stfs_location *location)
{
	for (uint32_t i = 0; i < folder->indexes.n; i++) {
		if (strcmp(folder->indexes.names[i], pick) == 0)
			return take_index(folder, i, location);
	}
	for (uint32_t i = 0; i < folder->weights.n; i++) {
		if (strcmp(folder->weights.names[i], pick) == 0)
			return take_file(folder, i, report, location);
	}
	stfs_violation(report, "index=%s names no index and no .safetensors file of this directory",
		       stfs_quote(stfs_slice_of(pick)).text);
	return -EBADMSG;
}

/* Reads the revision that refs/main of a Hugging Face cache names. Returns false when there is none that is plain. */
static bool read_main_ref(int dir_fd, char ret[128])
{
	_cleanup_close_ int fd = openat(dir_fd, "refs/main", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, 127);

	if (n <= 0)
		return false;
	ret[n] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	return ret[0] && ret[0] != '.' && !strchr(ret, '/');
}

/* The only entry of a folder, or none. */
static bool read_only_entry(int fd, char ret[128])
{
	DIR *dir = stfs_opendirat(fd, ".", 0);
	struct dirent *entry;
	unsigned n = 0;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < 128 && n++ == 0)
			memcpy(ret, entry->d_name, strlen(entry->d_name) + 1);
	}
	if (dir)
		closedir(dir);
	return n == 1;
}

/*
 * The root of a Hugging Face cache entry has snapshots/REVISION: goes into the one that refs/main names, or the only one.
 * Returns 0, -ENOENT when this is no such folder, -EBADMSG when nothing says which to take.
 */
static int enter_snapshot(struct stfs_location *location, struct stfs_report *report)
{
	_cleanup_close_ int snapshots = openat(location->dir_fd, "snapshots", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char revision[128], *folder;
	int fd;

	if (snapshots < 0)
		return -ENOENT;
	if (!read_main_ref(location->dir_fd, revision) && !read_only_entry(snapshots, revision)) {
		stfs_violation(report,
			       "several snapshots and no refs/main that picks one: mount a folder below snapshots");
		return -EBADMSG;
	}
	fd = openat(snapshots, revision, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		stfs_violation(report, "snapshot %s cannot be opened: %s", stfs_quote(stfs_slice_of(revision)).text,
			       strerror(errno));
		return -EBADMSG;
	}
	close(location->dir_fd);
	location->dir_fd = fd;
	if (asprintf(&folder, "%s/snapshots/%s", location->folder, revision) < 0)
		return -ENOMEM;
	free(location->folder);
	location->folder = folder;
	location->in_snapshot = true;
	return 0;
}

static int locate_in_folder(const char *pick, bool partial, struct stfs_report *report, struct stfs_location *location)
{
	_cleanup_(folder_fini) struct folder folder = { 0 };
	int r = scan_folder(location->dir_fd, &folder);

	if (r < 0) {
		stfs_violation(report, "cannot be read: %s", strerror(-r));
		return r;
	}
	if (pick)
		return take_picked(&folder, pick, report, location);
	if (folder.indexes.n)
		return choose_index(&folder, report, location);
	if (folder.weights.n)
		return choose_files(&folder, partial, report, location);
	r = location->in_snapshot ? -ENOENT : enter_snapshot(location, report);
	if (r == 0)
		return locate_in_folder(pick, partial, report, location);
	return r == -ENOENT ? refuse_empty(location->dir_fd, report) : r;
}

/*
 * The name a mount of `path` gets by default: its last part, without .safetensors and what follows it. A directory that nobody
 * can tell the path of, as one is that was removed under us, has no such part.
 */
static char *make_label(const char *path, bool is_dir)
{
	_cleanup_free_ char *real = is_dir ? realpath(path, NULL) : NULL;
	const char *full = is_dir ? real : path;
	const char *slash = full ? strrchr(full, '/') : NULL;
	const char *base = slash ? slash + 1 : full;
	const char *end;

	if (!base || !*base)
		return strdup("model");
	end = is_dir ? NULL : strstr(base, ".safetensors");
	return end && end != base ? strndup(base, (size_t)(end - base)) : strdup(base);
}

/* Opens the folder of a file. Who may pass through a folder may read what he knows the name of, without listing it. */
static int open_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == EACCES)
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A file: its folder, and the file or index in it. */
static int locate_file(const char *source, struct stfs_report *report, struct stfs_location *location)
{
	const char *slash = strrchr(source, '/');
	_cleanup_free_ char *dir = slash ? strndup(source, (size_t)(slash - source) + 1) : strdup(".");
	const char *base = slash ? slash + 1 : source;
	struct stfs_shard_name parsed;
	struct names files = { 0 };
	int r;

	if (!dir)
		return -ENOMEM;
	location->dir_fd = r = open_folder(dir);
	if (r < 0) {
		stfs_violation(report, "its directory cannot be opened: %s", strerror(-r));
		return r;
	}
	if (stfs_index_name_parse(stfs_slice_of(base), &parsed)) {
		location->folder = slash ? stfs_steal(dir) : strdup("");
		return location->folder ? locate_in_folder(base, false, report, location) : -ENOMEM;
	}
	r = names_add(&files, base);
	location->files = files.names;
	location->n_files = files.n;
	return r;
}

int stfs_locate(const char *source, const char *pick, bool partial, struct stfs_report *report,
		struct stfs_location *ret)
{
	_cleanup_(stfs_location_fini) struct stfs_location location = { .dir_fd = -1 };
	struct stat st;
	bool is_dir;
	int r;

	if (stat(source, &st) < 0) {
		r = -errno;
		stfs_violation(report, "cannot be opened: %s", strerror(-r));
		return r;
	}
	is_dir = S_ISDIR(st.st_mode);
	location.label = make_label(source, is_dir);
	if (!location.label)
		return -ENOMEM;
	if (is_dir) {
		location.dir_fd = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (location.dir_fd < 0) {
			r = -errno;
			stfs_violation(report, "cannot be opened: %s", strerror(-r));
			return r;
		}
		location.folder = strdup(source);
		r = location.folder ? locate_in_folder(pick, partial, report, &location) : -ENOMEM;
	} else {
		r = locate_file(source, report, &location);
	}
	if (r < 0)
		return r;
	*ret = location;
	location = (struct stfs_location){ .dir_fd = -1 };
	return 0;
}
