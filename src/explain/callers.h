/* SPDX-License-Identifier: MIT
 *
 * From where the function is called that a finding points at: the line that is hot may be in a helper, and the line to change
 * where it is asked for.
 */
#ifndef SPOTTER_EXPLAIN_CALLERS_H
#define SPOTTER_EXPLAIN_CALLERS_H

#include "explain/scene.h"
#include "model/finding.h"

/* Fills x->where.callers, with none where no line has most of the calls, a library calls it, or it is the loop itself. */
void callers_tell(const struct scene *s, struct finding *x);

#endif
