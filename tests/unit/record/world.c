/* SPDX-License-Identifier: MIT */
#include "world.h"

#include "base/clock.h"
#include "record/series.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void world_init(struct world *w, uint64_t seed, unsigned tasks_max)
{
	*w = (struct world){ .random = { seed },
			     .start_ns = 5000 * NS_PER_S + 120000,
			     .next_id = ID_FIRST_FREE,
			     .tasks_max = tasks_max };
	w->t_ns = w->start_ns;
}

void world_done(struct world *w)
{
	for (size_t i = 0; i < w->series.n; i++)
		vec_done(&w->series.v[i].v);
	vec_done(&w->series);
	vec_done(&w->tasks);
	map_done(&w->by_key);
	entity_table_done(&w->entities);
	frame_done(&w->frame);
}

const struct world_series *world_find(const struct world *w, enum metric_id m, uint32_t entity)
{
	uint32_t at;

	return map_get(&w->by_key, (uint64_t)m << 32 | entity, &at) ? &w->series.v[at] : NULL;
}

/* raw is in the file's unit: CPU times are kept to 10 us. */
static void put(struct world *w, enum metric_id m, uint32_t entity, int64_t raw)
{
	uint64_t key = (uint64_t)m << 32 | entity;
	struct world_sample *s;
	uint32_t at;

	frame_put(&w->frame, m, entity, metrics[m].scale == 1e-9 ? raw * SERIES_TICK_NS : raw);
	if (!map_get(&w->by_key, key, &at)) {
		struct world_series *row = vec_push(&w->series);

		*row = (struct world_series){ .metric = m, .entity = entity };
		at = (uint32_t)(w->series.n - 1);
		map_put(&w->by_key, key, at);
	}
	s = vec_push(&w->series.v[at].v);
	*s = (struct world_sample){ w->t_ns, raw };
}

static uint64_t below(struct world *w, uint64_t n)
{
	return random_below(&w->random, n);
}

static void born(struct world *w, enum entity_kind kind, uint32_t id, uint32_t parent, int64_t key,
		 const char *name, const char *detail)
{
	frame_life(&w->frame,
		   &(struct life){ .change = LIFE_BORN,
				   .id = id,
				   .parent = parent,
				   .kind = kind,
				   .key = key,
				   .start_ns = kind == ENTITY_PROC ? w->t_ns : 0 },
		   name, detail);
}

static void first_tick(struct world *w)
{
	born(w, ENTITY_HOST, ID_HOST, 0, 0, "machine", NULL);
	born(w, ENTITY_JOB, ID_JOB, ID_HOST, 0, "job", NULL);
	born(w, ENTITY_SELF, ID_SELF, ID_HOST, 0, "spotter", NULL);
	born(w, ENTITY_CPU, w->next_id++, ID_HOST, 0, "cpu0", NULL);
	born(w, ENTITY_CPU, w->next_id++, ID_HOST, 1, "cpu1", NULL);
	born(w, ENTITY_MOUNT, w->next_id++, ID_HOST, 0, "/dev/shm", "tmpfs on /dev/shm");
}

static void add_task(struct world *w)
{
	struct world_task *t = vec_push(&w->tasks);
	bool thread = w->tasks.n > 1 && below(w, 2);
	char name[40];

	*t = (struct world_task){ .id = w->next_id++,
				  .kind = thread ? ENTITY_THREAD : ENTITY_PROC,
				  .alive = true };
	if (thread) {
		const struct world_task *p = &w->tasks.v[below(w, w->tasks.n - 1)];

		t->parent = p->kind == ENTITY_PROC ? p->id : p->parent;
	}
	/* what a process may be called: ')' and newline, and bytes that are no UTF-8 */
	snprintf(name, sizeof(name), "task %u)\n", t->id);
	born(w, t->kind, t->id, t->parent, 1000 + t->id, name,
	     thread ? NULL : "python3 train.py --lr 0.1");
}

static void step_task(struct world *w, struct world_task *t)
{
	if (below(w, 40) == 0)
		t->idle = !t->idle;
	if (t->idle)
		return;
	t->cpu += (int64_t)below(w, 100000);
	t->delay += (int64_t)below(w, 5000);
	t->slices += (int64_t)below(w, 20);
	if (below(w, 3) == 0)
		t->rss = (int64_t)below(w, 1u << 24);
	if (t->kind == ENTITY_THREAD) {
		put(w, M_THREAD_CPU, t->id, t->cpu);
		put(w, M_THREAD_RUN_DELAY, t->id, t->delay);
		put(w, M_THREAD_SLICES, t->id, t->slices);
		put(w, M_THREAD_STATE, t->id, below(w, 4) ? 'S' : 'R');
		return;
	}
	put(w, M_PROC_CPU, t->id, t->cpu);
	put(w, M_PROC_CPU_USER, t->id, t->cpu / 10000);
	put(w, M_PROC_RSS, t->id, t->rss);
	put(w, M_PROC_THREADS, t->id, 1 + (int64_t)below(w, 3));
	put(w, M_PROC_STATE, t->id, 'R');
}

static void end_task(struct world *w, struct world_task *t)
{
	t->alive = false;
	frame_life(&w->frame, &(struct life){ .change = LIFE_GONE, .id = t->id }, "", NULL);
	if (t->kind != ENTITY_PROC)
		return;
	frame_event(&w->frame, EVENT_EXIT, t->id, (double)below(w, 3), "ended");
	w->events++;
}

static void step_tasks(struct world *w)
{
	unsigned alive = 0;

	for (size_t i = 0; i < w->tasks.n; i++)
		alive += w->tasks.v[i].alive;
	if (alive < w->tasks_max && (alive < 2 || below(w, 10) == 0))
		add_task(w);
	for (size_t i = 0; i < w->tasks.n; i++) {
		struct world_task *t = &w->tasks.v[i];

		if (!t->alive)
			continue;
		step_task(w, t);
		if (i && below(w, 300) == 0)
			end_task(w, t);
		else if (i && below(w, 300) == 0)
			frame_life(&w->frame,
				   &(struct life){ .change = LIFE_CHANGED,
						   .id = t->id,
						   .parent = t->parent,
						   .kind = t->kind },
				   "exec'd", "other --arguments");
	}
}

static void step_counter(struct world *w, enum metric_id m, uint32_t entity, uint64_t most)
{
	int64_t *v = &w->host[m];

	*v += (int64_t)below(w, most);
	if (below(w, 400) == 0)
		*v = (int64_t)below(w, most); /* reset */
	put(w, m, entity, *v);
}

static void step_host(struct world *w)
{
	int64_t *free_kb = &w->host[M_MEM_FREE];

	step_counter(w, M_CPU_USER, ID_HOST, 20);
	step_counter(w, M_HOST_SWITCHES, ID_HOST, 10000);
	step_counter(w, M_JOB_CPU, ID_JOB, 200000);
	step_counter(w, M_CORE_USER, ID_FIRST_FREE, 10);
	*free_kb += (int64_t)below(w, 2001) - 1000;
	put(w, M_MEM_FREE, ID_HOST, *free_kb);
	put(w, M_MEM_TOTAL, ID_HOST, 16 << 20);
	put(w, M_JOB_THREADS, ID_JOB, (int64_t)below(w, 8));
	if (w->ticks % 50 == 0) /* a slow collector */
		put(w, M_MOUNT_AVAILABLE, ID_FIRST_FREE + 2, (int64_t)below(w, 1u << 20));
}

static void step_rare(struct world *w)
{
	if (!w->quiet && below(w, 200) == 0) {
		frame_event(&w->frame, EVENT_LIMIT, ID_JOB, 2.5, "quota is now %d.%d cores", 2, 5);
		w->events++;
	}
	if (below(w, 100) == 0)
		frame_gap(&w->frame, M_PSI_CPU_SOME, ID_HOST,
			  below(w, 2) ? GAP_OVER : (enum gap_why)below(w, 5));
}

struct frame *world_tick(struct world *w, int64_t step_ns)
{
	w->t_ns = series_time(w->t_ns + step_ns);
	frame_begin(&w->frame, w->t_ns, 1900000000 * NS_PER_S + w->t_ns);
	if (!w->ticks)
		first_tick(w);
	w->ticks++;
	step_host(w);
	step_tasks(w);
	step_rare(w);
	entity_table_frame(&w->entities, &w->frame);
	return &w->frame;
}

void world_run(const struct world *w, struct run_info *ret)
{
	static const char *const argv[] = { "python3", "train.py", "--note", "a \"b\" \xc3\xa9\n",
					    NULL };

	*ret = (struct run_info){ .id = "20261115-211209-4f3a",
				  .name = "train.py",
				  .machine = { .hostname = "node7",
					       .kernel = "6.1.0",
					       .cpu_model = "Some CPU @ 3 GHz",
					       .cpus = 16,
					       .threads_per_core = 2,
					       .memory_bytes = 64ll << 30,
					       .virtualisation = "kvm" },
				  .version = "0.1.0",
				  .started_wall_ns = 1900000000 * NS_PER_S,
				  .started_mono_ns = w->start_ns,
				  .hz = 10,
				  .level = 1,
				  .pid = 4242,
				  .state = RUN_GOING,
				  .rusage_cpu_ns = -1,
				  .rusage_maxrss_bytes = -1 };
	run_info_set_argv(ret, (char *const *)argv);
	ret->cwd = strdup("/data/project");
}

void test_path(char *ret, size_t size)
{
	const char *top = getenv("TMPDIR");
	char folder[200];

	snprintf(folder, sizeof(folder), "%s/spotter-test-XXXXXX", top && top[0] ? top : "/tmp");
	if (!mkdtemp(folder))
		abort();
	snprintf(ret, size, "%s/run.spot", folder);
}

void test_path_rm(const char *path)
{
	char folder[300], name[600];
	struct dirent *entry;
	DIR *d;

	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	d = opendir(folder);
	while (d && (entry = readdir(d))) {
		snprintf(name, sizeof(name), "%s/%s", folder, entry->d_name);
		unlink(name);
	}
	if (d)
		closedir(d);
	rmdir(folder);
}
