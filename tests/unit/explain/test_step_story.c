/* SPDX-License-Identifier: MIT
 *
 * One step alone: what it used, what its thread did, and what is not known of a short one.
 */
#include "../unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "explain/step_story.h"
#include "scenario.h"

#include <errno.h>
#include <math.h>

/* Step 20 takes 8 s, most of which its thread waits for a worker; the others 0.1 s. */
static const char text[] =
    "run 40 hz 10\nexit 0\nmachine 4 1\nprocess 20 100 python3\nthread 30 20 100 python3\n"
    "process 21 101 python3 of 20\n"
    "job.cpu 0:0 12:12 20:14 40:34\njob.cores_allowed 4\njob.rss 2e9\n"
    "proc.cpu@20 0 30\nthread.cpu@30 0:0 12:12 20:13 40:33\nthread.run_delay@30 0 0.1\n"
    "gpu 50 0 H100\ngpu 51 1 H100\ngpuproc 60 50 100 python3\n"
    "gpu.busy@50 0:0.9 11.9:0.9 12:0.2 20:0.2 20.1:0.9 40:0.9\ngpu.busy@51 0.5\n"
    "gpu.memory_used@50 30e9\ngpu.memory_used@51 1e9\n"
    "place 1 /home/u/train.py 9 train\n"
    "place 2 /usr/lib/python3/dist-packages/torch/utils/data/dataloader.py 900 _try_get_data\n"
    "place 3 /usr/lib/python3/dist-packages/torch/nn/modules/module.py 1500 Module._call_impl\n"
    "stack 1 = 1\nstack 2 = 1 2\nstack 3 = 1 3\n"
    "does 30 3 running 1 from 0 to 12\ndoes 30 2 pipe 1 peer 21 from 12 to 20\n"
    "does 30 3 running 1 from 20 to 40\n"
    "steps 100 every 0.1 from 10.1 loss 2 to 1 wait 0.01 but 20 takes 8 with 7\n"
    "scalar accuracy 20.05 0.5\nevent oom_kill 20 16 a worker was killed\nphase log 13 13.5\n";

static void is_near(double a, double b, double most)
{
	if (!(fabs(a - b) <= most))
		fail_msg("%.9g is not %.9g", a, b);
}

struct world {
	struct scenario s;
	struct history *h;
	struct window w;
	struct verdict v;
	struct step_story story;
};

static void open_world(struct world *x, uint64_t number)
{
	const struct window_step *found[4];

	*x = (struct world){ 0 };
	scenario_parse(&x->s, text);
	x->h = scenario_play(&x->s, M_NONE, 0);
	x->w = history_window(x->h, 0);
	assert_int_equal(explain(&x->w, &x->v), 0);
	assert_int_equal(step_find(&x->w, &x->v.steps, number, found, 4), 1);
	assert_int_equal(step_story(&x->w, &x->v.steps, found[0], &x->story), 0);
}

static void close_world(struct world *x)
{
	verdict_done(&x->v);
	history_free(x->h);
	scenario_done(&x->s);
}

static void show(const struct world *x, struct buf *out)
{
	step_story_text(&x->story, &(struct render_style){ .width = 200 }, out);
	assert_true(buf_ok(out));
}

static void expect(const struct buf *out, const char *line)
{
	if (!strstr(buf_text(out), line))
		fail_msg("no '%s' in\n%s", line, buf_text(out));
}

static void a_long_one(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	struct world x;

	(void)state;
	open_world(&x, 20);
	is_near(x.story.seconds, 8, 1e-6);
	assert_true(x.story.has_usage);
	is_near(x.story.usage.cores, 0.25, 0.02);
	assert_int_equal(x.story.n_gpus, 1); /* the other one is not its own */
	is_near(x.story.gpus[0].busy, 0.2, 0.02);
	assert_int_equal(x.story.tid, 100);
	is_near(x.story.state[TIME_DATA_WAIT], 0.87, 0.05);
	show(&x, &out);
	expect(&out, "Step    20, one of 100, pid 100\n");
	expect(&out, "8.0 s, from 12.0 s to 20.0 s of the run\n");
	expect(&out, "80 times the median of 100 ms\n");
	expect(&out, "waited 7.0 s for data (usually 10 ms)\n");
	expect(&out, "the step before)\n");
	expect(&out, "Scalars accuracy 0.5\n");
	expect(&out, "Phases  log, from 13.0 s to 13.5 s\n");
	expect(&out, "waiting for data");
	expect(&out, "cores\n");
	expect(&out, "GPU     0 H100, 20 % busy, 30 GB");
	expect(&out, "Events  16.0 s: oom_kill, a worker was killed\n");
	close_world(&x);
}

static void a_short_one(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	struct world x;

	(void)state;
	open_world(&x, 50);
	assert_false(x.story.has_usage);
	assert_int_equal(x.story.tid, 0);
	show(&x, &out);
	expect(&out, "not known: fewer than two samples were taken during it");
	expect(&out, "not known: the step is too short for it");
	assert_null(strstr(buf_text(&out), "GPU"));
	close_world(&x);
}

static void as_json(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	struct world x;
	struct json j;

	(void)state;
	open_world(&x, 20);
	json_init(&j, &out, false);
	step_story_json(&x.story, &j);
	expect(&out, "\"step\":20,\"pid\":100,");
	expect(&out, "\"data_wait_s\":7");
	expect(&out, "\"states\":[{\"state\":\"data_wait\"");
	close_world(&x);
}

static void none(void **state)
{
	const struct window_step *found[4];
	struct world x;

	(void)state;
	open_world(&x, 1);
	assert_int_equal(step_find(&x.w, &x.v.steps, 101, found, 4), 0);
	assert_int_equal(step_find(&x.w, &x.v.steps, 0, found, 4), 0);
	close_world(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_long_one),
					    cmocka_unit_test(a_short_one),
					    cmocka_unit_test(as_json), cmocka_unit_test(none) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
