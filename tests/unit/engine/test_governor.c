/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/clock.h"
#include "engine/governor.h"

/* A recorder whose tick costs tick_ns, fed once a second for `seconds`; counts rate changes. */
static int64_t simulate(struct governor *g, int64_t *now, int64_t cpu, int64_t tick_ns,
			unsigned seconds, unsigned *changes)
{
	for (unsigned i = 0; i < seconds; i++) {
		*now += NS_PER_S;
		cpu += (int64_t)(governor_hz(g) * (double)tick_ns);
		*changes += governor_feed(g, *now, cpu);
	}
	return cpu;
}

static void stays_at_full_rate_within_budget(void **state)
{
	struct governor g;
	int64_t now = 0;
	unsigned changes = 0;

	(void)state;
	governor_init(&g, 10, 0.01, now, 0);
	simulate(&g, &now, 0, 900000, 600, &changes); /* 0.9 ms x 10 Hz = 0.9 % */
	assert_int_equal(changes, 0);
	assert_true(governor_hz(&g) == 10);
	assert_int_equal(governor_thrift(&g), 1);
	assert_true(near(g.share, 0.009, 1e-6));
}

static void falls_to_what_fits(void **state)
{
	/* cost of a tick in ns -> rate that keeps 1 % */
	static const struct {
		int64_t tick_ns;
		double hz;
	} cases[] = { { 1500000, 5 }, { 4000000, 2 }, { 9000000, 1 }, { 50000000, 1 } };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct governor g;
		int64_t now = 0;
		unsigned changes = 0;

		governor_init(&g, 10, 0.01, now, 0);
		simulate(&g, &now, 0, cases[i].tick_ns, 60, &changes);
		assert_true(governor_hz(&g) == cases[i].hz);
	}
}

static void does_not_swing(void **state)
{
	struct governor g;
	int64_t now = 0;
	unsigned changes = 0;

	(void)state;
	/* At 5 Hz it would be well under budget in proportion, at 10 Hz just over. */
	governor_init(&g, 10, 0.01, now, 0);
	simulate(&g, &now, 0, 1050000, 3600, &changes);
	assert_true(changes <= 1);
	assert_true(governor_hz(&g) == 5);
}

static void comes_back_when_the_load_is_gone(void **state)
{
	struct governor g;
	int64_t now = 0, cpu;
	unsigned changes = 0;

	(void)state;
	governor_init(&g, 10, 0.01, now, 0);
	cpu = simulate(&g, &now, 0, 9000000, 60, &changes);
	assert_true(governor_hz(&g) == 1);
	cpu = simulate(&g, &now, cpu, 100000, 1800, &changes);
	assert_true(governor_hz(&g) == 10);
	assert_true(cpu > 0);
}

static void slow_rates_have_no_faster_step(void **state)
{
	struct governor g;
	int64_t now = 0;
	unsigned changes = 0;

	(void)state;
	governor_init(&g, 1, 0.01, now, 0);
	simulate(&g, &now, 0, 90000000, 60, &changes);
	assert_int_equal(changes, 0);
	assert_true(governor_hz(&g) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stays_at_full_rate_within_budget),
		cmocka_unit_test(falls_to_what_fits),
		cmocka_unit_test(does_not_swing),
		cmocka_unit_test(comes_back_when_the_load_is_gone),
		cmocka_unit_test(slow_rates_have_no_faster_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
