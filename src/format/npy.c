/* SPDX-License-Identifier: Apache-2.0 */
#include "npy.h"

#include <errno.h>
#include <string.h>

#include "checked.h"
#include "quote.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_LEN 6
#define ALIGN 64
#define TEXT_MAX 65535      /* bytes; 64 dimensions take 1500, and NumPy itself stops at 10000 */
#define FIRST_DIM_DIGITS 21 /* NumPy leaves room for the first dimension to grow to that many digits in place */

/* The dict that describes the array, with the same blanks as NumPy's. */
static int append_dict(struct stfs_buf *buf, const char *descr, struct stfs_dims dims)
{
	uint32_t rank = dims.left;
	uint64_t dim;
	size_t digits = 0;
	int r = stfs_buf_printf(buf, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);

	for (bool first = true; r == 0 && stfs_dims_next(&dims, &dim); first = false) {
		size_t before = buf->len;

		r = stfs_buf_printf(buf, "%s%llu", first ? "" : ", ", (unsigned long long)dim);
		if (first)
			digits = buf->len - before;
	}
	if (r == 0)
		r = stfs_buf_append_str(buf, rank == 1 ? ",), }" : "), }");
	if (r == 0 && rank > 0)
		r = stfs_buf_printf(buf, "%*s", (int)(FIRST_DIM_DIGITS - digits), "");
	return r;
}

/* What stands before a text of `len` bytes. */
static int append_preamble(struct stfs_buf *buf, unsigned version, uint32_t len)
{
	char bytes[] = { (char)version, 0, (char)len, (char)(len >> 8), (char)(len >> 16), (char)(len >> 24) };
	int r = stfs_buf_append(buf, MAGIC, MAGIC_LEN);

	return r < 0 ? r : stfs_buf_append(buf, bytes, version == 1 ? 4 : 6);
}

int stfs_npy_write(struct stfs_buf *buf, enum stfs_dtype dtype, struct stfs_dims dims)
{
	const char *descr = stfs_dtype_info(dtype)->descr;
	_cleanup_buf_ struct stfs_buf text = { 0 };
	size_t preamble = MAGIC_LEN + 4, pad;
	unsigned version = 1;
	int r;

	if (!descr)
		return -EOPNOTSUPP;
	r = append_dict(&text, descr, dims);
	if (r < 0)
		return r;
	pad = ALIGN - (preamble + text.len + 1) % ALIGN; /* up to a whole 64: NumPy does so too */
	if (text.len + pad + 1 > UINT16_MAX) {
		version = 2;
		preamble += 2;
		pad = ALIGN - (preamble + text.len + 1) % ALIGN;
	}
	if (text.len > UINT32_MAX - ALIGN - 1)
		return -EOPNOTSUPP;
	r = stfs_buf_printf(&text, "%*s\n", (int)pad, "");
	if (r == 0)
		r = stfs_buf_reserve(buf, preamble + text.len);
	if (r == 0)
		r = append_preamble(buf, version, (uint32_t)text.len);
	return r < 0 ? r : stfs_buf_append(buf, text.data, text.len);
}

/* What the dict said. */
struct dict {
	struct stfs_slice descr;
	bool has_descr, has_order, has_shape, fortran;
};

static int fail_text(struct stfs_diag *diag, const char *what)
{
	return stfs_fail(diag, -EBADMSG, "not a .npy file: %s", what);
}

static void skip_blanks(struct stfs_slice *s)
{
	while (s->len && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r')) {
		s->p++;
		s->len--;
	}
}

/* Takes `token` off the front of `s`, with the blanks before it. */
static bool take(struct stfs_slice *s, const char *token)
{
	skip_blanks(s);
	if (!stfs_slice_starts(*s, token))
		return false;
	s->p += strlen(token);
	s->len -= strlen(token);
	return true;
}

/* Takes a Python string, which needs no escapes for anything that means something to us. */
static bool take_string(struct stfs_slice *s, struct stfs_slice *ret)
{
	struct stfs_slice rest = *s;
	const char *end;
	char quote;

	skip_blanks(&rest);
	if (rest.len == 0 || (*rest.p != '\'' && *rest.p != '"'))
		return false;
	quote = *rest.p++;
	rest.len--;
	end = memchr(rest.p, quote, rest.len);
	if (!end || memchr(rest.p, '\\', (size_t)(end - rest.p)))
		return false;
	*ret = (struct stfs_slice){ rest.p, (size_t)(end - rest.p) };
	*s = (struct stfs_slice){ end + 1, rest.len - ret->len - 1 };
	return true;
}

/* Takes a whole number as Python writes it: no sign, no zero in front. */
static bool take_number(struct stfs_slice *s, uint64_t *ret)
{
	size_t n = 0;
	uint64_t v = 0;

	skip_blanks(s);
	for (; n < s->len && s->p[n] >= '0' && s->p[n] <= '9'; n++)
		if (!stfs_mul(v, 10, &v) || !stfs_add(v, (uint64_t)(s->p[n] - '0'), &v))
			return false;
	if (n == 0 || (n > 1 && s->p[0] == '0'))
		return false;
	s->p += n;
	s->len -= n;
	*ret = v;
	return true;
}

/* A tuple of numbers: "()", "(3,)", "(2, 3)"; "(3)" is a number to Python. */
static int parse_shape(struct stfs_slice *s, struct stfs_diag *diag, struct stfs_npy *npy)
{
	bool comma = true;

	if (!take(s, "("))
		return fail_text(diag, "the shape is no tuple");
	npy->rank = 0;
	while (!take(s, ")")) {
		uint64_t dim;

		if (!comma || !take_number(s, &dim))
			return fail_text(diag, "the shape is no tuple of whole numbers");
		if (npy->rank == STFS_ARRAY_SIZE(npy->shape))
			return stfs_fail(diag, -EOPNOTSUPP, "a .npy file of more than 64 dimensions");
		npy->shape[npy->rank++] = dim;
		comma = take(s, ",");
	}
	if (npy->rank == 1 && !comma)
		return fail_text(diag, "the shape is no tuple");
	return 0;
}

/* The value of one key. A key that comes twice is an error here, though not to Python: nobody writes it. */
static int parse_entry(struct stfs_slice *s, struct stfs_diag *diag, struct dict *dict, struct stfs_npy *npy)
{
	struct stfs_slice key;

	if (!take_string(s, &key) || !take(s, ":"))
		return fail_text(diag, "its header is no dict");
	if (stfs_slice_is(key, "descr") && !dict->has_descr) {
		dict->has_descr = true;
		if (take(s, "["))
			return stfs_fail(diag, -EOPNOTSUPP, "a .npy file of records; a tensor has one dtype");
		return take_string(s, &dict->descr) ? 0 : fail_text(diag, "its descr is no string");
	}
	if (stfs_slice_is(key, "fortran_order") && !dict->has_order) {
		dict->has_order = true;
		dict->fortran = take(s, "True");
		return dict->fortran || take(s, "False") ? 0 : fail_text(diag, "its fortran_order is no bool");
	}
	if (stfs_slice_is(key, "shape") && !dict->has_shape) {
		dict->has_shape = true;
		return parse_shape(s, diag, npy);
	}
	return stfs_fail(diag, -EBADMSG, "not a .npy file: unexpected key %s", stfs_quote(key).text);
}

static int parse_dict(struct stfs_slice s, struct stfs_diag *diag, struct dict *dict, struct stfs_npy *npy)
{
	bool comma = true;

	if (!take(&s, "{"))
		return fail_text(diag, "its header is no dict");
	while (!take(&s, "}")) {
		int r = comma ? parse_entry(&s, diag, dict, npy) : fail_text(diag, "its header is no dict");

		if (r < 0)
			return r;
		comma = take(&s, ",");
	}
	skip_blanks(&s);
	if (s.len)
		return fail_text(diag, "text after its header's dict");
	if (!dict->has_descr || !dict->has_order || !dict->has_shape)
		return fail_text(diag, "its header lacks descr, fortran_order or shape");
	return 0;
}

/* Finds a type by the letter and size of its descr, "f4". */
static bool find_type(struct stfs_slice type, enum stfs_dtype *ret)
{
	if (stfs_slice_is(type, "f1")) { /* what ml_dtypes calls float8_e5m2; NumPy has no such type */
		*ret = STFS_F8_E5M2;
		return true;
	}
	for (unsigned i = 0; i < STFS_DTYPE_COUNT; i++) {
		const char *descr = stfs_dtype_info((enum stfs_dtype)i)->descr;

		if (descr && stfs_slice_is(type, descr + 1)) {
			*ret = (enum stfs_dtype)i;
			return true;
		}
	}
	return false;
}

static int parse_descr(struct stfs_slice descr, struct stfs_diag *diag, struct stfs_npy *npy)
{
	char order = descr.len ? descr.p[0] : '\0';
	struct stfs_slice type = descr.len ? (struct stfs_slice){ descr.p + 1, descr.len - 1 } : descr;
	bool swappable;

	if ((order != '<' && order != '>' && order != '|') || !find_type(type, &npy->dtype))
		return stfs_fail(diag, -EOPNOTSUPP, "a .npy file of type %s, which the format lacks",
				 stfs_quote(descr).text);
	npy->has_dtype = !stfs_slice_is(type, "V1");
	/* Raw bytes and single bytes have no order, whatever the letter says. */
	swappable = type.p[0] != 'V' && stfs_dtype_info(npy->dtype)->bits > 8;
	if (swappable && order == '>')
		return stfs_fail(diag, -EOPNOTSUPP, "a big-endian .npy file; the format is little-endian");
	if (swappable && order != '<')
		return stfs_fail(diag, -EOPNOTSUPP, "a .npy file of type %s, which has no byte order",
				 stfs_quote(descr).text);
	return 0;
}

/* Reads magic, version and length. Returns 0 with the bytes before the text and the bytes of the text. */
static int parse_preamble(const uint8_t *data, size_t len, struct stfs_diag *diag, size_t *ret_start, uint32_t *ret_len)
{
	size_t known = STFS_MIN(len, (size_t)MAGIC_LEN);
	unsigned version;

	if (known && memcmp(data, MAGIC, known) != 0)
		return fail_text(diag, "the magic at its start is missing");
	if (len < MAGIC_LEN + 2)
		return -EAGAIN;
	version = data[MAGIC_LEN];
	if (version < 1 || version > 3 || data[MAGIC_LEN + 1] != 0)
		return stfs_fail(diag, -EOPNOTSUPP, "a .npy file of version %u.%u; known are 1.0, 2.0 and 3.0", version,
				 (unsigned)data[MAGIC_LEN + 1]);
	*ret_start = MAGIC_LEN + 2 + (version == 1 ? 2 : 4);
	if (len < *ret_start)
		return -EAGAIN;
	*ret_len = data[8] | (uint32_t)data[9] << 8;
	if (version > 1)
		*ret_len |= (uint32_t)data[10] << 16 | (uint32_t)data[11] << 24;
	return 0;
}

int stfs_npy_parse(const uint8_t *data, size_t len, struct stfs_diag *diag, struct stfs_npy *ret)
{
	struct dict dict = { 0 };
	struct stfs_npy npy = { 0 };
	size_t start = 0;
	uint32_t text_len = 0;
	int r = parse_preamble(data, len, diag, &start, &text_len);

	if (r < 0)
		return r;
	/* Refused before the bytes are there: nobody should have to gather 4 GiB because a header says so. */
	if (text_len > TEXT_MAX)
		return stfs_fail(diag, -EOPNOTSUPP, "a .npy file with a header of %u bytes; at most %d are read",
				 (unsigned)text_len, TEXT_MAX);
	if (len - start < text_len)
		return -EAGAIN;
	r = parse_dict((struct stfs_slice){ (const char *)data + start, text_len }, diag, &dict, &npy);
	if (r == 0)
		r = parse_descr(dict.descr, diag, &npy);
	if (r < 0)
		return r;
	if (dict.fortran)
		return stfs_fail(diag, -EOPNOTSUPP, "a .npy file in Fortran order; the format is row-major");
	npy.header_size = start + text_len;
	*ret = npy;
	return 0;
}
