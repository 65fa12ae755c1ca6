/* SPDX-License-Identifier: MIT
 *
 * Steps of a training that says nothing: told where its loop repeats and something else repeats with it,
 * and of nothing else.
 */
#include "../unit.h"

#include "../record/random.h"
#include "base/auto.h"
#include "base/buf.h"
#include "scenario.h"

#include <math.h>

/* The main thread waits for a worker, or sleeps, or never rests. */
static const char host[] =
    "exit 0\nmachine 4 1\nprocess 20 100 python3\nprocess 21 101 python3 of 20\n"
    "thread 30 20 100 python3\nthread 31 21 101 python3\njob.cores_allowed 4\njob.rss 1e9\n"
    "thread.run_delay@30 0 0.1\nproc.threads@20 4\n"
    "place 1 train.py 10 main\nplace 2 train.py 48 step\n"
    "place 3 torch/utils/data/dataloader.py 1120 _try_get_data\n"
    "place 4 multiprocessing/connection.py 257 poll\nstack 1 = 1 2\nstack 2 = 1 3 4\n"
    "stack 3 = 1\n";
static const char waiting[] = "does 30 1 running 0.4\ndoes 30 2 poll 0.6 on pipe\n";
static const char sleeping[] = "does 30 1 running 0.4\ndoes 30 3 sleep 0.6\n";
static const char running[] = "does 30 1 running 1\n";

/* What the main thread does, second by second: its times of work. */
struct life_of {
	struct history *h;
	double every, share, cv; /* of a loop; every 0: at random, share 1: always */
	double switches;         /* at the end of each time of work... */
	double more;             /* ...and all along, a second */
	int cores;               /* its process works on so many while it works... */
	double least;            /* ...and so many in between */
	struct random random;
	double begin, end, next; /* of the time of work that is going on, and of the next */
	double cpu, all, n;      /* so far */
	double t;
	double begun;     /* times */
	int64_t begin_ns; /* of the run */
};

static double drawn(struct life_of *x, double mean)
{
	double u = ((double)(random_next(&x->random) >> 11) + 0.5) / 9007199254740992.0;

	return -mean * log(u);
}

static void next_work(struct life_of *x)
{
	double took = x->every;

	x->begin = x->next;
	if (x->every > 0) {
		took *= 1 + x->cv * (2 * (double)random_below(&x->random, 1000) / 1000 - 1);
		x->end = x->begin + took * x->share;
		x->next = x->begin + took;
	} else {
		x->end = x->begin + drawn(x, 0.2);
		x->next = x->end + drawn(x, 0.3);
	}
	x->begun++;
}

/* Up to t. */
static void live(struct life_of *x, double t)
{
	while (x->t < t) {
		double to;

		if (x->t >= x->next)
			next_work(x);
		to = fmin(t, x->t < x->end ? x->end : x->next);
		x->cpu += x->t < x->end || x->least >= 1 ? to - x->t : 0;
		x->all += (x->t < x->end ? x->cores : x->least) * (to - x->t);
		x->n += x->t < x->end && to >= x->end ? x->switches : 0;
		x->n += x->more * (to - x->t);
		x->t = to;
	}
}

static void add(const struct frame *f, void *arg)
{
	/* The scenario's own: it is emptied for the next tick. */
	struct frame *mine = (struct frame *)(uintptr_t)f;
	struct life_of *x = arg;

	live(x, (double)(f->mono_ns - x->begin_ns) / 1e9);
	frame_put(mine, M_THREAD_CPU, 30, llround(x->cpu * 1e9));
	frame_put(mine, M_PROC_CPU, 20, llround(x->all * 1e9));
	frame_put(mine, M_JOB_CPU, ID_JOB, llround(x->all * 1e9));
	frame_put(mine, M_PROC_SWITCHES, 20, llround(x->n));
	frame_put(mine, M_THREAD_SLICES, 30, llround(x->n));
	assert_int_equal(history_frame(x->h, mine), 0);
}

struct world {
	struct scenario s;
	struct history *h;
	struct verdict v;
};

static void open_world(struct world *w, const char *run, const char *does, struct life_of *x)
{
	struct window window;
	char text[4096];

	*w = (struct world){ 0 };
	assert_true(snprintf(text, sizeof(text), "%s\n%s%s", run, host, does) < (int)sizeof(text));
	scenario_parse(&w->s, text);
	w->h = history_new(&w->s.run, (unsigned)(w->s.seconds * w->s.run.hz) + 2);
	x->h = w->h;
	x->begin_ns = w->s.run.started_mono_ns;
	x->random.state = 11;
	x->cores = x->cores ? x->cores : 1;
	scenario_each(&w->s, M_NONE, 0, add, x);
	window = history_window(w->h, 0);
	assert_int_equal(explain(&window, &w->v), 0);
}

static void close_world(struct world *w)
{
	verdict_done(&w->v);
	history_free(w->h);
	scenario_done(&w->s);
}

static void none(const char *run, const char *does, struct life_of x)
{
	auto_done(buf) struct buf out = { 0 };
	struct world w;

	open_world(&w, run, does, &x);
	if (steps_source(&w.v.steps))
		fail_msg("every %g, share %g: %g a second", x.every, x.share,
			 w.v.steps.inferred.rate_hz);
	render_json(&w.v, &out);
	assert_null(strstr(buf_text(&out), "\"steps\""));
	close_world(&w);
}

static void found(const char *run, const char *does, struct life_of x)
{
	double seconds, rate;
	struct world w;

	open_world(&w, run, does, &x);
	if (!steps_source(&w.v.steps))
		fail_msg("every %g, share %g: not found", x.every, x.share);
	assert_string_equal(steps_source(&w.v.steps), "inferred");
	assert_null(steps_lead(&w.v.steps)); /* nothing is as if it had been marked */
	seconds = w.s.seconds;
	rate = x.begun / seconds;
	if (fabs(w.v.steps.inferred.rate_hz / rate - 1) > 0.03)
		fail_msg("%g a second, not %g", w.v.steps.inferred.rate_hz, rate);
	if (isfinite(w.v.steps.inferred.count))
		assert_true(fabs(w.v.steps.inferred.count / x.begun - 1) < 0.1);
	close_world(&w);
}

static void loops(void **state)
{
	(void)state;
	found("run 40 hz 10", waiting,
	      (struct life_of){ .every = 0.5, .share = 0.4, .switches = 1 });
	found("run 40 hz 10", waiting,
	      (struct life_of){ .every = 0.73, .share = 0.4, .cv = 0.1, .switches = 3 });
	found("run 60 hz 5", waiting,
	      (struct life_of){ .every = 1.7, .share = 0.7, .cv = 0.05, .switches = 5, .more = 2 });
	/* never rests, but on four cores and on one by turns */
	found(
	    "run 40 hz 10", running,
	    (struct life_of){ .every = 0.8, .share = 0.5, .switches = 2, .cores = 4, .least = 1 });
	/* long ones: seen a second at a time, in what is left of a long run */
	found("run 1800 hz 2", waiting,
	      (struct life_of){ .every = 25, .share = 0.4, .cv = 0.05, .switches = 4 });
}

static void said(void **state)
{
	struct life_of x = { .every = 0.5, .share = 0.4, .switches = 1 };
	auto_done(buf) struct buf json = { 0 }, text = { 0 };
	struct world w;

	(void)state;
	open_world(&w, "run 40 hz 10", waiting, &x);
	render_json(&w.v, &json);
	assert_non_null(strstr(buf_text(&json), "\"source\": \"inferred\""));
	assert_null(strstr(buf_text(&json), "p95_s"));
	assert_null(strstr(buf_text(&json), "\"marker\""));
	render_text(&w.v, &(struct render_style){ .max_lines = 12, .width = 200 }, &text);
	if (!strstr(buf_text(&text), "Steps   about ") ||
	    !strstr(buf_text(&text), " steps, about 2.0 a second; inferred"))
		fail_msg("%s", buf_text(&text));
	close_world(&w);
}

/* A loop that is marked needs no guess. */
static void marked(void **state)
{
	struct life_of x = { .every = 0.5, .share = 0.4, .switches = 1 };
	struct world w;

	(void)state;
	open_world(&w, "run 40 hz 10\nprocess 22 102 python3\nsteps 100 every 0.25 from 2 of 22",
		   waiting, &x);
	assert_string_equal(steps_source(&w.v.steps), "mark");
	assert_true(isnan(w.v.steps.inferred.rate_hz));
	close_world(&w);
}

static void others(void **state)
{
	const struct life_of loop = { .every = 0.5, .share = 0.4, .switches = 1 };
	struct life_of x;

	(void)state;
	/* at random; always; never */
	none("run 40 hz 10", waiting, (struct life_of){ .switches = 1 });
	none("run 40 hz 10", running, (struct life_of){ .every = 1, .share = 1, .more = 5 });
	none("run 40 hz 10", "does 30 2 poll 1 on pipe\n",
	     (struct life_of){ .every = 1, .share = 0.0005, .switches = 1 });
	/* a timer: it sleeps in between; a heart-beat that takes no time */
	none("run 40 hz 10", sleeping, loop);
	none("run 120 hz 10", waiting,
	     (struct life_of){ .every = 5, .share = 0.004, .switches = 1 });
	/* nothing else repeats with it */
	x = loop;
	x.switches = 0;
	x.more = 20;
	none("run 40 hz 10", waiting, x);
	/* epochs of a faster loop, which waits a hundred times in each */
	none("run 40 hz 10", waiting,
	     (struct life_of){ .every = 2, .share = 0.7, .switches = 1, .more = 50 });
	/* too few times; no stacks, so nobody knows what it waits for */
	none("run 6 hz 10", waiting, loop);
	none("run 40 hz 10", "", loop);
}

/* Loops that are faster than the samples seem to be slow ones. */
static void faster(void **state)
{
	(void)state;
	for (int i = 0; i < 12; i++)
		none("run 30 hz 10", waiting,
		     (struct life_of){
			 .every = 0.045 + 0.0131 * i, .share = 0.3 + 0.04 * i, .switches = 1 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops),  cmocka_unit_test(said),   cmocka_unit_test(marked),
		cmocka_unit_test(others), cmocka_unit_test(faster),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
