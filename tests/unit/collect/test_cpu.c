/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include "collect/cpu.h"

#include <errno.h>

static void parse_total(void **s)
{
	static const char text[] =
	    "cpu  6073 1 2843 268492 1311 2 75 104 5 6\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
	    "intr 250533 0 0\nctxt 495439\nbtime 1\nprocesses 8310\n"
	    "procs_running 2\nprocs_blocked 7\nfuture 9 9\n";
	struct cpu_stat c;

	(void)s;
	assert_int_equal(cpu_parse(text, sizeof(text) - 1, &c), 0);
	assert_int_equal(c.total.n, 8);
	assert_int_equal(c.total.ticks[CPU_USER], 6073);
	assert_int_equal(c.total.ticks[CPU_NICE], 1);
	assert_int_equal(c.total.ticks[CPU_STEAL], 104);
	assert_int_equal(c.switches, 495439);
	assert_int_equal(c.forks, 8310);
	assert_int_equal(c.running, 2);
	assert_int_equal(c.blocked, 7);
}

/* What an old kernel does not have is absent, not zero. */
static void parse_few_columns(void **s)
{
	static const char text[] = "cpu 10 20 30 40\n";
	struct cpu_stat c;

	(void)s;
	assert_int_equal(cpu_parse(text, sizeof(text) - 1, &c), 0);
	assert_int_equal(c.total.n, 4);
	assert_int_equal(c.switches, -1);
	assert_int_equal(c.running, -1);
}

static void parse_bad(void **s)
{
	static const char *const bad[] = {
		"",
		"\n",
		"cpu",
		"cpu \n",
		"cpu  1 2 3\n",
		"cpu0 1 2 3 4 5 6 7 8 9 10\n",
		"cpu  1 2 3 x\n",
		"cpu  1 2 3 -4\n",
		"cpu  99999999999999999999 2 3 4 5 6 7 8\n",
		"cpu  9223372036854775807 9223372036854775807 3 4 5 6 7 8\n",
		/* no newline: the last number may be half of one */
		"cpu  1 2 3 4 5 6 7 8 9 10",
		"\377\376\0cpu 1",
	};
	struct cpu_stat c = { .running = 77 };

	(void)s;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(cpu_parse(bad[i], strlen(bad[i]), &c), -EINVAL);
		assert_int_equal(c.running, 77);
	}
}

static void next_skips_what_makes_no_sense(void **s)
{
	static const char text[] = "cpu  1 2 3 4\ncpu1 1 2 3 4 5 6 7 8\ncpux 1 2 3 4\n"
				   "cpu99999 1 2 3 4\ncpu2 1 2\ncpufoo\ncpu8191 9 2 3 4\n";
	struct scan scan = scan_of(text, sizeof(text) - 1);
	struct cpu_times t;
	unsigned cpu;

	(void)s;
	assert_true(cpu_next(&scan, &cpu, &t));
	assert_int_equal(cpu, 1);
	assert_int_equal(t.n, 8);
	assert_true(cpu_next(&scan, &cpu, &t));
	assert_int_equal(cpu, 8191);
	assert_int_equal(t.ticks[CPU_USER], 9);
	assert_false(cpu_next(&scan, &cpu, &t));
}

static void torment_one(const char *text, size_t n)
{
	struct scan scan = scan_of(text, n);
	struct cpu_times t;
	struct cpu_stat c;
	unsigned cpu;

	(void)cpu_parse(text, n, &c);
	while (cpu_next(&scan, &cpu, &t))
		assert_in_range(cpu, 0, CPU_NUMBER_MAX);
}

static void parse_torn(void **s)
{
	(void)s;
	rig_torment(
	    "cpu  6073 0 2843 268492 1311 0 75 104 0 0\ncpu0 2449 0 1161 135765 42 0 11 46 0 0\n"
	    "intr 5 0 0\nctxt 4\nprocs_running 2\n",
	    torment_one);
}

static void plain(void **s)
{
	struct rig r;
	uint32_t c0, c1;

	(void)s;
	rig_open(&r, &cpu_collector, "host-plain", 0);
	assert_int_equal(r.last, 0);
	assert_int_equal(rig_get(&r, M_CPU_USER, ID_HOST), 6073);
	assert_int_equal(rig_get(&r, M_CPU_NICE, ID_HOST), 10);
	assert_int_equal(rig_get(&r, M_CPU_SYSTEM, ID_HOST), 2842);
	assert_int_equal(rig_get(&r, M_CPU_IDLE, ID_HOST), 268492);
	assert_int_equal(rig_get(&r, M_CPU_IOWAIT, ID_HOST), 1311);
	assert_int_equal(rig_get(&r, M_CPU_IRQ, ID_HOST), 3);
	assert_int_equal(rig_get(&r, M_CPU_SOFTIRQ, ID_HOST), 75);
	assert_int_equal(rig_get(&r, M_CPU_STEAL, ID_HOST), 103);
	assert_int_equal(rig_get(&r, M_CPU_ONLINE, ID_HOST), 2);
	assert_int_equal(rig_get(&r, M_HOST_FORKS, ID_HOST), 8310);
	assert_int_equal(rig_get(&r, M_HOST_SWITCHES, ID_HOST), 495439);
	assert_int_equal(rig_get(&r, M_HOST_RUNNING, ID_HOST), 2);
	assert_int_equal(rig_get(&r, M_HOST_BLOCKED, ID_HOST), 1);
	c0 = rig_life(&r, LIFE_BORN, "cpu0");
	c1 = rig_life(&r, LIFE_BORN, "cpu1");
	assert_true(c0 && c1 && c0 != c1);
	/* niced time is user time of a core, interrupts are its system time */
	assert_int_equal(rig_get(&r, M_CORE_USER, c0), 2449 + 10);
	assert_int_equal(rig_get(&r, M_CORE_SYSTEM, c0), 1161 + 1 + 11);
	assert_int_equal(rig_get(&r, M_CORE_IDLE, c0), 135765);
	assert_int_equal(rig_get(&r, M_CORE_IOWAIT, c1), 1269);
	assert_int_equal(rig_get(&r, M_CORE_STEAL, c1), 57);
	assert_int_equal(rig_get(&r, M_CORE_FREQUENCY, c0), 2400000);
	assert_int_equal(rig_get(&r, M_CORE_FREQUENCY, c1), 3100500);
	assert_int_equal(r.f.gaps.n, 0);
	assert_null(rig_event(&r, EVENT_CPU_HOTPLUG));
	rig_tick(&r);
	assert_int_equal(rig_get(&r, M_CORE_USER, c0), 2499 + 20);
	assert_int_equal(rig_get(&r, M_HOST_FORKS, ID_HOST), 8312);
	assert_int_equal(r.f.lives.n, 0);
	rig_close(&r);
}

/* Cores once a second, the sum every tick, frequencies on slow ticks. */
static void pace(void **s)
{
	struct rig r;

	(void)s;
	rig_open(&r, &cpu_collector, "host-plain", 0);
	r.c.slow = false;
	frame_begin(&r.f, 0, 0);
	r.c.boot_ns += 100000000;
	assert_int_equal(cpu_collector.read(&r.c, r.state, &r.f), 0);
	assert_int_equal(rig_has(&r, M_CPU_USER, ID_HOST), 1);
	assert_int_equal(rig_has(&r, M_CPU_ONLINE, ID_HOST), 0);
	frame_begin(&r.f, 0, 0);
	r.c.boot_ns += 860000000; /* 0.96 s after the last: on time, as ticks jitter */
	assert_int_equal(cpu_collector.read(&r.c, r.state, &r.f), 0);
	assert_int_equal(rig_has(&r, M_CPU_ONLINE, ID_HOST), 1);
	assert_int_equal(rig_has(&r, M_CORE_FREQUENCY, ID_FIRST_FREE), 0);
	rig_close(&r);
}

static void hotplug(void **s)
{
	struct rig r;
	uint32_t was, is;

	(void)s;
	rig_open(&r, &cpu_collector, "cpu-hotplug", 0);
	was = rig_life(&r, LIFE_BORN, "cpu2");
	assert_int_equal(rig_get(&r, M_CPU_ONLINE, ID_HOST), 4);
	assert_int_equal(rig_gap(&r, M_CORE_FREQUENCY, 0), GAP_NOT_SUPPORTED);
	rig_tick(&r);
	assert_int_equal(rig_get(&r, M_CPU_ONLINE, ID_HOST), 3);
	assert_int_equal(rig_life(&r, LIFE_GONE, "cpu2"), was);
	assert_int_equal(rig_has(&r, M_CORE_USER, was), 0);
	assert_int_equal(rig_event(&r, EVENT_CPU_HOTPLUG)->value, 2);
	assert_string_equal(frame_text(&r.f, rig_event(&r, EVENT_CPU_HOTPLUG)->text),
			    "cpu2 went offline");
	assert_int_equal(rig_get(&r, M_CPU_USER, ID_HOST), 6040);
	assert_int_equal(rig_gap(&r, M_CORE_FREQUENCY, 0), -1); /* said once */
	rig_tick(&r);
	is = rig_life(&r, LIFE_BORN, "cpu2");
	assert_true(is && is != was);
	assert_int_equal(rig_get(&r, M_CORE_USER, is), 2020);
	assert_string_equal(frame_text(&r.f, rig_event(&r, EVENT_CPU_HOTPLUG)->text),
			    "cpu2 came online");
	assert_int_equal(r.f.events.n, 1);
	rig_close(&r);
}

static void iowait_goes_back(void **s)
{
	struct rig r;
	uint32_t c0;

	(void)s;
	rig_open(&r, &cpu_collector, "cpu-iowait-back", 0);
	c0 = rig_life(&r, LIFE_BORN, "cpu0");
	assert_int_equal(rig_get(&r, M_CPU_IOWAIT, ID_HOST), 600);
	rig_tick(&r);
	assert_int_equal(rig_get(&r, M_CPU_IOWAIT, ID_HOST), 581);
	assert_int_equal(rig_get(&r, M_CORE_IOWAIT, c0), 480);
	rig_close(&r);
}

static void steal(void **s)
{
	struct rig r;

	(void)s;
	rig_open(&r, &cpu_collector, "cpu-steal", 0);
	rig_tick(&r);
	assert_int_equal(rig_get(&r, M_CPU_STEAL, ID_HOST), 4450);
	assert_int_equal(rig_get(&r, M_CPU_USER, ID_HOST), 220);
	assert_int_equal(rig_get(&r, M_CORE_USER, ID_FIRST_FREE), 110);
	assert_int_equal(rig_get(&r, M_CORE_STEAL, ID_FIRST_FREE), 375);
	rig_close(&r);
}

static void many_cpus(void **s)
{
	struct rig r;
	uint32_t last;

	(void)s;
	rig_open(&r, &cpu_collector, "cpu-128", 0);
	assert_int_equal(rig_get(&r, M_CPU_ONLINE, ID_HOST), 128);
	assert_int_equal(rig_get(&r, M_HOST_SWITCHES, ID_HOST), 1000);
	assert_int_equal(rig_get(&r, M_HOST_RUNNING, ID_HOST), 2);
	last = rig_life(&r, LIFE_BORN, "cpu127");
	assert_int_equal(rig_get(&r, M_CORE_USER, last), 128);
	assert_int_equal(rig_get(&r, M_CPU_USER, ID_HOST), 127 * 128 / 2);
	rig_close(&r);
}

static void absent(void **s)
{
	struct rig r;

	(void)s;
	rig_open(&r, &cpu_collector, "psi-5.4", 0);
	assert_int_equal(r.opened, -ENOENT);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_total),
		cmocka_unit_test(parse_few_columns),
		cmocka_unit_test(parse_bad),
		cmocka_unit_test(next_skips_what_makes_no_sense),
		cmocka_unit_test(parse_torn),
		cmocka_unit_test(plain),
		cmocka_unit_test(pace),
		cmocka_unit_test(hotplug),
		cmocka_unit_test(iowait_goes_back),
		cmocka_unit_test(steal),
		cmocka_unit_test(many_cpus),
		cmocka_unit_test(absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
