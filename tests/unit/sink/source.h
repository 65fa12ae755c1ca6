/* SPDX-License-Identifier: MIT
 *
 * A small run that every format writes in its test: odd names, a CPU 0, an entity nobody announced.
 */
#ifndef SPOTTER_TESTS_SINK_SOURCE_H
#define SPOTTER_TESTS_SINK_SOURCE_H

#include "base/buf.h"
#include "sink/sink.h"

#define START_MONO 5000000000ll
#define START_WALL 1700000000000000000ll

static inline void source_make(struct run_info *run, struct entity_table *t)
{
	char *argv[] = { (char *)"python", (char *)"train \"it\".py", NULL };

	*run = (struct run_info){ .id = "20231114-221320-0001",
				  .name = "train",
				  .started_wall_ns = START_WALL,
				  .started_mono_ns = START_MONO,
				  .ended_mono_ns = START_MONO + 2500000000ll,
				  .hz = 10,
				  .state = RUN_ENDED,
				  .has_exit = true,
				  .exit_code = 3 };
	assert_int_equal(run_info_set_argv(run, argv), 0);
	*t = (struct entity_table){ 0 };
	entity_table_add(t, &(struct entity){ .id = 16,
					      .kind = ENTITY_PROC,
					      .key = 42,
					      .born_ns = START_MONO,
					      .name = (char *)"a,\"b\"\033[2J\xc2\x9b",
					      .detail = (char *)"python train.py" });
	entity_table_add(t, &(struct entity){ .id = 17,
					      .kind = ENTITY_CPU,
					      .key = 0,
					      .born_ns = START_MONO,
					      .name = (char *)"cpu0",
					      .detail = (char *)"" });
}

static inline void source_write(const struct sink_type *sink, struct buf *out)
{
	struct run_info run;
	struct entity_table t;
	struct sink_source src = { .run = &run, .entities = &t };
	char state[64] = { 0 };
	const struct sink_sample samples[] = {
		{ START_MONO + 100000000, "proc.cpu", "seconds", KIND_COUNTER, true, 16, 0.1 },
		{ START_MONO + 100000000, "core.frequency", "hertz", KIND_GAUGE, true, 17, 2.4e9 },
		{ START_MONO + 1100000000, "newer.metric", "count", KIND_GAUGE, false, 99,
		  1.0 / 3 },
	};
	const struct window_event event = { START_MONO + 1000000000, EVENT_OOM_KILL, 16, 9,
					    "killed \"it\"" };

	assert_true(sink->state_size <= sizeof(state));
	source_make(&run, &t);
	assert_int_equal(sink->begin(state, &src, out), 0);
	for (size_t i = 0; i < 3; i++) {
		if (i == 2)
			assert_int_equal(sink->event(state, &src, &event, out), 0);
		assert_int_equal(sink->sample(state, &src, &samples[i], out), 0);
	}
	assert_int_equal(sink->end(state, &src, out), 0);
	assert_true(buf_ok(out));
	entity_table_done(&t);
	run_info_done(&run);
}

#endif
