/* SPDX-License-Identifier: MIT
 *
 * Samples that are alike are one row, and everything is told once.
 */
#include "../unit.h"

#include "engine/stack_tally.h"

static uint32_t node(struct stack_tally *t, uint32_t parent, const char *function, int line)
{
	struct place p = { .function = function, .file = "a.py", .line = line, .source = "" };

	return stack_book_node(&t->book, parent, stack_book_place(&t->book, &p));
}

static void add(struct stack_tally *t, uint32_t entity, uint32_t n, enum wait_kind kind)
{
	stack_tally_add(
	    t,
	    &(struct stack_row){
		.entity = entity, .node = n, .kind = (uint8_t)kind, .count = 1, .weight_ns = 20 });
}

static void alike_is_one_row(void **state)
{
	struct stack_tally t = { .from_ns = 5 };
	struct frame f = { 0 };
	uint32_t a = node(&t, 0, "main", 1), b = node(&t, a, "load", 7);

	(void)state;
	for (int i = 0; i < 10; i++) {
		add(&t, 30, b, WAIT_RUNNING);
		add(&t, 31, b, WAIT_RUNNING);
		add(&t, 30, b, WAIT_PIPE);
	}
	frame_begin(&f, 100, 0);
	stack_tally_tell(&t, 100, &f);
	assert_int_equal(f.stacks.n, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(f.stacks.v[i].count, 10);
		assert_int_equal(f.stacks.v[i].weight_ns, 200);
	}
	assert_int_equal(f.stacks_from_ns, 5);
	assert_int_equal(f.stacks_to_ns, 100);
	assert_int_equal(f.places.n, 2);
	assert_int_equal(f.nodes.n, 2);

	/* Nothing twice; the next begins where this ended. */
	add(&t, 30, b, WAIT_RUNNING);
	node(&t, b, "decode", 9);
	frame_begin(&f, 200, 0);
	stack_tally_tell(&t, 200, &f);
	assert_int_equal(f.stacks.n, 1);
	assert_int_equal(f.stacks.v[0].count, 1);
	assert_int_equal(f.stacks_from_ns, 100);
	assert_int_equal(f.places.n, 1);
	assert_int_equal(f.places.v[0].id, 3);
	assert_int_equal(f.nodes.n, 1);
	assert_int_equal(f.nodes.v[0].parent, b);
	frame_done(&f);
	stack_tally_done(&t);
}

static void source_is_told_again(void **state)
{
	struct stack_tally t = { 0 };
	struct frame f = { 0 }, copy = { 0 };

	(void)state;
	node(&t, 0, "main", 1);
	stack_tally_source(&t, 1, "known before it was told");
	frame_begin(&f, 1, 0);
	stack_tally_tell(&t, 1, &f);
	assert_int_equal(f.places.n, 1);
	assert_string_equal(frame_text(&f, f.places.v[0].source), "known before it was told");
	stack_tally_source(&t, 1, "x = y.item()");
	stack_tally_source(&t, 99, "no such place");
	frame_begin(&f, 2, 0);
	stack_tally_tell(&t, 2, &f);
	assert_int_equal(f.places.n, 1);
	assert_string_equal(frame_text(&f, f.places.v[0].source), "x = y.item()");

	add(&t, 30, 1, WAIT_GIL);
	frame_begin(&f, 3, 0);
	stack_tally_tell(&t, 3, &f);
	frame_event(&f, EVENT_STACKS, 20, 2, "words of %d", 1);
	frame_begin(&copy, 4, 0);
	stack_frame_append(&copy, &f);
	assert_int_equal(copy.stacks.n, 1);
	assert_int_equal(copy.stacks.v[0].kind, WAIT_GIL);
	assert_int_equal(copy.stacks_to_ns, 3);
	assert_string_equal(frame_text(&copy, copy.events.v[0].text), "words of 1");
	frame_done(&f);
	frame_done(&copy);
	stack_tally_done(&t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(alike_is_one_row),
		cmocka_unit_test(source_is_told_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
