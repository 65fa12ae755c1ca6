/* SPDX-License-Identifier: MIT
 *
 * The newest value of what is measured: frames go in, one number a metric and thing comes out. No past: whoever scrapes keeps
 * that. A thing that ended, or a reading that is refused or stale, has no value.
 */
#ifndef SPOTTER_AGENT_WORLD_H
#define SPOTTER_AGENT_WORLD_H

#include "base/map.h"
#include "model/entity.h"

struct world {
	struct entity_table entities; /* those that live */
	struct map index;             /* entity << 16 | metric -> place in raw */
	VEC(int64_t) raw;
	VEC(uint32_t) unused; /* places in raw */
};

/* 0 or -ENOMEM. */
int world_frame(struct world *w, const struct frame *f);
bool world_raw(const struct world *w, enum metric_id m, uint32_t entity, int64_t *ret);
/* In the metric's unit; NAN: there is none. */
double world_value(const struct world *w, enum metric_id m, uint32_t entity);
void world_done(struct world *w);

#endif
