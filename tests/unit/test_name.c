/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "name.h"
#include "run_tests.h"

#define SLICE(literal) ((struct stfs_slice){ literal, sizeof(literal) - 1 })

#define A10 "aaaaaaaaaa"
#define A60 A10 A10 A10 A10 A10 A10
#define A240 A60 A60 A60 A60
#define A238 A60 A60 A60 A10 A10 A10 A10 A10 "aaaaaaaa"
#define A255 A240 A10 "aaaaa"

static const struct {
	struct stfs_slice name;
	const char *nested, *flat;
} names[] = {
	{ SLICE("model.layers.0.mlp.up_proj.weight"), "model/layers/0/mlp/up_proj/weight",
	  "model.layers.0.mlp.up_proj.weight" },
	{ SLICE("w"), "w", "w" },
	/* empty pieces */
	{ SLICE(""), "%_", "%_" },
	{ SLICE("."), "%_/%_", "%2E" },
	{ SLICE(".."), "%_/%_/%_", "%2E." },
	{ SLICE("a."), "a/%_", "a." },
	{ SLICE(".a"), "%_/a", "%2Ea" },
	{ SLICE("a..b"), "a/%_/b", "a..b" },
	/* bytes with an escape, and their neighbours without one */
	{ SLICE("100%"), "100%25", "100%25" },
	{ SLICE("a/b"), "a%2Fb", "a%2Fb" },
	{ SLICE("a\0b"), "a%00b", "a%00b" },
	{ SLICE("\x01\t\n\x1f\x7f"), "%01%09%0A%1F%7F", "%01%09%0A%1F%7F" },
	{ SLICE(" !\"#&'()*+,-:;<=>?@[\\]^_`{|}~"), " !\"#&'()*+,-:;<=>?@[\\]^_`{|}~",
	  " !\"#&'()*+,-:;<=>?@[\\]^_`{|}~" },
	{ SLICE("%_"), "%25_", "%25_" },
	{ SLICE("%+"), "%25+", "%25+" },
	{ SLICE("größe.模型.🤗"), "größe/模型/🤗", "größe.模型.🤗" },
	{ SLICE("\xc2\x85\u202e"), "\xc2\x85\u202e", "\xc2\x85\u202e" },
	/* the slots of a tensor, wherever they stand */
	{ SLICE("data"), "%64ata", "%64ata" },
	{ SLICE("dtype"), "%64type", "%64type" },
	{ SLICE("shape"), "%73hape", "%73hape" },
	{ SLICE("a.data"), "a/%64ata", "a.data" },
	{ SLICE("data.shape"), "%64ata/%73hape", "data.shape" },
	{ SLICE("data.npy"), "%64ata/npy", "%64ata.npy" },
	{ SLICE("Data"), "Data", "Data" },
	{ SLICE("dat"), "dat", "dat" },
	{ SLICE("datax"), "datax", "datax" },
	/* the metadata, at the root only */
	{ SLICE("__metadata__"), "%5F_metadata__", "%5F_metadata__" },
	{ SLICE("a.__metadata__"), "a/__metadata__", "a.__metadata__" },
	{ SLICE("__metadata__.__metadata__"), "%5F_metadata__/__metadata__", "__metadata__.__metadata__" },
	/* a leading dot, flat */
	{ SLICE(".safetensors"), "%_/safetensors", "%2Esafetensors" },
	/* the cut: 240 bytes stand, 241 do not */
	{ SLICE(A240), A240, A240 },
	{ SLICE(A240 "b"), A240 "%+/b", A240 "%+/b" },
	{ SLICE(A240 ".b"), A240 "/b", A240 "%+/%2Eb" },
	{ SLICE(A240 A240), A240 "%+/" A240, A240 "%+/" A240 },
	{ SLICE(A240 A240 "b.c"), A240 "%+/" A240 "%+/b/c", A240 "%+/" A240 "%+/b.c" },
	/* … never inside a character or an escape */
	{ SLICE(A238 "é"), A238 "é", A238 "é" },
	{ SLICE(A238 "模"), A238 "%+/模", A238 "%+/模" },
	{ SLICE(A238 "%"), A238 "%+/%25", A238 "%+/%25" },
	{ SLICE(A238 "b%"), A238 "b%+/%25", A238 "b%+/%25" },
	{ SLICE(A238 "bc%"), A238 "bc%+/%25", A238 "bc%+/%25" },
	/* … and the last part can look like a slot, or like the directory above */
	{ SLICE(A240 "data"), A240 "%+/%64ata", A240 "%+/%64ata" },
	{ SLICE(A240 "data.x"), A240 "%+/%64ata/x", A240 "%+/data.x" },
	{ SLICE(A240 "__metadata__"), A240 "%+/__metadata__", A240 "%+/__metadata__" },
	{ SLICE(A240 ".."), A240 "/%_/%_", A240 "%+/%2E." },
	{ SLICE(A240 "data.npy"), A240 "%+/%64ata/npy", A240 "%+/%64ata.npy" },
};

static void check_pair(struct stfs_slice name, const char *path, enum stfs_layout layout)
{
	_cleanup_buf_ struct stfs_buf encoded = { 0 }, decoded = { 0 };

	ck_assert_int_eq(stfs_name_encode(&encoded, name, layout), 0);
	ck_assert_str_eq(encoded.data, path);
	ck_assert_int_eq(stfs_name_decode(&decoded, stfs_buf_slice(&encoded), layout), 0);
	ck_assert(stfs_slice_equal(stfs_buf_slice(&decoded), name));
}

START_TEST(test_names)
{
	for (size_t i = 0; i < STFS_ARRAY_SIZE(names); i++) {
		check_pair(names[i].name, names[i].nested, STFS_NESTED);
		check_pair(names[i].name, names[i].flat, STFS_FLAT);
	}
}
END_TEST

static const struct {
	struct stfs_slice path;
	int nested, flat;
} rejects[] = {
	/* no path of a name at all */
	{ { NULL, 0 }, -EPERM, -EPERM },
	{ SLICE("/"), -EPERM, -EPERM },
	{ SLICE("a/"), -EPERM, -EPERM },
	{ SLICE("/a"), -EPERM, -EPERM },
	{ SLICE("a//b"), -EPERM, -EPERM },
	/* escapes: broken, lower-case, not needed, of bytes over 7F */
	{ SLICE("%"), -EPERM, -EPERM },
	{ SLICE("%2"), -EPERM, -EPERM },
	{ SLICE("a%"), -EPERM, -EPERM },
	{ SLICE("%zz"), -EPERM, -EPERM },
	{ SLICE("%2f"), -EPERM, -EPERM },
	{ SLICE("%0a"), -EPERM, -EPERM },
	{ SLICE("%41"), -EPERM, -EPERM },
	{ SLICE("a%2E"), -EPERM, -EPERM },
	{ SLICE("%C3%A9"), -EPERM, -EPERM },
	{ SLICE("%FF"), -EPERM, -EPERM },
	{ SLICE("%64at"), -EPERM, -EPERM },
	{ SLICE("%64%61ta"), -EPERM, -EPERM },
	{ SLICE("d%61ta"), -EPERM, -EPERM },
	/* bytes that need one */
	{ SLICE("a\0b"), -EPERM, -EPERM },
	{ SLICE("a\nb"), -EPERM, -EPERM },
	{ SLICE("a\x7f"), -EPERM, -EPERM },
	{ SLICE("50%"), -EPERM, -EPERM },
	/* reserved components */
	{ SLICE("data"), -EPERM, -EPERM },
	{ SLICE("a/dtype"), -EPERM, -EPERM },
	{ SLICE("shape/a"), -EPERM, -EPERM },
	{ SLICE("data.npy"), -EPERM, -EPERM },
	{ SLICE("__metadata__"), -EPERM, -EPERM },
	{ SLICE("__metadata__/a"), -EPERM, -EPERM },
	{ SLICE("a/%5F_metadata__"), -EPERM, -EPERM },
	{ SLICE(A240 "%+/data"), -EPERM, -EPERM },
	{ SLICE(A240 "%+/%5F_metadata__"), -EPERM, -EPERM },
	/* dots: a nested component has none, a flat one none in front */
	{ SLICE("."), -EPERM, -EPERM },
	{ SLICE(".."), -EPERM, -EPERM },
	{ SLICE("a/.."), -EPERM, -EPERM },
	{ SLICE(".a"), -EPERM, -EPERM },
	{ SLICE("%2Ea/b"), -EPERM, -EPERM },
	{ SLICE(A240 "%+/.b"), -EPERM, -EPERM },
	/* marks: an empty piece among others, a cut where none is due, or none where it is */
	{ SLICE("a%_"), -EPERM, -EPERM },
	{ SLICE("%_a"), -EPERM, -EPERM },
	{ SLICE("%_%_"), -EPERM, -EPERM },
	{ SLICE("%_%+/a"), -EPERM, -EPERM },
	{ SLICE("%+"), -EPERM, -EPERM },
	{ SLICE("%+/a"), -EPERM, -EPERM },
	{ SLICE("a%+"), -EPERM, -EPERM },
	{ SLICE("a%+/b"), -EPERM, -EPERM },
	{ SLICE("a%+b"), -EPERM, -EPERM },
	{ SLICE(A240 "%+"), -EPERM, -EPERM },
	{ SLICE(A240 "%+/%_"), -EPERM, -EPERM },
	{ SLICE(A240 "%+%+/b"), -EPERM, -EPERM },
	{ SLICE(A238 "%+/bcd"), -EPERM, -EPERM },
	{ SLICE(A240 "b"), -EPERM, -EPERM },
	{ SLICE(A240 "b%+/c"), -EPERM, -EPERM },
	{ SLICE(A255), -EPERM, -EPERM },
	{ SLICE(A255 "a"), -ENAMETOOLONG, -ENAMETOOLONG },
	{ SLICE("a/" A255 "a"), -ENAMETOOLONG, -ENAMETOOLONG },
	/* not UTF-8: lone, overlong, surrogate, over U+10FFFF, cut short, split by a '/' */
	{ SLICE("\xff"), -EILSEQ, -EILSEQ },
	{ SLICE("a\x80"), -EILSEQ, -EILSEQ },
	{ SLICE("\xc0\xaf"), -EILSEQ, -EILSEQ },
	{ SLICE("\xed\xa0\x80"), -EILSEQ, -EILSEQ },
	{ SLICE("\xf4\x90\x80\x80"), -EILSEQ, -EILSEQ },
	{ SLICE("\xe6\xa8"), -EILSEQ, -EILSEQ },
	{ SLICE("\xc3/\xa9"), -EILSEQ, -EILSEQ },
};

static int decode_after_text(struct stfs_slice path, enum stfs_layout layout)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };
	int r;

	ck_assert_int_eq(stfs_buf_append_str(&buf, "kept"), 0);
	r = stfs_name_decode(&buf, path, layout);
	if (r < 0)
		ck_assert(buf.len == 4 && strcmp(buf.data, "kept") == 0);
	return r;
}

START_TEST(test_rejects)
{
	for (size_t i = 0; i < STFS_ARRAY_SIZE(rejects); i++) {
		struct stfs_slice path = rejects[i].path;

		ck_assert_msg(decode_after_text(path, STFS_NESTED) == rejects[i].nested, "nested %zu: %s", i, path.p);
		ck_assert_msg(decode_after_text(path, STFS_FLAT) == rejects[i].flat, "flat %zu: %s", i, path.p);
	}
	/* one layout's path can be foreign to the other */
	ck_assert_int_eq(decode_after_text(SLICE("a.b"), STFS_FLAT), 0);
	ck_assert_int_eq(decode_after_text(SLICE("a.b"), STFS_NESTED), -EPERM);
	ck_assert_int_eq(decode_after_text(SLICE("a/b"), STFS_FLAT), -EPERM);
	ck_assert_int_eq(decode_after_text(SLICE("%2Ea"), STFS_NESTED), -EPERM);
}
END_TEST

START_TEST(test_appends)
{
	_cleanup_buf_ struct stfs_buf buf = { 0 };

	ck_assert_int_eq(stfs_name_encode(&buf, SLICE("a.b"), STFS_NESTED), 0);
	ck_assert_int_eq(stfs_name_encode(&buf, SLICE("data"), STFS_NESTED), 0);
	ck_assert_int_eq(stfs_name_decode(&buf, SLICE("x/%64ata"), STFS_NESTED), 0);
	ck_assert_str_eq(buf.data, "a/b%64atax.data");
}
END_TEST

START_TEST(test_walk)
{
	struct stfs_name_walk walk;

	stfs_name_walk_init(&walk, SLICE(A240 "b.data."), STFS_NESTED);
	ck_assert(stfs_name_walk_next(&walk));
	ck_assert_str_eq(walk.component, A240 "%+");
	ck_assert_uint_eq(walk.len, 242);
	ck_assert(walk.in_piece);
	ck_assert(stfs_name_walk_next(&walk));
	ck_assert_str_eq(walk.component, "b");
	ck_assert(!walk.in_piece);
	ck_assert(stfs_name_walk_next(&walk));
	ck_assert_str_eq(walk.component, "%64ata");
	ck_assert_uint_eq(walk.len, 6);
	ck_assert(stfs_name_walk_next(&walk));
	ck_assert_str_eq(walk.component, "%_");
	ck_assert(!stfs_name_walk_next(&walk));
	ck_assert(!stfs_name_walk_next(&walk));
}
END_TEST

/* xorshift64*: the same numbers everywhere. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

/* Words that sit on the rules, strung together. */
static size_t random_text(uint64_t *state, char *out, size_t size)
{
	static const struct stfs_slice words[] = {
		SLICE("."),   SLICE("."),    SLICE("data"),   SLICE("dtype"), SLICE("shape"), SLICE("__metadata__"),
		SLICE("npy"), SLICE("%"),    SLICE("%+"),     SLICE("%_"),    SLICE("/"),     SLICE("\0"),
		SLICE("\n"),  SLICE("\x7f"), SLICE("é"),      SLICE("模"),    SLICE("🤗"),  SLICE("a"),
		SLICE("%64"), SLICE("%2E"),  SLICE("weight"), SLICE(A60),     SLICE(A60 A60), SLICE(A238),
		SLICE("#"),   SLICE("~"),    SLICE("%25"),
	};
	size_t n = next_random(state) % 12, len = 0;

	while (n-- > 0) {
		struct stfs_slice word = words[next_random(state) % STFS_ARRAY_SIZE(words)];

		if (len + word.len > size)
			break;
		memcpy(out + len, word.p, word.len);
		len += word.len;
	}
	return len;
}

static void check_components(struct stfs_slice path, enum stfs_layout layout)
{
	const char *p = path.p, *end = path.p + path.len;

	while (p <= end) {
		const char *slash = memchr(p, '/', (size_t)(end - p));
		struct stfs_slice c = { p, (size_t)((slash ? slash : end) - p) };

		ck_assert(c.len > 0 && c.len <= STFS_COMPONENT_MAX);
		ck_assert(c.p[0] != '.');
		ck_assert(layout == STFS_FLAT || !memchr(c.p, '.', c.len));
		ck_assert(!memchr(c.p, '\0', c.len));
		ck_assert(!stfs_slice_is(c, "data") && !stfs_slice_is(c, "dtype") && !stfs_slice_is(c, "shape"));
		ck_assert(!stfs_slice_is(c, "data.npy"));
		ck_assert(p != path.p || !stfs_slice_is(c, "__metadata__"));
		p += c.len + 1;
	}
}

START_TEST(test_random_names)
{
	uint64_t state = 20240229;

	for (int i = 0; i < 20000; i++) {
		enum stfs_layout layout = i & 1 ? STFS_FLAT : STFS_NESTED;
		_cleanup_buf_ struct stfs_buf path = { 0 }, again = { 0 };
		char text[2000];
		struct stfs_slice name = { text, random_text(&state, text, sizeof(text)) };

		ck_assert_int_eq(stfs_name_encode(&path, name, layout), 0);
		check_components(stfs_buf_slice(&path), layout);
		ck_assert_int_eq(stfs_name_decode(&again, stfs_buf_slice(&path), layout), 0);
		ck_assert(stfs_slice_equal(stfs_buf_slice(&again), name));
	}
}
END_TEST

/* What decode accepts is what encode gives, also for texts that were never encoded. */
START_TEST(test_random_paths)
{
	uint64_t state = 19991231;
	int accepted = 0, refused = 0;

	for (int i = 0; i < 20000; i++) {
		enum stfs_layout layout = i & 1 ? STFS_FLAT : STFS_NESTED;
		_cleanup_buf_ struct stfs_buf name = { 0 }, again = { 0 };
		char text[2000];
		struct stfs_slice path = { text, random_text(&state, text, sizeof(text)) };

		if (stfs_name_decode(&name, path, layout) < 0) {
			refused++;
			continue;
		}
		accepted++;
		ck_assert_int_eq(stfs_name_encode(&again, stfs_buf_slice(&name), layout), 0);
		ck_assert(stfs_slice_equal(stfs_buf_slice(&again), path));
	}
	ck_assert_int_gt(accepted, 500);
	ck_assert_int_gt(refused, 500);
}
END_TEST

/* Megabytes, in the shapes that a quadratic walk would not survive. */
START_TEST(test_huge_names)
{
	static const char *const units[] = { ".", "a", "%", "模", "data." };
	const size_t size = 2 << 20;
	_cleanup_free_ char *text = malloc(size);

	ck_assert_ptr_nonnull(text);
	for (size_t u = 0; u < STFS_ARRAY_SIZE(units); u++) {
		struct stfs_slice unit = stfs_slice_of(units[u]), name = { text, size - size % unit.len };

		for (size_t at = 0; at < name.len; at += unit.len)
			memcpy(text + at, unit.p, unit.len);
		for (int layout = STFS_NESTED; layout <= STFS_FLAT; layout++) {
			_cleanup_buf_ struct stfs_buf path = { 0 }, again = { 0 };

			ck_assert_int_eq(stfs_name_encode(&path, name, (enum stfs_layout)layout), 0);
			ck_assert_int_eq(stfs_name_decode(&again, stfs_buf_slice(&path), (enum stfs_layout)layout), 0);
			ck_assert(stfs_slice_equal(stfs_buf_slice(&again), name));
		}
	}
}
END_TEST

static const struct {
	struct stfs_slice key;
	const char *component;
} keys[] = {
	{ SLICE("format"), "format" },
	{ SLICE("a.b.c"), "a.b.c" },
	{ SLICE(""), "%_" },
	{ SLICE("a/b%c"), "a%2Fb%25c" },
	{ SLICE("a\0\n\x7f"), "a%00%0A%7F" },
	{ SLICE("."), "%2E" },
	{ SLICE(".."), "%2E." },
	{ SLICE(".hidden"), "%2Ehidden" },
	{ SLICE("#lock#"), "%23lock#" },
	{ SLICE("a#b.c~d"), "a#b.c~d" },
	{ SLICE("backup~"), "backup%7E" },
	{ SLICE("~~"), "~%7E" },
	{ SLICE("~"), "%7E" },
	{ SLICE("#"), "%23" },
	{ SLICE("#~"), "%23%7E" },
	{ SLICE("data"), "data" },
	{ SLICE("shape"), "shape" },
	{ SLICE("__metadata__"), "__metadata__" },
	{ SLICE("%+"), "%25+" },
	{ SLICE("模型"), "模型" },
	{ SLICE(A255), A255 },
	{ SLICE(A240 A10 "aa/"), A240 A10 "aa%2F" },
};

START_TEST(test_keys)
{
	for (size_t i = 0; i < STFS_ARRAY_SIZE(keys); i++) {
		_cleanup_buf_ struct stfs_buf encoded = { 0 }, decoded = { 0 };

		ck_assert_int_eq(stfs_key_encode(&encoded, keys[i].key), 0);
		ck_assert_str_eq(encoded.data, keys[i].component);
		ck_assert_int_eq(stfs_key_decode(&decoded, stfs_buf_slice(&encoded)), 0);
		ck_assert(stfs_slice_equal(stfs_buf_slice(&decoded), keys[i].key));
	}
}
END_TEST

START_TEST(test_keys_too_long)
{
	static const struct stfs_slice too_long[] = {
		SLICE(A255 "a"), SLICE(A255 "/"), SLICE(A240 A10 "aaa/"), SLICE(A240 A10 "aaa\u6a21"), SLICE(A255 A255),
	};

	for (size_t i = 0; i < STFS_ARRAY_SIZE(too_long); i++) {
		_cleanup_buf_ struct stfs_buf buf = { 0 };

		ck_assert_int_eq(stfs_key_encode(&buf, too_long[i]), -ENAMETOOLONG);
		ck_assert_uint_eq(buf.len, 0);
	}
}
END_TEST

START_TEST(test_key_rejects)
{
	static const struct {
		struct stfs_slice component;
		int error;
	} cases[] = {
		{ { NULL, 0 }, -EPERM },    { SLICE("."), -EPERM },
		{ SLICE(".."), -EPERM },    { SLICE(".swp"), -EPERM },
		{ SLICE("#a"), -EPERM },    { SLICE("a~"), -EPERM },
		{ SLICE("~"), -EPERM },     { SLICE("a/b"), -EPERM },
		{ SLICE("a\0"), -EPERM },   { SLICE("%7Ea"), -EPERM },
		{ SLICE("a%23"), -EPERM },  { SLICE("%64ata"), -EPERM },
		{ SLICE("a%+"), -EPERM },   { SLICE("%+"), -EPERM },
		{ SLICE("%_a"), -EPERM },   { SLICE("%_%+"), -EPERM },
		{ SLICE("%2f"), -EPERM },   { SLICE("%"), -EPERM },
		{ SLICE("\xff"), -EILSEQ }, { SLICE("%C3%A9"), -EPERM },
		{ SLICE("a%7E~"), -EPERM }, { SLICE(A255 "a"), -ENAMETOOLONG },
	};

	for (size_t i = 0; i < STFS_ARRAY_SIZE(cases); i++) {
		_cleanup_buf_ struct stfs_buf buf = { 0 };

		ck_assert_int_eq(stfs_buf_append_str(&buf, "kept"), 0);
		ck_assert_msg(stfs_key_decode(&buf, cases[i].component) == cases[i].error, "%s", cases[i].component.p);
		ck_assert_str_eq(buf.data, "kept");
	}
}
END_TEST

START_TEST(test_random_keys)
{
	uint64_t state = 424242;
	int fitting = 0;

	for (int i = 0; i < 20000; i++) {
		_cleanup_buf_ struct stfs_buf component = { 0 }, again = { 0 }, key = { 0 };
		char text[600];
		struct stfs_slice s = { text, random_text(&state, text, sizeof(text)) };

		if (stfs_key_encode(&component, s) == 0) {
			fitting++;
			ck_assert_uint_le(component.len, STFS_COMPONENT_MAX);
			ck_assert_int_eq(stfs_key_decode(&again, stfs_buf_slice(&component)), 0);
			ck_assert(stfs_slice_equal(stfs_buf_slice(&again), s));
		}
		if (stfs_key_decode(&key, s) == 0) {
			component.len = 0;
			ck_assert_int_eq(stfs_key_encode(&component, stfs_buf_slice(&key)), 0);
			ck_assert(stfs_slice_equal(stfs_buf_slice(&component), s));
		}
	}
	ck_assert_int_gt(fitting, 10000);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("name");

	tcase_add_test(tcase, test_names);
	tcase_add_test(tcase, test_rejects);
	tcase_add_test(tcase, test_appends);
	tcase_add_test(tcase, test_walk);
	tcase_add_test(tcase, test_random_names);
	tcase_add_test(tcase, test_random_paths);
	tcase_add_test(tcase, test_huge_names);
	tcase_add_test(tcase, test_keys);
	tcase_add_test(tcase, test_keys_too_long);
	tcase_add_test(tcase, test_key_rejects);
	tcase_add_test(tcase, test_random_keys);
	tcase_set_timeout(tcase, 60);
	return run_tests("name", tcase);
}
