/* SPDX-License-Identifier: Apache-2.0 */
#include "substitute.h"

#include <errno.h>
#include <locale.h>
#include <string.h>

#include "quote.h"
#include "utf8.h"

#define GROUPS 10 /* the whole match, and \1 to \9 */

void stfs_use_utf8_names(void)
{
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		setlocale(LC_CTYPE, "");
}

void stfs_substitute_fini(struct stfs_substitute *substitute)
{
	if (substitute->compiled)
		regfree(&substitute->regex);
	stfs_buf_fini(&substitute->replacement);
	*substitute = (struct stfs_substitute){ 0 };
}

/*
 * Takes the part up to the next delimiter. An escaped delimiter is the character itself; all other escapes are left to
 * whoever reads the part. Returns what follows the delimiter, or NULL with *ret_error.
 */
static const char *take_part(const char *text, char delimiter, struct stfs_buf *part, int *ret_error)
{
	*ret_error = stfs_buf_append_str(part, "");
	for (; *ret_error == 0 && *text && *text != delimiter; text++) {
		if (text[0] == '\\' && text[1]) {
			if (text[1] != delimiter)
				*ret_error = stfs_buf_append_char(part, '\\');
			text++;
		}
		if (*ret_error == 0)
			*ret_error = stfs_buf_append_char(part, *text);
	}
	if (*ret_error == 0 && *text != delimiter)
		*ret_error = -EINVAL;
	return *ret_error < 0 ? NULL : text + 1;
}

static int take_flags(const char *flags, bool *ret_all, int *cflags, struct stfs_diag *diag)
{
	for (; *flags; flags++) {
		if (*flags == 'g')
			*ret_all = true;
		else if (*flags == 'i' || *flags == 'I')
			*cflags |= REG_ICASE;
		else
			return stfs_fail(diag, -EINVAL, "unknown flag %s of an expression: g and i are known",
					 stfs_quote(stfs_slice_of((char[]){ *flags, '\0' })).text);
	}
	return 0;
}

/* A group that is not there would be silently nothing. */
static int check_groups(const struct stfs_substitute *substitute, struct stfs_diag *diag)
{
	const char *p = substitute->replacement.data;

	for (; *p; p++) {
		if (*p != '\\' || !p[1])
			continue;
		p++;
		if (*p >= '1' && *p <= '9' && (size_t)(*p - '0') > substitute->regex.re_nsub)
			return stfs_fail(diag, -EINVAL, "the expression has no group \\%c", *p);
	}
	return 0;
}

static int compile(struct stfs_substitute *substitute, const char *pattern, int cflags, struct stfs_diag *diag)
{
	char why[200];
	int r = regcomp(&substitute->regex, pattern, cflags);

	if (r == REG_ESPACE)
		return -ENOMEM;
	if (r != 0) {
		regerror(r, &substitute->regex, why, sizeof(why));
		return stfs_fail(diag, -EINVAL, "bad regular expression %s: %s",
				 stfs_quote(stfs_slice_of(pattern)).text, why);
	}
	substitute->compiled = true;
	return check_groups(substitute, diag);
}

int stfs_substitute_init(struct stfs_substitute *substitute, const char *expression, struct stfs_diag *diag)
{
	_cleanup_buf_ struct stfs_buf pattern = { 0 };
	const char *rest = expression;
	int cflags = REG_EXTENDED, r = -EINVAL;

	*substitute = (struct stfs_substitute){ 0 };
	if (rest[0] == 's' && rest[1] && rest[1] != '\\')
		rest = take_part(expression + 2, expression[1], &pattern, &r);
	if (r == 0)
		rest = take_part(rest, expression[1], &substitute->replacement, &r);
	if (r == -EINVAL)
		stfs_diag_set(diag, "%s is no expression such as 's/OLD/NEW/'",
			      stfs_quote(stfs_slice_of(expression)).text);
	if (r == 0)
		r = take_flags(rest, &substitute->all, &cflags, diag);
	if (r == 0)
		r = compile(substitute, pattern.data, cflags, diag);
	if (r < 0)
		stfs_substitute_fini(substitute);
	return r;
}

static int append_group(struct stfs_buf *buf, const char *text, const regmatch_t *group)
{
	if (group->rm_so < 0)
		return 0;
	return stfs_buf_append(buf, text + group->rm_so, (size_t)(group->rm_eo - group->rm_so));
}

static int append_replacement(const struct stfs_substitute *substitute, struct stfs_buf *buf, const char *text,
			      const regmatch_t *groups)
{
	const char *p = substitute->replacement.data;
	int r = 0;

	for (; r == 0 && *p; p++) {
		if (*p == '&') {
			r = append_group(buf, text, &groups[0]);
			continue;
		}
		if (*p == '\\' && p[1]) {
			p++;
			if (*p >= '0' && *p <= '9') {
				r = append_group(buf, text, &groups[*p - '0']);
				continue;
			}
		}
		r = stfs_buf_append_char(buf, *p);
	}
	return r;
}

/* Appends the character at the start of *text, and goes past it. Returns false at the end. */
static bool pass_character(struct stfs_buf *buf, const char **text, int *r)
{
	uint32_t code;
	size_t len = stfs_utf8_next(stfs_slice_of(*text), &code);

	if (!**text)
		return false;
	len = len ? len : 1;
	*r = stfs_buf_append(buf, *text, len);
	*text += len;
	return *r == 0;
}

/* Replaces what matches in `text`, which ends with a NUL. Returns as stfs_substitute_apply. */
static int replace(const struct stfs_substitute *substitute, const char *text, struct stfs_buf *buf)
{
	regmatch_t groups[GROUPS];
	bool matched = false, adjacent = false;
	int r = 0, flags = 0;

	while (r == 0 && regexec(&substitute->regex, text, GROUPS, groups, flags) == 0) {
		bool empty = groups[0].rm_so == groups[0].rm_eo;

		/* As in sed, nothing is found right behind a match. */
		if (!(empty && groups[0].rm_so == 0 && adjacent)) {
			matched = true;
			r = stfs_buf_append(buf, text, (size_t)groups[0].rm_so);
			if (r == 0)
				r = append_replacement(substitute, buf, text, groups);
			text += groups[0].rm_eo;
		}
		if (r < 0 || !substitute->all || (empty && !pass_character(buf, &text, &r)))
			break;
		adjacent = !empty;
		flags = REG_NOTBOL;
	}
	if (r == 0 && matched)
		r = stfs_buf_append_str(buf, text);
	return r < 0 ? r : matched;
}

int stfs_substitute_apply(const struct stfs_substitute *substitute, struct stfs_slice text, struct stfs_buf *buf)
{
	_cleanup_buf_ struct stfs_buf copy = { 0 };
	int r;

	if (text.len && memchr(text.p, '\0', text.len))
		return 0;
	r = stfs_buf_append_str(&copy, "");
	if (r == 0)
		r = stfs_buf_append(&copy, text.p, text.len);
	return r < 0 ? r : replace(substitute, copy.data, buf);
}
