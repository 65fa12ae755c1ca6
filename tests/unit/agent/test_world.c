/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "agent/world.h"

#include <math.h>

enum { GPU = 20, PROC = 21 };

static void life(struct frame *f, enum life_change change, uint32_t id, enum entity_kind kind)
{
	frame_life(f, &(struct life){ .change = change, .id = id, .kind = kind, .key = 1 }, "x",
		   NULL);
}

static void newest_value(void **state)
{
	struct world w = { 0 };
	struct frame f = { 0 };

	(void)state;
	frame_begin(&f, 1, 1);
	life(&f, LIFE_BORN, GPU, ENTITY_GPU);
	life(&f, LIFE_BORN, PROC, ENTITY_PROC);
	frame_put(&f, M_GPU_BUSY, GPU, 5000);
	frame_put(&f, M_GPU_POWER, GPU, 300000);
	frame_put(&f, M_PROC_RSS, PROC, 4);
	frame_put(&f, M_THREAD_CPU, 99, 4); /* nobody asks for those */
	assert_int_equal(world_frame(&w, &f), 0);
	assert_true(near(world_value(&w, M_GPU_BUSY, GPU), 0.5, 1e-9));
	assert_true(isnan(world_value(&w, M_THREAD_CPU, 99)));
	/* what is not told again holds; what is refused does not */
	frame_begin(&f, 2, 2);
	frame_put(&f, M_GPU_BUSY, GPU, 6000);
	frame_gap(&f, M_GPU_POWER, GPU, GAP_NO_PERMISSION);
	assert_int_equal(world_frame(&w, &f), 0);
	assert_true(near(world_value(&w, M_GPU_BUSY, GPU), 0.6, 1e-9));
	assert_true(isnan(world_value(&w, M_GPU_POWER, GPU)));
	assert_true(near(world_value(&w, M_PROC_RSS, PROC), 4096, 1e-9));
	/* a GPU whose readings are stale has none; one that is read again has them */
	frame_begin(&f, 3, 3);
	frame_gap(&f, M_GPU_AGE, GPU, GAP_STALE);
	life(&f, LIFE_GONE, PROC, ENTITY_PROC);
	assert_int_equal(world_frame(&w, &f), 0);
	assert_true(isnan(world_value(&w, M_GPU_BUSY, GPU)));
	assert_true(isnan(world_value(&w, M_PROC_RSS, PROC)));
	assert_null(entity_find(&w.entities, PROC));
	assert_non_null(entity_find(&w.entities, GPU));
	frame_begin(&f, 4, 4);
	frame_gap(&f, M_GPU_AGE, GPU, GAP_OVER);
	frame_put(&f, M_GPU_BUSY, GPU, 7000);
	assert_int_equal(world_frame(&w, &f), 0);
	assert_true(near(world_value(&w, M_GPU_BUSY, GPU), 0.7, 1e-9));
	frame_done(&f);
	world_done(&w);
}

/* Processes come and go for ever: memory does not. */
static void no_growth(void **state)
{
	struct world w = { 0 };
	struct frame f = { 0 };
	size_t after = 0;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		frame_begin(&f, i + 1, i + 1);
		life(&f, LIFE_BORN, 100 + i, ENTITY_PROC);
		frame_put(&f, M_PROC_RSS, 100 + i, 1);
		frame_put(&f, M_PROC_CPU_USER, 100 + i, 1);
		if (i)
			life(&f, LIFE_GONE, 99 + i, ENTITY_PROC);
		assert_int_equal(world_frame(&w, &f), 0);
		if (i == 10)
			after = w.raw.n;
	}
	assert_int_equal(w.raw.n, after);
	assert_int_equal(w.entities.rows.n, 1);
	frame_done(&f);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newest_value),
		cmocka_unit_test(no_growth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
