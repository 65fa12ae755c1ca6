/* SPDX-License-Identifier: MIT */
#include "fleet/judge.h"

#include "base/num.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A straggler is slower than the others by more than they differ among themselves: five times the scatter (median
 * absolute deviation, as that of a normal distribution; of 4,096 ranks by chance one exceeds 3.5) and at least a
 * twentieth of a step. Two or three ranks do not show what scatter is usual: a tenth. */
#define SCATTERS     5.0
#define MAD_SIGMA    1.4826
#define LEAST_SHARE  0.05
#define LEAST_OF_FEW 0.10
/* A mean of fewer steps is one slow step. */
#define STEPS_LEAST 5.0
/* Hung: no step for ten steps, and for a minute. */
#define HUNG_STEPS 10.0
#define HUNG_S     60.0
/* Where even the busiest waits for more than this, it is not one of those that are seen. */
#define WAIT_ODD 0.15

const char *fleet_state_name(enum fleet_state s)
{
	static const char *const names[FLEET_STATES] = { "running", "hung", "silent", "ended" };

	return names[s];
}

void fleet_judged_done(struct fleet_judged *j)
{
	vec_done(&j->runs);
	vec_done(&j->suspects);
	vec_done(&j->members);
	vec_done(&j->idle);
	vec_done(&j->waste);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double lower_median(double *v, size_t n)
{
	if (!n)
		return NAN;
	qsort(v, n, sizeof(*v), by_value);
	return v[(n - 1) / 2];
}

double fleet_step_s(const struct fleet_rank *r)
{
	if (r->steps_timed >= STEPS_LEAST && r->step_seconds > 0)
		return r->step_seconds / r->steps_timed;
	if (r->steps >= STEPS_LEAST && r->own >= 0 && r->comm >= 0 && r->own + r->comm > 0)
		return (r->own + r->comm) / r->steps;
	return NAN;
}

double fleet_own_s(const struct fleet_rank *r)
{
	double step = fleet_step_s(r), all = r->own + r->comm;

	/* The agent learns of waits a while after the steps: a share of what it has seen, not a sum. */
	return isfinite(step) && r->own >= 0 && r->comm >= 0 && all > 0 ? step * r->own / all : NAN;
}

/* Ranks that are where the run is, with a number for each; what is not known is left out. */
struct column {
	double *v;
	uint32_t *rank;
	size_t n;
};

static void gather(const struct fleet *f, const struct fleet_run *run,
		   double (*value)(const struct fleet_rank *), struct column *ret)
{
	ret->n = 0;
	for (size_t i = 0; i < run->ranks; i++) {
		uint32_t at = f->rank_order[run->rank_from + i];
		double x = value(&f->ranks.v[at]);

		if (!isfinite(x) || !fleet_rank_live(f, &f->ranks.v[at]))
			continue;
		ret->v[ret->n] = x;
		ret->rank[ret->n++] = at;
	}
}

static double data_s(const struct fleet_rank *r)
{
	return r->steps >= STEPS_LEAST && r->data >= 0 ? r->data / r->steps : NAN;
}

static double wait_share(const struct fleet_rank *r)
{
	double all = r->own + r->comm;

	return isfinite(fleet_own_s(r)) ? r->comm / all : NAN;
}

static double steps_of(const struct fleet_rank *r)
{
	return r->steps;
}

static double last_step(const struct fleet_rank *r)
{
	return r->last_step_s;
}

static void say_unknown(struct fleet_judged_run *j, const struct fleet_run *run)
{
	if (j->ranks < 2 && run->world < 2)
		return;
	if (!j->known)
		snprintf(
		    j->unknown, sizeof(j->unknown),
		    "how long its ranks wait for each other is not known: that takes a record of "
		    "each ('spotter run' or 'attach'), with stacks, and %g steps in the window",
		    STEPS_LEAST);
	else if (j->known < 2)
		snprintf(
		    j->unknown, sizeof(j->unknown),
		    "the own work of one rank only is known: there is nothing to compare it with");
	else if (run->world > 0 && j->known < (size_t)run->world)
		snprintf(j->unknown, sizeof(j->unknown),
			 "the own work of %zu of %d ranks is known%s", j->known, (int)run->world,
			 j->wait_least > WAIT_ODD
			     ? ", and all of them wait: the one they wait for is not among them"
			     : ": a slower one may be among the others");
	else if (j->wait_least > WAIT_ODD)
		snprintf(
		    j->unknown, sizeof(j->unknown),
		    "every rank waits for at least %.0f %% of a step: it is communication itself, "
		    "or a rank that is not seen",
		    100 * j->wait_least);
}

struct fleet_suspect *suspect_new(struct fleet_judged *j, const struct fleet *f, uint32_t rank)
{
	struct fleet_suspect *s = vec_push(&j->suspects);

	if (s) {
		s->run = f->ranks.v[rank].run;
		s->node = f->ranks.v[rank].node;
		s->worst = rank;
		s->members_from = j->members.n;
		s->own_s = s->others_s = NAN;
	}
	return s;
}

/* Stragglers of one node stand together: eight at once are a matter of the node. */
static int group(const struct fleet *f, struct fleet_judged *j, struct fleet_judged_run *run,
		 const struct column *own, double limit)
{
	for (size_t i = 0; i < own->n; i++) {
		uint32_t node = f->ranks.v[own->rank[i]].node;
		struct fleet_suspect *s = NULL;
		bool done = own->v[i] <= limit;

		for (size_t k = run->suspects_from; k < j->suspects.n && !done; k++)
			done = j->suspects.v[k].node == node;
		if (done)
			continue;
		if (!(s = suspect_new(j, f, own->rank[i])))
			return -ENOMEM;
		s->others_s = run->own_median_s;
		for (size_t k = i; k < own->n; k++) {
			uint32_t *member;

			if (own->v[k] <= limit || f->ranks.v[own->rank[k]].node != node)
				continue;
			if (!(member = vec_push(&j->members)))
				return -ENOMEM;
			*member = own->rank[k];
			s->members++;
			if (!(own->v[k] <= s->own_s)) {
				s->own_s = own->v[k];
				s->worst = own->rank[k];
			}
		}
		run->suspects++;
	}
	return 0;
}

static int explain_suspects(const struct fleet *f, struct fleet_judged *j,
			    const struct fleet_judged_run *run, struct column *own, double limit)
{
	size_t n = 0;

	for (size_t i = 0; i < own->n; i++)
		if (own->v[i] <= limit)
			own->rank[n++] = own->rank[i];
	for (size_t i = 0; i < run->suspects; i++)
		suspect_explain(f, run, (struct fleet_peers){ own->rank, n },
				&j->suspects.v[run->suspects_from + i]);
	return 0;
}

static int find_stragglers(const struct fleet *f, struct fleet_judged *j,
			   struct fleet_judged_run *run, struct column *own, double *scratch)
{
	double step = run->step_s, limit, mad, least;
	int r;

	memcpy(scratch, own->v, own->n * sizeof(*scratch));
	run->own_median_s = lower_median(scratch, own->n);
	for (size_t i = 0; i < own->n; i++)
		scratch[i] = fabs(own->v[i] - run->own_median_s);
	mad = lower_median(scratch, own->n);
	least = (own->n < 4 ? LEAST_OF_FEW : LEAST_SHARE) * step;
	limit = run->own_median_s + fmax(SCATTERS * MAD_SIGMA * mad, least);
	run->own_max_s = run->own_next_s = run->own_median_s;
	for (size_t i = 0; i < own->n; i++) {
		run->own_max_s = fmax(run->own_max_s, own->v[i]);
		if (own->v[i] <= limit)
			run->own_next_s = fmax(run->own_next_s, own->v[i]);
	}
	if (run->own_max_s <= limit)
		return 0;
	run->lost_share = fmin(1, (run->own_max_s - run->own_next_s) / step);
	r = group(f, j, run, own, limit);
	return r < 0 ? r : explain_suspects(f, j, run, own, limit);
}

static void judge_state(const struct fleet *f, struct fleet_judged_run *j,
			const struct fleet_run *run, double newest_step)
{
	double step =
	    isfinite(run->mean_step_s) && run->mean_step_s > 0 ? run->mean_step_s : j->step_s;

	j->nodes = run->nodes;
	j->gpus = run->gpus;
	j->state = !run->up ? FLEET_ENDED : run->here ? FLEET_RUNNING : FLEET_SILENT;
	j->quiet_s = f->now_s - newest_step;
	j->quiet_limit_s = fmax(HUNG_S, isfinite(step) ? HUNG_STEPS * step : 0);
	/* Clocks of nodes differ from the engine's: counters that move are no hang, whatever they say. */
	if (j->state == FLEET_RUNNING && j->quiet_s > j->quiet_limit_s && !(run->moves > 0))
		j->state = FLEET_HUNG;
}

static int judge_run(const struct fleet *f, struct fleet_judged *all, uint32_t at, double *scratch,
		     struct column *c)
{
	const struct fleet_run *run = &f->runs.v[at];
	struct fleet_judged_run *j = vec_push(&all->runs);
	double newest = NAN, hours;
	int r = 0;

	if (!j)
		return -ENOMEM;
	*j = (struct fleet_judged_run){ .run = at,
					.seen_s = fleet_seen_s(f, run),
					.own_median_s = NAN,
					.own_next_s = NAN,
					.own_max_s = NAN,
					.wait_least = NAN,
					.lost_gpu_hours = NAN,
					.hung_gpu_hours = NAN,
					.suspects_from = all->suspects.n };
	for (size_t i = 0; i < run->ranks; i++)
		j->ranks += fleet_rank_live(f, &f->ranks.v[f->rank_order[run->rank_from + i]]);
	gather(f, run, last_step, c);
	for (size_t i = 0; i < c->n; i++)
		newest = fmax(newest, c->v[i]);
	gather(f, run, fleet_step_s, c);
	j->step_s = lower_median(c->v, c->n);
	gather(f, run, steps_of, c);
	j->rate_hz = lower_median(c->v, c->n) / j->seen_s;
	gather(f, run, data_s, c);
	j->data_median_s = lower_median(c->v, c->n);
	gather(f, run, wait_share, c);
	j->wait_median = lower_median(c->v, c->n);
	if (c->n)
		j->wait_least = c->v[0];
	judge_state(f, j, run, newest);
	gather(f, run, fleet_own_s, c);
	j->known = c->n;
	/* Of one that is over nobody said when that was. */
	hours = j->gpus && run->here && run->up ? (double)j->gpus * j->seen_s / 3600 : NAN;
	if (j->state == FLEET_HUNG) {
		j->hung_gpu_hours = j->gpus ? (double)j->gpus * j->quiet_s / 3600 : NAN;
		return hung_suspects(f, all, j);
	}
	if (c->n >= 2)
		r = find_stragglers(f, all, j, c, scratch);
	say_unknown(j, run);
	if (j->lost_share > 0)
		j->lost_gpu_hours = j->lost_share * hours;
	return r;
}

static double cost(const struct fleet_judged_run *r)
{
	double sum = r->idle_gpu_hours;

	if (isfinite(r->lost_gpu_hours))
		sum += r->lost_gpu_hours;
	if (isfinite(r->hung_gpu_hours))
		sum += r->hung_gpu_hours;
	return sum;
}

static int by_cost(const void *a, const void *b)
{
	const struct fleet_judged_run *x = a, *y = b;
	double c = cost(x), d = cost(y);

	if (c != d)
		return c < d ? 1 : -1;
	return (x->run > y->run) - (x->run < y->run);
}

static void add_up(struct fleet_judged *j)
{
	for (size_t i = 0; i < j->runs.n; i++) {
		const struct fleet_judged_run *r = &j->runs.v[i];

		j->ranks += r->ranks;
		j->gpus += r->gpus;
		if (r->state == FLEET_RUNNING || r->state == FLEET_HUNG)
			j->gpu_hours += (double)r->gpus * r->seen_s / 3600;
		j->running += r->state == FLEET_RUNNING;
		j->hung += r->state == FLEET_HUNG;
		j->silent += r->state == FLEET_SILENT;
		j->straggling += r->lost_share > 0;
		j->lost_idle += r->idle_gpu_hours;
		if (isfinite(r->lost_gpu_hours))
			j->lost_straggler += r->lost_gpu_hours;
		/* Of a hang only what is within the window: the sums are of the same hours. */
		if (isfinite(r->hung_gpu_hours))
			j->lost_hung +=
			    r->hung_gpu_hours * fmin(1, r->seen_s / fmax(r->quiet_s, 1e-9));
	}
}

int fleet_judge(const struct fleet *f, struct fleet_judged *ret)
{
	size_t n = f->ranks.n ? f->ranks.n : 1;
	struct column c = { .v = calloc(n, sizeof(double)), .rank = calloc(n, sizeof(uint32_t)) };
	double *scratch = calloc(n, sizeof(*scratch));
	int r = c.v && c.rank && scratch ? 0 : -ENOMEM;

	*ret = (struct fleet_judged){ 0 };
	for (size_t i = 0; r == 0 && i < f->runs.n; i++)
		r = judge_run(f, ret, (uint32_t)i, scratch, &c);
	free(c.v);
	free(c.rank);
	free(scratch);
	if (r == 0)
		r = judge_losses(f, ret);
	if (r < 0) {
		fleet_judged_done(ret);
		return r;
	}
	if (ret->runs.n)
		qsort(ret->runs.v, ret->runs.n, sizeof(*ret->runs.v), by_cost);
	add_up(ret);
	return 0;
}
