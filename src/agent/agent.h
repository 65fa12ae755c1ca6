/* SPDX-License-Identifier: MIT
 *
 * An always-on look at one machine: samples it once a second, finds the trainings on it, and has a view of all of it ready for
 * whoever asks. One thread ticks; any thread may ask.
 */
#ifndef SPOTTER_AGENT_AGENT_H
#define SPOTTER_AGENT_AGENT_H

#include "agent/view.h"
#include "model/series.h"
#include "sink/exposition.h"

struct agent;
struct buf;
struct err;
struct frame;

/* Texts must outlive the agent. */
struct agent_options {
	const char *root; /* fixture, NULL: this machine */
	const char *nvml; /* GPU library to load, NULL: the usual one */
	const char *node; /* what this machine is called in series, NULL: its hostname */
	const char
	    *records;     /* folder of records to follow, NULL: any that a recorder here writes */
	int64_t judge_ns; /* time between verdicts about a run with a record; 0: none */
	bool once;        /* no thread for records: agent_look_at_records() */
	bool replay;      /* measures nothing: agent_replay() is given what was measured */
	/* Further families for agent_expose(), of whoever has some: of what is pushed. NULL: none. */
	bool (*more)(const struct agent_view *v, series_fn fn, void *arg, void *more_arg);
	void *more_arg;
};

int agent_open(const struct agent_options *o, struct agent **ret, struct err *e);
/* One sample and a new view. 0, or -errno when nothing at all could be read; the view is the last one then. */
int agent_tick(struct agent *a);
/* A tick that was due was not taken in time. */
void agent_skip(struct agent *a, uint64_t ticks);
/* Fixtures: the next state of the machine; false: there is none. */
bool agent_advance(struct agent *a);
/* As a tick, of a frame that is there already: root has the environments of its processes, and nothing else is read. */
int agent_replay(struct agent *a, const struct frame *f);
/* Replays: a record to follow, which else is found by the file that its recorder has open. False: there are too many. */
bool agent_follow(struct agent *a, const char *path);
void agent_look_at_records(struct agent *a);
bool agent_has_gpus(const struct agent *a);
/* The view as text. */
void agent_expose(struct agent *a, enum exposition_format format, struct buf *out);
/* fn sees the view while nothing changes it: it must be quick. */
void agent_with_view(struct agent *a, void (*fn)(const struct agent_view *v, void *arg), void *arg);
void agent_close(struct agent *a);

struct entity;
/* Names and labels of a GPU, as the entity has them. */
void agent_describe_gpu(const struct entity *e, struct view_thing *t);

#endif
