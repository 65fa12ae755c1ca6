/* SPDX-License-Identifier: MIT
 *
 * A small run with stacks that both formats write in their tests: a Python program with a worker, native
 * leaves, waits, what was not proven, hostile names, and rows of threads and nodes nobody announced.
 */
#ifndef SPOTTER_TESTS_SINK_STACK_SOURCE_H
#define SPOTTER_TESTS_SINK_STACK_SOURCE_H

#include "base/buf.h"
#include "sink/sink.h"

#include <stdlib.h>

#define MS       1000000ll
#define MAIN     17u
#define PIN      18u
#define EVIL     20u
#define UNKNOWN  99u
#define NO_NODE  4000000u
#define TOTAL_NS (3000 * MS + 1)

struct stack_source {
	struct run_info run;
	struct entity_table entities;
	struct stack_book book;
	uint32_t module, train, get, memcpy_, evil;
};

static inline uint32_t put_node(struct stack_book *b, uint32_t parent, enum place_kind kind,
				const char *function, const char *file, int line)
{
	struct place p = { kind, line, function, file, "" };
	uint32_t place = stack_book_place(b, &p), node = stack_book_node(b, parent, place);

	assert_true(place && node);
	return node;
}

static inline void put_entity(struct entity_table *t, uint32_t id, uint32_t parent,
			      enum entity_kind kind, int64_t key, const char *name)
{
	entity_table_add(t, &(struct entity){ .id = id,
					      .parent = parent,
					      .kind = kind,
					      .key = key,
					      .name = (char *)(uintptr_t)name,
					      .detail = (char *)(uintptr_t) "" });
}

static inline void stack_source_make(struct stack_source *s)
{
	struct stack_book *b = &s->book;

	*s = (struct stack_source){ .run = { .name = "train\033.py", .state = RUN_ENDED } };
	put_entity(&s->entities, 16, 0, ENTITY_PROC, 4711, "python3");
	put_entity(&s->entities, MAIN, 16, ENTITY_THREAD, 4711, "python3");
	put_entity(&s->entities, PIN, 16, ENTITY_THREAD, 4718, "pt_data_pin");
	put_entity(&s->entities, 19, 16, ENTITY_PROC, 4720, "a;b\n\033[2J 7");
	put_entity(&s->entities, EVIL, 19, ENTITY_THREAD, 4720, "a;b");
	s->module = put_node(b, 0, PLACE_PYTHON, "<module>", "/home/u/train.py", 88);
	s->train = put_node(b, s->module, PLACE_PYTHON, "train", "/home/u/train.py", 41);
	s->get = put_node(b, s->train, PLACE_PYTHON, "Queue.get",
			  "/usr/lib/python3.11/multiprocessing/__init__.py", 102);
	s->memcpy_ = put_node(b, s->train, PLACE_NATIVE, "memcpy", "/lib/libc.so.6", 0);
	s->memcpy_ = put_node(b, s->memcpy_, PLACE_NATIVE, "", "/lib/libm.so.6", 0);
	s->evil = put_node(b, 0, PLACE_PYTHON, "f;\n\t\"x\" 12", "/d;r/e\033\xff;.py", -3);
	s->evil = put_node(b, s->evil, PLACE_NATIVE, "", "", 0);
}

static inline void stack_source_done(struct stack_source *s)
{
	stack_book_done(&s->book);
	entity_table_done(&s->entities);
	run_info_done(&s->run);
}

static inline void stack_source_write(const struct sink_type *sink, struct buf *out)
{
	struct stack_source s;
	struct sink_source src;
	void *state = calloc(1, sink->state_size);
	int more;

	stack_source_make(&s);
	src = (struct sink_source){ .run = &s.run, .entities = &s.entities, .book = &s.book };
	const struct stack_row first[] = {
		{ MAIN, s.train, 0, WAIT_RUNNING, 0, STACK_PYTHON | STACK_GIL, 30, 600 * MS },
		{ MAIN, s.memcpy_, 0, WAIT_RUNNING, 0, STACK_PYTHON | STACK_JOINED, 10, 200 * MS },
		{ MAIN, s.get, 19, WAIT_PIPE, 0, STACK_PYTHON | STACK_HELD, 10, 200 * MS + 1 },
		{ PIN, 0, 0, WAIT_LOCK, 0, 0, 50, 1000 * MS },
	};
	const struct stack_row second[] = {
		{ MAIN, s.get, 19, WAIT_PIPE, 0, STACK_PYTHON, 10, 250 * MS },
		{ MAIN, s.get, 0, WAIT_POLL, WAIT_SOCKET, STACK_PYTHON, 10, 150 * MS },
		{ MAIN, s.train, 0, WAIT_RUNNABLE, 0, STACK_PYTHON | STACK_PARTIAL, 3, 60 * MS },
		{ MAIN, 0, 0, WAIT_RUNNING, 0, STACK_PYTHON | STACK_UNPROVEN, 2, 40 * MS },
		{ PIN, 0, 0, WAIT_SLEEP, 0, STACK_PYTHON, 5, 100 * MS },
		{ EVIL, s.evil, 0, WAIT_RUNNING, 0, STACK_PYTHON, 10, 200 * MS },
		{ UNKNOWN, NO_NODE, 0, 200, 200, 255, 5, 100 * MS },
		{ UNKNOWN, NO_NODE, 0, WAIT_GPU_DRIVER, 0, 0, 5, 50 * MS },
		{ UNKNOWN, NO_NODE, 0, WAIT_RUNNING, 0, 0, 5, 50 * MS },
		{ MAIN, s.train, 0, WAIT_RUNNING, 0, 0, 5, -100 * MS },
	};
	const struct stack_slice slices[] = {
		{ 0, 1000 * MS, first, sizeof(first) / sizeof(first[0]) },
		{ 1000 * MS, 2000 * MS, second, sizeof(second) / sizeof(second[0]) },
	};

	assert_non_null(state);
	assert_int_equal(sink->begin(state, &src, out), 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(sink->stack(state, &src, &slices[i], out), 0);
	do {
		more = sink->end(state, &src, out);
		assert_in_range(more, 0, 1);
	} while (more);
	assert_true(buf_ok(out));
	sink->done(state);
	free(state);
	stack_source_done(&s);
}

#endif
