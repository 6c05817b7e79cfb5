/* SPDX-License-Identifier: Apache-2.0 */
#include "utf8.h"

/* What may follow a lead byte (RFC 3629, section 4): length, and the bounds of the second byte. */
static size_t lead_length(uint8_t lead, uint8_t *ret_low, uint8_t *ret_high)
{
	*ret_low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
	*ret_high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
	if (lead < 0x80)
		return 1;
	if (lead >= 0xc2 && lead <= 0xdf)
		return 2;
	if (lead >= 0xe0 && lead <= 0xef)
		return 3;
	if (lead >= 0xf0 && lead <= 0xf4)
		return 4;
	return 0;
}

size_t stfs_utf8_next(struct stfs_slice s, uint32_t *ret_code)
{
	const uint8_t *p = (const uint8_t *)s.p;
	uint8_t low, high;
	uint32_t code;
	size_t n;

	if (s.len == 0)
		return 0;
	n = lead_length(p[0], &low, &high);
	if (n == 0 || n > s.len)
		return 0;
	code = n == 1 ? p[0] : p[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if (p[i] < (i == 1 ? low : 0x80) || p[i] > (i == 1 ? high : 0xbf))
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	*ret_code = code;
	return n;
}

size_t stfs_utf8_invalid(struct stfs_slice s)
{
	size_t at = 0;

	while (at < s.len) {
		uint64_t word;
		uint32_t code;
		size_t n;

		/* Headers are ASCII but for rare names: eight bytes a step. */
		if (s.len - at >= sizeof(word)) {
			memcpy(&word, s.p + at, sizeof(word));
			if (!(word & UINT64_C(0x8080808080808080))) {
				at += sizeof(word);
				continue;
			}
		}
		n = stfs_utf8_next((struct stfs_slice){ s.p + at, s.len - at }, &code);
		if (n == 0)
			return at;
		at += n;
	}
	return at;
}
