/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <errno.h>
#include <stdlib.h>

#include "select.h"
#include "walk.h"

static struct stfs_table_items items_of(const struct stfs_names *names)
{
	return (struct stfs_table_items){ names->changes->tensors, sizeof(*names->changes->tensors) };
}

int stfs_names_init(struct stfs_names *names, struct stfs_view *view)
{
	int r;

	*names = (struct stfs_names){ .view = view };
	r = stfs_changes_collect(view, &names->changes);
	for (uint32_t i = 0; r == 0 && i < names->changes->n_tensors; i++) {
		r = stfs_table_insert(&names->by_name, items_of(names), i);
		if (r == -EEXIST) /* two directories spell it; a commit will refuse that */
			r = 0;
	}
	return r;
}

void stfs_names_fini(struct stfs_names *names)
{
	stfs_table_fini(&names->by_name);
	stfs_changes_free(names->changes);
	*names = (struct stfs_names){ 0 };
}

uint32_t stfs_names_find(const struct stfs_names *names, struct stfs_slice name)
{
	return stfs_table_find(&names->by_name, items_of(names), name);
}

int stfs_names_path(const struct stfs_names *names, uint32_t tensor, struct stfs_buf *buf)
{
	const struct stfs_staged_tensor *t = &names->changes->tensors[tensor];

	if (t->path.len)
		return stfs_buf_append(buf, t->path.p, t->path.len);
	return stfs_name_encode(buf, t->name, stfs_view_layout(names->view));
}

void stfs_operand_fini(struct stfs_operand *operand)
{
	stfs_buf_fini(&operand->name);
	stfs_buf_fini(&operand->path);
	free(operand->tensors);
	*operand = (struct stfs_operand){ 0 };
}

/* Gathers what has the operand's name, or one below it. */
static int gather(const struct stfs_names *names, struct stfs_operand *operand)
{
	const struct stfs_changes *changes = names->changes;
	struct stfs_attr attr;
	int r;

	free(operand->tensors);
	operand->n_tensors = 0;
	operand->tensors = calloc(changes->n_tensors + 1u, sizeof(*operand->tensors));
	if (!operand->tensors)
		return -ENOMEM;
	for (uint32_t i = 0; i < changes->n_tensors; i++) {
		if (stfs_name_is_below(changes->tensors[i].name, stfs_buf_slice(&operand->name)))
			operand->tensors[operand->n_tensors++] = i;
	}
	operand->path.len = 0;
	r = stfs_name_encode(&operand->path, stfs_buf_slice(&operand->name), stfs_view_layout(names->view));
	if (r == 0)
		r = stfs_walk(names->view, stfs_buf_slice(&operand->path), &attr);
	operand->is_dir = r == 0 && attr.type == STFS_NODE_DIR;
	if (r == 0 || r == -ENOENT || r == -ENOTDIR || r == -ENAMETOOLONG)
		r = operand->is_dir || operand->n_tensors > 0 ? 0 : -ENOENT;
	return r;
}

/* The operand without blanks of no meaning: the '/' at the end that a shell completes. */
static struct stfs_slice trim(const char *typed)
{
	struct stfs_slice name = stfs_slice_of(typed);

	while (name.len > 1 && name.p[name.len - 1] == '/')
		name.len--;
	return name;
}

static int decode_path(struct stfs_slice path, struct stfs_buf *buf)
{
	if (stfs_slice_starts(path, "./"))
		path = (struct stfs_slice){ path.p + 2, path.len - 2 };
	return stfs_name_decode(buf, path, STFS_NESTED);
}

int stfs_names_resolve(const struct stfs_names *names, const char *typed, struct stfs_operand *ret)
{
	_cleanup_(stfs_operand_fini) struct stfs_operand operand = { 0 };
	struct stfs_slice name = trim(typed);
	int r = stfs_buf_append(&operand.name, name.p, name.len);

	if (r == 0)
		r = name.len ? gather(names, &operand) : -ENOENT;
	if (r == -ENOENT && name.len) {
		operand.name.len = 0;
		r = decode_path(name, &operand.name);
		if (r < 0)
			return r == -ENOMEM ? r : -ENOENT;
		r = gather(names, &operand);
	}
	if (r < 0)
		return r;
	*ret = operand;
	operand = (struct stfs_operand){ 0 };
	return 0;
}

int stfs_names_spell(const char *typed, struct stfs_buf *buf)
{
	struct stfs_slice name = trim(typed);
	int r;

	if (name.len == 0)
		return -EINVAL;
	if (!memchr(name.p, '/', name.len))
		return stfs_buf_append(buf, name.p, name.len);
	r = decode_path(name, buf);
	return r == 0 || r == -ENOMEM ? r : -EINVAL;
}
