/* SPDX-License-Identifier: MIT
 *
 * All stacks of a run as one tree: who (a role, or a thread where that is not known), then its frames
 * from the outermost to the innermost, each with the wall time it was seen. What is too small to be seen
 * is put together as "(other)", so that the tree has a bounded size and still adds up.
 */
#ifndef SPOTTER_WEB_FLAME_H
#define SPOTTER_WEB_FLAME_H

#include "base/vec.h"
#include "model/window.h"

struct verdict;

enum { FLAME_NODES = 2500 };

struct flame_node {
	int32_t parent;          /* place in nodes, -1: of the first level */
	uint32_t function, file; /* places in strings; file 0: none */
	int32_t line;            /* 0: not known */
	double self_s, total_s;
};

/* {0} is empty. */
struct flame {
	double total_s;
	VEC(struct flame_node) nodes; /* parents before their children, the longest child first */
	VEC(char *) strings;          /* owned, safe to show; the first is "" */
};

/* At most `most` nodes (0: FLAME_NODES) and about `text` bytes of names. 0 or -errno; no stacks, or
 * none with a frame in it: an empty one. A thread that only waits and of which no frame is known is
 * left out. */
int flame_take(const struct window *w, const struct verdict *v, size_t most, size_t text,
	       struct flame *ret);
void flame_done(struct flame *f);

#endif
