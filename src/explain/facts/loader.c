/* SPDX-License-Identifier: MIT
 *
 * Who loads the data: how many workers at a time, what they do, the line of the program that gets
 * the batches, and whose loader it is.
 */
#include "explain/facts/stacked.h"
#include "explain/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The library that loads, by a part of the path of its files. */
static const struct {
	const char *path, *name;
} libraries[] = {
	{ "torch/utils/data/", "torch" },      { "tensorflow/python/data/", "tf.data" },
	{ "keras/src/utils/", "keras" },       { "keras/utils/", "keras" },
	{ "mxnet/gluon/data/", "gluon" },      { "paddle/io/", "paddle" },
	{ "multiprocessing/pool.py", "pool" }, { "concurrent/futures/", "pool" },
};

/* Share of its time that a training waits for data: less, and its forks may be for anything. */
static const double forks_wait_least = 0.05;

struct crew {
	double alive, run, queue, storage, idle, known; /* seconds; storage, idle, known: sampled */
	double samples, importing;                      /* importing: seconds, sampled */
	bool no_accounts;                /* of one of them run or queue is not known */
	double processes, threads, seen; /* seconds, seconds, count */
};

static void add_worker(struct crew *c, const struct activity *a, const struct act_thread *t)
{
	c->alive += t->alive;
	c->samples += t->samples;
	c->no_accounts |= !isfinite(t->run) || !isfinite(t->queue);
	c->run += isfinite(t->run) ? t->run : 0;
	c->queue += isfinite(t->queue) ? t->queue : 0;
	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];

		if (r->unknown)
			continue;
		c->known += r->seconds;
		c->importing += r->importing ? r->seconds : 0;
		if (r->on_cpu || r->state == TIME_CPU_QUEUE)
			continue;
		if (stacked_loads(r, true))
			c->storage += r->seconds;
		else
			c->idle += r->seconds;
	}
}

static void set_share(struct facts *f, enum fact_id id, double share, double samples)
{
	double error = activity_error(share, samples);

	fact_set_range(f, id, share, fmax(0, share - error), fmin(1, share + error));
}

/* What the accounts of the kernel leave is shared out as the samples of waiting are. */
static void set_crew(struct facts *f, const struct crew *c)
{
	double rest = fmax(0, c->alive - c->run - c->queue), waits = c->storage + c->idle;

	if (c->alive <= 0 || c->known <= 0)
		return;
	if (c->no_accounts) {
		fact_absent(f, FACT_LOADER_BUSY, "CPU time of the loader workers is not known");
		fact_absent_like(f, FACT_LOADER_QUEUED, FACT_LOADER_BUSY);
		set_share(f, FACT_LOADER_STORAGE, c->storage / c->known, c->samples);
		set_share(f, FACT_LOADER_IDLE, c->idle / c->known, c->samples);
		return;
	}
	fact_set(f, FACT_LOADER_BUSY, fmin(1, c->run / c->alive));
	fact_set(f, FACT_LOADER_QUEUED, fmin(1, c->queue / c->alive));
	set_share(f, FACT_LOADER_STORAGE, waits > 0 ? rest / c->alive * (c->storage / waits) : 0,
		  c->samples);
	set_share(f, FACT_LOADER_IDLE, waits > 0 ? rest / c->alive * (c->idle / waits) : 0,
		  c->samples);
}

static const char *library_of(const struct activity *a, const struct act_row *r)
{
	uint32_t places[STACK_DEPTH_MAX];
	size_t n = stack_book_walk(a->book, r->node, places, STACK_DEPTH_MAX);

	for (size_t k = 0; k < sizeof(libraries) / sizeof(libraries[0]); k++)
		for (size_t i = 0; i < n; i++) {
			const struct place *p = stack_book_find_place(a->book, places[i]);

			if (p && strstr(p->file, libraries[k].path))
				return libraries[k].name;
		}
	return NULL;
}

/* Of the time data is loaded or waited for, the longest stretch that a known library is in. */
static void framework(const struct scene *s, struct facts *f)
{
	const struct activity *a = &s->activity;
	const char *name = NULL;
	double most = 0;
	bool any = false;

	for (size_t i = 0; i < a->threads.n; i++) {
		const struct act_thread *t = &a->threads.v[i];
		bool worker = stacked_is_worker(s, t);

		if (!worker && (int)i != a->critical)
			continue;
		for (size_t k = t->row; k < t->row + t->n_rows; k++) {
			const struct act_row *r = &a->rows.v[k];
			const char *l;

			if (!worker && r->state != TIME_DATA_LOAD && r->state != TIME_DATA_WAIT)
				continue;
			any = true;
			l = r->seconds > most ? library_of(a, r) : NULL;
			if (l) {
				name = l;
				most = r->seconds;
			}
		}
	}
	if (!any)
		return;
	fact_set(f, FACT_LOADER_FRAMEWORK, name != NULL);
	if (name)
		fact_set_subject(f, FACT_LOADER_FRAMEWORK, 0, name);
}

static bool gets_data(const struct act_row *r)
{
	return r->state == TIME_DATA_LOAD || r->state == TIME_DATA_WAIT;
}

/* Functions the thread is in while it does something else than getting data: the loop among them. */
static bool note_functions(const struct activity *a, const struct act_thread *t, struct map *seen)
{
	uint32_t places[STACK_DEPTH_MAX];

	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];
		/* queued for a CPU, it may be in the midst of getting data */
		size_t n = gets_data(r) || r->unknown || r->state == TIME_CPU_QUEUE
			       ? 0
			       : stack_book_walk(a->book, r->node, places, STACK_DEPTH_MAX);

		for (size_t i = 0; i < n; i++) {
			const struct place *p = stack_book_find_place(a->book, places[i]);

			if (p && p->kind == PLACE_PYTHON && !map_put(seen, place_code(p), 1))
				return false;
		}
	}
	return true;
}

static uint64_t file_of(const struct place *p)
{
	return map_mix((uint64_t)(uintptr_t)p->file);
}

/* Files that are the program's own. A line of a library's loop is nothing its user can change. */
static bool note_own(const struct activity *a, const struct act_thread *t, struct map *own)
{
	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct place *p = stack_book_find_place(a->book, a->rows.v[k].place);

		if (p && !map_put(own, file_of(p), 1))
			return false;
	}
	return true;
}

static bool is_top(const struct place *p)
{
	return strcmp(p->function, "<module>") == 0;
}

/* The program's own innermost line is a loop over the loader, that is over code of a library. */
static bool heads_loop(const struct activity *a, const struct act_row *r)
{
	const struct place *p = stack_book_find_place(a->book, r->place);

	return p && p->source && r->leaf != r->place && strncmp(p->source, "for ", 4) == 0;
}

/* A thread that does next to nothing but wait is never seen elsewhere in its loop: then all functions part
 * at the top, and the loop itself is the line.
 * The line that gets the batches: where the stacks of getting data part from all others, which is in
 * the function that has the loop. 0: none. */
static uint32_t parting(const struct activity *a, const struct act_row *r, const struct map *seen,
			const struct map *own)
{
	uint32_t places[STACK_DEPTH_MAX], one;
	size_t n = stack_book_walk(a->book, r->node, places, STACK_DEPTH_MAX);

	for (size_t i = 0; i < n; i++) {
		const struct place *p = stack_book_find_place(a->book, places[i]);

		if (p && p->kind == PLACE_PYTHON && map_get(seen, place_code(p), &one) &&
		    map_get(own, file_of(p), &one))
			return is_top(p) && heads_loop(a, r) ? r->place : places[i];
	}
	return 0;
}

static void line(const struct activity *a, const struct act_thread *t, struct facts *f)
{
	struct map seen = { 0 }, own = { 0 };
	struct heat heat = { 0 };
	bool ok = note_functions(a, t, &seen) && note_own(a, t, &own);
	double top, all = 0;
	uint32_t place;

	for (size_t k = t->row; ok && k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];

		all += r->seconds;
		place = gets_data(r) ? parting(a, r, &seen, &own) : 0;
		if (place)
			heat_add(&heat, a->book, place, r->seconds);
	}
	place = heat_top(&heat, &top);
	if (place && all > 0) {
		fact_set(f, FACT_LOADER_LINE, top / all);
		fact_set_place(f, FACT_LOADER_LINE, place);
	} else {
		fact_absent(f, FACT_LOADER_LINE, "no line of the program gets the data");
	}
	heat_done(&heat);
	map_done(&seen);
	map_done(&own);
}

/* Also from a process that is no worker by its own stacks: whatever it does, it is somebody who makes data
 * while the critical thread does something else. */
static void fed(const struct activity *a, const struct act_thread *critical, struct facts *f)
{
	double all = 0, seconds = 0;

	for (size_t k = critical->row; k < critical->row + critical->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];
		uint32_t at;

		all += r->seconds;
		if (r->state != TIME_DATA_WAIT || r->on_cpu || r->unknown || !r->peer ||
		    r->peer == critical->process || !map_get(&a->first, r->peer, &at))
			continue;
		/* a program that decodes for it (ffmpeg) is asked and waited for: not ahead */
		if (stacked_has_python(a, &a->threads.v[at]))
			seconds += r->seconds;
	}
	fact_set(f, FACT_LOADER_FED, all > 0 ? seconds / all : 0);
}

static int by_length(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Where steps do not say how long they waited: what few of them take longer than the others, of all the waiting for
 * data. NAN: too few steps, or none that wait. */
static double rare_by_length(const struct scene *s, uint32_t process, const struct window_step *v,
			     size_t n, double wait)
{
	static const double times = 3; /* a step this much longer than the median is one of few */
	double *length = malloc((n + 1) * sizeof(*length)), sum = 0, more = 0, middle;
	size_t steps = 0;

	for (size_t i = 0; length && i < n; i++)
		if (v[i].entity == process && v[i].end_ns > v[i].begin_ns &&
		    step_in(&s->steady, &v[i])) {
			length[steps] = (double)(v[i].end_ns - v[i].begin_ns) / 1e9;
			sum += length[steps++];
		}
	if (steps >= STEPS_P95_LEAST && wait > 0 && sum > 0) {
		qsort(length, steps, sizeof(*length), by_length);
		middle = length[steps / 2];
		for (size_t i = 0; i < steps; i++)
			more += length[i] >= times * middle ? length[i] - middle : 0;
	}
	free(length);
	if (steps < STEPS_P95_LEAST || !(wait > 0) || !(sum > 0))
		return NAN;
	/* more than it waits for data in all: they are long for something else */
	return more > 1.3 * wait * sum ? (double)NAN : fmin(1, more / sum / wait);
}

/* Share of the time steps wait for data that is in few of them. */
static void rare(const struct scene *s, uint32_t process, struct facts *f)
{
	static const double times = 5;
	const struct window_step *v;
	double sum = 0, long_ones = 0, by_steps;
	size_t n = 0, steps = 0;

	v = s->whole->ops->steps ? s->whole->ops->steps(s->whole->src, &n) : NULL;
	for (size_t i = 0; i < n; i++)
		if (v[i].entity == process && v[i].data_wait >= 0 && step_in(&s->steady, &v[i])) {
			sum += v[i].data_wait;
			steps++;
		}
	for (size_t i = 0; i < n; i++)
		if (v[i].entity == process && step_in(&s->steady, &v[i]) &&
		    v[i].data_wait >= times * sum / (double)(steps ? steps : 1))
			long_ones += v[i].data_wait;
	by_steps = rare_by_length(s, process, v, n, fact_or(f, FACT_TIME_DATA_WAIT, 0));
	if (steps >= STEPS_P95_LEAST && sum > 0)
		fact_set(f, FACT_LOADER_WAIT_RARE, fmin(1, long_ones / sum));
	else if (isfinite(by_steps))
		fact_set(f, FACT_LOADER_WAIT_RARE, by_steps);
	else
		fact_absent(f, FACT_LOADER_WAIT_RARE, "how long steps wait for data was not heard");
}

/* Forks of the training itself: how many there were, for each that there is at a time. Those that live for a moment are
 * gone before anybody sees on a stack what they are for. */
static double forks(const struct scene *s, const struct act_thread *critical)
{
	const struct member *up = scene_member(s, critical->process);
	const struct entity *whose = entity_find(window_entities(s->whole), critical->process);
	double seen = 0, alive = 0;

	for (size_t i = 0; up && i < s->members.n; i++) {
		const struct member *m = &s->members.v[i];
		const struct entity *e = entity_find(window_entities(s->whole), m->id);

		/* one that was forked has its parent's command line; another program has its own */
		if (!e || !whose || e->parent != critical->process ||
		    strcmp(m->name, up->name) != 0 || !e->detail || !whose->detail ||
		    strcmp(e->detail, whose->detail) != 0)
			continue;
		if (!isfinite(m->alive_s) || m->alive_s <= 0)
			continue;
		seen++;
		alive += m->alive_s;
	}
	return critical->alive > 0 ? seen / fmax(1, alive / critical->alive) : 0;
}

/* Are there always new ones, and are they slow to begin? */
static void starting(const struct scene *s, struct facts *f, const struct crew *c,
		     const struct act_thread *critical)
{
	static const double unseen_least = 4;
	double at_a_time = c->alive / critical->alive, workers = 0, brief = 0;

	fact_set(f, FACT_LOADER_STARTING, 0);
	if (c->seen > 0 && c->known > 0 && at_a_time > 0) {
		set_share(f, FACT_LOADER_STARTING, c->importing / c->known, c->samples);
		workers = c->seen / fmax(1, at_a_time);
	}
	/* of one that is fed by forks, and whose workers nobody saw at work, or a few of very many */
	if (f->v[FACT_TIME_DATA_WAIT].known && f->v[FACT_TIME_DATA_WAIT].value >= forks_wait_least)
		brief = forks(s, critical);
	if (workers <= 0 || brief > unseen_least * workers) {
		workers = brief;
		if (c->seen > 0 && brief > 0)
			fact_absent(f, FACT_LOADER_IDLE,
				    "most workers ended before they were seen at work");
	}
	fact_set(f, FACT_LOADER_GENERATIONS, workers);
	if (workers > 0)
		fact_set(f, FACT_LOADER_LIFE, critical->alive / workers);
	else
		fact_absent(f, FACT_LOADER_LIFE, "no worker was seen");
}

/* What hooks heard of the program's loader: the last word before the end of the window. */
static void settings(const struct scene *s, uint32_t process, struct facts *f)
{
	const struct window_scalar *v;
	size_t n = 0;

	v = s->whole->ops->settings ? s->whole->ops->settings(s->whole->src, &n) : NULL;
	fact_absent(f, FACT_LOADER_PREFETCH, "what the program set was not heard");
	for (size_t i = 0; i < n; i++)
		if (v[i].entity == process && v[i].t_ns <= s->steady.to_ns && v[i].value >= 1 &&
		    v[i].value <= 1024 && strcmp(v[i].name, "dataloader.prefetch_factor") == 0)
			fact_set(f, FACT_LOADER_PREFETCH, v[i].value);
}

static void compute(const struct scene *s, struct facts *f)
{
	static const enum fact_id ids[] = { FACT_LOADER_LIFE,     FACT_LOADER_WAIT_RARE,
					    FACT_LOADER_STARTING, FACT_LOADER_GENERATIONS,
					    FACT_LOADER_PREFETCH, FACT_LOADER_WORKERS,
					    FACT_LOADER_BUSY,     FACT_LOADER_QUEUED,
					    FACT_LOADER_STORAGE,  FACT_LOADER_IDLE,
					    FACT_LOADER_LINE,     FACT_LOADER_FRAMEWORK,
					    FACT_LOADER_FED };
	const struct activity *a = &s->activity;
	const char *why;
	const struct act_thread *critical = stacked_critical(a, &why);
	struct crew c = { 0 };

	for (size_t i = 0; !critical && i < sizeof(ids) / sizeof(ids[0]); i++)
		fact_absent(f, ids[i], "%s", why);
	if (!critical)
		return;
	for (size_t i = 0; i < a->threads.n; i++) {
		const struct act_thread *t = &a->threads.v[i];

		if (!stacked_is_worker(s, t))
			continue;
		add_worker(&c, a, t);
		c.seen += t->first && t->process != critical->process;
		*(t->process == critical->process ? &c.threads : &c.processes) += t->alive;
	}
	fact_set(f, FACT_LOADER_WORKERS, c.alive / critical->alive);
	fact_set_subject(f, FACT_LOADER_WORKERS, 0,
			 c.threads > c.processes ? "threads" : "processes");
	set_crew(f, &c);
	starting(s, f, &c, critical);
	rare(s, critical->process, f);
	settings(s, critical->process, f);
	fed(a, critical, f);
	framework(s, f);
	line(a, critical, f);
}

const struct fact_source loader_facts = { "loader", compute };
