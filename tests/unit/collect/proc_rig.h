/* SPDX-License-Identifier: MIT
 *
 * Runs the process collector tick by tick, over a fixture root or the machine itself, and asks the
 * frames.
 */
#ifndef SPOTTER_TESTS_PROC_RIG_H
#define SPOTTER_TESTS_PROC_RIG_H

#include "../unit.h"

#include "base/err.h"
#include "collect/proc.h"
#include "model/entity.h"

#include <stdlib.h>

struct rig {
	struct host host;
	struct collect collect;
	void *state;
	struct frame frame; /* the last tick */
	struct entity_table entities;
	int64_t cpu_ns; /* job.cpu as it holds */
	int64_t ended_ns;
	unsigned ticks;
};

/* root NULL: the machine. */
static inline void rig_open(struct rig *r, const char *root, pid_t job, pid_t reaper)
{
	struct err e = { 0 };
	char path[512];

	*r = (struct rig){ 0 };
	snprintf(path, sizeof(path), "%s/%s", ROOTS, root ? root : "");
	assert_int_equal(host_open(&r->host, root ? path : NULL, &e), 0);
	r->collect = (struct collect){ .host = &r->host,
				       .job = { .root = job, .reaper = reaper },
				       .next_id = ID_FIRST_FREE,
				       .thrift = 1 };
	r->state = calloc(1, proc_collector.state_size);
	assert_non_null(r->state);
	assert_int_equal(proc_collector.open(&r->collect, r->state, &r->frame), 0);
}

static inline void rig_close(struct rig *r)
{
	proc_collector.close(r->state);
	free(r->state);
	frame_done(&r->frame);
	entity_table_done(&r->entities);
	host_close(&r->host);
}

/* The value put in the last frame, or `absent`. Put twice is a fault. */
static inline int64_t rig_value(const struct rig *r, enum metric_id metric, uint32_t entity,
				int64_t absent)
{
	int64_t v = absent;
	bool found = false;

	for (size_t i = 0; i < r->frame.samples.n; i++) {
		const struct sample *s = &r->frame.samples.v[i];

		if (s->metric != metric || s->entity != entity)
			continue;
		assert_false(found);
		found = true;
		v = s->raw;
	}
	return v;
}

static inline void rig_tick(struct rig *r, bool slow)
{
	int64_t mono, wall;

	if (r->ticks++)
		assert_true(host_advance(&r->host));
	host_clock(&r->host, &mono, &wall, &r->collect.boot_ns);
	frame_begin(&r->frame, mono, wall);
	r->collect.slow = slow;
	assert_int_equal(proc_collector.read(&r->collect, r->state, &r->frame), 0);
	assert_false(r->frame.failed);
	assert_int_equal(entity_table_frame(&r->entities, &r->frame), 0);
	r->cpu_ns = rig_value(r, M_JOB_CPU, ID_JOB, r->cpu_ns);
	r->ended_ns = rig_value(r, M_JOB_CPU_ENDED, ID_JOB, r->ended_ns);
}

/* The entity of this kind and key that was born last, gone or not. NULL: none. */
static inline const struct entity *rig_find(const struct rig *r, enum entity_kind kind, int64_t key)
{
	for (size_t i = r->entities.rows.n; i-- > 0;)
		if (r->entities.rows.v[i].kind == kind && r->entities.rows.v[i].key == key)
			return &r->entities.rows.v[i];
	return NULL;
}

static inline uint32_t rig_id(const struct rig *r, enum entity_kind kind, int64_t key)
{
	const struct entity *e = rig_find(r, kind, key);

	assert_non_null(e);
	return e->id;
}

static inline int64_t proc_value(const struct rig *r, enum metric_id metric, pid_t pid)
{
	return rig_value(r, metric, rig_id(r, ENTITY_PROC, pid), -1);
}

static inline int64_t thread_value(const struct rig *r, enum metric_id metric, pid_t tid)
{
	return rig_value(r, metric, rig_id(r, ENTITY_THREAD, tid), -1);
}

static inline int64_t job_value(const struct rig *r, enum metric_id metric)
{
	return rig_value(r, metric, ID_JOB, -1);
}

/* Changes of this kind of life in the last frame, of one entity (0: of all of that kind). */
static inline int rig_lives(const struct rig *r, enum life_change change, enum entity_kind kind,
			    uint32_t id)
{
	int n = 0;

	for (size_t i = 0; i < r->frame.lives.n; i++) {
		const struct life *l = &r->frame.lives.v[i];

		n += l->change == change && l->kind == kind && (!id || l->id == id);
	}
	return n;
}

static inline const struct event *rig_event(const struct rig *r, enum event_kind kind,
					    uint32_t entity)
{
	for (size_t i = 0; i < r->frame.events.n; i++)
		if (r->frame.events.v[i].kind == kind && r->frame.events.v[i].entity == entity)
			return &r->frame.events.v[i];
	return NULL;
}

static inline int rig_gaps(const struct rig *r, enum metric_id metric, uint32_t entity,
			   enum gap_why why)
{
	int n = 0;

	for (size_t i = 0; i < r->frame.gaps.n; i++) {
		const struct gap *g = &r->frame.gaps.v[i];

		n += g->metric == metric && g->entity == entity && g->why == why;
	}
	return n;
}

#endif
