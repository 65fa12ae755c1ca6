/* SPDX-License-Identifier: MIT
 *
 * GPUs in the frame: takes the newest reading of the GPU client (which never blocks) and turns it
 * into entities, samples, gaps and events. Whose process is whose is decided here, because only here
 * both sides are known: what the driver lists, and the processes of the job.
 *
 * A GPU that is lost or hangs ends as an entity, so that its last figures are not taken for those of
 * the time after; when it answers again it is born anew under the same key.
 */
#ifndef SPOTTER_ENGINE_GPU_WATCH_H
#define SPOTTER_ENGINE_GPU_WATCH_H

#include "collect/collector.h"

struct err;
struct gpu_watch;

/* nvml: library to load, NULL the usual one. Nothing is started before the first tick. */
int gpu_watch_open(const struct host *host, const char *nvml, struct gpu_watch **ret,
		   struct err *e);
/* After the collectors: the frame's lives tell which processes the job has. last: the last look at the
 * job, so that what is still going on is told with its time so far. */
void gpu_watch_tick(struct gpu_watch *w, struct collect *c, struct frame *f, bool last);
/* CPU time and resident memory of the processes that read GPUs; 0 when there are none. */
int64_t gpu_watch_cpu_ns(const struct gpu_watch *w);
int64_t gpu_watch_rss_bytes(const struct gpu_watch *w);
void gpu_watch_close(struct gpu_watch *w);

#endif
