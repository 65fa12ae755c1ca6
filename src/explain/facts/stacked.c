/* SPDX-License-Identifier: MIT */
#include "explain/facts/stacked.h"

#include "explain/ledger/phases.h"

/* Fewer say nothing about a share: half its 95 % interval is 15 points then. */
static const uint32_t samples_least = 40;
/* With more of its time unknown, what is known of it may be anything. */
static const double unknown_most = 0.5;
/* Share of its time: a thread of a pool that loads less is there for something else. */
static const double loads_least = 0.005;
/* Deeper than any chain of launchers and servers of forks. */
enum { ANCESTORS_MAX = 16 };

const struct act_thread *stacked_critical(const struct activity *a, const char **ret_why)
{
	const struct act_thread *t;

	if (!a->any) {
		*ret_why = a->why_not ? a->why_not : "no stacks were recorded";
		return NULL;
	}
	if (a->critical < 0 || (size_t)a->critical >= a->threads.n) {
		*ret_why = "which thread the training waits for is not known";
		return NULL;
	}
	t = &a->threads.v[a->critical];
	if (t->samples < samples_least || t->alive <= 0) {
		*ret_why = "too few stacks of the training thread were recorded";
		return NULL;
	}
	if (t->unaccounted > unknown_most * t->alive) {
		*ret_why = "most of the training thread's stacks could not be read";
		return NULL;
	}
	return t;
}

bool stacked_loads(const struct act_row *r, bool worker)
{
	if (r->unknown)
		return false;
	if (!worker)
		return r->state == TIME_DATA_LOAD;
	/* data_wait: it waits inside of loading, for a program of its own, say */
	if (r->on_cpu || r->state == TIME_DATA_LOAD || r->state == TIME_DATA_WAIT)
		return true;
	return r->kind == WAIT_DISK || r->kind == WAIT_FILE || r->kind == WAIT_PAGE_FAULT ||
	       r->kind == WAIT_GIL || r->state == TIME_MEMORY_STALL;
}

/* Does it work for another rank of the job than the critical thread's? By the processes above it. */
static bool of_another_rank(const struct scene *s, const struct act_thread *t)
{
	const struct activity *a = &s->activity;
	uint32_t own = a->threads.v[a->critical].process, process = t->process;

	for (int depth = 0; depth < ANCESTORS_MAX && process != own; depth++) {
		const struct entity *e = entity_find(window_entities(s->whole), process);

		if (!e || e->kind != ENTITY_PROC)
			return false;
		for (size_t i = 0; i < a->threads.n; i++)
			if (a->threads.v[i].process == process && a->threads.v[i].role == ROLE_MAIN)
				return true;
		process = e->parent;
	}
	return false;
}

/* Its first thread speaks for a process, else the first that is one. */
static bool speaks(const struct activity *a, const struct act_thread *t)
{
	if (t->first || t->process == a->threads.v[a->critical].process)
		return true;
	for (size_t i = 0; i < a->threads.n; i++) {
		const struct act_thread *x = &a->threads.v[i];

		if (x->process == t->process && x->role == ROLE_LOADER_WORKER && x != t &&
		    (x->first || x < t))
			return false;
	}
	return true;
}

static bool ever_loads(const struct activity *a, const struct act_thread *t)
{
	double seconds = 0;

	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];

		/* a framework's own worker is one, also if it has nothing to do all day */
		if (t->first && r->sure && r->phase == PHASE_WORK_WAIT)
			return true;
		seconds += stacked_loads(r, true) ? r->seconds : 0;
	}
	return seconds > loads_least * t->covered;
}

bool stacked_is_worker(const struct scene *s, const struct act_thread *t)
{
	const struct activity *a = &s->activity;

	return t->role == ROLE_LOADER_WORKER && a->critical >= 0 &&
	       t != &a->threads.v[a->critical] && ever_loads(a, t) && speaks(a, t) &&
	       !of_another_rank(s, t);
}

bool stacked_has_python(const struct activity *a, const struct act_thread *t)
{
	for (size_t k = t->row; k < t->row + t->n_rows; k++)
		if (a->rows.v[k].leaf || a->rows.v[k].flags & STACK_PYTHON)
			return true;
	return false;
}

void heat_add(struct heat *h, const struct stack_book *b, uint32_t place, double seconds)
{
	const struct place *p = b ? stack_book_find_place(b, place) : NULL;
	struct heat_row *row;
	uint32_t at;
	uint64_t key;

	h->seconds += seconds;
	if (!p || h->failed)
		return;
	key = place_function(p);
	if (!map_get(&h->by_function, key, &at)) {
		row = vec_push(&h->functions);
		at = (uint32_t)h->functions.n - 1;
		if (!row || !map_put(&h->by_function, key, at)) {
			h->failed = true;
			return;
		}
		*row = (struct heat_row){ .key = key, .place = place };
	}
	h->functions.v[at].seconds += seconds;
	if (!map_get(&h->by_place, place, &at)) {
		row = vec_push(&h->lines);
		at = (uint32_t)h->lines.n - 1;
		if (!row || !map_put(&h->by_place, place, at)) {
			h->failed = true;
			return;
		}
		*row = (struct heat_row){ .key = key, .place = place, .lined = p->line > 0 };
	}
	h->lines.v[at].seconds += seconds;
}

/* Among equals the first line of the file, so that a verdict is the same however rows are ordered. */
static bool is_hotter(const struct heat_row *x, const struct heat_row *than)
{
	if (!than || x->lined != than->lined)
		return !than || x->lined;
	return x->seconds > than->seconds ||
	       (x->seconds == than->seconds && x->place < than->place);
}

double heat_of_place(const struct heat *h, uint32_t place)
{
	uint32_t at;

	return !h->failed && map_get(&h->by_place, place, &at) ? h->lines.v[at].seconds : 0;
}

double heat_of_function(const struct heat *h, uint64_t function)
{
	uint32_t at;

	return !h->failed && map_get(&h->by_function, function, &at) ? h->functions.v[at].seconds
								     : 0;
}

uint32_t heat_line(const struct heat *h, uint64_t function)
{
	const struct heat_row *line = NULL;

	for (size_t i = 0; i < h->lines.n && !h->failed; i++) {
		const struct heat_row *x = &h->lines.v[i];

		if (x->key == function && is_hotter(x, line))
			line = x;
	}
	return line ? line->place : 0;
}

uint32_t heat_top(const struct heat *h, double *ret_seconds)
{
	const struct heat_row *function = NULL;

	*ret_seconds = 0;
	for (size_t i = 0; i < h->functions.n; i++)
		if (!function || h->functions.v[i].seconds > function->seconds)
			function = &h->functions.v[i];
	if (!function || h->failed)
		return 0;
	*ret_seconds = function->seconds;
	return heat_line(h, function->key);
}

void heat_done(struct heat *h)
{
	map_done(&h->by_function);
	map_done(&h->by_place);
	vec_done(&h->functions);
	vec_done(&h->lines);
}

double stacked_topics(const struct activity *a, const struct act_thread *t, uint32_t topics,
		      struct heat *heat)
{
	double seconds = 0;

	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];

		if (r->unknown || !(r->topics & topics))
			continue;
		seconds += r->seconds;
		if (heat && (r->place || r->leaf))
			heat_add(heat, a->book, r->place ? r->place : r->leaf, r->seconds);
	}
	return seconds;
}
