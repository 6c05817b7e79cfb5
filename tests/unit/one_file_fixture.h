/* SPDX-License-Identifier: Apache-2.0 */
/* A writable view of a model of one file, for tests that commit it in place. */
#pragma once

#include "commit_fixture.h"

#define NAME "m.safetensors"
#define METADATA "\"__metadata__\":{\"format\":\"pt\",\"note\":\"x\"}"
#define A_W "\"a.w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}"
#define A_B "\"a.b\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[24,29]}"
#define BIG "\"big\":{\"dtype\":\"U8\",\"shape\":[100000],\"data_offsets\":[29,100029]}"
#define ALL "{" METADATA "," A_W "," A_B "," BIG "}"
#define STAGED FIXTURE_STAGE " " NAME
#define BIG_SIZE 100000

static struct stfs_view *view;
static struct wanted wanted;
static struct said said;

static inline void make_model(void)
{
	struct maker maker = { 0 };

	maker_metadata(&maker, "{\"note\":\"x\",\"format\":\"pt\"}");
	maker_tensor(&maker, "a.w", "F32", "2,3", 24);
	maker_tensor(&maker, "a.b", "U8", "5", 5);
	maker_tensor(&maker, "big", "U8", "100000", BIG_SIZE);
	maker_write(&maker, NAME);
}

static inline void setup(void)
{
	fixture_setup();
	make_model();
	view = editing(NAME);
}

static inline void teardown(void)
{
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0) | setegid(0), 0);
	editing_teardown(view);
}

static inline void remount(void)
{
	stfs_view_free(view);
	view = editing(NAME);
}

static inline void want_all(void)
{
	want_old(&wanted, 0, 29 + BIG_SIZE);
}

static inline struct stat stat_of(const char *name)
{
	struct stat st;

	ck_assert_int_eq(lstat(fixture_path(name), &st), 0);
	return st;
}

/* A commit that must fail: with this error, a sentence with these words, and everything as it was. */
static inline void refused_by(const struct stfs_commit_options *options, int error, const char *words)
{
	struct stfs_commit_result result;
	int r = commit_options(view, options, &said, &result);

	ck_assert_msg(r == error, "%s: %s", strerror(-r), said.text);
	ck_assert_msg(strstr(said.text, words) != NULL, "%s", said.text);
	ck_assert_int_eq(access(fixture_path("." NAME ".stfs-commit"), F_OK), -1);
	ck_assert_int_eq(access(fixture_path(FIXTURE_STAGE "/journal.next"), F_OK), -1);
}

static inline void refused(int error, const char *words)
{
	struct stfs_commit_options options = { 0 };

	refused_by(&options, error, words);
}
