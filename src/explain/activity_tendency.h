/* SPDX-License-Identifier: MIT
 *
 * What a thread does with its time, as far as its stacks tell: for roles and the critical thread (activity_role.c,
 * activity_critical.c) only.
 */
#ifndef SPOTTER_EXPLAIN_ACTIVITY_TENDENCY_H
#define SPOTTER_EXPLAIN_ACTIVITY_TENDENCY_H

#include "explain/activity_part.h"

/* What the samples of a thread say about it, seconds. */
struct tendency {
	double total, python;
	double child, join; /* waits for processes, for threads that it started */
	double load, queue; /* makes data, waits to be given something */
	double loader;      /* waits for a batch */
	double train;       /* frames that only a training has */
	double engine;      /* of these: gradients, which no loader computes */
	double comm;        /* of these: collectives, where others are waited for */
	double ready;       /* on a CPU, or queued for one */
	double reads;       /* waits for storage */
	double learn;       /* in lines of the program's own that learn */
	double spawned;     /* a process that multiprocessing started */
	double role[ROLES];
};

/* Of its time: a process that computes gradients. */
static const double engine_least = 0.02;
/* Deeper than any chain of launchers. */
enum { LAUNCHERS_MAX = 16 };

struct tendency tendency_of(const struct scene *s, const struct node_reader *r,
			    const struct act_thread *t);
/* A launcher (shell, torchrun, mpirun) waits for what it started for nearly all of its time. */
bool tends_to_launch(const struct tendency *x);
/* The same of threads that it started. */
bool tends_to_join(const struct tendency *x);
/* What the fork server forked has the server's command line, and a body of its own. */
bool tends_to_body(const struct tendency *x);
/* The first thread of a process; NULL: none was seen. */
const struct act_thread *first_thread_of(const struct scene *s, uint32_t process);

#endif
