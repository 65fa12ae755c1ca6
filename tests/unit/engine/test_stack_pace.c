/* SPDX-License-Identifier: MIT
 *
 * How often stacks are looked at, played through with made-up costs.
 */
#include "../unit.h"

#include "base/clock.h"
#include "engine/stack_pace.h"

/* A recorder of which the stacks are a part. */
struct play {
	struct stack_pace pace;
	double budget;    /* of the whole */
	double others;    /* share of a core that the rest of it takes */
	int64_t start_ns; /* CPU time of its start */
	int64_t look_ns;  /* CPU time of a look, half of it for those who take turns */
	int64_t first_ns; /* of each of the first five looks */
	size_t followers;
	int64_t now_ns, cpu_ns; /* so far, all of it */
	unsigned looks;
};

static int64_t cost_of(const struct play *p)
{
	int64_t half = p->look_ns / 2;

	if (p->looks < 5 && p->first_ns)
		return p->first_ns;
	return p->followers ? half + half / p->pace.stride : p->look_ns;
}

static void play(struct play *p, double seconds)
{
	int64_t end = p->now_ns + (int64_t)(seconds * 1e9), told = 0;
	struct stack_allowance a = { p->budget / 2, 0 };

	while (p->now_ns < end) {
		int64_t step = (int64_t)(1e9 / p->pace.hz_now), cost = cost_of(p);

		p->now_ns += step;
		p->cpu_ns += cost + (int64_t)(p->others * (double)step);
		p->looks++;
		if (p->now_ns - told > NS_PER_S && p->budget > 0) { /* as the recorder does */
			told = p->now_ns;
			a.share = 0.95 * p->budget - p->others;
			a.debt_ns = p->cpu_ns + p->start_ns -
				    (int64_t)(0.95 * p->budget * (double)p->now_ns);
		}
		stack_pace_look(&p->pace, cost);
		stack_pace_govern(&p->pace, p->now_ns, &a, p->followers);
	}
}

static double mean(const struct play *p)
{
	return (double)(p->cpu_ns + p->start_ns) / (double)p->now_ns;
}

static struct play of(double hz)
{
	struct play p = { .budget = 0.01, .others = 0.004, .look_ns = 100000, .now_ns = 1 };

	stack_pace_init(&p.pace, hz);
	return p;
}

static void what_fits_is_left_alone(void **state)
{
	struct play p = of(50);

	(void)state;
	play(&p, 20);
	assert_true(p.pace.hz_now == 50);
	assert_int_equal(p.pace.stride, 1);
	assert_true(p.looks >= 990);
}

/* A start of 15 ms is one and a half seconds' worth of the budget. */
static void a_dear_start_is_made_up_for(void **state)
{
	struct play p = of(50);

	(void)state;
	p.start_ns = 15 * NS_PER_MS;
	p.first_ns = NS_PER_MS;
	play(&p, 1);
	assert_true(mean(&p) > 0.02);
	/* It did not stop looking for that. */
	assert_true(p.looks > 20);
	play(&p, 5);
	assert_true(mean(&p) < 0.0125);
	assert_true(p.looks > 120);
	play(&p, 30);
	assert_true(mean(&p) < 0.0101);
	/* ...and is back then. */
	assert_true(p.pace.hz_now > 40);
}

static void the_budget_is_kept_by_those_who_take_turns(void **state)
{
	struct play p = of(50);

	(void)state;
	p.look_ns = 200000; /* 1 % with what leads alone 0.5 % */
	p.followers = 8;
	play(&p, 10);
	assert_true(p.pace.stride > 1);
	assert_true(p.pace.hz_now > 45);
	assert_true(mean(&p) < 0.0105);
}

static void the_budget_is_kept_by_the_clock(void **state)
{
	struct play p = of(50);

	(void)state;
	p.look_ns = 2 * NS_PER_MS;
	play(&p, 10);
	assert_int_equal(p.pace.stride, 1);
	assert_true(p.pace.hz_now < 5 && p.pace.hz_now >= 2);
}

/* However little there is: two a second, or what was asked for. */
static void there_is_a_least(void **state)
{
	struct play p = of(50), slow = of(0.5);

	(void)state;
	p.look_ns = slow.look_ns = 100 * NS_PER_MS;
	play(&p, 10);
	play(&slow, 10);
	assert_true(p.pace.hz_now == 2);
	assert_true(slow.pace.hz_now == 0.5);
}

static void workers_that_start_all_at_once_are_noticed_at_once(void **state)
{
	struct play p = of(50);

	(void)state;
	play(&p, 10);
	assert_true(p.pace.hz_now == 50);
	p.look_ns = 3 * NS_PER_MS;
	play(&p, 1);
	assert_true(p.pace.hz_now < 10);
	/* One that is over is forgotten again. */
	p.look_ns = 100000;
	play(&p, 60);
	assert_true(p.pace.hz_now > 45);
}

static void one_dear_look_is_no_reason(void **state)
{
	struct play p = of(50);

	(void)state;
	play(&p, 5);
	for (int i = 0; i < 10; i++) {
		p.look_ns = 5 * NS_PER_MS;
		play(&p, 0.02);
		p.look_ns = 50000;
		play(&p, 2);
		assert_true(p.pace.hz_now > 40);
	}
}

static void no_budget_is_no_limit(void **state)
{
	struct play p = of(1000);

	(void)state;
	p.budget = 0;
	p.look_ns = 5 * NS_PER_MS;
	play(&p, 3);
	assert_true(p.pace.hz_now == 1000);
}

static void a_purse_fills_and_is_never_over_full(void **state)
{
	struct stack_purse p = { .left_ns = 10 * NS_PER_MS, .most_ns = 10 * NS_PER_MS };

	(void)state;
	assert_true(stack_purse_fill(&p, NS_PER_S, 0.01));
	p.left_ns -= 30 * NS_PER_MS; /* a burst */
	assert_false(stack_purse_fill(&p, 2 * NS_PER_S, 0.01));
	assert_int_equal(p.left_ns, -10 * NS_PER_MS);
	assert_true(stack_purse_fill(&p, 3 * NS_PER_S + 1000, 0.01));
	assert_true(stack_purse_fill(&p, 100 * NS_PER_S, 0.01));
	assert_int_equal(p.left_ns, 10 * NS_PER_MS);
	/* The clock went back: nothing is taken away. */
	assert_true(stack_purse_fill(&p, NS_PER_S, 0.01));
	p.left_ns = -NS_PER_S;
	assert_true(stack_purse_fill(&p, NS_PER_S, 0));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_is_left_alone),
		cmocka_unit_test(a_dear_start_is_made_up_for),
		cmocka_unit_test(the_budget_is_kept_by_those_who_take_turns),
		cmocka_unit_test(the_budget_is_kept_by_the_clock),
		cmocka_unit_test(there_is_a_least),
		cmocka_unit_test(workers_that_start_all_at_once_are_noticed_at_once),
		cmocka_unit_test(one_dear_look_is_no_reason),
		cmocka_unit_test(no_budget_is_no_limit),
		cmocka_unit_test(a_purse_fills_and_is_never_over_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
