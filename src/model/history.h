/* SPDX-License-Identifier: MIT
 *
 * The recent past in memory: the live twin of the file reader, for `top`, for `why PID` and for live
 * views. Frames go in, a window comes out. Series are rings of a fixed number of points; entities
 * that ended longer ago than the rings reach are forgotten.
 */
#ifndef SPOTTER_MODEL_HISTORY_H
#define SPOTTER_MODEL_HISTORY_H

#include "model/window.h"

struct history;

/* points: ring length of each series. run is copied. NULL without memory. */
struct history *history_new(const struct run_info *run, unsigned points);
void history_free(struct history *h);
int history_frame(struct history *h, const struct frame *f);
/* From the first kept tick (or from_ns) to the last. Borrowed; valid until the next frame. */
struct window history_window(struct history *h, int64_t from_ns);
struct run_info *history_run(struct history *h);
int64_t history_last_ns(const struct history *h);

#endif
