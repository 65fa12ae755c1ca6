/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include "gpu/amd_parse.h"
#include "gpu/drm.h"

#include <errno.h>

static void test_card(void **state)
{
	struct fixture f;
	const struct gpu_device *d;

	(void)state;
	fixture_open(&f, &amd_backend, ROOTS "/gpu-amd-rdna2/t0");
	assert_int_equal(f.opened, 0);
	assert_int_equal(fixture_read(&f, GPU_ALL), 0);
	assert_int_equal(f.s->n_devices, 2);
	d = &f.s->device[0];
	/* By address on the bus, though it is card1. */
	assert_string_equal(d->pci, "0000:03:00.0");
	assert_string_equal(d->name, "AMD GPU 0x73bf");
	assert_string_equal(d->uuid, "GPU-7c1a3e5d9b24f680");
	assert_string_equal(d->driver, "6.8.0-45-generic");
	assert_int_equal(d->index, 0);
	assert_false(d->unified);
	assert_metric(d, M_GPU_BUSY, 4000);
	assert_metric(d, M_GPU_MEM_BUSY, 1000);
	assert_metric(d, M_GPU_MEM_TOTAL, 17163091968 / 1024);
	assert_metric(d, M_GPU_MEM_USED, 2147483648 / 1024);
	assert_metric(d, M_GPU_MEM_FREE, (17163091968 - 2147483648) / 1024);
	assert_metric(d, M_GPU_MEM_SHARED_USED, 102400);
	assert_metric(d, M_GPU_POWER, 180000);
	assert_metric(d, M_GPU_POWER_LIMIT, 255000);
	assert_metric(d, M_GPU_CLOCK_SM, 2200);
	assert_metric(d, M_GPU_CLOCK_SM_MAX, 2575);
	assert_metric(d, M_GPU_CLOCK_MEM, 1000);
	assert_metric(d, M_GPU_CLOCK_MEM_MAX, 1000);
	assert_metric(d, M_GPU_TEMPERATURE, 61);
	assert_metric(d, M_GPU_TEMP_MEM, 70);
	assert_metric(d, M_GPU_TEMP_SLOWDOWN, 100);
	assert_metric(d, M_GPU_FAN, 4000);
	assert_metric(d, M_GPU_PCIE_GEN, 3);
	assert_metric(d, M_GPU_PCIE_WIDTH, 8);
	assert_metric(d, M_GPU_PCIE_REPLAYS, 3);
	assert_metric(d, M_GPU_SLOW_POWER, 0);
	assert_lacks(d, M_GPU_ENERGY, GPU_NOT_SUPPORTED);
	assert_lacks(d, M_GPU_SM_ACTIVE, GPU_NOT_SUPPORTED);
	assert_lacks(d, M_GPU_ECC_CORRECTED, GPU_NOT_SUPPORTED);
	assert_int_equal(d->property[GPU_P_PCI_DEVICE_ID].number, 0x73bf1002);
	assert_int_equal(d->property[GPU_P_PCI_SUBSYSTEM_ID].number, 0x0e3a1002);
	assert_int_equal(d->property[GPU_P_PCI_BUS].number, 3);
	assert_int_equal(d->property[GPU_P_PCI_BASE_CLASS].number, 3);
	assert_int_equal(d->property[GPU_P_PCIE_GEN_GPU_MAX].number, 4);
	assert_int_equal(d->property[GPU_P_MINOR].number, 1);
	assert_int_equal(d->property[GPU_P_TEMP_SHUTDOWN].number, 105);
	assert_string_equal(d->property[GPU_P_VBIOS].text, "113-D4120100-100");
	/* The APU: a table of format 2, no memory node. */
	d = &f.s->device[1];
	assert_true(d->unified);
	assert_metric(d, M_GPU_POWER, 38000);
	assert_int_equal(d->property[GPU_P_NUMA_NODE].have, GPU_NOT_SUPPORTED);
	fixture_close(&f);
}

static void test_processes(void **state)
{
	struct fixture f;
	const struct gpu_process *p;

	(void)state;
	fixture_open(&f, &amd_backend, ROOTS "/gpu-amd-rdna2/t0");
	assert_int_equal(fixture_read(&f, GPU_FAST), 0);
	assert_int_equal(f.s->n_processes, 0);
	assert_lacks(&f.s->device[0], M_GPU_PROCESSES, GPU_NOT_ASKED);
	assert_int_equal(fixture_read(&f, GPU_MIDDLE), 0);
	/* Two descriptors of one client, and a child that has it as well, are one. */
	assert_int_equal(f.s->n_processes, 4);
	assert_metric(&f.s->device[0], M_GPU_PROCESSES, 3);
	assert_metric(&f.s->device[1], M_GPU_PROCESSES, 1);
	p = fixture_process(f.s, 0, 4242);
	assert_non_null(p);
	assert_string_equal(p->name, "python3");
	assert_int_equal(p->time_ns, 5000000000);
	assert_int_equal(p->busy, -1);
	p = fixture_process(f.s, 0, 5151);
	assert_non_null(p);
	assert_int_equal(p->memory_kb, 524288);
	assert_int_equal(p->time_ns, -1);
	assert_null(fixture_process(f.s, 0, 5252));

	fixture_at(&f, ROOTS "/gpu-amd-rdna2/t1");
	assert_int_equal(fixture_read(&f, GPU_MIDDLE), 0);
	assert_metric(&f.s->device[0], M_GPU_SLOW_POWER, 1);
	assert_metric(&f.s->device[0], M_GPU_SLOW_HEAT, 1);
	assert_metric(&f.s->device[0], M_GPU_SLOW_HEAT_HW, 0);
	p = fixture_process(f.s, 0, 1700);
	assert_non_null(p);
	assert_true(p->graphics);
	assert_int_equal(p->busy, 2500);
	assert_int_equal(p->decoder, 2500);
	assert_int_equal(p->memory_kb, 300000);
	p = fixture_process(f.s, 0, 4242);
	assert_non_null(p);
	assert_int_equal(p->busy, 9000);
	/* ROCm says more than fdinfo. */
	assert_int_equal(p->memory_kb, 6291456);
	assert_false(p->graphics);
	assert_null(fixture_process(f.s, 0, 4243));
	fixture_close(&f);
}

static void test_mi300(void **state)
{
	struct fixture f;
	const struct gpu_device *d;

	(void)state;
	fixture_open(&f, &amd_backend, ROOTS "/gpu-amd-mi300");
	assert_int_equal(fixture_read(&f, GPU_ALL), 0);
	assert_int_equal(f.s->n_devices, 2);
	d = &f.s->device[1];
	assert_string_equal(d->name, "AMD Instinct MI300X OAM");
	assert_string_equal(d->mode, "CPX");
	assert_string_equal(d->driver, "6.10.5");
	assert_true(d->partitioned);
	assert_metric(d, M_GPU_ENERGY, 1000000);
	assert_metric(d, M_GPU_ECC_UNCORRECTED, 1);
	assert_metric(d, M_GPU_ECC_CORRECTED, 7);
	assert_metric(d, M_GPU_TEMPERATURE, 55);
	assert_metric(d, M_GPU_CLOCK_SM, 2100);
	assert_metric(d, M_GPU_PCIE_GEN, 5);
	assert_lacks(d, M_GPU_SLOW_POWER, GPU_NOT_SUPPORTED);
	assert_int_equal(d->property[GPU_P_PCI_DOMAIN].number, 1);
	assert_string_equal(d->property[GPU_P_SERIAL].text, "692432000123");
	assert_metric(d, M_GPU_PROCESSES, 0);
	fixture_close(&f);
}

static void test_asleep_is_left_asleep(void **state)
{
	struct fixture f;
	const struct gpu_device *d;

	(void)state;
	fixture_open(&f, &amd_backend, ROOTS "/gpu-amd-asleep");
	f.b->crawl(&f.w, f.state);
	assert_int_equal(fixture_read(&f, GPU_ALL), 0);
	d = &f.s->device[0];
	assert_string_equal(d->mode, "suspended");
	assert_metric(d, M_GPU_MEM_TOTAL, 8573157376 / 1024);
	assert_lacks(d, M_GPU_BUSY, GPU_NOT_ASKED);
	assert_lacks(d, M_GPU_POWER, GPU_NOT_ASKED);
	assert_lacks(d, M_GPU_TEMPERATURE, GPU_NOT_ASKED);
	assert_lacks(d, M_GPU_PCIE_GEN, GPU_NOT_ASKED);
	assert_lacks(d, M_GPU_PCIE_RX, GPU_NOT_ASKED);
	assert_int_equal(d->property[GPU_P_POWER_LIMIT_MAX].have, GPU_NOT_ASKED);
	fixture_close(&f);
}

static void test_old_and_hostile(void **state)
{
	struct fixture f;
	const struct gpu_device *d;
	const struct gpu_process *p;

	(void)state;
	fixture_open(&f, &amd_backend, ROOTS "/gpu-amd-old");
	f.b->crawl(&f.w, f.state);
	assert_int_equal(fixture_read(&f, GPU_ALL), 0);
	d = &f.s->device[0];
	assert_lacks(d, M_GPU_BUSY, GPU_FAILED);
	assert_lacks(d, M_GPU_MEM_BUSY, GPU_FAILED);
	assert_lacks(d, M_GPU_MEM_TOTAL, GPU_FAILED);
	assert_metric(d, M_GPU_MEM_USED, 4);
	assert_lacks(d, M_GPU_MEM_FREE, GPU_FAILED);
	assert_lacks(d, M_GPU_MEM_SHARED_USED, GPU_FAILED);
	assert_lacks(d, M_GPU_CLOCK_MEM, GPU_NOT_SUPPORTED);
	assert_metric(d, M_GPU_CLOCK_SM, 1630);
	assert_metric(d, M_GPU_TEMPERATURE, 48);
	assert_lacks(d, M_GPU_SLOW_POWER, GPU_NOT_SUPPORTED);
	assert_lacks(d, M_GPU_PCIE_RX, GPU_FAILED);
	assert_lacks(d, M_GPU_ECC_CORRECTED, GPU_FAILED);
	assert_string_equal(d->name, "AMD GPU 0x687f");
	assert_null(strchr(d->uuid, '\x1b'));
	assert_int_equal(f.s->n_processes, 1);
	p = fixture_process(f.s, 0, 900);
	assert_non_null(p);
	assert_int_equal(p->memory_kb, 204800);
	assert_int_equal(p->busy, 5550);
	assert_int_equal(p->time_ns, -1);
	fixture_close(&f);
}

static void test_traffic(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, &amd_backend, ROOTS "/gpu-amd-rdna2/t0");
	assert_int_equal(fixture_read(&f, GPU_MIDDLE), 0);
	assert_lacks(&f.s->device[0], M_GPU_PCIE_RX, GPU_NOT_ASKED);
	f.b->crawl(&f.w, f.state);
	assert_int_equal(fixture_read(&f, GPU_MIDDLE), 0);
	assert_metric(&f.s->device[0], M_GPU_PCIE_RX, 250000);
	assert_metric(&f.s->device[0], M_GPU_PCIE_TX, 125000);
	assert_lacks(&f.s->device[1], M_GPU_PCIE_RX, GPU_NOT_SUPPORTED);
	fixture_close(&f);
}

static void test_skipped(void **state)
{
	static const char *const skip[] = { "0000:03:00.0", NULL };
	struct fixture f;

	(void)state;
	fixture_open(&f, &amd_backend, ROOTS "/gpu-amd-rdna2/t0");
	f.w.skip = skip;
	assert_int_equal(fixture_read(&f, GPU_ALL), 0);
	assert_int_equal(f.s->n_devices, 2);
	assert_int_equal(f.s->device[0].state, GPU_HUNG);
	assert_lacks(&f.s->device[0], M_GPU_BUSY, GPU_NOT_ASKED);
	assert_lacks(&f.s->device[0], M_GPU_PROCESSES, GPU_HUNG);
	assert_int_equal(f.s->device[1].state, GPU_KNOWN);
	assert_null(fixture_process(f.s, 0, 1700));
	assert_non_null(fixture_process(f.s, 1, 1700));
	fixture_close(&f);
}

static void test_none(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, &amd_backend, ROOTS "/gpu-intel-xe/t0");
	assert_int_equal(f.opened, -ENOENT);
	fixture_close(&f);
	/* One that goes away makes the back-end start over. */
	fixture_open(&f, &amd_backend, ROOTS "/gpu-amd-mi300");
	fixture_at(&f, ROOTS "/gpu-intel-xe/t0");
	assert_int_equal(fixture_read(&f, GPU_FAST), -ENODEV);
	fixture_close(&f);
}

static void test_permission(void **state)
{
	(void)state;
	assert_int_equal(drm_have(-EACCES), GPU_NO_PERMISSION);
	assert_int_equal(drm_have(-EPERM), GPU_NO_PERMISSION);
	assert_int_equal(drm_have(-ENOENT), GPU_NOT_SUPPORTED);
	assert_int_equal(drm_have(-ENODEV), GPU_LOST);
	assert_int_equal(drm_have(-EIO), GPU_FAILED);
}

static void test_clock_levels(void **state)
{
	struct amd_clocks c;

	(void)state;
	assert_true(amd_clocks_parse("0: 500Mhz *", 11, &c));
	assert_int_equal(c.now, 500);
	assert_int_equal(c.max, 500);
	assert_true(amd_clocks_parse("S: 19Mhz *\n0: 500Mhz\n1: 800Mhz\n", 31, &c));
	assert_int_equal(c.now, 19);
	assert_int_equal(c.max, 800);
	assert_false(amd_clocks_parse("", 0, &c));
	assert_false(amd_clocks_parse("0: 99999999999Mhz *\n", 20, &c));
}

static void test_tables(void **state)
{
	uint8_t t[160] = { 120, 0, 1, 3 };
	struct amd_table r;

	(void)state;
	t[112] = 0x10;
	t[112 + 5] = 0x10; /* bit 44: VRHOT */
	assert_true(amd_table_parse(t, 120, &r));
	assert_int_equal(r.throttle, AMD_THROTTLE_POWER | AMD_THROTTLE_HOT_PIN);
	/* The header must fit what was read, to the byte. */
	assert_false(amd_table_parse(t, 119, &r));
	assert_false(amd_table_parse(t, 121, &r));
	assert_false(amd_table_parse(t, 3, &r));
	/* Older: bits that mean something else on each GPU. */
	t[3] = 2;
	assert_true(amd_table_parse(t, 120, &r));
	assert_int_equal(r.throttle, -1);
	/* A newer revision that is too short for what it claims. */
	t[0] = 20;
	t[3] = 3;
	assert_true(amd_table_parse(t, 20, &r));
	assert_int_equal(r.throttle, -1);
	memset(t + 112, 0xff, 8);
	t[0] = 120;
	assert_true(amd_table_parse(t, 120, &r));
	assert_int_equal(r.throttle, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_card),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_mi300),
		cmocka_unit_test(test_asleep_is_left_asleep),
		cmocka_unit_test(test_old_and_hostile),
		cmocka_unit_test(test_traffic),
		cmocka_unit_test(test_skipped),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_permission),
		cmocka_unit_test(test_clock_levels),
		cmocka_unit_test(test_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
