/* SPDX-License-Identifier: MIT
 *
 * What all machines did together. Counters add up what each grew by since it was first read (the job's:
 * since the job began), so that a machine that comes later is no leap; gauges add up what each has now.
 * Pressure and load are shares of one machine's time and have no sum: there is none, which is not zero.
 */
#include "record/join_part.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY_MS = 100 };

static uint32_t whole_of(enum metric_id m)
{
	switch (metrics[m].entity) {
	case ENTITY_HOST:
		return ID_HOST;
	case ENTITY_JOB:
		return ID_JOB;
	case ENTITY_SELF:
		return ID_SELF;
	default:
		return 0;
	}
}

/* How often something is done is no sum; the first record's stands for it. */
static bool is_rate(enum metric_id m)
{
	return m == M_SELF_RATE || m == M_SELF_STACKS_RATE;
}

bool join_has_sum(enum metric_id m)
{
	const char *name = metrics[m].name;

	return whole_of(m) && strncmp(name, "psi.", 4) != 0 && strncmp(name, "load.", 5) != 0;
}

void join_sum_take(struct join *j, struct join_sums *s, size_t part, enum metric_id m, int64_t raw)
{
	struct join_value *v = &j->parts.v[part].values[m];

	if (!join_has_sum(m) || (is_rate(m) && part != 0))
		return;
	if (!v->has)
		v->first = raw;
	v->has = true;
	v->last = raw;
	s->dirty[m] = true;
}

void join_sum_end(struct join *j, struct join_sums *s, size_t part)
{
	for (int m = 1; m < METRICS; m++) {
		struct join_value *v = &j->parts.v[part].values[m];

		if (metrics[m].kind != KIND_GAUGE || !v->has)
			continue;
		v->has = false;
		s->dirty[m] = true;
	}
}

/* Ranks of one machine, and containers of one host, may each be allowed all of its cores: it has them once. */
static double cores(const struct join *j, enum metric_id m)
{
	double sum = 0;

	for (size_t k = 0; k < j->machines.n; k++) {
		double here = 0, most = j->machines.v[k].cpus / metrics[m].scale;

		for (size_t i = 0; i < j->parts.n; i++)
			if (j->machines.v[j->parts.v[i].machine].same == k &&
			    j->parts.v[i].values[m].has)
				here += (double)j->parts.v[i].values[m].last;
		sum += most > 0 ? fmin(here, most) : here;
	}
	return sum;
}

static bool sum_of(const struct join *j, enum metric_id m, double *ret)
{
	double sum = 0;
	bool any = false;

	for (size_t i = 0; i < j->parts.n; i++) {
		const struct join_value *v = &j->parts.v[i].values[m];
		bool from_zero = metrics[m].entity != ENTITY_HOST &&
				 !(metrics[m].entity == ENTITY_JOB && j->run.attached);

		if (!v->has)
			continue;
		any = true;
		sum += (double)v->last;
		if (metrics[m].kind == KIND_COUNTER && !from_zero)
			sum -= (double)v->first;
	}
	if (any && (m == M_JOB_CORES_ALLOWED || m == M_JOB_CORES_AFFINITY))
		sum = cores(j, m);
	*ret = sum;
	return any && fabs(sum) < 9e18;
}

void join_sum_put(const struct join *j, struct join_sums *s, struct frame *f, bool now)
{
	double sum;

	if (!now && f->mono_ns - s->put_ns < EVERY_MS * NS_PER_MS)
		return;
	s->put_ns = f->mono_ns;
	for (int m = 1; m < METRICS; m++) {
		if (s->dirty[m] && sum_of(j, (enum metric_id)m, &sum))
			frame_put(f, (enum metric_id)m, whole_of((enum metric_id)m),
				  (int64_t)llround(sum));
		s->dirty[m] = false;
	}
}
