/* SPDX-License-Identifier: MIT
 *
 * Every export format, in the order help shows them.
 */
#include "sink/sink.h"

#include "base/clock.h"

#include <string.h>

extern const struct sink_type csv_sink, parquet_sink, jsonl_sink, tensorboard_sink, perfetto_sink,
    speedscope_sink, collapsed_sink, openmetrics_sink;
/* By steps: --what steps chooses them. */
extern const struct sink_type steps_csv_sink, steps_parquet_sink;

const struct sink_type *const sinks[] = {
	&csv_sink,
	&parquet_sink,
	&jsonl_sink,
	&tensorboard_sink,
	&perfetto_sink,
	&speedscope_sink,
	&collapsed_sink,
	&openmetrics_sink,
	&steps_csv_sink,
	&steps_parquet_sink,
	NULL,
};

const struct sink_type *sink_by_name(const char *name)
{
	for (const struct sink_type *const *s = sinks; *s; s++)
		if (strcmp((*s)->name, name) == 0)
			return *s;
	return NULL;
}

int64_t sink_wall_ns(const struct run_info *run, int64_t t_ns)
{
	int64_t since, wall;

	/* A damaged file may hold any number. */
	if (__builtin_sub_overflow(t_ns, run->started_mono_ns, &since) ||
	    __builtin_add_overflow(run->started_wall_ns, since, &wall))
		return run->started_wall_ns;
	return wall;
}

bool sink_has_key(const struct entity *e)
{
	return e->key != 0 || e->kind == ENTITY_CPU;
}
