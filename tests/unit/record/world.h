/* SPDX-License-Identifier: MIT
 *
 * A made-up machine for tests of the record: processes and threads are born, run, sleep and end,
 * counters grow and are reset, gauges wander, things happen. It fills frames as the sampler does and
 * remembers every sample, so that what comes back from a file can be compared with what went in.
 */
#ifndef SPOTTER_TESTS_WORLD_H
#define SPOTTER_TESTS_WORLD_H

#include "base/map.h"
#include "base/vec.h"
#include "model/entity.h"
#include "model/frame.h"
#include "model/run.h"
#include "random.h"

struct world_sample {
	int64_t t_ns, raw;
};

struct world_series {
	enum metric_id metric;
	uint32_t entity;
	VEC(struct world_sample) v; /* all that was put, in the file's units */
};

struct world_task {
	uint32_t id, parent;
	enum entity_kind kind;
	bool alive, idle;
	int64_t cpu, delay, slices, rss;
};

struct world {
	struct random random;
	int64_t start_ns, t_ns;
	uint32_t next_id;
	unsigned tasks_max, ticks;
	bool quiet; /* no events but the ends of processes */
	int64_t host[METRICS];
	VEC(struct world_task) tasks;
	struct frame frame;
	struct entity_table entities;
	VEC(struct world_series) series;
	struct map by_key;
	size_t events, gaps;
};

void world_init(struct world *w, uint64_t seed, unsigned tasks_max);
void world_done(struct world *w);
/* The next frame, `step_ns` after the one before. */
struct frame *world_tick(struct world *w, int64_t step_ns);
void world_run(const struct world *w, struct run_info *ret);
const struct world_series *world_find(const struct world *w, enum metric_id m, uint32_t entity);
/* A fresh path in a folder of its own; the folder goes with world_rm. */
void test_path(char *ret, size_t size);
void test_path_rm(const char *path);

#endif
