/* SPDX-License-Identifier: MIT */
#include "model/step_usage.h"

#include <math.h>
#include <strings.h>

/* Processes start processes: no chain of a sane record is longer. */
enum { ANCESTORS_MAX = 64 };

bool phase_is_aside(const char *name)
{
	static const char *const names[] = { "evaluate", "evaluation",     "eval",
					     "validate", "validation",     "val",
					     "test",     "predict",        "checkpoint",
					     "save",     "save_checkpoint" };

	for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcasecmp(name, names[i]) == 0)
			return true;
	return false;
}

double step_sample_period(const struct window *w)
{
	double hz;

	/* The governor may have lowered it. */
	if (window_mean(w, M_SELF_RATE, ID_SELF, &hz) && hz > 0)
		return 1 / hz;
	hz = window_run(w)->hz;
	return hz > 0 ? 1 / hz : NAN;
}

/* A counter at the two ends of a step, between the samples around them. */
struct ends {
	int64_t t_ns[2];
	double value[2]; /* NAN: not known yet */
	int64_t period_ns;
	struct point before;
	bool any, blind; /* blind: nothing was known of before the step */
};

/* A counter is written when it changes: behind a pause it began to grow a sample before the next. */
static double value_between(const struct point *a, const struct point *b, int64_t t_ns,
			    int64_t period_ns)
{
	int64_t from = b->t_ns - a->t_ns > period_ns * 3 / 2 ? b->t_ns - period_ns : a->t_ns;

	if (t_ns <= from || b->t_ns <= from)
		return a->value;
	return a->value + counter_growth(a->value, b->value) * (double)(t_ns - from) /
			      (double)(b->t_ns - from);
}

static bool take_point(const struct point *p, void *arg)
{
	struct ends *x = arg;

	if (!x->any && p->t_ns > x->t_ns[0]) {
		x->blind = true;
		x->value[0] = p->value;
	}
	for (int i = 0; i < 2; i++)
		if (isnan(x->value[i]) && p->t_ns >= x->t_ns[i])
			x->value[i] = p->t_ns == x->t_ns[i] || !x->any
					  ? p->value
					  : value_between(&x->before, p, x->t_ns[i], x->period_ns);
	x->before = *p;
	x->any = true;
	return isnan(x->value[1]);
}

/* What a counter grew by in exactly this time; NAN: not known. */
static double growth(const struct window *w, enum metric_id m, uint32_t id, int64_t period_ns)
{
	int64_t around = period_ns * 2;
	const struct ends none = { .t_ns = { w->from_ns, w->to_ns },
				   .value = { NAN, NAN },
				   .period_ns = period_ns };
	struct window before = *w;
	struct ends x = none;
	double held;

	w->ops->each(w->src, m, id, w->from_ns - around, w->to_ns + around, 0, take_point, &x);
	if (!x.any || x.blind) {
		/* One that stood still has its last value from any time before. */
		x = none;
		before.to_ns = w->from_ns - around;
		before.from_ns = before.to_ns - 1;
		x.before.t_ns = before.to_ns;
		x.any = window_last(&before, m, id, &held);
		x.before.value = x.any ? held : 0;
		x.any |= window_from_zero(window_entities(w), window_run(w), m, id, w->from_ns);
		w->ops->each(w->src, m, id, before.to_ns, w->to_ns + around, 0, take_point, &x);
	}
	/* No sample behind it: it holds. */
	for (int i = 0; i < 2; i++)
		if (isnan(x.value[i]) && x.any)
			x.value[i] = x.before.value;
	return counter_growth(x.value[0], x.value[1]);
}

enum metric_id step_tick_metric(const struct window *w)
{
	double last;

	return window_last(w, M_HOST_SWITCHES, ID_HOST, &last) ? M_HOST_SWITCHES : M_SELF_TICKS;
}

struct ticks {
	int64_t from_ns; /* of the step */
	bool before;     /* there is one shortly before it */
	unsigned n;      /* in it */
	int64_t t_ns[2];
};

static bool take_tick(const struct point *p, void *arg)
{
	struct ticks *x = arg;

	if (p->t_ns <= x->from_ns) {
		x->before = true;
		return true;
	}
	x->t_ns[x->n++] = p->t_ns;
	return x->n < 2;
}

/* Time between two samples in it; 0: fewer than two were taken in it, or are still kept: old ones are
 * thinned. */
static int64_t period_in(const struct window *w, double seconds)
{
	enum metric_id tick = step_tick_metric(w);
	uint32_t whose = tick == M_HOST_SWITCHES ? ID_HOST : ID_SELF;
	double hz = window_run(w)->hz, period;
	struct ticks x = { .from_ns = w->from_ns };
	int64_t around;

	/* The governor only ever lowers the rate. */
	if (!(seconds * hz >= 2))
		return 0;
	/* One before it as well, or what a counter grew by since then is not the step's alone. */
	around = w->from_ns - (int64_t)(fmin(fmax(3 / hz, seconds), 600) * 1e9);
	x.before = around <= window_run(w)->started_mono_ns;
	w->ops->each(w->src, tick, whose, around, w->to_ns, 0, take_tick, &x);
	if (x.n == 2 && x.before)
		return x.t_ns[1] > x.t_ns[0] ? x.t_ns[1] - x.t_ns[0] : 0;
	if (x.n || window_last(w, tick, whose, &period))
		return 0;
	/* not recorded: by the rate alone */
	period = step_sample_period(w);
	return period > 0 && seconds >= 2 * period ? (int64_t)(period * 1e9) : 0;
}

static bool is_of(const struct entity_table *t, const struct entity *e, uint32_t process)
{
	for (int i = 0; e && i < ANCESTORS_MAX; i++) {
		if (e->id == process)
			return true;
		e = entity_find(t, e->parent);
	}
	return false;
}

/* A process and all that it started. */
static void use_of_tree(const struct window *w, uint32_t process, int64_t period_ns, double *cpu,
			double *memory)
{
	const struct entity_table *t = window_entities(w);
	double v;

	*cpu = *memory = NAN;
	for (size_t i = 0; i < t->rows.n; i++) {
		const struct entity *e = &t->rows.v[i];

		if (e->kind != ENTITY_PROC || e->born_ns > w->to_ns ||
		    (e->gone_ns && e->gone_ns < w->from_ns) || !is_of(t, e, process))
			continue;
		v = growth(w, M_PROC_CPU, e->id, period_ns);
		if (isfinite(v))
			*cpu = isnan(*cpu) ? v : *cpu + v;
		if (window_mean(w, M_PROC_RSS, e->id, &v))
			*memory = isnan(*memory) ? v : *memory + v;
	}
}

static void use_of_job(const struct window *w, int64_t period_ns, double *cpu, double *memory)
{
	*memory = NAN;
	*cpu = growth(w, M_JOB_CPU, ID_JOB, period_ns);
	if (!window_mean(w, M_JOB_PSS, ID_JOB, memory))
		window_mean(w, M_JOB_RSS, ID_JOB, memory);
}

bool step_on_gpu(const struct window *w, uint32_t process, uint32_t gpu)
{
	const struct entity_table *t = window_entities(w);
	const struct entity *p = entity_find(t, process);

	for (size_t i = 0; p && i < t->rows.n; i++) {
		const struct entity *e = &t->rows.v[i];

		/* key 0: somebody whose pid is not known here */
		if (e->kind == ENTITY_GPU_PROC && e->parent == gpu && e->key == p->key &&
		    e->key != 0 && e->born_ns <= w->to_ns &&
		    (!e->gone_ns || e->gone_ns > w->from_ns))
			return true;
	}
	return false;
}

static void add(const struct window *w, enum metric_id m, uint32_t id, double *sum)
{
	double v;

	if (window_mean(w, m, id, &v))
		*sum = isnan(*sum) ? v : *sum + v;
}

static void use_of_gpus(const struct window *w, uint32_t process, struct step_usage *u)
{
	const struct entity_table *t = window_entities(w);

	for (size_t i = 0; i < t->rows.n; i++) {
		const struct entity *e = &t->rows.v[i];

		if (e->kind != ENTITY_GPU || !step_on_gpu(w, process, e->id))
			continue;
		u->gpus++;
		add(w, M_GPU_BUSY, e->id, &u->gpu_busy);
		add(w, M_GPU_CLOCK_SM, e->id, &u->gpu_clock);
		add(w, M_GPU_MEM_USED, e->id, &u->gpu_memory);
		add(w, M_GPU_POWER, e->id, &u->gpu_power);
	}
	if (u->gpus) {
		u->gpu_busy /= u->gpus;
		u->gpu_clock /= u->gpus;
	}
}

bool step_usage(const struct window *whole, const struct window_step *s, struct step_usage *ret)
{
	struct window w = *whole;
	int64_t period_ns;
	double cpu, seconds = ((double)s->end_ns - (double)s->begin_ns) / 1e9;

	*ret = (struct step_usage){ NAN, NAN, 0, NAN, NAN, NAN, NAN };
	/* Times of a record may be anything. */
	if (s->begin_ns < whole->from_ns || s->end_ns > whole->to_ns || s->begin_ns < 0 ||
	    s->end_ns > INT64_MAX / 4)
		return false;
	w.from_ns = s->begin_ns;
	w.to_ns = s->end_ns;
	period_ns = period_in(&w, seconds);
	if (!period_ns)
		return false;
	if (s->rank >= 0)
		use_of_tree(&w, s->entity, period_ns, &cpu, &ret->memory);
	else
		use_of_job(&w, period_ns, &cpu, &ret->memory);
	/* Nanoseconds are what it is counted in: the digits behind are the division's. */
	ret->cores = round(cpu / seconds * 1e9) / 1e9;
	use_of_gpus(&w, s->entity, ret);
	return true;
}
