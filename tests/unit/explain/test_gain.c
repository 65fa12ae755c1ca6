/* SPDX-License-Identifier: MIT
 *
 * Predicted gains, whatever the facts are: made by chance, some absent, some absurd. And the parts they are made of.
 */
#include "../unit.h"

#include "explain/cause.h"
#include "explain/loading.h"
#include "explain/rule.h"
#include "explain/stall.h"
#include "explain/together.h"

#include <math.h>

enum { DRAWS = 600 };

/* xorshift64*: the same facts on every machine. */
static double chance(uint64_t *s)
{
	*s ^= *s >> 12;
	*s ^= *s << 25;
	*s ^= *s >> 27;
	return (double)((*s * 0x2545f4914f6cdd1dull) >> 11) / 9007199254740992.0;
}

static double one_of(uint64_t *s, const double *v, size_t n)
{
	return v[(size_t)(chance(s) * (double)n)];
}

static double value_of(uint64_t *s, const char *unit)
{
	static const double shares[] = { 0, 0, 0.02, 0.06, 0.1, 0.3, 0.6, 0.9, 0.97, 1 };
	static const double cores[] = { 0, 0.1, 0.5, 1, 1.6, 2, 8, 96 };
	static const double workers[] = { 0, 0, 1, 1, 2, 3, 8 };
	static const double counts[] = { 0, 0, 1, 1, 2, 3, 8 };
	static const double absurd[] = { -1, 1e-9, 17, 1e6, 1e20 };

	if (chance(s) < 0.01)
		return one_of(s, absurd, 5);
	if (strcmp(unit, "ratio") == 0)
		return chance(s) < 0.5 ? chance(s) : one_of(s, shares, 10);
	if (strcmp(unit, "cores") == 0)
		return one_of(s, cores, 8);
	if (strcmp(unit, "workers") == 0)
		return one_of(s, workers, 7);
	if (strcmp(unit, "count") == 0)
		return one_of(s, counts, 7);
	return pow(10, 11 * chance(s));
}

static void by_chance(uint64_t *s, struct facts *f)
{
	double absent = chance(s) < 0.5 ? 0 : 0.05;

	*f = (struct facts){ 0 };
	for (int i = 0; i < FACTS; i++) {
		double v = value_of(s, fact_infos[i].unit),
		       spread = chance(s) < 0.5 ? 0 : chance(s);

		if (chance(s) >= absent)
			fact_set_range(f, (enum fact_id)i, v, v * (1 - spread), v * (1 + spread));
	}
	if (chance(s) < 0.7)
		fact_set_subject(f, FACT_START_SECONDS, 0, "steps");
}

/* The GPU's work can become less, or is not what bounds it: docs/gain.md. */
static bool beyond_gpu(const struct finding *x, const struct facts *f)
{
	static const char *const causes_so[] = { "recompiles",    "evaluation_share",
						 "gpu_throttled", "gpu_shared",
						 "idle_gpus",     "data_parallel_api" };

	for (size_t i = 0; i < sizeof(causes_so) / sizeof(causes_so[0]); i++)
		if (strcmp(x->cause, causes_so[i]) == 0)
			return true;
	/* many small kernels become a few, or go with their orders */
	if (strcmp(x->cause, "launch_bound") == 0)
		return true;
	/* kernels that occupy a part of it take no longer when they occupy more */
	if (strcmp(x->cause, "small_batch") == 0 && fact_or(f, FACT_GPU_BUSY, 0) >= 0.7)
		return true;
	return strcmp(x->family, "ranks") == 0;
}

static double gpu_bound(const struct facts *f)
{
	double busy = fact_or(f, FACT_GPU_BUSY, 0);

	/* what a driver says may be off by 2 % */
	return fact_or(f, FACT_GPU_USED, 0) >= 1 && busy >= 0.01 ? fmax(1, 1.02 / busy) : INFINITY;
}

/* At best: a GPU that is given its orders in bursts is counted as busy between them. */
static double slack(const struct finding *x)
{
	return strcmp(x->cause, "cpu_quota") == 0 ? 1 / 0.8 : 1;
}

static void holds(const struct finding *x, const struct facts *f, uint64_t seed)
{
	bool sane = isfinite(x->speedup) && isfinite(x->high) && 1 <= x->low &&
		    x->low <= x->speedup && x->speedup <= x->high &&
		    (x->most == 0 || (isfinite(x->most) && x->most >= x->high));

	if (x->speedup > 1)
		sane = sane && x->then[0];
	if (!beyond_gpu(x, f))
		sane = sane && fmax(x->high, x->most) <= slack(x) * gpu_bound(f) * (1 + 1e-9) &&
		       x->speedup <= gpu_bound(f) * (1 + 1e-9);
	if (!sane)
		fail_msg("draw %llu: %s: %g (%g to %g, at most %g), then '%s', GPU %g",
			 (unsigned long long)seed, x->cause, x->speedup, x->low, x->high, x->most,
			 x->then, fact_or(f, FACT_GPU_BUSY, NAN));
}

static void all_hold(const struct verdict *v, const struct facts *f, uint64_t seed)
{
	double best = 1, best_low = 1, best_high = 1, bound = gpu_bound(f), more = 1;
	bool sane;

	for (size_t i = 0; i < v->findings.n; i++) {
		const struct finding *x = &v->findings.v[i];

		best = fmax(best, x->speedup);
		best_low = fmax(best_low, x->low);
		best_high = fmax(best_high, x->high);
		more = fmax(more, slack(x));
		if (beyond_gpu(x, f))
			bound = INFINITY;
	}
	if (v->findings.n < 2) {
		assert_false(isfinite(v->together));
		return;
	}
	sane = v->together_low <= v->together && v->together <= v->together_high &&
	       v->together_low >= best_low * (1 - 1e-9) && v->together >= best * (1 - 1e-9) &&
	       v->together_high >= best_high * (1 - 1e-9) &&
	       v->together_high <= more * bound * (1 + 1e-9);
	if (!sane)
		fail_msg("draw %llu: together %g (%g to %g), alone %g (%g to %g), GPU %g",
			 (unsigned long long)seed, v->together, v->together_low, v->together_high,
			 best, best_low, best_high, bound);
}

/* Asks all rules; findings of 5 % and more are kept, as explain() does. */
static void ask_all(const struct facts *f, uint64_t seed, struct verdict *v, unsigned *seen)
{
	for (size_t r = 0; rules[r]; r++) {
		struct opinion o = { 0 };
		struct finding *x = &o.finding;

		if (rules[r]->check(f, &o) != ANSWER_YES || !x->has_gain)
			continue;
		x->cause = rules[r]->cause;
		x->family = cause_find(x->cause)->family;
		holds(x, f, seed);
		seen[r]++;
		if (!x->note && x->speedup >= 1.05) {
			struct finding *at = vec_push(&v->findings);

			assert_non_null(at);
			*at = *x;
		}
	}
	together(v, f);
}

static void whatever_the_facts(void **state)
{
	static struct facts f;
	unsigned seen[256] = { 0 }, kinds = 0, several = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= DRAWS; seed++) {
		uint64_t s = seed * 0x9e3779b97f4a7c15ull;
		struct verdict v = { 0 };

		by_chance(&s, &f);
		ask_all(&f, seed, &v, seen);
		all_hold(&v, &f, seed);
		several += v.findings.n > 1;
		vec_done(&v.findings);
	}
	for (size_t r = 0; rules[r]; r++)
		kinds += seen[r] > 0;
	/* it is about something: most rules that promise a gain did so, and often several at once */
	assert_true(kinds >= 20 && several >= DRAWS / 20);
}

static void gpu_leaves(void **state)
{
	static struct facts f;

	(void)state;
	fact_set(&f, FACT_GPU_BUSY, 0.57);
	assert_true(fabs(loading_gpu_floor(&f, LOADING_BEST) - 0.57 / 1.02) < 1e-9);
	assert_true(fabs(loading_gpu_floor(&f, LOADING_LIKELY) - 0.57 / 0.97) < 1e-9);
	assert_true(loading_gpu_floor(&f, LOADING_WORST) > 0.63);
	/* one that is full has nothing to give, one that is not used bounds nothing */
	fact_set(&f, FACT_GPU_BUSY, 0.99);
	assert_true(loading_gpu_floor(&f, LOADING_LIKELY) == 1);
	fact_set(&f, FACT_GPU_BUSY, 0.002);
	assert_true(loading_gpu_floor(&f, LOADING_WORST) < 0.01);
}

/* The part of a stall on a CPU: what is waited for in it does not get faster on a quieter machine. */
static void what_drifts(void **state)
{
	static struct facts f;
	struct finding waits = { 0 }, runs = { 0 };

	(void)state;
	fact_set(&f, FACT_TIME_RUNNING, 0.1);
	assert_true(fabs(stall_cpu_part(&f, 0.9)) < 1e-9);
	fact_set(&f, FACT_TIME_RUNNING, 0.7);
	assert_true(fabs(stall_cpu_part(&f, 0.6) - 0.5) < 1e-9);
	fact_set(&f, FACT_TIME_GPU_WAIT, 0.3);
	assert_true(fabs(stall_cpu_part(&f, 0.6) - 1) < 1e-9);
	rule_gain_of_time(&waits, 0.45, 0.5, 0.52);
	rule_gain_of_time(&runs, 0.45, 0.5, 0.52);
	rule_gain_drifts(&waits, 0);
	rule_gain_drifts(&runs, 1);
	assert_true(fabs(waits.low - 1 / 0.52) < 1e-6 && waits.speedup == 2);
	assert_true(runs.low < 1.7 && runs.low > 1.6 && runs.speedup == 2);
	assert_true(runs.high == waits.high);
}

/* Who shares its work out waits for the helper that has no CPU, and spins: neighbours cost more than the cores they take. */
static void barriers(void **state)
{
	extern const struct rule cpu_neighbour_rule;
	static struct facts f;
	struct opinion plain = { 0 }, half = { 0 }, spun = { 0 }, few = { 0 };

	(void)state;
	fact_set(&f, FACT_CORES_ALLOWED, 2);
	fact_set(&f, FACT_CORES_OTHERS, 1);
	fact_set(&f, FACT_CORES_USED, 1);
	fact_set(&f, FACT_CORES_MACHINE, 2);
	fact_set(&f, FACT_THREADS_DELAY, 1);
	fact_set(&f, FACT_THREADS_READY, 2);
	fact_set(&f, FACT_THREADS_ALONE, 2);
	fact_set(&f, FACT_MAIN_DELAY, 0.5);
	fact_set(&f, FACT_MAIN_BLOCKED, 0);
	fact_set(&f, FACT_QUOTA_THROTTLED, 0);
	assert_int_equal(cpu_neighbour_rule.check(&f, &plain), ANSWER_YES);
	assert_true(fabs(plain.finding.speedup - 2) < 0.01);
	/* without its own waiting nobody knows what of the time that is */
	fact_set(&f, FACT_MAIN_SPINS, 0.45);
	fact_set(&f, FACT_CORES_SPINNING, 0.45);
	assert_int_equal(cpu_neighbour_rule.check(&f, &half), ANSWER_YES);
	assert_true(fabs(half.finding.speedup - 2) < 0.01);
	fact_set(&f, FACT_TIME_QUEUED, 0.5);
	assert_int_equal(cpu_neighbour_rule.check(&f, &spun), ANSWER_YES);
	assert_true(spun.finding.speedup > 5 && spun.finding.high <= 50);
	assert_true(spun.finding.low < 3);
	/* a neighbour that takes little is not to blame for a barrier */
	fact_set(&f, FACT_THREADS_DELAY, 0.06);
	fact_set(&f, FACT_MAIN_DELAY, 0.06);
	fact_set(&f, FACT_TIME_QUEUED, 0.06);
	assert_int_equal(cpu_neighbour_rule.check(&f, &few), ANSWER_YES);
	assert_true(few.finding.speedup < 1.25);
}

/* On cores that its own helpers fill a thread is queued as well; what it is queued for is handing out work. */
static void orders_while_queued(void **state)
{
	extern const struct rule launch_bound_rule;
	static struct facts f;
	struct opinion some = { 0 }, most = { 0 };

	(void)state;
	fact_set(&f, FACT_GPU_BUSY, 0.48);
	fact_set(&f, FACT_TIME_GPU_WAIT, 0);
	fact_set(&f, FACT_DISPATCH_HELD, 0);
	fact_set(&f, FACT_DISPATCH_ELEMENTS, 0);
	fact_set_range(&f, FACT_TIME_DISPATCH, 0.55, 0.45, 0.65);
	fact_set(&f, FACT_TIME_QUEUED, 0.18);
	assert_int_equal(launch_bound_rule.check(&f, &some), ANSWER_YES);
	assert_true(some.finding.low > 1 && some.finding.speedup <= 1.02 / 0.48);
	/* at best many small kernels become a few large ones */
	assert_true(fabs(some.finding.high - 1 / (1 - 0.65)) < 0.01);
	/* a GPU that stands still while checkpoints are written is given its orders in time besides */
	fact_set(&f, FACT_DOING_CHECKPOINT, 0.45);
	assert_int_equal(launch_bound_rule.check(&f, &most), ANSWER_NO);
	fact_set(&f, FACT_DOING_CHECKPOINT, 0.2);
	assert_int_equal(launch_bound_rule.check(&f, &most), ANSWER_YES);
	/* with no CPU to be had it is another matter */
	fact_set(&f, FACT_TIME_QUEUED, 0.35);
	assert_int_equal(launch_bound_rule.check(&f, &most), ANSWER_NO);
}

/* A copy waits for the kernels before it: what of it is its own is between what it is longer than these and what the GPU is
 * idle. */
static void copies_that_wait(void **state)
{
	extern const struct rule pageable_copy_rule;
	static struct facts f;
	struct opinion own = { 0 }, waits = { 0 };

	(void)state;
	fact_set(&f, FACT_GPU_BUSY, 0.485);
	fact_set(&f, FACT_DOING_COPY_IN, 0.9);
	assert_int_equal(pageable_copy_rule.check(&f, &own), ANSWER_YES);
	/* 0.4 to 0.5 of the time: 0.65 of 0.45 */
	assert_true(fabs(own.finding.speedup - 1 / (1 - 0.65 * 0.45)) < 0.01);
	fact_set(&f, FACT_DOING_COPY_IN, 0.4);
	assert_int_equal(pageable_copy_rule.check(&f, &waits), ANSWER_YES);
	assert_true(fabs(waits.finding.speedup - 1 / (1 - 0.65 * 0.2)) < 0.01);
	assert_true(waits.finding.low == 1 && waits.finding.high > 1.5);
}

/* Workers that keep the training off its CPUs, and need a quarter of what they did: it is queued behind nobody. */
static void crowd_that_goes(void **state)
{
	static struct facts f;
	double all, likely, worst;

	(void)state;
	fact_set(&f, FACT_LOADER_WORKERS, 2);
	fact_set(&f, FACT_LOADER_BUSY, 0.6);
	fact_set(&f, FACT_LOADER_IDLE, 0);
	fact_set(&f, FACT_LOAD_CPU, 1.2);
	fact_set(&f, FACT_CORES_USED, 2);
	fact_set(&f, FACT_CORES_ALLOWED, 2);
	fact_set(&f, FACT_CORES_OTHERS, 0);
	fact_set(&f, FACT_TIME_RUNNING, 0.4);
	fact_set(&f, FACT_TIME_QUEUED, 0.4);
	fact_set(&f, FACT_TIME_DATA_WAIT, 0.1);
	fact_set(&f, FACT_GPU_BUSY, 0.2);
	likely = loading_stage_faster(&f, LOADING_LIKELY, 1, 4, 1);
	worst = loading_stage_faster(&f, LOADING_WORST, 1, 4, 1);
	/* its own half, less what full cores cost it: 0.5 - 0.15 * 0.4; the workers' cycle needs 0.4 */
	assert_true(fabs(likely - (1 - 0.6 * 0.75 / 1)) < 0.01);
	assert_true(worst > likely);
	fact_set(&f, FACT_LOADER_BUSY, 0.9);
	likely = loading_stage_faster(&f, LOADING_LIKELY, 1, 4, 1);
	assert_true(fabs(likely - 0.47) < 0.01);
	/* at best it needs fewer cores besides, and never less than the GPU has to do */
	all = loading_stage_faster(&f, LOADING_BEST, 1, INFINITY, 1);
	assert_true(all < likely && all >= 0.2);
	/* not queued: nothing of that */
	fact_set(&f, FACT_TIME_QUEUED, 0.02);
	assert_true(loading_stage_faster(&f, LOADING_LIKELY, 1, 4, 1) > 0.8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(barriers),
		cmocka_unit_test(whatever_the_facts),
		cmocka_unit_test(gpu_leaves),
		cmocka_unit_test(what_drifts),
		cmocka_unit_test(orders_while_queued),
		cmocka_unit_test(copies_that_wait),
		cmocka_unit_test(crowd_that_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
