/* SPDX-License-Identifier: MIT
 *
 * Time series for SQL. On a connection to a run file:
 *
 *	samples(t, metric, entity, kind, key, name, value, unit)
 *	rollups(t, t_end, metric, entity, kind, key, name, min, max, last, mean, growth, unit)
 *	stack_samples(t, t_end, entity, stack, state, waits_on, peer, flags, samples, seconds)
 *	step_usage: the columns of the file's view `steps`, and cpu_cores, memory, gpu_busy, gpu_memory,
 *		gpu_power; `steps` is a view of it
 *	median(x), percentile(x, p)	p from 0 to 100
 *
 * t is seconds since the run started, key the pid, tid or CPU number. `WHERE metric = ...`, entity,
 * kind and ranges of t decide what is read at all; everything else is filtered afterwards. Samples
 * of processes and threads are there when they changed and hold until the next one.
 */
#ifndef SPOTTER_RECORD_VTAB_H
#define SPOTTER_RECORD_VTAB_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct sqlite3;
struct sqlite3_stmt;

/* 0 or -errno. */
int vtab_register(struct sqlite3 *db);

/* vtab_stack.c, vtab_steps.c, aggregate.c: a code of SQLite's. */
int vtab_stack_register(struct sqlite3 *db);
int vtab_steps_register(struct sqlite3 *db);
int aggregate_register(struct sqlite3 *db);

/* vtab_source.c: what a query needs to know of the file it runs on. */
struct source_metric {
	int64_t id;
	char *name, *unit, *group;
	double scale;
	bool counter, wanted;
};

struct source {
	struct sqlite3 *db;
	struct sqlite3_stmt *find_entity;
	int64_t start_ns;
	VEC(struct source_metric) metrics;
	/* Of the entity asked for last. */
	int64_t entity, key;
	bool has_entity, has_key;
	char *name;
};

/* A code of SQLite's. */
int source_open(struct source *s, struct sqlite3 *db);
void source_done(struct source *s);
/* By its id in the file; NULL: none, or not wanted. */
const struct source_metric *source_metric(const struct source *s, uint64_t id);
/* Fills ->name, ->key; both absent when there is no such entity. */
void source_entity(struct source *s, int64_t entity);
/* The group an entity's series are in: "process", ... or NULL when it is unknown. To be freed. */
char *source_group(struct source *s, int64_t entity);
/* Start of what retention left of the fine roll-ups of a group; INT64_MIN: all is there. */
int64_t source_fine_from(struct source *s, const char *group);

#endif
