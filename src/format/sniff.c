/* SPDX-License-Identifier: Apache-2.0 */
#include "header.h"

#include <ctype.h>
#include <strings.h>

#include "macros.h"

/* What other files start with. Text is compared without case, after blanks; binary exactly. */
static const struct magic {
	const char *bytes;
	size_t len;
	bool text;
	const char *phrase;
} magics[] = {
	{ "version https://git-lfs", 23, true, "a git-LFS pointer, not the file itself (git lfs pull fetches it)" },
	{ "<!doctype html", 14, true, "an HTML page, not a model (a download that failed or needs a login)" },
	{ "<html", 5, true, "an HTML page, not a model (a download that failed or needs a login)" },
	{ "<?xml", 5, true, "an XML page, not a model (a download that failed)" },
	{ "{\"error", 7, true, "a JSON error message, not a model (a download that failed)" },
	{ "PK\3\4", 4, false, "a ZIP archive (a PyTorch .pt or .bin file, or a .npz, under another name)" },
	{ "\x80\2", 2, false, "a Python pickle (a PyTorch .pt or .bin file under another name)" },
	{ "\x80\3", 2, false, "a Python pickle (a PyTorch .pt or .bin file under another name)" },
	{ "\x80\4", 2, false, "a Python pickle (a PyTorch .pt or .bin file under another name)" },
	{ "\x80\5", 2, false, "a Python pickle (a PyTorch .pt or .bin file under another name)" },
	{ "GGUF", 4, false, "a GGUF file under another name" },
	{ "ggml", 4, false, "a GGML file under another name" },
	{ "\x89HDF\r\n\x1a\n", 8, false, "an HDF5 file (Keras .h5) under another name" },
	{ "\x93NUMPY", 6, false, "a NumPy .npy file under another name" },
	{ "\x1f\x8b", 2, false, "a gzip archive: unpack it first" },
	{ "\x28\xb5\x2f\xfd", 4, false, "a zstd archive: unpack it first" },
	{ "\x7f"
	  "ELF",
	  4, false, "an ELF program" },
};

static bool starts_with_text(const uint8_t *head, size_t len, const struct magic *magic)
{
	while (len > 0 && (isspace(*head) || *head == 0xef || *head == 0xbb || *head == 0xbf)) {
		head++;
		len--;
	}
	return len >= magic->len && strncasecmp((const char *)head, magic->bytes, magic->len) == 0;
}

/* A pickle's second byte is a protocol number, but a length word may look the same: the next opcode must fit too. */
static bool is_pickle(const uint8_t *head, size_t len)
{
	return len >= 3 && (strchr("}](c\x95\x8a\x8cXKM", head[2]) && head[2] != 0);
}

/* A length word of no use, then text that is the JSON of a header: its 8 bytes were lost. */
static bool is_bare_json(const uint8_t *head, size_t len)
{
	return len >= 8 && head[0] == '{' && (head[1] == '"' || isspace(head[1]));
}

/* What a download that reserved its space first leaves behind. */
static bool is_zeros(const uint8_t *head, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (head[i])
			return false;
	}
	return len >= 8;
}

/* After the length word a header's '{' follows, perhaps after blanks: then nothing else is looked for. */
static bool may_be_header(const uint8_t *head, size_t len)
{
	for (size_t i = 8; i < len; i++) {
		if (!strchr(" \t\r\n", head[i]) || !head[i])
			return head[i] == '{';
	}
	return false;
}

const char *stfs_sniff(const uint8_t *head, size_t len)
{
	if (may_be_header(head, len))
		return NULL;
	for (size_t i = 0; i < STFS_ARRAY_SIZE(magics); i++) {
		const struct magic *magic = &magics[i];

		if (magic->text) {
			if (starts_with_text(head, len, magic))
				return magic->phrase;
		} else if (len >= magic->len && memcmp(head, magic->bytes, magic->len) == 0) {
			if ((uint8_t)magic->bytes[0] != 0x80 || is_pickle(head, len))
				return magic->phrase;
		}
	}
	if (is_zeros(head, len))
		return "zeros where the header should be (a download that was reserved and never written)";
	if (is_bare_json(head, len))
		return "bare JSON, without the 8 bytes of length that a .safetensors file starts with";
	return NULL;
}
