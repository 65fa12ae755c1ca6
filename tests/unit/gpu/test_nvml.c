/* SPDX-License-Identifier: MIT
 *
 * The NVIDIA back-end on the virtual driver (sim/): what the scenario says is what the snapshot says.
 * This binary is the helper as well.
 */
#include "../unit.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "gpu/client.h"
#include "gpu/nvml.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vgpu.h>

#define NS(s) ((int64_t)((s)*NS_PER_S))

struct machine {
	char scenario[64];
	struct gpu_client *c;
};

static void machine_open(struct machine *m, const char *text, enum gpu_depth depth)
{
	struct gpu_client_options o = { .depth = depth,
					.period_ns = NS(0.05),
					.nvml = VIRTUAL_NVML };
	struct err e = { 0 };
	char name[64];
	int fd;

	snprintf(m->scenario, sizeof(m->scenario), "/tmp/spotter-test-XXXXXX");
	fd = mkstemp(m->scenario);
	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
	close(fd);
	snprintf(name, sizeof(name), "test-nvml-%d", (int)getpid());
	setenv("VGPU_STATE", name, 1);
	setenv("VGPU_SCENARIO", m->scenario, 1);
	vgpu_remove();
	assert_int_equal(gpu_client_open(&o, &m->c, &e), 0);
}

static void machine_close(struct machine *m)
{
	int status;

	gpu_client_close(m->c);
	vgpu_remove();
	unlink(m->scenario);
	assert_int_equal(waitpid(-1, &status, WNOHANG | __WALL), -1);
}

static const struct gpu_snapshot *look(struct machine *m)
{
	assert_int_equal(gpu_client_wait(m->c, NS(10)), 0);
	return gpu_client_last(m->c);
}

static void pass(double s)
{
	struct timespec t = { (time_t)s, (long)((s - (int)s) * 1e9) };

	(void)nanosleep(&t, NULL);
}

static int64_t known(const struct gpu_device *d, enum metric_id m)
{
	if (gpu_metric(d, m)->have != GPU_KNOWN)
		fail_msg("%s is not there: %d", metrics[m].name, gpu_metric(d, m)->have);
	return gpu_metric(d, m)->raw;
}

static int64_t property(const struct gpu_device *d, enum gpu_property_id p)
{
	if (d->property[p].have != GPU_KNOWN)
		fail_msg("%s is not there: %d", gpu_properties[p].name, d->property[p].have);
	return d->property[p].number;
}

static void test_plain(void **state)
{
	const struct gpu_device *d;
	struct machine m;

	(void)state;
	machine_open(&m,
		     "driver 590.48.01\n"
		     "cuda 13.1\n"
		     "gpu \"NVIDIA H100 80GB HBM3\"\n"
		     "  memory 80G\n"
		     "  pci 0000:83:00.0\n"
		     "  power idle 60 max 700 limit 500\n"
		     "  compute_mode exclusive_process\n"
		     "  load 0.6\n"
		     "  process 4711 \"python\" memory 3G busy 0.4\n"
		     "  process 4712 \"Xorg\" memory 256M graphics\n",
		     GPU_ALL);
	(void)look(&m);
	pass(1.2);
	d = &look(&m)->device[0];
	assert_int_equal(gpu_client_last(m.c)->n_devices, 1);
	assert_string_equal(d->name, "NVIDIA H100 80GB HBM3");
	assert_string_equal(d->pci, "00000000:83:00.0");
	assert_string_equal(d->driver, "590.48.01");
	assert_string_equal(d->runtime, "CUDA 13.1");
	assert_string_equal(d->mode, "Exclusive_Process");
	assert_true(d->simulated);
	assert_int_equal(known(d, M_GPU_MEM_TOTAL), 80ll << 20);
	assert_int_equal(known(d, M_GPU_MEM_USED) + known(d, M_GPU_MEM_FREE) +
			     known(d, M_GPU_MEM_RESERVED),
			 80ll << 20);
	assert_true(known(d, M_GPU_MEM_USED) >= (3 << 20) + (256 << 10));
	/* The load of nobody and the process' share together, or the larger of them: 60..100 %. */
	assert_in_range(known(d, M_GPU_BUSY), 5900, 10000);
	assert_true(known(d, M_GPU_SM_ACTIVE) > 0);
	assert_int_equal(known(d, M_GPU_POWER_LIMIT), 500000);
	assert_true(known(d, M_GPU_POWER) > 60000);
	assert_true(known(d, M_GPU_ENERGY) > 60000);
	assert_int_equal(known(d, M_GPU_SLOW_HEAT), 0);
	assert_int_equal(known(d, M_GPU_PROCESSES), 2);
	assert_int_equal(gpu_metric(d, M_GPU_FAN)->have, GPU_NOT_SUPPORTED);
	assert_int_equal(property(d, GPU_P_COUNT), 1);
	assert_int_equal(property(d, GPU_P_CUDA), 13010);
	assert_int_equal(property(d, GPU_P_PCI_BUS), 0x83);
	assert_int_equal(property(d, GPU_P_COMPUTE_MODE), 3);
	assert_int_equal(property(d, GPU_P_COMPUTE_CAP), 9 << 8);
	assert_true(property(d, GPU_P_PCIE_GEN_MAX) >= 4);
	assert_int_equal(property(d, GPU_P_PCIE_WIDTH_MAX), 16);
	assert_int_equal(property(d, GPU_P_REMAPPED_BANKS_MAX), 640);
	assert_int_equal(d->property[GPU_P_DISPLAY_MODE].have, GPU_DEPRECATED);
	assert_int_equal(property(d, GPU_P_DISPLAY_ACTIVE), 0);
	assert_string_equal(d->property[GPU_P_ARCHITECTURE].text, "Hopper");
	machine_close(&m);
}

static const struct gpu_process *find(const struct gpu_snapshot *s, int pid)
{
	for (int i = 0; i < s->n_processes; i++)
		if (s->process[i].pid == pid)
			return &s->process[i];
	fail_msg("process %d is not listed", pid);
	return NULL;
}

/* Every layout of the process rows gives the same list. */
static void check_layout(const char *head, bool usage)
{
	const struct gpu_snapshot *s;
	struct machine m;
	char text[512];

	snprintf(text, sizeof(text),
		 "%s"
		 "gpu \"NVIDIA A100-SXM4-80GB\"\n"
		 "  process 4711 \"python\" memory 3G busy 0.4\n"
		 "  process 4712 \"Xorg\" memory 256M graphics\n",
		 head);
	machine_open(&m, text, GPU_MIDDLE);
	(void)look(&m);
	pass(1.1);
	s = look(&m);
	assert_int_equal(s->n_processes, 2);
	assert_int_equal(find(s, 4711)->memory_kb, 3 << 20);
	assert_false(find(s, 4711)->graphics);
	assert_int_equal(find(s, 4712)->memory_kb, 256 << 10);
	assert_true(find(s, 4712)->graphics);
	assert_int_equal(find(s, 4711)->busy, usage ? 4000 : -1);
	machine_close(&m);
}

static void test_layouts(void **state)
{
	(void)state;
	check_layout("", true);
	check_layout("strict_versions\n", true);
	check_layout("driver 470.57.02\nprocess_layout 2\n", true);
	check_layout("driver 440.33.01\nprocess_layout 1\n", true);
	check_layout("driver 535.54.03\nprocess_layout 535\n", true);
	check_layout("no_process_utilization\n", false);
}

static void test_many_processes(void **state)
{
	const struct gpu_snapshot *s;
	struct machine m;

	(void)state;
	machine_open(&m,
		     "gpu \"NVIDIA H100 80GB HBM3\"\n"
		     "  process 100000 \"python\" memory 100M busy 0.002 x 300\n",
		     GPU_MIDDLE);
	(void)look(&m);
	pass(1.1); /* the driver samples its processes once a second */
	s = look(&m);
	assert_int_equal(s->n_processes, 300);
	for (int i = 0; i < s->n_processes; i++)
		assert_true(s->process[i].busy >= 0); /* -1: nothing known */
	assert_int_equal(s->processes_left_out, 0);
	assert_int_equal(known(&s->device[0], M_GPU_PROCESSES), 300);
	machine_close(&m);
}

static void test_mig(void **state)
{
	const struct gpu_snapshot *s;
	struct machine m;

	(void)state;
	machine_open(&m,
		     "gpu \"NVIDIA H100 80GB HBM3\"\n"
		     "  mig 3g.40gb 1g.10gb\n"
		     "  process 4711 \"python\" memory 3G busy 0.2 gi 1\n"
		     "gpu \"NVIDIA H100 80GB HBM3\"\n",
		     GPU_SLOW);
	s = look(&m);
	assert_int_equal(s->n_devices, 4);
	assert_true(s->device[0].partitioned);
	for (int i = 1; i <= 2; i++) {
		assert_int_equal(s->device[i].index, 0);
		assert_int_equal(s->device[i].parent, 0);
		assert_int_equal(s->device[i].partition, i - 1);
		assert_int_equal(strncmp(s->device[i].uuid, "MIG-", 4), 0);
		assert_true(known(&s->device[i], M_GPU_MEM_TOTAL) > 0);
		assert_int_equal(gpu_metric(&s->device[i], M_GPU_BUSY)->have, GPU_NOT_SUPPORTED);
	}
	assert_string_equal(s->device[1].profile, "3g.40gb");
	assert_string_equal(s->device[2].profile, "1g.10gb");
	assert_int_equal(s->device[3].index, 1);
	assert_int_equal(s->n_processes, 1);
	assert_int_equal(s->device[s->process[0].device].instance, 1);
	assert_int_equal(known(&s->device[0], M_GPU_PROCESSES), 1);
	machine_close(&m);
}

static void test_unified(void **state)
{
	const struct gpu_device *d;
	struct machine m;

	(void)state;
	machine_open(&m, "gpu \"NVIDIA GB10\"\n  unified\n", GPU_SLOW);
	d = &look(&m)->device[0];
	assert_true(d->unified);
	assert_int_equal(gpu_metric(d, M_GPU_MEM_TOTAL)->have, GPU_NOT_SUPPORTED);
	assert_int_equal(gpu_metric(d, M_GPU_MEM_USED)->have, GPU_NOT_SUPPORTED);
	assert_int_equal(d->state, GPU_KNOWN);
	machine_close(&m);
}

static void test_throttled(void **state)
{
	const struct gpu_snapshot *s;
	struct machine m;

	(void)state;
	machine_open(&m,
		     "gpu \"NVIDIA A100-SXM4-80GB\"\n  load 1\n  slow hw_thermal clock 705\n"
		     "gpu \"NVIDIA A100-SXM4-80GB\"\n  load 1\n  slow power clock 990\n",
		     GPU_SLOW);
	(void)look(&m);
	pass(0.6);
	s = look(&m);
	assert_int_equal(known(&s->device[0], M_GPU_SLOW_HEAT_HW), 1);
	assert_int_equal(known(&s->device[0], M_GPU_SLOW_POWER), 0);
	assert_int_equal(known(&s->device[0], M_GPU_CLOCK_SM), 705);
	assert_true(known(&s->device[0], M_GPU_HELD_HEAT) > 0);
	assert_int_equal(known(&s->device[1], M_GPU_SLOW_POWER), 1);
	assert_int_equal(known(&s->device[1], M_GPU_CLOCK_SM), 990);
	assert_true(known(&s->device[1], M_GPU_HELD_POWER) > 0);
	machine_close(&m);
}

static void expect(struct machine *m, int kind, struct gpu_event *ret)
{
	int64_t until = clock_mono_ns() + NS(20);

	while (clock_mono_ns() < until) {
		(void)gpu_client_poll(m->c, -1, clock_mono_ns());
		while (gpu_client_event(m->c, ret))
			if ((int)ret->kind == kind)
				return;
		pass(0.01);
	}
	fail_msg("event %d did not come", kind);
}

static void test_xid_and_loss(void **state)
{
	struct gpu_event e;
	struct machine m;

	(void)state;
	machine_open(&m,
		     "gpu \"NVIDIA H100 80GB HBM3\"\n"
		     "gpu \"NVIDIA H100 80GB HBM3\"\n"
		     "  ecc corrected 3 uncorrected 1\n"
		     "  xid 79 from 500ms\n"
		     "  lost from 1s\n",
		     GPU_SLOW);
	assert_int_equal(known(&look(&m)->device[1], M_GPU_ECC_CORRECTED), 3);
	assert_int_equal(known(&look(&m)->device[1], M_GPU_ECC_UNCORRECTED), 1);
	expect(&m, GPU_EVENT_XID, &e);
	assert_int_equal(e.code, 79);
	assert_int_equal(e.index, 1);
	assert_string_equal(e.text, "XID 79 on GPU 1: fell off the bus");
	expect(&m, GPU_EVENT_LOST, &e);
	assert_int_equal(e.index, 1);
	assert_int_equal(look(&m)->device[1].state, GPU_LOST);
	assert_int_equal(gpu_metric(&look(&m)->device[1], M_GPU_BUSY)->have, GPU_LOST);
	assert_string_equal(look(&m)->device[1].name, "NVIDIA H100 80GB HBM3");
	assert_int_equal(look(&m)->device[0].state, GPU_KNOWN);
	machine_close(&m);
}

/* One counter of 20 ms after another must not slow down the readings. */
static void test_pcie_is_apart(void **state)
{
	const struct gpu_snapshot *s;
	struct machine m;

	(void)state;
	machine_open(&m, "pcie_read 200ms\ngpu \"NVIDIA H100 80GB HBM3\" x 2\n", GPU_MIDDLE);
	(void)look(&m);
	for (int i = 0; i < 5; i++) {
		s = look(&m);
		assert_true(s->ended_ns - s->taken_ns < NS(0.15));
	}
	pass(1);
	s = look(&m);
	assert_int_equal(gpu_metric(&s->device[0], M_GPU_PCIE_RX)->have, GPU_KNOWN);
	machine_close(&m);
}

static void test_codes(void **state)
{
	static const struct {
		int result;
		enum gpu_have have;
	} codes[] = { { 0, GPU_KNOWN },          { 3, GPU_NOT_SUPPORTED }, { 4, GPU_NO_PERMISSION },
		      { 13, GPU_NOT_SUPPORTED }, { 15, GPU_LOST },         { 16, GPU_NEEDS_RESET },
		      { 26, GPU_DEPRECATED },    { 999, GPU_FAILED },      { -7, GPU_FAILED } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		assert_int_equal(nvml_have(codes[i].result), codes[i].have);
}

static void test_error_codes_of_calls(void **state)
{
	const struct gpu_device *d;
	struct machine m;

	(void)state;
	machine_open(&m,
		     "gpu \"NVIDIA H100 80GB HBM3\"\n"
		     "  error nvmlDeviceGetPowerUsage 4\n"
		     "  error nvmlDeviceGetTotalEnergyConsumption 3\n"
		     "  error nvmlDeviceGetEncoderUtilization 999\n",
		     GPU_SLOW);
	d = &look(&m)->device[0];
	assert_int_equal(gpu_metric(d, M_GPU_POWER)->have, GPU_NO_PERMISSION);
	assert_int_equal(gpu_metric(d, M_GPU_ENERGY)->have, GPU_NOT_SUPPORTED);
	assert_int_equal(gpu_metric(d, M_GPU_ENCODER)->have, GPU_FAILED);
	assert_int_equal(gpu_metric(d, M_GPU_DECODER)->have, GPU_KNOWN);
	machine_close(&m);
}

/* One that takes no call right after it was initialised is a problem with words, not "no GPU". */
static void test_uninitialised(void **state)
{
	const struct gpu_snapshot *s;
	struct machine m;

	(void)state;
	machine_open(&m, "gpu \"NVIDIA H100 80GB HBM3\"\n  error any 1\n", GPU_SLOW);
	s = look(&m);
	assert_int_equal(s->n_devices, 0);
	assert_non_null(strstr(s->problem[GPU_NVIDIA], "not initialised"));
	machine_close(&m);
	/* Only while it is read: its row says so. */
	machine_open(&m, "gpu \"NVIDIA H100 80GB HBM3\"\n  error nvmlDeviceGetUtilizationRates 1\n",
		     GPU_SLOW);
	s = look(&m);
	assert_int_equal(s->n_devices, 1);
	assert_int_equal(s->device[0].state, GPU_FAILED);
	assert_string_equal(s->device[0].name, "NVIDIA H100 80GB HBM3");
	machine_close(&m);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),          cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_many_processes), cmocka_unit_test(test_mig),
		cmocka_unit_test(test_unified),        cmocka_unit_test(test_throttled),
		cmocka_unit_test(test_xid_and_loss),   cmocka_unit_test(test_pcie_is_apart),
		cmocka_unit_test(test_codes),          cmocka_unit_test(test_error_codes_of_calls),
		cmocka_unit_test(test_uninitialised),
	};

	if (argc > 1 && strcmp(argv[1], "gpu-helper") == 0)
		return gpu_helper_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
