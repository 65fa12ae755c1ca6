/* SPDX-License-Identifier: MIT
 *
 * What happened in one step: `spotter report --step N`.
 */
#ifndef SPOTTER_EXPLAIN_STEP_STORY_H
#define SPOTTER_EXPLAIN_STEP_STORY_H

#include "explain/activity.h"
#include "explain/steps.h"
#include "model/step_usage.h"

struct buf;
struct json;
struct render_style;

enum { STORY_GPUS = 16, STORY_LINES = 20 };

struct story_gpu {
	int index, partition;              /* partition -1: a whole GPU */
	const char *name;                  /* foreign text, borrowed */
	double busy, memory, power, clock; /* NAN not known */
	double usual_clock;
};

struct step_story {
	const struct window *window;
	const struct window_step *step, *before; /* before: NULL the first one */
	const struct step_group *group;
	double seconds; /* NAN: when it began is not known, and all below is neither */
	double aside;   /* aside: of it, in evaluation and the like */
	bool has_usage;
	struct step_usage usage;
	struct story_gpu gpus[STORY_GPUS];
	size_t n_gpus;
	/* Shares of the first thread's time (the critical one's, if it is of this process). */
	double state[TIME_STATES], unaccounted;
	int64_t tid; /* 0: no states, and then: */
	uint32_t samples;
	char why_no_states[160];
	char differs[240];
};

/* All steps with this number, one a process, by rank: how many were put (at most max). Borrows from w and s. */
size_t step_find(const struct window *w, const struct steps *s, uint64_t number,
		 const struct window_step **ret, size_t max);
/* 0 or -errno. */
int step_story(const struct window *w, const struct steps *s, const struct window_step *step,
	       struct step_story *ret);
/* Where nothing else differed: what its thread did most. */
void slow_step_state(const struct window *w, const struct steps *s, struct slow_step *slow);
void step_story_text(const struct step_story *x, const struct render_style *style, struct buf *out);
void step_story_json(const struct step_story *x, struct json *j);

#endif
