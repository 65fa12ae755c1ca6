/* SPDX-License-Identifier: MIT
 *
 * What is wrong in a fleet, and what it costs: pure, from a fleet to answers.
 *
 * In synchronous training all ranks take the same time for a step, as each waits for the slowest. So the straggler is
 * the rank that waits *least*: the one with the most work of its own in a step. Where nobody knows what ranks wait for
 * each other, nothing is said; the time of a step would name an innocent.
 */
#ifndef SPOTTER_FLEET_JUDGE_H
#define SPOTTER_FLEET_JUDGE_H

#include "fleet/fleet.h"

enum { FLEET_EVIDENCE_MAX = 5 };

struct fleet_evidence {
	char metric[56]; /* the series it is from; "" none */
	char text[120];
	double value, others; /* NAN: not known */
};

/* Ranks of one node that hold a run up for one reason. */
struct fleet_suspect {
	uint32_t run, node, worst;    /* worst: in fleet.ranks */
	size_t members_from, members; /* in fleet_judged.members: of fleet.ranks, by number */
	bool hung;                    /* the others wait for it, and no step ends */
	double own_s, others_s;       /* of a step: of the worst, and the median of all ranks */
	const char *cause;            /* id (explain/cause.h); NULL: not known */
	struct fleet_evidence evidence[FLEET_EVIDENCE_MAX];
	size_t evidence_n;
};

enum fleet_state {
	FLEET_RUNNING,
	FLEET_HUNG,
	FLEET_SILENT, /* it was up when its agents were last heard of */
	FLEET_ENDED,
	FLEET_STATES,
};

struct fleet_judged_run {
	uint32_t run;
	enum fleet_state state;
	size_t ranks, known; /* that are there; of those whose own work is known */
	size_t nodes, gpus;
	double seen_s;
	double step_s, rate_hz;
	double own_median_s, own_next_s,
	    own_max_s;                  /* next: the most of those that are no stragglers */
	double wait_least, wait_median; /* share of a step waited for other ranks */
	double data_median_s;
	double lost_share, lost_gpu_hours; /* to stragglers */
	size_t suspects_from, suspects;
	double quiet_s, quiet_limit_s; /* since the last step; from when on it is hung */
	double hung_gpu_hours, idle_gpu_hours;
	size_t idle_gpus;
	char unknown[180]; /* why stragglers cannot be told, or what might be missing; "" */
};

struct fleet_idle {
	uint32_t run, rank, gpu; /* rank: in fleet.ranks */
	double memory, gpu_hours;
};

/* One cause over all runs. */
struct fleet_waste {
	char cause[40];
	size_t runs, nodes;
	double gpu_hours;  /* NAN: no GPUs are known */
	double worst_cost; /* share of wall time, where it is highest */
	uint32_t worst_run;
	double confidence; /* there; NAN */
};

struct fleet_judged {
	VEC(struct fleet_judged_run) runs; /* what costs most comes first */
	VEC(struct fleet_suspect) suspects;
	VEC(uint32_t) members;
	VEC(struct fleet_idle) idle;
	VEC(struct fleet_waste) waste; /* the most first */
	size_t ranks, gpus, hung, silent, running, straggling;
	double gpu_hours; /* seen, of GPUs that runs hold */
	double lost_straggler, lost_hung, lost_idle;
};

/* -ENOMEM, or 0. The fleet is in order (fleet_order()). Called once to see what is wrong, and again when more has been
 * asked about that. */
int fleet_judge(const struct fleet *f, struct fleet_judged *ret);
void fleet_judged_done(struct fleet_judged *j);
const char *fleet_state_name(enum fleet_state s); /* "hung" */

/* A step's own work of a rank in seconds, or NAN: of the time of its steps the share that it did not wait for others. */
double fleet_own_s(const struct fleet_rank *r);
/* The time of its steps, or NAN. */
double fleet_step_s(const struct fleet_rank *r);

/* Parts of it. judge_cause.c: why these ranks are slower, against the others; in `ranks` numbers of fleet.ranks. */
struct fleet_peers {
	const uint32_t *v;
	size_t n;
};
void suspect_explain(const struct fleet *f, const struct fleet_judged_run *run,
		     struct fleet_peers others, struct fleet_suspect *s);
/* judge_hung.c: who it is that the others wait for. */
int hung_suspects(const struct fleet *f, struct fleet_judged *j, struct fleet_judged_run *run);
/* judge_loss.c: GPUs that are held and idle, and what verdicts cost. */
int judge_losses(const struct fleet *f, struct fleet_judged *j);
/* Sorts; the lower one of two in the middle: what is usual, as long as half of them are well. NAN of none. */
double lower_median(double *v, size_t n);
/* A new suspect with this rank as its worst; NULL without memory. */
struct fleet_suspect *suspect_new(struct fleet_judged *j, const struct fleet *f, uint32_t rank);
void suspect_say(struct fleet_suspect *s, const char *metric, double value, double others,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif
