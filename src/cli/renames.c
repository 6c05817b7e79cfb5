/* SPDX-License-Identifier: Apache-2.0 */
#include "renames.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "array.h"
#include "quote.h"
#include "utf8.h"
#include "walk.h"

int stfs_renames_init(struct stfs_renames *renames, const struct stfs_names *names)
{
	*renames = (struct stfs_renames){ .names = names };
	renames->moves = calloc(names->changes->n_tensors + 1u, sizeof(*renames->moves));
	renames->wanted = calloc(names->changes->n_tensors + 1u, sizeof(*renames->wanted));
	return renames->moves && renames->wanted ? 0 : -ENOMEM;
}

void stfs_renames_fini(struct stfs_renames *renames)
{
	free(renames->list);
	free(renames->moves);
	free(renames->wanted);
	stfs_arena_fini(&renames->strings);
	*renames = (struct stfs_renames){ 0 };
}

static struct stfs_slice old_name(const struct stfs_renames *renames, const struct stfs_rename *rename)
{
	return renames->names->changes->tensors[rename->tensor].name;
}

int stfs_renames_add(struct stfs_renames *renames, uint32_t tensor, struct stfs_slice to)
{
	struct stfs_rename rename = { .tensor = tensor };
	int r;

	if (stfs_slice_equal(renames->names->changes->tensors[tensor].name, to))
		return 0;
	r = stfs_array_grow((void **)&renames->list, renames->n, &renames->cap, UINT32_MAX, sizeof(*renames->list));
	if (r == 0)
		r = stfs_arena_copy(&renames->strings, to, &rename.to);
	if (r == 0)
		renames->list[renames->n++] = rename;
	return r;
}

/* Two tensors of the list must not get one name, nor one tensor two. */
static int check_among(struct stfs_renames *renames, struct stfs_report *report)
{
	_cleanup_(stfs_table_fini) struct stfs_table by_name = { 0 };
	struct stfs_table_items items = { renames->list, sizeof(*renames->list) };

	for (uint32_t i = 0; i < renames->n; i++) {
		const struct stfs_rename *rename = &renames->list[i];
		struct stfs_slice old = old_name(renames, rename);
		int r = stfs_table_insert(&by_name, items, i);

		if (r == -ENOMEM)
			return r;
		if (r == -EEXIST)
			stfs_violation(
				report, "%s and %s would both be called %s",
				stfs_quote(
					old_name(renames, &renames->list[stfs_table_find(&by_name, items, rename->to)]))
					.text,
				stfs_quote(old).text, stfs_quote(rename->to).text);
		if (renames->moves[rename->tensor])
			stfs_violation(report, "%s would get two names", stfs_quote(old).text);
		renames->moves[rename->tensor] = true;
	}
	return 0;
}

static bool is_prefix(struct stfs_slice a, struct stfs_slice b)
{
	return a.len <= b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

static void check_name(struct stfs_renames *renames, const struct stfs_rename *rename, struct stfs_report *report)
{
	struct stfs_slice old = old_name(renames, rename);
	uint32_t there = stfs_names_find(renames->names, rename->to);

	if (stfs_utf8_invalid(rename->to) != rename->to.len)
		stfs_violation(report, "%s: the new name %s is not UTF-8", stfs_quote(old).text,
			       stfs_quote(rename->to).text);
	else if (stfs_slice_is(rename->to, "__metadata__"))
		stfs_violation(report, "%s: no tensor can be called __metadata__", stfs_quote(old).text);
	else if (there != STFS_TABLE_NONE && !renames->moves[there])
		stfs_violation(report, "%s: there is a tensor %s already", stfs_quote(old).text,
			       stfs_quote(rename->to).text);
	if (there != STFS_TABLE_NONE)
		renames->wanted[there] = true;
	/* A directory cannot move into itself, nor take the place of one that it is in. */
	if (is_prefix(old, rename->to) || is_prefix(rename->to, old))
		renames->wanted[rename->tensor] = true;
}

int stfs_renames_check(struct stfs_renames *renames, struct stfs_report *report)
{
	uint64_t before = report->violations;
	int r = check_among(renames, report);

	for (uint32_t i = 0; r == 0 && i < renames->n; i++)
		check_name(renames, &renames->list[i], report);
	return r == 0 && report->violations > before ? -EINVAL : r;
}

int stfs_renames_text(const struct stfs_renames *renames, struct stfs_buf *buf)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < renames->n; i++) {
		r = stfs_append_printable(buf, old_name(renames, &renames->list[i]));
		if (r == 0)
			r = stfs_buf_append_str(buf, " -> ");
		if (r == 0)
			r = stfs_append_printable(buf, renames->list[i].to);
		if (r == 0)
			r = stfs_buf_append_char(buf, '\n');
	}
	return r;
}

/* Moves what is in one directory into another: all of it, or the directories only. */
static int move_entries(struct stfs_view *view, struct stfs_slice from, struct stfs_slice to, bool dirs_only)
{
	_cleanup_(stfs_listing_freep) struct stfs_listing *listing = NULL;
	struct stfs_attr old, new;
	int r = stfs_walk(view, from, &old);

	if (r == 0)
		r = stfs_walk_make_dirs(view, to, &new);
	if (r == 0)
		r = stfs_view_list(view, old.ino, &listing);
	for (size_t i = 0; r == 0 && i < listing->n; i++) {
		const struct stfs_dirent *entry = &listing->entries[i];
		bool wanted = entry->type == STFS_NODE_DIR || !dirs_only;

		if (wanted && !stfs_slice_is(entry->name, ".") && !stfs_slice_is(entry->name, ".."))
			r = stfs_view_rename(view, old.ino, entry->name, new.ino, entry->name, true);
	}
	return r;
}

/*
 * Moves a tensor's directory, so that it stays the tensor it is; what lives below it stays where it was, and so does what lives
 * below the new place. `spare` is a path that is free.
 */
static int move_tensor(struct stfs_view *view, struct stfs_slice from, struct stfs_slice to, struct stfs_slice spare)
{
	struct stfs_attr old, there;
	bool shared, exists;
	int r = stfs_walk(view, from, &old);

	if (r == 0)
		r = stfs_walk_has_dirs(view, old.ino, &shared);
	if (r < 0)
		return r;
	exists = stfs_walk(view, to, &there) == 0;
	if (exists)
		r = stfs_walk_move(view, to, spare);
	if (r == 0)
		r = stfs_walk_move(view, from, to);
	if (r == 0 && shared)
		r = move_entries(view, to, from, true);
	if (r == 0 && exists)
		r = move_entries(view, spare, to, false);
	if (r == 0 && exists)
		r = stfs_walk_prune(view, spare);
	return r < 0 ? r : stfs_walk_prune(view, stfs_walk_above(from));
}

static bool begins_a_name(const struct stfs_renames *renames, const struct stfs_buf *beginning)
{
	const struct stfs_changes *changes = renames->names->changes;

	for (uint32_t i = 0; i < changes->n_tensors; i++) {
		if (stfs_slice_starts(changes->tensors[i].name, beginning->data))
			return true;
	}
	for (uint32_t i = 0; i < renames->n; i++) {
		if (stfs_slice_starts(renames->list[i].to, beginning->data))
			return true;
	}
	return false;
}

/* The beginning of names that nobody has nor wants, for tensors on their way. */
static int choose_lobby(const struct stfs_renames *renames, struct stfs_buf *buf)
{
	struct stfs_attr attr;
	int r = 0;

	for (unsigned i = 0; r == 0; i++) {
		buf->len = 0;
		r = stfs_buf_printf(buf, "safetensorsfs-mv-%u", i);
		if (r == 0 && !begins_a_name(renames, buf))
			r = stfs_walk(renames->names->view, stfs_buf_slice(buf), &attr);
	}
	return r == -ENOENT ? 0 : r;
}

/* A place in the lobby. */
static int append_waiting(const struct stfs_renames *renames, const char *lobby, const char *place,
			  struct stfs_buf *buf)
{
	char separator = stfs_view_layout(renames->names->view) == STFS_FLAT ? '.' : '/';

	return stfs_buf_printf(buf, "%s%c%s", lobby, separator, place);
}

/* Where a tensor waits until its new name is free. */
static int append_number(const struct stfs_renames *renames, const char *lobby, uint32_t i, struct stfs_buf *buf)
{
	char place[16];

	snprintf(place, sizeof(place), "%" PRIu32, i);
	return append_waiting(renames, lobby, place, buf);
}

static int fail(const struct stfs_renames *renames, const struct stfs_rename *rename, int error, struct stfs_diag *diag)
{
	return stfs_fail(diag, error, "%s cannot be renamed to %s: %s", stfs_quote(old_name(renames, rename)).text,
			 stfs_quote(rename->to).text, strerror(-error));
}

/* First half: whoever has a name that is wanted gives it up. */
static int step_aside(const struct stfs_renames *renames, uint32_t i, const struct stfs_buf *lobby)
{
	_cleanup_buf_ struct stfs_buf from = { 0 }, to = { 0 };
	int r = stfs_names_path(renames->names, renames->list[i].tensor, &from);

	if (r == 0)
		r = append_number(renames, lobby->data, i, &to);
	return r < 0 ? r :
		       move_tensor(renames->names->view, stfs_buf_slice(&from), stfs_buf_slice(&to),
				   (struct stfs_slice){ 0 });
}

/* Second half: everybody takes the new name. */
static int take_name(const struct stfs_renames *renames, uint32_t i, const struct stfs_buf *lobby)
{
	const struct stfs_rename *rename = &renames->list[i];
	_cleanup_buf_ struct stfs_buf from = { 0 }, to = { 0 }, spare = { 0 };
	int r = renames->wanted[rename->tensor] ? append_number(renames, lobby->data, i, &from) :
						  stfs_names_path(renames->names, rename->tensor, &from);

	if (r == 0)
		r = stfs_name_encode(&to, rename->to, stfs_view_layout(renames->names->view));
	if (r == 0)
		r = append_waiting(renames, lobby->data, "spare", &spare);
	return r < 0 ? r :
		       move_tensor(renames->names->view, stfs_buf_slice(&from), stfs_buf_slice(&to),
				   stfs_buf_slice(&spare));
}

int stfs_renames_apply(const struct stfs_renames *renames, struct stfs_diag *diag)
{
	_cleanup_buf_ struct stfs_buf lobby = { 0 };
	int r = choose_lobby(renames, &lobby);

	for (uint32_t i = 0; r == 0 && i < renames->n; i++) {
		if (renames->wanted[renames->list[i].tensor])
			r = step_aside(renames, i, &lobby);
		if (r < 0)
			return fail(renames, &renames->list[i], r, diag);
	}
	for (uint32_t i = 0; r == 0 && i < renames->n; i++) {
		r = take_name(renames, i, &lobby);
		if (r < 0)
			return fail(renames, &renames->list[i], r, diag);
	}
	return r;
}
