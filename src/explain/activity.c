/* SPDX-License-Identifier: MIT */
#include "explain/activity.h"

#include "explain/activity_part.h"
#include "explain/scene.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Flags that say how a sample was read, not what was read. */
static const uint8_t how = STACK_JOINED | STACK_HELD;

const char *time_state_name(enum time_state s)
{
	static const char *const names[TIME_STATES] = {
		"data_wait", "data_load", "transfer", "dispatch",  "python",
		"gpu_wait",  "comm_wait", "io",       "cpu_queue", "memory_stall",
		"lock_wait", "idle",      "other",
	};

	return s >= 0 && s < TIME_STATES ? names[s] : "other";
}

const char *cpu_role_name(enum cpu_role r)
{
	static const char *const names[ROLES] = {
		"main",
		"loader_worker",
		"pin_thread",
		"blas_threads",
		"comm_threads",
		"spin_wait",
		"framework_threads",
		"tokenizer_threads",
		"child",
		"kernel_side",
		"other",
	};

	return r >= 0 && r < ROLES ? names[r] : "other";
}

double activity_error(double share, double samples)
{
	const double z = 1.96;
	double half;

	if (!(samples > 0) || !isfinite(share))
		return 1;
	share = fmin(1, fmax(0, share));
	half = z * sqrt(share * (1 - share) / samples + z * z / (4 * samples * samples)) /
	       (1 + z * z / samples);
	return fmin(1, fmax(half, 1 / samples));
}

int activity_thread(struct activity *a, const struct entity *e, bool first, double alive,
		    double run, double queue)
{
	struct act_thread *t = vec_push(&a->threads);

	if (!t || !map_put(&a->by_id, e->id, (uint32_t)(a->threads.n - 1)) ||
	    (first && !map_put(&a->first, e->parent, (uint32_t)(a->threads.n - 1))))
		return -ENOMEM;
	*t = (struct act_thread){
		.id = e->id,
		.process = e->parent,
		.name = e->name,
		.first = first,
		.role = ROLE_OTHER,
		.alive = alive,
		.run = run,
		.queue = queue,
	};
	return 0;
}

/* A row while rows are being added up. */
struct gathered {
	struct act_row row;
	uint32_t thread; /* place in activity.threads */
	uint32_t next;   /* further one with the same hash, + 1; 0: none */
};

struct gather {
	struct scene *s;
	VEC(struct gathered) rows;
	struct map by_hash; /* -> the newest with it, + 1 */
	int error;
};

static bool same_row(const struct gathered *g, const struct stack_row *r, uint32_t thread)
{
	return g->thread == thread && g->row.node == r->node && g->row.peer == r->peer &&
	       g->row.kind == r->kind && g->row.on == r->on &&
	       g->row.flags == (uint8_t)(r->flags & ~how);
}

static struct act_row *find_row(struct gather *g, const struct stack_row *r, uint32_t thread)
{
	uint64_t h = map_mix((uint64_t)thread << 32 | r->node);
	struct gathered *x;
	uint32_t first = 0;

	h = map_mix(h ^ ((uint64_t)r->peer << 24 | (uint64_t)r->kind << 16 | (uint64_t)r->on << 8 |
			 (uint8_t)(r->flags & ~how)));
	map_get(&g->by_hash, h, &first);
	for (uint32_t at = first; at; at = g->rows.v[at - 1].next)
		if (same_row(&g->rows.v[at - 1], r, thread))
			return &g->rows.v[at - 1].row;
	x = vec_push(&g->rows);
	if (!x || !map_put(&g->by_hash, h, (uint32_t)g->rows.n)) {
		g->error = -ENOMEM;
		return NULL;
	}
	x->thread = thread;
	x->next = first;
	x->row = (struct act_row){ .node = r->node,
				   .peer = r->peer,
				   .kind = r->kind,
				   .on = r->on,
				   .flags = (uint8_t)(r->flags & ~how) };
	return &x->row;
}

/* The part of a slice that is in the window. As floating point: times of a record may be anything. */
static double part_in(const struct stack_slice *s, const struct window *w)
{
	double from = (double)(s->from_ns > w->from_ns ? s->from_ns : w->from_ns);
	double to = (double)(s->to_ns < w->to_ns ? s->to_ns : w->to_ns);
	double length = (double)s->to_ns - (double)s->from_ns;

	if (!(length > 0))
		return s->from_ns >= w->from_ns && s->from_ns <= w->to_ns;
	return to > from ? fmin(1, (to - from) / length) : 0;
}

static bool take_slice(const struct stack_slice *slice, void *arg)
{
	struct gather *g = arg;
	struct activity *a = &g->s->activity;
	double part = part_in(slice, &g->s->steady);

	for (size_t i = 0; part > 0 && i < slice->n; i++) {
		const struct stack_row *r = &slice->rows[i];
		uint32_t thread, count = (uint32_t)(r->count * part + 0.5);
		struct act_row *row;

		/* Records are foreign: a thread nobody has heard of, a wait that is none. */
		if (r->kind >= WAIT_KINDS || r->on >= WAIT_KINDS || r->weight_ns < 0 ||
		    !map_get(&a->by_id, r->entity, &thread))
			continue;
		row = find_row(g, r, thread);
		if (!row)
			return false;
		row->first_ns =
		    row->count && row->first_ns < slice->from_ns ? row->first_ns : slice->from_ns;
		row->last_ns = row->last_ns > slice->to_ns ? row->last_ns : slice->to_ns;
		row->count += count;
		row->seconds += (double)r->weight_ns / 1e9 * part;
		a->samples += count;
		a->unproven += r->flags & STACK_UNPROVEN ? count : 0;
		a->partial += r->flags & STACK_PARTIAL ? count : 0;
	}
	return true;
}

static int by_thread_and_length(const void *x, const void *y)
{
	const struct gathered *a = x, *b = y;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->row.seconds != b->row.seconds)
		return a->row.seconds > b->row.seconds ? -1 : 1;
	/* Any order, but the same from a file as from memory. */
	if (a->row.node != b->row.node)
		return a->row.node < b->row.node ? -1 : 1;
	if (a->row.kind != b->row.kind)
		return a->row.kind < b->row.kind ? -1 : 1;
	if (a->row.flags != b->row.flags)
		return a->row.flags < b->row.flags ? -1 : 1;
	return a->row.peer < b->row.peer ? -1 : a->row.peer > b->row.peer;
}

/* From the sums to activity.rows, thread by thread. */
static int settle(struct gather *g, struct activity *a)
{
	if (g->rows.n)
		qsort(g->rows.v, g->rows.n, sizeof(g->rows.v[0]), by_thread_and_length);
	if (!vec_reserve(&a->rows, g->rows.n))
		return -ENOMEM;
	for (size_t i = 0; i < g->rows.n; i++) {
		struct act_thread *t = &a->threads.v[g->rows.v[i].thread];

		if (!t->n_rows)
			t->row = a->rows.n;
		t->n_rows++;
		t->samples += g->rows.v[i].row.count;
		t->covered += g->rows.v[i].row.seconds;
		a->rows.v[a->rows.n++] = g->rows.v[i].row;
	}
	return 0;
}

static int read_rows(struct scene *s)
{
	struct gather g = { .s = s };
	int r = window_stacks(&s->steady, take_slice, &g);

	if (g.error)
		r = g.error;
	if (r == 0)
		r = settle(&g, &s->activity);
	vec_done(&g.rows);
	map_done(&g.by_hash);
	return r;
}

/* Without memory rows stay what they were. */
static void understand_loop(struct activity *a, struct act_thread *t, bool devices)
{
	struct loop_sense sense;

	rows_of_pool(a, t);
	rows_of_driver(a, t);
	rows_of_ranks(a, t);
	if (loop_sense_open(a, t, &sense)) {
		t->by_hand = sense.by_hand;
		rows_of_text(a, t);
		rows_of_loop(a, t, &sense);
		rows_that_feed(a, t, &sense);
	}
	loop_sense_done(&sense);
	if (devices)
		rows_of_orders(a, t);
}

static int understand(struct scene *s)
{
	struct activity *a = &s->activity;
	struct node_reader nodes = { 0 };
	bool devices = s->gpus.rows.n > 0 || s->gpus.code > 0;
	int r = nodes_open(&nodes, a->book, devices, a->rows.v, a->rows.n);

	if (r == 0) {
		roles_give(s, &nodes);
		critical_find(s, &nodes);
		roles_main(s, &nodes);
		for (size_t i = 0; i < a->threads.n; i++) {
			struct act_thread *t = &a->threads.v[i];

			for (size_t k = 0; k < t->n_rows; k++)
				row_classify(s, &nodes, t, &a->rows.v[t->row + k]);
			if (t->role == ROLE_MAIN)
				understand_loop(a, t, devices);
			rows_of_calls(a, t);
			thread_weigh(t, t->n_rows ? &a->rows.v[t->row] : NULL);
		}
	}
	nodes_done(&nodes);
	return r;
}

static void nothing(struct activity *a, const char *why)
{
	vec_done(&a->threads);
	map_done(&a->by_id);
	map_done(&a->first);
	a->why_not = why;
}

int activity_open(struct scene *s)
{
	struct activity *a = &s->activity;
	int r;

	a->critical = -1;
	a->book = window_book(&s->steady);
	r = a->book ? read_rows(s) : -ENODATA;
	if (r == -ENOMEM)
		return r;
	if (r < 0 || a->rows.n == 0) {
		nothing(a, r < 0 && r != -ENODATA ? "stacks could not be read from the record"
						  : "no stacks were recorded");
		return 0;
	}
	a->any = true;
	return understand(s);
}

void activity_done(struct activity *a)
{
	vec_done(&a->rows);
	vec_done(&a->threads);
	map_done(&a->by_id);
	map_done(&a->first);
}
