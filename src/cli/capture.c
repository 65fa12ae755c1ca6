/* SPDX-License-Identifier: MIT
 *
 * `doctor --capture DIR`: what the collectors read of this machine, without names, as a fixture.
 *
 *	DIR/README
 *	DIR/t0/clock                    "mono_ns wall_ns boot_ns"
 *	DIR/t0/proc/stat, ...
 *	DIR/t1/...                      the same a second later
 */
#include "cli/doctor.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "cli/scrub.h"
#include "collect/cgroup.h"
#include "collect/disk.h"
#include "collect/proc_parse.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROCESSES_MAX = 64, THREADS_MAX = 64, CPUS_MAX = 1024, FILE_MAX = 8 << 20 };

typedef void (*scrub_fn)(struct scrub *s, const char *text, size_t n, struct buf *out);

struct chosen {
	int64_t pid, ticks;
};

struct capture {
	int from; /* "/" */
	int to;   /* DIR/tN */
	struct scrub scrub;
	VEC(struct chosen) processes;
	unsigned files;
	int error; /* first failure to write */
};

/* Numbers and fixed words of the kernel: nothing in them was chosen by anybody. */
static void as_is(struct scrub *s, const char *text, size_t n, struct buf *out)
{
	(void)s;
	buf_put(out, text, n);
}

static void free_text(struct scrub *s, const char *text, size_t n, struct buf *out)
{
	scrub_text(s, text, n, out);
}

static void cpuinfo_only(struct scrub *s, const char *text, size_t n, struct buf *out)
{
	(void)s;
	scrub_cpuinfo(text, n, out);
}

static void smaps_only(struct scrub *s, const char *text, size_t n, struct buf *out)
{
	(void)s;
	scrub_smaps(text, n, out);
}

static int make_folders(int at, const char *path)
{
	char part[CGROUP_PATH * 2];

	if (!text_copy(part, sizeof(part), path))
		return -ENAMETOOLONG;
	for (char *p = strchr(part, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdirat(at, part, 0755) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return 0;
}

static void put_file(struct capture *c, const char *path, const char *text, size_t n)
{
	auto_close int fd = -1;
	int r = make_folders(c->to, path);

	if (r == 0) {
		fd =
		    openat(c->to, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (fd < 0 && errno == EEXIST)
			return; /* a group that several controllers share */
		r = fd < 0 ? -errno : io_write_all(fd, text, n);
	}
	if (r == 0)
		c->files++;
	else if (!c->error)
		c->error = r;
}

/* Reads `from`, scrubs, writes it as `to`. What is not there here is not there in the fixture. */
static void copy_as(struct capture *c, const char *from, const char *to, scrub_fn scrub)
{
	size_t n = 0;
	int error;
	auto_free char *text = io_slurp(c->from, from, FILE_MAX, &n, &error);
	struct buf out;

	if (!text)
		return;
	buf_init(&out, 2 * FILE_MAX);
	scrub(&c->scrub, text, n, &out);
	if (!buf_ok(&out))
		c->error = c->error ? c->error : -ENOMEM;
	else
		put_file(c, to, buf_text(&out), out.len);
	buf_done(&out);
}

static void copy(struct capture *c, const char *path, scrub_fn scrub)
{
	copy_as(c, path, path, scrub);
}

static void copy_machine(struct capture *c)
{
	static const struct {
		const char *path;
		scrub_fn scrub;
	} rows[] = {
		{ "proc/stat", as_is },
		{ "proc/meminfo", as_is },
		{ "proc/vmstat", as_is },
		{ "proc/loadavg", as_is },
		{ "proc/uptime", as_is },
		{ "proc/pressure/cpu", as_is },
		{ "proc/pressure/memory", as_is },
		{ "proc/pressure/io", as_is },
		{ "proc/diskstats", as_is },
		{ "proc/net/dev", scrub_net_dev },
		{ "proc/cpuinfo", cpuinfo_only },
		{ "proc/sys/kernel/osrelease", free_text },
		{ "proc/sys/kernel/perf_event_paranoid", as_is },
		{ "proc/sys/kernel/yama/ptrace_scope", as_is },
		{ "proc/self/mountinfo", scrub_mountinfo },
		{ "proc/self/cgroup", scrub_cgroup },
		{ "proc/self/status", scrub_status },
		{ "proc/self/stat", scrub_stat },
		{ "proc/self/schedstat", as_is },
		{ "sys/devices/system/cpu/online", as_is },
		{ "sys/devices/system/cpu/present", as_is },
		{ "sys/devices/system/cpu/possible", as_is },
		{ "sys/devices/system/clocksource/clocksource0/current_clocksource", as_is },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		copy(c, rows[i].path, rows[i].scrub);
	put_file(c, "proc/sys/kernel/hostname", "host\n", 5);
}

static void copy_cpus(struct capture *c)
{
	static const char *const files[] = { "topology/thread_siblings_list", "topology/core_id",
					     "topology/physical_package_id",
					     "cpufreq/scaling_cur_freq" };

	for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
		char path[96];

		snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u", cpu);
		if (faccessat(c->from, path, F_OK, 0) < 0)
			return;
		for (size_t i = 0; i < ARRAY_LEN(files); i++) {
			snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/%s", cpu,
				 files[i]);
			copy(c, path, as_is);
		}
	}
}

static void copy_partitions(struct capture *c)
{
	size_t n = 0;
	int error;
	auto_free char *text = io_slurp(c->from, "proc/diskstats", FILE_MAX, &n, &error);
	struct scan s = scan_of(text ? text : "", n);
	struct disk disk;

	while (text && disk_next(&s, &disk)) {
		char path[96];

		if (strpbrk(disk.name, "/!"))
			continue;
		snprintf(path, sizeof(path), "sys/class/block/%s/partition", disk.name);
		copy(c, path, as_is);
	}
}

/* The files of one group, in a folder whose name is scrubbed behind the mount point. */
static void copy_group(struct capture *c, const char *dir, size_t top)
{
	static const char *const files[] = {
		"cpu.max",
		"cpu.stat",
		"cpu.pressure",
		"cpu.weight",
		"cpuset.cpus.effective",
		"memory.max",
		"memory.high",
		"memory.current",
		"memory.stat",
		"memory.events",
		"memory.swap.current",
		"memory.swap.max",
		"memory.pressure",
		"io.pressure",
		"cgroup.type",
		"cgroup.controllers",
		"cpu.cfs_quota_us",
		"cpu.cfs_period_us",
		"cpu.shares",
		"cpuacct.usage",
		"cpuset.cpus",
		"cpuset.effective_cpus",
		"memory.limit_in_bytes",
		"memory.usage_in_bytes",
		"memory.oom_control",
		"memory.failcnt",
		"memory.memsw.usage_in_bytes",
		"memory.memsw.limit_in_bytes",
	};

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		char from[CGROUP_PATH + 64];
		auto_done(buf) struct buf to = { 0 };

		snprintf(from, sizeof(from), "%s/%s", dir, files[i]);
		buf_put(&to, dir, top);
		scrub_cgroup_path(&c->scrub, dir + top, strlen(dir) - top, &to);
		buf_printf(&to, "/%s", files[i]);
		if (buf_ok(&to))
			copy_as(c, from, buf_text(&to), as_is);
	}
}

static void copy_groups(struct capture *c)
{
	size_t n_groups = 0, n_mounts = 0;
	int error;
	auto_free char *groups = io_slurp(c->from, "proc/self/cgroup", FILE_MAX, &n_groups, &error);
	auto_free char *mounts =
	    io_slurp(c->from, "proc/self/mountinfo", FILE_MAX, &n_mounts, &error);
	struct cgroup_where where;

	if (!groups || !mounts || cgroup_find(groups, n_groups, mounts, n_mounts, &where) < 0)
		return;
	for (int part = 0; part < CGROUP_PARTS; part++) {
		struct cgroup_place *p = &where.at[part];

		if (!p->version)
			continue;
		do
			copy_group(c, p->dir, p->top);
		while (cgroup_up(p->dir, p->top));
	}
}

static void copy_threads(struct capture *c, int64_t pid)
{
	struct io_dir dir;
	char path[80];
	int64_t tid;
	unsigned n = 0;

	snprintf(path, sizeof(path), "proc/%lld/task", (long long)pid);
	if (io_dir_open(&dir, c->from, path) < 0)
		return;
	while (n++ < THREADS_MAX && (tid = io_dir_next_number(&dir)) > 0) {
		snprintf(path, sizeof(path), "proc/%lld/task/%lld/stat", (long long)pid,
			 (long long)tid);
		copy(c, path, scrub_stat);
		snprintf(path, sizeof(path), "proc/%lld/task/%lld/schedstat", (long long)pid,
			 (long long)tid);
		copy(c, path, as_is);
	}
	io_dir_close(&dir);
}

/* CPU ticks of a process of this user that is not the kernel's own; -1: not one to capture. Others'
 * are nobody's to give away. */
static int64_t ticks_of_ours(const struct capture *c, int64_t pid)
{
	char path[40], text[1024];
	struct proc_stat ps;
	struct stat st;
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%lld/stat", (long long)pid);
	if (pid == getpid() || fstatat(c->from, path, &st, 0) < 0 || st.st_uid != geteuid())
		return -1;
	n = io_read(c->from, path, text, sizeof(text));
	if (n <= 0 || !proc_stat_parse(text, (size_t)n, &ps) || (ps.flags & STAT_KERNEL_THREAD))
		return -1;
	return ps.utime + ps.stime;
}

static int by_ticks(const void *a, const void *b)
{
	const struct chosen *x = a, *y = b;

	if (x->ticks != y->ticks)
		return x->ticks < y->ticks ? 1 : -1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* The processes both states show: those that have used most. */
static void choose_processes(struct capture *c)
{
	struct io_dir dir;
	int64_t pid;

	if (io_dir_open(&dir, c->from, "proc") < 0)
		return;
	while ((pid = io_dir_next_number(&dir)) > 0) {
		int64_t ticks = ticks_of_ours(c, pid);
		struct chosen *p = ticks >= 0 ? vec_push(&c->processes) : NULL;

		if (p)
			*p = (struct chosen){ .pid = pid, .ticks = ticks };
	}
	io_dir_close(&dir);
	if (c->processes.n)
		qsort(c->processes.v, c->processes.n, sizeof(*c->processes.v), by_ticks);
	if (c->processes.n > PROCESSES_MAX)
		c->processes.n = PROCESSES_MAX;
}

static void copy_processes(struct capture *c)
{
	static const struct {
		const char *name;
		scrub_fn scrub;
	} files[] = { { "stat", scrub_stat },
		      { "statm", as_is },
		      { "io", as_is },
		      { "schedstat", as_is },
		      { "status", scrub_status },
		      { "cgroup", scrub_cgroup },
		      { "smaps_rollup", smaps_only } };

	for (size_t p = 0; p < c->processes.n; p++) {
		int64_t pid = c->processes.v[p].pid;

		for (size_t i = 0; i < ARRAY_LEN(files); i++) {
			char path[80];

			snprintf(path, sizeof(path), "proc/%lld/%s", (long long)pid, files[i].name);
			copy(c, path, files[i].scrub);
		}
		copy_threads(c, pid);
	}
}

static void know_secrets(struct scrub *s)
{
	const struct passwd *pw = getpwuid(getuid());

	gethostname(s->host, sizeof(s->host) - 1);
	if (!pw)
		return;
	text_copy(s->user, sizeof(s->user), pw->pw_name ? pw->pw_name : "");
	text_copy(s->home, sizeof(s->home), pw->pw_dir ? pw->pw_dir : "");
}

static int capture_state(struct capture *c, int base, const char *name)
{
	char clock[96];
	int n;

	if (mkdirat(base, name, 0755) < 0)
		return -errno;
	c->to = openat(base, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->to < 0)
		return -errno;
	n = snprintf(clock, sizeof(clock), "%lld %lld %lld\n", (long long)clock_mono_ns(),
		     (long long)clock_wall_ns(), (long long)clock_boot_ns());
	put_file(c, "clock", clock, (size_t)n);
	copy_machine(c);
	copy_processes(c);
	copy_groups(c);
	copy_cpus(c);
	copy_partitions(c);
	close(c->to);
	c->to = -1;
	return c->error;
}

static int put_readme(struct capture *c, int base)
{
	static const char text[] =
	    "A machine as Spotter " SPOTTER_VERSION " reads it, twice, a second apart.\n"
	    "Made by 'spotter doctor --capture'; host and user names, command lines, process\n"
	    "names, addresses and paths are removed or replaced.\n"
	    "Read it with: spotter top --once --root THIS-FOLDER\n";

	c->to = base;
	put_file(c, "README", text, sizeof(text) - 1);
	c->to = -1;
	return c->error;
}

/* A new folder, or an empty one: nothing of anybody's is mixed with it. */
static int open_empty(const char *path, struct err *e)
{
	struct io_dir dir;
	char why[80];

	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_set(e, -errno, "cannot make '%s': %s", path,
			       err_name(-errno, why, sizeof(why)));
	if (io_dir_open(&dir, AT_FDCWD, path) < 0)
		return err_set(e, -errno, "cannot open '%s': %s", path,
			       err_name(-errno, why, sizeof(why)));
	if (io_dir_next(&dir)) {
		io_dir_close(&dir);
		err_set(e, -ENOTEMPTY, "'%s' is not empty", path);
		err_hint(e, "name a folder that does not exist yet");
		return -ENOTEMPTY;
	}
	return dir.fd;
}

int capture(const char *dir, unsigned *ret_files, struct err *e)
{
	struct capture c = { .from = -1, .to = -1 };
	auto_close int base = open_empty(dir, e);
	auto_close int from = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char why[80];
	int r;

	if (base < 0)
		return base;
	if (from < 0)
		return err_set(e, -errno, "cannot open '/'");
	c.from = from;
	know_secrets(&c.scrub);
	choose_processes(&c);
	r = put_readme(&c, base);
	if (r == 0)
		r = capture_state(&c, base, "t0");
	if (r == 0) {
		nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
		r = capture_state(&c, base, "t1");
	}
	scrub_done(&c.scrub);
	vec_done(&c.processes);
	*ret_files = c.files;
	return r < 0 ? err_set(e, r, "cannot write '%s': %s", dir, err_name(r, why, sizeof(why)))
		     : 0;
}
