/* SPDX-License-Identifier: MIT
 *
 * The what-if of loading ahead, against what must be, and against a real DataLoader (torch 1.13, a
 * machine of two cores, batch_size 1, the training sleeps: batches a second as they were measured).
 */
#include "../unit.h"

#include "explain/pipeline.h"

#include <math.h>

static void close_to(double seen, double wanted, double error)
{
	if (!(fabs(seen / wanted - 1) <= error))
		fail_msg("%g, not %g", seen, wanted);
}

static void what_must_be(void **state)
{
	struct pipeline p = { .make_cpu = 0.03, .train_cpu = 0.01, .cores = INFINITY };

	(void)state;
	close_to(pipeline_step(&p), 0.04, 1e-6); /* one after the other */
	p.workers = 1;
	close_to(pipeline_step(&p), 0.03, 1e-3); /* the longer of both */
	p.workers = 4;
	close_to(pipeline_step(&p), 0.01, 1e-3);
	p.cores = 2; /* 40 ms of CPU a step, two cores */
	close_to(pipeline_step(&p), 0.02, 0.01);
	p.cores = 1;
	close_to(pipeline_step(&p), 0.04, 0.01);
	p.cores = INFINITY;
	p.device = 0.025; /* busy whatever the others do */
	close_to(pipeline_step(&p), 0.025, 0.01);
	p.crowd = 0.1;
	p.device = 0;
	p.workers = 2; /* 33 ms each, two at a time */
	close_to(pipeline_step(&p), 0.0165, 0.01);
}

static void batches_that_differ(void **state)
{
	struct pipeline p = { .workers = 8,
			      .prefetch = 2,
			      .make_wait = 0.08,
			      .train_wait = 0.01,
			      .cores = INFINITY,
			      .cv = 0.7 };
	double two, four, any;

	(void)state;
	two = pipeline_step(&p);
	/* what two others found by another way: .683 and .823 of the bound at balance */
	close_to(0.01 / two, 0.683, 0.04);
	p.prefetch = 4;
	four = pipeline_step(&p);
	close_to(0.01 / four, 0.823, 0.04);
	p.prefetch = 2;
	p.any_order = true;
	any = pipeline_step(&p);
	assert_true(any < two);
}

static void a_real_loader(void **state)
{
	/* workers, prefetch, cv, ms on a CPU, ms asleep, batches/s; the whole cycle has 1.5 ms of
	 * collate and pickle more, the training 1.6 ms of taking a batch. */
	static const struct {
		int workers, prefetch;
		double cv, cpu, sleep, real, error;
	} cases[] = {
		{ 4, 2, .1, 0, 40, 87, .05 },  { 4, 2, .67, 0, 40, 75, .05 },
		{ 8, 2, .67, 0, 80, 69, .05 }, { 2, 2, .3, 0, 30, 63, .05 },
		{ 1, 2, .3, 20, 0, 45, .05 },  { 1, 4, .1, 5, 0, 89, .05 },
		{ 2, 2, .3, 20, 0, 71, .05 }, /* all cores in use */
		{ 4, 2, .3, 20, 0, 75, .05 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pipeline p = { .workers = cases[i].workers,
				      .prefetch = cases[i].prefetch,
				      .cv = cases[i].cv,
				      .make_cpu = (cases[i].cpu + 1.5) / 1e3,
				      .make_wait = cases[i].sleep / 1e3,
				      .train_cpu = 0.0016,
				      .train_wait = 0.010,
				      .cores = 2,
				      .pair = 0.85 }; /* two threads of one core */

		print_message("%d workers, cv %.2f: %.1f/s, real %.0f\n", cases[i].workers,
			      cases[i].cv, 1 / pipeline_step(&p), cases[i].real);
		close_to(1 / pipeline_step(&p), cases[i].real, cases[i].error);
	}
}

static void fewest_workers(void **state)
{
	struct pipeline p = { .make_cpu = 0.03, .train_cpu = 0.01, .cores = INFINITY };

	(void)state;
	assert_int_equal(pipeline_workers(&p, 16), 3);
	assert_int_equal(pipeline_workers(&p, 2), 2);
	p.cores = 2;
	assert_int_equal(pipeline_workers(&p, 16), 2);
}

static void nonsense(void **state)
{
	struct pipeline p = { .cores = 1 };

	(void)state;
	assert_true(isnan(pipeline_step(&p)));
	p.make_cpu = NAN;
	assert_true(isnan(pipeline_step(&p)));
	p = (struct pipeline){ .workers = 1 << 30, .prefetch = 1 << 30, .make_cpu = 1, .cores = 1 };
	assert_true(pipeline_step(&p) > 0);
	p.workers = -1;
	assert_true(isnan(pipeline_step(&p)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_must_be),  cmocka_unit_test(batches_that_differ),
		cmocka_unit_test(a_real_loader), cmocka_unit_test(fewest_workers),
		cmocka_unit_test(nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
