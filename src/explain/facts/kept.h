/* SPDX-License-Identifier: MIT
 *
 * Lines that may keep what grows, as the stacks of the process that grows have them (kept.c, kept_nodes.c,
 * kept_when.c), and which processes are loader workers for that (growth.c).
 */
#ifndef SPOTTER_EXPLAIN_FACTS_KEPT_H
#define SPOTTER_EXPLAIN_FACTS_KEPT_H

#include "explain/keeps/keeps.h"
#include "explain/scene.h"

enum { KEPT_LINES_MAX = 64 }; /* a bit each */

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

/* Of a stack, by its innermost node; a bit for each of kept_lines. */
struct kept_node {
	uint64_t in;     /* its loop or function is on the stack */
	uint64_t calls;  /* the line itself, in code of the program's own that it calls */
	uint64_t itself; /* the line itself, in nothing such */
};

struct kept_nodes {
	struct kept_node *v; /* by id; of 0, which is no stack: nothing */
	size_t n;
};

/* 0 or -ENOMEM; of the lines as they are in order now. */
int kept_nodes_open(struct kept_nodes *ret, const struct stack_book *b, const struct kept_lines *c);
void kept_nodes_done(struct kept_nodes *k);

static inline const struct kept_node *kept_node_of(const struct kept_nodes *k, uint32_t node)
{
	return &k->v[node < k->n ? node : 0];
}

bool growth_is_worker(const struct scene *s, uint32_t process);
/* Lines whose loop runs now and then: does the memory of the process grow while it runs, or while it does not? Sets bonus. */
void kept_when(const struct scene *s, uint32_t process, const struct kept_nodes *nodes,
	       struct kept_lines *c);

#endif
