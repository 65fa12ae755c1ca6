/* SPDX-License-Identifier: MIT
 *
 * Each text once: names that come again and again (of scalars, of phases) are kept in one copy that
 * stays where it is. Bounded, as the names are foreign.
 */
#ifndef SPOTTER_MODEL_NAME_SET_H
#define SPOTTER_MODEL_NAME_SET_H

#include "base/map.h"
#include "base/vec.h"

enum { NAME_SET_MAX = 1 << 14 };

/* {0} is empty. */
struct name_set {
	VEC(char *) names;
	struct map by_hash;
};

void name_set_done(struct name_set *s);
/* The one copy, good until name_set_done(); NULL without memory, or when there are too many. */
const char *name_set_add(struct name_set *s, const char *name);
/* FNV-1a, 64 bits. */
uint64_t name_hash(const char *name);

#endif
