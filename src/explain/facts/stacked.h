/* SPDX-License-Identifier: MIT
 *
 * What the sources of facts from stacks share: the critical thread, which threads are loader workers,
 * and the place that has most of some time.
 */
#ifndef SPOTTER_EXPLAIN_FACTS_STACKED_H
#define SPOTTER_EXPLAIN_FACTS_STACKED_H

#include "explain/fact.h"
#include "explain/scene.h"

/* The thread training waits for; NULL when it cannot be spoken of, with the reason. */
const struct act_thread *stacked_critical(const struct activity *a, const char **ret_why);

/* One of those that load ahead for the critical thread: not for another rank, and not a member of a
 * pool that was never seen to load. A worker process is one worker, whatever its other threads are. */
bool stacked_is_worker(const struct scene *s, const struct act_thread *t);

/* Is the row time in which data was loaded or transformed? In a worker all that is not waiting for
 * something to do. */
bool stacked_loads(const struct act_row *r, bool worker);

/* Was it ever seen to run Python? */
bool stacked_has_python(const struct activity *a, const struct act_thread *t);

/* Seconds of a thread in stacks that are about any of these topics (TOPIC_BIT()s), of what is known; with
 * `heat` their innermost lines of the program's own (or, without any, of a library) are added to it. */
struct heat;
double stacked_topics(const struct activity *a, const struct act_thread *t, uint32_t topics,
		      struct heat *heat);

/* Time by function, and the hottest line of the one that has most of it. {0} is empty. */
struct heat {
	struct map by_function, by_place; /* key -> place in the vectors */
	VEC(struct heat_row {
		uint64_t key; /* of its function */
		uint32_t place;
		bool lined; /* the place is a line, not only a function */
		double seconds;
	})
	functions, lines;
	double seconds;
	bool failed; /* no memory: it has no hottest line */
};
void heat_add(struct heat *h, const struct stack_book *b, uint32_t place, double seconds);
/* Place of the hottest line of the hottest function, 0: none; and what that function has. */
uint32_t heat_top(const struct heat *h, double *ret_seconds);
/* Seconds of this place, of this function. */
double heat_of_place(const struct heat *h, uint32_t place);
double heat_of_function(const struct heat *h, uint64_t function);
/* Place of the hottest line of this function, 0: none. */
uint32_t heat_line(const struct heat *h, uint64_t function);
void heat_done(struct heat *h);

#endif
