/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <string.h>

#include "quote.h"

/* One row an option. */
struct option {
	const char *name; /* "flat", or "npy=hide|list|off": the name, and what its value is */
	const char *help; /* NULL: accepted, not shown */

	/* Does it. `value` is NULL without a '='. Returns 0, -EINVAL for a value that does not fit, -ENOMEM. */
	int (*apply)(struct stfs_mount_options *options, const struct option *row, const char *value);
};

static int name_length(const struct option *row)
{
	return (int)strcspn(row->name, "=");
}

/* The place of `value` among the words of `row`, or -EINVAL. */
static int find_word(const struct option *row, const char *value)
{
	const char *word = row->name + name_length(row) + 1;

	for (int i = 0;; i++) {
		size_t len = strcspn(word, "|");

		if (strlen(value) == len && memcmp(word, value, len) == 0)
			return i;
		if (!word[len])
			return -EINVAL;
		word += len + 1;
	}
}

static int apply_flat(struct stfs_mount_options *o, const struct option *row, const char *value)
{
	(void)row, (void)value;
	o->view.layout = STFS_FLAT;
	return 0;
}

static int apply_listing(enum stfs_listing_mode *mode, const struct option *row, const char *value)
{
	static const enum stfs_listing_mode modes[] = { STFS_HIDE, STFS_LIST, STFS_OFF };
	int i = find_word(row, value);

	if (i < 0)
		return i;
	*mode = modes[i];
	return 0;
}

static int apply_npy(struct stfs_mount_options *o, const struct option *row, const char *value)
{
	return apply_listing(&o->view.npy, row, value);
}

static int apply_control(struct stfs_mount_options *o, const struct option *row, const char *value)
{
	return apply_listing(&o->view.control, row, value);
}

static int apply_lax(struct stfs_mount_options *o, const struct option *row, const char *value)
{
	(void)row, (void)value;
	o->model.lax = true;
	return 0;
}

static int apply_partial(struct stfs_mount_options *o, const struct option *row, const char *value)
{
	(void)row, (void)value;
	o->model.partial = true;
	return 0;
}

static int apply_ro(struct stfs_mount_options *o, const struct option *row, const char *value)
{
	(void)row, (void)value;
	o->read_only = true;
	return 0;
}

static int apply_rw(struct stfs_mount_options *o, const struct option *row, const char *value)
{
	(void)row, (void)value;
	o->read_only = false;
	return 0;
}

static int apply_new(struct stfs_mount_options *o, const struct option *row, const char *value)
{
	(void)row, (void)value;
	o->create = true;
	return 0;
}

static int apply_stage(struct stfs_mount_options *o, const struct option *row, const char *value)
{
	char *copy;

	(void)row;
	if (!*value)
		return -EINVAL;
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	free(o->stage);
	o->stage = copy;
	return 0;
}

static int apply_index(struct stfs_mount_options *o, const struct option *row, const char *value)
{
	char *copy;

	(void)row;
	if (!*value || strchr(value, '/'))
		return -EINVAL;
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	free(o->index);
	o->index = copy;
	o->model.index = copy;
	return 0;
}

static int apply_io(struct stfs_mount_options *o, const struct option *row, const char *value)
{
	static const enum stfs_io ways[] = { STFS_IO_MAP, STFS_IO_PREAD };
	int i = find_word(row, value);

	if (i < 0)
		return i;
	o->model.io = ways[i];
	return 0;
}

static int apply_direct_io(struct stfs_mount_options *o, const struct option *row, const char *value)
{
	(void)row, (void)value;
	o->direct_io = true;
	return 0;
}

/* Hands the option on to libfuse. */
static int apply_pass(struct stfs_mount_options *o, const struct option *row, const char *value)
{
	return stfs_buf_printf(&o->fuse, "%s%.*s%s%s", o->fuse.len ? "," : "", name_length(row), row->name,
			       value ? "=" : "", value ? value : "");
}

static int apply_allow_other(struct stfs_mount_options *o, const struct option *row, const char *value)
{
	bool again = o->allow_other;

	o->allow_other = true;
	return again ? 0 : apply_pass(o, row, value);
}

static int apply_allow_root(struct stfs_mount_options *o, const struct option *row, const char *value)
{
	bool again = o->allow_root;

	o->allow_root = true;
	return again ? 0 : apply_pass(o, row, value);
}

static int apply_max_read(struct stfs_mount_options *o, const struct option *row, const char *value)
{
	size_t digits = strspn(value, "0123456789");

	if (digits == 0 || digits > 9 || value[digits])
		return -EINVAL;
	/* libfuse wants to be told twice, and the kernel reads at least a page. */
	o->max_read = (unsigned)strtoul(value, NULL, 10);
	return o->max_read < 4096 ? -EINVAL : apply_pass(o, row, value);
}

/* What is so already, or makes no difference here: mount(8) and /etc/fstab say such words as a matter of course. */
static int apply_nothing(struct stfs_mount_options *o, const struct option *row, const char *value)
{
	(void)o, (void)row, (void)value;
	return 0;
}

static const struct option rows[] = {
	{ "ro", "read-only", apply_ro },
	{ "stage=DIR", "where what is edited waits for a commit (default: .NAME.stage beside the model)", apply_stage },
	{ "new", "a source that is not there is an empty model: the first commit makes it", apply_new },
	{ "flat", "show each tensor name as one directory, unsplit", apply_flat },
	{ "npy=hide|list|off", "data.npy: opens by name only, is listed too, is not there", apply_npy },
	{ "control=hide|list", ".safetensors: opens by name only, is listed too", apply_control },
	{ "lax", "accept NUL padding and trailing bytes", apply_lax },
	{ "partial", "mount what is whole of a damaged set of shards", apply_partial },
	{ "index=NAME", "the index or single file of a directory to take", apply_index },
	{ "io=map|pread", "how the source is read (default: as its filesystem needs)", apply_io },
	{ "direct_io", "keep nothing in the kernel's cache: for reading once", apply_direct_io },
	{ "allow_other", "let other users in, as far as the file modes let them", apply_allow_other },
	{ "allow_root", "let root in", apply_allow_root },
	{ "auto_unmount", "unmount when the daemon dies", apply_pass },
	{ "max_read=BYTES", "the longest read request of the kernel", apply_max_read },
	{ "noexec", "do not run programs from the mount", apply_pass },
	{ "noatime", "do not note times of access", apply_pass },
	{ "nosuid", "no set-user-ID bits (always so)", apply_nothing },
	{ "nodev", "no devices (always so)", apply_nothing },
	{ "default_permissions", "let the kernel check the file modes (always so)", apply_nothing },
	{ "rw", NULL, apply_rw },
	{ "defaults", NULL, apply_nothing },
	{ "suid", NULL, apply_nothing },
	{ "dev", NULL, apply_nothing },
	{ "exec", NULL, apply_nothing },
	{ "async", NULL, apply_nothing },
	{ "atime", NULL, apply_nothing },
	{ "relatime", NULL, apply_nothing },
	{ "strictatime", NULL, apply_nothing },
	{ "nodiratime", NULL, apply_nothing },
	{ "lazytime", NULL, apply_nothing },
	{ "sync", NULL, apply_nothing },
	{ "dirsync", NULL, apply_nothing },
	{ "silent", NULL, apply_nothing },
	{ "_netdev", NULL, apply_nothing },
	{ "nofail", NULL, apply_nothing },
};

void stfs_mount_options_fini(struct stfs_mount_options *options)
{
	free(options->index);
	free(options->stage);
	stfs_buf_fini(&options->fuse);
	*options = (struct stfs_mount_options){ 0 };
}

static const struct option *find_row(const char *word, size_t name_len)
{
	for (size_t i = 0; i < STFS_ARRAY_SIZE(rows); i++) {
		if ((size_t)name_length(&rows[i]) == name_len && memcmp(rows[i].name, word, name_len) == 0)
			return &rows[i];
	}
	return NULL;
}

/* Applies one "name" or "name=value". */
static int apply_word(struct stfs_mount_options *options, const char *word, struct stfs_diag *diag)
{
	size_t name_len = strcspn(word, "=");
	const struct option *row = find_row(word, name_len);
	const char *value = word[name_len] ? word + name_len + 1 : NULL;
	bool wants_value;
	int r;

	if (!row)
		return stfs_fail(diag, -EINVAL, "unknown option -o %s", stfs_quote(stfs_slice_of(word)).text);
	wants_value = strchr(row->name, '=');
	if (wants_value && !value)
		return stfs_fail(diag, -EINVAL, "option -o %s needs a value", row->name);
	if (!wants_value && value)
		return stfs_fail(diag, -EINVAL, "option -o %s takes no value", row->name);
	r = row->apply(options, row, value);
	if (r == -EINVAL)
		return stfs_fail(diag, r, "option -o %s cannot be %s", row->name,
				 stfs_quote(stfs_slice_of(value ? value : "")).text);
	return r;
}

/* Takes the next word off `*text` into `buf`, undoing backslashes. */
static int next_word(const char **text, struct stfs_buf *buf)
{
	const char *p = *text;
	int r = stfs_buf_reserve(buf, strlen(p));

	for (; r == 0 && *p && *p != ','; p++) {
		if (*p == '\\' && p[1])
			p++;
		r = stfs_buf_append_char(buf, *p);
	}
	*text = *p ? p + 1 : p;
	return r;
}

int stfs_mount_options_parse(struct stfs_mount_options *options, const char *text, struct stfs_diag *diag)
{
	while (*text) {
		_cleanup_buf_ struct stfs_buf word = { 0 };
		int r = next_word(&text, &word);

		if (r == 0 && word.len > 0)
			r = apply_word(options, word.data, diag);
		if (r < 0)
			return r;
	}
	if (options->allow_other && options->allow_root)
		return stfs_fail(diag, -EINVAL, "options -o allow_other and -o allow_root exclude each other");
	return 0;
}

bool stfs_mount_option_help(size_t i, const char **ret_name, const char **ret_text)
{
	if (i >= STFS_ARRAY_SIZE(rows) || !rows[i].help)
		return false;
	*ret_name = rows[i].name;
	*ret_text = rows[i].help;
	return true;
}
