/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "world.h"

#include "web/flame.h"

/* Children lie behind their parent, and self and children add up to all of it. */
static void check_balance(const struct flame *f)
{
	double *below = calloc(f->nodes.n + 1, sizeof(*below)), top = 0;

	assert_non_null(below);
	for (size_t i = 0; i < f->nodes.n; i++) {
		const struct flame_node *n = &f->nodes.v[i];

		assert_true(n->parent >= -1 && n->parent < (int32_t)i);
		assert_true(n->function < f->strings.n && n->file < f->strings.n);
		if (n->parent < 0)
			top += n->total_s;
		else
			below[n->parent] += n->total_s;
	}
	for (size_t i = 0; i < f->nodes.n; i++)
		assert_true(fabs(f->nodes.v[i].self_s + below[i] - f->nodes.v[i].total_s) < 1e-6);
	assert_true(fabs(top - f->total_s) < 1e-6);
	free(below);
}

static const char *function_of(const struct flame *f, size_t i)
{
	return f->strings.v[f->nodes.v[i].function];
}

static void small_tree(void **state)
{
	struct world x = { .stacks = true };
	struct flame f;

	(void)state;
	world_make(&x);
	assert_int_equal(flame_take(&x.window, &x.verdict, 0, 10000, &f), 0);
	check_balance(&f);
	assert_true(near(f.total_s, 20, 1e-9));
	assert_true(f.nodes.n >= 4);
	assert_int_equal(f.nodes.v[0].parent, -1);
	assert_string_equal(function_of(&f, 1), "<module>");
	assert_string_equal(f.strings.v[f.nodes.v[1].file], "/home/u/train.py");
	assert_int_equal(f.nodes.v[1].line, 12);
	/* the longest first; names are safe */
	assert_true(near(f.nodes.v[2].total_s, 16, 1e-9));
	assert_non_null(strstr(function_of(&f, 2), "step<script>"));
	assert_null(strchr(function_of(&f, 2), '\033'));
	assert_string_equal(function_of(&f, 3), "[libm.so.6]");
	flame_done(&f);
	world_done(&x);
}

static void none(void **state)
{
	struct world x = { .stacks = false };
	struct flame f;

	(void)state;
	world_make(&x);
	assert_int_equal(flame_take(&x.window, &x.verdict, 0, 10000, &f), 0);
	assert_int_equal(f.nodes.n, 0);
	flame_done(&f);
	world_done(&x);
}

/* --- a source of nothing but stacks, as many as one likes --- */

struct forest {
	struct stack_book book;
	struct entity_table entities;
	struct stack_row *rows;
	size_t n;
};

static int its_stacks(void *src, int64_t from, int64_t to, window_slice_fn fn, void *arg)
{
	const struct forest *x = src;

	(void)from;
	(void)to;
	fn(&(struct stack_slice){ 0, NS_PER_S, x->rows, x->n }, arg);
	return 0;
}

static const struct stack_book *its_book(void *src)
{
	return &((struct forest *)src)->book;
}

static const struct entity_table *its_entities(void *src)
{
	return &((struct forest *)src)->entities;
}

static void put_row(struct forest *x, uint32_t thread, uint32_t node, int64_t weight)
{
	x->rows[x->n++] = (struct stack_row){
		.entity = thread, .node = node, .kind = WAIT_RUNNING, .weight_ns = weight
	};
}

/* A forest of many thousand leaves, some of them deep, becomes as few nodes and as little text as asked. */
static void large_tree(void **state)
{
	static const struct window_ops ops = { .stacks = its_stacks,
					       .book = its_book,
					       .entities = its_entities };
	enum { LEAVES = 20000, DEEP = 300 };
	struct forest x = { .rows = calloc(LEAVES + 2, sizeof(struct stack_row)) };
	struct verdict v = { 0 };
	struct window w = { &ops, &x, 0, NS_PER_S };
	uint32_t deep = 0;
	int64_t total = 0;

	(void)state;
	assert_non_null(x.rows);
	for (int i = 0; i < LEAVES; i++) {
		char name[200];
		struct place p = { PLACE_PYTHON, i, name, "x.py", "" };

		snprintf(name, sizeof(name), "%0150d", i);
		put_row(&x, (uint32_t)i % 3,
			stack_book_node(&x.book, 0, stack_book_place(&x.book, &p)), i * 1000 + 1);
	}
	for (int i = 0; i < DEEP; i++) {
		struct place p = { PLACE_PYTHON, i, "deep", "deep.py", "" };

		deep = stack_book_node(&x.book, deep, stack_book_place(&x.book, &p));
	}
	put_row(&x, 7, deep, NS_PER_S);
	put_row(&x, 7, 0, -5);
	for (size_t i = 0; i < x.n; i++)
		total += x.rows[i].weight_ns > 0 ? x.rows[i].weight_ns : 0;
	for (size_t k = 0; k < 5; k++) {
		size_t most = (const size_t[]){ 1, 10, 73, 514, 2500 }[k], text = 0;
		struct flame f;

		assert_int_equal(flame_take(&w, &v, most, 40000, &f), 0);
		check_balance(&f);
		assert_true(f.nodes.n <= most || most == 1); /* of one the rest is two more */
		assert_true(near(f.total_s, (double)total / 1e9, 1e-9));
		for (size_t i = 0; i < f.strings.n; i++) {
			assert_true(strlen(f.strings.v[i]) < 120);
			text += strlen(f.strings.v[i]);
		}
		assert_true(text <= 40000);
		assert_true(most < 100 || f.nodes.n > 100);
		flame_done(&f);
	}
	stack_book_done(&x.book);
	entity_table_done(&x.entities);
	free(x.rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_tree),
		cmocka_unit_test(none),
		cmocka_unit_test(large_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
