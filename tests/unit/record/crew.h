/* SPDX-License-Identifier: MIT
 *
 * Made-up Python processes for tests of stacks: each has a main thread that wanders through its stacks
 * as programs do (the next moment is mostly near the last one), and two more that mostly wait. Frames
 * are filled as the sampler of stacks does, one slice a second; what was told is remembered.
 */
#ifndef SPOTTER_TESTS_CREW_H
#define SPOTTER_TESTS_CREW_H

#include "model/frame.h"
#include "random.h"

enum { CREW_STACKS = 200, CREW_DEPTH = 15, CREW_THREADS = 3, CREW_HZ = 50, CREW_MAX = 10 };

struct crew {
	struct random random;
	unsigned processes;
	struct stack_book book;
	uint32_t told_places, told_nodes;
	uint32_t stacks[CREW_MAX][CREW_STACKS]; /* nodes */
	unsigned at[CREW_MAX];                  /* stack its main thread is in */
	uint64_t samples;                       /* told so far */
	int64_t weight_ns;
};

void crew_init(struct crew *c, uint64_t seed, unsigned processes);
void crew_done(struct crew *c);
/* Adds the slice [from, to) to a frame, with the places and nodes that are new in it. */
void crew_slice(struct crew *c, struct frame *f, int64_t from_ns, int64_t to_ns);
/* Thread of a process: an entity. */
uint32_t crew_thread(unsigned process, unsigned thread);

#endif
