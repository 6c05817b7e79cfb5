/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "heap.h"
#include "run_tests.h"
#include "tree.h"

static struct stfs_tree tree;

static void setup(void)
{
	ck_assert_int_eq(stfs_tree_init(&tree), 0);
}

static void teardown(void)
{
	stfs_tree_fini(&tree);
}

/* Not ck_assert: each of those is a system call, and some tests add millions. */
static uint32_t add(struct stfs_tree *t, uint32_t parent, const char *name)
{
	uint32_t node = STFS_NODE_NONE;

	if (stfs_tree_add(t, parent, stfs_slice_of(name), STFS_NODE_MODULE, &node) < 0)
		ck_abort_msg("cannot add %s", name);
	return node;
}

static uint32_t child(uint32_t parent, const char *name)
{
	return stfs_tree_child(&tree, parent, stfs_slice_of(name));
}

START_TEST(starts_with_root_and_metadata)
{
	ck_assert_uint_eq(tree.n, 2);
	ck_assert_uint_eq(tree.nodes[STFS_NODE_ROOT].parent, STFS_NODE_ROOT);
	ck_assert_uint_eq(tree.nodes[STFS_NODE_ROOT].n_dirs, 1);
	ck_assert_uint_eq(child(STFS_NODE_ROOT, "__metadata__"), STFS_NODE_METADATA);
	ck_assert_uint_eq(stfs_tree_find(&tree, STFS_NODE_ROOT), STFS_NODE_ROOT);
	ck_assert_uint_eq(stfs_tree_find(&tree, STFS_NODE_METADATA), STFS_NODE_METADATA);
	ck_assert_uint_eq(stfs_tree_name(&tree, STFS_NODE_ROOT).len, 0);
}
END_TEST

START_TEST(finds_children_by_parent_and_name)
{
	uint32_t a = add(&tree, STFS_NODE_ROOT, "a"), b = add(&tree, STFS_NODE_ROOT, "b");
	uint32_t a_x = add(&tree, a, "x"), b_x = add(&tree, b, "x");

	ck_assert_uint_eq(child(a, "x"), a_x);
	ck_assert_uint_eq(child(b, "x"), b_x);
	ck_assert_uint_ne(a_x, b_x);
	ck_assert_uint_ne(tree.nodes[a_x].id, tree.nodes[b_x].id);
	ck_assert_uint_eq(child(STFS_NODE_ROOT, "x"), STFS_NODE_NONE);
	ck_assert_uint_eq(child(a, ""), STFS_NODE_NONE);
	ck_assert_uint_eq(child(a, "xx"), STFS_NODE_NONE);
	ck_assert_uint_eq(tree.nodes[a_x].parent, a);
	ck_assert_uint_eq(tree.nodes[a].entry, STFS_NODE_NONE);
}
END_TEST

START_TEST(refuses_to_find_too_long_a_name)
{
	char name[STFS_COMPONENT_MAX + 2];

	memset(name, 'n', sizeof(name));
	name[STFS_COMPONENT_MAX] = '\0';
	ck_assert_uint_eq(child(STFS_NODE_ROOT, name), STFS_NODE_NONE);
	ck_assert_uint_eq(add(&tree, STFS_NODE_ROOT, name), 2);
	ck_assert_uint_eq(child(STFS_NODE_ROOT, name), 2);
	name[STFS_COMPONENT_MAX] = 'n';
	ck_assert_uint_eq(stfs_tree_child(&tree, STFS_NODE_ROOT, (struct stfs_slice){ name, sizeof(name) - 1 }),
			  STFS_NODE_NONE);
}
END_TEST

START_TEST(names_may_hold_any_byte)
{
	struct stfs_slice one = { "a\0b", 3 }, two = { "a\0c", 3 };
	uint32_t a, b;

	ck_assert_int_eq(stfs_tree_add(&tree, STFS_NODE_ROOT, one, STFS_NODE_MODULE, &a), 0);
	ck_assert_uint_eq(stfs_tree_child(&tree, STFS_NODE_ROOT, two), STFS_NODE_NONE);
	ck_assert_int_eq(stfs_tree_add(&tree, STFS_NODE_ROOT, two, STFS_NODE_MODULE, &b), 0);
	ck_assert_uint_eq(stfs_tree_child(&tree, STFS_NODE_ROOT, one), a);
	ck_assert_uint_eq(stfs_tree_child(&tree, STFS_NODE_ROOT, two), b);
	ck_assert_uint_eq(child(STFS_NODE_ROOT, "a"), STFS_NODE_NONE);
}
END_TEST

START_TEST(children_keep_their_order)
{
	static const char *const names[] = { "zeta", "alpha", "10", "9", "beta" };
	uint32_t parent = add(&tree, STFS_NODE_ROOT, "p"), at, last = STFS_NODE_NONE;

	for (size_t i = 0; i < STFS_ARRAY_SIZE(names); i++) {
		last = add(&tree, parent, names[i]);
		add(&tree, last, "below");
		ck_assert_uint_eq(tree.nodes[tree.nodes[parent].first_child].prev, last);
	}
	at = tree.nodes[parent].first_child;
	for (size_t i = 0; i < STFS_ARRAY_SIZE(names); i++) {
		ck_assert(stfs_slice_is(stfs_tree_name(&tree, at), names[i]));
		if (tree.nodes[at].next != STFS_NODE_NONE)
			ck_assert_uint_eq(tree.nodes[tree.nodes[at].next].prev, at);
		at = tree.nodes[at].next;
	}
	ck_assert_uint_eq(at, STFS_NODE_NONE);
	ck_assert_uint_eq(tree.nodes[parent].n_dirs, STFS_ARRAY_SIZE(names));
}
END_TEST

START_TEST(keys_are_no_directories)
{
	uint32_t key;

	ck_assert_int_eq(stfs_tree_add(&tree, STFS_NODE_METADATA, stfs_slice_of("format"), STFS_NODE_KEY, &key), 0);
	ck_assert_uint_eq(tree.nodes[STFS_NODE_METADATA].n_dirs, 0);
	ck_assert_uint_eq(child(STFS_NODE_METADATA, "format"), key);
}
END_TEST

START_TEST(ids_are_known_numbers)
{
	/* These two must never change: they are inode numbers that users may have written down. */
	uint32_t model = add(&tree, STFS_NODE_ROOT, "model"), layers = add(&tree, model, "layers");

	ck_assert_uint_eq(tree.nodes[model].id, UINT64_C(0x60db4c0102a734e));
	ck_assert_uint_eq(tree.nodes[layers].id, UINT64_C(0xec09cc03681dfdb));
}
END_TEST

START_TEST(ids_do_not_depend_on_what_else_is_there)
{
	struct stfs_tree other;
	uint32_t here, there;

	ck_assert_int_eq(stfs_tree_init(&other), 0);
	add(&other, STFS_NODE_ROOT, "first");
	there = add(&other, add(&other, STFS_NODE_ROOT, "a"), "b");
	here = add(&tree, add(&tree, STFS_NODE_ROOT, "a"), "b");
	ck_assert_uint_ne(here, there);
	ck_assert_uint_eq(tree.nodes[here].id, other.nodes[there].id);
	stfs_tree_fini(&other);
}
END_TEST

START_TEST(a_taken_id_is_passed_over)
{
	uint32_t a = add(&tree, STFS_NODE_ROOT, "a"), b;
	uint64_t id = tree.nodes[a].id;

	/* Another tree in which `b` holds what `a` would hash to. */
	stfs_tree_fini(&tree);
	ck_assert_int_eq(stfs_tree_init(&tree), 0);
	b = add(&tree, STFS_NODE_ROOT, "b");
	tree.nodes[b].id = id;
	ck_assert_int_eq(stfs_tree_trim(&tree), 0); /* enters the id anew */
	a = add(&tree, STFS_NODE_ROOT, "a");
	ck_assert_uint_eq(tree.nodes[a].id, stfs_tree_next_id(id));
	ck_assert_uint_eq(stfs_tree_find(&tree, id), b);
	ck_assert_uint_eq(stfs_tree_find(&tree, stfs_tree_next_id(id)), a);
}
END_TEST

START_TEST(ids_stay_in_their_range)
{
	uint64_t last = (UINT64_C(1) << STFS_NODE_ID_BITS) - 1;

	ck_assert_uint_eq(stfs_tree_next_id(last), STFS_NODE_ID_FIRST);
	ck_assert_uint_eq(stfs_tree_next_id(STFS_NODE_ID_FIRST), STFS_NODE_ID_FIRST + 1);
	for (uint32_t i = 0; i < 10000; i++) {
		uint64_t id = stfs_tree_stable_id(&i, sizeof(i));

		ck_assert(id >= STFS_NODE_ID_FIRST && id <= last);
	}
}
END_TEST

START_TEST(spells_paths)
{
	struct stfs_buf buf = { 0 };
	uint32_t a = add(&tree, STFS_NODE_ROOT, "a"), b = add(&tree, a, "bb"), c = add(&tree, b, "ccc");
	uint32_t d = add(&tree, a, "d");

	ck_assert_int_eq(stfs_buf_append_str(&buf, "at "), 0);
	ck_assert_int_eq(stfs_tree_path(&tree, STFS_NODE_ROOT, c, &buf), 0);
	ck_assert_str_eq(buf.data, "at a/bb/ccc");
	buf.len = 0;
	ck_assert_int_eq(stfs_tree_path(&tree, a, c, &buf), 0);
	ck_assert_str_eq(buf.data, "bb/ccc");
	ck_assert_int_eq(stfs_tree_path(&tree, c, c, &buf), 0);
	ck_assert_uint_eq(buf.len, 6);
	ck_assert_int_eq(stfs_tree_path(&tree, d, c, &buf), -ENOENT);
	ck_assert_uint_eq(buf.len, 6);
	stfs_buf_fini(&buf);
}
END_TEST

/* Every node can be found again while the tables grow, and after they were trimmed. */
START_TEST(grows_and_trims)
{
	enum { N = 5000 };
	uint32_t nodes[N];
	char name[16];

	for (uint32_t i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "%u", i);
		nodes[i] = add(&tree, i ? nodes[i / 3] : STFS_NODE_ROOT, name);
	}
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < N; i++) {
			snprintf(name, sizeof(name), "%u", i);
			ck_assert_uint_eq(child(i ? nodes[i / 3] : STFS_NODE_ROOT, name), nodes[i]);
			ck_assert_uint_eq(stfs_tree_find(&tree, tree.nodes[nodes[i]].id), nodes[i]);
		}
		ck_assert_int_eq(stfs_tree_trim(&tree), 0);
		ck_assert_uint_eq(tree.cap, tree.n);
	}
	add(&tree, STFS_NODE_ROOT, "one more");
	ck_assert_uint_ne(child(STFS_NODE_ROOT, "one more"), STFS_NODE_NONE);
}
END_TEST

/* In one chain, as deep as it can be: nothing here may recurse. */
START_TEST(stops_at_the_limit)
{
	enum { MAX = 300000 };
	struct stfs_buf buf = { 0 };
	uint32_t node = STFS_NODE_ROOT, last;

	ck_assert_uint_eq(tree.max, STFS_NODES_MAX);
	tree.max = MAX;
	while (tree.n < MAX)
		node = add(&tree, node, "d");
	last = node;
	ck_assert_int_eq(stfs_tree_add(&tree, node, stfs_slice_of("d"), STFS_NODE_MODULE, &node), -EFBIG);
	ck_assert_uint_eq(node, last);
	ck_assert_uint_eq(tree.n, MAX);
	ck_assert_uint_eq(tree.nodes[last].first_child, STFS_NODE_NONE);
	ck_assert_int_eq(stfs_tree_path(&tree, STFS_NODE_ROOT, last, &buf), 0);
	ck_assert_uint_eq(buf.len, 2 * (MAX - 2) - 1);
	stfs_buf_fini(&buf);
}
END_TEST

/* Files come and go, and names are changed, for as long as a mount lives. */
START_TEST(names_that_are_gone_take_no_room)
{
	uint32_t kept = add(&tree, STFS_NODE_ROOT, "kept"), moved = add(&tree, kept, "moved");
	char name[32];

	for (uint32_t i = 0; i < 200000; i++) {
		uint32_t node;

		snprintf(name, sizeof(name), "name%u", i);
		node = add(&tree, kept, name);
		ck_assert(stfs_slice_is(stfs_tree_name(&tree, node), name));
		stfs_tree_remove(&tree, node);
		ck_assert_int_eq(stfs_tree_move(&tree, moved, STFS_NODE_ROOT, stfs_slice_of(name)), 0);
	}
	ck_assert_uint_le(tree.names.len, 300000);
	ck_assert(stfs_slice_is(stfs_tree_name(&tree, kept), "kept"));
	ck_assert_uint_eq(stfs_tree_child(&tree, STFS_NODE_ROOT, stfs_slice_of("kept")), kept);
	ck_assert_uint_eq(stfs_tree_child(&tree, STFS_NODE_ROOT, stfs_slice_of(name)), moved);
	ck_assert_uint_eq(stfs_tree_child(&tree, kept, stfs_slice_of("moved")), STFS_NODE_NONE);
}
END_TEST

/* 200,000 nodes in the shape of a model: about 64 bytes each. A sanitizer's allocator reports nothing here. */
START_TEST(costs_little_a_node)
{
	size_t before = heap_in_use(), used;
	char name[32];

	for (uint32_t layer = 0; layer < 10000; layer++) {
		uint32_t parent;

		snprintf(name, sizeof(name), "%u", layer);
		parent = add(&tree, STFS_NODE_ROOT, name);
		for (uint32_t i = 0; i < 19; i++) {
			snprintf(name, sizeof(name), "up_proj%u", i);
			add(&tree, parent, name);
		}
	}
	ck_assert_int_eq(stfs_tree_trim(&tree), 0);
	used = heap_in_use() - before;
	ck_assert_uint_le(used / tree.n, 76);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		starts_with_root_and_metadata,
		finds_children_by_parent_and_name,
		refuses_to_find_too_long_a_name,
		names_may_hold_any_byte,
		children_keep_their_order,
		keys_are_no_directories,
		ids_are_known_numbers,
		ids_do_not_depend_on_what_else_is_there,
		a_taken_id_is_passed_over,
		ids_stay_in_their_range,
		spells_paths,
		grows_and_trims,
		stops_at_the_limit,
		names_that_are_gone_take_no_room,
		costs_little_a_node,
	};
	TCase *tcase = tcase_create("tree");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 120);
	for (size_t i = 0; i < STFS_ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return run_tests("tree", tcase);
}
