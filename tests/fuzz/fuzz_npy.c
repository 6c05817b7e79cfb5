/* SPDX-License-Identifier: Apache-2.0 */
/* A .npy header from a stranger: read it, write what it says, read that again. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
	if (!ok)
		__builtin_trap();
}

/* stfs_npy_parse on a copy that ends where the header may be read to, for the sanitizer to see. */
static int parse_exact(const uint8_t *data, size_t len, struct stfs_npy *ret)
{
	_cleanup_free_ uint8_t *copy = malloc(len ? len : 1);

	check(copy);
	if (len)
		memcpy(copy, data, len);
	return stfs_npy_parse(copy, len, NULL, ret);
}

static void check_same(const struct stfs_npy *a, const struct stfs_npy *b)
{
	check(a->has_dtype == b->has_dtype && (!a->has_dtype || a->dtype == b->dtype));
	check(a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof(a->shape[0])) == 0);
}

/* A raw byte names no dtype: any of the one-byte floats is written like that. So is E5M2, which NumPy does not know. */
static void check_written(const struct stfs_npy *npy)
{
	enum stfs_dtype dtype = npy->has_dtype ? npy->dtype : STFS_F8_E4M3;
	_cleanup_buf_ struct stfs_buf dims = { 0 }, buf = { 0 };
	struct stfs_npy again, expected = *npy;

	for (uint32_t i = 0; i < npy->rank; i++)
		check(stfs_buf_printf(&dims, "%llu,", (unsigned long long)npy->shape[i]) == 0);
	check(stfs_npy_write(&buf, dtype, (struct stfs_dims){ dims.data, npy->rank }) == 0);
	check(buf.len % 64 == 0 && buf.data[buf.len - 1] == '\n');
	check(parse_exact((const uint8_t *)buf.data, buf.len, &again) == 0);
	check(again.header_size == buf.len);
	expected.has_dtype = npy->has_dtype && npy->dtype != STFS_F8_E5M2;
	check_same(&again, &expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stfs_npy npy, again;
	struct stfs_diag diag = { 0 };
	int r;

	memset(&npy, 0xa5, sizeof(npy));
	again = npy;
	r = stfs_npy_parse(data, size, &diag, &npy);
	if (r < 0) {
		check(r == -EAGAIN || r == -EBADMSG || r == -EOPNOTSUPP);
		check((diag.text[0] == '\0') == (r == -EAGAIN));
		check(memcmp(&npy, &again, sizeof(npy)) == 0);
		return 0;
	}
	check(npy.rank <= STFS_ARRAY_SIZE(npy.shape));
	check(npy.header_size <= size && npy.header_size <= 12 + 65535);
	check(parse_exact(data, npy.header_size - 1, &again) == -EAGAIN);
	check(parse_exact(data, npy.header_size, &again) == 0 && again.header_size == npy.header_size);
	check_same(&again, &npy);
	check_written(&npy);
	return 0;
}
