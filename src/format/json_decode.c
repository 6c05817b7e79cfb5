/* SPDX-License-Identifier: Apache-2.0 */
#include "json_decode.h"

#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>

#include "arena.h"

struct stfs_decoded {
	struct stfs_arena strings;
	struct json_tokener *tokener;
};

int stfs_decoded_new(struct stfs_decoded **ret)
{
	_cleanup_(stfs_decoded_freep) struct stfs_decoded *decoded = calloc(1, sizeof(*decoded));

	if (!decoded)
		return -ENOMEM;
	decoded->tokener = json_tokener_new_ex(2);
	if (!decoded->tokener)
		return -ENOMEM;
	*ret = stfs_steal(decoded);
	return 0;
}

void stfs_decoded_free(struct stfs_decoded *decoded)
{
	if (!decoded)
		return;
	stfs_arena_fini(&decoded->strings);
	if (decoded->tokener)
		json_tokener_free(decoded->tokener);
	free(decoded);
}

/*
 * Parses one literal. It is parsed as a value even when it is a key: json-c cuts keys at a NUL, values keep their length.
 * No flag of json-c is set: STRICT means something else in each release, and the text is known to be valid.
 */
static struct json_object *parse_literal(struct json_tokener *tokener, const char *p, size_t len)
{
	struct json_object *object;

	if (len > INT_MAX)
		return NULL;
	json_tokener_reset(tokener);
	object = json_tokener_parse_ex(tokener, p, (int)len);
	/* A bare number may go on in the next chunk, as far as json-c knows: end it. */
	if (!object && json_tokener_get_error(tokener) == json_tokener_continue)
		object = json_tokener_parse_ex(tokener, " ", 1);
	return object;
}

int stfs_json_decode(struct stfs_decoded *decoded, const struct stfs_json_string *string, struct stfs_slice *ret)
{
	struct json_object *object;
	int r;

	if (!string->escaped) {
		*ret = string->raw;
		return 0;
	}
	/* The quotes stand right before and after the raw bytes. */
	object = parse_literal(decoded->tokener, string->raw.p - 1, string->raw.len + 2);
	if (!object)
		return -EBADMSG;
	if (json_object_is_type(object, json_type_string))
		r = stfs_arena_copy(&decoded->strings,
				    (struct stfs_slice){ json_object_get_string(object),
							 (size_t)json_object_get_string_len(object) },
				    ret);
	else
		r = -EBADMSG;
	json_object_put(object);
	return r;
}

bool stfs_json_decode_number(struct stfs_slice text, double *ret)
{
	struct json_tokener *tokener = json_tokener_new_ex(2);
	struct json_object *object = tokener ? parse_literal(tokener, text.p, text.len) : NULL;
	bool ok = json_object_is_type(object, json_type_int) || json_object_is_type(object, json_type_double);

	if (ok)
		*ret = json_object_get_double(object);
	if (object)
		json_object_put(object);
	if (tokener)
		json_tokener_free(tokener);
	return ok;
}
