/* SPDX-License-Identifier: MIT
 *
 * How often stacks are looked at. Fed with what looks cost and with what may be spent, it says how many
 * looks a second that makes. Pure: time and cost come in as numbers, so it is tested without a clock.
 *
 * A recorder's start is dear (a file is made, interpreters and names are found), and a short run would be
 * over before that is made up for by a mean over a minute. So what was spent above the budget since the
 * start is a debt, and it is paid back within seconds, by looking less often.
 */
#ifndef SPOTTER_ENGINE_STACK_PACE_H
#define SPOTTER_ENGINE_STACK_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the stack thread may use. */
struct stack_allowance {
	double share; /* of one core, in the long run; 0: as much as it likes */
	int64_t
	    debt_ns; /* CPU time of the whole recorder above its budget since its start; below 0: saved */
};

struct stack_pace {
	double hz;       /* asked for */
	double hz_now;   /* looks a second */
	unsigned stride; /* those that do not lead are looked at every so many times */
	double cost_ns;  /* CPU time of a look, a mean; 0: not known yet */
	unsigned looks;
	int64_t since_ns; /* when it was last governed */
};

void stack_pace_init(struct stack_pace *p, double hz);
/* A look was made: its CPU time, without that of finding interpreters. */
void stack_pace_look(struct stack_pace *p, int64_t cpu_ns);
/* After each look. True when the rate changed. followers: how many do not lead. */
bool stack_pace_govern(struct stack_pace *p, int64_t now_ns, const struct stack_allowance *a,
		       size_t followers);

/* An allowance for what comes in bursts: it fills with time up to `most`, and what is spent may leave it
 * below zero. */
struct stack_purse {
	int64_t left_ns, most_ns, at_ns;
};

/* At now_ns; share 0: never empty. True: there is something in it. */
bool stack_purse_fill(struct stack_purse *p, int64_t now_ns, double share);

#endif
