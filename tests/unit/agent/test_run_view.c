/* SPDX-License-Identifier: MIT
 *
 * One run as series: a rank that starts again goes on counting, and of a machine's recorders one tells of what they share.
 */
#include "../unit.h"

#include "agent/run_view.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "model/frame.h"
#include "record/writer.h"
#include "small_record.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* A tick in which one more process of rank 2 was born and has done n steps of 10 ms. */
static void process(struct set_up *s, uint32_t who, unsigned n, double loss)
{
	s->t_ns += TICK;
	frame_begin(&s->frame, s->t_ns, s->run.started_wall_ns + (s->t_ns - START));
	frame_life(&s->frame,
		   &(struct life){ .change = LIFE_BORN,
				   .id = 20 + who,
				   .kind = ENTITY_PROC,
				   .key = 4000 + who,
				   .start_ns = START },
		   "python3", "train.py");
	for (unsigned i = 0; i < n; i++)
		frame_mark(&s->frame,
			   &(struct frame_mark){ .t_ns = s->t_ns - TICK + (i + 1) * 10 * NS_PER_MS,
						 .entity = 20 + who,
						 .rank = 2,
						 .type = SAID_STEP,
						 .number = i + 1,
						 .value = loss },
			   NULL);
	assert_int_equal(record_frame(s->writer, &s->frame), 0);
	assert_int_equal(record_flush(s->writer), 0);
}

static void a_rank_that_starts_again(void **state)
{
	struct run_view r = { 0 };
	struct set_up s;

	(void)state;
	set_up(&s);
	job_env_none(&r.env);
	process(&s, 0, 8, 0.5);
	assert_int_equal(run_view_look(&r, s.path, false), 0);
	assert_int_equal(r.view.ranks.n, 1);
	assert_int_equal(r.view.ranks.v[0].steps.count, 8);
	assert_true(near(r.view.ranks.v[0].steps.last_s, 1700000000.08, 1e-9));
	/* far from as many as before it, and its losses are higher again */
	process(&s, 1, 2, 0.75);
	assert_int_equal(run_view_look(&r, s.path, false), 0);
	assert_int_equal(r.view.ranks.n, 1);
	assert_int_equal(r.view.ranks.v[0].rank, 2);
	assert_int_equal(r.view.ranks.v[0].steps.count, 10);
	assert_true(near(r.view.ranks.v[0].steps.last_s, 1700000000.12, 1e-9));
	assert_true(near(r.view.ranks.v[0].steps.loss, 0.75, 1e-9));
	run_view_done(&r);
	tear_down(&s);
}

struct told {
	unsigned with_rank, without;
};

static bool count(const struct series_sample *s, void *arg)
{
	struct told *t = arg;
	bool ranked = false;

	for (size_t i = 0; i < s->n_labels; i++)
		ranked |= strcmp(s->labels[i].name, "rank") == 0;
	*(ranked ? &t->with_rank : &t->without) += 1;
	return true;
}

static void who_tells_of_the_run(void **state)
{
	static const struct {
		int32_t rank, local;
		bool pod, tells;
	} rows[] = {
		{ -1, -1, false, true }, { 8, 0, false, true },   { 9, 1, false, false },
		{ 0, -1, false, true },  { 1, -1, false, false }, { 1, -1, true, true },
		{ 1, 1, true, false },
	};
	struct set_up s;

	(void)state;
	set_up(&s);
	process(&s, 0, 8, 0.5);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct run_view r = { 0 };
		struct told told = { 0 };

		job_env_none(&r.env);
		r.env.rank = rows[i].rank;
		r.env.local_rank = rows[i].local;
		r.env.pod = rows[i].pod;
		assert_int_equal(run_view_look(&r, s.path, false), 0);
		assert_true(run_view_each(&r, count, &told));
		assert_true(told.with_rank > 0);
		if ((told.without > 0) != rows[i].tells)
			fail_msg("rank %d, local %d, pod %d: %u series without a rank",
				 rows[i].rank, rows[i].local, rows[i].pod, told.without);
		run_view_done(&r);
	}
	tear_down(&s);
}

/* A ledger of the whole run is the rank's where there is one rank. */
static void ledgers_have_the_rank(void **state)
{
	struct run_view r = { 0 };
	struct set_up s;

	(void)state;
	set_up(&s);
	job_env_none(&r.env);
	process(&s, 0, 8, 0.5);
	process(&s, 1, 2, 0.75);
	/* as a verdict leaves it: of the run, and of a process that has no group */
	r.news.ledger[0] = (struct record_line){ .ledger = "cpu", .state = "python", .seconds = 2 };
	r.news.ledger[1] =
	    (struct record_line){ .ledger = "time", .state = "python", .pid = 4711, .seconds = 1 };
	r.news.n_ledger = 2;
	assert_int_equal(run_view_look(&r, s.path, false), 0);
	assert_int_equal(r.view.ledger.n, 2);
	for (size_t i = 0; i < r.view.ledger.n; i++)
		assert_int_equal(r.view.ledger.v[i].rank, 2);
	run_view_done(&r);
	tear_down(&s);
}

static void newest_of_a_rank(void **state)
{
	struct view_steps old = { .count = 5,
				  .last_s = 10,
				  .loss = 0.5,
				  .data_wait = NAN,
				  .comm_wait = NAN,
				  .own_work = 1 };
	struct view_steps fresh = { .count = 1,
				    .last_s = 20,
				    .loss = NAN,
				    .data_wait = 2,
				    .comm_wait = NAN,
				    .own_work = 3 };

	(void)state;
	/* in either order */
	for (int i = 0; i < 2; i++) {
		struct view_rank r = { 0 };

		view_rank_add_steps(&r, i ? &fresh : &old);
		view_rank_add_steps(&r, i ? &old : &fresh);
		assert_true(r.has_steps && r.steps.count == 6);
		assert_true(near(r.steps.last_s, 20, 0) && near(r.steps.loss, 0.5, 0));
		assert_true(near(r.steps.data_wait, 2, 0) && near(r.steps.own_work, 4, 0));
		assert_true(isnan(r.steps.comm_wait));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_that_starts_again),
		cmocka_unit_test(who_tells_of_the_run),
		cmocka_unit_test(ledgers_have_the_rank),
		cmocka_unit_test(newest_of_a_rank),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
