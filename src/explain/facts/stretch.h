/* SPDX-License-Identifier: MIT
 *
 * Stretches of a run that are not its steady window: the start, the end.
 */
#ifndef SPOTTER_EXPLAIN_FACTS_STRETCH_H
#define SPOTTER_EXPLAIN_FACTS_STRETCH_H

#include "explain/facts/stacked.h"

/* The line where the critical thread was most of the time, on a CPU or waiting; 0: not known. */
uint32_t stretch_place(const struct scene *s, int64_t from_ns, int64_t to_ns);

#endif
