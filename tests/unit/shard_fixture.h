/* SPDX-License-Identifier: Apache-2.0 */
/* A model of three shards, and its index in the form that transformers writes. */
#pragma once

#include "commit_fixture.h"

#define SHARD_1 "model-00001-of-00003.safetensors"
#define SHARD_2 "model-00002-of-00003.safetensors"
#define SHARD_3 "model-00003-of-00003.safetensors"
#define INDEX "model.safetensors.index.json"
#define SHARDS SHARD_1 " " SHARD_2 " " SHARD_3 " " INDEX

#define PT "\"__metadata__\":{\"format\":\"pt\"}"
#define JSON_1                                                                            \
	"{" PT ",\"l0.w\":{\"dtype\":\"F32\",\"shape\":[250],\"data_offsets\":[0,1000]}," \
	"\"l0.b\":{\"dtype\":\"U8\",\"shape\":[10],\"data_offsets\":[1000,1010]}}"
#define JSON_2                                                                            \
	"{" PT ",\"l1.w\":{\"dtype\":\"F32\",\"shape\":[250],\"data_offsets\":[0,1000]}," \
	"\"l1.b\":{\"dtype\":\"U8\",\"shape\":[10],\"data_offsets\":[1000,1010]}}"
#define JSON_3 "{" PT ",\"head\":{\"dtype\":\"U8\",\"shape\":[64],\"data_offsets\":[0,64]}}"

/* `prefix` stands before the names of the shards in the index. */
static inline void shards_make(const char *prefix)
{
	static const char *const shards[] = { SHARD_1, SHARD_2, SHARD_3 };
	struct stfs_buf index = { 0 };
	struct maker maker = { 0 };
	char name[100];

	for (int i = 0; i < 3; i++) {
		maker_metadata(&maker, "{\"format\":\"pt\"}");
		if (i < 2) {
			snprintf(name, sizeof(name), "l%d.w", i);
			maker_tensor(&maker, name, "F32", "250", 1000);
			snprintf(name, sizeof(name), "l%d.b", i);
			maker_tensor(&maker, name, "U8", "10", 10);
		} else {
			maker_tensor(&maker, "head", "U8", "64", 64);
		}
		snprintf(name, sizeof(name), "%s%s", prefix, shards[i]);
		maker_write(&maker, name);
	}
	ck_assert_int_eq(stfs_buf_printf(&index,
					 "{\n  \"metadata\": {\n    \"note\": [1, 2],\n    \"total_parameters\": 584,\n"
					 "    \"total_size\": 2084\n  },\n  \"weight_map\": {\n"
					 "    \"head\": \"%s" SHARD_3 "\",\n    \"l0.b\": \"%s" SHARD_1 "\",\n"
					 "    \"l0.w\": \"%s" SHARD_1 "\",\n    \"l1.b\": \"%s" SHARD_2 "\",\n"
					 "    \"l1.w\": \"%s" SHARD_2 "\"\n  }\n}\n",
					 prefix, prefix, prefix, prefix, prefix),
			 0);
	file_put(INDEX, index.data);
	stfs_buf_fini(&index);
}
