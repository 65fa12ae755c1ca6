/* SPDX-License-Identifier: MIT
 *
 * The collector of the job's control groups; what is read from which group: cgroup.h, the texts:
 * cgroup_find.c and cgroup_parse.c. The groups are those of the job's first process, or our own when
 * the whole machine is watched.
 *
 * Pace: OOM kills every tick (2 us: the job may be over before the next second), limits and counters
 * every second (90 us in v1; v2's memory.stat and cpu.stat make the kernel gather per-CPU counters
 * first), the question whether the process was moved to other groups on slow ticks. When the process
 * has ended its groups are still read, as its children may live in them.
 */
#include "collect/cgroup.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/scan.h"
#include "base/text.h"
#include "collect/due.h"
#include "collect/limits.h"
#include "collect/proc_parse.h"
#include "collect/psi.h"
#include "collect/whole.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum source {
	SOURCE_USAGE,       /* cpu.stat | cpuacct.usage of the job's group */
	SOURCE_THROTTLE,    /* cpu.stat where the quota is */
	SOURCE_MEMORY,      /* memory.current | memory.usage_in_bytes where the limit is */
	SOURCE_SWAP,        /* memory.swap.current there (v2) */
	SOURCE_MEMORY_STAT, /* memory.stat of the job's group */
	SOURCE_LIMIT_STAT,  /* memory.stat where the limit is, if that is another */
	SOURCE_OOM,         /* memory.events | memory.oom_control of the job's group */
	SOURCE_HITS,        /* memory.events | memory.failcnt where the limit is */
	SOURCE_PSI_CPU,     /* NAME.pressure of the job's v2 group */
	SOURCE_PSI_MEMORY,
	SOURCE_PSI_IO,
	SOURCES
};

/* A counter file. path "": there is none, so what it would give is not supported. */
struct source_file {
	struct host_file file;
	char path[CGROUP_PATH + 32];
};

enum { SETTLE_S = 10 };

struct cgroup_state {
	struct whole groups, mounts;
	struct cgroup_where where;
	struct cgroup_limits limits;
	bool root_gone; /* the job's first process ended */
	uint32_t id;    /* 0: no group found yet */
	struct source_file source[SOURCES];
	bool missing[METRICS]; /* a gap is open */
	bool had[METRICS];     /* has been put: absent now means lost */
	int64_t oom_kills;     /* -1: not read yet */
	int64_t next_ns;
	int64_t settled_ns; /* until then the group is looked up every second */
	int why;            /* -errno of the last reading, 0 when it could be read */
	struct limits job;
	char text[8192]; /* memory.stat is the longest: 1.5 KB in v1, 2 KB in v2 */
};

static void put(struct cgroup_state *st, struct frame *f, enum metric_id metric, int64_t raw)
{
	if (raw < 0)
		return;
	if (st->missing[metric])
		frame_gap(f, metric, st->id, GAP_OVER);
	st->missing[metric] = false;
	st->had[metric] = true;
	frame_put(f, metric, st->id, raw);
}

static void absent(struct cgroup_state *st, struct frame *f, enum metric_id metric, int r)
{
	enum gap_why why = st->had[metric] ? GAP_LOST : GAP_NOT_SUPPORTED;

	if (st->missing[metric])
		return;
	st->missing[metric] = true;
	if (r == -EACCES || r == -EPERM)
		why = GAP_NO_PERMISSION;
	frame_gap(f, metric, st->id, why);
}

/* A gauge that no longer applies must not hold its last value. No gap if it never had one. */
static void ended(struct cgroup_state *st, struct frame *f, enum metric_id metric)
{
	if (st->had[metric])
		absent(st, f, metric, -ENOENT);
}

/* What the last read_source() gave: raw, or why there is none. */
static void put_or_absent(struct cgroup_state *st, struct frame *f, enum metric_id metric,
			  int64_t raw)
{
	if (raw >= 0)
		put(st, f, metric, raw);
	else
		absent(st, f, metric, st->why);
}

/* dir NULL: no such file. */
static void aim(struct cgroup_state *st, enum source source, const char *dir, const char *name)
{
	struct source_file *sf = &st->source[source];
	char path[sizeof(sf->path)] = "";

	if (dir)
		snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (strcmp(path, sf->path) == 0)
		return;
	host_file_close(&sf->file);
	text_copy(sf->path, sizeof(sf->path), path);
}

/* The folder of a part if it is the job's own group: not one above, not the machine's root. */
static const char *own_dir(const struct host *h, const struct cgroup_where *w,
			   enum cgroup_part part)
{
	const struct cgroup_place *p = &w->at[part];

	return p->version && !p->above && !cgroup_is_root(h, p) ? p->dir : NULL;
}

static void aim_own(struct cgroup_state *st, const struct host *h)
{
	const struct cgroup_where *w = &st->where;
	const char *unified = own_dir(h, w, CGROUP_UNIFIED);
	const char *memory = own_dir(h, w, CGROUP_MEMORY);

	aim(st, SOURCE_USAGE, own_dir(h, w, CGROUP_CPUACCT),
	    w->at[CGROUP_CPUACCT].version == 1 ? "cpuacct.usage" : "cpu.stat");
	aim(st, SOURCE_MEMORY_STAT, memory, "memory.stat");
	aim(st, SOURCE_OOM, memory,
	    w->at[CGROUP_MEMORY].version == 1 ? "memory.oom_control" : "memory.events");
	aim(st, SOURCE_PSI_CPU, unified, "cpu.pressure");
	aim(st, SOURCE_PSI_MEMORY, unified, "memory.pressure");
	aim(st, SOURCE_PSI_IO, unified, "io.pressure");
}

static void aim_limits(struct cgroup_state *st, const struct host *h)
{
	const struct cgroup_limits *l = &st->limits;
	const char *own = own_dir(h, &st->where, CGROUP_MEMORY);
	const char *limiter =
	    l->memory.known == CGROUP_LIMITED && l->memory.dir[0] ? l->memory.dir : NULL;
	const char *memory = limiter ? limiter : own;
	bool v1 = st->where.at[CGROUP_MEMORY].version == 1;
	bool elsewhere = memory && (!own || strcmp(memory, own) != 0);

	aim(st, SOURCE_THROTTLE, l->quota.known == CGROUP_LIMITED ? l->quota.dir : NULL,
	    "cpu.stat");
	aim(st, SOURCE_MEMORY, memory, v1 ? "memory.usage_in_bytes" : "memory.current");
	aim(st, SOURCE_SWAP, v1 ? NULL : memory, "memory.swap.current");
	aim(st, SOURCE_LIMIT_STAT, elsewhere ? memory : NULL, "memory.stat");
	aim(st, SOURCE_HITS, limiter, v1 ? "memory.failcnt" : "memory.events");
}

/* Into st->text: length or -errno. */
static ssize_t read_source(struct cgroup_state *st, const struct host *h, enum source source)
{
	struct source_file *sf = &st->source[source];
	ssize_t n = -ENOENT;

	if (sf->path[0])
		n = host_read(h, &sf->file, sf->path, st->text, sizeof(st->text));
	st->why = n < 0 ? (int)n : 0;
	return n;
}

static const char *path_of(const struct cgroup_place *p)
{
	return p->version ? p->path : "(none)";
}

static void life(struct cgroup_state *st, struct frame *f, enum life_change change)
{
	const struct cgroup_place *at = st->where.at;
	char detail[3 * CGROUP_PATH + 64];

	if (at[CGROUP_CPU].version == 1 || at[CGROUP_MEMORY].version == 1)
		snprintf(detail, sizeof(detail), "v1 cpu:%s memory:%s cpuset:%s",
			 path_of(&at[CGROUP_CPU]), path_of(&at[CGROUP_MEMORY]),
			 path_of(&at[CGROUP_CPUSET]));
	else
		snprintf(detail, sizeof(detail), "v2 %s", path_of(&at[CGROUP_UNIFIED]));
	frame_life(f,
		   &(struct life){
		       .change = change, .id = st->id, .parent = ID_JOB, .kind = ENTITY_CGROUP },
		   cgroup_name(&st->where), detail);
}

static bool same_places(const struct cgroup_where *a, const struct cgroup_where *b)
{
	for (int i = 0; i < CGROUP_PARTS; i++)
		if (a->at[i].version != b->at[i].version ||
		    strcmp(a->at[i].dir, b->at[i].dir) != 0 ||
		    strcmp(a->at[i].path, b->at[i].path) != 0)
			return false;
	return true;
}

/* Another entity: the counters of another group start elsewhere. */
static void move(struct collect *c, struct cgroup_state *st, const struct cgroup_where *to,
		 struct frame *f)
{
	if (st->id)
		life(st, f, LIFE_GONE);
	st->where = *to;
	st->id = collect_id(c);
	st->oom_kills = -1;
	memset(st->missing, 0, sizeof(st->missing));
	memset(st->had, 0, sizeof(st->had));
	aim_own(st, c->host);
	life(st, f, LIFE_BORN);
}

/* Looks up the groups of the job's first process. While they cannot be read the last ones stay. */
static bool is_zombie(const struct collect *c)
{
	char path[32], text[1024];
	struct proc_stat s;
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%d/stat", (int)c->job.root);
	n = io_read(c->host->root, path, text, sizeof(text));
	return n > 0 && proc_stat_parse(text, (size_t)n, &s) && s.head.state == 'Z';
}

static int look_up(struct collect *c, struct cgroup_state *st, struct frame *f)
{
	char path[64] = "proc/self/cgroup";
	struct cgroup_where w;
	int r;

	if (st->root_gone)
		return 0;
	if (c->job.root > 0)
		snprintf(path, sizeof(path), "proc/%d/cgroup", (int)c->job.root);
	/* A zombie's group reads "/" (v1): what it was in while it ran holds. */
	if (st->id && c->job.root > 0 && is_zombie(c))
		return 0;
	r = whole_read(c->host, &st->groups, path);
	/* Its number may be another process's soon: never looked at again. */
	st->root_gone = st->id && (r == -ENOENT || r == -ESRCH);
	if (r == 0)
		r = whole_read(c->host, &st->mounts, "proc/self/mountinfo");
	if (r == 0)
		r = cgroup_find(st->groups.text, st->groups.n, st->mounts.text, st->mounts.n, &w);
	if (r == 0 && !(st->id && same_places(&st->where, &w)))
		move(c, st, &w, f);
	return st->id ? 0 : r;
}

/* How a limit reads: in cores for CPU; for memory the event's value is in bytes, its text in GiB. */
struct wording {
	const char *what, *unit;
	double shown, value; /* factors from milli-cores or KiB */
};

static const struct wording quota_wording = { "cpu quota", "cores", 1e-3, 1e-3 };
static const struct wording memory_wording = { "memory limit", "GiB", 1.0 / (1 << 20), 1024 };

/* It appeared, changed or went; value 0 when it went. What was there at the first reading, or could
 * not be read before, is no change. */
static void limit_event(struct cgroup_state *st, struct frame *f, const struct wording *w,
			const struct cgroup_limit *was, const struct cgroup_limit *is)
{
	double from = (double)was->value * w->shown, to = (double)is->value * w->shown;
	double value = (double)is->value * w->value;
	const char *in = is->dir[0] ? " in /" : "";

	if (was->known == CGROUP_UNKNOWN || is->known == CGROUP_UNKNOWN)
		return;
	if (was->known == is->known && was->value == is->value)
		return;
	if (is->known == CGROUP_FREE)
		frame_event(f, EVENT_LIMIT, st->id, 0, "%s of %.4g %s removed", w->what, from,
			    w->unit);
	else if (was->known == CGROUP_FREE)
		frame_event(f, EVENT_LIMIT, st->id, value, "%s of %.4g %s set%s%s", w->what, to,
			    w->unit, in, is->dir);
	else
		frame_event(f, EVENT_LIMIT, st->id, value, "%s changed from %.4g to %.4g %s%s%s",
			    w->what, from, to, w->unit, in, is->dir);
}

static void put_limit(struct cgroup_state *st, struct frame *f, enum metric_id metric,
		      const struct cgroup_limit *l)
{
	if (l->known == CGROUP_LIMITED)
		put(st, f, metric, l->value);
	else if (l->known == CGROUP_FREE)
		ended(st, f, metric);
	else
		absent(st, f, metric, l->why);
}

static void read_limits(struct collect *c, struct cgroup_state *st, struct frame *f)
{
	struct cgroup_limits now;

	cgroup_limits_read(c->host, &st->where, &now);
	limit_event(st, f, &quota_wording, &st->limits.quota, &now.quota);
	limit_event(st, f, &memory_wording, &st->limits.memory, &now.memory);
	st->limits = now;
	put_limit(st, f, M_CG_CPU_QUOTA, &now.quota);
	put_limit(st, f, M_CG_MEM_LIMIT, &now.memory);
	st->why = 0;
	put_or_absent(st, f, M_CG_CPUSET, now.cpuset);
	aim_limits(st, c->host);
}

static void read_usage(struct collect *c, struct cgroup_state *st, struct frame *f)
{
	struct cgroup_cpu_stat cpu = { .usage_ns = -1 };
	ssize_t n = read_source(st, c->host, SOURCE_USAGE);
	struct scan s = scan_of(st->text, n > 0 ? (size_t)n : 0);

	if (st->where.at[CGROUP_CPUACCT].version != 2)
		(void)scan_i64(&s, &cpu.usage_ns);
	else if (n > 0)
		(void)cgroup_cpu_stat_parse(st->text, (size_t)n, &cpu);
	put_or_absent(st, f, M_CG_CPU, cpu.usage_ns);
}

/* Without a quota nothing is throttled, and there is nothing to say. */
static void read_throttle(struct collect *c, struct cgroup_state *st, struct frame *f)
{
	struct cgroup_cpu_stat cpu;
	ssize_t n = read_source(st, c->host, SOURCE_THROTTLE);

	if (st->limits.quota.known != CGROUP_LIMITED)
		return;
	if (n < 0 || cgroup_cpu_stat_parse(st->text, (size_t)n, &cpu) < 0)
		cpu = (struct cgroup_cpu_stat){ -1, -1, -1, -1 };
	put_or_absent(st, f, M_CG_CPU_PERIODS, cpu.periods);
	put_or_absent(st, f, M_CG_CPU_THROTTLED_N, cpu.throttled);
	put_or_absent(st, f, M_CG_CPU_THROTTLED, cpu.throttled_ns);
}

/* A number of bytes in a file of its own, as KiB; -1 when it cannot be had. */
static int64_t read_kib(struct collect *c, struct cgroup_state *st, enum source source)
{
	int64_t kib;
	ssize_t n = read_source(st, c->host, source);

	return n < 0 || cgroup_bytes_parse(st->text, (size_t)n, &kib) < 0 ? -1 : kib;
}

static void read_memory_stat(struct collect *c, struct cgroup_state *st, enum source source,
			     struct cgroup_memory_stat *ret)
{
	ssize_t n = read_source(st, c->host, source);

	if (n < 0 || cgroup_memory_stat_parse(st->text, (size_t)n, ret) < 0)
		*ret = (struct cgroup_memory_stat){ -1, -1, -1, -1, -1, -1, false };
}

static void read_memory(struct collect *c, struct cgroup_state *st, struct frame *f)
{
	put_or_absent(st, f, M_CG_MEM_USED, read_kib(c, st, SOURCE_MEMORY));
	if (st->where.at[CGROUP_MEMORY].version != 1)
		put_or_absent(st, f, M_CG_MEM_SWAP, read_kib(c, st, SOURCE_SWAP));
}

static void read_memory_kinds(struct collect *c, struct cgroup_state *st, struct frame *f)
{
	struct cgroup_memory_stat own, full;

	read_memory_stat(c, st, SOURCE_MEMORY_STAT, &own);
	full = own;
	if (st->source[SOURCE_LIMIT_STAT].path[0])
		read_memory_stat(c, st, SOURCE_LIMIT_STAT, &full);
	put_or_absent(st, f, M_CG_MEM_ANON, full.anon_kib);
	put_or_absent(st, f, M_CG_MEM_FILE, full.file_kib);
	if (st->where.at[CGROUP_MEMORY].version == 1)
		put_or_absent(st, f, M_CG_MEM_SWAP, full.swap_kib);
	put_or_absent(st, f, M_CG_MEM_MAJOR_FAULTS, own.major_faults);
	put_or_absent(st, f, M_CG_MEM_REFAULTS, own.refaults);
}

static void read_hits(struct collect *c, struct cgroup_state *st, struct frame *f)
{
	struct cgroup_events e = { -1, -1 };
	ssize_t n = read_source(st, c->host, SOURCE_HITS);
	struct scan s = scan_of(st->text, n > 0 ? (size_t)n : 0);

	if (st->limits.memory.known != CGROUP_LIMITED)
		return;
	if (st->where.at[CGROUP_MEMORY].version == 1)
		(void)scan_i64(&s, &e.limit_hits);
	else if (n > 0)
		(void)cgroup_events_parse(st->text, (size_t)n, &e);
	put_or_absent(st, f, M_CG_MEM_LIMIT_HITS, e.limit_hits);
}

/* Every tick; put when it grew or with the other counters. */
static void read_oom(struct collect *c, struct cgroup_state *st, struct frame *f, bool due_now)
{
	struct cgroup_events e = { -1, -1 };
	ssize_t n = read_source(st, c->host, SOURCE_OOM);
	bool grew;

	if (n > 0)
		(void)cgroup_events_parse(st->text, (size_t)n, &e);
	grew = st->oom_kills >= 0 && e.oom_kills > st->oom_kills;
	if (grew)
		frame_event(f, EVENT_OOM_KILL, st->id, (double)(e.oom_kills - st->oom_kills),
			    "%lld killed for want of memory in control group %s",
			    (long long)(e.oom_kills - st->oom_kills),
			    st->where.at[CGROUP_MEMORY].path);
	if (e.oom_kills >= 0)
		st->oom_kills = e.oom_kills;
	if (grew || due_now)
		put_or_absent(st, f, M_CG_MEM_OOM_KILLS, e.oom_kills);
}

static void read_pressure(struct collect *c, struct cgroup_state *st, struct frame *f)
{
	static const struct {
		enum source source;
		enum metric_id some, full;
	} out[] = {
		{ SOURCE_PSI_CPU, M_CG_PSI_CPU_SOME, M_NONE },
		{ SOURCE_PSI_MEMORY, M_CG_PSI_MEM_SOME, M_CG_PSI_MEM_FULL },
		{ SOURCE_PSI_IO, M_CG_PSI_IO_SOME, M_CG_PSI_IO_FULL },
	};

	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
		struct psi p = { -1, -1 };
		ssize_t n = read_source(st, c->host, out[i].source);

		if (n > 0)
			(void)psi_parse(st->text, (size_t)n, &p);
		put_or_absent(st, f, out[i].some, p.some_us);
		if (out[i].full != M_NONE)
			put_or_absent(st, f, out[i].full, p.full_us);
	}
}

/* A machine without control groups is no fault: the job's affinity is still read. */
static int cgroup_open(struct collect *c, void *state, struct frame *f)
{
	struct cgroup_state *st = state;

	whole_init(&st->groups);
	whole_init(&st->mounts);
	limits_init(&st->job);
	st->settled_ns = f->mono_ns + SETTLE_S * NS_PER_S;
	for (int i = 0; i < SOURCES; i++)
		st->source[i].file.fd = -1;
	if (look_up(c, st, f) == 0)
		return 0;
	for (int m = M_NONE + 1; m < METRICS; m++)
		if (metrics[m].entity == ENTITY_CGROUP)
			frame_gap(f, (enum metric_id)m, 0, GAP_NOT_SUPPORTED);
	return 0;
}

static void read_group(struct collect *c, struct cgroup_state *st, struct frame *f)
{
	read_limits(c, st, f);
	read_usage(c, st, f);
	read_throttle(c, st, f);
	read_memory(c, st, f);
	read_hits(c, st, f);
	if (c->thrift > 1 && !c->slow)
		return;
	read_memory_kinds(c, st, f);
	read_pressure(c, st, f);
}

static int cgroup_read(struct collect *c, void *state, struct frame *f)
{
	struct cgroup_state *st = state;
	bool now = due(&st->next_ns, c->boot_ns, NS_PER_S) || c->slow;

	/* A job starts in its starter's group and is often moved within its first moments. */
	if (c->slow || (now && f->mono_ns < st->settled_ns))
		(void)look_up(c, st, f);
	if (st->id)
		read_oom(c, st, f, now);
	if (st->id && now)
		read_group(c, st, f);
	if (now)
		limits_read(c, &st->job, &st->limits.quota, f);
	return 0;
}

static void cgroup_close(void *state)
{
	struct cgroup_state *st = state;

	whole_done(&st->groups);
	whole_done(&st->mounts);
	limits_done(&st->job);
	for (int i = 0; i < SOURCES; i++)
		host_file_close(&st->source[i].file);
}

const struct collector cgroup_collector = {
	.name = "cgroup",
	.help =
	    "quota, throttling, memory limit, OOM kills of the job's control group; cores allowed",
	.state_size = sizeof(struct cgroup_state),
	.open = cgroup_open,
	.read = cgroup_read,
	.close = cgroup_close,
	.sample_metric = M_JOB_CORES_ALLOWED,
};
