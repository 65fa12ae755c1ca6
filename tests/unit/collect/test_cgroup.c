/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include "collect/cgroup.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

enum { JOB = 4242 };

struct want {
	enum metric_id metric;
	int64_t raw;
};

/* These samples of the group and no others. */
static void check(const struct rig *r, uint32_t id, const struct want *want, size_t n)
{
	size_t of_group = 0;

	for (size_t i = 0; i < n; i++) {
		if (rig_get(r, want[i].metric, id) != want[i].raw)
			fail_msg("%s is %lld, not %lld", metrics[want[i].metric].name,
				 (long long)rig_get(r, want[i].metric, id), (long long)want[i].raw);
	}
	for (size_t i = 0; i < r->f.samples.n; i++)
		of_group += r->f.samples.v[i].entity == id;
	assert_int_equal(of_group, n);
}

#define CHECK(r, id, want) check(r, id, want, sizeof(want) / sizeof((want)[0]))

static void nested_v2(void **s)
{
	static const struct want t0[] = {
		{ M_CG_CPU, 107842897000 },
		{ M_CG_CPU_QUOTA, 1500 },
		{ M_CG_CPU_PERIODS, 1204 },
		{ M_CG_CPU_THROTTLED_N, 310 },
		{ M_CG_CPU_THROTTLED, 45112870000 },
		{ M_CG_CPUSET, 5 },
		{ M_CG_MEM_USED, 3145728 },
		{ M_CG_MEM_ANON, 2097152 },
		{ M_CG_MEM_FILE, 1024 },
		{ M_CG_MEM_LIMIT, 4194304 },
		{ M_CG_MEM_SWAP, 4 },
		{ M_CG_MEM_LIMIT_HITS, 118 },
		{ M_CG_MEM_OOM_KILLS, 1 },
		{ M_CG_MEM_MAJOR_FAULTS, 15 },
		{ M_CG_MEM_REFAULTS, 500 },
		{ M_CG_PSI_CPU_SOME, 100 },
		{ M_CG_PSI_MEM_SOME, 300 },
		{ M_CG_PSI_MEM_FULL, 400 },
		{ M_CG_PSI_IO_SOME, 500 },
		{ M_CG_PSI_IO_FULL, 600 },
	};
	struct rig r;
	uint32_t id;

	(void)s;
	rig_open(&r, &cgroup_collector, "cgroup-v2-nested", JOB);
	id = rig_life(&r, LIFE_BORN, "/pod.slice/ctr/job");
	assert_true(id);
	CHECK(&r, id, t0);
	assert_int_equal(r.f.gaps.n + r.f.events.n, 0);
	assert_int_equal(rig_get(&r, M_JOB_CORES_AFFINITY, ID_JOB), 4);
	assert_int_equal(rig_get(&r, M_JOB_CORES_ALLOWED, ID_JOB), 1500);
	rig_close(&r);
}

/* The limit above is halved, two of the job were killed. */
static void events_v2(void **s)
{
	struct rig r;
	uint32_t id;
	const struct event *e;

	(void)s;
	rig_open(&r, &cgroup_collector, "cgroup-v2-nested", JOB);
	id = rig_life(&r, LIFE_BORN, "/pod.slice/ctr/job");
	rig_tick(&r);
	e = rig_event(&r, EVENT_LIMIT);
	assert_non_null(e);
	assert_int_equal(e->entity, id);
	assert_true(near(e->value, 2147483648.0, 1e-9));
	assert_string_equal(frame_text(&r.f, e->text),
			    "memory limit changed from 4 to 2 GiB in /sys/fs/cgroup/pod.slice");
	e = rig_event(&r, EVENT_OOM_KILL);
	assert_non_null(e);
	assert_int_equal(e->entity, id);
	assert_true(near(e->value, 2, 1e-9));
	assert_int_equal(rig_get(&r, M_CG_MEM_OOM_KILLS, id), 3);
	assert_int_equal(rig_get(&r, M_CG_CPU_PERIODS, id), 1214);
	assert_int_equal(r.f.events.n, 2);
	rig_close(&r);
}

static void moved_and_ended(void **s)
{
	struct rig r;
	uint32_t id, other;
	const struct event *e;

	(void)s;
	rig_open(&r, &cgroup_collector, "cgroup-v2-nested", JOB);
	id = rig_life(&r, LIFE_BORN, "/pod.slice/ctr/job");
	rig_tick(&r);
	rig_tick(&r);
	assert_int_equal(rig_life(&r, LIFE_GONE, "/pod.slice/ctr/job"), id);
	other = rig_life(&r, LIFE_BORN, "/pod.slice/other");
	assert_true(other && other != id);
	assert_int_equal(rig_get(&r, M_CG_CPU, other), 5000000);
	assert_int_equal(rig_get(&r, M_CG_CPU_QUOTA, other), 1000);
	assert_int_equal(rig_get(&r, M_CG_CPU_PERIODS, other), 7);
	assert_int_equal(rig_get(&r, M_CG_MEM_LIMIT, other), 2097152);
	assert_int_equal(rig_gap(&r, M_CG_MEM_MAJOR_FAULTS, other), GAP_NOT_SUPPORTED);
	e = rig_event(&r, EVENT_LIMIT);
	assert_non_null(e);
	assert_string_equal(
	    frame_text(&r.f, e->text),
	    "cpu quota changed from 1.5 to 1 cores in /sys/fs/cgroup/pod.slice/other");
	assert_null(rig_event(&r, EVENT_OOM_KILL)); /* fewer than there were: another group */
	assert_int_equal(rig_get(&r, M_JOB_CORES_ALLOWED, ID_JOB), 1000);

	rig_tick(&r); /* its first process ended, the group lives on */
	assert_int_equal(r.f.lives.n, 0);
	assert_int_equal(rig_get(&r, M_CG_CPU, other), 5000000);
	assert_int_equal(rig_event(&r, EVENT_OOM_KILL)->entity, other);
	assert_int_equal(rig_has(&r, M_JOB_CORES_AFFINITY, ID_JOB), 0);
	assert_int_equal(rig_get(&r, M_JOB_CORES_ALLOWED, ID_JOB), 1000);

	rig_tick(&r); /* its number is a stranger's */
	assert_int_equal(r.f.lives.n, 0);
	assert_int_equal(rig_get(&r, M_CG_CPU, other), 5000000);
	assert_int_equal(rig_has(&r, M_JOB_CORES_AFFINITY, ID_JOB), 0);
	rig_close(&r);
}

static void v1(void **s)
{
	static const struct want t0[] = {
		{ M_CG_CPU, 112357534449 },
		{ M_CG_CPU_QUOTA, 2500 },
		{ M_CG_CPU_PERIODS, 1204 },
		{ M_CG_CPU_THROTTLED_N, 310 },
		{ M_CG_CPU_THROTTLED, 45112870331 },
		{ M_CG_CPUSET, 3 },
		{ M_CG_MEM_USED, 878907 },
		{ M_CG_MEM_ANON, 781250 },
		{ M_CG_MEM_FILE, 87891 },
		{ M_CG_MEM_LIMIT, 1048576 },
		{ M_CG_MEM_SWAP, 8 },
		{ M_CG_MEM_LIMIT_HITS, 77 },
		{ M_CG_MEM_OOM_KILLS, 0 },
		{ M_CG_MEM_MAJOR_FAULTS, 15 },
		{ M_CG_MEM_REFAULTS, 490 },
	};
	struct rig r;
	uint32_t id;

	(void)s;
	rig_open(&r, &cgroup_collector, "cgroup-v1", JOB);
	id = rig_life(&r, LIFE_BORN, "/jobs/a");
	CHECK(&r, id, t0);
	assert_int_equal(rig_gap(&r, M_CG_PSI_CPU_SOME, id), GAP_NOT_SUPPORTED);
	assert_int_equal(r.f.gaps.n, 5);
	assert_int_equal(rig_get(&r, M_JOB_CORES_ALLOWED, ID_JOB), 2500);
	rig_tick(&r); /* "/jobs/a (deleted)": the last known one stays */
	assert_int_equal(r.f.lives.n, 0);
	assert_int_equal(rig_get(&r, M_CG_CPU, id), 112357535449);
	rig_close(&r);
}

static void hybrid(void **s)
{
	static const struct want t0[] = {
		{ M_CG_CPUSET, 2 },       { M_CG_MEM_USED, 3492 },       { M_CG_MEM_ANON, 1732 },
		{ M_CG_MEM_FILE, 400 },   { M_CG_MEM_MAJOR_FAULTS, 15 }, { M_CG_PSI_CPU_SOME, 7 },
		{ M_CG_PSI_MEM_SOME, 8 }, { M_CG_PSI_MEM_FULL, 9 },      { M_CG_PSI_IO_SOME, 10 },
		{ M_CG_PSI_IO_FULL, 11 },
	};
	struct rig r;
	uint32_t id;

	(void)s;
	rig_open(&r, &cgroup_collector, "cgroup-hybrid", JOB);
	id = rig_life(&r, LIFE_BORN, "/batch/056a");
	CHECK(&r, id, t0);
	/* the root's CPU time is not the job's */
	assert_int_equal(rig_gap(&r, M_CG_CPU, id), GAP_NOT_SUPPORTED);
	assert_int_equal(rig_gap(&r, M_CG_MEM_OOM_KILLS, id), GAP_NOT_SUPPORTED);
	/* no quota, no limit: absent, and no gap */
	assert_int_equal(rig_gap(&r, M_CG_CPU_QUOTA, id), -1);
	assert_int_equal(rig_gap(&r, M_CG_MEM_LIMIT, id), -1);
	assert_int_equal(rig_get(&r, M_JOB_CORES_ALLOWED, ID_JOB), 2000);
	rig_close(&r);
}

static void containers(void **s)
{
	static const struct want host_path[] = {
		{ M_CG_CPU, 42 },
		{ M_CG_CPU_QUOTA, 6000 },
		{ M_CG_CPU_PERIODS, 5 },
		{ M_CG_CPU_THROTTLED_N, 4 },
		{ M_CG_CPU_THROTTLED, 3 },
		{ M_CG_MEM_USED, 1024 },
		{ M_CG_MEM_ANON, 1 },
		{ M_CG_MEM_FILE, 2 },
		{ M_CG_MEM_LIMIT, 2097152 },
		{ M_CG_MEM_SWAP, 8 },
		{ M_CG_MEM_OOM_KILLS, 1 },
		{ M_CG_MEM_MAJOR_FAULTS, 3 },
		{ M_CG_MEM_REFAULTS, 5 },
	};
	static const struct want own_namespace[] = {
		{ M_CG_CPU, 77000 },          { M_CG_CPU_QUOTA, 333 },
		{ M_CG_CPU_PERIODS, 5 },      { M_CG_CPU_THROTTLED_N, 4 },
		{ M_CG_CPU_THROTTLED, 3000 }, { M_CG_CPUSET, 64 },
		{ M_CG_MEM_USED, 524284 },    { M_CG_MEM_ANON, 400 },
		{ M_CG_MEM_FILE, 4 },         { M_CG_MEM_LIMIT, 524288 },
		{ M_CG_MEM_SWAP, 0 },         { M_CG_MEM_LIMIT_HITS, 4 },
		{ M_CG_MEM_OOM_KILLS, 0 },    { M_CG_MEM_MAJOR_FAULTS, 2 },
		{ M_CG_MEM_REFAULTS, 5 },
	};
	static const struct want above[] = {
		{ M_CG_CPU_QUOTA, 2000 },
		{ M_CG_CPU_PERIODS, 8 },
		{ M_CG_CPU_THROTTLED_N, 7 },
		{ M_CG_CPU_THROTTLED, 6000 },
	};
	struct rig r;
	uint32_t id;

	(void)s;
	rig_open(&r, &cgroup_collector, "container-v1", JOB);
	id = rig_life(&r, LIFE_BORN, "/docker/4f0c");
	CHECK(&r, id, host_path);
	/* the limit is above what can be seen, and so are its hits */
	assert_int_equal(rig_gap(&r, M_CG_MEM_LIMIT_HITS, id), GAP_NOT_SUPPORTED);
	assert_int_equal(rig_get(&r, M_JOB_CORES_ALLOWED, ID_JOB), 6000);
	rig_close(&r);

	rig_open(&r, &cgroup_collector, "container-ns", JOB);
	CHECK(&r, rig_life(&r, LIFE_BORN, "/"), own_namespace);
	assert_int_equal(rig_get(&r, M_JOB_CORES_ALLOWED, ID_JOB), 333);
	rig_close(&r);

	rig_open(&r, &cgroup_collector, "container-ns-outside", JOB);
	id = rig_life(&r, LIFE_BORN, "/");
	CHECK(&r, id, above);
	assert_int_equal(rig_gap(&r, M_CG_CPU, id), GAP_NOT_SUPPORTED);
	/* no limit above does not mean that there is none between */
	assert_int_equal(rig_gap(&r, M_CG_MEM_LIMIT, id), GAP_NOT_SUPPORTED);
	assert_int_equal(rig_get(&r, M_JOB_CORES_ALLOWED, ID_JOB), 2000);
	rig_close(&r);
}

static void none_of_its_own(void **s)
{
	static const struct want root[] = { { M_CG_CPUSET, 4 } };
	struct rig r;
	uint32_t id;

	(void)s;
	rig_open(&r, &cgroup_collector, "cgroup-root", JOB);
	id = rig_life(&r, LIFE_BORN, "/");
	CHECK(&r, id, root);
	assert_int_equal(rig_gap(&r, M_CG_CPU, id), GAP_NOT_SUPPORTED);
	assert_int_equal(rig_gap(&r, M_CG_PSI_CPU_SOME, id), GAP_NOT_SUPPORTED);
	assert_int_equal(rig_gap(&r, M_CG_CPU_QUOTA, id), -1);
	rig_close(&r);

	rig_open(&r, &cgroup_collector, "no-cgroup", JOB);
	assert_int_equal(r.last, 0);
	assert_int_equal(r.f.lives.n, 0);
	assert_int_equal(rig_gap(&r, M_CG_CPU_QUOTA, 0), GAP_NOT_SUPPORTED);
	assert_int_equal(rig_gap(&r, M_CG_PSI_IO_FULL, 0), GAP_NOT_SUPPORTED);
	assert_int_equal(rig_get(&r, M_JOB_CORES_AFFINITY, ID_JOB), 1);
	assert_int_equal(rig_get(&r, M_JOB_CORES_ALLOWED, ID_JOB), 1000);
	rig_close(&r);
}

/* Affinity counts the CPUs there are; the whole machine has no first process. */
static void machine(void **s)
{
	struct rig r;

	(void)s;
	rig_open(&r, &cgroup_collector, "host-plain", JOB);
	assert_int_equal(rig_get(&r, M_JOB_CORES_AFFINITY, ID_JOB), 2);
	assert_int_equal(rig_get(&r, M_JOB_CORES_ALLOWED, ID_JOB), 2000);
	rig_close(&r);
	rig_open(&r, &cgroup_collector, "host-plain", 0);
	assert_int_equal(rig_has(&r, M_JOB_CORES_AFFINITY, ID_JOB), 0);
	assert_int_equal(rig_get(&r, M_JOB_CORES_ALLOWED, ID_JOB), 2000);
	rig_close(&r);
	rig_open(&r, &cgroup_collector, "host-plain", 77); /* no such process */
	assert_int_equal(rig_gap(&r, M_JOB_CORES_AFFINITY, ID_JOB), GAP_LOST);
	assert_int_equal(rig_gap(&r, M_JOB_CORES_ALLOWED, ID_JOB), GAP_LOST);
	assert_int_equal(rig_has(&r, M_JOB_CORES_ALLOWED, ID_JOB), 0);
	rig_close(&r);
}

/* OOM kills every tick, the rest once a second. */
static void pace(void **s)
{
	struct rig r;

	(void)s;
	rig_open(&r, &cgroup_collector, "cgroup-v2-nested", JOB);
	r.c.slow = false;
	assert_true(host_advance(&r.host));
	frame_begin(&r.f, 0, 0);
	r.c.boot_ns += 100000000;
	assert_int_equal(cgroup_collector.read(&r.c, r.state, &r.f), 0);
	assert_int_equal(r.f.samples.n, 1);
	assert_int_equal(rig_get(&r, M_CG_MEM_OOM_KILLS, ID_FIRST_FREE), 3);
	assert_non_null(rig_event(&r, EVENT_OOM_KILL));
	assert_null(rig_event(&r, EVENT_LIMIT));
	frame_begin(&r.f, 0, 0);
	r.c.boot_ns += 100000000;
	assert_int_equal(cgroup_collector.read(&r.c, r.state, &r.f), 0);
	assert_int_equal(r.f.samples.n + r.f.events.n, 0);
	frame_begin(&r.f, 0, 0);
	r.c.boot_ns += 800000000;
	r.c.thrift = 2; /* over budget: without the dear ones */
	assert_int_equal(cgroup_collector.read(&r.c, r.state, &r.f), 0);
	assert_non_null(rig_event(&r, EVENT_LIMIT));
	assert_int_equal(rig_has(&r, M_CG_MEM_USED, ID_FIRST_FREE), 1);
	assert_int_equal(rig_has(&r, M_CG_MEM_ANON, ID_FIRST_FREE), 0);
	rig_close(&r);
}

/* A root made on the spot: DIR/cg is the mount point, DIR/cg/j the job's group. */
struct made {
	char dir[64];
};

static void made_put(const struct made *m, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", m->dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void made_dir(const struct made *m, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", m->dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void made_drop(const struct made *m, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", m->dir, name);
	assert_int_equal(remove(path), 0);
}

static void again(struct rig *r)
{
	rig_begin(r);
	assert_int_equal(cgroup_collector.read(&r->c, r->state, &r->f), 0);
}

/* A quota comes and goes; a file that cannot be read is not a group without a quota; and a group
 * that is removed is lost. */
static void comes_and_goes(void **s)
{
	struct made m = { "/tmp/spotter-cg-XXXXXX" };
	uint32_t id = ID_FIRST_FREE;
	struct rig r;

	(void)s;
	assert_non_null(mkdtemp(m.dir));
	made_dir(&m, "proc");
	made_dir(&m, "proc/self");
	made_dir(&m, "cg");
	made_dir(&m, "cg/j");
	made_put(&m, "proc/self/cgroup", "0::/j\n");
	made_put(&m, "proc/self/mountinfo", "1 0 0:1 / /cg rw - cgroup2 none rw\n");
	made_put(&m, "cg/j/cpu.stat",
		 "usage_usec 5\nnr_periods 1\nnr_throttled 1\nthrottled_usec 1\n");
	rig_open_at(&r, &cgroup_collector, m.dir, 0);
	assert_int_equal(rig_has(&r, M_CG_CPU_QUOTA, id), 0);
	assert_int_equal(rig_has(&r, M_CG_CPU_PERIODS, id), 0);

	made_put(&m, "cg/j/cpu.max", "50000 100000\n");
	again(&r);
	assert_int_equal(rig_get(&r, M_CG_CPU_QUOTA, id), 500);
	assert_int_equal(rig_get(&r, M_CG_CPU_PERIODS, id), 1);
	assert_string_equal(frame_text(&r.f, rig_event(&r, EVENT_LIMIT)->text),
			    "cpu quota of 0.5 cores set in /cg/j");
	assert_true(near(rig_event(&r, EVENT_LIMIT)->value, 0.5, 1e-9));

	made_drop(&m, "cg/j/cpu.max");
	made_dir(&m, "cg/j/cpu.max"); /* EISDIR */
	again(&r);
	assert_int_equal(rig_gap(&r, M_CG_CPU_QUOTA, id), GAP_LOST);
	assert_null(rig_event(&r, EVENT_LIMIT));
	made_drop(&m, "cg/j/cpu.max");
	made_put(&m, "cg/j/cpu.max", "50000 100000\n");
	again(&r);
	assert_int_equal(rig_gap(&r, M_CG_CPU_QUOTA, id), GAP_OVER);
	assert_int_equal(rig_get(&r, M_CG_CPU_QUOTA, id), 500);

	made_put(&m, "cg/j/cpu.max", "max 100000\n");
	again(&r);
	assert_string_equal(frame_text(&r.f, rig_event(&r, EVENT_LIMIT)->text),
			    "cpu quota of 0.5 cores removed");
	assert_int_equal(rig_gap(&r, M_CG_CPU_QUOTA, id),
			 GAP_LOST); /* its last value does not hold */

	made_drop(&m, "cg/j/cpu.max");
	made_drop(&m, "cg/j/cpu.stat");
	made_drop(&m, "cg/j");
	made_drop(&m, "proc/self/cgroup");
	again(&r);
	assert_int_equal(rig_gap(&r, M_CG_CPU, id), GAP_LOST);
	assert_int_equal(r.f.lives.n, 0);
	rig_close(&r);
	made_drop(&m, "cg");
	made_drop(&m, "proc/self/mountinfo");
	made_drop(&m, "proc/self");
	made_drop(&m, "proc");
	made_drop(&m, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nested_v2),
		cmocka_unit_test(events_v2),
		cmocka_unit_test(moved_and_ended),
		cmocka_unit_test(v1),
		cmocka_unit_test(hybrid),
		cmocka_unit_test(containers),
		cmocka_unit_test(none_of_its_own),
		cmocka_unit_test(machine),
		cmocka_unit_test(pace),
		cmocka_unit_test(comes_and_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
