/* SPDX-License-Identifier: MIT
 *
 * Reads what the program's processes mark (steps, loss, phases) out of their rings into the sampler's frames.
 * In the sampler's thread: a ring that has nothing new costs a read of its header a tick (1 us).
 */
#ifndef SPOTTER_ENGINE_MARK_WATCH_H
#define SPOTTER_ENGINE_MARK_WATCH_H

#include "model/frame.h"

struct collect;
struct err;
struct mark_watch;

/* Holds the folder and removes what others left behind. 0 or -errno with the reason in e. */
int mark_watch_open(const char *folder, struct mark_watch **ret, struct err *e);
/* After the collectors have filled f: learns its lives, looks for new rings, and adds what was marked since
 * the last time, in order for each process. Processes that lived between two looks and left a ring are told
 * of by c's next ids. last: all there is, however much. */
void mark_watch_tick(struct mark_watch *w, struct collect *c, struct frame *f, bool last);
/* Removes the folder. */
void mark_watch_close(struct mark_watch *w);

#endif
