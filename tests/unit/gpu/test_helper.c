/* SPDX-License-Identifier: MIT
 *
 * Drivers that block and crash, through a vendor library that does so on purpose (fake_nvml.c). This binary
 * is the helper as well. Deadlines are short, so that nobody waits for seconds.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "gpu/client.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_NS (150 * NS_PER_MS)

static struct gpu_client *open_deep(const char *trouble, enum gpu_depth depth)
{
	struct gpu_client_options o = { .depth = depth,
					.period_ns = 10 * NS_PER_MS,
					.deadline_ns = DEADLINE_NS,
					.nvml = FAKE_NVML };
	struct gpu_client *c = NULL;
	struct err e = { 0 };

	unsetenv("FAKE_NVML_HIDE");
	if (trouble)
		setenv("FAKE_NVML", trouble, 1);
	else
		unsetenv("FAKE_NVML");
	assert_int_equal(gpu_client_open(&o, &c, &e), 0);
	return c;
}

static struct gpu_client *open_client(const char *trouble)
{
	return open_deep(trouble, GPU_MIDDLE);
}

static void close_client(struct gpu_client *c)
{
	int64_t begun = clock_mono_ns();
	int status;

	gpu_client_close(c);
	assert_true(clock_mono_ns() - begun < NS_PER_S);
	assert_int_equal(waitpid(-1, &status, WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
}

static void nap(void)
{
	struct timespec t = { 0, 2 * NS_PER_MS };

	(void)nanosleep(&t, NULL);
}

/* Polls never wait: measured as CPU time and as the number of them that took long on the clock, since
 * other tests share the machine. */
static void expect(struct gpu_client *c, int kind, struct gpu_event *ret)
{
	int64_t begun = clock_mono_ns(), until = begun + 20 * NS_PER_S;
	int late = 0, polls = 0;

	while (clock_mono_ns() < until) {
		int64_t before = clock_mono_ns();

		(void)gpu_client_poll(c, -1, before);
		late += clock_mono_ns() - before > 5 * NS_PER_MS;
		polls++;
		while (gpu_client_event(c, ret)) {
			if ((int)ret->kind != kind)
				continue;
			assert_true(late <= 1 + polls / 10);
			return;
		}
		nap();
	}
	fail_msg("event %d did not come", kind);
}

/* The newest snapshot of a helper that has come to rest. */
static const struct gpu_snapshot *settled(struct gpu_client *c)
{
	int64_t until = clock_mono_ns() + 10 * NS_PER_S;

	assert_int_equal(gpu_client_wait(c, 10 * NS_PER_S), 0);
	while (gpu_client_last(c)->n_devices == 0 && clock_mono_ns() < until)
		assert_int_equal(gpu_client_wait(c, 10 * NS_PER_S), 0);
	return gpu_client_last(c);
}

/* Names, numbers and places stay, whatever happens. */
static void check_rows(const struct gpu_snapshot *s, int n, int bad, int state)
{
	assert_int_equal(s->n_devices, n);
	for (int i = 0; i < n; i++) {
		const struct gpu_device *d = &s->device[i];
		char name[32], pci[32];

		snprintf(name, sizeof(name), "Fake GPU %d", i);
		snprintf(pci, sizeof(pci), "00000000:%02X:00.0", 0x10 + i);
		assert_int_equal(d->index, i);
		assert_string_equal(d->name, name);
		assert_string_equal(d->pci, pci);
		assert_int_equal(d->state, i == bad ? state : GPU_KNOWN);
		assert_int_equal(gpu_metric(d, M_GPU_BUSY)->have, i == bad ? state : GPU_KNOWN);
		if (i != bad)
			assert_int_equal(gpu_metric(d, M_GPU_BUSY)->raw, 1000 * (i + 1));
	}
}

static void test_all_fine(void **state)
{
	struct gpu_client *c = open_client(NULL);
	const struct gpu_snapshot *s = settled(c);
	const struct gpu_device *d = &s->device[1];

	(void)state;
	check_rows(s, 3, -1, 0);
	assert_string_equal(s->problem[GPU_NVIDIA], "");
	assert_false(d->simulated);
	/* Out of range is no number, what the library lacks is not supported, nothing is zero. */
	assert_int_equal(gpu_metric(d, M_GPU_MEM_BUSY)->have, GPU_FAILED);
	assert_int_equal(gpu_metric(d, M_GPU_POWER)->have, GPU_NOT_SUPPORTED);
	assert_int_equal(gpu_metric(d, M_GPU_PROCESSES)->have, GPU_NOT_SUPPORTED);
	assert_int_equal(gpu_metric(d, M_GPU_POWER_LIMIT)->have, GPU_NOT_ASKED);
	assert_int_equal(gpu_metric(d, M_GPU_TEMPERATURE)->raw, 40);
	close_client(c);
}

static void check_number(const struct gpu_device *d, enum gpu_property_id p, int64_t v)
{
	assert_int_equal(d->property[p].have, GPU_KNOWN);
	assert_int_equal(d->property[p].number, v);
}

static void test_spares(void **state)
{
	static const struct {
		enum gpu_property_id p;
		int64_t v;
	} expected[] = {
		{ GPU_P_REMAPPED_BANKS_MAX, 640 },
		{ GPU_P_REMAPPED_BANKS_HIGH, 5 },
		{ GPU_P_REMAPPED_BANKS_PARTIAL, 4 },
		{ GPU_P_REMAPPED_BANKS_LOW, 3 },
		{ GPU_P_REMAPPED_BANKS_NONE, 2 },
		{ GPU_P_SRAM_AGGREGATE_PARITY, 1 },
		{ GPU_P_SRAM_AGGREGATE_SECDED, 2 },
		{ GPU_P_SRAM_VOLATILE_PARITY, 4 },
		{ GPU_P_SRAM_VOLATILE_SECDED, 5 },
		{ GPU_P_SRAM_L2, 7 },
		{ GPU_P_SRAM_SM, 8 },
		{ GPU_P_SRAM_PCIE, 9 },
		{ GPU_P_SRAM_MCU, 10 },
		{ GPU_P_SRAM_THRESHOLD, 1 },
	};
	struct gpu_client *c = open_deep(NULL, GPU_ALL);
	const struct gpu_device *d = settled(c)->device;

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		check_number(d, expected[i].p, expected[i].v);
	/* More than can be counted is no number. */
	assert_int_equal(d->property[GPU_P_SRAM_OTHER].have, GPU_FAILED);
	close_client(c);
}

static void test_fabric(void **state)
{
	struct gpu_client *c = open_deep(NULL, GPU_ALL);
	const struct gpu_device *d = settled(c)->device;

	(void)state;
	assert_string_equal(d[0].property[GPU_P_FABRIC_STATE].text, "Completed");
	assert_string_equal(d[0].property[GPU_P_FABRIC_STATUS].text, "Success");
	assert_string_equal(d[0].property[GPU_P_FABRIC_CLUSTER].text,
			    "ab000000-0000-0000-0000-00000000001f");
	check_number(&d[0], GPU_P_FABRIC_CLIQUE, 3);
	/* By the older call; and what does not hold yet is not shown. */
	assert_string_equal(d[1].property[GPU_P_FABRIC_STATE].text, "In Progress");
	assert_int_equal(d[1].property[GPU_P_FABRIC_STATUS].have, GPU_NOT_SUPPORTED);
	assert_int_equal(d[1].property[GPU_P_FABRIC_CLIQUE].have, GPU_NOT_SUPPORTED);
	assert_int_equal(d[2].property[GPU_P_FABRIC_STATE].have, GPU_NOT_SUPPORTED);
	close_client(c);
}

/* What nvidia-smi has for display_mode, display_attached and display_active. */
static void test_display(void **state)
{
	struct gpu_client *c = open_deep(NULL, GPU_ALL);
	const struct gpu_device *d = settled(c)->device;

	(void)state;
	assert_int_equal(d->property[GPU_P_DISPLAY_MODE].have, GPU_DEPRECATED);
	assert_int_equal(d->property[GPU_P_POWER_MANAGEMENT].have, GPU_DEPRECATED);
	check_number(d, GPU_P_DISPLAY_ATTACHED, 1);
	check_number(d, GPU_P_DISPLAY_ACTIVE, 0);
	close_client(c);
	setenv("FAKE_NVML_DRIVER", "535.161.08", 1);
	c = open_deep(NULL, GPU_ALL);
	d = settled(c)->device;
	check_number(d, GPU_P_DISPLAY_MODE, 1);
	check_number(d, GPU_P_DISPLAY_ATTACHED, 1);
	assert_int_equal(d->property[GPU_P_POWER_MANAGEMENT].have, GPU_NOT_SUPPORTED);
	close_client(c);
	unsetenv("FAKE_NVML_DRIVER");
}

static void test_hang_and_return(void **state)
{
	struct gpu_client *c = open_client("hang nvmlDeviceGetUtilizationRates 1 5 600");
	struct gpu_event e;

	(void)state;
	check_rows(settled(c), 3, -1, 0);
	unsetenv("FAKE_NVML"); /* for the next one */
	expect(c, GPU_EVENT_HANG, &e);
	assert_int_equal(e.index, 1);
	check_rows(settled(c), 3, 1, GPU_HUNG);
	assert_string_equal(e.pci, "00000000:11:00.0");
	assert_string_equal(e.call, "nvmlDeviceGetUtilizationRates");
	assert_true(e.seconds >= 0.15 && e.seconds < 0.6);
	assert_non_null(strstr(e.text, "driver call blocked for 0."));
	assert_non_null(strstr(e.text, " s in nvmlDeviceGetUtilizationRates on GPU 1"));
	expect(c, GPU_EVENT_RETURNED, &e);
	assert_int_equal(e.index, 1);
	assert_true(e.seconds >= 0.6 && e.seconds < 5);
	check_rows(settled(c), 3, -1, 0);
	close_client(c);
}

static void test_crash(void **state)
{
	struct gpu_client *c = open_client("crash nvmlDeviceGetUtilizationRates 2 5 0");
	struct gpu_event e;

	(void)state;
	check_rows(settled(c), 3, -1, 0);
	expect(c, GPU_EVENT_DIED, &e);
	assert_string_equal(e.text, "the GPU helper was killed by SIGSEGV in "
				    "nvmlDeviceGetUtilizationRates on GPU 2");
	assert_int_equal(e.index, 2);
	assert_true(WIFSIGNALED((int)e.code));
	expect(c, GPU_EVENT_REPLACED, &e);
	check_rows(settled(c), 3, 2, GPU_HUNG);
	close_client(c);
}

/* The slow lane's call is the one to be named, though the other lane is at work all the time. */
static void test_crash_in_slow_lane(void **state)
{
	struct gpu_client *c = open_client("crash nvmlDeviceGetPcieThroughput 1 1 0");
	struct gpu_event e;

	(void)state;
	expect(c, GPU_EVENT_DIED, &e);
	assert_string_equal(e.call, "nvmlDeviceGetPcieThroughput");
	assert_int_equal(e.index, 1);
	expect(c, GPU_EVENT_REPLACED, &e);
	assert_int_equal(settled(c)->device[1].state, GPU_HUNG);
	assert_int_equal(settled(c)->device[0].state, GPU_KNOWN);
	close_client(c);
}

/* A handle that cannot be had: the GPU is known by its number alone. */
static void test_hang_in_handle(void **state)
{
	struct gpu_client *c = open_client("hang nvmlDeviceGetHandleByIndex_v2 1 1 60000");
	const struct gpu_snapshot *s;
	struct gpu_event e;

	(void)state;
	expect(c, GPU_EVENT_HANG, &e);
	assert_int_equal(e.index, 1);
	assert_string_equal(e.pci, "");
	s = settled(c);
	assert_int_equal(s->n_devices, 3);
	assert_int_equal(s->device[1].index, 1);
	assert_int_equal(s->device[1].state, GPU_HUNG);
	assert_int_equal(s->device[2].state, GPU_KNOWN);
	close_client(c);
}

/* An initialisation that takes its time: the vendor is left alone, then taken back. */
static void test_slow_start(void **state)
{
	struct gpu_client *c = open_client("hang nvmlInit_v2 -1 1 1500");
	struct gpu_event e;

	(void)state;
	expect(c, GPU_EVENT_HANG, &e);
	assert_int_equal(e.index, -1);
	assert_string_equal(e.call, "nvmlInit_v2");
	assert_true(e.seconds >= 5 * 0.15);
	assert_int_equal(gpu_client_wait(c, NS_PER_S / 2), 0);
	assert_int_equal(gpu_client_last(c)->n_devices, 0);
	assert_non_null(strstr(gpu_client_last(c)->problem[GPU_NVIDIA], "nvmlInit_v2"));
	expect(c, GPU_EVENT_RETURNED, &e);
	assert_true(e.seconds >= 1.5);
	check_rows(settled(c), 3, -1, 0);
	assert_string_equal(gpu_client_last(c)->problem[GPU_NVIDIA], "");
	close_client(c);
}

/* One GPU after another: all helpers, then it is said and left at that. */
static void test_gives_up(void **state)
{
	struct gpu_client *c;
	int hangs = 0, replaced = 0, gave_up = 0;
	int64_t until = clock_mono_ns() + 20 * NS_PER_S;
	struct gpu_event e;

	(void)state;
	setenv("FAKE_NVML_GPUS", "10", 1);
	c = open_client("hang nvmlDeviceGetUtilizationRates -1 1 60000");
	for (; !gave_up && clock_mono_ns() < until; nap()) {
		(void)gpu_client_poll(c, -1, clock_mono_ns());
		while (gpu_client_event(c, &e)) {
			hangs += e.kind == GPU_EVENT_HANG;
			replaced += e.kind == GPU_EVENT_REPLACED;
			gave_up += e.kind == GPU_EVENT_GAVE_UP;
		}
	}
	unsetenv("FAKE_NVML_GPUS");
	assert_int_equal(hangs, GPU_HELPERS);
	assert_int_equal(replaced, GPU_HELPERS - 1);
	assert_int_equal(gave_up, 1);
	/* Told again at 10 s, 60 s, then every 10 minutes. */
	(void)gpu_client_poll(c, -1, clock_mono_ns() + 11 * NS_PER_S);
	for (int i = 0; i < GPU_HELPERS; i++) {
		assert_true(gpu_client_event(c, &e));
		assert_int_equal(e.kind, GPU_EVENT_HANG);
		assert_int_equal(e.index, i);
		assert_true(e.seconds > 10);
	}
	(void)gpu_client_poll(c, -1, clock_mono_ns() + 13 * NS_PER_S);
	assert_false(gpu_client_event(c, &e));
	close_client(c);
}

/* The driver counts one GPU less after a restart: nobody moves up into its number. */
static void test_never_renumbered(void **state)
{
	struct gpu_client *c = open_client("crash nvmlDeviceGetUtilizationRates 0 30 0");
	const struct gpu_snapshot *s;
	struct gpu_event e;

	(void)state;
	check_rows(settled(c), 3, -1, 0);
	setenv("FAKE_NVML_HIDE", "1", 1);
	expect(c, GPU_EVENT_REPLACED, &e);
	s = settled(c);
	assert_int_equal(s->n_devices, 3);
	for (int i = 0; i < 3; i++) {
		const struct gpu_device *d = &s->device[i];
		int who = d->pci[10] - '0';

		assert_int_equal(d->index, who);
		assert_int_equal(d->state, who == 0 ? GPU_HUNG : who == 1 ? GPU_LOST : GPU_KNOWN);
	}
	close_client(c);
}

static void test_lost_and_back(void **state)
{
	/* A lost one is asked once a second, or when somebody wants to know. */
	struct gpu_client *c = open_client("error nvmlDeviceGetUtilizationRates 1 5 15 8");
	struct gpu_event e;

	(void)state;
	check_rows(settled(c), 3, -1, 0);
	expect(c, GPU_EVENT_LOST, &e);
	assert_int_equal(e.index, 1);
	assert_string_equal(e.pci, "00000000:11:00.0");
	check_rows(settled(c), 3, 1, GPU_LOST);
	assert_false(gpu_client_event(c, &e));
	expect(c, GPU_EVENT_BACK, &e);
	assert_int_equal(e.index, 1);
	assert_string_equal(e.pci, "00000000:11:00.0");
	check_rows(settled(c), 3, -1, 0);
	assert_false(gpu_client_event(c, &e));
	close_client(c);
}

/* The GPU before it is gone after the restart: the one that moved up into the number of the one that
 * crashed is read, and the crashed one is known by its PCI id. */
static void test_number_is_no_identity(void **state)
{
	struct gpu_client *c = open_client("crash nvmlDeviceGetUtilizationRates 1 30 0");
	const struct gpu_snapshot *s;
	struct gpu_event e;

	(void)state;
	check_rows(settled(c), 3, -1, 0);
	setenv("FAKE_NVML_HIDE", "0", 1);
	expect(c, GPU_EVENT_REPLACED, &e);
	s = settled(c);
	assert_int_equal(s->n_devices, 3);
	for (int i = 0; i < 3; i++) {
		const struct gpu_device *d = &s->device[i];
		int who = d->pci[10] - '0';

		assert_int_equal(d->index, who);
		assert_int_equal(d->state, who == 0 ? GPU_LOST : who == 1 ? GPU_HUNG : GPU_KNOWN);
	}
	close_client(c);
}

/* As many GPUs as before: nothing at all is asked of the one that hung, not even its PCI id, which it may
 * hang in as well. */
static void test_hung_is_not_asked_again(void **state)
{
	struct gpu_client *c = open_client("hang nvmlDeviceGetUtilizationRates 1 5 60000");
	struct gpu_event e;

	(void)state;
	check_rows(settled(c), 3, -1, 0);
	setenv("FAKE_NVML", "hang nvmlDeviceGetHandleByIndex_v2 1 1 60000", 1);
	expect(c, GPU_EVENT_HANG, &e);
	expect(c, GPU_EVENT_REPLACED, &e);
	check_rows(settled(c), 3, 1, GPU_HUNG);
	for (int i = 0; i < 150; i++, nap())
		(void)gpu_client_poll(c, -1, clock_mono_ns());
	assert_false(gpu_client_event(c, &e));
	close_client(c);
}

static void test_no_library(void **state)
{
	struct gpu_client_options o = { .depth = GPU_ALL, .nvml = "/nowhere/libnvidia-ml.so.1" };
	struct gpu_client *c = NULL;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(gpu_client_open(&o, &c, &e), 0);
	assert_int_equal(gpu_client_wait(c, 10 * NS_PER_S), 0);
	assert_int_equal(gpu_client_last(c)->n_devices, 0);
	assert_non_null(strstr(gpu_client_last(c)->problem[GPU_NVIDIA],
			       "cannot load '/nowhere/libnvidia-ml.so.1'"));
	close_client(c);
}

static void test_driver_not_loaded(void **state)
{
	struct gpu_client *c = open_client("error nvmlInit_v2 -1 1 9");

	(void)state;
	assert_int_equal(gpu_client_wait(c, 10 * NS_PER_S), 0);
	assert_int_equal(gpu_client_last(c)->n_devices, 0);
	assert_non_null(
	    strstr(gpu_client_last(c)->problem[GPU_NVIDIA], "the NVIDIA driver is not loaded: "));
	close_client(c);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_fine),
		cmocka_unit_test(test_spares),
		cmocka_unit_test(test_fabric),
		cmocka_unit_test(test_display),
		cmocka_unit_test(test_hang_and_return),
		cmocka_unit_test(test_crash),
		cmocka_unit_test(test_crash_in_slow_lane),
		cmocka_unit_test(test_hang_in_handle),
		cmocka_unit_test(test_slow_start),
		cmocka_unit_test(test_gives_up),
		cmocka_unit_test(test_never_renumbered),
		cmocka_unit_test(test_lost_and_back),
		cmocka_unit_test(test_number_is_no_identity),
		cmocka_unit_test(test_hung_is_not_asked_again),
		cmocka_unit_test(test_no_library),
		cmocka_unit_test(test_driver_not_loaded),
	};

	if (argc > 1 && strcmp(argv[1], "gpu-helper") == 0)
		return gpu_helper_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
