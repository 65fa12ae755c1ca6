/* SPDX-License-Identifier: MIT */
#include "explain/verdict.h"

#include "base/clock.h"
#include "base/num.h"
#include "base/text.h"
#include "explain/callers.h"
#include "explain/cause.h"
#include "explain/fact.h"
#include "explain/ledger/ledger.h"
#include "explain/rule.h"
#include "explain/scene.h"
#include "explain/startup.h"
#include "explain/together.h"
#include "explain/usage_gpus.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Below this predicted gain a finding is a note. */
static const double gain_least = 1.05;
/* A job that keeps this share of its cores busy, and has no finding, is limited by its CPUs. */
static const double cpu_bound_least = 0.90;
/* What rules about stacks need. */
static const int64_t enough_ns = 5 * NS_PER_S;

/* Steps tell where training is steady: when there are enough of them, over a stretch that can be
 * judged or is most of the run anyway. */
static bool choose_by_steps(const struct window *whole, struct verdict *v)
{
	const struct step_group *lead = steps_lead(&v->steps);
	int64_t length = v->steps.to_ns - v->steps.from_ns;
	char a[32], b[32];

	if (!lead || lead->steady < STEPS_STEADY_LEAST ||
	    (length < 5 * NS_PER_S && length < (whole->to_ns - whole->from_ns) / 2))
		return false;
	v->from_ns = v->steps.from_ns;
	v->to_ns = v->steps.to_ns;
	snprintf(v->window_why, sizeof(v->window_why),
		 "steps %s to %s, without start-up and what came behind",
		 num_count((double)v->steps.first, a, sizeof(a)),
		 num_count((double)v->steps.last, b, sizeof(b)));
	return true;
}

/* Per step of the process whose time the ledger is about, and of each rank. */
static void fill_per_step(const struct scene *s, struct verdict *v)
{
	const struct activity *a = &s->activity;
	const struct step_group *g = NULL;

	if (a->any && a->critical >= 0)
		g = steps_group(&v->steps, a->threads.v[a->critical].process);
	if (!g || !(g->rate_hz > 0))
		g = steps_lead(&v->steps);
	v->step_wall_s = g ? 1 / g->rate_hz : NAN;
	for (size_t i = 0; a->any && i < v->steps.groups.n; i++) {
		struct step_group *x = &v->steps.groups.v[i];
		const struct act_thread *t;
		double seen = 0;
		uint32_t at;

		if (!map_get(&a->first, x->entity, &at) || !x->steady)
			continue;
		t = &a->threads.v[at];
		for (int k = 0; k < TIME_STATES; k++)
			seen += t->state[k];
		/* Of a thread that was seen for a moment nothing is known. */
		if (!(t->alive > 0) || seen < t->alive / 2)
			continue;
		x->comm_wait_s = t->state[TIME_COMM_WAIT] / t->alive / x->rate_hz;
		x->own_work_s =
		    (seen - t->state[TIME_COMM_WAIT] - t->state[TIME_IDLE]) / t->alive / x->rate_hz;
	}
}

/* Start-up (imports, first reading, warm-up) is not what a long run is slow in. Where steps are
 * not known, its length is a guess: a tenth, at most 10 s, and only where that leaves nearly a minute. */
static void choose_window(const struct window *whole, struct verdict *v)
{
	int64_t length = whole->to_ns - whole->from_ns, skip = length / 10;
	bool from_start = whole->from_ns - NS_PER_S <= window_run(whole)->started_mono_ns &&
			  !window_run(whole)->attached;
	char a[32];

	v->from_ns = whole->from_ns;
	v->to_ns = whole->to_ns;
	if (!from_start || length <= 60 * NS_PER_S) {
		snprintf(v->window_why, sizeof(v->window_why), "%s",
			 from_start ? "the whole run" : "all that was seen");
		return;
	}
	if (skip > 10 * NS_PER_S)
		skip = 10 * NS_PER_S;
	v->from_ns += skip;
	snprintf(v->window_why, sizeof(v->window_why),
		 "without the first %s, which may be start-up",
		 num_seconds((double)skip / 1e9, a, sizeof(a)));
}

/* Where stacks tell how long the imports took, they are left out, if enough to judge by is left. */
static int skip_imports(struct scene *s, const struct window *whole, struct verdict *v)
{
	int64_t end = window_run(whole)->attached ? 0 : startup_end(s);
	char a[32];

	if (end <= v->from_ns || end - whole->from_ns > (whole->to_ns - whole->from_ns) / 2 ||
	    v->to_ns - end < enough_ns)
		return 0;
	v->from_ns = end;
	snprintf(v->window_why, sizeof(v->window_why), "without the first %s: imports",
		 num_seconds((double)(end - whole->from_ns) / 1e9, a, sizeof(a)));
	scene_done(s);
	return scene_open(s, whole, v->from_ns, v->to_ns);
}

/* Names of limits in facts are copies; the verdict's point at constants. */
static const char *constant(const char *text)
{
	static const char *const names[] = { "affinity", "quota", "machine", "cgroup" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], text) == 0)
			return names[i];
	return NULL;
}

static void fill_usage(const struct scene *s, const struct facts *f, struct verdict *v)
{
	v->usage = (struct usage){
		.cores_used = fact_or(f, FACT_USAGE_CORES, NAN),
		.cores_allowed = fact_or(f, FACT_CORES_ALLOWED, NAN),
		.cores_machine = fact_or(f, FACT_CORES_MACHINE, NAN),
		.steal = fact_or(f, FACT_USAGE_STEAL, NAN),
		.threads_per_core = s->run->machine.threads_per_core,
		.cpu_limit = constant(f->v[FACT_CORES_ALLOWED].text),
		.memory_used = fact_or(f, FACT_MEMORY_USED, NAN),
		.memory_peak = fact_or(f, FACT_MEMORY_PEAK, NAN),
		.memory_allowed = fact_or(f, FACT_MEMORY_ALLOWED, NAN),
		.memory_limit = constant(f->v[FACT_MEMORY_ALLOWED].text),
		.others_cores = fact_or(f, FACT_USAGE_OTHERS, NAN),
		.memory_at_most = strcmp(f->v[FACT_MEMORY_USED].text, "sum of rss") == 0,
		.read_bytes = fact_or(f, FACT_USAGE_READ, NAN),
		.written_bytes = fact_or(f, FACT_USAGE_WRITTEN, NAN),
	};
	v->overhead = (struct overhead){
		.cpu_share_of_core = fact_or(f, FACT_OVERHEAD_CPU, NAN),
		.rss_bytes = fact_or(f, FACT_OVERHEAD_RSS, NAN),
		.samples = fact_or(f, FACT_OVERHEAD_SAMPLES, NAN),
		.samples_skipped = fact_or(f, FACT_OVERHEAD_SKIPPED, NAN),
		.stack_samples = s->activity.any ? (double)s->activity.samples : NAN,
		.stack_unproven = s->activity.any ? (double)s->activity.unproven : NAN,
		.stack_partial = s->activity.any ? (double)s->activity.partial : NAN,
	};
}

/* 2: stacks or waits of the job were read, 3: native code of a thread while it ran as well. */
static int level_of_stacks(const struct scene *s)
{
	const struct activity *a = &s->activity;
	int level = 1;

	for (size_t i = 0; i < a->rows.n; i++) {
		if (a->rows.v[i].unknown)
			continue;
		level = 2;
		if (s->run->level == 3 || (a->rows.v[i].on_cpu && a->rows.v[i].native))
			return 3;
	}
	return level;
}

/* The last that the recorder wrote down of a process: what it could read, and why not more. Who could be read once was not
 * refused: at its end nobody can be. */
static const struct window_event *told_of(const struct scene *s, uint32_t process)
{
	const struct window_event *e, *found = NULL;
	size_t n;

	e = s->whole->ops->events(s->whole->src, &n);
	for (size_t i = 0; i < n && e[i].t_ns <= s->whole->to_ns; i++)
		if (e[i].kind == EVENT_STACKS && e[i].entity == process && e[i].text &&
		    !(found && found->value >= 2 && e[i].value < 2))
			found = &e[i];
	return found;
}

/* "Python 3.11: stacks are read; no native leaf: ...": only the latter is a reason. */
static const char *why_no_native(const struct scene *s)
{
	const struct window_event *e;
	size_t n;

	e = s->whole->ops->events(s->whole->src, &n);
	for (size_t i = 0; i < n && e[i].t_ns <= s->whole->to_ns; i++) {
		const char *at =
		    e[i].kind == EVENT_STACKS && e[i].text ? strstr(e[i].text, "no native") : NULL;

		if (at)
			return at;
	}
	return "no native code was seen while a thread of the job ran";
}

/* Processes that could be read are level 1, whatever the recorder hoped for. */
static void find_level(const struct scene *s, const struct facts *f, struct verdict *v)
{
	const struct activity *a = &s->activity;
	uint32_t process = a->critical >= 0 ? a->threads.v[a->critical].process : s->main_proc;
	const struct window_event *told = told_of(s, process);
	bool refused = told && told->value < 2;
	const char *why = "";

	v->level = v->run->level > 0 ? v->run->level : f->v[FACT_CORES_USED].known;
	if (a->any)
		v->level = level_of_stacks(s);
	else if (v->level > 1)
		v->level = 1;
	/* It may not be looked into: what its threads wait for is no stack. */
	if (refused && v->level > 1)
		v->level = 1;
	if (v->level == 2)
		why = why_no_native(s);
	else if (refused)
		why = told->text;
	else if (v->level < 2 && a->any)
		why = "no stack of the job could be proven";
	else if (v->level < 2 && a->why_not)
		why = a->why_not;
	v->level_refused = refused && v->level < 2;
	text_safe_copy(v->level_why, sizeof(v->level_why), why);
}

static int add_finding(struct verdict *v, const struct rule *r, const struct finding *x)
{
	const struct cause *c = cause_find(r->cause);
	struct finding *at;

	if (x->note || (x->has_gain && x->speedup < gain_least))
		at = vec_push(&v->notes);
	else
		at = vec_push(&v->findings);
	if (!at)
		return -ENOMEM;
	*at = *x;
	at->cause = r->cause;
	at->family = c ? c->family : "";
	at->note = x->note || (x->has_gain && x->speedup < gain_least);
	return 0;
}

static int add_blind(struct verdict *v, const struct rule *r, const char *why)
{
	struct cannot_tell *c = vec_push(&v->blind);

	if (!c)
		return -ENOMEM;
	c->cause = r->cause;
	snprintf(c->why, sizeof(c->why), "%s", *why ? why : "not enough was recorded");
	return 0;
}

static bool applies(const struct rule *r, const struct facts *f)
{
	return !r->about_gpus || fact_or(f, FACT_GPU_COUNT, 0) > 0;
}

/* The recorder gave up reading GPUs: what a rule about them did not see may have been there later, or
 * always. Nothing to say to a job that has no use for one. */
static int unread(const struct rule *r, const struct scene *s, struct verdict *v)
{
	const struct gpus *g = &s->gpus;
	int64_t start = s->run->started_mono_ns;
	char why[160], a[32];

	if (!r->about_gpus || !g->unread_ns || g->code == 0 || g->unread_ns >= s->whole->to_ns)
		return 0;
	for (size_t i = 0; i < g->rows.n; i++)
		if (!g->rows.v[i].replaced && g->rows.v[i].until_ns > g->unread_ns)
			return 0; /* a late answer, and all is well */
	start = start > 0 && start <= s->whole->from_ns ? start : s->whole->from_ns;
	snprintf(why, sizeof(why), "GPUs were not read from %s on: %.80s",
		 num_seconds((double)(g->unread_ns - start) / 1e9, a, sizeof(a)), g->unread_why);
	return add_blind(v, r, why);
}

static int ask(const struct rule *r, const struct scene *s, const struct facts *f,
	       struct verdict *v)
{
	struct opinion o = { 0 };
	double seconds = s->seconds;
	char a[32], b[32];

	if (!applies(r, f))
		return unread(r, s, v);
	if (seconds < r->needs_s) {
		snprintf(o.why, sizeof(o.why), "only %s recorded; needs %s",
			 num_seconds(seconds, a, sizeof(a)), num_seconds(r->needs_s, b, sizeof(b)));
		return add_blind(v, r, o.why);
	}
	switch (r->check(f, &o)) {
	case ANSWER_YES:
		return add_finding(v, r, &o.finding);
	case ANSWER_CANNOT_TELL:
		return add_blind(v, r, o.why);
	case ANSWER_NO:
		break;
	}
	return unread(r, s, v);
}

/* What the run died of comes first, then by gain. */
static bool before(const struct finding *a, const struct finding *b)
{
	if (a->has_gain != b->has_gain)
		return !a->has_gain;
	return a->has_gain ? a->speedup > b->speedup : a->cost > b->cost;
}

/* Insertion sort: a handful, and the order of tests is kept among equals. */
static void rank(struct finding *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct finding x = v[i];
		size_t j = i;

		for (; j > 0 && before(&x, &v[j - 1]); j--)
			v[j] = v[j - 1];
		v[j] = x;
	}
}

static void find_callers(const struct scene *s, struct verdict *v)
{
	struct callers *c = callers_open(s);

	for (size_t i = 0; i < v->findings.n; i++)
		callers_tell(c, &v->findings.v[i]);
	for (size_t i = 0; i < v->notes.n; i++)
		callers_tell(c, &v->notes.v[i]);
	callers_close(c);
}

static int judge(const struct scene *s, const struct facts *f, struct verdict *v)
{
	double used, allowed;
	int r = 0;

	for (size_t i = 0; rules[i] && r == 0; i++)
		r = ask(rules[i], s, f, v);
	rank(v->findings.v, v->findings.n);
	rank(v->notes.v, v->notes.n);
	find_callers(s, v);
	together(v, f);
	v->healthy = v->findings.n == 0;
	v->judged = true;
	for (size_t i = 0; rules[i]; i++)
		v->judged &= !applies(rules[i], f) || s->seconds >= rules[i]->needs_s;
	if (v->healthy && s->seconds >= 1 && fact_value(f, FACT_CORES_USED, &used) &&
	    fact_value(f, FACT_CORES_ALLOWED, &allowed) &&
	    used - f->v[FACT_CORES_SPINNING].low >= cpu_bound_least * allowed)
		v->limit = "cpu_bound";
	/* Cores that are busy feeding a busy GPU are not the limit. */
	for (size_t i = 0; v->healthy && i < v->notes.n; i++)
		if (strcmp(v->notes.v[i].cause, "gpu_bound") == 0)
			v->limit = "gpu_bound";
	return r;
}

static int keep_roles(const struct scene *s, struct verdict *v)
{
	const struct activity *a = &s->activity;

	for (size_t i = 0; i < a->threads.n; i++) {
		const struct act_thread *t = &a->threads.v[i];
		struct thread_role *row = vec_push(&v->roles);

		if (!row)
			return -ENOMEM;
		*row = (struct thread_role){ t->id, t->process, t->first, cpu_role_name(t->role) };
	}
	return 0;
}

int explain(const struct window *asked, struct verdict *ret)
{
	struct window whole = *asked;
	struct verdict v = { .run = window_run(asked) };
	struct scene s = { 0 };
	struct facts *f;
	bool by_steps;
	int r;

	/* A record is foreign: its times may be anything. */
	if (whole.from_ns < 0 || whole.to_ns > INT64_MAX / 4)
		return -ERANGE;
	if (whole.to_ns < whole.from_ns)
		whole.to_ns = whole.from_ns;
	f = malloc(sizeof(*f));
	if (!f)
		return -ENOMEM;
	v.step_wall_s = NAN;
	r = steps_take(&whole, &v.steps);
	by_steps = r == 0 && choose_by_steps(&whole, &v);
	if (!by_steps)
		choose_window(&whole, &v);
	if (r == 0)
		r = scene_open(&s, &whole, v.from_ns, v.to_ns);
	if (r == 0 && !by_steps)
		r = skip_imports(&s, &whole, &v);
	if (r == 0) {
		facts_compute(&s, f);
		find_level(&s, f, &v);
		fill_usage(&s, f, &v);
		r = usage_gpus(&s, &v.usage);
		if (r == 0)
			r = ledger_cpu(&s, f, &v);
		if (r == 0)
			r = ledger_time(&s, &v);
		if (r == 0)
			r = keep_roles(&s, &v);
		if (by_steps)
			fill_per_step(&s, &v);
		if (r == 0 && !v.steps.groups.n)
			r = steps_infer(&s, &v.steps.inferred);
	}
	if (r == 0)
		r = judge(&s, f, &v);
	scene_done(&s);
	f->book = NULL;
	v.facts = f;
	if (r < 0)
		verdict_done(&v);
	else
		*ret = v;
	return r;
}

void verdict_done(struct verdict *v)
{
	free(v->facts);
	v->facts = NULL;
	steps_done(&v->steps);
	vec_done(&v->cpu);
	vec_done(&v->time);
	vec_done(&v->roles);
	vec_done(&v->usage.gpus);
	vec_done(&v->usage.gpu_processes);
	vec_done(&v->findings);
	vec_done(&v->notes);
	vec_done(&v->blind);
}
