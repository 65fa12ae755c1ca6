/* SPDX-License-Identifier: MIT
 *
 * The small files of the whole machine: loadavg, meminfo, vmstat, pressure.
 */
#include "rig.h"

#include "collect/load.h"
#include "collect/mem.h"
#include "collect/vmstat.h"

#include <errno.h>

static void load_parses(void **s)
{
	static const char *const bad[] = { "",
					   "0.12",
					   "0.12 0.05 0.03",
					   "0.12 0.05 0.03 ",
					   "x 1 2 3",
					   "-1.0 0 0 1/2 3",
					   "99999999999999999999 0 0 1/1 1" };
	struct load l = { { 7, 7, 7 } };

	(void)s;
	assert_int_equal(load_parse("0.12 0.05 10.03 1/98 8308\n", 26, &l), 0);
	assert_int_equal(l.avg[0], 12);
	assert_int_equal(l.avg[1], 5);
	assert_int_equal(l.avg[2], 1003);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(load_parse(bad[i], strlen(bad[i]), &l), -EINVAL);
	assert_int_equal(l.avg[2], 1003);
}

static void load_reads(void **s)
{
	struct rig r;

	(void)s;
	rig_open(&r, &load_collector, "host-plain", 0);
	assert_int_equal(rig_get(&r, M_LOAD_1, ID_HOST), 12);
	assert_int_equal(rig_get(&r, M_LOAD_5, ID_HOST), 5);
	assert_int_equal(rig_get(&r, M_LOAD_15, ID_HOST), 1003);
	rig_close(&r);
	rig_open(&r, &load_collector, "no-psi", 0);
	assert_int_equal(r.opened, -ENOENT);
	rig_close(&r);
}

static void mem_reads(void **s)
{
	static const struct {
		enum metric_id metric;
		int64_t kib;
	} want[] = {
		{ M_MEM_TOTAL, 65842108 },     { M_MEM_FREE, 12000000 },
		{ M_MEM_AVAILABLE, 40000000 }, { M_MEM_CACHED, 25000000 },
		{ M_MEM_BUFFERS, 100000 },     { M_MEM_SHMEM, 2500000 },
		{ M_MEM_ANON, 18000000 },      { M_MEM_SLAB_FREEABLE, 1500000 },
		{ M_MEM_DIRTY, 1234 },         { M_MEM_WRITEBACK, 56 },
		{ M_SWAP_TOTAL, 8388604 },     { M_SWAP_FREE, 8000000 },
	};
	struct rig r;

	(void)s;
	rig_open(&r, &mem_collector, "host-plain", 0);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_int_equal(rig_get(&r, want[i].metric, ID_HOST), want[i].kib);
	assert_int_equal(r.f.samples.n, MEM_KEYS);
	assert_int_equal(r.f.gaps.n, 0);
	rig_close(&r);
}

static void mem_without_available(void **s)
{
	struct rig r;

	(void)s;
	rig_open(&r, &mem_collector, "mem-no-available", 0);
	assert_int_equal(rig_get(&r, M_MEM_TOTAL, ID_HOST), 2054264);
	assert_int_equal(rig_get(&r, M_SWAP_TOTAL, ID_HOST), 0);
	assert_int_equal(rig_has(&r, M_MEM_AVAILABLE, ID_HOST), 0);
	assert_int_equal(rig_gap(&r, M_MEM_AVAILABLE, ID_HOST), GAP_NOT_SUPPORTED);
	assert_int_equal(rig_has(&r, M_MEM_DIRTY, ID_HOST), 0);
	assert_int_equal(r.f.samples.n, 8);
	rig_close(&r);
}

static void mem_torment(const char *text, size_t n)
{
	struct mem m = { { 0 } };

	if (mem_parse(text, n, &m) == 0)
		assert_true(m.kib[0] >= 0);
}

static void mem_bad(void **s)
{
	static const char *const bad[] = { "",
					   "MemTotal: 12 kB",
					   "MemTotal: kB\n",
					   "MemTotal 12 kB\n",
					   "MemTotal: 12\n",
					   "MemTotal: -12 kB\n",
					   "XMemTotal: 1 kB\n",
					   "MemTotal: 99999999999999999999 kB\n",
					   "MemFree: 5 kB\n",
					   ":\n: 1 kB\n" };
	struct mem m;

	(void)s;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(mem_parse(bad[i], strlen(bad[i]), &m), -EINVAL);
	rig_torment(
	    "MemTotal:       24682416 kB\nMemFree:        24156512 kB\nMemAvailable: 1 kB\n",
	    mem_torment);
}

static void vmstat_reads(void **s)
{
	struct rig r;

	(void)s;
	rig_open(&r, &vmstat_collector, "host-plain", 0);
	assert_int_equal(rig_get(&r, M_VM_SWAP_IN, ID_HOST), 20 * 4); /* pages of 4 KiB */
	assert_int_equal(rig_get(&r, M_VM_SWAP_OUT, ID_HOST), 97151 * 4);
	assert_int_equal(rig_get(&r, M_VM_FAULTS, ID_HOST), 4021498);
	assert_int_equal(rig_get(&r, M_VM_MAJOR_FAULTS, ID_HOST), 1390);
	assert_int_equal(rig_get(&r, M_VM_SCAN_DIRECT, ID_HOST), 600); /* without _throttle */
	assert_int_equal(rig_get(&r, M_VM_SCAN_KSWAPD, ID_HOST), 5000);
	assert_int_equal(rig_get(&r, M_VM_RECLAIMED, ID_HOST), 1234); /* without _anon and _file */
	assert_int_equal(rig_get(&r, M_VM_REFAULT_FILE, ID_HOST), 203959);
	assert_int_equal(rig_get(&r, M_VM_REFAULT_ANON, ID_HOST), 11);
	assert_int_equal(rig_get(&r, M_VM_ALLOC_STALLS, ID_HOST), 433);
	assert_int_equal(rig_get(&r, M_VM_OOM_KILLS, ID_HOST), 3);
	assert_int_equal(r.f.gaps.n, 0);
	rig_close(&r);
}

static void vmstat_old_names(void **s)
{
	struct rig r;

	(void)s;
	rig_open(&r, &vmstat_collector, "vmstat-4.18", 0);
	assert_int_equal(rig_get(&r, M_VM_REFAULT_FILE, ID_HOST), 777);
	assert_int_equal(rig_has(&r, M_VM_REFAULT_ANON, ID_HOST), 0);
	assert_int_equal(rig_gap(&r, M_VM_REFAULT_ANON, ID_HOST), GAP_NOT_SUPPORTED);
	assert_int_equal(rig_get(&r, M_VM_ALLOC_STALLS, ID_HOST), 18);
	assert_int_equal(rig_get(&r, M_VM_RECLAIMED, ID_HOST), 42);
	rig_close(&r);
	rig_open(&r, &vmstat_collector, "vmstat-3.10", 0);
	assert_int_equal(rig_get(&r, M_VM_RECLAIMED, ID_HOST), 4321);
	assert_int_equal(rig_get(&r, M_VM_SCAN_KSWAPD, ID_HOST), 432);
	assert_int_equal(rig_get(&r, M_VM_SCAN_DIRECT, ID_HOST), 65);
	assert_int_equal(rig_get(&r, M_VM_ALLOC_STALLS, ID_HOST), 12);
	assert_int_equal(rig_has(&r, M_VM_OOM_KILLS, ID_HOST), 0);
	assert_int_equal(rig_has(&r, M_VM_REFAULT_FILE, ID_HOST), 0);
	rig_close(&r);
}

static void vmstat_torment(const char *text, size_t n)
{
	struct vmstat v;

	(void)vmstat_parse(text, n, &v);
}

static void vmstat_bad(void **s)
{
	static const char huge[] = "pgsteal_kswapd 9223372036854775807\npgsteal_direct 5\n";
	struct vmstat v = { { 1 } };

	(void)s;
	assert_int_equal(vmstat_parse("", 0, &v), -EINVAL);
	assert_int_equal(vmstat_parse("pgfault\n", 8, &v), -EINVAL);
	assert_int_equal(vmstat_parse("pgfault 12", 10, &v), -EINVAL);
	assert_int_equal(vmstat_parse("pgfaults 12\nother 3\n", 20, &v), -EINVAL);
	assert_int_equal(v.value[0], 1);
	assert_int_equal(vmstat_parse(huge, sizeof(huge) - 1, &v), 0);
	assert_true(v.value[VMSTAT_RECLAIMED] == INT64_MAX);
	rig_torment(
	    "pswpin 0\npgscan_direct_normal 3\npgscan_direct_throttle 9\nallocstall_dma32 1\n",
	    vmstat_torment);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load_parses),      cmocka_unit_test(load_reads),
		cmocka_unit_test(mem_reads),        cmocka_unit_test(mem_without_available),
		cmocka_unit_test(mem_bad),          cmocka_unit_test(vmstat_reads),
		cmocka_unit_test(vmstat_old_names), cmocka_unit_test(vmstat_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
