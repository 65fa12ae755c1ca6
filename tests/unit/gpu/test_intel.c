/* SPDX-License-Identifier: MIT */
#include "fixture.h"

static void test_integrated(void **state)
{
	struct fixture f;
	const struct gpu_device *d;
	const struct gpu_process *p;

	(void)state;
	fixture_open(&f, &intel_backend, ROOTS "/gpu-intel-i915/t0");
	assert_int_equal(f.opened, 0);
	assert_int_equal(fixture_read(&f, GPU_ALL), 0);
	assert_int_equal(f.s->n_devices, 1);
	d = &f.s->device[0];
	assert_true(d->unified);
	assert_string_equal(d->name, "Intel GPU 0x46a6");
	assert_lacks(d, M_GPU_BUSY, GPU_NOT_SUPPORTED);
	assert_lacks(d, M_GPU_MEM_TOTAL, GPU_NOT_SUPPORTED);
	assert_lacks(d, M_GPU_POWER, GPU_NOT_SUPPORTED);
	assert_lacks(d, M_GPU_PCIE_GEN, GPU_NOT_SUPPORTED);
	assert_metric(d, M_GPU_CLOCK_SM, 0);
	assert_metric(d, M_GPU_CLOCK_SM_MAX, 1400);
	assert_metric(d, M_GPU_SLOW_POWER, 0);
	assert_metric(d, M_GPU_SLOW_SETTING, 0);
	p = fixture_process(f.s, 0, 333);
	assert_non_null(p);
	assert_int_equal(p->memory_kb, 131072);
	assert_int_equal(p->busy, -1);

	fixture_at(&f, ROOTS "/gpu-intel-i915/t1");
	assert_int_equal(fixture_read(&f, GPU_ALL), 0);
	assert_metric(d, M_GPU_CLOCK_SM, 1300);
	assert_metric(d, M_GPU_SLOW_POWER, 1);
	assert_metric(d, M_GPU_SLOW_HEAT_HW, 1);
	assert_metric(d, M_GPU_SLOW_HEAT, 0);
	assert_metric(d, M_GPU_SLOW_HW, 1);
	assert_metric(d, M_GPU_SLOW_SETTING, 1);
	p = fixture_process(f.s, 0, 333);
	assert_non_null(p);
	assert_int_equal(p->busy, 7500);
	assert_int_equal(p->time_ns, 1750000000);
	fixture_close(&f);
}

static void test_xe(void **state)
{
	struct fixture f;
	const struct gpu_device *d;
	const struct gpu_process *p;

	(void)state;
	fixture_open(&f, &intel_backend, ROOTS "/gpu-intel-xe/t0");
	assert_int_equal(fixture_read(&f, GPU_ALL), 0);
	d = &f.s->device[0];
	assert_false(d->unified);
	assert_metric(d, M_GPU_MEM_TOTAL, 12582912);
	assert_metric(d, M_GPU_ENERGY, 5000000);
	assert_lacks(d, M_GPU_POWER, GPU_NOT_ASKED);
	assert_metric(d, M_GPU_POWER_LIMIT, 190000);
	assert_metric(d, M_GPU_TEMPERATURE, 66);
	assert_metric(d, M_GPU_TEMP_MEM, 72);
	assert_lacks(d, M_GPU_FAN, GPU_NOT_SUPPORTED);
	assert_metric(d, M_GPU_PCIE_WIDTH, 8);

	fixture_at(&f, ROOTS "/gpu-intel-xe/t1");
	assert_int_equal(fixture_read(&f, GPU_ALL), 0);
	assert_metric(d, M_GPU_POWER, 150000);
	assert_metric(d, M_GPU_SLOW_HEAT, 1);
	assert_metric(d, M_GPU_SLOW_POWER, 0);
	assert_metric(d, M_GPU_CLOCK_SM, 2850);
	p = fixture_process(f.s, 0, 777);
	assert_non_null(p);
	assert_int_equal(p->memory_kb, 2097152);
	/* One of two engines all the time. */
	assert_int_equal(p->busy, 5000);
	assert_int_equal(p->time_ns, 500000000);
	fixture_close(&f);
}

static void test_mixed(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, &intel_backend, ROOTS "/gpu-mixed");
	assert_int_equal(fixture_read(&f, GPU_ALL), 0);
	assert_int_equal(f.s->n_devices, 2);
	assert_true(f.s->device[0].unified);
	assert_metric(&f.s->device[0], M_GPU_CLOCK_SM, 300);
	assert_metric(&f.s->device[0], M_GPU_CLOCK_SM_MAX, 1600);
	assert_metric(&f.s->device[1], M_GPU_MEM_TOTAL, 17070817280 / 1024);
	assert_metric(&f.s->device[1], M_GPU_MEM_FREE, 15625000);
	assert_metric(&f.s->device[1], M_GPU_MEM_USED, 17070817280 / 1024 - 15625000);
	assert_lacks(&f.s->device[1], M_GPU_POWER_LIMIT, GPU_NOT_SUPPORTED);
	assert_int_equal(f.s->n_processes, 0);
	/* The AMD GPUs after them in the same snapshot: rows go on counting. */
	fixture_close(&f);

	fixture_open(&f, &amd_backend, ROOTS "/gpu-mixed");
	memset(f.s, 0, sizeof(*f.s));
	assert_non_null(gpu_add_device(f.s, GPU_INTEL));
	assert_non_null(gpu_add_device(f.s, GPU_INTEL));
	assert_int_equal(f.b->read(&f.w, f.state, GPU_MIDDLE, f.s), 0);
	assert_int_equal(f.s->n_devices, 3);
	assert_int_equal(f.s->device[2].index, 0);
	assert_int_equal(f.s->n_processes, 1);
	assert_int_equal(f.s->process[0].device, 2);
	/* In a container ROCm's list is not ours to use. */
	assert_int_equal(f.s->process[0].memory_kb, 500);
	fixture_close(&f);
}

/* Whatever a file holds, a row comes of it and no figure that was not there. */
static void test_hostile_files(void **state)
{
	static const char uevent[] = "DRIVER=i915\nPCI_ID=8086:56A0\nPCI_SLOT_NAME=0000:03:00.0\n";
	static const char *const names[] = {
		"gt/gt0/rps_act_freq_mhz",
		"gt/gt0/rps_RP0_freq_mhz",
		"gt/gt0/throttle_reason_pl1",
		"device/hwmon/hwmon0/energy1_input",
		"device/hwmon/hwmon0/power1_max",
		"device/hwmon/hwmon0/temp1_input",
		"device/hwmon/hwmon0/temp1_label",
		"device/hwmon/hwmon0/fan1_input",
		"device/current_link_speed",
		"device/power/runtime_status",
		"lmem_total_bytes",
	};
	static const struct {
		const char *data;
		size_t n;
	} contents[] = { { "", 0 },
			 { "\n", 1 },
			 { "-1\n", 3 },
			 { "1\0002\n", 4 },
			 { "9223372036854775807999\n", 23 },
			 { "9223372036854775808\n", 20 },
			 { "0x10\n", 5 },
			 { "\xff\xfe\n", 3 },
			 { "NaN", 3 } };
	char dir[] = "/tmp/spotter-intel-XXXXXX", path[128];
	struct fixture f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	fixture_put(dir, "sys/class/drm/card0/device/uevent", uevent, strlen(uevent));
	for (size_t c = 0; c < sizeof(contents) / sizeof(contents[0]); c++) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			snprintf(path, sizeof(path), "sys/class/drm/card0/%s", names[i]);
			fixture_put(dir, path, contents[c].data, contents[c].n);
		}
		fixture_open(&f, &intel_backend, dir);
		assert_int_equal(f.opened, 0);
		assert_int_equal(fixture_read(&f, GPU_ALL), 0);
		assert_int_equal(f.s->n_devices, 1);
		assert_int_not_equal(gpu_metric(&f.s->device[0], M_GPU_CLOCK_SM)->have, GPU_KNOWN);
		assert_int_not_equal(gpu_metric(&f.s->device[0], M_GPU_ENERGY)->have, GPU_KNOWN);
		assert_int_not_equal(gpu_metric(&f.s->device[0], M_GPU_TEMPERATURE)->have,
				     GPU_KNOWN);
		assert_int_not_equal(gpu_metric(&f.s->device[0], M_GPU_SLOW_POWER)->have,
				     GPU_KNOWN);
		/* No /proc: how many processes there are is not known. */
		assert_lacks(&f.s->device[0], M_GPU_PROCESSES, GPU_NO_PERMISSION);
		fixture_close(&f);
	}
	fixture_remove(dir);
}

/* What we may not see is not counted as nothing. Root may see everything. */
static void test_unreadable_processes(void **state)
{
	static const char uevent[] = "DRIVER=i915\nPCI_ID=8086:56A0\nPCI_SLOT_NAME=0000:03:00.0\n";
	char dir[] = "/tmp/spotter-intel-XXXXXX", path[64];
	struct fixture f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	fixture_put(dir, "sys/class/drm/card0/device/uevent", uevent, strlen(uevent));
	fixture_put(dir, "proc/12/fd/0", "", 0);
	snprintf(path, sizeof(path), "%s/proc/12/fd", dir);
	assert_int_equal(chmod(path, 0), 0);
	fixture_open(&f, &intel_backend, dir);
	assert_int_equal(fixture_read(&f, GPU_MIDDLE), 0);
	if (geteuid() == 0)
		assert_metric(&f.s->device[0], M_GPU_PROCESSES, 0);
	else
		assert_lacks(&f.s->device[0], M_GPU_PROCESSES, GPU_NO_PERMISSION);
	fixture_close(&f);
	assert_int_equal(chmod(path, 0755), 0);
	fixture_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integrated),
		cmocka_unit_test(test_xe),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_hostile_files),
		cmocka_unit_test(test_unreadable_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
