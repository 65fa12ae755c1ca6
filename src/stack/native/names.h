/* SPDX-License-Identifier: MIT
 *
 * Texts that are kept once each and do not move until all go.
 */
#ifndef SPOTTER_STACK_NATIVE_NAMES_H
#define SPOTTER_STACK_NATIVE_NAMES_H

#include "base/map.h"
#include "base/vec.h"

#define NAMES_BYTES_MAX (2u << 20) /* where nothing else is said; symbols have some 30 bytes each */

struct names {
	VEC(char *) blocks;
	size_t block_n, block_cap; /* used and size of the last block */
	size_t bytes, max;         /* max 0: NAMES_BYTES_MAX */
	VEC(const char *) texts;
	struct map by_hash;
};

/* The text, terminated; "" for the empty one, without memory, or when there are too many. */
const char *names_keep(struct names *n, const char *text, size_t length);
void names_done(struct names *n);

#endif
