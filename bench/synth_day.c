/* SPDX-License-Identifier: MIT
 *
 * A day of a training job, made up: 16 CPUs, 8 GPUs with two processes each, 40 processes with 400
 * threads of which a quarter run at any time. Writes it with the shipped writer and asks the shipped
 * reader for the figures of every series, as `why` does.
 *
 *	synth_day [--hours 24] [--hz 1] [--keep] [FILE]
 *
 * Old samples are thinned to one a second anyway, so the day is made at 1 Hz and its last quarter of
 * an hour at 10 Hz: the file is the one that 10 Hz throughout would leave, in a tenth of the time.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "model/gpu_tag.h"
#include "record/reader.h"
#include "record/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CPUS = 16, GPUS = 8, ON_GPU = 2, PROCESSES = 40, THREADS = 400, LAST_S = 900 };

struct task {
	uint32_t id;
	int64_t cpu, delay, slices, minor, read, written, rss, user, kernel;
	bool busy;
};

struct gpu {
	uint32_t id, processes[ON_GPU];
	int64_t memory, energy, temperature, on[ON_GPU];
	bool slow[4];
};

struct job {
	uint64_t seed;
	int64_t t_ns;
	uint32_t cpus[CPUS];
	struct gpu gpus[GPUS];
	struct task processes[PROCESSES], threads[THREADS];
	int64_t host[METRICS], core[CPUS][4];
	struct frame frame;
	uint64_t given;
};

static uint64_t below(struct job *j, uint64_t n)
{
	uint64_t x = j->seed += 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return (x ^ (x >> 31)) % n;
}

static void announce(struct job *j, enum entity_kind kind, uint32_t id, uint32_t parent,
		     int64_t key, const char *name)
{
	struct gpu_tag tag = { .vendor = "nvidia", .driver = "590.48.01", .simulated = true };
	char gpu[512];

	gpu_tag_write(&tag, gpu, sizeof(gpu));
	frame_life(&j->frame,
		   &(struct life){
		       .change = LIFE_BORN, .id = id, .parent = parent, .kind = kind, .key = key },
		   name,
		   kind == ENTITY_PROC  ? "python3 train.py --workers 32"
		   : kind == ENTITY_GPU ? gpu
					: NULL);
}

static void first_tick(struct job *j)
{
	uint32_t id = ID_FIRST_FREE;
	char name[32];

	announce(j, ENTITY_HOST, ID_HOST, 0, 0, "machine");
	announce(j, ENTITY_JOB, ID_JOB, ID_HOST, 0, "job");
	announce(j, ENTITY_SELF, ID_SELF, ID_HOST, 0, "spotter");
	for (int i = 0; i < CPUS; i++) {
		snprintf(name, sizeof(name), "cpu%d", i);
		announce(j, ENTITY_CPU, j->cpus[i] = id++, ID_HOST, i, name);
	}
	for (int i = 0; i < GPUS; i++) {
		announce(j, ENTITY_GPU, j->gpus[i].id = id++, ID_HOST, gpu_key(i, -1), "H100");
		j->gpus[i].temperature = 60;
	}
	for (int i = 0; i < GPUS * ON_GPU; i++)
		announce(j, ENTITY_GPU_PROC, j->gpus[i / ON_GPU].processes[i % ON_GPU] = id++,
			 j->gpus[i / ON_GPU].id, i % ON_GPU ? 900 + i : 1000 + i, "python3");
	for (int i = 0; i < PROCESSES; i++)
		announce(j, ENTITY_PROC, j->processes[i].id = id++, ID_JOB, 1000 + i, "python3");
	for (int i = 0; i < THREADS; i++)
		announce(j, ENTITY_THREAD, j->threads[i].id = id++, j->processes[i % PROCESSES].id,
			 5000 + i, "worker");
}

static void put(struct job *j, enum metric_id m, uint32_t entity, int64_t raw)
{
	frame_put(&j->frame, m, entity, raw);
	j->given++;
}

static void put_host(struct job *j, double dt)
{
	for (int m = M_CPU_USER; m < METRICS; m++) {
		const struct metric *d = &metrics[m];

		if (d->entity != ENTITY_HOST)
			continue;
		if (d->kind == KIND_COUNTER)
			j->host[m] += (int64_t)(dt * (double)below(j, 2000));
		else if (below(j, 4) == 0)
			j->host[m] = (1 << 24) + (int64_t)below(j, 200000);
		put(j, (enum metric_id)m, ID_HOST, j->host[m]);
	}
}

static void put_cpus(struct job *j, double dt)
{
	for (int i = 0; i < CPUS; i++) {
		int64_t busy = (int64_t)below(j, (uint64_t)(dt * 90) + 1);

		j->core[i][0] += busy;
		j->core[i][1] += busy / 10;
		j->core[i][2] += (int64_t)(dt * 100) - busy;
		put(j, M_CORE_USER, j->cpus[i], j->core[i][0]);
		put(j, M_CORE_SYSTEM, j->cpus[i], j->core[i][1]);
		put(j, M_CORE_IDLE, j->cpus[i], j->core[i][2]);
		put(j, M_CORE_IOWAIT, j->cpus[i], j->core[i][3]);
		put(j, M_CORE_STEAL, j->cpus[i], 0);
		put(j, M_CORE_FREQUENCY, j->cpus[i], 2000000 + (int64_t)below(j, 50) * 20000);
	}
}

static void put_gpu(struct job *j, struct gpu *g, double dt)
{
	static const enum metric_id slow[4] = { M_GPU_SLOW_POWER, M_GPU_SLOW_HEAT, M_GPU_SLOW_BRAKE,
						M_GPU_SLOW_HW };
	int64_t power = 300000 + (int64_t)below(j, 400000);

	g->energy += (int64_t)(dt * (double)power);
	g->temperature += g->temperature > 75   ? -1
			  : g->temperature < 50 ? 1
						: (int64_t)below(j, 3) - 1;
	put(j, M_GPU_BUSY, g->id, 100 * (int64_t)below(j, 101));
	put(j, M_GPU_MEM_TOTAL, g->id, 80 << 20);
	put(j, M_GPU_POWER, g->id, power);
	put(j, M_GPU_ENERGY, g->id, g->energy);
	put(j, M_GPU_TEMPERATURE, g->id, g->temperature);
	put(j, M_GPU_CLOCK_SM, g->id, 1200 + 15 * (int64_t)below(j, 50));
	put(j, M_GPU_CLOCK_SM_MAX, g->id, 1980);
	put(j, M_GPU_PROCESSES, g->id, ON_GPU);
	put(j, M_GPU_AGE, g->id, (int64_t)below(j, 200000000));
	for (int i = 0; i < 4; i++) {
		g->slow[i] ^= below(j, 20) == 0;
		put(j, slow[i], g->id, g->slow[i]);
	}
	g->memory = 0;
	for (int i = 0; i < ON_GPU; i++) {
		if (below(j, 5) == 0)
			g->on[i] = (20 << 20) + 2048 * (int64_t)below(j, 5000);
		g->memory += g->on[i];
		put(j, M_GPU_PROC_MEMORY, g->processes[i], g->on[i]);
		put(j, M_GPU_PROC_BUSY, g->processes[i], 100 * (int64_t)below(j, 60));
	}
	put(j, M_GPU_MEM_USED, g->id, g->memory);
}

static void put_process(struct job *j, struct task *p, double dt)
{
	int64_t used = (int64_t)(dt * 1e9 * (double)below(j, 1000) / 1000);

	p->cpu += used;
	p->user = p->cpu / 12000000;
	p->kernel = p->cpu / 80000000;
	p->minor += (int64_t)below(j, 300);
	p->read += (int64_t)below(j, 8) * 131072;
	p->slices += (int64_t)below(j, 50);
	if (below(j, 5) == 0)
		p->rss = 3000000 + (int64_t)below(j, 40000) * 4;
	put(j, M_PROC_CPU, p->id, p->cpu);
	put(j, M_PROC_CPU_USER, p->id, p->user);
	put(j, M_PROC_CPU_SYSTEM, p->id, p->kernel);
	put(j, M_PROC_RSS, p->id, p->rss);
	put(j, M_PROC_RSS_SHARED, p->id, 400000);
	put(j, M_PROC_VIRTUAL, p->id, 20000000);
	put(j, M_PROC_THREADS, p->id, 11);
	put(j, M_PROC_MINOR_FAULTS, p->id, p->minor);
	put(j, M_PROC_MAJOR_FAULTS, p->id, 3);
	put(j, M_PROC_READ_CHARS, p->id, p->read);
	put(j, M_PROC_READS, p->id, p->read / 131072);
	put(j, M_PROC_READ_BYTES, p->id, p->read / 2);
	put(j, M_PROC_SWITCHES, p->id, p->slices);
	put(j, M_PROC_STATE, p->id, below(j, 3) ? 'S' : 'R');
}

static void put_tasks(struct job *j, double dt)
{
	for (int i = 0; i < PROCESSES; i++)
		put_process(j, &j->processes[i], dt);
	for (int i = 0; i < THREADS; i++) {
		struct task *t = &j->threads[i];

		/* stretches of work and of sleep of some seconds */
		if (below(j, 50) == 0)
			t->busy = below(j, 4) == 0;
		if (!t->busy)
			continue;
		t->cpu += (int64_t)(dt * 1e9 * (double)below(j, 1000) / 1000);
		t->delay += (int64_t)(dt * (double)below(j, 2000000));
		t->slices += (int64_t)below(j, 20);
		put(j, M_THREAD_CPU, t->id, t->cpu);
		put(j, M_THREAD_RUN_DELAY, t->id, t->delay);
		put(j, M_THREAD_SLICES, t->id, t->slices);
		put(j, M_THREAD_STATE, t->id, below(j, 3) ? 'S' : 'R');
	}
}

static struct frame *tick(struct job *j, double dt)
{
	bool first = !j->frame.mono_ns;

	j->t_ns += (int64_t)(dt * 1e9) + (int64_t)below(j, 60000);
	frame_begin(&j->frame, j->t_ns, j->t_ns);
	if (first)
		first_tick(j);
	put_host(j, dt);
	put_cpus(j, dt);
	for (int i = 0; i < GPUS; i++)
		put_gpu(j, &j->gpus[i], dt);
	put_tasks(j, dt);
	put(j, M_JOB_CPU, ID_JOB, j->processes[0].cpu * PROCESSES);
	put(j, M_JOB_RSS, ID_JOB, j->processes[0].rss * PROCESSES);
	put(j, M_JOB_THREADS, ID_JOB, THREADS);
	put(j, M_JOB_RUNNABLE, ID_JOB, (int64_t)below(j, 20));
	put(j, M_SELF_CPU, ID_SELF, j->t_ns / 200);
	return &j->frame;
}

static double now(void)
{
	return (double)clock_mono_ns() / 1e9;
}

static int write_day(struct job *j, const char *path, double hours, double hz)
{
	struct run_info run = { .id = "synth",
				.name = "synth_day",
				.started_mono_ns = j->t_ns,
				.hz = 10,
				.rusage_cpu_ns = -1,
				.rusage_maxrss_bytes = -1,
				.machine = { .cpus = CPUS } };
	struct record_options o = { .sync_every_ns = 3600 * NS_PER_S };
	int64_t end = j->t_ns + (int64_t)(hours * 3600 * 1e9);
	struct record_writer *w;
	struct record_health h;
	struct err e = { 0 };
	struct rusage before, after;
	double t0 = now(), cpu;
	struct stat st;

	getrusage(RUSAGE_SELF, &before);
	if (record_create(path, &run, &o, &w, &e) < 0) {
		fprintf(stderr, "synth_day: %s\n", e.text);
		return 1;
	}
	while (j->t_ns < end)
		record_frame(w, tick(j, j->t_ns < end - LAST_S * NS_PER_S ? 1 / hz : 0.1));
	record_flush(w);
	record_health(w, &h);
	run.state = RUN_ENDED;
	if (record_finish(w, &run) < 0 || stat(path, &st) < 0)
		return 1;
	getrusage(RUSAGE_SELF, &after);
	cpu = (double)(after.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_utime.tv_sec -
		       before.ru_stime.tv_sec);
	printf("written   %.1f M samples given, %.1f M kept at first, in %.1f s (%.0f s CPU), %.0f "
	       "ns a"
	       " sample; memory %.1f MB\n",
	       (double)j->given / 1e6, (double)h.samples / 1e6, now() - t0, cpu,
	       (now() - t0) * 1e9 / (double)j->given, (double)after.ru_maxrss / 1024);
	printf("file      %.1f MB\n", (double)st.st_size / 1e6);
	return 0;
}

/* Every figure of every series, as if a verdict wanted them all. */
static void ask_all(struct record *r, double from_s, double to_s, const char *what)
{
	struct window w = record_window(r, 0, 0);
	const struct entity_table *t = window_entities(&w);
	struct series_stat s;
	double t0 = now();
	size_t n = 0;

	if (to_s > 0)
		w = record_window(r, w.from_ns + (int64_t)(from_s * 1e9),
				  w.from_ns + (int64_t)(to_s * 1e9));
	for (size_t i = 0; i < t->rows.n; i++)
		for (int m = 1; m < METRICS; m++)
			if (metrics[m].entity == t->rows.v[i].kind)
				n += window_stat(&w, (enum metric_id)m, t->rows.v[i].id, &s) == 0;
	printf("figures   %zu series over %s in %.3f s\n", n, what, now() - t0);
}

static bool count_point(const struct point *p, void *arg)
{
	(void)p;
	++*(size_t *)arg;
	return true;
}

static int read_day(const char *path, double hours)
{
	struct record *r;
	struct err e = { 0 };
	double t0 = now(), end = hours * 3600;
	struct window w;
	size_t n = 0;

	if (record_open(path, &r, &e) < 0) {
		fprintf(stderr, "synth_day: %s\n", e.text);
		return 1;
	}
	printf("opened    in %.3f s\n", now() - t0);
	ask_all(r, 0, 0, "the whole run");
	ask_all(r, 1234.5, end - 1234.5, "a ragged window of nearly all");
	ask_all(r, end / 2, end / 2 + 600, "10 minutes in the middle");
	ask_all(r, end - 600, end, "the last 10 minutes");
	w = record_window(r, 0, 0);
	t0 = now();
	w.ops->each(w.src, M_MEM_FREE, ID_HOST, w.from_ns, w.to_ns, 300 * NS_PER_S, count_point,
		    &n);
	printf("points    %zu of one series in steps of 5 min in %.3f s\n", n, now() - t0);
	n = 0;
	t0 = now();
	w.ops->each(w.src, M_MEM_FREE, ID_HOST, w.from_ns, w.to_ns, 0, count_point, &n);
	printf("points    %zu of one series, all samples, in %.3f s\n", n, now() - t0);
	record_close(r);
	return 0;
}

int main(int argc, char **argv)
{
	struct job j = { .seed = 1, .t_ns = 1000 * NS_PER_S };
	double hours = 24, hz = 1;
	const char *path = NULL;
	bool keep = false, bad = false;
	int r;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--hours") == 0 && i + 1 < argc)
			bad |= !num_parse_double(argv[++i], &hours) || hours <= 0;
		else if (strcmp(argv[i], "--hz") == 0 && i + 1 < argc)
			bad |= !num_parse_double(argv[++i], &hz) || hz <= 0;
		else if (strcmp(argv[i], "--keep") == 0)
			keep = true;
		else
			path = argv[i];
	}
	if (bad) {
		fprintf(stderr, "usage: synth_day [--hours N] [--hz N] [--keep] [FILE]\n");
		return 2;
	}
	if (!path)
		path = "synth_day.spot";
	unlink(path);
	r = write_day(&j, path, hours, hz);
	if (r == 0)
		r = read_day(path, hours);
	if (!keep)
		unlink(path);
	frame_done(&j.frame);
	return r;
}
