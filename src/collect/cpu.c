/* SPDX-License-Identifier: MIT
 *
 * /proc/stat: what the CPUs did since boot, all together and one by one.
 *
 *	cpu  6073 0 2843 268492 1311 0 75 104 0 0
 *	cpu0 2449 0 1161 135765 42 0 11 46 0 0
 *	cpu1 3624 0 1681 132727 1269 0 64 57 0 0
 *	intr 250533 0 0 0 0 0 0 0 0 [one number an interrupt line: kilobytes on a large machine]
 *	ctxt 495439
 *	btime 1700000000
 *	processes 8310
 *	procs_running 2
 *	procs_blocked 0
 *	softirq 108000 0 30000 1 8000 5000 0 3 40000 0 25000
 *
 * Columns: user nice system idle iowait irq softirq steal guest guest_nice, in ticks of 1/100 s
 * whatever the kernel's HZ; steal since 2.6.11. iowait is a guess of the kernel's and may go back:
 * it is passed on as it is. A CPU that is offline has no line; back online, its counters go on.
 * The sum line counts CPUs that went offline too.
 *
 * sys/devices/system/cpu/cpuN/cpufreq/scaling_cur_freq: "2400000" (kHz). No such file in most
 * virtual machines. Kernels 4.13 to 5.17 may sleep 10 ms in that read, hence a few at a time.
 *
 * Cost: 17 us on 2 CPUs, and it grows with CPUs and interrupt lines; the kernel makes the whole text
 * whatever is read of it, so sum and single CPUs come from one reading. The CPUs are put once a second.
 */
#include "collect/cpu.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/vec.h"
#include "collect/due.h"
#include "collect/whole.h"

#include <errno.h>
#include <stdio.h>

enum { FREQUENCIES_A_TICK = 8 };

struct core {
	uint32_t id; /* 0: not online */
	bool seen;   /* in this reading */
};

struct cpu_state {
	struct whole stat;
	VEC(struct core) cores; /* by CPU number */
	int64_t next_cores_ns;
	bool started;          /* the first reading announces CPUs, later ones report changes */
	bool no_frequency;     /* and it has been said */
	size_t next_frequency; /* CPU at which the sweep goes on; cores.n: it is over */
};

static bool parse_times(struct scan *s, struct cpu_times *ret)
{
	struct cpu_times t = { 0 };

	/* Columns are added up later: what could overflow then is no number of ticks. */
	while (t.n < CPU_COLUMNS && scan_i64(s, &t.ticks[t.n]) && t.ticks[t.n] >= 0 &&
	       t.ticks[t.n] <= INT64_MAX / CPU_COLUMNS)
		t.n++;
	if (t.n <= CPU_IDLE)
		return false;
	*ret = t;
	return true;
}

static void parse_count(struct scan line, const char *key, int64_t *ret)
{
	int64_t v;

	if (scan_lit(&line, key) && scan_i64(&line, &v) && v >= 0)
		*ret = v;
}

int cpu_parse(const char *text, size_t n, struct cpu_stat *ret)
{
	struct scan s = scan_of(text, n), line;
	struct cpu_stat st = { .switches = -1, .forks = -1, .running = -1, .blocked = -1 };
	bool total = false;

	while (whole_line(&s, &line)) {
		if (!total && scan_lit(&line, "cpu "))
			total = parse_times(&line, &st.total);
		parse_count(line, "ctxt ", &st.switches);
		parse_count(line, "processes ", &st.forks);
		parse_count(line, "procs_running ", &st.running);
		parse_count(line, "procs_blocked ", &st.blocked);
	}
	if (!total)
		return -EINVAL;
	*ret = st;
	return 0;
}

bool cpu_next(struct scan *s, unsigned *ret_cpu, struct cpu_times *ret)
{
	struct scan line;
	uint64_t cpu;

	while (whole_line(s, &line)) {
		if (!scan_lit(&line, "cpu") || scan_end(&line) || *line.p == ' ')
			continue;
		if (!scan_u64(&line, &cpu) || cpu > CPU_NUMBER_MAX || !parse_times(&line, ret))
			continue;
		*ret_cpu = (unsigned)cpu;
		return true;
	}
	return false;
}

static void put_total(const struct cpu_stat *st, struct frame *f)
{
	static const enum metric_id ids[CPU_COLUMNS] = {
		[CPU_USER] = M_CPU_USER,       [CPU_NICE] = M_CPU_NICE,
		[CPU_SYSTEM] = M_CPU_SYSTEM,   [CPU_IDLE] = M_CPU_IDLE,
		[CPU_IOWAIT] = M_CPU_IOWAIT,   [CPU_IRQ] = M_CPU_IRQ,
		[CPU_SOFTIRQ] = M_CPU_SOFTIRQ, [CPU_STEAL] = M_CPU_STEAL,
	};

	for (unsigned i = 0; i < st->total.n; i++)
		frame_put(f, ids[i], ID_HOST, st->total.ticks[i]);
	if (st->forks >= 0)
		frame_put(f, M_HOST_FORKS, ID_HOST, st->forks);
	if (st->switches >= 0)
		frame_put(f, M_HOST_SWITCHES, ID_HOST, st->switches);
	if (st->running >= 0)
		frame_put(f, M_HOST_RUNNING, ID_HOST, st->running);
	if (st->blocked >= 0)
		frame_put(f, M_HOST_BLOCKED, ID_HOST, st->blocked);
}

static void put_core(const struct cpu_times *t, uint32_t id, struct frame *f)
{
	int64_t kernel = t->ticks[CPU_SYSTEM];

	for (unsigned i = CPU_IRQ; i <= CPU_SOFTIRQ && i < t->n; i++)
		kernel += t->ticks[i];
	frame_put(f, M_CORE_USER, id, t->ticks[CPU_USER] + t->ticks[CPU_NICE]);
	frame_put(f, M_CORE_SYSTEM, id, kernel);
	frame_put(f, M_CORE_IDLE, id, t->ticks[CPU_IDLE]);
	if (t->n > CPU_IOWAIT)
		frame_put(f, M_CORE_IOWAIT, id, t->ticks[CPU_IOWAIT]);
	if (t->n > CPU_STEAL)
		frame_put(f, M_CORE_STEAL, id, t->ticks[CPU_STEAL]);
}

static void core_life(struct frame *f, enum life_change change, uint32_t id, unsigned cpu)
{
	char name[16];

	snprintf(name, sizeof(name), "cpu%u", cpu);
	frame_life(
	    f,
	    &(struct life){
		.change = change, .id = id, .parent = ID_HOST, .kind = ENTITY_CPU, .key = cpu },
	    name, NULL);
}

/* The table row of a CPU that has a line, announced if it is new. NULL without memory. */
static struct core *core_online(struct collect *c, struct cpu_state *st, struct frame *f,
				unsigned cpu)
{
	struct core *core;

	while (st->cores.n <= cpu)
		if (!vec_push(&st->cores))
			return NULL;
	core = &st->cores.v[cpu];
	if (!core->id) {
		core->id = collect_id(c);
		core_life(f, LIFE_BORN, core->id, cpu);
		if (st->started)
			frame_event(f, EVENT_CPU_HOTPLUG, core->id, cpu, "cpu%u came online", cpu);
	}
	core->seen = true;
	return core;
}

static void core_offline(struct core *core, struct frame *f, unsigned cpu)
{
	core_life(f, LIFE_GONE, core->id, cpu);
	frame_event(f, EVENT_CPU_HOTPLUG, core->id, cpu, "cpu%u went offline", cpu);
	core->id = 0;
}

static int read_cores(struct collect *c, struct cpu_state *st, struct frame *f)
{
	struct scan s = scan_of(st->stat.text, st->stat.n);
	struct cpu_times t;
	unsigned cpu, online = 0;

	while (cpu_next(&s, &cpu, &t)) {
		struct core *core = core_online(c, st, f, cpu);

		if (!core)
			return -ENOMEM;
		put_core(&t, core->id, f);
	}
	for (cpu = 0; cpu < st->cores.n; cpu++) {
		struct core *core = &st->cores.v[cpu];

		if (core->id && !core->seen)
			core_offline(core, f, cpu);
		online += core->id != 0;
		core->seen = false;
	}
	if (online)
		frame_put(f, M_CPU_ONLINE, ID_HOST, online);
	st->started = true;
	return 0;
}

/* One sweep over the CPUs every slow tick, a few CPUs a second. */
static void read_frequencies(struct collect *c, struct cpu_state *st, struct frame *f)
{
	char path[80];
	unsigned asked = 0;

	if (st->no_frequency)
		return;
	if (c->slow && st->next_frequency >= st->cores.n)
		st->next_frequency = 0;
	for (; st->next_frequency < st->cores.n && asked < FREQUENCIES_A_TICK;
	     st->next_frequency++) {
		const struct core *core = &st->cores.v[st->next_frequency];
		uint64_t khz;
		int r;

		if (!core->id)
			continue;
		asked++;
		snprintf(path, sizeof(path),
			 "sys/devices/system/cpu/cpu%zu/cpufreq/scaling_cur_freq",
			 st->next_frequency);
		r = io_read_u64(c->host->root, path, &khz);
		if (r == 0 && khz > 0 && khz < INT64_MAX)
			frame_put(f, M_CORE_FREQUENCY, core->id, (int64_t)khz);
		if (r == -ENOENT) {
			frame_gap(f, M_CORE_FREQUENCY, 0, GAP_NOT_SUPPORTED);
			st->no_frequency = true;
			return;
		}
	}
}

static int cpu_open(struct collect *c, void *state, struct frame *f)
{
	struct cpu_state *st = state;

	int r;

	(void)f;
	whole_init(&st->stat);
	r = whole_read(c->host, &st->stat, "proc/stat");
	if (r < 0)
		whole_done(&st->stat);
	return r;
}

static int cpu_read(struct collect *c, void *state, struct frame *f)
{
	struct cpu_state *st = state;
	struct cpu_stat now;
	int r = whole_read(c->host, &st->stat, "proc/stat");

	if (r == 0)
		r = cpu_parse(st->stat.text, st->stat.n, &now);
	if (r < 0)
		return r;
	put_total(&now, f);
	if (!due(&st->next_cores_ns, c->boot_ns, NS_PER_S) && !c->slow)
		return 0;
	r = read_cores(c, st, f);
	read_frequencies(c, st, f);
	return r;
}

static void cpu_close(void *state)
{
	struct cpu_state *st = state;

	whole_done(&st->stat);
	vec_done(&st->cores);
}

const struct collector cpu_collector = {
	.name = "cpu",
	.help = "time of all CPUs and of each, switches, forks, hot-plug, frequency (/proc/stat)",
	.state_size = sizeof(struct cpu_state),
	.open = cpu_open,
	.read = cpu_read,
	.close = cpu_close,
	.sample_metric = M_CPU_USER,
};
