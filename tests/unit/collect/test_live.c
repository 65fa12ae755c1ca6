/* SPDX-License-Identifier: MIT
 *
 * The collectors of the machine on the machine, against what the C library and the kernel's other
 * doors say of the same things; and without an allocation once they are warm.
 */
#include "rig.h"

#include "collect/cgroup.h"
#include "collect/cpu.h"
#include "collect/disk.h"
#include "collect/load.h"
#include "collect/mem.h"
#include "collect/mount.h"
#include "collect/net.h"
#include "collect/psi.h"
#include "collect/vmstat.h"

#include <sched.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

/* The test is linked so that all allocations pass here. */
static unsigned long allocations;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
	allocations++;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	allocations++;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	allocations++;
	return __real_realloc(p, n);
}

static void cpu(void **s)
{
	struct timespec idle;
	struct rig r;
	double all = 0, up;

	(void)s;
	rig_open_at(&r, &cpu_collector, NULL, 0);
	assert_int_equal(r.last, 0);
	assert_int_equal(rig_get(&r, M_CPU_ONLINE, ID_HOST), sysconf(_SC_NPROCESSORS_ONLN));
	for (size_t i = 0; i < r.f.samples.n; i++) {
		enum metric_id m = r.f.samples.v[i].metric;

		if (metrics[m].entity == ENTITY_HOST && metrics[m].unit == UNIT_SECONDS)
			all += metric_value(m, r.f.samples.v[i].raw);
	}
	/* All states together are the time the CPUs have been up: no column is missing or twice
	 * there. Plugging and stolen time that is not told keep it from being exact. */
	clock_gettime(CLOCK_MONOTONIC, &idle);
	up = (double)idle.tv_sec * (double)sysconf(_SC_NPROCESSORS_ONLN);
	assert_true(all > 0.8 * up - 5 && all < 1.2 * up + 5);
	assert_true(rig_get(&r, M_HOST_FORKS, ID_HOST) >= getpid() / 4);
	rig_close(&r);
}

static void memory_and_load(void **s)
{
	struct sysinfo info;
	double load[3];
	struct rig r;

	(void)s;
	assert_int_equal(sysinfo(&info), 0);
	rig_open_at(&r, &mem_collector, NULL, 0);
	assert_int_equal(rig_get(&r, M_MEM_TOTAL, ID_HOST),
			 (int64_t)(info.totalram * info.mem_unit / 1024));
	assert_int_equal(rig_get(&r, M_SWAP_TOTAL, ID_HOST),
			 (int64_t)(info.totalswap * info.mem_unit / 1024));
	rig_close(&r);
	rig_open_at(&r, &load_collector, NULL, 0);
	assert_int_equal(getloadavg(load, 3), 3);
	assert_true(load[2] - (double)rig_get(&r, M_LOAD_15, ID_HOST) / 100 < 0.2);
	rig_close(&r);
}

/* Touching new pages faults once each. */
static void faults(void **s)
{
	enum { PAGES = 4096 };
	long page = sysconf(_SC_PAGESIZE);
	struct rig r;
	int64_t before;
	char *p;

	(void)s;
	rig_open_at(&r, &vmstat_collector, NULL, 0);
	before = rig_get(&r, M_VM_FAULTS, ID_HOST);
	p = malloc((size_t)(PAGES * page));
	assert_non_null(p);
	for (long i = 0; i < PAGES; i++)
		((volatile char *)p)[i * page] = 1;
	rig_tick(&r);
	/* huge pages fault once for 512 */
	assert_true(rig_get(&r, M_VM_FAULTS, ID_HOST) - before >= PAGES / 512);
	free(p);
	rig_close(&r);
}

static void affinity(void **s)
{
	cpu_set_t set, one;
	struct rig r;
	int first = 0;

	(void)s;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	rig_open_at(&r, &cgroup_collector, NULL, getpid());
	assert_int_equal(rig_get(&r, M_JOB_CORES_AFFINITY, ID_JOB), CPU_COUNT(&set));
	assert_true(rig_get(&r, M_JOB_CORES_ALLOWED, ID_JOB) <= 1000 * CPU_COUNT(&set));
	while (!CPU_ISSET(first, &set))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	rig_tick(&r);
	assert_int_equal(rig_get(&r, M_JOB_CORES_AFFINITY, ID_JOB), 1);
	assert_true(rig_get(&r, M_JOB_CORES_ALLOWED, ID_JOB) <= 1000);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	rig_close(&r);
}

static void shm(void **s)
{
	struct statvfs v;
	struct rig r;
	uint32_t id;

	(void)s;
	rig_open_at(&r, &mount_collector, NULL, getpid());
	id = rig_life(&r, LIFE_BORN, "/dev/shm");
	if (!id || statvfs("/dev/shm", &v) < 0) {
		rig_close(&r);
		skip();
	}
	assert_int_equal(rig_get(&r, M_MOUNT_SIZE, id), (int64_t)(v.f_blocks * v.f_frsize / 1024));
	rig_tick(&r);
	assert_int_equal(r.f.lives.n, 0);
	assert_int_equal(rig_has(&r, M_MOUNT_SIZE, id), 1);
	rig_close(&r);
}

static void no_allocation(void **s)
{
	static const struct collector *const all[] = {
		&cpu_collector,  &mem_collector,   &vmstat_collector,
		&psi_collector,  &disk_collector,  &net_collector,
		&load_collector, &mount_collector, &cgroup_collector,
	};

	(void)s;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		unsigned long before;
		struct rig r;

		rig_open_at(&r, all[i], NULL, getpid());
		for (int k = 0; k < 3; k++)
			rig_tick(&r);
		before = allocations;
		for (int k = 0; r.opened == 0 && k < 20; k++)
			rig_tick(&r);
		if (allocations != before)
			fail_msg("%s allocates in read", all[i]->name);
		rig_close(&r);
	}
	assert_true(allocations > 0); /* they are counted at all */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu),    cmocka_unit_test(memory_and_load),
		cmocka_unit_test(faults), cmocka_unit_test(affinity),
		cmocka_unit_test(shm),    cmocka_unit_test(no_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
