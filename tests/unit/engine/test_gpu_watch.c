/* SPDX-License-Identifier: MIT
 *
 * GPUs of fixture machines in frames: entities, figures, gaps. What a driver does to the recorder
 * is tested end to end (tests/e2e/test_gpu.py).
 */
#include "../unit.h"

#include "base/err.h"
#include "engine/sampler.h"
#include "model/entity.h"
#include "model/gpu_tag.h"

#include <string.h>

struct rig {
	struct host host;
	struct sampler *sampler;
	struct frame f;
	struct entity_table all;
};

static void rig_open(struct rig *r, const char *root, pid_t job)
{
	static const char *const only[] = { "gpu", "proc", NULL };
	struct sampler_options o = { .only = only, .job = { .root = job } };
	struct err e = { 0 };
	char path[512];

	*r = (struct rig){ 0 };
	snprintf(path, sizeof(path), "%s/%s", ROOTS, root);
	assert_int_equal(host_open(&r->host, path, &e), 0);
	assert_int_equal(sampler_open(&r->host, &o, &r->sampler, &e), 0);
}

static void rig_tick(struct rig *r)
{
	sampler_tick(r->sampler, &r->f);
	assert_int_equal(entity_table_frame(&r->all, &r->f), 0);
}

static void rig_close(struct rig *r)
{
	sampler_close(r->sampler);
	host_close(&r->host);
	frame_done(&r->f);
	entity_table_done(&r->all);
}

static const struct entity *gpu_of(const struct rig *r, int64_t key)
{
	for (size_t i = 0; i < r->all.rows.n; i++)
		if (r->all.rows.v[i].kind == ENTITY_GPU && r->all.rows.v[i].key == key)
			return &r->all.rows.v[i];
	return NULL;
}

static const struct sample *sample_of(const struct rig *r, enum metric_id m, uint32_t id)
{
	for (size_t i = 0; i < r->f.samples.n; i++)
		if (r->f.samples.v[i].metric == m && r->f.samples.v[i].entity == id)
			return &r->f.samples.v[i];
	return NULL;
}

static size_t gaps_of(const struct rig *r, enum metric_id m, uint32_t id)
{
	size_t n = 0;

	for (size_t i = 0; i < r->f.gaps.n; i++)
		n += r->f.gaps.v[i].metric == m && r->f.gaps.v[i].entity == id;
	return n;
}

/* GPUs of several vendors have numbers of their own. */
static void test_numbers_over_vendors(void **state)
{
	struct gpu_tag tag;
	struct rig r;

	(void)state;
	rig_open(&r, "gpu-mixed", 0);
	rig_tick(&r);
	for (int i = 0; i < 3; i++) {
		assert_non_null(gpu_of(&r, i));
		gpu_tag_read(gpu_of(&r, i)->detail, &tag);
		assert_string_equal(tag.vendor, i == 0 ? "amd" : "intel");
		assert_false(tag.simulated);
	}
	assert_null(gpu_of(&r, 3));
	rig_close(&r);
}

/* What a GPU cannot say is a gap, told once; what it says is a sample each time. */
static void test_figures_and_gaps(void **state)
{
	const struct entity *gpu;
	struct rig r;

	(void)state;
	rig_open(&r, "gpu-amd-rdna2", 0);
	rig_tick(&r);
	gpu = gpu_of(&r, 0);
	assert_non_null(gpu);
	assert_non_null(sample_of(&r, M_GPU_BUSY, gpu->id));
	assert_non_null(sample_of(&r, M_GPU_MEM_TOTAL, gpu->id));
	assert_null(sample_of(&r, M_GPU_ENERGY, gpu->id));
	assert_int_equal(gaps_of(&r, M_GPU_ENERGY, gpu->id), 1);
	assert_true(host_advance(&r.host));
	rig_tick(&r);
	gpu = gpu_of(&r, 0);
	assert_non_null(sample_of(&r, M_GPU_BUSY, gpu->id));
	assert_int_equal(gaps_of(&r, M_GPU_ENERGY, gpu->id), 0);
	rig_close(&r);
}

/* A machine without one has neither entities nor gaps of GPUs. */
static void test_none(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "host-plain", 0);
	rig_tick(&r);
	for (size_t i = 0; i < r.all.rows.n; i++)
		assert_true(r.all.rows.v[i].kind != ENTITY_GPU &&
			    r.all.rows.v[i].kind != ENTITY_GPU_PROC);
	for (size_t i = 0; i < r.f.gaps.n; i++)
		assert_true(metrics[r.f.gaps.v[i].metric].entity != ENTITY_GPU);
	rig_close(&r);
}

/* Every process on a GPU stands under it, with the pid it has there. */
static void test_processes(void **state)
{
	struct rig r;
	size_t n = 0;

	(void)state;
	rig_open(&r, "gpu-amd-rdna2", 0);
	rig_tick(&r);
	for (size_t i = 0; i < r.all.rows.n; i++) {
		const struct entity *e = &r.all.rows.v[i], *up;

		if (e->kind != ENTITY_GPU_PROC)
			continue;
		up = entity_find(&r.all, e->parent);
		assert_non_null(up);
		assert_int_equal(up->kind, ENTITY_GPU);
		n++;
	}
	assert_true(n > 0);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_over_vendors),
		cmocka_unit_test(test_figures_and_gaps),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
