/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "cli/scrub.h"

#define CHECK(fn, s, in, want)                              \
	({                                                  \
		auto_done(buf) struct buf out_ = { 0 };     \
		fn(s, in, strlen(in), &out_);               \
		assert_string_equal(buf_text(&out_), want); \
	})

static void cgroups_keep_their_shape(void **state)
{
	auto_done(scrub) struct scrub s = { 0 };

	(void)state;
	CHECK(
	    scrub_cgroup, &s,
	    "4:memory:/docker/0123abcd\n1:name=systemd:/\n0::/user.slice/user-alice.slice/docker\n",
	    "4:memory:/g1/g2\n1:name=systemd:/\n0::/g3/g4/g1\n");
	CHECK(scrub_cgroup_path, &s, "/docker/../0123abcd", "/g1/../g2");
	CHECK(scrub_cgroup, &s, "not a group\n", "");
}

static void mounts(void **state)
{
	auto_done(scrub) struct scrub s = { 0 };

	(void)state;
	CHECK(scrub_cgroup, &s, "4:memory:/pod/x\n", "4:memory:/g1/g2\n");
	CHECK(scrub_mountinfo, &s,
	      "22 27 0:21 / /proc rw,relatime - proc proc rw,hidepid=2\n"
	      "27 1 254:0 /home/alice/data /data/alice rw - ext4 /dev/mapper/vg--alice ro,discard\n"
	      "28 27 0:40 / /mnt/share rw - nfs4 10.1.2.3:/export/alice rw,addr=10.1.2.3\n"
	      "35 31 0:32 /pod /sys/fs/cgroup/memory rw shared:5 - cgroup cgroup rw,memory\n"
	      "36 31 0:33 / /opt/private/cg rw - cgroup cgroup rw,cpu\n"
	      "37 27 0:41 / /var rw - overlay overlay rw,lowerdir=/var/lib/alice\n",
	      "22 27 0:22 / /proc rw,relatime - proc none rw,hidepid=2\n"
	      "27 1 0:27 / /m1/m2 rw,relatime - ext4 /dev/mapper/volume ro\n"
	      "28 27 0:28 / /m3/m4 rw,relatime - nfs4 server:/export rw\n"
	      "35 31 0:35 /g1 /sys/fs/cgroup/memory rw,relatime - cgroup none rw,memory\n"
	      "37 27 0:37 / /var rw,relatime - overlay none rw\n");
}

static void process_names(void **state)
{
	auto_done(scrub) struct scrub s = { 0 };

	(void)state;
	CHECK(scrub_stat, &s, "42 (my ) secret) S 1 42\n", "42 (process-1) S 1 42\n");
	CHECK(scrub_stat, &s, "43 (python3) R 1 43\n", "43 (python3) R 1 43\n");
	CHECK(scrub_stat, &s, "43 (python3.11) R 1\n", "43 (python3.11) R 1\n");
	CHECK(scrub_stat, &s, "44 (other) R 1\n", "44 (process-2) R 1\n");
	CHECK(scrub_stat, &s, "45 (my ) secret) R 1\n", "45 (process-1) R 1\n");
	CHECK(scrub_stat, &s, "no brackets", "");
	CHECK(scrub_stat, &s, ")(", "");
	CHECK(scrub_status, &s,
	      "Name:\tother\nUmask:\t0022\nState:\tS (sleeping)\nUid:\t1000\t1000\nVmRSS:\t 10 kB\n"
	      "Cpus_allowed_list:\t0-1\nGroups:\t4 24\n",
	      "Name:\tprocess-2\nState:\tS (sleeping)\nVmRSS:\t 10 kB\nCpus_allowed_list:\t0-1\n");
}

static void interfaces(void **state)
{
	auto_done(scrub) struct scrub s = { 0 };

	(void)state;
	CHECK(
	    scrub_net_dev, &s,
	    "Inter-|   Receive\n face |bytes\n    lo: 1 2\n  eth0:149 3\nenx001122334455: 5 6\n"
	    "wg-alice: 7 8\n",
	    "Inter-|   Receive\nface |bytes\n  lo: 1 2\n  eth0:149 3\n  net1: 5 6\n  net2: 7 8\n");
}

static void free_text(void **state)
{
	struct scrub s = { .host = "gpu7", .user = "alice", .home = "/home/alice" };

	(void)state;
	CHECK(scrub_text, &s, "6.1.0-gpu7 by alice@gpu7 in /home/alice/x malice gpu70",
	      "6.1.0-x by x@x in x/x malice gpu70");
	s = (struct scrub){ .user = "root" };
	CHECK(scrub_text, &s, "/dev/root", "/dev/root"); /* everybody's name hides nobody */
}

static void cpu_and_memory(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	static const char cpu[] = "processor\t: 0\nmodel name\t: CPU\nSerial\t\t: 0123\n"
				  "bogomips\t: 1\n\nprocessor\t: 1\n";
	static const char maps[] = "55fd94a12000-7ffcc2878000 ---p 0 00:00 0 [rollup]\nRss: 1 kB\n";

	(void)state;
	scrub_cpuinfo(cpu, strlen(cpu), &out);
	assert_string_equal(buf_text(&out),
			    "processor\t: 0\nmodel name\t: CPU\n\nprocessor\t: 1\n");
	buf_reset(&out);
	scrub_smaps(maps, strlen(maps), &out);
	assert_null(strstr(buf_text(&out), "55fd"));
	assert_non_null(strstr(buf_text(&out), "[rollup]\nRss: 1 kB\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cgroups_keep_their_shape),
		cmocka_unit_test(mounts),
		cmocka_unit_test(process_names),
		cmocka_unit_test(interfaces),
		cmocka_unit_test(free_text),
		cmocka_unit_test(cpu_and_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
