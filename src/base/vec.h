/* SPDX-License-Identifier: MIT
 *
 * A typed growing array: `VEC(struct sample) samples;` {0} is empty. vec_push() is an expression
 * that gives a pointer to the new, zeroed element, or NULL without memory; the array is then as it
 * was. Growth is by half, so an array that has been warm stays allocation-free.
 */
#ifndef SPOTTER_BASE_VEC_H
#define SPOTTER_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define VEC(type)              \
	struct {               \
		type *v;       \
		size_t n, cap; \
	}

/* `v` is the address of a pointer of any type: read and written as bytes, as the types differ. */
static inline bool vec_grow_(void *v, size_t *cap, size_t need, size_t size)
{
	size_t cap2 = *cap + *cap / 2 + 8;
	void *p;

	if (need <= *cap)
		return true;
	if (cap2 < need)
		cap2 = need;
	if (cap2 > (size_t)-1 / 2 / size)
		return false;
	memcpy(&p, v, sizeof(p));
	p = realloc(p, cap2 * size);
	if (!p)
		return false;
	memcpy(v, &p, sizeof(p));
	*cap = cap2;
	return true;
}

#define vec_reserve(a, need) vec_grow_(&(a)->v, &(a)->cap, (need), sizeof(*(a)->v))

#define vec_push(a)                                                              \
	(vec_reserve((a), (a)->n + 1)                                            \
	     ? (__typeof__((a)->v))memset(&(a)->v[(a)->n++], 0, sizeof(*(a)->v)) \
	     : (__typeof__((a)->v))NULL)

#define vec_done(a) (free((a)->v), (a)->v = NULL, (a)->n = (a)->cap = 0)

#endif
