/* SPDX-License-Identifier: MIT
 *
 * Which causes came, went and changed between two verdicts; and what makes two runs hard to compare.
 */
#include "explain/compare.h"

#include "base/num.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What has no gain and is no note ended the run: before everything else. */
enum { DEADLY = 100 };
/* A gain that differs by less than this is the same one. */
static const double gain_differs = 0.05;

static const struct finding *find(const struct verdict *v, const char *cause)
{
	for (size_t i = 0; i < v->findings.n; i++)
		if (strcmp(v->findings.v[i].cause, cause) == 0)
			return &v->findings.v[i];
	for (size_t i = 0; i < v->notes.n; i++)
		if (strcmp(v->notes.v[i].cause, cause) == 0)
			return &v->notes.v[i];
	return NULL;
}

static const char *blind(const struct verdict *v, const char *cause)
{
	for (size_t i = 0; i < v->blind.n; i++)
		if (strcmp(v->blind.v[i].cause, cause) == 0)
			return v->blind.v[i].why;
	return NULL;
}

static bool differ(const struct finding *a, const struct finding *b)
{
	if (a->note != b->note || a->has_gain != b->has_gain || a->where.line != b->where.line ||
	    strcmp(a->where.file, b->where.file) != 0)
		return true;
	return a->has_gain && fabs(a->speedup / b->speedup - 1) > gain_differs;
}

static int add(struct comparison *c, const char *cause)
{
	struct compare_cause x = { .cause = cause, .change = CHANGE_NONE };
	struct compare_cause *at;

	for (size_t i = 0; i < c->causes.n; i++)
		if (strcmp(c->causes.v[i].cause, cause) == 0)
			return 0;
	for (int k = 0; k < COMPARE_SIDES; k++)
		x.x[k] = find(c->side[k].verdict, cause);
	if (!x.x[COMPARE_A]) {
		x.why = blind(c->side[COMPARE_A].verdict, cause);
		x.change = x.why ? CHANGE_UNKNOWN_A : CHANGE_NEW;
	} else if (!x.x[COMPARE_B]) {
		x.why = blind(c->side[COMPARE_B].verdict, cause);
		x.change = x.why ? CHANGE_UNKNOWN_B : CHANGE_GONE;
	} else if (differ(x.x[COMPARE_A], x.x[COMPARE_B])) {
		x.change = CHANGE_OTHER;
	}
	at = vec_push(&c->causes);
	if (!at)
		return -ENOMEM;
	*at = x;
	return 0;
}

/* What mending it would bring, as a logarithm: those of two runs can be held against each other. */
static double worth(const struct finding *f)
{
	if (!f)
		return 0;
	if (f->has_gain)
		return log(fmax(f->speedup, 1));
	return f->note ? 0 : DEADLY;
}

/* How much of the difference it may explain. */
static double weight(const struct compare_cause *x)
{
	double w = fabs(worth(x->x[COMPARE_A]) - worth(x->x[COMPARE_B]));

	if (x->change == CHANGE_UNKNOWN_A || x->change == CHANGE_UNKNOWN_B)
		return w / 2; /* it may be in both */
	return x->change == CHANGE_NONE ? -1 : w;
}

int compare_causes(struct comparison *c)
{
	int r = 0;

	for (int k = 0; k < COMPARE_SIDES; k++) {
		const struct verdict *v = c->side[k].verdict;

		for (size_t i = 0; i < v->findings.n && r == 0; i++)
			r = add(c, v->findings.v[i].cause);
		for (size_t i = 0; i < v->notes.n && r == 0; i++)
			r = add(c, v->notes.v[i].cause);
	}
	for (size_t i = 1; i < c->causes.n; i++) {
		struct compare_cause x = c->causes.v[i];
		size_t j = i;

		for (; j > 0 && weight(&x) > weight(&c->causes.v[j - 1]); j--)
			c->causes.v[j] = c->causes.v[j - 1];
		c->causes.v[j] = x;
	}
	return r;
}

__attribute__((format(printf, 3, 4))) static void remark(struct comparison *c, const char *code,
							 const char *fmt, ...)
{
	struct compare_remark *x = vec_push(&c->remarks);
	va_list ap;

	/* Out of memory: compare_remarks() sees that it is not there. */
	if (!x)
		return;
	x->code = code;
	va_start(ap, fmt);
	vsnprintf(x->text, sizeof(x->text), fmt, ap);
	va_end(ap);
}

static void machines(struct comparison *c, const struct machine *a, const struct machine *b)
{
	if (strcmp(a->hostname, b->hostname) != 0)
		remark(c, "machine", "other machines: %.60s (%d CPUs) and %.60s (%d CPUs)",
		       a->hostname[0] ? a->hostname : "?", a->cpus,
		       b->hostname[0] ? b->hostname : "?", b->cpus);
	else if (a->cpus != b->cpus)
		remark(c, "machine", "the machine had %d CPUs in A and %d in B", a->cpus, b->cpus);
	if (strcmp(a->cpu_model, b->cpu_model) != 0)
		remark(c, "cpu_model", "other CPUs: %.80s and %.80s",
		       a->cpu_model[0] ? a->cpu_model : "?", b->cpu_model[0] ? b->cpu_model : "?");
}

/* What both lack is said once. */
static void lacks(struct comparison *c, const char *code, bool a, bool b, const char *what)
{
	if (a || b)
		remark(c, code, "%s: %s", a && b ? "A and B" : a ? "A" : "B", what);
}

static void endings(struct comparison *c)
{
	static const char name[COMPARE_SIDES] = { 'A', 'B' };

	for (int k = 0; k < COMPARE_SIDES; k++) {
		const struct run_info *r = c->side[k].verdict->run;

		if (r->state == RUN_GOING)
			remark(c, "going", "%c is still going", name[k]);
		if (r->has_exit && r->exit_signal)
			remark(c, "exit", "%c was ended by signal %d", name[k], r->exit_signal);
		else if (r->has_exit && r->exit_code)
			remark(c, "exit", "%c ended with exit code %d", name[k], r->exit_code);
	}
}

static void others(struct comparison *c, const struct usage *a, const struct usage *b)
{
	char x[24], y[24];

	if (isfinite(a->others_cores) && isfinite(b->others_cores) &&
	    fabs(a->others_cores - b->others_cores) >
		0.1 * fmax(1, fmax(a->cores_allowed, b->cores_allowed)))
		remark(c, "others", "other programs used %s cores during A and %s during B",
		       num_cores(a->others_cores, x, sizeof(x)),
		       num_cores(b->others_cores, y, sizeof(y)));
}

int compare_remarks(struct comparison *c)
{
	const struct verdict *a = c->side[COMPARE_A].verdict, *b = c->side[COMPARE_B].verdict;

	/* So that a failure to add one is seen. */
	if (!vec_push(&c->remarks))
		return -ENOMEM;
	c->remarks.n = 0;
	machines(c, &a->run->machine, &b->run->machine);
	if (a->level != b->level)
		remark(c, "level",
		       "A was observed at level L%d, B at L%d: causes that need more "
		       "than the lower one cannot be compared",
		       a->level & 3, b->level & 3);
	endings(c);
	lacks(c, "stacks", !a->time_tid, !b->time_tid,
	      "no stacks of a training thread, so where its time went is not known");
	lacks(c, "steps", !steps_source(&a->steps), !steps_source(&b->steps), "no steps");
	lacks(c, "short", !a->judged, !b->judged, "too short to be judged by every rule");
	if (c->speed.basis == COMPARE_BY_INFERRED)
		remark(c, "inferred",
		       "steps are inferred from what repeats: they are right if one "
		       "is the same work in both");
	if (c->speed.basis == COMPARE_BY_WALL)
		remark(c, "wall",
		       "the lengths of the whole runs are compared: right if both did "
		       "the same work");
	if (c->speed.basis == COMPARE_BY_NOTHING)
		remark(c, "speed",
		       "how fast they are cannot be compared: it takes steps in both, "
		       "or the same program that came to its end");
	others(c, &a->usage, &b->usage);
	return 0;
}
