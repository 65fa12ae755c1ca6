/* SPDX-License-Identifier: MIT
 *
 * A collector reads one source of the world into frames: raw counters in, no rates, no policy, no
 * clock of its own, no log, no allocation in read() once warm. To add one: write collect/NAME.c that
 * ends in `const struct collector NAME_collector`, add its row to all.c and its metrics to
 * model/metrics.def, and prove it with a fixture root, a unit test and a fuzz target.
 */
#ifndef SPOTTER_COLLECT_COLLECTOR_H
#define SPOTTER_COLLECT_COLLECTOR_H

#include "collect/host.h"
#include "model/frame.h"

/* What is watched. */
struct job_spec {
	pid_t root;   /* first process of the job; 0: every process of the machine */
	pid_t reaper; /* process to which orphans of the job fall (the recorder), 0: none */
};

struct collect {
	const struct host *host;
	struct job_spec job;
	uint32_t next_id; /* next free entity id; take with collect_id() */
	int64_t boot_ns;  /* boot clock of this tick */
	bool slow;        /* a tick on which rare, dear readings are due (every 5 s) */
	/* 1: full depth. The governor raises it when over budget: rare readings get rarer. */
	unsigned thrift;
};

static inline uint32_t collect_id(struct collect *c)
{
	return c->next_id++;
}

struct collector {
	const char *name, *help;
	size_t state_size; /* zeroed memory given to every call */
	/* Time between reads in ns; 0: every tick. */
	int64_t every_ns;
	/* Looks whether the source is there, and announces fixed entities. 0, or -ENOENT, -EACCES,
	 * -EOPNOTSUPP: the source is absent (the engine notes a gap for `sample_metric`), not a fault. */
	int (*open)(struct collect *c, void *state, struct frame *f);
	/* 0, or -errno when this reading failed as a whole; what was put stays. */
	int (*read)(struct collect *c, void *state, struct frame *f);
	void (*close)(void *state);
	enum metric_id sample_metric; /* what is missing when this collector is */
};

extern const struct collector *const collectors[]; /* all.c; NULL-terminated, in running order */

#endif
