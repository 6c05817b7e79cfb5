/* SPDX-License-Identifier: Apache-2.0 */
#include "select.h"

#include <errno.h>

#include "name.h"

int stfs_selector_init(struct stfs_selector *selector, const char *text)
{
	struct stfs_slice typed = stfs_slice_of(text);
	int r;

	while (typed.len > 1 && typed.p[typed.len - 1] == '/')
		typed.len--;
	*selector = (struct stfs_selector){ .typed = typed };
	r = stfs_name_decode(&selector->decoded, typed, STFS_NESTED);
	if (r == -ENOMEM)
		return r;
	selector->is_path = r == 0;
	return 0;
}

void stfs_selector_fini(struct stfs_selector *selector)
{
	stfs_buf_fini(&selector->decoded);
}

/* Flax and others part their names with '/'. */
static bool is_separator(char c)
{
	return c == '.' || c == '/';
}

bool stfs_name_is_below(struct stfs_slice name, struct stfs_slice prefix)
{
	if (name.len < prefix.len || (prefix.len > 0 && memcmp(name.p, prefix.p, prefix.len) != 0))
		return false;
	return name.len == prefix.len || is_separator(name.p[prefix.len]) ||
	       (prefix.len > 0 && is_separator(prefix.p[prefix.len - 1]));
}

bool stfs_selector_match(struct stfs_selector *selector, struct stfs_slice name)
{
	bool match = stfs_name_is_below(name, selector->typed) ||
		     (selector->is_path && stfs_name_is_below(name, stfs_buf_slice(&selector->decoded)));

	selector->used |= match;
	return match;
}
