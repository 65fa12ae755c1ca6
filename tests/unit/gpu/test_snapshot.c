/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "gpu/gpu.h"

#include <string.h>

/* Bytes a vendor library may have scribbled over: nothing of them may lead out of bounds. */
static void test_check_any_bytes(void **state)
{
	static struct gpu_snapshot s;

	(void)state;
	for (int fill = 0; fill < 256; fill++) {
		memset(&s, fill, sizeof(s));
		gpu_snapshot_check(&s);
		assert_in_range(s.n_devices, 0, GPU_DEVICES);
		assert_in_range(s.n_processes, 0, GPU_PROCESSES);
	}
	memset(&s, 'x', sizeof(s));
	s.n_devices = 2;
	s.n_processes = 3;
	s.process[0].device = 1;
	s.process[1].device = 2;
	s.process[2].device = -5;
	gpu_snapshot_check(&s);
	assert_int_equal(s.n_processes, 1);
	assert_int_equal(strlen(s.device[1].name), sizeof(s.device[1].name) - 1);
	assert_int_equal(s.device[1].state, GPU_FAILED);
	assert_int_equal(s.device[1].parent, -1);
}

static void test_full(void **state)
{
	static struct gpu_snapshot s;

	(void)state;
	memset(&s, 0, sizeof(s));
	for (int i = 0; i < GPU_DEVICES; i++)
		assert_non_null(gpu_add_device(&s, GPU_AMD));
	assert_null(gpu_add_device(&s, GPU_AMD));
	for (int i = 0; i < GPU_PROCESSES; i++)
		assert_non_null(gpu_add_process(&s, 0, i + 1));
	assert_null(gpu_add_process(&s, 0, 1));
	assert_null(gpu_add_process(&s, 0, 1));
	assert_int_equal(s.processes_left_out, 2);
	assert_int_equal(s.process[7].memory_kb, -1);
}

static void test_notes_are_numbered(void **state)
{
	static struct gpu_snapshot s;

	(void)state;
	memset(&s, 0, sizeof(s));
	for (int i = 1; i <= GPU_NOTES + 3; i++)
		gpu_note(&s, GPU_NOTE_XID, 0, i);
	assert_int_equal(s.note[(GPU_NOTES + 3) % GPU_NOTES].number, GPU_NOTES + 3);
	assert_int_equal(s.note[(GPU_NOTES + 3) % GPU_NOTES].code, GPU_NOTES + 3);
}

/* Cells are found by metric id: the GPU's rows must stand together. */
static void test_metrics_stand_together(void **state)
{
	(void)state;
	for (int m = 1; m < METRICS; m++)
		assert_int_equal(metrics[m].entity == ENTITY_GPU,
				 m >= GPU_METRIC_FIRST && m < GPU_METRIC_FIRST + GPU_METRICS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check_any_bytes),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_notes_are_numbered),
		cmocka_unit_test(test_metrics_stand_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
