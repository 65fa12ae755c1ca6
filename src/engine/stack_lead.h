/* SPDX-License-Identifier: MIT
 *
 * Who of the job leads, and is looked at every time; the others (loader workers, mostly, which are many and alike) take turns
 * where looks are dear.
 */
#ifndef SPOTTER_ENGINE_STACK_LEAD_H
#define SPOTTER_ENGINE_STACK_LEAD_H

#include "engine/stack_job.h"

/* After every birth and end. */
void stack_lead_find(struct stack_job *j);
/* In every look: asks once a second who of them does anything. */
void stack_lead_watch(struct stack_job *j, int64_t now_ns);

#endif
