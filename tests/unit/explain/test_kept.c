/* SPDX-License-Identifier: MIT
 *
 * Which of the lines that may keep something is named: by the stacks of the process that grows, and by when it grows.
 */
#include "activity_world.h"

#include "explain/fact.h"
#include "explain/facts/kept.h"

/* Grows by 40 MB a second, trains all the time. The loop is train.py:8-20 (places 1, 6 and 7 are in it). */
#define GROWS                                                                                    \
	"proc.rss@20 0:1e8 10:5e8\nproc.rss_shared@20 1e7\nproc.cpu@20 0 9\nthread.cpu@30 0 9\n" \
	"thread.run_delay@30 0 0\n"
#define TRAINS "does 30 4 running 0.8\ndoes 30 1 running 0.1\n"
#define LOOP   "keeps 40 /home/u/train.py 18 train source list local 8 8-20 history.append(out)\n"

static void expect(const char *more, enum fact_id id, int line, const char *others)
{
	static struct facts f; /* large */
	const struct place *p;
	struct world x;

	open_world(&x, more);
	facts_compute(&x.scene, &f);
	p = f.v[id].known ? stack_book_find_place(f.book, f.v[id].place) : NULL;
	assert_int_equal(p ? p->line : 0, line);
	if (p)
		assert_string_equal(f.v[id].text, others);
	close_world(&x);
}

static void the_loop_that_runs(void **state)
{
	(void)state;
	expect(GROWS TRAINS LOOP, FACT_KEPT, 18, "");
}

static void only_what_grows(void **state)
{
	(void)state;
	expect("proc.rss@20 5e8\nproc.rss_shared@20 1e7\nproc.cpu@20 0 9\n" TRAINS LOOP, FACT_KEPT,
	       0, "");
}

/* A helper that gathers a list and returns it is on the stack now and then. */
static void a_helpers_list_is_not_it(void **state)
{
	(void)state;
	expect(GROWS TRAINS
	       "does 30 11 running 0.1\n"
	       "keeps 40 /home/u/data.py 31 helper source list local 9 29-33 rows.append(x)\n",
	       FACT_KEPT, 0, "");
	expect(GROWS TRAINS
	       "does 30 11 running 0.1\n" LOOP
	       "keeps 41 /home/u/data.py 31 helper source list local 9 29-33 rows.append(x)\n",
	       FACT_KEPT, 18, "");
}

/* An object's list: better where its method is seen, but it may be too quick for that. */
static void what_outlives_its_function(void **state)
{
	(void)state;
	expect(GROWS TRAINS
	       "keeps 40 /home/u/log.py 7 emit source list long 7 5-9 self.seen.append(x)\n",
	       FACT_KEPT, 7, "");
	expect(GROWS TRAINS
	       "keeps 40 /home/u/log.py 7 emit source list long 4 5-9 self.seen.append(x)\n",
	       FACT_KEPT, 0, "");
	expect(GROWS TRAINS LOOP
	       "keeps 41 /home/u/log.py 7 emit source list long 8 5-9 self.seen.append(x)\n",
	       FACT_KEPT, 18, "log.py:7");
}

static void a_line_that_is_seen_to_run(void **state)
{
	(void)state;
	expect(GROWS TRAINS
	       "does 30 6 running 0.1\n" LOOP
	       "keeps 41 /home/u/train.py 12 train source list local 7 8-20 big.append(x)\n",
	       FACT_KEPT, 12, "train.py:18");
}

static void too_many_are_none(void **state)
{
	(void)state;
	expect(GROWS TRAINS LOOP
	       "keeps 41 /home/u/train.py 14 train source list local 8 8-20 b.append(x)\n"
	       "keeps 42 /home/u/train.py 15 train source list local 7 8-20 c.append(x)\n",
	       FACT_KEPT, 18, "train.py:14, train.py:15");
	expect(GROWS TRAINS LOOP
	       "keeps 41 /home/u/train.py 14 train source list local 8 8-20 b.append(x)\n"
	       "keeps 42 /home/u/train.py 15 train source list local 7 8-20 c.append(x)\n"
	       "keeps 43 /home/u/train.py 16 train source list local 7 8-20 d.append(x)\n",
	       FACT_KEPT, 0, "");
}

/* Two loops that take turns of two seconds: memory grows while the second one runs. */
static void when_it_grows(void **state)
{
	static const char turns[] =
	    "stack 60 = 6 12\nproc.rss@20 0:1e8 2:1e8 4:2e8 6:2e8 8:3e8 10:4e8\nproc.rss_shared@20 "
	    "1e7\nproc.cpu@20 "
	    "0 9\n"
	    "thread.cpu@30 0 9\nthread.run_delay@30 0 0\n"
	    "does 30 4 running 0.95 from 0 to 2\ndoes 30 60 running 0.95 from 2 to 4\n"
	    "does 30 4 running 0.95 from 4 to 6\ndoes 30 60 running 0.95 from 6 to 10\n"
	    "keeps 40 /home/u/train.py 9 train source list long 6 9-10 a.append(x)\n"
	    "keeps 41 /home/u/data.py 30 helper source list long 4 29-33 b.append(x)\n";

	(void)state;
	expect(turns, FACT_KEPT, 30, "");
}

static uint32_t place(struct stack_book *b, enum place_kind kind, const char *file, int line)
{
	uint32_t id = stack_book_place(
	    b, &(struct place){
		   .kind = kind, .line = line, .file = file, .function = "f", .source = "" });

	assert_true(id);
	return id;
}

static void expect_node(const struct kept_nodes *k, uint32_t node, uint64_t in, uint64_t calls,
			uint64_t itself)
{
	const struct kept_node *n = kept_node_of(k, node);

	assert_int_equal(n->in, in);
	assert_int_equal(n->calls, calls);
	assert_int_equal(n->itself, itself);
}

/* What a stack says of all lines at once: of the first, the last, and none. */
static void lines_of_a_stack(void **state)
{
	static struct kept_lines c; /* large */
	const uint64_t last = UINT64_C(1) << (KEPT_LINES_MAX - 1);
	struct stack_book b = { 0 };
	struct kept_nodes k;
	uint32_t line = place(&b, PLACE_PYTHON, "/a/train.py", 7);
	uint32_t loop = place(&b, PLACE_PYTHON, "/a/train.py", 5);
	uint32_t own = place(&b, PLACE_PYTHON, "/a/data.py", 5);
	uint32_t library = place(&b, PLACE_PYTHON, SITE "torch/x.py", 7);
	uint32_t fork =
	    place(&b, PLACE_PYTHON, "/usr/lib/python3.11/multiprocessing/process.py", 3);
	uint32_t native = place(&b, PLACE_NATIVE, "/a/train.py", 7);
	uint32_t at[8];

	(void)state;
	c.n = KEPT_LINES_MAX;
	for (size_t i = 0; i < c.n; i++)
		c.v[i] = (struct kept_line){ .file = "elsewhere" };
	c.v[0] = c.v[c.n - 1] = (struct kept_line){ .file = stack_book_find_place(&b, line)->file,
						    .keep = { .line = 7, .from = 4, .to = 9 } };
	c.v[c.n - 1].keep.from = 6;
	at[0] = stack_book_node(&b, 0, loop);
	at[1] = stack_book_node(&b, 0, line);
	at[2] = stack_book_node(&b, at[1], library);
	at[3] = stack_book_node(&b, at[2], own);
	at[4] = stack_book_node(&b, at[3], native);
	at[5] = stack_book_node(&b, at[1], fork);
	at[6] = stack_book_node(&b, at[5], own);
	at[7] = stack_book_node(&b, at[3], line);
	assert_int_equal(kept_nodes_open(&k, &b, &c), 0);
	expect_node(&k, at[0], 1, 0, 0);
	expect_node(&k, at[1], 1 | last, 0, 1 | last);
	expect_node(&k, at[2], 1 | last, 0, 1 | last);
	expect_node(&k, at[3], 1 | last, 1 | last, 0);
	expect_node(&k, at[4], 1 | last, 1 | last, 0);
	expect_node(&k, at[5], 0, 0, 0);
	expect_node(&k, at[6], 0, 0, 0);
	expect_node(&k, at[7], 1 | last, 1 | last, 1 | last);
	expect_node(&k, 0, 0, 0, 0);
	expect_node(&k, UINT32_MAX, 0, 0, 0);
	kept_nodes_done(&k);
	stack_book_done(&b);
}

/* A worker has its own lines, and not those of the loop it was forked in. */
static void of_workers(void **state)
{
	static const char world[] =
	    "process 21 200 python3 20\nthread 31 21 200 python3\nproc.rss@21 "
	    "5e8\nproc.rss_shared@21 1e7\n"
	    "proc.pss@21 0:1e8 10:5e8\nproc.cpu@20 0 9\nproc.cpu@21 0 9\nthread.cpu@31 0 9\n"
	    "thread.run_delay@31 0 0\nproc.rss@20 5e8\nproc.rss_shared@20 1e7\nthread.cpu@30 0 9\n"
	    "thread.run_delay@30 0 0\ndoes 30 4 running 0.5\ndoes 30 2 poll 0.4 on pipe\n"
	    "place 50 /usr/lib/python3.11/multiprocessing/process.py 314 BaseProcess._bootstrap\n"
	    "stack 50 = 1 50 9 4\ndoes 31 50 running 0.9\n" LOOP
	    "keeps 41 /home/u/data.py 6 Photos.__getitem__ source dict long 7 4-8 self.cache[i] = "
	    "x\n"
	    "keeps 42 /home/u/data.py 3 Photos.__init__ source objects long 5 4-8 self.files = "
	    "list(x)\n";

	(void)state;
	expect(world, FACT_KEPT_WORKERS, 6, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_loop_that_runs),
		cmocka_unit_test(only_what_grows),
		cmocka_unit_test(a_helpers_list_is_not_it),
		cmocka_unit_test(what_outlives_its_function),
		cmocka_unit_test(a_line_that_is_seen_to_run),
		cmocka_unit_test(too_many_are_none),
		cmocka_unit_test(when_it_grows),
		cmocka_unit_test(lines_of_a_stack),
		cmocka_unit_test(of_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
