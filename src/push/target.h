/* SPDX-License-Identifier: MIT
 *
 * One address with its queue and the thread that sends: what is given to it is put into a box in memory, from there
 * into the queue, and from the queue's head to the other side, one request at a time, so that samples arrive in order.
 */
#ifndef SPOTTER_PUSH_TARGET_H
#define SPOTTER_PUSH_TARGET_H

#include "push/push.h"

struct err;
struct target;

/* Opens the queue and starts the thread. */
int target_open(const struct push_options *o, const struct push_address *a, struct target **ret,
		struct err *e);
/* Takes the memory of `body` over. Never waits. */
void target_give(struct target *t, struct buf *body, uint32_t samples);
void target_stats(struct target *t, struct push_stats *ret);
/* To be over by then (monotonic). Does not wait. */
void target_end(struct target *t, int64_t deadline_ns);
/* Waits for the thread until then, or leaves it alone: it then frees everything should it ever come back. */
void target_close(struct target *t, int64_t deadline_ns, struct push_stats *ret);

#endif
