/* SPDX-License-Identifier: MIT
 *
 * What loading is about: shares of the time of those who load (the workers, or without any the critical
 * thread), on a CPU or waiting inside of it, by topic and by what they wait for; and what they read.
 */
#include "explain/facts/stacked.h"
#include "explain/ledger/topics.h"

#include <math.h>

/* Fewer workers at a time are none: those of a short evaluation. */
static const double workers_least = 0.5;

static const struct {
	enum topic topic;
	enum fact_id id;
} topics[] = {
	{ TOPIC_DECOMPRESS, FACT_LOAD_DECOMPRESS }, { TOPIC_DECODE, FACT_LOAD_DECODE },
	{ TOPIC_TOKENIZE, FACT_LOAD_TOKENIZE },     { TOPIC_PARSE, FACT_LOAD_PARSE },
	{ TOPIC_FILES, FACT_LOAD_FILES },
};
enum { TOPICS_N = sizeof(topics) / sizeof(topics[0]), DISK = TOPICS_N, NETWORK, STAGES };

struct stages {
	double loading, samples;
	struct heat heat[STAGES];
	double seconds[STAGES];
	double fetched, read, reads; /* bytes, bytes, calls */
	bool no_counters;
};

static void add(struct stages *g, const struct stack_book *b, size_t stage, const struct act_row *r)
{
	g->seconds[stage] += r->seconds;
	heat_add(&g->heat[stage], b, r->place ? r->place : r->leaf, r->seconds);
}

static bool waits_for_storage(const struct act_row *r)
{
	return r->kind == WAIT_DISK || r->kind == WAIT_FILE || r->kind == WAIT_PAGE_FAULT;
}

static void add_thread(struct stages *g, const struct activity *a, const struct act_thread *t,
		       bool worker)
{
	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];

		if (!stacked_loads(r, worker))
			continue;
		g->loading += r->seconds;
		g->samples += r->count;
		/* who unpacks or decodes and waits for the disk meanwhile reads */
		for (size_t i = 0; i < TOPICS_N; i++)
			if (r->topics & TOPIC_BIT(topics[i].topic) &&
			    (topics[i].topic == TOPIC_FILES || !waits_for_storage(r)))
				add(g, a->book, i, r);
		if (waits_for_storage(r))
			add(g, a->book, DISK, r);
		else if (r->kind == WAIT_SOCKET || (r->kind == WAIT_POLL && r->on == WAIT_SOCKET))
			add(g, a->book, NETWORK, r);
	}
}

static void add_process(struct stages *g, const struct scene *s, uint32_t process)
{
	struct series_stat fetched, read, reads;

	if (window_stat(&s->steady, M_PROC_READ_BYTES, process, &fetched) < 0 ||
	    window_stat(&s->steady, M_PROC_READ_CHARS, process, &read) < 0 ||
	    window_stat(&s->steady, M_PROC_READS, process, &reads) < 0) {
		g->no_counters = true;
		return;
	}
	g->fetched += fetched.delta;
	g->read += read.delta;
	g->reads += reads.delta;
}

static void set_stage(struct facts *f, enum fact_id id, struct stages *g, size_t stage)
{
	double share = g->loading > 0 ? g->seconds[stage] / g->loading : 0, top, error;
	uint32_t place = heat_top(&g->heat[stage], &top);

	error = activity_error(share, g->samples);
	fact_set_range(f, id, share, fmax(0, share - error), fmin(1, share + error));
	if (place)
		fact_set_place(f, id, place);
	heat_done(&g->heat[stage]);
}

static void set_reading(struct facts *f, const struct stages *g, double seconds)
{
	static const enum fact_id ids[] = { FACT_LOAD_FETCHED, FACT_LOAD_READ, FACT_LOAD_READ_SIZE,
					    FACT_LOAD_MISS };

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		fact_absent(f, ids[i], "what those who load read was not recorded");
	if (g->no_counters || !(seconds > 0))
		return;
	fact_set(f, FACT_LOAD_FETCHED, g->fetched / seconds);
	fact_set(f, FACT_LOAD_READ, g->read / seconds);
	if (g->reads > 0)
		fact_set(f, FACT_LOAD_READ_SIZE, g->read / g->reads);
	/* Read-ahead and mapped files fetch more than was asked for by calls. */
	if (g->read > 0 || g->fetched > 0)
		fact_set(f, FACT_LOAD_MISS, fmin(1, g->fetched / fmax(g->read, g->fetched)));
}

static void set_pin(const struct scene *s, struct facts *f)
{
	const struct activity *a = &s->activity;
	double alive = 0, busy = 0;
	bool unknown = false;

	for (size_t i = 0; i < a->threads.n; i++) {
		const struct act_thread *t = &a->threads.v[i];

		if (t->role != ROLE_PIN_THREAD)
			continue;
		alive += t->alive;
		busy += (isfinite(t->run) ? t->run : 0) + t->gil_wait;
		unknown |= !isfinite(t->run);
	}
	if (unknown)
		fact_absent(f, FACT_PIN_BUSY, "CPU time of the thread that pins is not known");
	else if (alive > 0)
		fact_set(f, FACT_PIN_BUSY, fmin(1, busy / alive));
	else
		fact_set(f, FACT_PIN_BUSY, 0);
}

static void compute(const struct scene *s, struct facts *f)
{
	const struct activity *a = &s->activity;
	const char *why;
	const struct act_thread *critical = stacked_critical(a, &why);
	bool workers = fact_or(f, FACT_LOADER_WORKERS, 0) >= workers_least;
	struct stages g = { 0 };

	for (int id = FACT_LOAD_DECOMPRESS; !critical && id <= FACT_PIN_BUSY; id++)
		fact_absent(f, (enum fact_id)id, "%s", why);
	if (!critical)
		return;
	for (size_t i = 0; i < a->threads.n; i++) {
		const struct act_thread *t = &a->threads.v[i];

		if (workers ? !stacked_is_worker(s, t) : t != critical)
			continue;
		add_thread(&g, a, t, workers);
		if (t->process != critical->process || !workers)
			add_process(&g, s, t->process);
	}
	if (workers && g.loading > 0 && g.reads <= 0 && !g.no_counters) /* threads that load */
		add_process(&g, s, critical->process);
	for (size_t i = 0; i < TOPICS_N; i++)
		set_stage(f, topics[i].id, &g, i);
	set_stage(f, FACT_LOAD_DISK, &g, DISK);
	set_stage(f, FACT_LOAD_NETWORK, &g, NETWORK);
	set_reading(f, &g, s->seconds);
	set_pin(s, f);
}

const struct fact_source stages_facts = { "stages", compute };
