/* SPDX-License-Identifier: MIT
 *
 * A run in which no step ends: who it is that the others wait for. Of ranks in a collective all wait for the one that has
 * not come: it does something else, or it is a step behind.
 */
#include "fleet/judge.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A rank waits for others when it has been doing so for most of the last two minutes. */
#define MOSTLY 0.5
/* More of them, and it is not them: it is what all of them wait for. */
#define CULPRITS_MAX 0.25

static double lately_sum(const struct fleet *f, const struct fleet_rank *r)
{
	double all = 0;

	for (int i = 0; i < TIME_STATES; i++) {
		double x = fleet_ledger_of(f, r, (enum time_state)i, true);

		if (isfinite(x))
			all += x;
	}
	return all;
}

/* The share it waited for others lately; NAN: not known. */
static double waiting(const struct fleet *f, const struct fleet_rank *r)
{
	double all = lately_sum(f, r), comm = fleet_ledger_of(f, r, TIME_COMM_WAIT, true);

	return all > 0 ? (isfinite(comm) ? comm : 0) / all : NAN;
}

static enum time_state most_lately(const struct fleet *f, const struct fleet_rank *r)
{
	enum time_state best = TIME_OTHER;
	double most = 0;

	for (int i = 0; i < TIME_STATES; i++) {
		double x = fleet_ledger_of(f, r, (enum time_state)i, true);

		if (x > most) {
			most = x;
			best = (enum time_state)i;
		}
	}
	return best;
}

static int blame(const struct fleet *f, struct fleet_judged *j, struct fleet_judged_run *run,
		 uint32_t at, double steps_most)
{
	const struct fleet_rank *r = &f->ranks.v[at];
	double waits = waiting(f, r), all = lately_sum(f, r);
	struct fleet_suspect *s = suspect_new(j, f, at);
	uint32_t *member = vec_push(&j->members);

	if (!s || !member)
		return -ENOMEM;
	*member = at;
	s->members = 1;
	s->hung = true;
	run->suspects++;
	if (r->steps_ever < steps_most)
		suspect_say(s, "spotter_steps_total", r->steps_ever, steps_most,
			    "it has done %.0f steps, others %.0f", r->steps_ever, steps_most);
	if (isfinite(waits)) {
		enum time_state state = most_lately(f, r);

		suspect_say(s, "spotter_ledger_seconds_total",
			    fleet_ledger_of(f, r, state, true) / all, NAN,
			    "it is in %s %.0f %% of the time", time_state_name(state),
			    100 * fleet_ledger_of(f, r, state, true) / all);
	}
	return 0;
}

int hung_suspects(const struct fleet *f, struct fleet_judged *j, struct fleet_judged_run *run)
{
	const struct fleet_run *r = &f->runs.v[run->run];
	double steps_most = NAN, steps_least = NAN;
	size_t known = 0, free_of_it = 0, behind = 0;
	int e = 0;

	for (size_t i = 0; i < r->ranks; i++) {
		const struct fleet_rank *x = &f->ranks.v[f->rank_order[r->rank_from + i]];
		double w = waiting(f, x);

		if (!fleet_rank_live(f, x))
			continue;
		steps_most = fmax(steps_most, x->steps_ever);
		steps_least = fmin(steps_least, x->steps_ever);
		known += isfinite(w);
		free_of_it += w < MOSTLY;
	}
	for (size_t i = 0; i < r->ranks; i++) {
		const struct fleet_rank *x = &f->ranks.v[f->rank_order[r->rank_from + i]];

		behind += fleet_rank_live(f, x) && x->steps_ever < steps_most;
	}
	/* Who is in a step that others have not begun is no sign: only the few that are behind. */
	if (!behind || (double)behind > CULPRITS_MAX * (double)run->ranks)
		steps_most = NAN;
	if ((double)free_of_it > CULPRITS_MAX * (double)known)
		free_of_it = 0;
	for (size_t i = 0; e == 0 && i < r->ranks; i++) {
		uint32_t at = f->rank_order[r->rank_from + i];
		const struct fleet_rank *x = &f->ranks.v[at];

		if (run->ranks > 1 && fleet_rank_live(f, x) &&
		    (x->steps_ever < steps_most || (free_of_it && waiting(f, x) < MOSTLY)))
			e = blame(f, j, run, at, steps_most);
	}
	if (e == 0 && run->ranks == 1 && known)
		e = blame(f, j, run, f->rank_order[r->rank_from], NAN);
	if (e == 0 && !run->suspects && run->ranks > 1)
		snprintf(run->unknown, sizeof(run->unknown), "%s",
			 known ? "none of its ranks stands out from the others"
			       : "what its ranks do now is not known: that takes a record of each "
				 "('spotter run' or 'attach'), with stacks");
	return e;
}
