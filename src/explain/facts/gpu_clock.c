/* SPDX-License-Identifier: MIT
 *
 * Clocks while a GPU was busy, and what held them. Means of each series alone would mix in the idle
 * moments, in which clocks are low for a good reason, so the series are walked side by side; only
 * where a driver said that something held the clocks, or did not say all of it.
 */
#include "explain/fact.h"
#include "explain/scene.h"

#include <math.h>
#include <stdlib.h>

/* Shares of time below this are not worth a walk, nor a word. */
static const double flagged_least = 0.02;
/* Of the highest clock; the rule's own bound for the power limit is no higher. */
static const double fast_least = 0.9;
/* A walk over a day takes a tenth of a second: only for those that seem to lose most. */
enum { WALKS = 2 };
/* Busy time without anything holding the clocks that says what they would be. */
static const double free_least_s = 5;
struct track {
	VEC(struct step {
		int64_t t_ns;
		double v;
	})
	steps;
	size_t at;
	bool failed;
};

static bool keep_step(const struct point *p, void *arg)
{
	struct track *t = arg;
	struct step *x = vec_push(&t->steps);

	if (!x) {
		t->failed = true;
		return false;
	}
	*x = (struct step){ p->t_ns, p->value };
	return true;
}

/* From the start of the run: what held at the window's start may have been said before it, as a record
 * keeps only changes. */
static void load(const struct scene *s, enum metric_id m, uint32_t id, struct track *t)
{
	const struct window *w = s->whole;

	w->ops->each(w->src, m, id, w->from_ns, s->steady.to_ns, 0, keep_step, t);
}

/* The value at a time, and in *next when the one after it begins, if that is earlier. Times only go
 * forward. */
static double value_at(struct track *t, int64_t t_ns, int64_t *next)
{
	while (t->at + 1 < t->steps.n && t->steps.v[t->at + 1].t_ns <= t_ns)
		t->at++;
	if (t->at >= t->steps.n)
		return NAN;
	if (t->steps.v[t->at].t_ns > t_ns) {
		*next = t->steps.v[t->at].t_ns < *next ? t->steps.v[t->at].t_ns : *next;
		return NAN;
	}
	if (t->at + 1 < t->steps.n && t->steps.v[t->at + 1].t_ns < *next)
		*next = t->steps.v[t->at + 1].t_ns;
	return t->steps.v[t->at].v;
}

/* Busy seconds, and clock times busy seconds, by what held it. */
struct clocks {
	double seconds, busy, held, power, free;
	double sum, sum_free;
};

enum { T_CLOCK, T_BUSY, T_POWER, T_HELD, TRACKS = T_HELD + 4 };

static void walk(struct track *t, int64_t from_ns, int64_t to_ns, struct clocks *ret)
{
	for (int64_t now = from_ns, next; now < to_ns; now = next) {
		double v[TRACKS], dt, busy;
		bool held = false, power;

		next = to_ns;
		for (int k = 0; k < TRACKS; k++)
			v[k] = value_at(&t[k], now, &next);
		dt = (double)(next - now) / 1e9;
		if (isnan(v[T_BUSY]) || isnan(v[T_CLOCK]))
			continue;
		for (int k = T_HELD; k < TRACKS; k++)
			held |= v[k] > 0.5;
		power = v[T_POWER] > 0.5;
		busy = v[T_BUSY] * dt;
		ret->seconds += dt;
		ret->busy += busy;
		ret->sum += busy * v[T_CLOCK];
		ret->held += held ? busy : 0;
		ret->power += power && !held ? busy : 0;
		ret->free += held || power ? 0 : busy;
		ret->sum_free += held || power ? 0 : busy * v[T_CLOCK];
	}
}

static bool read_clocks(const struct scene *s, const struct gpu_row *g, struct clocks *ret)
{
	static const enum metric_id of[TRACKS] = { M_GPU_CLOCK_SM,   M_GPU_BUSY,
						   M_GPU_SLOW_POWER, M_GPU_SLOW_HEAT_HW,
						   M_GPU_SLOW_HEAT,  M_GPU_SLOW_BRAKE,
						   M_GPU_SLOW_HW };
	static const enum gpu_slow slow_of[] = { SLOW_POWER, SLOW_HEAT_HW, SLOW_HEAT, SLOW_BRAKE,
						 SLOW_HW };
	struct track t[TRACKS] = { 0 };
	int64_t end = s->steady.to_ns;
	bool failed = false;

	*ret = (struct clocks){ 0 };
	for (int i = 0; i < TRACKS; i++) {
		if (i >= T_POWER && !(g->slow[slow_of[i - T_POWER]] > 0))
			continue; /* never set: nothing to walk */
		load(s, of[i], g->id, &t[i]);
		failed |= t[i].failed;
	}
	if (g->gone_ns && g->gone_ns < end)
		end = g->gone_ns;
	walk(t, s->steady.from_ns, end, ret);
	for (int i = 0; i < TRACKS; i++)
		vec_done(&t[i].steps);
	return !failed && ret->busy > 0 && ret->seconds > 0;
}

/* Dense work at its power limit and near its highest clock: what every healthy GPU does, so the most
 * frequent flag needs no walk. Idle moments only make the mean lower. */
static bool is_fast(const struct gpu_row *g)
{
	return g->clock >= fast_least * g->clock_max;
}

static bool is_flagged(const struct gpu_row *g)
{
	for (int i = 0; i < SLOW_POWER; i++)
		if (g->slow[i] >= flagged_least)
			return true;
	return g->slow[SLOW_POWER] >= flagged_least && !is_fast(g);
}

static bool is_told(const struct gpu_row *g)
{
	for (int i = 0; i <= SLOW_POWER; i++)
		if (isnan(g->slow[i]))
			return false;
	return true;
}

static const char *holder(const struct gpu_row *g)
{
	int most = -1;

	for (int i = 0; i <= SLOW_POWER; i++)
		if (g->slow[i] >= flagged_least && (most < 0 || g->slow[i] > g->slow[most]))
			most = i;
	/* "hardware" is also set with the two that say more. */
	if (most == SLOW_HW && g->slow[SLOW_HEAT_HW] >= flagged_least)
		most = SLOW_HEAT_HW;
	else if (most == SLOW_HW && g->slow[SLOW_BRAKE] >= flagged_least)
		most = SLOW_BRAKE;
	return most < 0 ? "" : gpu_slow_name((enum gpu_slow)most);
}

static void set_clocks(struct facts *f, const struct gpu_row *g, const struct clocks *c)
{
	char label[48];

	fact_set(f, FACT_GPU_HELD, c->held / c->busy);
	fact_set_subject(f, FACT_GPU_HELD, g->id, gpu_label(g, label, sizeof(label)));
	fact_set(f, FACT_GPU_HELD_POWER, c->power / c->busy);
	fact_set(f, FACT_GPU_HELD_BUSY, fmin(1, c->busy / c->seconds));
	fact_set(f, FACT_GPU_HELD_CLOCK, c->sum / c->busy);
	fact_set_subject(f, FACT_GPU_HELD_CLOCK, g->id, holder(g));
	if (c->free >= free_least_s)
		fact_set(f, FACT_GPU_FREE_CLOCK, c->sum_free / c->free);
	fact_set(f, FACT_GPU_TOP_CLOCK, g->clock_max);
	fact_set(f, FACT_GPU_HELD_HEAT, g->temperature);
}

static void none_held(struct facts *f)
{
	fact_set(f, FACT_GPU_HELD, 0);
	fact_set(f, FACT_GPU_HELD_POWER, 0);
}

static void absent(struct facts *f, const struct gpu_row *g, const char *why)
{
	char label[48];

	fact_absent(f, FACT_GPU_HELD, "%s: %s", gpu_label(g, label, sizeof(label)), why);
	fact_absent_like(f, FACT_GPU_HELD_POWER, FACT_GPU_HELD);
}

/* About how much a GPU loses, from means alone: enough to choose by. */
static double seems_to_lose(const struct gpu_row *g)
{
	double clock = g->clock / g->clock_max, held = 0;

	for (int i = 0; i <= SLOW_POWER; i++)
		held = fmax(held, g->slow[i]);
	return held * (isfinite(g->busy_steady) ? g->busy_steady : 1) *
	       (isfinite(clock) ? fmax(0.01, 1 - clock) : 1);
}

static void keep_worst(const struct gpu_row **v, size_t *n, const struct gpu_row *g)
{
	size_t at = *n;

	for (; at > 0 && seems_to_lose(g) > seems_to_lose(v[at - 1]); at--)
		if (at < WALKS)
			v[at] = v[at - 1];
	if (at >= WALKS)
		return;
	v[at] = g;
	*n += *n < WALKS;
}

/* The flagged GPUs of the job that seem to lose most, the worst first; *dark: one of which cannot be
 * told whether it is one, and why. */
static size_t choose(const struct scene *s, const struct gpu_row **ret, const struct gpu_row **dark,
		     const char **why)
{
	size_t n = 0;

	for (size_t i = 0; i < s->gpus.rows.n; i++) {
		const struct gpu_row *g = &s->gpus.rows.v[i];
		bool flagged = is_flagged(g);

		if (g->replaced || g->partition >= 0 || g->use == GPU_USE_NO ||
		    (!flagged && is_told(g)))
			continue;
		if (g->use == GPU_USE_UNKNOWN || !flagged) {
			*dark = g;
			*why = g->use == GPU_USE_UNKNOWN ? "whether the job uses it is not known"
							 : "what holds its clocks is not known";
			continue;
		}
		keep_worst(ret, &n, g);
	}
	return n;
}

static void compute(const struct scene *s, struct facts *f)
{
	const struct gpu_row *chosen[WALKS] = { NULL }, *worst = NULL, *dark = NULL;
	struct clocks worst_clocks = { 0 }, c;
	const char *why = "";
	double most = -1;
	size_t n;

	n = choose(s, chosen, &dark, &why);
	for (size_t i = 0; i < n; i++) {
		double lost;

		if (!read_clocks(s, chosen[i], &c)) {
			dark = chosen[i];
			why = "its clock while busy is not known";
			continue;
		}
		lost = c.busy / c.seconds * (1 - c.sum / c.busy / chosen[i]->clock_max);
		if (!worst || lost > most) {
			worst = chosen[i];
			worst_clocks = c;
			most = lost;
		}
	}
	if (worst)
		set_clocks(f, worst, &worst_clocks);
	else if (dark)
		absent(f, dark, why);
	else if (s->gpus.rows.n)
		none_held(f);
}

const struct fact_source gpu_clock_facts = { "gpu_clock", compute };
