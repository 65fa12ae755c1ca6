/* SPDX-License-Identifier: MIT */
#include "crew.h"

#include "base/clock.h"

#include <stdio.h>

/* The outer frames of a training loop are shared, the inner ones differ. */
static uint32_t make_stack(struct crew *c, unsigned process, unsigned n)
{
	uint32_t node = 0;

	for (unsigned d = 0; d < CREW_DEPTH; d++) {
		/* Two stacks share their frames down to the depth where their numbers part. */
		unsigned branch = d < 4 ? 0 : d < 8 ? n / 50 : d < 12 ? n / 8 : n;
		char function[80], file[160];
		struct place p = { .kind = d == CREW_DEPTH - 1 && n % 3 == 0 ? PLACE_NATIVE
									     : PLACE_PYTHON,
				   .function = function,
				   .file = file,
				   .source = "" };

		p.line = p.kind == PLACE_NATIVE ? 0 : (int32_t)(10 * d + branch * 7 + process % 2);
		snprintf(function, sizeof(function), "Module%u.forward_%u", d, branch % 40);
		snprintf(file, sizeof(file),
			 "/opt/venv/lib/python3.11/site-packages/package%u/module_%u.py", d,
			 branch % 25);
		node = stack_book_node(&c->book, node, stack_book_place(&c->book, &p));
	}
	return node;
}

void crew_init(struct crew *c, uint64_t seed, unsigned processes)
{
	*c = (struct crew){ .random = { seed }, .processes = processes };
	for (unsigned p = 0; p < processes; p++)
		for (unsigned i = 0; i < CREW_STACKS; i++)
			c->stacks[p][i] = make_stack(c, p, i);
}

void crew_done(struct crew *c)
{
	stack_book_done(&c->book);
}

uint32_t crew_thread(unsigned process, unsigned thread)
{
	return 100 + process * CREW_THREADS + thread;
}

static void put(struct crew *c, struct frame *f, struct stack_row *row)
{
	/* A jittered clock: no weight is round. */
	row->count = 1;
	row->weight_ns = NS_PER_S / CREW_HZ - 2000000 + (int64_t)random_below(&c->random, 4000000);
	c->samples++;
	c->weight_ns += row->weight_ns;
	for (size_t i = f->stacks.n; i-- > 0;) {
		struct stack_row *r = &f->stacks.v[i];

		if (r->entity == row->entity && r->node == row->node && r->kind == row->kind &&
		    r->flags == row->flags) {
			r->count++;
			r->weight_ns += row->weight_ns;
			return;
		}
	}
	frame_stack(f, row);
}

static void main_thread(struct crew *c, struct frame *f, unsigned p)
{
	for (int i = 0; i < CREW_HZ; i++) {
		struct stack_row row = { .entity = crew_thread(p, 0), .kind = WAIT_RUNNING };
		uint64_t dice = random_below(&c->random, 100);

		/* Half of the time it is where it was, a step away mostly, rarely anywhere. */
		if (dice < 45)
			c->at[p] =
			    (c->at[p] + 1 + (unsigned)random_below(&c->random, 3)) % CREW_STACKS;
		else if (dice < 50)
			c->at[p] = (unsigned)random_below(&c->random, CREW_STACKS);
		row.node = c->stacks[p][c->at[p]];
		row.flags = STACK_PYTHON | STACK_GIL;
		if (dice % 10 == 9) {
			row.kind = WAIT_PIPE;
			row.peer = 50 + p;
			row.flags = STACK_PYTHON;
		}
		put(c, f, &row);
	}
}

static void other_thread(struct crew *c, struct frame *f, unsigned p, unsigned t)
{
	for (int i = 0; i < CREW_HZ; i++) {
		struct stack_row row = { .entity = crew_thread(p, t),
					 .node = c->stacks[p][t],
					 .kind = t == 1 ? WAIT_LOCK : WAIT_POLL,
					 .on = t == 1 ? WAIT_UNKNOWN : WAIT_SOCKET,
					 .flags = STACK_PYTHON | STACK_HELD };

		if (random_below(&c->random, 100) == 0) {
			row.node = c->stacks[p][random_below(&c->random, CREW_STACKS)];
			row.kind = WAIT_GIL;
			row.on = WAIT_UNKNOWN;
			row.flags = STACK_PYTHON | STACK_PARTIAL;
		}
		put(c, f, &row);
	}
}

void crew_slice(struct crew *c, struct frame *f, int64_t from_ns, int64_t to_ns)
{
	for (unsigned p = 0; p < c->processes; p++) {
		main_thread(c, f, p);
		for (unsigned t = 1; t < CREW_THREADS; t++)
			other_thread(c, f, p, t);
	}
	f->stacks_from_ns = from_ns;
	f->stacks_to_ns = to_ns;
	for (; c->told_places < c->book.places.n; c->told_places++)
		frame_place(f, c->told_places + 1, &c->book.places.v[c->told_places]);
	for (; c->told_nodes < c->book.nodes.n; c->told_nodes++)
		frame_node(f, c->told_nodes + 1, &c->book.nodes.v[c->told_nodes]);
}
