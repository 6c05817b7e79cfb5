/* SPDX-License-Identifier: Apache-2.0 */
#include "json_out.h"

#include <inttypes.h>

#include "json_write.h"
#include "quote.h"
#include "utf8.h"

void stfs_json_out_fini(struct stfs_json_out *out)
{
	stfs_buf_fini(&out->buf);
}

static void append(struct stfs_json_out *out, const char *text)
{
	if (out->error == 0)
		out->error = stfs_buf_append_str(&out->buf, text);
}

/* Before a key or a value: the comma that the value before it left due. */
static void separate(struct stfs_json_out *out)
{
	if (out->comma_due)
		append(out, ",");
	out->comma_due = false;
}

static void append_value(struct stfs_json_out *out, const char *text)
{
	separate(out);
	append(out, text);
	out->comma_due = true;
}

void stfs_json_out_open(struct stfs_json_out *out, char bracket)
{
	separate(out);
	append(out, (char[]){ bracket, '\0' });
}

void stfs_json_out_close(struct stfs_json_out *out, char bracket)
{
	append(out, (char[]){ bracket, '\0' });
	out->comma_due = true;
}

void stfs_json_out_newline(struct stfs_json_out *out)
{
	separate(out);
	append(out, "\n");
}

void stfs_json_out_string(struct stfs_json_out *out, struct stfs_slice s)
{
	_cleanup_buf_ struct stfs_buf escaped = { 0 };

	separate(out);
	if (out->error == 0 && stfs_utf8_invalid(s) != s.len) {
		out->error = stfs_append_printable(&escaped, s);
		s = stfs_buf_slice(&escaped);
	}
	if (out->error == 0)
		out->error = stfs_json_write_string(&out->buf, s);
	out->comma_due = true;
}

void stfs_json_out_key(struct stfs_json_out *out, struct stfs_slice key)
{
	stfs_json_out_string(out, key);
	append(out, ":");
	out->comma_due = false;
}

void stfs_json_out_number(struct stfs_json_out *out, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	append_value(out, text);
}

void stfs_json_out_bool(struct stfs_json_out *out, bool value)
{
	append_value(out, value ? "true" : "false");
}

void stfs_json_out_text_member(struct stfs_json_out *out, const char *key, struct stfs_slice value)
{
	stfs_json_out_key(out, stfs_slice_of(key));
	stfs_json_out_string(out, value);
}

void stfs_json_out_number_member(struct stfs_json_out *out, const char *key, uint64_t value)
{
	stfs_json_out_key(out, stfs_slice_of(key));
	stfs_json_out_number(out, value);
}

void stfs_json_out_bool_member(struct stfs_json_out *out, const char *key, bool value)
{
	stfs_json_out_key(out, stfs_slice_of(key));
	stfs_json_out_bool(out, value);
}

int stfs_json_out_print(struct stfs_json_out *out)
{
	if (out->error == 0 && out->buf.len > 0)
		fwrite(out->buf.data, 1, out->buf.len, stdout);
	out->buf.len = 0;
	return out->error;
}

int stfs_json_out_print_line(struct stfs_json_out *out)
{
	append(out, "\n");
	return stfs_json_out_print(out);
}
