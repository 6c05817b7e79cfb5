/* SPDX-License-Identifier: Apache-2.0 */
/* put: a tensor from a file of raw bytes, or from a NumPy file. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "attr_text.h"
#include "checked.h"
#include "editing.h"
#include "header_write.h"
#include "io.h"
#include "names.h"
#include "npy.h"
#include "quote.h"
#include "retry.h"
#include "utf8.h"
#include "walk.h"

#define QUOTED(s) (stfs_quote(stfs_slice_of(s)).text)
#define CHUNK (1u << 20)   /* bytes read at once */
#define NPY_HEAD_MAX 65600 /* magic, length and the longest header that is read */

enum { OPT_DTYPE, OPT_SHAPE };

static const struct stfs_option_help put_options[] = {
	[OPT_DTYPE] = { "--dtype DTYPE",
			"such as BF16 (default: of the tensor that is replaced, or of the NumPy file)" },
	[OPT_SHAPE] = { "--shape SHAPE", "such as 4096,4096, or [] for a scalar (default: as it was)" },
	STFS_EDIT_ROWS,
};

struct put {
	struct stfs_editing editing;
	const char *dtype_text, *shape_text; /* as given, or NULL */
	const char *name, *file;             /* as given */
	struct stfs_names names;
	uint32_t tensor;      /* that is replaced, or STFS_TABLE_NONE */
	struct stfs_buf path; /* of the tensor in the tree */

	int fd;
	uint64_t file_size, skip; /* bytes of the file; of its NumPy header */
	bool has_dtype, has_dims;
	enum stfs_dtype dtype;
	struct stfs_buf dims; /* "2,3" */
	uint32_t rank;
};

static void put_fini(struct put *put)
{
	stfs_closep(&put->fd);
	stfs_buf_fini(&put->path);
	stfs_buf_fini(&put->dims);
	stfs_names_fini(&put->names);
	stfs_editing_fini(&put->editing);
}

static int fail_file(const struct put *put, int error)
{
	return stfs_exit_with(STFS_EXIT_SOURCE, "cannot read %s: %s", QUOTED(put->file), strerror(-error));
}

static int open_file(struct put *put)
{
	struct stat st;

	put->fd = STFS_RETRY(open(put->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
	if (put->fd < 0 || fstat(put->fd, &st) < 0)
		return fail_file(put, -errno);
	if (!S_ISREG(st.st_mode))
		return stfs_exit_with(STFS_EXIT_SOURCE, "%s is not a regular file", QUOTED(put->file));
	put->file_size = (uint64_t)st.st_size;
	return STFS_EXIT_OK;
}

/* The name is that of a tensor there is, or spells a new one. */
static int find_place(struct put *put)
{
	_cleanup_buf_ struct stfs_buf name = { 0 };
	struct stfs_slice typed = stfs_slice_of(put->name);
	int r = 0;

	put->tensor = stfs_names_find(&put->names, typed);
	if (put->tensor == STFS_TABLE_NONE) {
		r = stfs_names_spell(put->name, &name);
		if (r == 0)
			put->tensor = stfs_names_find(&put->names, stfs_buf_slice(&name));
	}
	if (r == 0 && put->tensor != STFS_TABLE_NONE)
		r = stfs_names_path(&put->names, put->tensor, &put->path);
	else if (r == 0 && (stfs_utf8_invalid(stfs_buf_slice(&name)) != name.len ||
			    stfs_slice_is(stfs_buf_slice(&name), "__metadata__")))
		r = -EINVAL;
	else if (r == 0)
		r = stfs_name_encode(&put->path, stfs_buf_slice(&name), stfs_view_layout(put->names.view));
	if (r == -EINVAL)
		return stfs_exit_with(STFS_EXIT_USAGE, "%s is no name of a tensor", QUOTED(put->name));
	return r < 0 ? stfs_editing_fail(r, QUOTED(put->name)) : STFS_EXIT_OK;
}

static int append_dims(struct put *put, struct stfs_dims dims)
{
	int r = stfs_buf_append_str(&put->dims, "");

	put->dims.len = 0;
	put->rank = dims.left;
	if (r == 0)
		r = stfs_dims_write(&put->dims, dims, ",");
	put->has_dims = r == 0;
	return r;
}

/* What the tensor is now, for what is not said anew. One that is incomplete says nothing. */
static int take_present(struct put *put)
{
	const struct stfs_staged_tensor *tensor;

	if (put->tensor == STFS_TABLE_NONE || put->names.changes->tensors[put->tensor].problem)
		return STFS_EXIT_OK;
	tensor = &put->names.changes->tensors[put->tensor];
	put->dtype = tensor->dtype;
	put->has_dtype = true;
	return append_dims(put, tensor->dims) < 0 ? stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(ENOMEM)) :
						    STFS_EXIT_OK;
}

/* The dtype of a NumPy file, which may name none, or one of another meaning and the same size. */
static int take_npy_dtype(struct put *put, const struct stfs_npy *npy)
{
	unsigned bits = npy->has_dtype ? stfs_dtype_info(npy->dtype)->bits : 8;

	if (put->dtype_text && !stfs_dtype_parse(stfs_slice_of(put->dtype_text), &put->dtype))
		return STFS_EXIT_OK; /* said later */
	if (!put->dtype_text && npy->has_dtype)
		put->dtype = npy->dtype;
	else if (!put->dtype_text && !(put->has_dtype && stfs_dtype_info(put->dtype)->bits == 8))
		return stfs_exit_with(STFS_EXIT_USAGE, "%s holds bytes of no known dtype: say which with --dtype",
				      QUOTED(put->file));
	put->has_dtype = true;
	if (stfs_dtype_info(put->dtype)->bits != bits)
		return stfs_exit_with(STFS_EXIT_USAGE, "%s has elements of %u bits, which cannot be %s",
				      QUOTED(put->file), bits, stfs_dtype_info(put->dtype)->name);
	return STFS_EXIT_OK;
}

static int take_npy_shape(struct put *put, const struct stfs_npy *npy)
{
	int r = stfs_buf_append_str(&put->dims, "");

	put->dims.len = 0;
	put->rank = npy->rank;
	for (uint32_t i = 0; r == 0 && i < npy->rank; i++)
		r = stfs_buf_printf(&put->dims, "%s%" PRIu64, i ? "," : "", npy->shape[i]);
	put->has_dims = r == 0;
	put->skip = npy->header_size;
	return r < 0 ? stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(-r)) : STFS_EXIT_OK;
}

static int take_npy(struct put *put)
{
	size_t len = (size_t)STFS_MIN(put->file_size, NPY_HEAD_MAX);
	_cleanup_free_ uint8_t *head = malloc(NPY_HEAD_MAX);
	_cleanup_free_ struct stfs_npy *npy = malloc(sizeof(*npy));
	struct stfs_diag diag = { 0 };
	int r, code;

	if (!head || !npy)
		return stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(ENOMEM));
	if (put->shape_text)
		return stfs_exit_with(STFS_EXIT_USAGE, "a NumPy file has a shape of its own: --shape is for raw bytes");
	r = stfs_pread_full(put->fd, head, len, 0);
	if (r < 0)
		return fail_file(put, r);
	r = stfs_npy_parse(head, len, &diag, npy);
	if (r < 0)
		return stfs_exit_with(STFS_EXIT_SOURCE, "%s: %s", QUOTED(put->file),
				      *diag.text ? diag.text : "it is no complete NumPy file");
	code = take_npy_dtype(put, npy);
	return code == STFS_EXIT_OK ? take_npy_shape(put, npy) : code;
}

/* What the command line says. */
static int take_options(struct put *put)
{
	int r;

	if (put->dtype_text) {
		put->has_dtype = stfs_dtype_parse(stfs_slice_of(put->dtype_text), &put->dtype);
		if (!put->has_dtype)
			return stfs_usage_error(&stfs_cmd_put, "%s is no dtype of the format, such as F32 or BF16",
						QUOTED(put->dtype_text));
	}
	if (put->shape_text) {
		put->dims.len = 0;
		r = stfs_shape_of_text(stfs_slice_of(put->shape_text), &put->dims, &put->rank);
		if (r == -EINVAL)
			return stfs_usage_error(&stfs_cmd_put, "%s is no shape, such as 4096,4096",
						QUOTED(put->shape_text));
		if (r < 0)
			return stfs_exit_with(STFS_EXIT_OTHER, "%s", strerror(-r));
		put->has_dims = true;
	}
	if (!put->has_dtype || !put->has_dims)
		return stfs_usage_error(&stfs_cmd_put, "there is no tensor %s yet: say --dtype and --shape",
					QUOTED(put->name));
	return STFS_EXIT_OK;
}

/* Compares the bytes there are with those that dtype and shape make. */
static int check_size(const struct put *put)
{
	struct stfs_dims dims = { put->dims.data, put->rank };
	uint64_t bits = stfs_dtype_info(put->dtype)->bits, dim, size = put->file_size - put->skip;
	bool fits = true;

	while (fits && stfs_dims_next(&dims, &dim))
		fits = stfs_mul(bits, dim, &bits);
	if (fits && bits % 8 == 0 && bits / 8 == size)
		return STFS_EXIT_OK;
	if (!fits || bits % 8 != 0)
		return stfs_exit_with(STFS_EXIT_USAGE, "%s [%s] is no number of whole bytes that the format can hold",
				      stfs_dtype_info(put->dtype)->name, put->dims.len ? put->dims.data : "");
	return stfs_exit_with(STFS_EXIT_USAGE, "%s has %" PRIu64 " bytes, but %s [%s] needs %" PRIu64,
			      QUOTED(put->file), size, stfs_dtype_info(put->dtype)->name,
			      put->dims.len ? put->dims.data : "", bits / 8);
}

static int write_texts(struct put *put, uint64_t dir)
{
	struct stfs_view *view = put->names.view;
	_cleanup_buf_ struct stfs_buf dtype = { 0 }, shape = { 0 };
	int r = stfs_buf_printf(&dtype, "%s\n", stfs_dtype_info(put->dtype)->name);

	if (r == 0)
		r = stfs_buf_append(&shape, put->dims.data, put->dims.len);
	if (r == 0)
		r = stfs_buf_append_char(&shape, '\n');
	for (size_t i = 0; r == 0 && i < shape.len; i++) {
		if (shape.data[i] == ',')
			shape.data[i] = ' ';
	}
	if (r == 0)
		r = stfs_walk_write_text(view, dir, stfs_slice_of("dtype"), stfs_buf_slice(&dtype));
	return r < 0 ? r : stfs_walk_write_text(view, dir, stfs_slice_of("shape"), stfs_buf_slice(&shape));
}

/* Copies the bytes. *ret_source tells whose fault a failure is. */
static int write_data(struct put *put, uint64_t dir, bool *ret_source)
{
	_cleanup_(stfs_file_closep) struct stfs_file *file = NULL;
	_cleanup_free_ char *chunk = malloc(CHUNK);
	uint64_t done = 0, size = put->file_size - put->skip;
	int r = chunk ? stfs_walk_open_empty(put->names.view, dir, stfs_slice_of("data"), &file) : -ENOMEM;

	while (r == 0 && done < size) {
		size_t n = (size_t)STFS_MIN(size - done, CHUNK);

		r = stfs_pread_full(put->fd, chunk, n, put->skip + done);
		*ret_source = r < 0;
		if (r == 0)
			r = stfs_walk_write(file, chunk, n, done);
		done += n;
	}
	return r;
}

static int stage(struct put *put)
{
	struct stfs_attr dir;
	bool source = false;
	int r = stfs_walk_make_dirs(put->names.view, stfs_buf_slice(&put->path), &dir);

	if (r == 0)
		r = write_texts(put, dir.ino);
	if (r == 0)
		r = write_data(put, dir.ino, &source);
	if (r < 0 && source)
		return fail_file(put, r);
	return r < 0 ? stfs_editing_fail(r, QUOTED(put->name)) : STFS_EXIT_OK;
}

static int put_tensor(struct put *put, const char *source)
{
	int code = open_file(put), r;

	if (code == STFS_EXIT_OK)
		code = stfs_editing_open(&put->editing, source);
	if (code != STFS_EXIT_OK)
		return code;
	r = stfs_names_init(&put->names, put->editing.workspace.view);
	if (r < 0)
		return stfs_editing_fail(r, "what is staged cannot be read");
	code = find_place(put);
	if (code == STFS_EXIT_OK)
		code = take_present(put);
	if (code == STFS_EXIT_OK && stfs_slice_ends(stfs_slice_of(put->file), ".npy"))
		code = take_npy(put);
	if (code == STFS_EXIT_OK)
		code = take_options(put);
	if (code == STFS_EXIT_OK)
		code = check_size(put);
	if (code == STFS_EXIT_OK)
		code = stage(put);
	return code == STFS_EXIT_OK ? stfs_editing_end(&put->editing) : code;
}

static int run_put(int argc, char **argv)
{
	_cleanup_(put_fini) struct put put = { .fd = -1 };
	struct stfs_args args;
	int row, code;

	stfs_args_init(&args, &stfs_cmd_put, argc, argv);
	while ((row = stfs_editing_next(&args, &put.editing, &code)) >= 0) {
		if (row == OPT_DTYPE)
			put.dtype_text = optarg;
		else if (row == OPT_SHAPE)
			put.shape_text = optarg;
	}
	if (row == STFS_ARGS_ERROR)
		return code;
	if (argc - optind != 3)
		return stfs_usage_error(&stfs_cmd_put, "put needs a model, the name of a tensor, and a file");
	put.name = argv[optind + 1];
	put.file = argv[optind + 2];
	return put_tensor(&put, argv[optind]);
}

const struct stfs_command stfs_cmd_put = {
	.name = "put",
	.usage = "put [--dtype DTYPE] [--shape SHAPE] [--commit [-q]] [-o OPTIONS] SOURCE NAME FILE",
	.summary = "Adds a tensor, or replaces one, from a file",
	.options = put_options,
	.notes =
		"FILE holds the raw bytes, little-endian and row by row, or is a NumPy file whose name ends in .npy. NAME is a\n"
		"name, such as model.norm.weight, or a path of the tree. Nothing is changed when the bytes do not fit.\n"
		"The change is staged, as in a mount: 'safetensorsfs commit SOURCE' makes it part of the model.\n",
	.print_more = stfs_edit_print_help,
	.run = run_put,
};
