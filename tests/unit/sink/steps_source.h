/* SPDX-License-Identifier: MIT
 *
 * A small run of two ranks with steps, scalars, phases, samples and a slice of stacks, for the formats
 * that show them: hostile names, a step whose beginning is not known, a loss that was not said.
 */
#ifndef SPOTTER_TESTS_SINK_STEPS_SOURCE_H
#define SPOTTER_TESTS_SINK_STEPS_SOURCE_H

#include "base/buf.h"
#include "sink/sink.h"

#include <math.h>
#include <stdlib.h>

#define AT(s) (5000000000ll + (int64_t)((s)*1e9))

static const struct window_step said_steps[] = {
	{ 0, 16, 1, AT(1), AT(1), 2.5, NAN, 0 },
	{ 0, 16, 2, AT(1), AT(1.5), 2.25, 0.125, 0 },
	{ 1, 17, 2, AT(1), AT(1.75), NAN, 0.5, 4 },
	{ 0, 16, 3, AT(3), AT(4), 1.75, 0.25, 0 },
};
static const struct window_scalar said_scalars[] = {
	{ "acc,\"u\"\033[2J", 16, 0, AT(1.1), 1, 0.5 },
	{ "lr", 17, 1, AT(1.8), 2, 0.001 },
	{ "lr", 17, 1, AT(1.9), 2, 0.0005 },
};
static const struct window_phase said_phases[] = {
	{ "epoch", 16, AT(0.5), 0 },
	{ "evaluate", 16, AT(1.5), AT(3) },
};

struct steps_source {
	struct run_info run;
	struct entity_table entities;
};

/* The first process has used two cores all along; nothing else is known. */
static inline int its_points(void *src, enum metric_id m, uint32_t entity, int64_t from, int64_t to,
			     int64_t step_ns, window_point_fn fn, void *arg)
{
	(void)src;
	(void)step_ns;
	if (m != M_PROC_CPU || entity != 16)
		return -ENODATA;
	for (int64_t t = AT(0); t <= AT(5); t += 100000000) {
		double v = 2 * (double)(t - AT(0)) / 1e9;

		if (t > from && t <= to && !fn(&(struct point){ t, v, v, v, t, v }, arg))
			break;
	}
	return 0;
}

static inline int no_stat(void *src, enum metric_id m, uint32_t entity, int64_t from, int64_t to,
			  struct series_stat *ret)
{
	(void)src;
	(void)m;
	(void)entity;
	(void)from;
	(void)to;
	(void)ret;
	return -ENODATA;
}

static inline const struct entity_table *its_entities(void *src)
{
	return &((struct steps_source *)src)->entities;
}

static inline const struct run_info *its_run(void *src)
{
	return &((struct steps_source *)src)->run;
}

static inline const struct window_step *its_steps(void *src, size_t *n)
{
	(void)src;
	*n = ARRAY_LEN(said_steps);
	return said_steps;
}

static inline const struct window_scalar *its_scalars(void *src, size_t *n)
{
	(void)src;
	*n = ARRAY_LEN(said_scalars);
	return said_scalars;
}

static const struct window_ops steps_ops = {
	.stat = no_stat,
	.each = its_points,
	.entities = its_entities,
	.run = its_run,
	.steps = its_steps,
	.scalars = its_scalars,
};

static inline void steps_source_make(struct steps_source *x)
{
	*x = (struct steps_source){ .run = { .id = "20231114-221320-0001",
					     .name = "train",
					     .started_wall_ns = 1700000000000000000ll,
					     .started_mono_ns = AT(0),
					     .ended_mono_ns = AT(5),
					     .hz = 10,
					     .state = RUN_ENDED } };
	static const struct entity rows[] = {
		{ .id = ID_JOB, .kind = ENTITY_JOB, .name = (char *)"train" },
		{ .id = 16, .kind = ENTITY_PROC, .key = 42, .name = (char *)"python3" },
		{ .id = 17, .kind = ENTITY_PROC, .key = 43, .name = (char *)"py\033[2J\xff" },
		{ .id = 18,
		  .parent = 16,
		  .kind = ENTITY_THREAD,
		  .key = 42,
		  .name = (char *)"main" },
		{ .id = 19, .kind = ENTITY_GPU, .key = 1, .name = (char *)"H100" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct entity e = rows[i];

		e.born_ns = AT(0);
		e.detail = (char *)"";
		assert_int_equal(entity_table_add(&x->entities, &e), 0);
	}
}

static inline void steps_source_samples(const struct sink_type *sink, void *state,
					const struct sink_source *src, struct buf *out)
{
	for (int i = 0; sink->sample && i <= 4; i++) {
		struct sink_sample cpu = { AT(i), "job.cpu", "seconds", KIND_COUNTER,
					   true,  ID_JOB,    1.5 * i };
		struct sink_sample gpu = { AT(i), "gpu.busy", "ratio",  KIND_GAUGE,
					   true,  19,         0.125 * i };
		struct sink_sample newer = { AT(i), "newer.metric", "count", KIND_GAUGE, false, 99,
					     1 };

		assert_int_equal(sink->sample(state, src, &cpu, out), 0);
		assert_int_equal(sink->sample(state, src, &gpu, out), 0);
		assert_int_equal(sink->sample(state, src, &newer, out), 0);
	}
}

static inline void steps_source_write(const struct sink_type *sink, struct buf *out)
{
	struct steps_source x;
	struct window w = { &steps_ops, &x, AT(0), AT(5) };
	struct sink_source src = { .run = &x.run, .entities = &x.entities, .window = &w };
	struct window_event event = { AT(2), EVENT_OOM_KILL, 16, 1, "killed \xff it" };
	struct stack_row rows[] = {
		{ .entity = 18, .kind = WAIT_PIPE, .count = 3, .weight_ns = 3 },
		{ .entity = 18, .kind = WAIT_RUNNING, .count = 1, .weight_ns = 1 },
		{ .entity = 99, .kind = 200, .count = 1, .weight_ns = 1 }
	};
	struct stack_slice slice = { AT(1), AT(2), rows, ARRAY_LEN(rows) };
	void *state = calloc(1, sink->state_size + 1);
	size_t scalar = 0;

	assert_non_null(state);
	steps_source_make(&x);
	assert_int_equal(sink->begin(state, &src, out), 0);
	for (size_t i = 0; sink->phase && i < ARRAY_LEN(said_phases); i++)
		assert_int_equal(sink->phase(state, &src, &said_phases[i], out), 0);
	for (size_t i = 0; i < ARRAY_LEN(said_steps); i++) {
		for (; sink->scalar && scalar < ARRAY_LEN(said_scalars) &&
		       said_scalars[scalar].t_ns <= said_steps[i].end_ns;
		     scalar++)
			assert_int_equal(sink->scalar(state, &src, &said_scalars[scalar], out), 0);
		assert_int_equal(sink->step(state, &src, &said_steps[i], out), 0);
	}

	steps_source_samples(sink, state, &src, out);
	if (sink->event)
		assert_int_equal(sink->event(state, &src, &event, out), 0);
	if (sink->stack)
		assert_int_equal(sink->stack(state, &src, &slice, out), 0);
	assert_int_equal(sink->end(state, &src, out), 0);
	assert_true(buf_ok(out));
	if (sink->done)
		sink->done(state);
	free(state);
	entity_table_done(&x.entities);
}

#endif
