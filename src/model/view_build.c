/* SPDX-License-Identifier: Apache-2.0 */
#include "view_private.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "quote.h"

int stfs_view_add_tensor(const struct stfs_view *view, struct stfs_tree *tree, uint32_t entry)
{
	struct stfs_slice name = stfs_model_tensor(view->model, entry)->name;
	struct stfs_name_walk walk;
	uint32_t node = STFS_NODE_ROOT;

	stfs_name_walk_init(&walk, name, view->options.layout);
	while (stfs_name_walk_next(&walk)) {
		struct stfs_slice component = { walk.component, walk.len };
		uint32_t child = stfs_tree_child(tree, node, component);

		if (child == STFS_NODE_NONE) {
			int r = stfs_tree_add(tree, node, component, STFS_NODE_MODULE, &child);

			if (r < 0)
				return r;
		} else if (tree->nodes[child].kind != STFS_NODE_MODULE) {
			return -EEXIST; /* a scratch file is in the way */
		}
		node = child;
	}
	tree->nodes[node].entry = entry;
	return 0;
}

/* Adds the keys that can be file names; *ret_left_out counts the others, *ret_first is one of them. */
static int add_keys(struct stfs_view *view, uint32_t *ret_left_out, struct stfs_slice *ret_first)
{
	_cleanup_buf_ struct stfs_buf name = { 0 };
	uint32_t node;
	int r;

	for (uint32_t i = 0; i < view->model->n_metadata; i++) {
		struct stfs_slice key = view->model->metadata[i].key;

		name.len = 0;
		r = stfs_key_encode(&name, key);
		if (r == -ENAMETOOLONG) {
			if ((*ret_left_out)++ == 0)
				*ret_first = key;
			continue;
		}
		if (r >= 0)
			r = stfs_tree_add(&view->tree, STFS_NODE_METADATA, stfs_buf_slice(&name), STFS_NODE_KEY, &node);
		if (r < 0)
			return r;
		view->tree.nodes[node].entry = i;
	}
	return 0;
}

bool stfs_view_key_is_shown(struct stfs_slice key)
{
	_cleanup_buf_ struct stfs_buf name = { 0 };

	return stfs_key_encode(&name, key) != -ENAMETOOLONG;
}

int stfs_view_build_tree(struct stfs_view *view)
{
	struct stfs_slice first = { 0 };
	uint32_t left_out = 0;
	int r;

	r = stfs_tree_init(&view->tree);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < view->model->n_entries; i++) {
		r = stfs_view_add_tensor(view, &view->tree, i);
		if (r < 0)
			return r;
	}
	r = add_keys(view, &left_out, &first);
	if (r < 0)
		return r;
	if (left_out)
		stfs_log(view->log, STFS_LOG_WARNING,
			 "%s: __metadata__ leaves out %u whose key is too long for a file name, such as %s",
			 view->model->name, left_out, stfs_quote(first).text);
	return stfs_tree_trim(&view->tree);
}

static bool is_newer(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* Nobody learns about the whole who may not read every part. */
static void judge_whole(struct stfs_view *view)
{
	struct stfs_attr *whole = &view->whole;
	struct stat st;

	*whole = (struct stfs_attr){
		.type = STFS_NODE_FILE,
		.perm = 0666,
		.nlink = 1,
		.blksize = 4096,
		.uid = geteuid(),
		.gid = getegid(),
	};
	/* A model that is not there yet is as open as its folder. */
	if (view->model->n_files == 0 && fstat(view->model->dir_fd, &st) == 0) {
		whole->perm &= st.st_mode;
		whole->mtime = st.st_mtim;
	}
	for (uint32_t i = 0; i < view->model->n_files; i++) {
		const struct stfs_identity *file = stfs_snapshot_identity(view->model->files[i]);

		whole->perm &= file->shown;
		if (i == 0) {
			whole->uid = file->uid;
			whole->gid = file->gid;
		}
		if (i == 0 || is_newer(file->mtime, whole->mtime))
			whole->mtime = file->mtime;
	}
}

int stfs_view_keep_mtimes(const struct stfs_model *model, const struct stfs_model *old,
			  const struct timespec *old_mtimes, struct timespec **ret)
{
	struct timespec *mtimes = calloc(model->n_files + 1u, sizeof(*mtimes));

	if (!mtimes)
		return -ENOMEM;
	for (uint32_t i = 0; i < model->n_files; i++) {
		mtimes[i] = stfs_snapshot_identity(model->files[i])->mtime;
		for (uint32_t k = 0; old && k < old->n_files; k++) {
			if (strcmp(old->file_names[k], model->file_names[i]) == 0)
				mtimes[i] = old_mtimes[k];
		}
	}
	*ret = mtimes;
	return 0;
}

int stfs_view_new(struct stfs_model *model, const struct stfs_view_options *options, struct stfs_log *log,
		  struct stfs_diag *diag, struct stfs_view **ret_view)
{
	_cleanup_(stfs_model_freep) struct stfs_model *owned = model;
	_cleanup_(stfs_view_freep) struct stfs_view *view = calloc(1, sizeof(*view));
	int r;

	if (!view)
		return -ENOMEM;
	pthread_mutex_init(&view->lock, NULL); /* cannot fail for plain ones */
	pthread_rwlock_init(&view->tree_lock, NULL);
	view->model = stfs_steal(owned);
	view->options = *options;
	view->log = log;
	/* Anywhere: a number that the journal brings back must not be given again when its file is removed while open. */
	view->next_id = stfs_hash_key_random().k1;
	judge_whole(view);
	r = stfs_view_keep_mtimes(view->model, NULL, NULL, &view->file_mtimes);
	if (r == 0)
		r = stfs_view_build_tree(view);
	if (r == -EFBIG)
		return stfs_fail(diag, r, "%s: its tree would have more than %u directories%s", model->name,
				 STFS_NODES_MAX, options->layout == STFS_FLAT ? "" : "; -o flat does not split names");
	if (r < 0)
		return r;
	*ret_view = stfs_steal(view);
	return 0;
}

void stfs_view_free_contents(struct stfs_view *view, bool drop)
{
	for (uint32_t i = 0; i < view->n_contents; i++) {
		if (drop)
			stfs_content_drop(view->contents[i].content);
		stfs_content_unref(view->contents[i].content);
	}
	view->n_contents = 0;
}

void stfs_view_free(struct stfs_view *view)
{
	if (!view)
		return;
	stfs_aliases_fini(&view->aliases);
	stfs_buf_fini(&view->result);
	stfs_view_free_contents(view, false);
	free(view->contents);
	free(view->dir_attrs);
	free(view->file_mtimes);
	stfs_tree_fini(&view->tree);
	pthread_mutex_destroy(&view->lock);
	pthread_rwlock_destroy(&view->tree_lock);
	stfs_stage_free(view->stage);
	stfs_model_free(view->model);
	free(view);
}

const struct stfs_model *stfs_view_model(const struct stfs_view *view)
{
	return view->model;
}

enum stfs_layout stfs_view_layout(const struct stfs_view *view)
{
	return view->options.layout;
}

void stfs_view_totals(struct stfs_view *view, struct stfs_view_totals *ret)
{
	_cleanup_view_lock_ struct stfs_view *locked = stfs_view_read_lock(view);

	/* Directories and keys are nodes; a tensor's directory holds three files. */
	*ret = (struct stfs_view_totals){ view->model->data_size, view->tree.n + UINT64_C(3) * view->model->n_entries };
}
