/* SPDX-License-Identifier: MIT
 *
 * Why a rank is slower than its peers: what it does more of in a step, what its GPU and its node do that theirs do not, and what
 * the verdict on its node says that verdicts on theirs do not.
 */
#include "base/num.h"
#include "explain/cause.h"
#include "fleet/judge.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An excess is explained by what makes up this much of it. */
#define MOST 0.4
/* Clocks of GPUs of one kind under the same load differ by a few percent. */
#define CLOCK_LOW  0.93
#define HELD_SHARE 0.10
/* Pressure of a node that is worth a word, and so many times that of the others. */
#define PRESSURE_LEAST 0.10
#define PRESSURE_TIMES 2.0

void suspect_say(struct fleet_suspect *s, const char *metric, double value, double others,
		 const char *fmt, ...)
{
	struct fleet_evidence *e;
	va_list ap;

	if (s->evidence_n == FLEET_EVIDENCE_MAX)
		return;
	e = &s->evidence[s->evidence_n++];
	*e = (struct fleet_evidence){ .value = value, .others = others };
	snprintf(e->metric, sizeof(e->metric), "%s", metric);
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
}

/* One number of a rank, from wherever: of its ledger, its GPU, its node. */
struct asked {
	const struct fleet *fleet;
	enum time_state state;
	enum fleet_held reason;
};

typedef double (*ask_fn)(const struct asked *a, const struct fleet_rank *r, uint32_t at);

static double median_of(const struct asked *a, struct fleet_peers peers, ask_fn ask)
{
	double *v = calloc(peers.n ? peers.n : 1, sizeof(*v)), median;
	size_t n = 0;

	if (!v)
		return NAN;
	for (size_t i = 0; i < peers.n; i++) {
		double x = ask(a, &a->fleet->ranks.v[peers.v[i]], peers.v[i]);

		if (isfinite(x))
			v[n++] = x;
	}
	median = lower_median(v, n);
	free(v);
	return median;
}

/* Seconds of a step in this state: its share of the time that the ledger has, of the time of a step. */
static double state_s(const struct asked *a, const struct fleet_rank *r, uint32_t at)
{
	double all = 0, own = fleet_ledger_of(a->fleet, r, a->state, false);

	(void)at;
	for (int i = 0; i < TIME_STATES; i++) {
		double x = fleet_ledger_of(a->fleet, r, (enum time_state)i, false);

		if (isfinite(x))
			all += x;
	}
	if (!(all > 0))
		return NAN;
	return (isfinite(own) ? own : 0) / all * fleet_step_s(r);
}

static double marked_data_s(const struct asked *a, const struct fleet_rank *r, uint32_t at)
{
	(void)a, (void)at;
	return r->steps > 0 && r->data >= 0 ? r->data / r->steps : NAN;
}

/* The lowest clock, or the share of time its clocks were held back, of GPUs of this rank. */
static double gpu_number(const struct asked *a, uint32_t at, bool clock)
{
	const struct fleet *f = a->fleet;
	const struct fleet_run *run = &f->runs.v[f->ranks.v[at].run];
	double found = NAN;

	for (size_t i = 0; i < run->holds; i++) {
		const struct fleet_hold *h = &f->holds.v[f->hold_order[run->hold_from + i]];
		const struct fleet_gpu *g = &f->gpus.v[h->gpu];

		if (h->rank != at)
			continue;
		found = clock ? fmin(found, g->clock_hz)
			      : fmax(found, g->held[a->reason] / f->window_s);
	}
	return found;
}

static double clock_of(const struct asked *a, const struct fleet_rank *r, uint32_t at)
{
	(void)r;
	return gpu_number(a, at, true);
}

static double held_of(const struct asked *a, const struct fleet_rank *r, uint32_t at)
{
	(void)r;
	return gpu_number(a, at, false);
}

static double io_of(const struct asked *a, const struct fleet_rank *r, uint32_t at)
{
	(void)at;
	return a->fleet->nodes.v[r->node].io_wait;
}

static double cpu_of(const struct asked *a, const struct fleet_rank *r, uint32_t at)
{
	(void)at;
	return a->fleet->nodes.v[r->node].cpu_wait;
}

static double memory_of(const struct asked *a, const struct fleet_rank *r, uint32_t at)
{
	(void)at;
	return a->fleet->nodes.v[r->node].memory_wait;
}

/* Another way of looking up GPUs of peers: walking all of a run's for each of thousands of ranks would take its square. */
static struct fleet_peers few_of(struct fleet_peers peers, uint32_t buf[256])
{
	size_t n = peers.n < 256 ? peers.n : 256;

	for (size_t i = 0; i < n; i++)
		buf[i] = peers.v[i * peers.n / n];
	return (struct fleet_peers){ buf, n };
}

static bool gpu_held(struct asked *a, struct fleet_peers few, struct fleet_suspect *s)
{
	static const char *const by[HELD_REASONS] = { "the power limit", "temperature" };
	bool held = false;

	for (int i = 0; i < HELD_REASONS; i++) {
		double mine, others;

		a->reason = (enum fleet_held)i;
		mine = gpu_number(a, s->worst, false);
		others = median_of(a, few, held_of);
		if (!(mine > HELD_SHARE) || others > mine / 2)
			continue;
		suspect_say(s, "spotter_gpu_throttled_seconds_total", mine, others,
			    "%s holds its GPU's clocks back %.0f %% of the time", by[i],
			    100 * fmin(1, mine));
		if (isfinite(others) && s->evidence_n < FLEET_EVIDENCE_MAX) {
			struct fleet_evidence *e = &s->evidence[s->evidence_n - 1];
			size_t n = strlen(e->text);

			snprintf(e->text + n, sizeof(e->text) - n, ", others %.0f %%",
				 100 * fmin(1, others));
		}
		held = true;
	}
	return held;
}

static bool clock_low(struct asked *a, struct fleet_peers few, struct fleet_suspect *s)
{
	double mine = gpu_number(a, s->worst, true), others = median_of(a, few, clock_of);

	if (!(mine < CLOCK_LOW * others))
		return false;
	suspect_say(s, "spotter_gpu_clock_hertz", mine, others,
		    "its GPU runs at %.0f MHz, those of the others at %.0f MHz", mine / 1e6,
		    others / 1e6);
	return true;
}

static void say_xids(const struct fleet *f, struct fleet_suspect *s)
{
	const struct fleet_run *run = &f->runs.v[s->run];

	for (size_t i = 0; i < run->holds; i++) {
		const struct fleet_hold *h = &f->holds.v[f->hold_order[run->hold_from + i]];

		if (h->rank == s->worst && f->gpus.v[h->gpu].xids >= 1)
			suspect_say(s, "spotter_gpu_xid_errors_total", f->gpus.v[h->gpu].xids, NAN,
				    "its GPU reported critical errors (XID)");
	}
}

static bool pressed(const struct asked *a, struct fleet_peers few, struct fleet_suspect *s,
		    ask_fn ask, const char *metric, const char *what)
{
	double mine = ask(a, &a->fleet->ranks.v[s->worst], s->worst);
	double others = median_of(a, few, ask);

	if (!(mine >= PRESSURE_LEAST) || others * PRESSURE_TIMES > mine)
		return false;
	suspect_say(s, metric, mine, others,
		    "on its node something waits for %s %.0f %% of the time", what, 100 * mine);
	return true;
}

/* What of the excess a state makes up, at most all of it. */
static double excess_of(const struct asked *a, struct fleet_peers others, struct fleet_suspect *s,
			ask_fn ask, double *mine, double *usual)
{
	*mine = ask(a, &a->fleet->ranks.v[s->worst], s->worst);
	*usual = median_of(a, others, ask);
	return *mine - (isfinite(*usual) ? *usual : 0);
}

static void say_state(struct fleet_suspect *s, const char *metric, const char *state, double mine,
		      double usual)
{
	char a[32], b[32];

	num_seconds(mine, a, sizeof(a));
	if (isfinite(usual))
		suspect_say(s, metric, mine, usual, "%s: %s of its step, %s of the others'", state,
			    a, num_seconds(usual, b, sizeof(b)));
	else
		suspect_say(s, metric, mine, NAN, "%s: %s of its step", state, a);
}

/* The state that grew most, but for the wait for others; TIME_STATES: there is no ledger, or nothing stands out. */
static enum time_state most_of(struct asked *a, struct fleet_peers others, struct fleet_suspect *s,
			       double excess)
{
	enum time_state best = TIME_STATES;
	double most = MOST * excess, mine = NAN, usual = NAN;

	for (int i = 0; i < TIME_STATES; i++) {
		double m = NAN, u = NAN, e;

		a->state = (enum time_state)i;
		e = i == TIME_COMM_WAIT ? 0 : excess_of(a, others, s, state_s, &m, &u);
		if (!(e > most))
			continue;
		most = e;
		mine = m;
		usual = u;
		best = (enum time_state)i;
	}
	if (best != TIME_STATES)
		say_state(s, "spotter_ledger_seconds_total", time_state_name(best), mine, usual);
	return best;
}

/* The verdict on this node that those on most other nodes of the run lack; NULL none. */
static const char *own_verdict(const struct fleet *f, const struct fleet_judged_run *run,
			       const struct fleet_suspect *s, const char *family)
{
	const struct fleet_verdict *best = NULL;

	for (size_t i = 0; i < f->verdicts.n; i++) {
		const struct fleet_verdict *v = &f->verdicts.v[i];
		const struct cause *c = cause_find(v->cause);
		size_t also = 0;

		if (v->run != s->run || v->node != s->node || !c || strcmp(c->family, family) != 0)
			continue;
		for (size_t k = 0; k < f->verdicts.n; k++)
			also += f->verdicts.v[k].run == s->run &&
				strcmp(f->verdicts.v[k].cause, v->cause) == 0;
		if (also * 2 > run->nodes && run->nodes > 1)
			continue;
		if (!best || v->cost > best->cost)
			best = v;
	}
	return best ? cause_find(best->cause)->id : NULL;
}

static const char *input_cause(const struct fleet *f, const struct fleet_judged_run *run,
			       const struct asked *a, struct fleet_peers few,
			       struct fleet_suspect *s)
{
	const char *id = own_verdict(f, run, s, "input");

	pressed(a, few, s, io_of, "spotter_node_pressure_io_waiting_seconds_total", "a disk");
	if (!id)
		return "input_straggler";
	suspect_say(s, "spotter_verdict_info", NAN, NAN, "the verdict on its node: %s", id);
	return id;
}

/* Work that takes it longer, in contrast to waiting for a lock, a checkpoint or nothing at all. */
static bool computes(enum time_state s)
{
	return s == TIME_TRANSFER || s == TIME_DISPATCH || s == TIME_PYTHON || s == TIME_GPU_WAIT ||
	       s == TIME_CPU_QUEUE || s == TIME_MEMORY_STALL;
}

void suspect_explain(const struct fleet *f, const struct fleet_judged_run *run,
		     struct fleet_peers others, struct fleet_suspect *s)
{
	struct asked a = { .fleet = f };
	double excess = s->own_s - s->others_s, mine, usual;
	uint32_t buf[256];
	struct fleet_peers few = few_of(others, buf);
	bool data, held, low;
	enum time_state most;

	most = most_of(&a, others, s, excess);
	data = most == TIME_DATA_WAIT || most == TIME_DATA_LOAD;
	if (!data && excess_of(&a, others, s, marked_data_s, &mine, &usual) >= MOST * excess) {
		data = true;
		say_state(s, "spotter_data_wait_seconds_total", "waits for data", mine, usual);
	}
	held = gpu_held(&a, few, s);
	low = clock_low(&a, few, s);
	say_xids(f, s);
	if (data) {
		s->cause = input_cause(f, run, &a, few, s);
		return;
	}
	if (held) {
		s->cause = "gpu_throttled";
		return;
	}
	pressed(&a, few, s, cpu_of, "spotter_node_pressure_cpu_waiting_seconds_total", "a CPU");
	pressed(&a, few, s, memory_of, "spotter_node_pressure_memory_waiting_seconds_total",
		"memory");
	if (low || computes(most))
		s->cause = "compute_straggler";
}
