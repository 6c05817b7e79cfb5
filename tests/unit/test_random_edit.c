/* SPDX-License-Identifier: Apache-2.0 */
/* Random edits against a naive tree. STFS_SEED picks the run, STFS_STEPS its length. */
#include "naive_tree.h"
#include "run_tests.h"

#include "content.h"
#include "name.h"

#define NPY_HEAD 128

static uint64_t state;
static unsigned long step;

static unsigned draw(unsigned n)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(state >> 33) % n;
}

static void make_model(enum stfs_layout layout)
{
	struct maker maker = { 0 };

	fixture_setup();
	maker_metadata(&maker, "{\"format\":\"pt\",\"note\":\"x\"}");
	maker_tensor(&maker, "a.w", "F32", "2,3", 24);
	maker_tensor(&maker, "a.b", "U8", "5", 5);
	maker_tensor(&maker, "a", "U8", "0", 0);
	maker_tensor(&maker, "big", "U8", "9000", 9000);
	maker_tensor(&maker, "c.w", "U8", "5000", 5000);
	maker_tensor(&maker, "c.b", "U8", "7000", 7000);
	maker_write(&maker, "m.safetensors");
	open_view(layout);
	fresh_tree();
}

/* Some directory; valid for the step. */
static const char *some_dir(void)
{
	static char path[256];

	for (int i = 0; i < 50; i++) {
		struct entry *entry = &entries[draw((unsigned)n_entries)];

		if (!entry->object && strlen(entry->path) < 100)
			return strcpy(path, entry->path);
	}
	return "";
}

static struct entry *some_file(void)
{
	struct entry *entry = NULL;

	for (int i = 0; i < 50 && (!entry || !entry->object); i++)
		entry = &entries[draw((unsigned)n_entries)];
	return entry->object ? entry : NULL;
}

static const char *some_name(void)
{
	static const char *const names[] = { "data", "dtype", "shape", "w",     "b",   "c",
					     "x.y",  "data~", ".s",    "dtype", "data" };

	return names[draw(STFS_ARRAY_SIZE(names))];
}

static void say(const char *what, const char *path, const char *more, int r)
{
	if (getenv("STFS_SAY"))
		fprintf(stderr, "%lu %s %s %s: %d\n", step, what, path, more, r);
}

static void step_mkdir(void)
{
	const char *dir = some_dir(), *name = some_name(), *path = join(dir, name);
	bool may = !find(path) && dir_may_be(dir, name);
	int r = do_mkdir(path);

	say("mkdir", path, "", r);
	ck_assert_msg((r == 0) == may, "mkdir %s: %d", path, r);
	if (r == 0)
		add(path, true);
}

static void step_remove(void)
{
	struct entry *entry = &entries[draw((unsigned)n_entries)];
	char path[256];
	bool may;
	int r;

	strcpy(path, entry->path);
	may = entry->object || (is_empty(path) && strcmp(path, "__metadata__") != 0);
	r = entry->object ? do_unlink(path) : do_rmdir(path);
	say("remove", path, "", r);
	ck_assert_msg((r == 0) == may, "remove %s: %d", path, r);
	if (r == 0)
		drop(path);
}

static void step_rename(void)
{
	struct entry *entry = &entries[draw((unsigned)n_entries)];
	char from[256], name[256];
	const char *dir = some_dir(), *to;
	bool may;
	int r;

	strcpy(from, entry->path);
	strcpy(name, draw(3) ? some_name() : base_name(from));
	to = join(dir, name);
	if (strcmp(name, "data.npy") == 0 || (is_dir(from) && strlen(from) + strlen(to) > 150))
		return;
	may = may_rename(from, dir, name, to);
	r = do_rename(from, to);
	say("rename", from, to, r);
	ck_assert_msg((r == 0) == may, "rename %s to %s: %d", from, to, r);
	if (r == 0)
		apply_rename(from, to);
}

/* A text that suits the name, or not. */
static size_t some_text(const char *name, char *text)
{
	static const char *const dtypes[] = { "U8\n", "F32\n", "BF16", "F4\n", "F99", "F99\n", "" };
	static const char *const shapes[] = { "9000\n", "5\n", "2 3\n", "[6]", "\n", "two\n", "tw", "0 7\n" };
	size_t n = (size_t[]){ 0, 5, 24, 4096, 4097, 9000 }[draw(6)];
	unsigned seed = draw(256);
	const char *chosen = NULL;

	if (strcmp(name, "dtype") == 0)
		chosen = dtypes[draw(STFS_ARRAY_SIZE(dtypes))];
	else if (strcmp(name, "shape") == 0)
		chosen = shapes[draw(STFS_ARRAY_SIZE(shapes))];
	for (size_t i = 0; !chosen && i < n; i++)
		text[i] = (char)('!' + (i * 7 + seed) % 90);
	if (chosen)
		memcpy(text, chosen, n = strlen(chosen));
	return n;
}

static bool is_nonsense(const char *path, const char *text, size_t n)
{
	bool slot = strchr(path, '/') && !is_under(path, "__metadata__");

	return slot && ((strcmp(base_name(path), "dtype") == 0 && n == 4 && memcmp(text, "F99\n", 4) == 0) ||
			(strcmp(base_name(path), "shape") == 0 && n == 4 && memcmp(text, "two\n", 4) == 0));
}

static void step_put(void)
{
	const char *dir = some_dir(), *name = some_name(), *path = join(dir, name);
	struct entry *entry = find(path);
	char text[BYTES_MAX];
	size_t n = some_text(name, text);
	bool refused = is_nonsense(path, text, n);
	int r;

	if ((entry && !entry->object) || n_entries + 20 > ENTRIES_MAX)
		return;
	r = write_at(path, true, text, n, 0);
	say("put", path, "", r);
	ck_assert_msg(r == (refused ? -EINVAL : 0), "put %s: %d", path, r);
	if (!refused)
		set_file(path, text, n);
	else if (!entry)
		add(path, false);
}

static void step_write(void)
{
	struct entry *entry = some_file();
	char bytes[3000];
	size_t n = 1 + draw(sizeof(bytes)), offset = 1 + draw(draw(2) ? 100 : 9000);
	int r;

	if (!entry || strcmp(base_name(entry->path), "data.npy") == 0)
		return;
	memset(bytes, 'A' + (int)draw(26), n);
	r = write_at(entry->path, false, bytes, n, offset);
	say("write", entry->path, "", r);
	ck_assert_int_eq(r, 0);
	write_object(entry->object, bytes, n, offset);
}

static void step_truncate(void)
{
	struct entry *entry = some_file();
	struct stfs_attr_change change = { .set_size = true, .size = draw(3) ? draw(10000) : draw(20) };
	struct stfs_attr attr;
	int r;

	if (!entry || strcmp(base_name(entry->path), "data.npy") == 0)
		return;
	r = stfs_view_setattr(view, ino_of(entry->path), &change, &attr);
	say("truncate", entry->path, "", r);
	ck_assert_int_eq(r, 0);
	if (change.size > entry->object->len)
		memset(entry->object->bytes + entry->object->len, 0, change.size - entry->object->len);
	entry->object->len = change.size;
}

/* np.save, whole or cut short. */
static void step_npy(void)
{
	const char *dir = some_dir();
	struct entry *own = find(join(dir, "data.npy"));
	size_t n = (size_t[]){ 0, 5, 9000, 24 }[draw(4)], cut = draw(4) == 0 && n;
	char npy[NPY_HEAD + 9000], shape[32];
	int len, r;

	if (!*dir || strcmp(dir, "__metadata__") == 0 || n_entries + 20 > ENTRIES_MAX)
		return;
	memset(npy, ' ', NPY_HEAD);
	memcpy(npy, "\x93NUMPY\x01\x00v\x00", 10);
	len = snprintf(npy + 10, 100, "{'descr': '|u1', 'fortran_order': False, 'shape': (%zu,), }", n);
	npy[10 + len] = ' ';
	npy[NPY_HEAD - 1] = '\n';
	memset(npy + NPY_HEAD, (int)('a' + draw(26)), n);
	r = write_at(join(dir, "data.npy"), true, npy, NPY_HEAD + n - cut, 0);
	say("npy", dir, cut ? "cut" : "", r);
	ck_assert_int_eq(r, 0);
	if (cut) {
		set_file(join(dir, "data.npy"), npy, NPY_HEAD + n - cut);
		return;
	}
	if (own)
		drop(join(dir, "data.npy"));
	/* Under their old inode numbers: who has them open writes to the new ones. */
	snprintf(shape, sizeof(shape), "%zu\n", n);
	set_file(join(dir, "data"), npy + NPY_HEAD, n);
	set_file(join(dir, "dtype"), "U8\n", 3);
	set_file(join(dir, "shape"), shape, strlen(shape));
}

static void step_copy(void)
{
	struct entry *source = some_file(), *target;
	const char *dir = some_dir(), *path = join(dir, "data");
	struct stfs_file *from, *to;
	uint64_t copied = 0;
	size_t written;
	int r;

	/* Mostly something large, which may be copied by reference. */
	for (int i = 0; i < 20 && (!source || source->object->len < 5000); i++)
		source = some_file();
	target = find(path);
	if (!source || (target && (!target->object || target->object == source->object)) ||
	    n_entries + 20 > ENTRIES_MAX)
		return;
	ck_assert_int_eq(stfs_view_open(view, ino_of(source->path), &from), 0);
	to = open_write(path, true);
	r = stfs_file_copy(from, 0, to, 0, BYTES_MAX, &copied);
	say("copy", source->path, path, r);
	if (r == -EOPNOTSUPP)
		r = stfs_file_write(to, source->object->bytes, source->object->len, 0, &written);
	else
		ck_assert_uint_eq(copied, source->object->len);
	ck_assert_int_eq(r, 0);
	stfs_file_close(from);
	stfs_file_close(to);
	set_file(path, source->object->bytes, source->object->len);
}

static void close_handle(unsigned i)
{
	stfs_file_close(handles[i].file);
	unref(handles[i].object);
	handles[i].file = NULL;
	handles[i].object = NULL;
}

/* Opens a file for long, or writes to one that may be gone by now. */
static void step_handle(void)
{
	unsigned i = draw(HANDLES);
	struct entry *entry = some_file();
	size_t written, offset = 1 + draw(6000);

	if (handles[i].file) {
		say("handle", "", "", (int)i);
		ck_assert_int_eq(stfs_file_write(handles[i].file, "handle", 6, offset, &written), 0);
		write_object(handles[i].object, "handle", 6, offset);
		if (draw(3) == 0)
			close_handle(i);
	} else if (entry && strcmp(base_name(entry->path), "data.npy") != 0) {
		say("open", entry->path, "", (int)i);
		ck_assert_int_eq(stfs_view_open_write(view, ino_of(entry->path), false, &handles[i].file), 0);
		handles[i].object = entry->object;
		handles[i].object->refs++;
	}
}

static void step_reopen(void)
{
	say("reopen", "", "", 0);
	for (unsigned i = 0; i < HANDLES; i++)
		close_handle(i);
	reopen();
}

static void step_discard(void)
{
	say("discard", "", "", 0);
	ck_assert_int_eq(stfs_view_discard(view, (struct stfs_slice){ 0 }, NULL), 0);
	fresh_tree();
}

/* Compares a directory and what is below it; returns how many entries there are. */
static size_t compare_dir(const char *dir, uint64_t ino)
{
	struct stfs_listing *listing;
	size_t n = 0;

	ck_assert_int_eq(stfs_view_list(view, ino, &listing), 0);
	for (size_t i = 2; i < listing->n; i++) {
		struct stfs_dirent *found = &listing->entries[i];
		char name[256], path[256];
		struct entry *entry;
		struct stfs_buf buf;

		snprintf(name, sizeof(name), "%.*s", (int)found->name.len, found->name.p);
		snprintf(path, sizeof(path), "%s", join(dir, name));
		entry = find(path);
		ck_assert_msg(entry && !entry->object == (found->type == STFS_NODE_DIR),
			      "step %lu: %s should not be there", step, path);
		n++;
		if (!entry->object) {
			n += compare_dir(path, found->ino);
			continue;
		}
		buf = bytes_of(path);
		ck_assert_msg(buf.len == entry->object->len &&
				      (!buf.len || memcmp(buf.data, entry->object->bytes, buf.len) == 0),
			      "step %lu: %s has other bytes", step, path);
		stfs_buf_fini(&buf);
	}
	stfs_listing_free(listing);
	return n;
}

static void compare_tensor(const struct stfs_changes *changes, const struct stfs_staged_tensor *tensor)
{
	_cleanup_buf_ struct stfs_buf path = { 0 }, bytes = { 0 };
	struct entry *data;
	int verdict;

	(void)changes;
	if (tensor->path.len)
		ck_assert_int_eq(stfs_buf_append(&path, tensor->path.p, tensor->path.len), 0);
	else
		ck_assert_int_eq(stfs_name_encode(&path, tensor->name, view_layout), 0);
	verdict = judge(path.data);
	ck_assert_msg(verdict == !tensor->problem, "step %lu: %s is judged %d, but: %s", step, path.data, verdict,
		      tensor->problem ? tensor->problem : "whole");
	if (tensor->problem)
		return;
	data = find(join(path.data, "data"));
	ck_assert_uint_eq(tensor->size, data->object->len);
	if (!tensor->data) {
		const struct stfs_tensor *old = stfs_model_tensor(stfs_view_model(view), tensor->entry);

		for (size_t i = 0; i < tensor->size; i++)
			ck_assert_int_eq((uint8_t)data->object->bytes[i], (old->begin + i) & 0xff);
		return;
	}
	ck_assert_int_eq(stfs_content_read(tensor->data, BYTES_MAX, &bytes), 0);
	ck_assert(!bytes.len || memcmp(bytes.data, data->object->bytes, bytes.len) == 0);
}

static void compare_changes(void)
{
	_cleanup_(stfs_changes_freep) struct stfs_changes *changes = NULL;
	_cleanup_buf_ struct stfs_buf text = { 0 };
	size_t tensors = 0, keys = 0, scratch = 0, claimed = 0;

	ck_assert_int_eq(stfs_changes_collect(view, &changes), 0);
	for (size_t i = 0; i < n_entries; i++) {
		const char *path = entries[i].path, *name = base_name(path);
		bool key = is_under(path, "__metadata__") && name[0] != '.' && name[strlen(name) - 1] != '~';

		if (!entries[i].object)
			tensors += judge(path) >= 0;
		else if (key)
			keys++;
		else if (is_under(path, "__metadata__") || !strchr(path, '/') ||
			 (!is_slot_name(name) && strcmp(name, "data.npy") != 0))
			scratch++;
	}
	ck_assert_msg(changes->n_tensors == tensors, "step %lu: %u tensors, not %zu", step, changes->n_tensors,
		      tensors);
	ck_assert_uint_eq(changes->n_keys, keys);
	ck_assert_uint_eq(changes->n_scratch, scratch);
	for (uint32_t i = 0; i < changes->n_tensors; i++) {
		compare_tensor(changes, &changes->tensors[i]);
		claimed += changes->tensors[i].entry != STFS_ENTRY_NONE;
	}
	ck_assert_uint_eq(claimed + changes->n_deleted, stfs_view_model(view)->n_entries);
	for (uint32_t i = 0; i < changes->n_keys; i++) {
		const struct stfs_staged_key *key = &changes->keys[i];
		char name[256];
		struct object *object;
		size_t len;

		snprintf(name, sizeof(name), "%.*s", (int)key->key.len, key->key.p);
		object = find(join("__metadata__", name))->object;
		len = object->len - (object->len && object->bytes[object->len - 1] == '\n');

		ck_assert(key->value.len == len && (!len || memcmp(key->value.p, object->bytes, len) == 0));
	}
	ck_assert_int_eq(stfs_changes_text(changes, stfs_view_model(view), &text), 0);
}

static void compare(void)
{
	ck_assert_uint_eq(compare_dir("", STFS_INO_ROOT), n_entries);
	compare_changes();
}

static void take_step(void)
{
	static void (*const steps[])(void) = {
		step_mkdir, step_put,    step_put,    step_write, step_write,  step_truncate, step_rename, step_rename,
		step_copy,  step_remove, step_remove, step_npy,   step_handle, step_handle,   step_rename,
	};

	if (draw(60) == 0)
		step_reopen();
	else if (draw(400) == 0)
		step_discard();
	else
		steps[draw(STFS_ARRAY_SIZE(steps))]();
}

static void run(enum stfs_layout layout)
{
	const char *seed = getenv("STFS_SEED"), *steps = getenv("STFS_STEPS");
	unsigned long n = steps ? strtoul(steps, NULL, 10) : 2000;

	state = (seed ? strtoull(seed, NULL, 10) : 1) * 2 + layout;
	make_model(layout);
	for (step = 0; step < n; step++) {
		take_step();
		if (step % 10 == 0)
			compare();
	}
	step_reopen();
	compare();
	while (n_entries)
		unref(entries[--n_entries].object);
	teardown();
}

START_TEST(nested)
{
	run(STFS_NESTED);
}
END_TEST

START_TEST(flat)
{
	run(STFS_FLAT);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, nested);
	tcase_add_test(tcase, flat);
	tcase_set_timeout(tcase, 110);
	return run_tests("random_edit", tcase);
}
