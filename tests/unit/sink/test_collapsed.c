/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "model/stack_text.h"
#include "stack_source.h"

static void whole_file(void **state)
{
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	stack_source_write(sink_by_name("collapsed"), &out);
	assert_string_equal(
	    buf_text(&out),
	    "python3 (4711);main thread;<module> (train.py:88);train (train.py:41) 600000\n"
	    "python3 (4711);main thread;<module> (train.py:88);train (train.py:41);"
	    "memcpy [libc.so.6];[libm.so.6] 200000\n"
	    "python3 (4711);main thread;<module> (train.py:88);train (train.py:41);"
	    "Queue.get (multiprocessing/__init__.py:102);[waiting: pipe] 450000\n"
	    "python3 (4711);pt_data_pin (4718);[waiting: lock] 1000000\n"
	    "python3 (4711);main thread;<module> (train.py:88);train (train.py:41);"
	    "Queue.get (multiprocessing/__init__.py:102);[waiting: poll socket] 150000\n"
	    "python3 (4711);main thread;<module> (train.py:88);train (train.py:41);"
	    "[not proven];[queued for a CPU] 60000\n"
	    "python3 (4711);main thread;[not proven] 40000\n"
	    "python3 (4711);pt_data_pin (4718);[no Python code];[waiting: sleep] 100000\n"
	    "a:b??[2J 7 (4720);main thread;f:??\"x\" 12 (e??:.py);[unknown] 200000\n"
	    "[unknown process];[unknown thread 99];[not proven];[state not known] 100000\n"
	    "[unknown process];[unknown thread 99];[waiting: gpu driver] 50000\n"
	    "[unknown process];[unknown thread 99];[no stack] 50000\n");
}

static void empty(void **state)
{
	const struct sink_type *sink = sink_by_name("collapsed");
	auto_done(buf) struct buf out = { 0 };
	struct stack_source s;
	void *memory = calloc(1, sink->state_size);

	(void)state;
	stack_source_make(&s);
	assert_non_null(memory);
	assert_int_equal(sink->end(memory,
				   &(struct sink_source){
				       .run = &s.run, .entities = &s.entities, .book = &s.book },
				   &out),
			 0);
	assert_int_equal(out.len, 0);
	sink->done(memory);
	free(memory);
	stack_source_done(&s);
}

/* A day has more slices than there is memory: what is kept grows with different stacks only, and what
 * is written comes in parts. */
static void many_slices(void **state)
{
	enum { STACKS = 4000, SLICES = 50 };
	const struct sink_type *sink = sink_by_name("collapsed");
	auto_done(buf) struct buf out = { 0 };
	static struct stack_row rows[STACKS];
	struct stack_source s;
	void *memory = calloc(1, sink->state_size);
	unsigned parts = 0;
	size_t lines = 0;
	int more;

	(void)state;
	stack_source_make(&s);
	assert_non_null(memory);
	struct sink_source src = { .run = &s.run, .entities = &s.entities, .book = &s.book };
	for (unsigned i = 0; i < STACKS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "function_number_%u", i);
		rows[i] = (struct stack_row){ .entity = MAIN,
					      .node = put_node(&s.book, s.train, PLACE_PYTHON, name,
							       "x.py", 1),
					      .kind = WAIT_RUNNING,
					      .weight_ns = INT64_MAX / 20 };
	}
	for (unsigned i = 0; i < SLICES; i++)
		assert_int_equal(sink->stack(memory, &src,
					     &(struct stack_slice){ i, i + 1, rows, STACKS }, &out),
				 0);
	assert_int_equal(out.len, 0);
	do {
		more = sink->end(memory, &src, &out);
		parts++;
		for (size_t i = 0; i < out.len; i++)
			lines += out.data[i] == '\n';
		/* sums that no number holds stop at the largest */
		assert_non_null(strstr(buf_text(&out), " 9223372036854776\n"));
		assert_true(out.len < 300000);
		buf_reset(&out);
	} while (more > 0);
	assert_int_equal(more, 0);
	assert_int_equal(lines, STACKS);
	assert_true(parts > 1);
	sink->done(memory);
	free(memory);
	stack_source_done(&s);
}

static void short_files(void **state)
{
	static const struct {
		const char *path, *name;
	} rows[] = {
		{ "/a/b/train.py", "train.py" },
		{ "train.py", "train.py" },
		{ "", "" },
		{ "/", "/" },
		{ "a/", "a/" },
		{ "/x/torch/__init__.py", "torch/__init__.py" },
		{ "torch/__init__.py", "torch/__init__.py" },
		{ "/__init__.py", "/__init__.py" },
		{ "__init__.py", "__init__.py" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(stack_short_file(rows[i].path), rows[i].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_file),
		cmocka_unit_test(empty),
		cmocka_unit_test(many_slices),
		cmocka_unit_test(short_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
