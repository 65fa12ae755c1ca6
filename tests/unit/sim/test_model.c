/* SPDX-License-Identifier: MIT
 *
 * The model's arithmetic, on a state in ordinary memory and with a clock of the test's own.
 */
#include "../unit.h"

#include "base/err.h"
#include "layout.h"

#include <errno.h>
#include <math.h>

#define MS 1000000ll
#define S  1000000000ll

static struct shared *make(const char *text)
{
	struct shared *s;
	struct err e = { 0 };

	s = calloc(1, sizeof(*s) + 2 * sizeof(s->device[0]));
	assert_non_null(s);
	if (scenario_parse(text, strlen(text), &s->scenario, &e))
		fail_msg("%s", e.text);
	model_begin(s);
	s->client[0].used = s->client[1].used = true;
	for (int i = 0; i < 2; i++)
		s->client[i].device[0].partition = -1;
	return s;
}

static struct vgpu_ref put(struct shared *s, int client, int engine, int64_t work, float sm,
			   struct vgpu_ref after)
{
	struct op op = { .client = (int16_t)client,
			 .engine = (int16_t)engine,
			 .work = (double)work,
			 .load = { sm, 0, 0 },
			 .bytes = engine < ENGINE_COMPUTE ? 1000 : 0 };
	struct vgpu_ref ref = { 0 };

	assert_int_equal(queue_put(s, 0, &op, after, &ref), 0);
	return ref;
}

static struct vgpu_ref kernel(struct shared *s, int client, int64_t work, float sm)
{
	return put(s, client, ENGINE_COMPUTE, work, sm, (struct vgpu_ref){ 0 });
}

static void test_busy_share(void **state)
{
	struct shared *s = make("gpu \"H100\"\n");
	struct device_state *d = &s->device[0];

	(void)state;
	for (int i = 0; i < 100; i++) {
		model_advance(s, 0, i * 60 * MS);
		kernel(s, 0, 30 * MS, 0.8f);
	}
	model_advance(s, 0, 6 * S);
	assert_true(near(d->sum.busy, 3.0, 1e-9));
	assert_true(near(d->sum.sm, 3.0 * 0.8, 1e-6));
	assert_true(near(s->client[0].device[0].busy, 3.0, 1e-9));
	assert_int_equal(s->client[0].device[0].pending, 0);
	/* A tick is where it says it is. */
	assert_int_equal(d->last_tick, 6 * VGPU_TICK_HZ);
	free(s);
}

/* However often somebody looks, the sums are the same. */
static void test_looking_changes_nothing(void **state)
{
	const char *text =
	    "gpu \"H100\"\n  load 0.3 from 1s for 500ms\n  slow power clock 990 from 700ms\n";
	struct shared *often = make(text), *once = make(text);

	(void)state;
	for (int i = 0; i < 50; i++) {
		kernel(often, 0, 17 * MS, 0.5f);
		kernel(once, 0, 17 * MS, 0.5f);
	}
	for (int64_t t = 0; t <= 3 * S; t += 777777)
		model_advance(often, 0, t);
	model_advance(often, 0, 3 * S);
	model_advance(once, 0, 3 * S);
	assert_true(near(often->device[0].sum.busy, once->device[0].sum.busy, 1e-9));
	assert_true(near(often->device[0].sum.energy, once->device[0].sum.energy, 1e-9));
	assert_true(near(often->device[0].temperature, once->device[0].temperature, 1e-9));
	assert_true(near(often->device[0].held_power, once->device[0].held_power, 1e-9));
	free(often);
	free(once);
}

static void test_energy_is_the_integral_of_power(void **state)
{
	struct shared *s = make("gpu \"H100\"\n");
	struct device_state *d = &s->device[0];
	double joules = 0, before = d->watts;

	(void)state;
	kernel(s, 0, 800 * MS, 1);
	for (int64_t t = MS; t <= 2 * S; t += MS) {
		model_advance(s, 0, t);
		joules += (before + d->watts) / 2 * 1e-3;
		before = d->watts;
	}
	assert_true(near(d->sum.energy, joules, 1e-4));
	assert_true(d->sum.energy > 70 * 2); /* more than idling */
	free(s);
}

static void test_power_goes_up_to_the_limit(void **state)
{
	struct shared *s = make("gpu \"H100\"\n  power idle 70 max 700 limit 300\n");

	(void)state;
	kernel(s, 0, 5 * S, 1);
	model_advance(s, 0, 4 * S);
	assert_true(near(s->device[0].watts, 300, 1e-6));
	model_advance(s, 0, 20 * S);
	assert_true(near(s->device[0].watts, 70, 1e-6));
	free(s);
}

static void test_slow_clock_makes_kernels_longer(void **state)
{
	struct shared *s =
	    make("gpu \"X\"\n  clocks sm 1000\n  slow thermal clock 500 from 1s for 1s\n");
	struct device_state *d = &s->device[0];

	(void)state;
	/* Half a second at full clock, then a second at half of it does another half. */
	model_advance(s, 0, 500 * MS);
	assert_int_equal(queue_end(s, kernel(s, 0, 1 * S, 1)), 2 * S);
	model_advance(s, 0, 5 * S);
	assert_true(near(d->sum.busy, 1.5, 1e-9));
	assert_true(near(d->held_heat, 1e9, 1e-9));
	assert_true(d->held_power == 0);
	free(s);
}

static void test_heat_by_who_holds_back(void **state)
{
	struct shared *s = make("gpu \"X\"\n  load 1\n  slow thermal clock 500 from 1s for 2s\n"
				"  slow hw_thermal clock 500 from 2s for 3s\n");
	struct device_state *d = &s->device[0];

	(void)state;
	model_advance(s, 0, 10 * S);
	assert_true(near(d->held_heat_sw, 2e9, 1e-9));
	assert_true(near(d->held_heat_hw, 3e9, 1e-9));
	assert_true(near(d->held_heat, 4e9, 1e-9)); /* the second that both did counts once */
	free(s);
}

static void test_copies_between_devices(void **state)
{
	struct shared *s = make("gpu \"X\" x 2\n  nvlinks 4\n");
	struct op op = { .engine = ENGINE_OUT, .work = 100 * MS, .bytes = 4096, .peer = 2 };
	struct vgpu_ref ref = { 0 };

	(void)state;
	assert_int_equal(queue_put(s, 0, &op, ref, &ref), 0);
	model_advance(s, 0, 50 * MS);
	assert_true(near(s->device[0].sum.link_tx, 2048, 1e-6));
	assert_true(near(s->device[1].sum.link_rx, 2048, 1e-6));
	model_advance(s, 0, 1 * S);
	assert_true(near(s->device[0].sum.link_tx, 4096, 1e-6));
	assert_true(near(s->device[1].sum.link_rx, 4096, 1e-6));
	assert_true(s->device[0].sum.tx == 0 && s->device[1].sum.rx == 0);
	free(s);
}

static void test_sharing_with_somebody(void **state)
{
	struct shared *s = make("gpu \"X\"\n  process 4711 a busy 0.4\n");

	(void)state;
	assert_int_equal(queue_end(s, kernel(s, 0, 600 * MS, 1)), 1 * S);
	model_advance(s, 0, 2 * S);
	assert_true(near(s->device[0].sum.busy, 1.4, 1e-9));
	assert_true(near(s->client[0].device[0].busy, 0.6, 1e-9));
	free(s);
}

static void test_order(void **state)
{
	struct shared *s = make("gpu \"X\"\n");
	struct vgpu_ref copy, after, other;

	(void)state;
	copy = put(s, 0, ENGINE_IN, 10 * MS, 0, (struct vgpu_ref){ 0 });
	after = put(s, 0, ENGINE_COMPUTE, 5 * MS, 1, copy);
	other = kernel(s, 1, 5 * MS, 1); /* of another process: behind it all the same */
	assert_int_equal(queue_end(s, copy), 10 * MS);
	assert_int_equal(queue_end(s, after), 15 * MS);
	assert_int_equal(queue_end(s, other), 20 * MS);
	model_advance(s, 0, 15 * MS);
	assert_int_equal(queue_end(s, after), 0);
	model_advance(s, 0, 20 * MS);
	assert_true(near(s->device[0].sum.rx, 1000, 1e-9));
	assert_true(near(s->device[0].sum.busy, 0.010, 1e-9));
	free(s);
}

static void test_queue_fills(void **state)
{
	struct shared *s = make("gpu \"X\"\n");
	struct op op = { .engine = ENGINE_COMPUTE, .work = MS };
	struct vgpu_ref ref, none = { 0 };

	(void)state;
	for (int i = 0; i < VGPU_QUEUE; i++)
		assert_int_equal(queue_put(s, 0, &op, none, &ref), 0);
	assert_int_equal(queue_put(s, 0, &op, none, &ref), -EAGAIN);
	op.client = 1; /* has its own */
	assert_int_equal(queue_put(s, 0, &op, none, &ref), 0);
	op.client = 0;
	model_advance(s, 0, 1 * MS);
	assert_int_equal(queue_put(s, 0, &op, none, &ref), 0);
	free(s);
}

static void test_death(void **state)
{
	struct shared *s = make("gpu \"X\"\n");
	struct vgpu_ref mine;

	(void)state;
	s->client[0].device[0].memory = 5000;
	s->client[1].device[0].memory = 7000;
	for (int i = 0; i < 10; i++)
		kernel(s, 0, 100 * MS, 1);
	mine = kernel(s, 1, 100 * MS, 1);
	for (int i = 0; i < 10; i++)
		kernel(s, 0, 100 * MS, 1);
	assert_int_equal(client_memory(s, 0, -1), 12000);
	model_advance(s, 0, 250 * MS);
	client_drop(s, 0);
	assert_int_equal(client_memory(s, 0, -1), 7000);
	assert_int_equal(queue_end(s, mine), 350 * MS);
	model_advance(s, 0, 1 * S);
	assert_true(near(s->device[0].sum.busy, 0.35, 1e-9));
	assert_true(near(s->client[1].device[0].busy, 0.1, 1e-9));
	free(s);
}

/* A holder of the lock was killed somewhere in between: whatever the links say, the ops count. */
static void test_repair(void **state)
{
	struct shared *s = make("gpu \"X\"\n");
	struct device_state *d = &s->device[0];
	struct vgpu_ref ref[20];
	int free_slots = 0;

	(void)state;
	for (int i = 0; i < 20; i++)
		ref[i] = put(s, i % 2, i % 3, 10 * MS, 1, (struct vgpu_ref){ 0 });
	d->head[ENGINE_IN] = 7;
	d->tail[ENGINE_COMPUTE] = -1;
	d->op[ref[4].slot].next = 3;
	d->free = 0;
	s->client[0].device[0].pending = 99;
	queue_repair(s, 0);
	assert_int_equal(s->client[0].device[0].pending, 10);
	for (int i = d->free; i >= 0; i = d->op[i].next)
		free_slots++;
	assert_int_equal(free_slots, VGPU_OPS - 20);
	for (int e = 0; e < 3; e++) {
		uint64_t last = 0;

		for (int i = d->head[e]; i >= 0; i = d->op[i].next) {
			assert_true(d->op[i].id > last);
			last = d->op[i].id;
		}
	}
	model_advance(s, 0, 1 * S);
	assert_int_equal(s->client[0].device[0].pending, 0);
	free(s);
}

static void test_long_gap(void **state)
{
	struct shared *s = make("gpu \"X\"\n  load 0.25\n");

	(void)state;
	model_advance(s, 0, 30 * 86400 * S);
	assert_true(near(s->device[0].sum.busy, 30 * 86400 * 0.25, 1e-9));
	assert_int_equal(s->device[0].last_tick, 30ll * 86400 * VGPU_TICK_HZ);
	free(s);
}

static void test_mig_runs_side_by_side(void **state)
{
	struct shared *s = make("gpu \"A100\"\n  mig 4g.40gb 3g.40gb\n");
	struct vgpu_ref none = { 0 }, a, b;

	(void)state;
	a = put(s, 0, ENGINE_COMPUTE, 100 * MS, 1, none);
	b = put(s, 1, ENGINE_COMPUTE + 1, 100 * MS, 1, none);
	assert_int_equal(queue_end(s, a), 100 * MS);
	assert_int_equal(queue_end(s, b), 100 * MS);
	model_advance(s, 0, 1 * S);
	assert_true(near(s->device[0].sum.busy, 0.1, 1e-9));
	assert_true(near(s->device[0].sum.sm, 0.1, 1e-6));
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_busy_share),
		cmocka_unit_test(test_looking_changes_nothing),
		cmocka_unit_test(test_energy_is_the_integral_of_power),
		cmocka_unit_test(test_power_goes_up_to_the_limit),
		cmocka_unit_test(test_slow_clock_makes_kernels_longer),
		cmocka_unit_test(test_heat_by_who_holds_back),
		cmocka_unit_test(test_copies_between_devices),
		cmocka_unit_test(test_sharing_with_somebody),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_queue_fills),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_repair),
		cmocka_unit_test(test_long_gap),
		cmocka_unit_test(test_mig_runs_side_by_side),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
