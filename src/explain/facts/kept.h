/* SPDX-License-Identifier: MIT
 *
 * Lines that may keep what grows, as the stacks of the process that grows have them (kept.c, kept_when.c), and which
 * processes are loader workers for that (growth.c).
 */
#ifndef SPOTTER_EXPLAIN_FACTS_KEPT_H
#define SPOTTER_EXPLAIN_FACTS_KEPT_H

#include "explain/keeps/keeps.h"
#include "explain/scene.h"

enum { KEPT_LINES_MAX = 64 };

/* KEPT_CALLS: the line itself, in code of the program's own that it calls; KEPT_ITSELF: in nothing such. */
enum kept_seen { KEPT_NOT, KEPT_AROUND, KEPT_CALLS, KEPT_ITSELF };

enum kept_of { KEPT_OF_PROCESS, KEPT_OF_WORKERS, KEPT_OF_GPU };

struct kept_line {
	struct keep keep;
	uint32_t place;
	const char *file; /* of the book */
	/* Of the time of the thread that has it most: its loop or function, the line itself, what it calls. */
	double share, itself, calls;
	uint32_t thread; /* which, 0: none */
	int bonus, score;
};

struct kept_lines {
	struct kept_line v[KEPT_LINES_MAX];
	size_t n;
};

bool growth_is_worker(const struct scene *s, uint32_t process);
/* Is its loop or function in this stack, and the line itself? */
enum kept_seen kept_on_stack(const struct stack_book *b, uint32_t node, const struct kept_line *k);
/* Lines whose loop runs now and then: does the memory of the process grow while it runs, or while it does not? Sets bonus. */
void kept_when(const struct scene *s, uint32_t process, struct kept_lines *c);

#endif
