/* SPDX-License-Identifier: MIT
 *
 * Repeatable noise for property tests: a failure names its seed and comes again.
 */
#ifndef SPOTTER_TESTS_RANDOM_H
#define SPOTTER_TESTS_RANDOM_H

#include <stdint.h>

struct random {
	uint64_t state;
};

static inline uint64_t random_next(struct random *r)
{
	uint64_t x = r->state += 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* 0..n-1 */
static inline uint64_t random_below(struct random *r, uint64_t n)
{
	return random_next(r) % n;
}

#endif
