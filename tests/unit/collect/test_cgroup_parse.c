/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include "collect/cgroup.h"

#include <errno.h>

static const char mounts_v2[] = "30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n";

static int find(const char *groups, const char *mounts, struct cgroup_where *w)
{
	memset(w, 0, sizeof(*w));
	return cgroup_find(groups, strlen(groups), mounts, strlen(mounts), w);
}

static void finds_v2(void **s)
{
	struct cgroup_where w;

	(void)s;
	assert_int_equal(find("0::/a/b\n", mounts_v2, &w), 0);
	for (int i = 0; i < CGROUP_PARTS; i++) {
		assert_int_equal(w.at[i].version, 2);
		assert_string_equal(w.at[i].dir, "sys/fs/cgroup/a/b");
		assert_int_equal(w.at[i].top, strlen("sys/fs/cgroup"));
		assert_false(w.at[i].above);
	}
	assert_string_equal(cgroup_name(&w), "/a/b");
	assert_int_equal(find("0::/\n", mounts_v2, &w), 0);
	assert_string_equal(w.at[CGROUP_CPU].dir, "sys/fs/cgroup");
	assert_int_equal(find("0::/with:colon and blank\n", mounts_v2, &w), 0);
	assert_string_equal(w.at[CGROUP_CPU].dir, "sys/fs/cgroup/with:colon and blank");
	assert_int_equal(find("0::/gone (deleted)\n", mounts_v2, &w), -ENOENT);
	assert_int_equal(find("0::/a\n", "", &w), -ENOENT);
	assert_int_equal(find("", mounts_v2, &w), -ENOENT);
	assert_int_equal(find("0::relative\n0\n:\n0:\n", mounts_v2, &w), -ENOENT);
}

/* A controller that v1 has is not v2's, also when its mount cannot be seen. */
static void finds_hybrid(void **s)
{
	struct cgroup_where w;

	(void)s;
	assert_int_equal(find("5:memory:/m\n4:cpu,cpuacct:/c\n1:name=systemd:/x\n0::/u\n",
			      "1 0 0:1 / /cg/u rw - cgroup2 none rw\n"
			      "2 0 0:2 / /cg/cpu rw - cgroup none rw,cpuacct,cpu\n"
			      "3 0 0:3 / /cg/cpuset rw - cgroup none rw,cpuset\n",
			      &w),
			 0);
	assert_string_equal(w.at[CGROUP_CPU].dir, "cg/cpu/c");
	assert_string_equal(w.at[CGROUP_CPUACCT].dir, "cg/cpu/c");
	assert_int_equal(w.at[CGROUP_CPU].version, 1);
	assert_int_equal(w.at[CGROUP_MEMORY].version, 0);
	assert_string_equal(w.at[CGROUP_CPUSET].dir, "cg/u/u");
	assert_int_equal(w.at[CGROUP_CPUSET].version, 2);
}

static void placed(const char *path, const char *root, const char *dir, bool above)
{
	char groups[128], mounts[128];
	struct cgroup_where w;
	int r;

	snprintf(groups, sizeof(groups), "0::%s\n", path);
	snprintf(mounts, sizeof(mounts), "1 0 0:1 %s /cg rw - cgroup2 none rw\n", root);
	r = find(groups, mounts, &w);
	assert_int_equal(r, dir ? 0 : -ENOENT);
	if (!dir)
		return;
	assert_string_equal(w.at[CGROUP_CPU].dir, dir);
	assert_int_equal(w.at[CGROUP_CPU].above, above);
}

/* The path is relative to the root of the mount. */
static void mount_roots(void **s)
{
	(void)s;
	placed("/docker/4f", "/docker/4f", "cg", false);
	placed("/docker/4f/x", "/docker/4f", "cg/x", false);
	placed("/docker/4f", "/docker", "cg/4f", false);
	placed("/docker/4f", "/docker/4", NULL, false); /* not a whole name */
	placed("/docker", "/docker/4f", NULL, false);
	placed("/", "/", "cg", false);
	placed("/../b", "/", NULL, false);
	placed("/../b/c", "/..", "cg/b/c", false);
	placed("/../..", "/../..", "cg", false);
	placed("/../../b", "/..", NULL, false);
	placed("/", "/../..", "cg", true);
	placed("/a", "/..", "cg", true);
	placed("/a", "/../c", NULL, false);
	placed("/a/../../b", "/", NULL, false);
	placed("/a/..", "/", NULL, false);
	placed("/..a", "/", "cg/..a", false); /* a name that only begins like one */
}

static void best_mount(void **s)
{
	struct cgroup_where w;

	(void)s;
	assert_int_equal(find("0::/a/b\n",
			      "1 0 0:1 /a /part rw - cgroup2 none rw\n"
			      "2 0 0:1 / /all rw - cgroup2 none rw\n"
			      "3 0 0:1 /../.. /above rw - cgroup2 none rw\n",
			      &w),
			 0);
	assert_string_equal(w.at[CGROUP_CPU].dir, "all/a/b");
}

/* One that shows the group beats one that shows only what is above, in either order. */
static void best_is_its_own(void **s)
{
	struct cgroup_where w;

	(void)s;
	assert_int_equal(find("0::/\n",
			      "3 0 0:1 /.. /above rw - cgroup2 none rw\n"
			      "2 0 0:1 / /own rw - cgroup2 none rw\n",
			      &w),
			 0);
	assert_string_equal(w.at[CGROUP_CPU].dir, "own");
	assert_int_equal(find("0::/../a/b\n",
			      "3 0 0:1 /../.. /above rw - cgroup2 none rw\n"
			      "2 0 0:1 /../a/b /own rw - cgroup2 none rw\n",
			      &w),
			 0);
	assert_string_equal(w.at[CGROUP_CPU].dir, "own");
}

static void long_path(void **s)
{
	char groups[2 * CGROUP_PATH];
	struct cgroup_where w;

	(void)s;
	memset(groups, 'x', sizeof(groups));
	memcpy(groups, "0::/", 4);
	groups[CGROUP_PATH + 2] = '\n'; /* 1023 bytes of path fit, but not behind the mount point */
	groups[CGROUP_PATH + 3] = '\0';
	assert_int_equal(find(groups, mounts_v2, &w), -ENOENT);
	groups[900] = '\n';
	groups[901] = '\0';
	assert_int_equal(find(groups, mounts_v2, &w), 0);
}

static void climbs(void **s)
{
	char dir[] = "sys/fs/cgroup/a/b";
	size_t top = strlen("sys/fs/cgroup");

	(void)s;
	assert_true(cgroup_up(dir, top));
	assert_string_equal(dir, "sys/fs/cgroup/a");
	assert_true(cgroup_up(dir, top));
	assert_string_equal(dir, "sys/fs/cgroup");
	assert_false(cgroup_up(dir, top));
	assert_string_equal(dir, "sys/fs/cgroup");
}

static int64_t quota(const char *text)
{
	int64_t v;

	return cgroup_quota_parse(text, strlen(text), &v) < 0 ? -2 : v;
}

static int64_t kib(const char *text)
{
	int64_t v;

	return cgroup_bytes_parse(text, strlen(text), &v) < 0 ? -2 : v;
}

static void limits(void **s)
{
	(void)s;
	assert_int_equal(quota("max 100000\n"), -1);
	assert_int_equal(quota("150000 100000\n"), 1500);
	assert_int_equal(quota("66667 100000\n"), 667);
	assert_int_equal(quota("1000 1000000\n"), 1);
	assert_int_equal(quota(""), -2);
	assert_int_equal(quota("max\n"), -2);
	assert_int_equal(quota("5 0\n"), -2);
	assert_int_equal(quota("-5 100\n"), -2);
	assert_int_equal(quota("9223372036854775807 1\n"), -1); /* no machine has that many cores */
	assert_int_equal(cgroup_quota_v1(-1, 100000), -1);
	assert_int_equal(cgroup_quota_v1(125000, 50000), 2500);
	assert_int_equal(cgroup_quota_v1(1, 0), -1);
	assert_int_equal(kib("max\n"), -1);
	assert_int_equal(kib("4294967296\n"), 4194304);
	assert_int_equal(kib("9223372036854771712\n"), -1);
	assert_int_equal(kib("9223372036854710272\n"), -1); /* pages of 64 KiB */
	assert_int_equal(kib("18446744073709551615\n"), -1);
	assert_int_equal(kib("0\n"), 0);
	assert_int_equal(kib("x\n"), -2);
	assert_int_equal(kib(""), -2);
}

static void cpu_stat(void **s)
{
	static const char v2[] = "usage_usec 107\nuser_usec 73\nsystem_usec 33\nnr_periods 5\n"
				 "nr_throttled 4\nthrottled_usec 3\n";
	static const char v1[] = "nr_periods 5\nnr_throttled 4\nthrottled_time 3\n";
	struct cgroup_cpu_stat c = { 0 };

	(void)s;
	assert_int_equal(cgroup_cpu_stat_parse(v2, sizeof(v2) - 1, &c), 0);
	assert_int_equal(c.usage_ns, 107000);
	assert_int_equal(c.periods, 5);
	assert_int_equal(c.throttled, 4);
	assert_int_equal(c.throttled_ns, 3000);
	assert_int_equal(cgroup_cpu_stat_parse(v1, sizeof(v1) - 1, &c), 0);
	assert_int_equal(c.usage_ns, -1);
	assert_int_equal(c.throttled_ns, 3);
	assert_int_equal(cgroup_cpu_stat_parse("usage_usec 9223372036854775807\n", 31, &c), 0);
	assert_int_equal(c.usage_ns, -1); /* would not fit */
	assert_int_equal(cgroup_cpu_stat_parse("nothing 1\n", 10, &c), -EINVAL);
	assert_int_equal(cgroup_cpu_stat_parse("nr_periods 5", 12, &c), -EINVAL); /* cut */
}

static void memory_stat(void **s)
{
	static const char v1[] =
	    "cache 1024\nrss 2048\npgmajfault 1\nhierarchical_memory_limit 4096\n"
	    "total_cache 10240\ntotal_rss 20480\ntotal_pgmajfault 10\n";
	static const char v2[] = "anon 2048\nfile 1024\nanon_thp 9\nfile_mapped 9\npgmajfault 1\n"
				 "workingset_refault_anon 3\nworkingset_refault_file 4\n";
	struct cgroup_memory_stat m;

	(void)s;
	assert_int_equal(cgroup_memory_stat_parse(v1, sizeof(v1) - 1, &m), 0);
	assert_int_equal(m.anon_kib, 20);
	assert_int_equal(m.file_kib, 10);
	assert_int_equal(m.swap_kib, -1);
	assert_int_equal(m.major_faults, 10);
	assert_int_equal(m.refaults, -1);
	assert_true(m.has_limit);
	assert_int_equal(m.limit_kib, 4);
	assert_int_equal(cgroup_memory_stat_parse(v2, sizeof(v2) - 1, &m), 0);
	assert_int_equal(m.anon_kib, 2);
	assert_int_equal(m.file_kib, 1);
	assert_int_equal(m.refaults, 7);
	assert_false(m.has_limit);
	assert_int_equal(cgroup_memory_stat_parse("workingset_refault 5\n", 21, &m), 0);
	assert_int_equal(m.refaults, 5);
	assert_int_equal(m.anon_kib, -1);
	assert_int_equal(cgroup_memory_stat_parse("", 0, &m), -EINVAL);
}

static void events(void **s)
{
	static const char v2[] = "low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\n";
	static const char v1[] = "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n";
	struct cgroup_events e;

	(void)s;
	assert_int_equal(cgroup_events_parse(v2, sizeof(v2) - 1, &e), 0);
	assert_int_equal(e.limit_hits, 2);
	assert_int_equal(e.oom_kills, 4);
	assert_int_equal(cgroup_events_parse(v1, sizeof(v1) - 1, &e), 0);
	assert_int_equal(e.oom_kills, 5);
	assert_int_equal(e.limit_hits, -1);
	assert_int_equal(cgroup_events_parse("oom_kill_disable 0\nunder_oom 0\n", 31, &e), -EINVAL);
}

static void owner(void **s)
{
	static const pid_t job[] = { 30, 10, 20 }, us[] = { 5, 6 };
	static const pid_t all[] = { 10, 20, 30 }, some[] = { 20 }, with_us[] = { 5, 10 },
			   stranger[] = { 10, 99 }, only_us[] = { 5, 6 }, outside[] = { 10, 0 };

	(void)s;
	assert_int_equal(cgroup_owner(all, 3, job, 3, us, 2), CGROUP_OWN);
	assert_int_equal(cgroup_owner(some, 1, job, 3, us, 2), CGROUP_OWN);
	assert_int_equal(cgroup_owner(with_us, 2, job, 3, us, 2), CGROUP_OWN_WITH_US);
	assert_int_equal(cgroup_owner(stranger, 2, job, 3, us, 2), CGROUP_SHARED);
	assert_int_equal(cgroup_owner(only_us, 2, job, 3, us, 2), CGROUP_SHARED);
	assert_int_equal(cgroup_owner(outside, 2, job, 3, us, 2), CGROUP_SHARED);
	assert_int_equal(cgroup_owner(NULL, 0, job, 3, us, 2), CGROUP_SHARED);
	assert_true(cgroup_is_own(with_us, 2, job, 3, us, 2));
	assert_false(cgroup_is_own(stranger, 2, job, 3, us, 2));
}

static void procs(void **s)
{
	pid_t pids[2];

	(void)s;
	assert_int_equal(cgroup_procs_parse("10\n20\n0\n", 8, pids, 2), 3);
	assert_int_equal(pids[0], 10);
	assert_int_equal(pids[1], 20);
	assert_int_equal(cgroup_procs_parse("", 0, pids, 2), 0);
	assert_int_equal(cgroup_procs_parse("10\nx\n", 5, pids, 2), -EINVAL);
	assert_int_equal(cgroup_procs_parse("99999999999\n", 12, pids, 2), -EINVAL);
}

static void torment_find(const char *text, size_t n)
{
	struct cgroup_where w;

	(void)cgroup_find(text, n, mounts_v2, sizeof(mounts_v2) - 1, &w);
	if (cgroup_find("0::/a\n1:cpu:/b\n", 15, text, n, &w) == 0)
		assert_true(strlen(w.at[CGROUP_UNIFIED].dir) >= w.at[CGROUP_UNIFIED].top);
}

static void torment_texts(const char *text, size_t n)
{
	struct cgroup_memory_stat m;
	struct cgroup_cpu_stat c;
	struct cgroup_events e;
	int64_t v;

	(void)cgroup_memory_stat_parse(text, n, &m);
	(void)cgroup_cpu_stat_parse(text, n, &c);
	(void)cgroup_events_parse(text, n, &e);
	(void)cgroup_quota_parse(text, n, &v);
	(void)cgroup_bytes_parse(text, n, &v);
}

static void torn(void **s)
{
	(void)s;
	rig_torment("4:memory:/batch/056a\n2:cpu,cpuacct:/docker/4f0c\n0::/u.slice\n",
		    torment_find);
	rig_torment("30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n"
		    "32 31 0:29 /b /cg/cpu rw - cgroup cgroup rw,cpu\n",
		    torment_find);
	rig_torment("150000 100000\nusage_usec 5\nmax 3\noom_kill 3\nanon 5\ntotal_rss 5\n",
		    torment_texts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_v2),        cmocka_unit_test(finds_hybrid),
		cmocka_unit_test(mount_roots),     cmocka_unit_test(best_mount),
		cmocka_unit_test(best_is_its_own), cmocka_unit_test(long_path),
		cmocka_unit_test(climbs),          cmocka_unit_test(limits),
		cmocka_unit_test(cpu_stat),        cmocka_unit_test(memory_stat),
		cmocka_unit_test(events),          cmocka_unit_test(owner),
		cmocka_unit_test(procs),           cmocka_unit_test(torn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
