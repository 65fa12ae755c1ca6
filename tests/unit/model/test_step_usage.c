/* SPDX-License-Identifier: MIT
 *
 * What one step used: between samples, of a tree of processes, of its own GPUs; and when nobody can say.
 */
#include "../unit.h"

#include "model/history.h"
#include "model/step_usage.h"

#include <math.h>

#define START 1000000000000ll
#define S     1000000000ll
#define AT(s) (START + (int64_t)((s)*1e9))

enum { RANK0 = 20, RANK1 = 21, WORKER = 22, GPU0 = 50, GPU1 = 51, ON_GPU1 = 60 };

static void is_near(double a, double b, double most)
{
	if (!(fabs(a - b) <= most))
		fail_msg("%.9g is not %.9g", a, b);
}

static void born(struct frame *f, uint32_t id, uint32_t parent, enum entity_kind kind, int64_t key)
{
	frame_life(f,
		   &(struct life){
		       .change = LIFE_BORN, .id = id, .parent = parent, .kind = kind, .key = key },
		   "x", "");
}

static void announce(struct frame *f)
{
	born(f, ID_HOST, 0, ENTITY_HOST, 0);
	born(f, ID_JOB, ID_HOST, ENTITY_JOB, 0);
	born(f, ID_SELF, ID_HOST, ENTITY_SELF, 0);
	born(f, RANK0, ID_JOB, ENTITY_PROC, 100);
	born(f, RANK1, ID_JOB, ENTITY_PROC, 101);
	born(f, WORKER, RANK1, ENTITY_PROC, 102);
	born(f, GPU0, ID_HOST, ENTITY_GPU, 0);
	born(f, GPU1, ID_HOST, ENTITY_GPU, 1);
	born(f, ON_GPU1, GPU1, ENTITY_GPU_PROC, 101);
}

/* 10 s at 10 Hz: the job on one core, from 5 s on on three. Rank 1 on half a core, its worker on a
 * quarter until 3 s, and then it sleeps: nothing is written. From 7 to 8 s no tick was kept. */
static struct history *play(void)
{
	struct run_info run = { .started_mono_ns = START, .hz = 10, .state = RUN_GOING };
	struct history *h = history_new(&run, 200);
	struct frame f = { 0 };

	assert_non_null(h);
	for (int i = 0; i <= 100; i++) {
		double t = i / 10.0;

		if (i > 70 && i < 80)
			continue;
		frame_begin(&f, AT(t), AT(t));
		if (!i)
			announce(&f);
		/* as the recorder does: itself once a second, the machine every tick */
		if (i % 10 == 0)
			frame_put(&f, M_SELF_TICKS, ID_SELF, i + 1);
		frame_put(&f, M_HOST_SWITCHES, ID_HOST, 1000 + 7 * i);
		frame_put(&f, M_JOB_CPU, ID_JOB, llround((t + fmax(0, t - 5) * 2) * 1e9));
		frame_put(&f, M_JOB_RSS, ID_JOB, 1000);
		frame_put(&f, M_PROC_CPU, RANK0, llround(t * 1e9));
		frame_put(&f, M_PROC_CPU, RANK1, llround(t / 2 * 1e9));
		if (t <= 3)
			frame_put(&f, M_PROC_CPU, WORKER, llround(t / 4 * 1e9));
		frame_put(&f, M_PROC_RSS, RANK1, 500);
		frame_put(&f, M_GPU_BUSY, GPU0, 9000);
		frame_put(&f, M_GPU_BUSY, GPU1, 2000);
		frame_put(&f, M_GPU_POWER, GPU1, 70000);
		assert_int_equal(history_frame(h, &f), 0);
	}
	frame_done(&f);
	return h;
}

static bool use(int32_t rank, uint32_t entity, double from, double to, struct step_usage *u)
{
	struct history *h = play();
	struct window w = history_window(h, 0);
	struct window_step s = {
		.rank = rank, .entity = entity, .begin_ns = AT(from), .end_ns = AT(to)
	};
	bool known = step_usage(&w, &s, u);

	history_free(h);
	return known;
}

static void between_samples(void **state)
{
	struct step_usage u;

	(void)state;
	assert_true(use(-1, RANK0, 2.03, 2.37, &u));
	is_near(u.cores, 1, 1e-6);
	is_near(u.memory, 1024000, 1);
	assert_true(use(-1, RANK0, 4.77, 5.27, &u));
	is_near(u.cores, (0.23 + 0.27 * 3) / 0.5, 1e-6);
	assert_true(use(-1, RANK0, 5.5, 9.9, &u));
	is_near(u.cores, 3, 1e-6);
}

static void too_short(void **state)
{
	struct step_usage u;

	(void)state;
	assert_false(use(-1, RANK0, 2.0, 2.19, &u));
	assert_true(isnan(u.cores) && isnan(u.memory) && isnan(u.gpu_busy));
	/* long enough for the usual rate, but what was taken then is no longer there */
	assert_false(use(-1, RANK0, 7.2, 7.7, &u));
	assert_false(use(-1, RANK0, 7.95, 8.15, &u));
	/* the first one behind: what came before it is not its own */
	assert_false(use(-1, RANK0, 7.9, 8.2, &u));
	/* times that make no sense */
	assert_false(use(-1, RANK0, 5, 4, &u));
	assert_false(use(-1, RANK0, 5, 20, &u));
	assert_false(use(-1, RANK0, -2000, 4, &u));
}

/* A rank is its process and what it started, asleep or not; not the other rank. */
static void of_a_rank(void **state)
{
	struct step_usage u;

	(void)state;
	assert_true(use(1, RANK1, 1.05, 2.05, &u));
	is_near(u.cores, 0.75, 1e-6);
	assert_true(use(1, RANK1, 4, 6, &u));
	is_near(u.cores, 0.5, 1e-6);
	is_near(u.memory, 512000, 1);
	assert_true(use(0, RANK0, 4, 6, &u));
	is_near(u.cores, 1, 1e-6);
}

static void of_its_gpus(void **state)
{
	struct step_usage u;

	(void)state;
	assert_true(use(1, RANK1, 1, 2, &u));
	assert_int_equal(u.gpus, 1);
	is_near(u.gpu_busy, 0.2, 1e-9);
	is_near(u.gpu_power, 70, 1e-9);
	assert_true(isnan(u.gpu_memory));
	assert_true(use(0, RANK0, 1, 2, &u));
	assert_int_equal(u.gpus, 0);
	assert_true(isnan(u.gpu_busy));
}

static void phases(void **state)
{
	(void)state;
	assert_true(phase_is_aside("evaluate") && phase_is_aside("Validation") &&
		    phase_is_aside("checkpoint"));
	assert_false(phase_is_aside("train") || phase_is_aside("epoch") || phase_is_aside("") ||
		     phase_is_aside(NULL) || phase_is_aside("evaluate\033"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(between_samples), cmocka_unit_test(too_short),
		cmocka_unit_test(of_a_rank),       cmocka_unit_test(of_its_gpus),
		cmocka_unit_test(phases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
