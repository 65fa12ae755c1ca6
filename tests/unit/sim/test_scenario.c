/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/err.h"
#include "base/io.h"
#include "scenario.h"

#include <fcntl.h>

static struct scenario s; /* 200 KB: not for the stack */
static struct err e;

static int parse(const char *text)
{
	memset(&e, 0, sizeof(e));
	return scenario_parse(text, strlen(text), &s, &e);
}

static void wrong(const char *text, const char *words)
{
	if (parse(text) == 0)
		fail_msg("taken as right: %s", text);
	if (!strstr(e.text, words))
		fail_msg("'%s' does not say '%s'", e.text, words);
}

static void test_plain(void **state)
{
	(void)state;
	assert_int_equal(parse("gpu \"NVIDIA H100 80GB HBM3\"\n"), 0);
	assert_int_equal(s.n_devices, 1);
	assert_string_equal(s.device[0].about.name, "NVIDIA H100 80GB HBM3");
	assert_int_equal(s.device[0].about.architecture, 9);
	assert_true(s.device[0].about.gpm);
	assert_int_equal(s.device[0].about.memory_total, 80ull << 30);
	assert_int_equal(s.driver.cuda, 13010);
	assert_int_equal(s.driver.process_layout, 3);
	assert_int_equal(parse("# nothing\n\n   \t\n"), 0);
	assert_int_equal(s.n_devices, 0);
}

static void test_driver(void **state)
{
	(void)state;
	assert_int_equal(
	    parse("driver 535.54.03 # old\r\ncuda 12.2\ninit_error 9\nprocess_layout 535\n"
		  "strict_versions\npcie_read 20ms\ncall_time 50us\n"
		  "no_process_utilization\npids offset 100000"),
	    0);
	assert_string_equal(s.driver.version, "535.54.03");
	assert_int_equal(s.driver.cuda, 12020);
	assert_int_equal(s.driver.init_error, 9);
	assert_int_equal(s.driver.process_layout, 535);
	assert_true(s.driver.strict_versions && s.driver.no_process_utilization);
	assert_int_equal(s.driver.pcie_read_ms, 20);
	assert_int_equal(s.driver.call_us, 50);
	assert_int_equal(s.pids, PIDS_OFFSET);
	assert_int_equal(s.pid_offset, 100000);
}

static void test_device(void **state)
{
	const struct scenario_device *d = &s.device[0];

	(void)state;
	assert_int_equal(
	    parse("gpu \"NVIDIA A100-SXM4-80GB\"\n"
		  "  memory 40G reserved 1G used 2.5G\n"
		  "\tuuid GPU-aa pci 0001:83:1f.0 serial 77 minor 3 numa 1 arch hopper cc 9.1\n"
		  "  power idle 50 max 300 limit 250\n"
		  "  clocks sm 1400 memory 1500 idle 200\n"
		  "  temperature idle 31 full 80 slowdown 88\n"
		  "  compute_mode exclusive_process no_ecc no_gpm nvlinks 4 fan\n"
		  "  load 60% sm 0.5 tensor 0.3 from 5s for 10s\n"
		  "  process 4711 \"a # b\" memory 3G busy 0.4 graphics gi 1 x 3\n"
		  "  slow hw_thermal clock 510 from 1m\n"
		  "  lost from 10s\n  reset_required from 20s for 1s\n"
		  "  hang nvmlDeviceGetTemperature for 42s\n  error any 3 from 5s\n"
		  "  xid 79 from 3s\n  ecc corrected 3 uncorrected 1 from 2s\n"),
	    0);
	assert_int_equal(d->about.memory_total, 40ull << 30);
	assert_int_equal(d->about.memory_reserved, 1ull << 30);
	assert_int_equal(d->ghost, 5ull << 29);
	assert_int_equal(d->about.domain, 1);
	assert_int_equal(d->about.bus, 0x83);
	assert_int_equal(d->about.device, 0x1f);
	assert_int_equal(d->about.minor, 3);
	assert_int_equal(d->about.cc_minor, 1);
	assert_int_equal(d->about.power_limit_mw, 250000);
	assert_int_equal(d->about.compute_mode, 3);
	assert_false(d->about.ecc || d->about.gpm);
	assert_true(near(d->load[0].busy, 0.6, 1e-12));
	assert_int_equal(d->load[0].when.until, 15000000000);
	assert_string_equal(d->guest[0].name, "a # b");
	assert_int_equal(d->guest[0].count, 3);
	assert_int_equal(d->slow[0].reasons, 0x48);
	assert_int_equal(d->slow[0].when.until, INT64_MAX);
	assert_int_equal(d->call[1].answer, 3);
	assert_int_equal(d->xid[0].code, 79);
	assert_int_equal(d->ecc[0].uncorrected, 1);
}

static void test_several(void **state)
{
	(void)state;
	assert_int_equal(parse("gpu \"Tesla T4\" x 3\n  load 0.5\ngpu \"X\"\n"), 0);
	assert_int_equal(s.n_devices, 4);
	assert_int_equal(s.device[2].n_loads, 1);
	assert_int_equal(s.device[3].n_loads, 0);
	assert_string_not_equal(s.device[0].about.uuid, s.device[1].about.uuid);
	assert_int_not_equal(s.device[0].about.bus, s.device[1].about.bus);
	assert_int_equal(s.device[3].about.minor, 3);
}

static void test_mig(void **state)
{
	(void)state;
	assert_int_equal(parse("gpu \"A100\"\n  mig 3g.40gb 2g.20gb\n"), 0);
	assert_true(s.device[0].about.mig);
	assert_int_equal(s.device[0].about.n_partitions, 2);
	assert_int_equal(s.device[0].about.partition[1].memory_total, 20ull << 30);
	assert_int_equal(strncmp(s.device[0].about.partition[0].uuid, "MIG-", 4), 0);
	wrong("gpu \"A100\"\n  mig 4g.40gb 4g.40gb\n", "line 2: mig wants");
	wrong("gpu \"A100\"\n  mig 3g.80gb 3g.80gb\n", "line 2: mig wants");
	wrong("gpu \"A100\"\n  mig big\n", "line 2: mig wants");
}

static void test_wrong_lines(void **state)
{
	(void)state;
	wrong("lode 1\n", "line 1: no such statement about the driver");
	wrong("gpu \"X\"\n\n  lode 0.6\n", "line 3: no such statement about a GPU: 'lode'");
	wrong("  load 0.6\n", "line 1: an indented line before the first gpu");
	wrong("gpu \"X\n", "line 1: a word is too long or a quote has no end");
	wrong("gpu \"X\"y\n", "line 1:");
	wrong("gpu\n", "line 1: a word is missing");
	wrong("gpu \"X\" x 17\n", "from 1 to 16");
	wrong("gpu \"X\" x 9\ngpu \"X\" x 9\n", "line 2: 16 GPUs at most");
	wrong("gpu \"X\" y\n", "line 1: not understood here: 'y'");
	wrong("strict_versions please\n", "line 1: not understood here");
	wrong("cuda 12\n", "line 1: a CUDA version");
	wrong("process_layout 4\n", "3, 2, 1 or 535");
	wrong("pids sideways\n", "pids offset N");
	wrong("gpu \"X\"\n  load 1.5\n", "a share of 0 to 1");
	wrong("gpu \"X\"\n  load -1\n", "a share of 0 to 1");
	wrong("gpu \"X\"\n  slow down clock 5\n", "line 2: slow thermal");
	wrong("gpu \"X\"\n  hang cuInit\n", "a call's name");
	wrong("gpu \"X\"\n  power idle 500 max 400\n", "idle <= limit <= max");
	wrong("gpu \"X\" x 2\n  uuid GPU-1\n", "not with x N");
	wrong("gpu \"X\"\n  uuid CPU-1\n", "starts with GPU-");
	wrong("gpu \"X\"\n  pci 83:00\n", "0000:83:00.0");
	wrong("gpu \"X\"\n  lost from soon\n", "a time such as");
}

static void test_overflow(void **state)
{
	char many[4096] = "gpu \"X\"\n";
	char nul[] = "gpu \"X\"\n\0";

	(void)state;
	wrong("gpu \"X\"\n  memory 99999999999999999999G\n", "line 2: a size");
	wrong("gpu \"X\"\n  memory -1\n", "line 2: a size");
	wrong("gpu \"X\"\n  memory 10G\n  used 11G\n", "more memory is reserved and used");
	wrong("gpu \"X\"\n  process 1 a memory 1000G\n", "hold more memory than it has");
	wrong("gpu \"X\"\n  process 1 a x 512\n  process 1 b\n", "too many processes");
	wrong("gpu \"X\"\n  process 4294967296 a\n", "a whole number");
	wrong("gpu \"X\"\n  lost from 99999999999s\n", "a time such as");
	for (int i = 0; i < 9; i++)
		memcpy(many + 8 + i * 11, "  load 0.1\n", 12);
	wrong(many, "line 10: too many load lines");
	assert_int_not_equal(scenario_parse(nul, sizeof(nul), &s, &e), 0);
}

static void test_shipped_files(void **state)
{
	struct io_dir d;
	const char *name;
	int n = 0, fd = open(SCENARIOS, O_RDONLY | O_DIRECTORY);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(io_dir_open(&d, fd, "."), 0);
	while ((name = io_dir_next(&d))) {
		char text[8192];
		ssize_t size = io_read(fd, name, text, sizeof(text));

		assert_true(size > 0);
		if (parse(text))
			fail_msg("%s: %s", name, e.text);
		assert_true(s.n_devices > 0);
		n++;
	}
	io_dir_close(&d);
	assert_true(n >= 18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),    cmocka_unit_test(test_driver),
		cmocka_unit_test(test_device),   cmocka_unit_test(test_several),
		cmocka_unit_test(test_mig),      cmocka_unit_test(test_wrong_lines),
		cmocka_unit_test(test_overflow), cmocka_unit_test(test_shipped_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
