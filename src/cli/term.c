/* SPDX-License-Identifier: Apache-2.0 */
#include "term.h"

#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "quote.h"
#include "utf8.h"

#define MIN_COLUMNS 40
#define MAX_COLUMNS 1000
#define PLAIN_ROWS 48 /* output to a file or pipe is read with a pager */

/* A positive number from the environment, else `otherwise`. */
static unsigned number_from_env(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);
	char *end;
	long n;

	if (!text)
		return otherwise;
	n = strtol(text, &end, 10);
	return end != text && *end == '\0' && n > 0 && n <= MAX_COLUMNS ? (unsigned)n : otherwise;
}

static bool wants_colour(void)
{
	const char *no_color = getenv("NO_COLOR"), *type = getenv("TERM");

	return !(no_color && *no_color) && type && *type && strcmp(type, "dumb") != 0;
}

void stfs_term_init(struct stfs_term *term)
{
	struct winsize size = { 0 };

	setlocale(LC_CTYPE, "");
	*term = (struct stfs_term){
		.tty = isatty(STDOUT_FILENO) == 1,
		.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
		.columns = 80,
		.rows = PLAIN_ROWS,
	};
	if (term->tty) {
		term->rows = 24;
		if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
			term->columns = size.ws_col;
			term->rows = size.ws_row;
		}
		term->colour = wants_colour();
	}
	term->columns = number_from_env("COLUMNS", term->columns);
	term->rows = number_from_env("LINES", term->rows);
	term->columns = STFS_MIN(STFS_MAX(term->columns, MIN_COLUMNS), MAX_COLUMNS);
}

/* Columns of the character at the start of `s`, and its bytes in *ret_len. */
static size_t char_width(struct stfs_slice s, size_t *ret_len)
{
	uint32_t code;
	size_t len = stfs_utf8_next(s, &code);
	int w;

	*ret_len = len ? len : 1;
	w = len ? wcwidth((wchar_t)code) : 1;
	return w < 0 ? 1 : (size_t)w;
}

/* The bytes of `s` that fit into `columns`, and the columns they take. */
static size_t fit(struct stfs_slice s, size_t columns, size_t *ret_width)
{
	size_t used = 0, width = 0;

	while (used < s.len) {
		size_t len, w = char_width((struct stfs_slice){ s.p + used, s.len - used }, &len);

		if (w > columns - width)
			break;
		width += w;
		used += len;
	}
	*ret_width = width;
	return used;
}

size_t stfs_term_width(struct stfs_slice s)
{
	size_t width;

	fit(s, SIZE_MAX, &width);
	return width;
}

int stfs_term_append_cut(const struct stfs_term *term, struct stfs_buf *buf, struct stfs_slice s, size_t columns)
{
	const char *ellipsis = term->utf8 ? "…" : "...";
	size_t ellipsis_width = term->utf8 ? 1 : 3;
	_cleanup_buf_ struct stfs_buf shown = { 0 };
	size_t width, used, enough = 16 * columns;
	bool long_text = s.len > enough;
	int r;

	/* A value may be megabytes, and only its beginning can be seen. Whole characters are kept. */
	while (long_text && enough > 0 && ((unsigned char)s.p[enough] & 0xC0) == 0x80)
		enough--;
	r = stfs_append_printable(&shown, (struct stfs_slice){ s.p, long_text ? enough : s.len });
	if (r < 0)
		return r;
	used = fit(stfs_buf_slice(&shown), columns, &width);
	if (used == shown.len && !long_text)
		return stfs_buf_append(buf, shown.data, shown.len);
	used = fit(stfs_buf_slice(&shown), columns - STFS_MIN(columns, ellipsis_width), &width);
	r = stfs_buf_append(buf, shown.data, used);
	return r < 0 ? r : stfs_buf_append_str(buf, ellipsis);
}
