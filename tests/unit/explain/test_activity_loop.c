/* SPDX-License-Identifier: MIT
 *
 * The loop that trains: what the head of it runs loads, unless that trains itself.
 */
#include "../unit.h"

#include "activity_world.h"

/* What the head of the loop that trains runs makes its batches, whatever it is called; not so in a function that
 * calls no framework, in the body of the loop, or in a library's iterator. */
static void loop_head(void **state)
{
	static const char more[] =
	    "place 40 /home/u/train.py 40 main source for rows in table(path):\n"
	    "place 41 /home/u/train.py 41 main source loss = model(rows)\n"
	    "place 42 /home/u/table.py 7 table source rows.append(float(v))\n"
	    "place 43 /home/u/train.py 42 main source score(rows)\n"
	    "place 44 /home/u/tool.py 3 sum_up source for rows in table(path):\n"
	    "place 45 " SITE "more/itertools.py 3 chunked\n"
	    "stack 40 = 41 5\nstack 41 = 40 42\nstack 42 = 43 42\nstack 43 = 44 42\n"
	    "stack 44 = 40 45\nstack 45 = 40 45 42\n";
	struct world x;
	char text[2048];

	(void)state;
	snprintf(text, sizeof(text),
		 "%sdoes 30 40 running 0.3\ndoes 30 41 running 0.1\ndoes 30 42 running 0.2\n"
		 "does 30 43 running 0.1\ndoes 30 44 running 0.1\ndoes 30 45 running 0.1\n"
		 "does 30 41 file 0.1\n",
		 more);
	open_world(&x, text);
	assert_true(close_to(thread_of(&x, 30)->state[TIME_DISPATCH], 3));
	assert_true(close_to(thread_of(&x, 30)->state[TIME_DATA_LOAD], 3));
	assert_true(close_to(thread_of(&x, 30)->state[TIME_PYTHON], 4));
	close_world(&x);
	/* no framework: a loop over rows is what any program has */
	snprintf(text, sizeof(text), "%sdoes 30 41 running 0.5\ndoes 30 42 running 0.5\n", more);
	open_world(&x, text);
	assert_true(close_to(thread_of(&x, 30)->state[TIME_PYTHON], 10));
	close_world(&x);
}

/* A head that runs the training, or a part of it, loads nothing: a player that asks the model for each move, and a
 * loop that only prints what an epoch tells. */
static void loop_head_trains(void **state)
{
	static const char plays[] =
	    "place 50 /home/u/rl.py 40 main source for move in rollouts(env, policy):\n"
	    "place 51 /home/u/rl.py 41 main source loss = model(move)\n"
	    "place 52 /home/u/rl.py 10 rollouts source action = policy(view)\n"
	    "place 53 /home/u/rl.py 12 rollouts source view = env.tick(action)\n"
	    "place 54 /home/u/sim.py 5 World.tick source x += v * dt\n"
	    "stack 50 = 51 5\nstack 51 = 50 52 5\nstack 52 = 50 53 54\n"
	    "does 30 50 running 0.4\ndoes 30 51 running 0.1\ndoes 30 52 running 0.5\n";
	static const char prints[] =
	    "place 50 /home/u/run.py 40 main source for loss in train_epoch(model, loader):\n"
	    "place 51 /home/u/run.py 41 main source log(scale(loss))\n"
	    "place 52 /home/u/run.py 10 train_epoch source loss = shift(model(rows))\n"
	    "place 53 /home/u/run.py 20 shift source out.append(row[k] - mean)\n"
	    "stack 50 = 51 5\nstack 51 = 50 52 5\nstack 52 = 50 52 53\n"
	    "does 30 50 running 0.1\ndoes 30 51 running 0.4\ndoes 30 52 running 0.5\n";
	static const char *const programs[] = { plays, prints };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct world x;

		open_world(&x, programs[i]);
		assert_true(close_to(thread_of(&x, 30)->state[TIME_DISPATCH], 5));
		assert_true(close_to(thread_of(&x, 30)->state[TIME_PYTHON], 5));
		close_world(&x);
	}
}

/* Statements, and lines of comprehensions that look like one. */
static void loop_head_text(void **state)
{
	static const struct {
		const char *function, *line;
		bool head;
	} rows[] = {
		{ "main", "for x in parts(path):", true },
		{ "main", "async for x in parts(path):", true },
		{ "main", "for k, x in parts({'a:)': 1}, y[2:]):  # all", true },
		{ "main", "for x in parts(", true },
		{ "main", "for x in parts(path)", false },
		{ "main", "for x in parts(path)]", false },
		{ "main", "for x in parts(path)):", false },
		{ "main", "for x in parts({1: 2}) if x != ':'", false },
		{ "main.<locals>.<listcomp>", "for x in parts(", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world x;
		char text[1024];

		snprintf(text, sizeof(text),
			 "place 50 /home/u/run.py 40 %s source %s\n"
			 "place 51 /home/u/run.py 41 %s source loss = model(x)\n"
			 "place 52 /home/u/run.py 10 parts source out.append(row)\n"
			 "stack 50 = 51 5\nstack 51 = 50 52\n"
			 "does 30 50 running 0.5\ndoes 30 51 running 0.5\n",
			 rows[i].function, rows[i].line, rows[i].function);
		open_world(&x, text);
		if (!close_to(thread_of(&x, 30)->state[TIME_DATA_LOAD], rows[i].head ? 5 : 0))
			fail_msg("%s: %s", rows[i].function, rows[i].line);
		/* no name says that a training loads here */
		for (size_t k = 0; k < x.scene.activity.rows.n; k++)
			assert_false(x.scene.activity.rows.v[k].sure);
		close_world(&x);
	}
}

/* A line that hands out work to a device does so, too, while no frame of the framework shows it. */
static void lines_that_order(void **state)
{
	static const struct {
		const char *gpu, *does;
		double orders;
	} cases[] = {
		{ "gpu 50 0 H100\ngpu.busy@50 0.4\n",
		  "does 30 80 running 0.4\ndoes 30 81 running 0.6\n", 10 },
		/* mostly its own Python, another line, the interpreter itself, no device */
		{ "gpu 50 0 H100\ngpu.busy@50 0.4\n",
		  "does 30 80 running 0.2\ndoes 30 81 running 0.8\n", 2 },
		{ "gpu 50 0 H100\ngpu.busy@50 0.4\n",
		  "does 30 80 running 0.4\ndoes 30 82 running 0.6\n", 4 },
		{ "gpu 50 0 H100\ngpu.busy@50 0.4\n",
		  "does 30 80 running 0.4\ndoes 30 83 running 0.6\n", 4 },
		{ "", "does 30 80 running 0.4\ndoes 30 81 running 0.6\n", 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world x;
		char text[1024];

		snprintf(
		    text, sizeof(text),
		    "place 80 /home/u/cell.py 6 step source gate = torch.sigmoid(x @ w)\n"
		    "place 81 /home/u/cell.py 7 step source seen[k] = k\n"
		    "stack 80 = 1 80 5\nstack 81 = 1 80\nstack 82 = 1 81\nstack 83 = 1 80 23\n%s%s",
		    cases[i].gpu, cases[i].does);
		open_world(&x, text);
		assert_true(close_to(thread_of(&x, 30)->state[TIME_DISPATCH], cases[i].orders));
		close_world(&x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loop_head),
		cmocka_unit_test(loop_head_trains),
		cmocka_unit_test(loop_head_text),
		cmocka_unit_test(lines_that_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
