/* SPDX-License-Identifier: MIT */
#include "explain/compare.h"

#include "base/text.h"
#include "explain/render.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More of them are not a job's settings. */
enum { SETTINGS_MOST = 200 };

const char *compare_basis_name(enum compare_basis b)
{
	static const char *const names[] = { "none", "steps", "inferred", "wall" };

	return names[b];
}

const char *compare_change_name(enum compare_change c)
{
	static const char *const names[] = { "vanished",     "appeared", "unknown_in_a",
					     "unknown_in_b", "changed",  "same" };

	return names[c];
}

double compare_change(const struct compare_row *r)
{
	double a = r->v[COMPARE_A], b = r->v[COMPARE_B];

	return isfinite(a) && isfinite(b) ? b - a : NAN;
}

static struct compare_row *row_of(compare_rows *rows, const char *foreign, const char *unit)
{
	struct compare_row *x;
	char name[sizeof(x->name)];

	text_safe_copy(name, sizeof(name), foreign);
	for (size_t i = 0; i < rows->n; i++)
		if (strcmp(rows->v[i].name, name) == 0)
			return &rows->v[i];
	x = vec_push(rows);
	if (!x)
		return NULL;
	*x = (struct compare_row){ .unit = unit, .v = { NAN, NAN } };
	text_copy(x->name, sizeof(x->name), name);
	return x;
}

static int put(compare_rows *rows, const char *name, const char *unit, int side, double v,
	       const char *words)
{
	struct compare_row *x;

	if (!isfinite(v))
		return 0;
	x = row_of(rows, name, unit);
	if (!x)
		return -ENOMEM;
	x->v[side] = v;
	x->words = words ? words : x->words;
	return 0;
}

/* By what they explain; among equals as they came. Both ledgers are whole: what is in one and not in the other
 * is nothing there. */
static void sort_ledger(compare_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		for (int k = 0; k < COMPARE_SIDES; k++)
			if (!isfinite(rows->v[i].v[k]))
				rows->v[i].v[k] = 0;
	for (size_t i = 1; i < rows->n; i++) {
		struct compare_row x = rows->v[i];
		double change = fabs(compare_change(&x));
		size_t j = i;

		for (; j > 0 && change > fabs(compare_change(&rows->v[j - 1])); j--)
			rows->v[j] = rows->v[j - 1];
		rows->v[j] = x;
	}
}

static bool has_time(const struct verdict *v)
{
	return v->time_tid && v->time.n;
}

/* Only where both have one: a ledger against nothing tells nothing. */
static int fill_time(struct comparison *c)
{
	int r = 0;

	if (!has_time(c->side[COMPARE_A].verdict) || !has_time(c->side[COMPARE_B].verdict))
		return 0;
	for (int k = 0; k < COMPARE_SIDES && r == 0; k++) {
		const struct verdict *v = c->side[k].verdict;
		double unit = c->per_step ? c->speed.seconds[k] : 1;
		const char *name = c->per_step ? "seconds" : "ratio";

		for (size_t i = 0; i < v->time.n && r == 0; i++)
			if (v->time.v[i].share > 0)
				r = put(&c->time, v->time.v[i].role, name, k,
					v->time.v[i].share * unit,
					time_state_words(v, v->time.v[i].role));
		if (r == 0 && v->time_unaccounted > 0)
			r = put(&c->time, "unaccounted", name, k, v->time_unaccounted * unit,
				"unaccounted");
	}
	sort_ledger(&c->time);
	return r;
}

static int fill_cpu(struct comparison *c)
{
	int r = 0;

	for (int k = 0; k < COMPARE_SIDES; k++)
		if (!c->side[k].verdict->cpu.n)
			return 0;
	for (int k = 0; k < COMPARE_SIDES && r == 0; k++) {
		const struct verdict *v = c->side[k].verdict;
		double unit = c->per_step ? c->speed.seconds[k] : 1;
		const char *name = c->per_step ? "seconds" : "cores";

		for (size_t i = 0; i < v->cpu.n && r == 0; i++)
			r = put(&c->cpu, v->cpu.v[i].role, name, k, v->cpu.v[i].cores * unit, NULL);
		if (r == 0)
			r = put(&c->cpu, "unaccounted", name, k,
				v->cpu_unaccounted * v->cpu_cores * unit, NULL);
	}
	sort_ledger(&c->cpu);
	return r;
}

/* The last word of the program on each. */
static int fill_settings(struct comparison *c)
{
	compare_rows all = { 0 };
	int r = 0;

	for (int k = 0; k < COMPARE_SIDES; k++) {
		const struct window *w = c->side[k].window;
		size_t n = 0;
		const struct window_scalar *v =
		    w->ops->settings ? w->ops->settings(w->src, &n) : NULL;

		for (size_t i = 0; i < n && r == 0 && all.n < SETTINGS_MOST; i++)
			r = put(&all, v[i].name, "count", k, v[i].value, NULL);
	}
	for (size_t i = 0; i < all.n && r == 0; i++) {
		const struct compare_row *x = &all.v[i];
		struct compare_row *to;

		if (x->v[COMPARE_A] == x->v[COMPARE_B])
			continue;
		to = vec_push(&c->settings);
		if (to)
			*to = *x;
		else
			r = -ENOMEM;
	}
	vec_done(&all);
	return r;
}

/* Of the GPUs a process of the job was on, or all where that is not known. */
static void sum_gpus(const struct usage *u, double *busy, double *memory, double *n)
{
	*busy = *memory = *n = NAN;
	for (size_t i = 0; i < u->gpus.n; i++) {
		const struct usage_gpu *g = &u->gpus.v[i];

		if (!g->job || g->is_shell)
			continue;
		*n = (isfinite(*n) ? *n : 0) + 1;
		if (isfinite(g->busy))
			*busy = (isfinite(*busy) ? *busy : 0) + g->busy;
		if (isfinite(g->memory_peak))
			*memory = (isfinite(*memory) ? *memory : 0) + g->memory_peak;
	}
}

static int fill_usage(struct comparison *c)
{
	int r = 0;

	for (int k = 0; k < COMPARE_SIDES && r == 0; k++) {
		const struct usage *u = &c->side[k].verdict->usage;
		double busy, memory, n;

		sum_gpus(u, &busy, &memory, &n);
		if (put(&c->usage, "cpu.cores_used", "cores", k, u->cores_used, "cores used") < 0 ||
		    put(&c->usage, "cpu.cores_allowed", "cores", k, u->cores_allowed,
			"cores allowed") < 0 ||
		    put(&c->usage, "others.cpu_cores", "cores", k, u->others_cores,
			"cores other programs used") < 0 ||
		    put(&c->usage, "memory.peak_bytes", "bytes", k, u->memory_peak,
			"memory, at most") < 0 ||
		    put(&c->usage, "storage.read_bytes", "bytes", k, u->read_bytes,
			"fetched from storage") < 0 ||
		    put(&c->usage, "storage.written_bytes", "bytes", k, u->written_bytes,
			"sent to storage") < 0 ||
		    put(&c->usage, "gpu.count", "count", k, n, "GPUs") < 0 ||
		    put(&c->usage, "gpu.busy", "count", k, busy, "GPUs busy") < 0 ||
		    put(&c->usage, "gpu.memory_peak_bytes", "bytes", k, memory,
			"memory of GPUs, at most") < 0)
			r = -ENOMEM;
	}
	return r;
}

int compare_runs(const struct compare_side side[COMPARE_SIDES], struct comparison *ret)
{
	struct comparison c = { .side = { side[COMPARE_A], side[COMPARE_B] } };
	int r;

	compare_speed(&c);
	c.per_step = c.speed.basis == COMPARE_BY_STEPS || c.speed.basis == COMPARE_BY_INFERRED;
	r = fill_time(&c);
	if (r == 0)
		r = fill_cpu(&c);
	if (r == 0)
		r = fill_settings(&c);
	if (r == 0)
		r = fill_usage(&c);
	if (r == 0)
		r = compare_causes(&c);
	if (r == 0)
		r = compare_remarks(&c);
	if (r < 0)
		comparison_done(&c);
	else
		*ret = c;
	return r;
}

void comparison_done(struct comparison *c)
{
	vec_done(&c->time);
	vec_done(&c->cpu);
	vec_done(&c->settings);
	vec_done(&c->usage);
	vec_done(&c->causes);
	vec_done(&c->remarks);
}
