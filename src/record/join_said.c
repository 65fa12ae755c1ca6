/* SPDX-License-Identifier: MIT
 *
 * Stacks and what the training said, of all records. The same line of code has the same number in the
 * joined run whichever machine ran it, so that ranks can be held against each other line by line.
 */
#include "record/join_part.h"

#include "base/clock.h"
#include "model/node.h"
#include "record/db.h"
#include "record/write.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>

enum {
	MINUTE_S = 60,
	FLUSH_ROWS = 20000, /* far below what a backlog takes (BACKLOG_MARKS) */
	SAMPLES_SHARE = 70, /* % of the work that is done by now */
};

/* A slice of one part; its rows are in gathered.rows. */
struct gathered_slice {
	int64_t from_ns, to_ns;
	size_t part, row, n;
};

typedef VEC(uint32_t) numbers;

struct gathering {
	struct join *j;
	struct record_writer *w;
	struct stack_book book;
	size_t places, nodes;        /* that the file has */
	numbers *place_of, *node_of; /* one a part: its id - 1 -> ours */
	VEC(struct gathered_slice) slices;
	VEC(struct stack_row) rows;
	struct frame frame; /* never given out as one: only to hand over rows */
	/* of the walk at hand */
	size_t part;
	int64_t lo_ns, hi_ns;
	int error;
};

static int tell_places(struct gathering *g)
{
	int r;

	frame_begin(&g->frame, 0, 0);
	for (; g->places < g->book.places.n; g->places++)
		frame_place(&g->frame, (uint32_t)g->places + 1, &g->book.places.v[g->places]);
	for (; g->nodes < g->book.nodes.n; g->nodes++)
		frame_node(&g->frame, (uint32_t)g->nodes + 1, &g->book.nodes.v[g->nodes]);
	if (g->frame.failed)
		return -ENOMEM;
	r = stacks_frame(g->w, &g->frame);
	return r < 0 ? r : record_flush(g->w);
}

static bool put_number(numbers *v, uint32_t number)
{
	uint32_t *slot = vec_push(v);

	if (slot)
		*slot = number;
	return slot != NULL;
}

/* Numbers of one part's book in the joined one. Tells the file now and then: a backlog is bounded. */
static int take_book(struct gathering *g, const struct stack_book *b, numbers *places,
		     numbers *nodes)
{
	int r = 0;

	for (size_t i = 0; i < b->places.n && r == 0; i++) {
		const struct place *p = stack_book_find_place(b, (uint32_t)i + 1);

		if (!put_number(places, p ? stack_book_place(&g->book, p) : 0))
			return -ENOMEM;
		if (g->book.places.n - g->places >= FLUSH_ROWS)
			r = tell_places(g);
	}
	for (size_t i = 0; i < b->nodes.n && r == 0; i++) {
		const struct stack_node *n = stack_book_find_node(b, (uint32_t)i + 1);
		uint32_t place =
		    n && n->place && n->place <= places->n ? places->v[n->place - 1] : 0;
		uint32_t parent = n && n->parent && n->parent <= i ? nodes->v[n->parent - 1] : 0;

		if (!put_number(nodes, place ? stack_book_node(&g->book, parent, place) : parent))
			return -ENOMEM;
		if (g->book.nodes.n - g->nodes >= FLUSH_ROWS)
			r = tell_places(g);
	}
	return r < 0 ? r : tell_places(g);
}

static bool gather(const struct stack_slice *s, void *arg)
{
	struct gathering *g = arg;
	const struct join_part *p = &g->j->parts.v[g->part];
	const numbers *nodes = &g->node_of[g->part];
	struct gathered_slice *slice;

	/* One that began earlier was taken with the minute before. */
	if (s->from_ns < g->lo_ns || s->from_ns >= g->hi_ns)
		return true;
	slice = vec_push(&g->slices);
	if (!slice)
		g->error = -ENOMEM;
	if (!slice)
		return false;
	*slice = (struct gathered_slice){ .from_ns = join_time(p, s->from_ns),
					  .to_ns = join_time(p, s->to_ns),
					  .part = g->part,
					  .row = g->rows.n };
	for (size_t i = 0; i < s->n; i++) {
		const struct stack_row *from = &s->rows[i];
		uint32_t thread = join_id(p, from->entity);
		struct stack_row *row = thread ? vec_push(&g->rows) : NULL;

		if (!thread)
			continue;
		if (!row) {
			g->error = -ENOMEM;
			return false;
		}
		*row = *from;
		row->entity = thread;
		row->peer = from->peer ? join_id(p, from->peer) : 0;
		row->node = from->node && from->node <= nodes->n ? nodes->v[from->node - 1] : 0;
	}
	g->slices.v[g->slices.n - 1].n = g->rows.n - g->slices.v[g->slices.n - 1].row;
	return true;
}

static int by_begin(const void *a, const void *b)
{
	const struct gathered_slice *x = a, *y = b;

	if (x->from_ns != y->from_ns)
		return x->from_ns < y->from_ns ? -1 : 1;
	return x->part < y->part ? -1 : x->part > y->part;
}

static int put_slices(struct gathering *g)
{
	int r = 0;

	if (g->slices.n)
		qsort(g->slices.v, g->slices.n, sizeof(*g->slices.v), by_begin);
	for (size_t i = 0; i < g->slices.n && r == 0; i++) {
		const struct gathered_slice *s = &g->slices.v[i];

		frame_begin(&g->frame, s->to_ns, 0);
		g->frame.stacks_from_ns = s->from_ns;
		g->frame.stacks_to_ns = s->to_ns;
		for (size_t k = 0; k < s->n; k++)
			frame_stack(&g->frame, &g->rows.v[s->row + k]);
		r = g->frame.failed ? -ENOMEM : stacks_frame(g->w, &g->frame);
	}
	if (r == 0 && g->slices.n) {
		r = stacks_rotate(g->w);
		r = r < 0 ? r : record_flush(g->w);
	}
	g->slices.n = g->rows.n = 0;
	return r;
}

/* All slices that begin in a minute of the joined run. */
static int one_minute(struct gathering *g, int64_t begin_ns)
{
	for (size_t i = 0; i < g->j->parts.n; i++) {
		const struct join_part *p = &g->j->parts.v[i];
		struct window w;
		int r;

		g->part = i;
		g->lo_ns = begin_ns - p->shift_ns;
		g->hi_ns = g->lo_ns + MINUTE_S * NS_PER_S;
		w = record_window(p->record, 0, 0);
		w.from_ns = g->lo_ns;
		w.to_ns = g->hi_ns;
		r = window_stacks(&w, gather, g);
		if (g->error < 0 || (r < 0 && r != -ENODATA))
			return g->error < 0 ? g->error : r;
	}
	return put_slices(g);
}

static int take_books(struct gathering *g)
{
	int r = 0;

	g->place_of = calloc(g->j->parts.n, sizeof(*g->place_of));
	g->node_of = calloc(g->j->parts.n, sizeof(*g->node_of));
	if (!g->place_of || !g->node_of)
		return -ENOMEM;
	for (size_t i = 0; i < g->j->parts.n && r == 0; i++) {
		struct window w = record_window(g->j->parts.v[i].record, 0, 0);
		const struct stack_book *b = window_book(&w);

		if (b)
			r = take_book(g, b, &g->place_of[i], &g->node_of[i]);
	}
	return r;
}

int join_stacks(struct join *j, struct record_writer *w, void (*tell)(void *arg, double share),
		void *arg)
{
	struct gathering g = { .j = j, .w = w };
	double length = (double)(j->run.ended_mono_ns - JOIN_BEGIN_NS) + 1;
	int r = take_books(&g);

	/* From a minute before: what began before the run did. */
	for (int64_t t = JOIN_BEGIN_NS - MINUTE_S * NS_PER_S; r == 0 && t <= j->run.ended_mono_ns;
	     t += MINUTE_S * NS_PER_S) {
		r = one_minute(&g, t);
		if (tell)
			tell(arg, SAMPLES_SHARE / 100.0 +
				      (1 - SAMPLES_SHARE / 100.0) * (double)t / length);
	}
	for (size_t i = 0; i < j->parts.n; i++) {
		if (g.place_of)
			vec_done(&g.place_of[i]);
		if (g.node_of)
			vec_done(&g.node_of[i]);
	}
	free(g.place_of);
	free(g.node_of);
	vec_done(&g.slices);
	vec_done(&g.rows);
	frame_done(&g.frame);
	stack_book_done(&g.book);
	return r;
}

/* What is known of one process, with the times and ids of the joined run. */
struct said {
	const struct join_part *part;
	struct record_writer *w;
	unsigned rows;
};

static int flush_now_and_then(struct said *s)
{
	return ++s->rows % FLUSH_ROWS == 0 ? record_flush(s->w) : 0;
}

static bool is_time(int64_t t_ns)
{
	return join_time_sane(t_ns);
}

static int put_steps(struct said *s, const struct window *w)
{
	size_t n = 0;
	const struct window_step *v = w->ops->steps(w->src, &n);
	const char *source = w->ops->step_source ? w->ops->step_source(w->src) : NULL;
	struct map told = { 0 };
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		struct window_step step = v[i];
		uint32_t at;

		step.entity = join_id(s->part, v[i].entity);
		if (!step.entity || !is_time(step.begin_ns) || !is_time(step.end_ns))
			continue;
		step.begin_ns = join_time(s->part, step.begin_ns);
		step.end_ns = join_time(s->part, step.end_ns);
		r = marks_step(s->w, &step);
		if (r == 0 && source && !map_get(&told, step.entity, &at)) {
			r = map_put(&told, step.entity, 1) ? 0 : -ENOMEM;
			if (r == 0)
				r = marks_source(s->w,
						 &(struct window_scalar){ .name = source,
									  .entity = step.entity,
									  .rank = step.rank,
									  .t_ns = step.end_ns });
		}
		r = r < 0 ? r : flush_now_and_then(s);
	}
	map_done(&told);
	return r;
}

static int put_values(struct said *s, const struct window *w, bool settings)
{
	size_t n = 0;
	const struct window_scalar *v =
	    settings ? w->ops->settings(w->src, &n) : w->ops->scalars(w->src, &n);
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		struct window_scalar x = v[i];

		x.entity = join_id(s->part, v[i].entity);
		if (!x.entity || !is_time(x.t_ns) || !x.name)
			continue;
		x.t_ns = join_time(s->part, x.t_ns);
		r = settings ? marks_setting(s->w, &x) : marks_scalar(s->w, &x);
		r = r < 0 ? r : flush_now_and_then(s);
	}
	return r;
}

static int put_phases(struct said *s, const struct window *w)
{
	size_t n = 0;
	const struct window_phase *v = w->ops->phases(w->src, &n);
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		struct window_phase x = v[i];

		x.entity = join_id(s->part, v[i].entity);
		if (!x.entity || !is_time(x.begin_ns) || !is_time(x.end_ns) || !x.name)
			continue;
		x.begin_ns = join_time(s->part, x.begin_ns);
		x.end_ns = x.end_ns ? join_time(s->part, x.end_ns) : 0;
		r = marks_phase(s->w, &x);
		r = r < 0 ? r : flush_now_and_then(s);
	}
	return r;
}

int join_said(struct join *j, struct record_writer *w)
{
	int r = 0;

	for (size_t i = 0; i < j->parts.n && r == 0; i++) {
		struct window all = record_window(j->parts.v[i].record, 0, 0);
		struct said s = { .part = &j->parts.v[i], .w = w };

		r = put_steps(&s, &all);
		if (r == 0)
			r = put_values(&s, &all, true);
		if (r == 0)
			r = put_values(&s, &all, false);
		if (r == 0)
			r = put_phases(&s, &all);
		if (r == 0)
			r = record_flush(w);
	}
	return r;
}

static const char nodes_table[] =
    "CREATE TABLE node (id INTEGER, name TEXT, run_id TEXT, run_name TEXT, ranks TEXT, clock TEXT,"
    " offset_ns INTEGER, spread_ns INTEGER, steps INTEGER, shift_ns INTEGER);"
    "CREATE VIEW nodes AS SELECT id, name, run_id, run_name, ranks, clock,"
    " offset_ns / 1e9 AS clock_offset, spread_ns / 1e9 AS clock_spread, steps FROM node;";

int join_nodes(const struct join *j, struct record_writer *w)
{
	static const char *const by[] = {
		[JOIN_BY_CLOCK] = "same", [JOIN_BY_STEPS] = "steps", [JOIN_BY_WALL] = "wall"
	};
	auto_stmt *s = NULL;
	int r = db_exec(w->db, nodes_table);

	if (r >= 0)
		r = db_prepare(
		    w->db, "INSERT INTO node VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)", &s);
	for (size_t i = 0; i < j->parts.n && r >= 0; i++) {
		const struct join_part *p = &j->parts.v[i];
		const struct join_machine *m = &j->machines.v[p->machine];
		const struct join_clock *c = &j->clocks.v[m->clock];
		struct buf name = { 0 }, id = { 0 }, run = { 0 };
		char ranks[256];

		db_utf8(&name, m->name);
		db_utf8(&id, record_run(p->record)->id);
		db_utf8(&run, record_run(p->record)->name);
		db_int(s, 1, (int64_t)p->machine);
		db_text(s, 2, buf_text(&name));
		db_text(s, 3, buf_text(&id));
		db_text(s, 4, buf_text(&run));
		db_text(s, 5, join_ranks_text(p, ranks, sizeof(ranks)));
		db_text(s, 6, by[c->by]);
		db_int(s, 7, c->offset_ns);
		db_int(s, 8, c->spread_ns);
		db_int(s, 9, (int64_t)c->steps);
		db_int(s, 10, p->shift_ns);
		r = db_run(s);
		buf_done(&name);
		buf_done(&id);
		buf_done(&run);
	}
	return r < 0 ? r : 0;
}
