/* SPDX-License-Identifier: MIT
 *
 * From where the function is called that a finding points at: the line that is hot may be in a helper, and the line to change
 * where it is asked for.
 */
#ifndef SPOTTER_EXPLAIN_CALLERS_H
#define SPOTTER_EXPLAIN_CALLERS_H

#include "explain/scene.h"
#include "model/finding.h"

/* Places and nodes of the scene, read once for all findings. NULL: no stacks, or no memory; then nobody is told of. */
struct callers;
struct callers *callers_open(const struct scene *s);
void callers_close(struct callers *c);
/* Fills x->where.callers, with none where no line has most of the calls, a library calls it, or it is the loop itself. */
void callers_tell(struct callers *c, struct finding *x);

#endif
