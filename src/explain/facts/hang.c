/* SPDX-License-Identifier: MIT
 *
 * Did it hang before it ended? Of a program that was stopped or failed: how long before that it used no CPU
 * while nothing ran on its GPU, what its first thread waited for then, and the others.
 */
#include "explain/fact.h"
#include "explain/scene.h"

#include "base/clock.h"
#include "model/wait_kind.h"

#include <math.h>
#include <string.h>

static const double cores_most =
    0.03; /* of the whole job: background threads wake up now and then */
static const double gpu_most = 0.01;
static const int64_t fine_ns = 5 * NS_PER_S, coarse_ns = 60 * NS_PER_S;
static const int64_t look_back_ns = 3600 * NS_PER_S; /* longer is no news */
static const double others_least = 0.5;              /* of the time: what a thread did */

static bool is_quiet(const struct scene *s, int64_t from, int64_t to)
{
	struct window w = *s->whole;
	double cpu;

	w.from_ns = from;
	w.to_ns = to;
	return window_delta(&w, M_JOB_CPU, ID_JOB, &cpu) &&
	       cpu <= cores_most * (double)(to - from) / 1e9;
}

/* Start of the quiet stretch before `end`: steps of five seconds, of a minute further back. */
static int64_t quiet_from(const struct scene *s, int64_t end)
{
	int64_t at = end, step = fine_ns;
	bool fine = false;

	while (end - at < look_back_ns) {
		if (at - step >= s->whole->from_ns && is_quiet(s, at - step, at)) {
			at -= step;
			step = end - at < coarse_ns || fine ? fine_ns : coarse_ns;
		} else if (step > fine_ns) { /* where in that minute? */
			step = fine_ns;
			fine = true;
		} else {
			break;
		}
	}
	return at;
}

/* 1 something ran on a GPU that is or may be the job's, 0 nothing did, NAN not known. */
static double gpu_ran(const struct scene *s, int64_t from, int64_t to)
{
	struct window w = *s->whole;
	double found = 0, busy;

	w.from_ns = from;
	w.to_ns = to;
	for (size_t i = 0; i < s->gpus.rows.n; i++) {
		const struct gpu_row *g = &s->gpus.rows.v[i];

		if (!gpu_is_unit(g) || g->use == GPU_USE_NO)
			continue;
		if (!window_mean(&w, M_GPU_BUSY, g->id, &busy))
			found = NAN;
		else if (busy > gpu_most)
			return g->use == GPU_USE_YES ? 1 : (double)NAN;
	}
	return found;
}

static const char *waits_for(const struct stack_row *r)
{
	enum wait_kind k = r->kind == WAIT_POLL ? r->on : r->kind;

	switch (k) {
	case WAIT_GIL:
		return "the GIL";
	case WAIT_LOCK:
		return "a lock";
	case WAIT_PIPE:
		return "a pipe";
	case WAIT_QUEUE:
		return "a message queue";
	case WAIT_FILE:
	case WAIT_DISK:
		return "a file";
	case WAIT_SOCKET:
		/* who polls sockets serves somebody */
		return r->kind == WAIT_POLL ? NULL : "a socket";
	case WAIT_GPU_DRIVER:
		return "the GPU's driver";
	case WAIT_PAGE_FAULT:
		return "memory";
	default:
		return NULL;
	}
}

enum { WORDS = 9, NONE = WORDS };
static const char *const words[WORDS] = { "the GIL",          "a lock", "a pipe",
					  "a message queue",  "a file", "a socket",
					  "the GPU's driver", "memory", "something else" };

static size_t word_of(const struct stack_row *r)
{
	const char *w = waits_for(r);

	for (size_t i = 0; w && i < WORDS; i++)
		if (strcmp(words[i], w) == 0)
			return i;
	return r->kind == WAIT_RUNNING || r->kind == WAIT_RUNNABLE ? NONE : WORDS - 1;
}

struct tally {
	uint32_t first; /* thread */
	double all, hung, by[WORDS];
	uint32_t node; /* of the longest wait of the first thread */
	double longest;
	struct map others; /* thread -> its word */
};

static bool take(const struct stack_slice *slice, void *arg)
{
	struct tally *t = arg;

	for (size_t i = 0; i < slice->n; i++) {
		const struct stack_row *r = &slice->rows[i];
		size_t w = word_of(r);
		double seconds = r->weight_ns > 0 ? (double)r->weight_ns / 1e9 : 0;

		if (r->entity != t->first) {
			if (w != NONE)
				(void)map_put(&t->others, r->entity, (uint32_t)w);
			continue;
		}
		t->all += seconds;
		if (w == NONE || w == WORDS - 1)
			continue;
		t->hung += seconds;
		t->by[w] += seconds;
		if (seconds >= t->longest) {
			t->longest = seconds;
			t->node = r->node;
		}
	}
	return true;
}

static bool is_library(const char *file)
{
	return strstr(file, "/lib/python") || strstr(file, "-packages/") || file[0] == '<';
}

/* The innermost line of the program's own, or, without any, of a library. The steady window may have nothing
 * of it. */
static uint32_t place_of(const struct scene *s, uint32_t node)
{
	const struct stack_book *b = s->activity.book;
	uint32_t places[STACK_DEPTH_MAX], any = 0;
	size_t n = b ? stack_book_walk(b, node, places, STACK_DEPTH_MAX) : 0;

	for (size_t i = 0; i < n; i++) {
		const struct place *p = stack_book_find_place(b, places[i]);

		if (!p || p->kind != PLACE_PYTHON)
			continue;
		any = any ? any : places[i];
		if (!is_library(p->file))
			return places[i];
	}
	return any;
}

static size_t most_of(const double *by)
{
	size_t top = 0;

	for (size_t i = 1; i < WORDS; i++)
		if (by[i] > by[top])
			top = i;
	return top;
}

static void set_others(const struct scene *s, struct facts *f, struct tally *t)
{
	double by[WORDS] = { 0 }, n = 0;

	for (size_t i = 0; i < s->activity.threads.n; i++) {
		uint32_t w;

		if (!map_get(&t->others, s->activity.threads.v[i].id, &w))
			continue;
		n++;
		by[w]++;
	}
	fact_set(f, FACT_HANG_OTHERS, n);
	if (n > 0)
		fact_set_subject(f, FACT_HANG_OTHERS, 0, words[most_of(by)]);
}

static void waiting(const struct scene *s, struct facts *f, int64_t from, int64_t to)
{
	const struct activity *a = &s->activity;
	struct window w = *s->whole;
	struct tally t = { 0 };
	uint32_t at, place;

	fact_absent(f, FACT_HANG_WAIT, "what it waited for was not recorded");
	fact_absent_like(f, FACT_HANG_OTHERS, FACT_HANG_WAIT);
	if (!a->any || (!map_get(&a->first, s->main_proc, &at) && a->critical < 0))
		return;
	t.first = a->critical >= 0 ? a->threads.v[a->critical].id : a->threads.v[at].id;
	w.from_ns = from;
	w.to_ns = to;
	if (window_stacks(&w, take, &t) == 0 && t.all >= others_least * (double)(to - from) / 1e9) {
		fact_set(f, FACT_HANG_WAIT, t.hung / t.all);
		fact_set_subject(f, FACT_HANG_WAIT, 0, words[most_of(t.by)]);
		place = place_of(s, t.node);
		if (t.hung > 0 && place)
			f->v[FACT_HANG_WAIT].place = place;
		set_others(s, f, &t);
	}
	map_done(&t.others);
}

static void compute(const struct scene *s, struct facts *f)
{
	const struct member *m = scene_member(s, s->main_proc);
	int64_t end = s->whole->to_ns, from;
	double cpu, ran;

	fact_absent(f, FACT_HANG_WAIT, "it did not stand still");
	fact_absent_like(f, FACT_HANG_OTHERS, FACT_HANG_WAIT);
	if (!window_delta(s->whole, M_JOB_CPU, ID_JOB, &cpu)) {
		fact_absent(f, FACT_HANG, "%s: %s", metrics[M_JOB_CPU].name,
			    window_why_absent(s->whole, M_JOB_CPU, ID_JOB));
		fact_absent_like(f, FACT_HANG_SHARE, FACT_HANG);
		return;
	}
	if (m && m->gone_ns && m->gone_ns < end)
		end = m->gone_ns;
	/* asked about a part of the run that is over before it ended: that is no end */
	from = s->run->has_exit && !(m && m->gone_ns > end) && fact_or(f, FACT_RUN_DONE, 1) < 1
		   ? quiet_from(s, end)
		   : end;
	ran = from < end ? gpu_ran(s, from, end) : 0;
	if (isnan(ran)) {
		fact_absent(f, FACT_HANG, "whether its GPU did something at the end is not known");
		fact_absent_like(f, FACT_HANG_SHARE, FACT_HANG);
		return;
	}
	from = ran > 0 ? end : from;
	fact_set(f, FACT_HANG, (double)(end - from) / 1e9);
	fact_set(f, FACT_HANG_SHARE,
		 s->whole_seconds > 0 ? (double)(end - from) / 1e9 / s->whole_seconds : 0);
	if (from < end)
		waiting(s, f, from, end);
}

const struct fact_source hang_facts = { "hang", compute };
