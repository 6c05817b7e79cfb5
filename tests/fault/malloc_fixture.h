/* SPDX-License-Identifier: Apache-2.0 */
/* Small models for memory that runs out, opened for editing as a mount does it. Only within the fixture of model_fixture.h. */
#pragma once

#include "changes.h"
#include "fault_fixture.h"
#include "faulty_malloc.h"
#include "faulty_os.h"
#include "run_tests.h"
#include "shard_fixture.h"
#include "view_dump.h"
#include "workspace.h"

#define SINGLE "m.safetensors"
#define BIG 20000 /* bytes of a tensor and a key that are more than the journal takes */

/* Says from where the allocation came that failed, for what is found is told by where it was planted. */
#define expect(condition, ...)                     \
	do {                                       \
		if (!(condition)) {                \
			faulty_malloc_tell();      \
			ck_abort_msg(__VA_ARGS__); \
		}                                  \
	} while (0)

/*
 * The allocation to fail after number `at`. Each one fails alone; all from one on fail at each of the first, and then at ever
 * fewer, since that differs only in what clears up afterwards.
 */
static inline unsigned next_at(enum faulty_malloc_how how, unsigned at)
{
	return at + 1 + (how == FAULTY_MALLOC_FROM ? at / 8 : 0);
}

static const char *const how_names[] = { "one", "all from" };

/* Letters; those of `seed` and another seed differ everywhere. */
static inline const char *letters(size_t n, char seed)
{
	static char text[BIG + 1];

	for (size_t i = 0; i < STFS_MIN(n, BIG); i++)
		text[i] = (char)(seed + i % 7);
	text[n] = '\0';
	return text;
}

static inline void make_single(void)
{
	struct maker maker = { 0 };
	char metadata[6100];

	snprintf(metadata, sizeof(metadata), "{\"format\":\"pt\",\"note\":\"x\",\"long\":\"%s\"}", letters(6000, 'a'));
	maker_metadata(&maker, metadata);
	maker_tensor(&maker, "a.w", "F32", "2,3", 24);
	maker_tensor(&maker, "a.b", "U8", "5", 5);
	maker_tensor(&maker, "big", "U8", "20000", BIG);
	maker_tensor(&maker, "c.d.e", "U8", "3", 3);
	maker_tensor(&maker, "c.d.f", "I16", "2,2", 8);
	maker_write(&maker, SINGLE);
}

/* Opens the model `name` ("": the directory), with all files listed. Returns what stfs_workspace_open says. */
static inline int open_workspace_by(const struct stfs_os *os, const char *name, enum stfs_layout layout, bool read_only,
				    struct said *said, struct stfs_workspace *ret)
{
	char source[100], stage[100];
	struct stfs_workspace_options options = {
		.view = { .layout = layout, .npy = STFS_LIST, .control = STFS_LIST },
		.stage = stage,
		.holder = "a test",
		.read_only = read_only,
		.os = os,
	};

	snprintf(source, sizeof(source), "%s/%s", fixture_dir, name);
	snprintf(stage, sizeof(stage), "%s/" FIXTURE_STAGE, fixture_dir);
	said_init(said);
	return stfs_workspace_open(source, &options, &said->report, ret);
}

static inline int open_workspace(const char *name, enum stfs_layout layout, struct said *said,
				 struct stfs_workspace *ret)
{
	return open_workspace_by(stfs_os_real(), name, layout, false, said, ret);
}

/* The same, of a model that is there and may be edited. */
static inline struct stfs_workspace must_open(const char *name, enum stfs_layout layout)
{
	struct stfs_workspace workspace = { 0 };
	static struct said said;
	int r = open_workspace(name, layout, &said, &workspace);

	expect(r == 0, "cannot be opened: %s %s", strerror(-r), said.text);
	expect(workspace.state == STFS_WORKSPACE_WRITABLE, "cannot be edited: %s", workspace.why.text);
	return workspace;
}

/* Runs one test for each of `n` cases. Returns what main is to return. */
static inline int malloc_main(const char *name, const TTest *test, int n)
{
	TCase *tcase = tcase_create(name);

	if (!faulty_malloc_works()) {
		puts("skipped: the allocator of this C library cannot be replaced");
		return 77;
	}
	if (faulty_malloc_is_slow() && !getenv("FAULTY_MALLOC")) {
		puts("skipped: under a sanitizer it takes minutes; set FAULTY_MALLOC to run it");
		return 77;
	}
	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, test, 0, n);
	return run_tests(name, tcase);
}
