/* SPDX-License-Identifier: MIT
 *
 * Did it stand still at its end, however it ended: a time in which the job used no CPU, nothing ran on its GPU, and
 * a process of the job had it open? A training that is over and has not ended looks so, in a run that was steady
 * before.
 */
#include "explain/facts/stretch.h"

#include "base/clock.h"

#include <math.h>

static const double cores_most = 0.03; /* background threads wake up now and then */
static const double gpu_most = 0.01;
static const int64_t fine_ns = 2 * NS_PER_S, coarse_ns = 60 * NS_PER_S;
static const int64_t exit_ns = NS_PER_S; /* an interpreter that ends uses a CPU for a moment */
static const int64_t look_back_ns = 3600 * NS_PER_S; /* longer is no news */

enum still { MOVES, STILL, NOT_KNOWN };

static enum still is_still(const struct scene *s, int64_t from, int64_t to)
{
	struct window w = *s->whole;
	enum still r = STILL;
	double cpu, busy;

	w.from_ns = from;
	w.to_ns = to;
	if (!window_delta(&w, M_JOB_CPU, ID_JOB, &cpu))
		return NOT_KNOWN;
	if (cpu > cores_most * (double)(to - from) / 1e9)
		return MOVES;
	for (size_t i = 0; i < s->gpus.rows.n; i++) {
		const struct gpu_row *g = &s->gpus.rows.v[i];

		if (!gpu_is_unit(g) || g->use == GPU_USE_NO)
			continue;
		if (!window_mean(&w, M_GPU_BUSY, g->id, &busy))
			r = NOT_KNOWN;
		else if (busy > gpu_most)
			return MOVES;
	}
	return r;
}

/* Start of the still stretch before `end`: in small steps, in larger ones further back. */
static int64_t still_from(const struct scene *s, int64_t end, bool *ret_known)
{
	int64_t at = end, step = fine_ns;
	enum still r = STILL;

	while (r == STILL && end - at < look_back_ns && at - step >= s->whole->from_ns) {
		r = is_still(s, at - step, at);
		at -= r == STILL ? step : 0;
		step = end - at < coarse_ns ? fine_ns : coarse_ns;
	}
	*ret_known = r != NOT_KNOWN;
	return at;
}

/* When the last process of the job left its GPU; the end of the window: it did not. */
static int64_t held_until(const struct scene *s)
{
	int64_t last = 0;

	for (size_t i = 0; i < s->gpus.processes.n; i++) {
		const struct gpu_process_row *p = &s->gpus.processes.v[i];
		int64_t end = p->gone_ns ? p->gone_ns : s->whole->to_ns;

		if (p->job && end > last)
			last = end;
	}
	return last;
}

/* From when to `end` it stood still and held its GPU; `end`: it did not. */
static int64_t tail_from(const struct scene *s, const struct member *m, int64_t end,
			 bool *ret_known)
{
	*ret_known = true;
	/* A part of the run that is over before it ended is no end; and what comes when the GPU is free again
	 * costs nobody anything. */
	if ((m && m->gone_ns > s->whole->to_ns) || held_until(s) < end - fine_ns)
		return end;
	return still_from(s, end, ret_known);
}

static void compute(const struct scene *s, struct facts *f)
{
	const struct member *m = scene_member(s, s->main_proc);
	int64_t end = s->whole->to_ns, from;
	bool known = true;
	uint32_t place;
	double cpu;

	if (!window_delta(s->whole, M_JOB_CPU, ID_JOB, &cpu)) {
		fact_absent(f, FACT_TAIL, "%s: %s", metrics[M_JOB_CPU].name,
			    window_why_absent(s->whole, M_JOB_CPU, ID_JOB));
		fact_absent_like(f, FACT_TAIL_SHARE, FACT_TAIL);
		return;
	}
	if (!f->v[FACT_GPU_USED].known) {
		fact_absent_like(f, FACT_TAIL, FACT_GPU_USED);
		fact_absent_like(f, FACT_TAIL_SHARE, FACT_GPU_USED);
		return;
	}
	if (m && m->gone_ns && m->gone_ns < end)
		end = m->gone_ns;
	if (s->run->has_exit || (m && m->gone_ns))
		end -= exit_ns;
	from = f->v[FACT_GPU_USED].value >= 1 ? tail_from(s, m, end, &known) : end;
	if (!known) {
		fact_absent(f, FACT_TAIL, "whether its GPU did something at the end is not known");
		fact_absent_like(f, FACT_TAIL_SHARE, FACT_TAIL);
		return;
	}
	fact_set(f, FACT_TAIL, (double)(end - from) / 1e9);
	fact_set(f, FACT_TAIL_SHARE,
		 s->whole_seconds > 0 ? fmin(1, (double)(end - from) / 1e9 / s->whole_seconds) : 0);
	place = stretch_place(s, from, end);
	if (place)
		fact_set_place(f, FACT_TAIL, place);
}

const struct fact_source tail_facts = { "tail", compute };
