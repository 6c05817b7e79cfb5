/* SPDX-License-Identifier: Apache-2.0 */
#include "hash.h"

#include <endian.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

struct state {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate_left(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void sip_round(struct state *s)
{
	s->v0 += s->v1;
	s->v1 = rotate_left(s->v1, 13) ^ s->v0;
	s->v0 = rotate_left(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = rotate_left(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = rotate_left(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = rotate_left(s->v1, 17) ^ s->v2;
	s->v2 = rotate_left(s->v2, 32);
}

static inline void absorb(struct state *s, uint64_t word)
{
	s->v3 ^= word;
	sip_round(s);
	s->v0 ^= word;
}

/* Up to eight bytes as a little-endian word, the missing ones zero. */
static inline uint64_t load_word(const uint8_t *p, size_t len)
{
	uint64_t word = 0;

	if (len)
		memcpy(&word, p, len);
	return le64toh(word);
}

uint64_t stfs_hash(struct stfs_hash_key key, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t left = len;
	struct state s = {
		key.k0 ^ UINT64_C(0x736f6d6570736575),
		key.k1 ^ UINT64_C(0x646f72616e646f6d),
		key.k0 ^ UINT64_C(0x6c7967656e657261),
		key.k1 ^ UINT64_C(0x7465646279746573),
	};

	for (; left >= 8; p += 8, left -= 8)
		absorb(&s, load_word(p, 8));
	absorb(&s, load_word(p, left) | (uint64_t)len << 56);
	s.v2 ^= 0xff;
	sip_round(&s);
	sip_round(&s);
	sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

struct stfs_hash_key stfs_hash_key_random(void)
{
	struct stfs_hash_key key, mix;
	struct timespec now = { 0 };

	/* Not blocking: a mount early at boot must not wait for entropy. */
	if (getrandom(&key, sizeof(key), GRND_NONBLOCK) == (ssize_t)sizeof(key))
		return key;
	clock_gettime(CLOCK_MONOTONIC, &now);
	mix = (struct stfs_hash_key){ (uint64_t)(uintptr_t)&mix, (uint64_t)(uintptr_t)&stfs_hash_key_random };
	key.k0 = stfs_hash(mix, &now, sizeof(now));
	key.k1 = stfs_hash(mix, &key.k0, sizeof(key.k0));
	return key;
}
