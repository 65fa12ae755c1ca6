/* SPDX-License-Identifier: MIT
 *
 * The book of places and stacks: each once, whatever it is told and however much of it.
 */
#include "../unit.h"

#include "model/stacks.h"

#include <errno.h>
#include <stdlib.h>

static struct place py(const char *function, const char *file, int line)
{
	return (struct place){
		.kind = PLACE_PYTHON, .line = line, .function = function, .file = file, .source = ""
	};
}

static uint32_t put(struct stack_book *b, const char *function, const char *file, int line)
{
	struct place p = py(function, file, line);

	return stack_book_place(b, &p);
}

static void test_places_once(void **state)
{
	struct stack_book b = { 0 };
	struct place native = { .kind = PLACE_NATIVE, .function = "f", .file = "a.py", .line = 1 };
	char copy[] = "f";

	(void)state;
	assert_int_equal(put(&b, "f", "a.py", 1), 1);
	assert_int_equal(put(&b, copy, "a.py", 1), 1);
	assert_int_equal(put(&b, "f", "a.py", 2), 2);
	assert_int_equal(put(&b, "g", "a.py", 1), 3);
	assert_int_equal(put(&b, "f", "b.py", 1), 4);
	assert_int_equal(put(&b, "", "a.py", 1), 5);
	assert_int_equal(put(&b, "fa", ".py", 1), 6); /* not the same text cut elsewhere */
	native.source = NULL;
	assert_int_equal(stack_book_place(&b, &native), 7);
	assert_int_equal(stack_book_place(&b, &native), 7);
	assert_string_equal(stack_book_find_place(&b, 7)->source, "");
	assert_int_equal(stack_book_find_place(&b, 7)->kind, PLACE_NATIVE);
	assert_string_equal(stack_book_find_place(&b, 2)->function, "f");
	assert_int_equal(stack_book_find_place(&b, 2)->line, 2);
	assert_ptr_equal(stack_book_find_place(&b, 1)->file, stack_book_find_place(&b, 2)->file);
	copy[0] = 'x'; /* its texts are its own */
	assert_string_equal(stack_book_find_place(&b, 1)->function, "f");
	assert_int_equal(b.places.n, 7);
	stack_book_done(&b);
	assert_int_equal(b.places.n, 0);
}

static void test_long_texts_are_cut(void **state)
{
	struct stack_book b = { 0 };
	char text[3000];
	uint32_t id;

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	id = put(&b, text, text, 1);
	assert_int_equal(strlen(stack_book_find_place(&b, id)->function), 255);
	assert_int_equal(strlen(stack_book_find_place(&b, id)->file), 1023);
	text[2000] = 'b'; /* beyond the cut: the same place */
	assert_int_equal(put(&b, text, text, 1), id);
	text[254] = 'b';
	assert_int_not_equal(put(&b, text, text, 1), id);
	stack_book_done(&b);
}

static void test_nodes_and_walk(void **state)
{
	struct stack_book b = { 0 };
	uint32_t node = 0, places[STACK_DEPTH_MAX + 10], first = 0;

	(void)state;
	for (int i = 1; i <= 300; i++) {
		node = stack_book_node(&b, node, put(&b, "f", "a.py", i));
		assert_int_equal(node, i);
		first = first ? first : node;
	}
	assert_int_equal(stack_book_node(&b, first, 2), 2); /* as it has it */
	assert_int_equal(stack_book_node(&b, first, 3), 301);
	assert_int_equal(stack_book_node(&b, 0, 3), 302);
	assert_int_equal(stack_book_walk(&b, 3, places, 10), 3);
	assert_int_equal(places[0], 3);
	assert_int_equal(places[1], 2);
	assert_int_equal(places[2], 1);
	assert_int_equal(stack_book_walk(&b, 3, places, 2), 2);
	assert_int_equal(stack_book_walk(&b, 300, places, STACK_DEPTH_MAX + 10), STACK_DEPTH_MAX);
	assert_int_equal(places[0], 300);
	assert_int_equal(stack_book_walk(&b, 0, places, 10), 0);
	assert_int_equal(stack_book_walk(&b, 303, places, 10), 0);
	assert_int_equal(stack_book_walk(&b, UINT32_MAX, places, 10), 0);
	stack_book_done(&b);
}

static void test_hostile_ids(void **state)
{
	struct stack_book b = { 0 };
	struct place p = py("f", "a.py", 1);
	uint32_t places[8];

	(void)state;
	assert_int_equal(stack_book_node(&b, 0, 0), 0);
	assert_int_equal(stack_book_node(&b, 1, 1), 0); /* no such parent */
	assert_int_equal(stack_book_node(&b, 0, UINT32_MAX), 0);
	assert_int_equal(stack_book_set_place(&b, 0, &p), -EINVAL);
	assert_int_equal(stack_book_set_place(&b, STACK_PLACES_MAX + 1, &p), -EINVAL);
	assert_int_equal(stack_book_set_place(&b, UINT32_MAX, &p), -EINVAL);
	assert_int_equal(stack_book_set_node(&b, 0, 0, 1), -EINVAL);
	assert_int_equal(stack_book_set_node(&b, 5, 5, 1), -EINVAL);
	assert_int_equal(stack_book_set_node(&b, 5, 6, 1), -EINVAL);
	assert_int_equal(stack_book_set_node(&b, 5, 4, 0), -EINVAL);
	assert_int_equal(stack_book_set_node(&b, 5, 4, STACK_PLACES_MAX + 1), -EINVAL);
	assert_int_equal(stack_book_set_node(&b, STACK_NODES_MAX + 1, 0, 1), -EINVAL);
	assert_int_equal(b.nodes.n, 0);
	assert_int_equal(b.places.n, 0);
	/* Holes: 4 was never told. */
	assert_int_equal(stack_book_set_node(&b, 5, 4, 2), 0);
	assert_int_equal(stack_book_walk(&b, 5, places, 8), 1);
	assert_int_equal(stack_book_walk(&b, 4, places, 8), 0);
	assert_null(stack_book_find_place(&b, 2));
	assert_int_equal(stack_book_set_place(&b, 3, &p), 0);
	assert_string_equal(stack_book_find_place(&b, 2)->function, "");
	assert_string_equal(stack_book_find_place(&b, 2)->file, "");
	assert_string_equal(stack_book_find_place(&b, 2)->source, "");
	assert_string_equal(stack_book_find_place(&b, 3)->function, "f");
	/* The last of all. */
	assert_int_equal(stack_book_set_place(&b, STACK_PLACES_MAX, &p), 0);
	assert_int_equal(stack_book_set_node(&b, STACK_NODES_MAX, STACK_NODES_MAX - 1, 1), 0);
	assert_null(stack_book_find_place(&b, STACK_PLACES_MAX + 1));
	stack_book_done(&b);
}

static void test_source_told_later(void **state)
{
	struct stack_book b = { 0 };
	struct place p = py("f", "a.py", 1);
	uint32_t id;

	(void)state;
	id = stack_book_place(&b, &p);
	p.source = "x = load(path)";
	assert_int_equal(stack_book_set_place(&b, id, &p), 0);
	assert_string_equal(stack_book_find_place(&b, id)->source, "x = load(path)");
	/* It is still found by what makes it a place. */
	assert_int_equal(put(&b, "f", "a.py", 1), id);
	assert_string_equal(stack_book_find_place(&b, id)->source, "x = load(path)");
	stack_book_done(&b);
}

static void test_full_book(void **state)
{
	struct stack_book b = { 0 };
	size_t texts;

	(void)state;
	for (int i = 1; i <= STACK_PLACES_MAX; i++)
		if (put(&b, "f", "a.py", i) != (uint32_t)i)
			fail_msg("place %d", i);
	texts = b.texts.n;
	assert_int_equal(put(&b, "new", "new.py", 1), 0);
	assert_int_equal(put(&b, "f", "a.py", STACK_PLACES_MAX + 1), 0);
	assert_int_equal(b.texts.n, texts); /* what is refused takes no memory */
	assert_int_equal(put(&b, "f", "a.py", 77), 77);
	for (uint32_t i = 0; i < STACK_NODES_MAX; i++)
		if (stack_book_node(&b, i / 2, 1 + i % 2) != i + 1)
			fail_msg("node %u", i);
	assert_int_equal(stack_book_node(&b, 0, 3), 0);
	assert_int_equal(stack_book_node(&b, 5, 1), 11);
	stack_book_done(&b);
}

/* A program that makes up functions with long names fills the book, not the memory. */
static void test_texts_are_bounded(void **state)
{
	struct stack_book b = { 0 };
	struct place p;
	char file[1100];
	uint32_t id = 1, n = 0;

	(void)state;
	memset(file, 'x', sizeof(file));
	while (id && n < STACK_PLACES_MAX) {
		snprintf(file, 12, "%010u/", n++);
		file[11] = 'x';
		file[1023] = '\0';
		id = put(&b, "f", file, 1);
	}
	assert_true(n > 10000);
	assert_int_equal(id, 0);
	assert_true(b.text_bytes <= 17u << 20);
	/* Known texts still make places; a source line that does not fit is not known. */
	p = py("f", stack_book_find_place(&b, 1)->file, 2);
	file[0] = 'y';
	p.source = file;
	id = stack_book_place(&b, &p);
	assert_int_equal(id, n);
	stack_book_done(&b);
}

static void test_rows_merge(void **state)
{
	struct stack_row r[] = {
		{ .entity = 9, .node = 2, .kind = WAIT_GIL, .count = 1, .weight_ns = 10 },
		{ .entity = 8, .node = 5, .kind = WAIT_GIL, .count = 2, .weight_ns = 20 },
		{ .entity = 9, .node = 2, .kind = WAIT_GIL, .count = 3, .weight_ns = 30 },
		{ .entity = 9, .node = 2, .kind = WAIT_GIL, .flags = STACK_GIL, .count = 1 },
		{ .entity = 9, .node = 2, .kind = WAIT_GIL, .on = WAIT_PIPE, .count = 1 },
		{ .entity = 9, .node = 2, .kind = WAIT_GIL, .peer = 3, .count = 1 },
		{ .entity = 8,
		  .node = 5,
		  .kind = WAIT_GIL,
		  .count = UINT32_MAX,
		  .weight_ns = INT64_MAX },
	};

	(void)state;
	assert_int_equal(stack_rows_merge(NULL, 0), 0);
	assert_int_equal(stack_rows_merge(r, 7), 5);
	assert_int_equal(r[0].entity, 8);
	assert_int_equal(r[0].count, UINT32_MAX);
	assert_true(r[0].weight_ns == INT64_MAX);
	assert_int_equal(r[1].count, 4);
	assert_int_equal(r[1].weight_ns, 40);
	assert_int_equal(r[2].flags, STACK_GIL);
	assert_int_equal(r[3].peer, 3);
	assert_int_equal(r[4].on, WAIT_PIPE);
}

static void test_names(void **state)
{
	(void)state;
	for (unsigned bit = 1; bit <= STACK_GC; bit <<= 1) {
		assert_non_null(stack_flag_name(bit));
		assert_int_equal(stack_flag_by_name(stack_flag_name(bit)), bit);
	}
	assert_null(stack_flag_name(128));
	assert_int_equal(stack_flag_by_name("?"), 0);
	for (int k = 0; k < WAIT_KINDS; k++)
		assert_int_equal(wait_kind_by_name(wait_kind_name((enum wait_kind)k)), k);
	assert_int_equal(place_kind_by_name(place_kind_name(PLACE_PYTHON)), PLACE_PYTHON);
	assert_int_equal(place_kind_by_name(place_kind_name(PLACE_NATIVE)), PLACE_NATIVE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places_once),
		cmocka_unit_test(test_long_texts_are_cut),
		cmocka_unit_test(test_nodes_and_walk),
		cmocka_unit_test(test_hostile_ids),
		cmocka_unit_test(test_source_told_later),
		cmocka_unit_test(test_full_book),
		cmocka_unit_test(test_texts_are_bounded),
		cmocka_unit_test(test_rows_merge),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
