/* SPDX-License-Identifier: MIT
 *
 * A look at a fleet for people and for programs.
 */
#ifndef SPOTTER_FLEET_RENDER_H
#define SPOTTER_FLEET_RENDER_H

#include "fleet/ask.h"

struct buf;

struct fleet_page {
	const char *engine; /* safe to show */
	bool one_run;       /* with a table of its ranks */
	unsigned width;     /* columns; 0: 80 */
	bool color;
};

/* At most some sixty lines, however large the fleet is. */
void fleet_text(const struct ask *a, const struct fleet_page *p, struct buf *out);
/* Everything ("schema": "spotter.fleet/1"); what is not known is an absent key. */
void fleet_json(const struct ask *a, const char *engine, struct buf *out);

/* "rank 7", "ranks 56-63", "ranks 1, 5, 9 and 3 more"; "its process" where it has no number. Sorted. */
void fleet_rank_names(const struct fleet *f, const uint32_t *ranks, size_t n, struct buf *out);
/* The GPU this rank holds, the first of several; NULL none. */
const struct fleet_gpu *fleet_gpu_of(const struct fleet *f, uint32_t rank);

#endif
