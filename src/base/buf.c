/* SPDX-License-Identifier: Apache-2.0 */
#include "buf.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void stfs_buf_fini(struct stfs_buf *buf)
{
	free(buf->data);
	*buf = (struct stfs_buf){ 0 };
}

int stfs_buf_reserve(struct stfs_buf *buf, size_t extra)
{
	size_t need, cap;
	char *data;

	if (extra > SIZE_MAX / 2 || buf->len > SIZE_MAX / 2)
		return -ENOMEM;
	need = buf->len + extra + 1;
	if (need <= buf->cap)
		return 0;
	cap = buf->cap + buf->cap / 2;
	if (cap < need)
		cap = need;
	if (cap < 64)
		cap = 64;
	data = realloc(buf->data, cap);
	if (!data)
		return -ENOMEM;
	buf->data = data;
	buf->cap = cap;
	return 0;
}

int stfs_buf_append(struct stfs_buf *buf, const void *data, size_t len)
{
	int r = stfs_buf_reserve(buf, len);

	if (r < 0)
		return r;
	if (len)
		memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
	return 0;
}

int stfs_buf_append_char(struct stfs_buf *buf, char c)
{
	return stfs_buf_append(buf, &c, 1);
}

int stfs_buf_append_str(struct stfs_buf *buf, const char *s)
{
	return stfs_buf_append(buf, s, strlen(s));
}

int stfs_buf_printf(struct stfs_buf *buf, const char *fmt, ...)
{
	va_list ap;
	int n, r;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	r = stfs_buf_reserve(buf, (size_t)n);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	vsnprintf(buf->data + buf->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	buf->len += (size_t)n;
	return 0;
}
