/* SPDX-License-Identifier: MIT
 *
 * The tracks that are measured: which there are, and their numbers. Several series of the record may
 * be one of a track; all are read in one pass.
 */
#include "base/auto.h"
#include "base/clock.h"
#include "explain/rows.h"
#include "explain/verdict.h"
#include "model/gpu_tag.h"
#include "web/downsample.h"
#include "web/timeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { GPUS_MOST = 16, PROCESSES_MOST = 64, POINTS_LEAST = 60 };
/* Numbers in all tracks together: five bytes each in a file that may have 500 kB. */
enum { NUMBERS_MOST = 36000 };

/* Proportional memory is read every five seconds, and told where that of every process is known: a value
 * may stand for so long, and for longer in one part of so many. Of a few values the first, of a program
 * that is just starting, would be a large part. */
static const int64_t pss_fresh_ns = 12 * NS_PER_S;
enum { PSS_STALE_PART = 5, PSS_VALUES_LEAST = 12 };

/* Bytes of a whole run that are not worth a chart: a machine is never quite still. */
static const double traffic_least = 1e6;

/* One measured series, and where it goes. Several that go to the same place are added up. */
struct wanted {
	size_t track, series;
	double scale;
	struct feed feed;
};

struct plan {
	struct timeline *t;
	const struct window *w;
	VEC(struct wanted) wanted;
	VEC(struct series_key) keys;
};

static void plan_done(struct plan *p)
{
	for (size_t i = 0; i < p->wanted.n; i++)
		stretches_done(&p->wanted.v[i].feed.out);
	vec_done(&p->wanted);
	vec_done(&p->keys);
}

/* Adds a measured series to the last series of the last track. */
static int want(struct plan *p, enum metric_id m, uint32_t entity, double scale)
{
	struct timeline *t = p->t;
	struct wanted *x = vec_push(&p->wanted);
	struct series_key *key = vec_push(&p->keys);
	enum entity_kind kind = metrics[m].entity;

	if (!x || !key || !t->tracks.n || !t->tracks.v[t->tracks.n - 1].series.n)
		return -ENOMEM;
	*key = (struct series_key){ m, entity };
	*x = (struct wanted){ .track = t->tracks.n - 1,
			      .series = t->tracks.v[t->tracks.n - 1].series.n - 1,
			      .scale = scale,
			      .feed = { .counter = metrics[m].kind == KIND_COUNTER,
					.sparse = kind == ENTITY_PROC || kind == ENTITY_THREAD ||
						  kind == ENTITY_GPU || kind == ENTITY_GPU_PROC } };
	return 0;
}

/* Has this series a value in the window at all? */
static bool is_known(const struct plan *p, enum metric_id m, uint32_t entity)
{
	struct series_stat s;

	return window_stat(p->w, m, entity, &s) == 0;
}

/* A series of its own in this track, where it was read. */
static int want_one(struct plan *p, struct track *track, const char *name, enum metric_id m,
		    uint32_t entity, double scale)
{
	if (!is_known(p, m, entity))
		return 0;
	return track_add(track, name) ? want(p, m, entity, scale) : -ENOMEM;
}

/* A track of nothing is none. */
static void drop_empty(struct timeline *t)
{
	if (t->tracks.n && !t->tracks.v[t->tracks.n - 1].series.n) {
		vec_done(&t->tracks.v[t->tracks.n - 1].series);
		t->tracks.n--;
	}
}

static uint32_t gpu_entity(const struct window *w, const struct usage_gpu *g)
{
	const struct entity_table *all = window_entities(w);

	/* One that came back has a new row: the last. */
	for (size_t i = all->rows.n; i-- > 0;)
		if (all->rows.v[i].kind == ENTITY_GPU &&
		    all->rows.v[i].key == gpu_key(g->index, g->partition))
			return all->rows.v[i].id;
	return 0;
}

enum gpu_track { GPU_TRACK_BUSY, GPU_TRACK_MEMORY, GPU_TRACK_POWER, GPU_TRACKS };

static int plan_gpu(struct plan *p, const struct usage_gpu *g, enum gpu_track what)
{
	static const char *const names[] = { "busy", "memory", "power" };
	static const char *const units[] = { "%", "bytes", "W" };
	uint32_t id = gpu_entity(p->w, g);
	char number[32], title[64];
	struct track *t;
	int r = 0;

	if (!id || g->is_shell)
		return 0;
	snprintf(number, sizeof(number), g->partition < 0 ? "%d" : "%d:%d", g->index, g->partition);
	snprintf(title, sizeof(title), "GPU %s %s", number, names[what]);
	t = timeline_track(p->t, "gpu", units[what], title, "gpu%s_%s", number, names[what]);
	if (!t)
		return -ENOMEM;
	if (what == GPU_TRACK_BUSY) {
		r = want_one(p, t, "busy", M_GPU_BUSY, id, 100);
		if (r == 0)
			r = want_one(p, t, "SM active", M_GPU_SM_ACTIVE, id, 100);
	} else if (what == GPU_TRACK_MEMORY) {
		t->limit = g->memory_total;
		t->limit_name = "total";
		r = want_one(p, t, "used", M_GPU_MEM_USED, id, 1);
	} else {
		window_last(p->w, M_GPU_POWER_LIMIT, id, &t->limit);
		t->limit_name = "power limit";
		r = want_one(p, t, "drawn", M_GPU_POWER, id, 1);
	}
	drop_empty(p->t);
	return r;
}

/* How busy each is comes before the memory of any. */
static int plan_gpus(struct plan *p, const struct usage *u)
{
	int r = 0;

	for (int what = 0; what < GPU_TRACKS; what++)
		for (size_t i = 0; i < u->gpus.n && i < GPUS_MOST && r == 0; i++)
			r = plan_gpu(p, &u->gpus.v[i], (enum gpu_track)what);
	return r;
}

static int plan_cpu(struct plan *p, const struct verdict *v)
{
	static const enum metric_id busy[] = { M_CPU_USER, M_CPU_NICE, M_CPU_SYSTEM, M_CPU_IRQ,
					       M_CPU_SOFTIRQ };
	struct track *t = timeline_track(p->t, "cpu", "cores", "CPU", "cpu");
	int r;

	if (!t)
		return -ENOMEM;
	t->limit = v->usage.cores_allowed;
	t->limit_name = "allowed";
	r = want_one(p, t, "used", M_JOB_CPU, ID_JOB, 1);
	if (r == 0 && is_known(p, M_CPU_USER, ID_HOST)) {
		r = track_add(t, "whole machine") ? 0 : -ENOMEM;
		for (size_t i = 0; i < ARRAY_LEN(busy) && r == 0; i++)
			r = want(p, busy[i], ID_HOST, 1);
	}
	drop_empty(p->t);
	return r;
}

/* How much of the time a series was without a value, or had one that was read long ago. */
struct staleness {
	int64_t last_ns, stale_ns;
	unsigned values;
};

static void add_stale(struct staleness *s, int64_t t_ns)
{
	int64_t old = t_ns - s->last_ns, fresh = s->values ? pss_fresh_ns : 0;

	if (old > fresh)
		s->stale_ns += old - fresh;
}

static bool take_stale(size_t key, const struct point *p, void *arg)
{
	struct staleness *s = arg;

	(void)key;
	add_stale(s, p->from_ns < p->t_ns ? p->from_ns : p->t_ns);
	s->last_ns = p->t_ns;
	s->values++;
	return true;
}

static bool pss_is_dense(const struct window *w)
{
	const struct series_key key = { M_JOB_PSS, ID_JOB };
	struct staleness s = { .last_ns = w->from_ns };
	int64_t step = (w->to_ns - w->from_ns) / TIMELINE_POINTS;

	if (window_each_of(w, &key, 1, step, take_stale, &s) < 0)
		return false;
	add_stale(&s, w->to_ns);
	return s.values >= PSS_VALUES_LEAST &&
	       s.stale_ns <= (w->to_ns - w->from_ns) / PSS_STALE_PART;
}

/* Resident memory counts a page for each process that has it: forked workers may seem to have more than
 * there is. Proportional memory does not; where it was not read often enough, the sum is called what it is
 * and has no limit beside it. */
static int plan_memory(struct plan *p, const struct verdict *v)
{
	static const char each[] = "resident, shared pages counted for each process";
	struct series_stat n;
	bool single = window_stat(p->w, M_JOB_PROCESSES, ID_JOB, &n) == 0 && n.max <= 1;
	bool pss = !single && !v->usage.memory_at_most && pss_is_dense(p->w);
	bool limited = single || pss;
	char title[80];
	struct track *t;
	int r;

	/* A chart of one line says only its title. */
	snprintf(title, sizeof(title), "Memory%s%s", limited ? "" : ": ", limited ? "" : each);
	t = timeline_track(p->t, "memory", "bytes", title, "memory");
	if (!t)
		return -ENOMEM;
	if (limited) {
		t->limit = v->usage.memory_allowed;
		t->limit_name = "allowed";
	}
	if (pss)
		r = want_one(p, t, "used, shared pages counted once", M_JOB_PSS, ID_JOB, 1);
	else
		r = want_one(p, t, single ? "resident" : each, M_JOB_RSS, ID_JOB, 1);
	drop_empty(p->t);
	return r;
}

/* What the processes of the job fetched from storage and sent to it, added up. */
static int plan_io(struct plan *p)
{
	auto_free struct process_row *rows = NULL;
	size_t n = process_rows(p->w, &rows);
	struct track *t = timeline_track(p->t, "io", "bytes/s", "Storage", "io");
	int r = t ? 0 : -ENOMEM;

	for (int written = 0; written < 2 && r == 0; written++) {
		size_t used = 0;

		for (size_t i = 0; i < n && used < PROCESSES_MOST && r == 0; i++) {
			double amount = written ? rows[i].written : rows[i].read;

			if (isnan(amount) || (amount <= 0 && used))
				continue;
			if (!used++ && !track_add(t, written ? "written" : "read"))
				return -ENOMEM;
			r = want(p, written ? M_PROC_WRITTEN_BYTES : M_PROC_READ_BYTES,
				 rows[i].entity->id, 1);
		}
	}
	drop_empty(p->t);
	return r;
}

/* The busiest of the machine's disks or network interfaces: adding all up would count a disk and the
 * volume on it. */
static int plan_device(struct plan *p, enum entity_kind kind, const char *what, enum metric_id in,
		       enum metric_id out)
{
	const struct entity_table *all = window_entities(p->w);
	const struct entity *most = NULL;
	double best = traffic_least;
	struct track *t;
	char title[64];
	int r;

	for (size_t i = 0; i < all->rows.n; i++) {
		const struct entity *e = &all->rows.v[i];
		double a = 0, b = 0;

		if (e->kind != kind || !e->name || strcmp(e->name, "lo") == 0)
			continue;
		window_delta(p->w, in, e->id, &a);
		window_delta(p->w, out, e->id, &b);
		if (a + b > best) {
			best = a + b;
			most = e;
		}
	}
	if (!most)
		return 0;
	snprintf(title, sizeof(title), "%s %.40s (machine)", what, most->name);
	t = timeline_track(p->t, "io", "bytes/s", title, "%s",
			   kind == ENTITY_DISK ? "disk" : "network");
	r = want_one(p, t, kind == ENTITY_DISK ? "read" : "received", in, most->id, 1);
	if (r == 0)
		r = want_one(p, t, kind == ENTITY_DISK ? "written" : "sent", out, most->id, 1);
	drop_empty(p->t);
	return r;
}

static int plan_tracks(struct plan *p, const struct verdict *v)
{
	int r = plan_gpus(p, &v->usage);

	if (r == 0)
		r = plan_cpu(p, v);
	if (r == 0)
		r = plan_memory(p, v);
	if (r == 0)
		r = plan_io(p);
	if (r == 0)
		r = plan_device(p, ENTITY_DISK, "Disk", M_DISK_READ, M_DISK_WRITTEN);
	if (r == 0)
		r = plan_device(p, ENTITY_NIC, "Network", M_NET_RX, M_NET_TX);
	return r;
}

static bool take_point(size_t key, const struct point *point, void *arg)
{
	struct plan *p = arg;

	feed_point(&p->wanted.v[key].feed, point);
	return true;
}

/* Where nothing was read nothing held: gaps of the series, and the times the machine slept. */
static void blank(const struct plan *p, size_t at)
{
	struct stretches *s = &p->wanted.v[at].feed.out;
	const struct series_key *key = &p->keys.v[at];
	size_t n = 0, n_events = 0;
	const struct window_gap *gaps = p->w->ops->gaps(p->w->src, &n);
	const struct window_event *events = p->w->ops->events(p->w->src, &n_events);

	for (size_t i = 0; i < n; i++)
		if (gaps[i].metric == key->metric && gaps[i].why != GAP_OVER &&
		    (!gaps[i].entity || gaps[i].entity == key->entity))
			stretches_blank(s, gaps[i].from_ns,
					gaps[i].to_ns ? gaps[i].to_ns : INT64_MAX);
	for (size_t i = 0; i < n_events; i++) {
		double slept = events[i].kind == EVENT_SUSPEND ? events[i].value : 0;

		if (slept > 0 && slept < 1e9)
			stretches_blank(s, events[i].t_ns - (int64_t)(slept * 1e9), events[i].t_ns);
	}
}

static int read_all(struct plan *p, int64_t step_ns)
{
	const struct entity_table *all = window_entities(p->w);
	const struct run_info *run = window_run(p->w);
	int r = 0;

	for (size_t i = 0; i < p->wanted.n && r == 0; i++) {
		const struct series_key *key = &p->keys.v[i];
		struct feed *f = &p->wanted.v[i].feed;

		r = stretches_make(&f->out, p->t->from_ns, p->t->to_ns, p->t->points);
		feed_begin(f, window_from_zero(all, run, key->metric, key->entity, p->w->from_ns),
			   p->w->from_ns);
	}
	if (r == 0)
		r = window_each_of(p->w, p->keys.v, p->keys.n, step_ns, take_point, p);
	if (r == -ENODATA)
		r = 0;
	for (size_t i = 0; i < p->wanted.n && r == 0; i++) {
		const struct entity *e = entity_find(all, p->keys.v[i].entity);

		feed_end(&p->wanted.v[i].feed,
			 e && e->gone_ns && e->gone_ns < p->w->to_ns ? e->gone_ns : p->w->to_ns);
		blank(p, i);
	}
	return r;
}

/* Several series added up: known where one of them is. Of a sum no least and most are known. */
static void add_up(struct track_series *to, const struct stretches *from, double scale)
{
	for (size_t i = 0; i < from->n; i++) {
		double v = stretch_mean(&from->v[i]) * scale;

		if (isfinite(v))
			to->mean[i] = (isfinite(to->mean[i]) ? to->mean[i] : 0) + v;
	}
	to->min = to->max = NULL;
}

static void rescale(struct track_series *s, size_t n, double scale)
{
	for (size_t i = 0; i < 3 * n; i++)
		s->mean[i] *= scale;
}

static int fill(struct plan *p)
{
	for (size_t i = 0; i < p->wanted.n; i++) {
		const struct wanted *x = &p->wanted.v[i];
		struct track_series *s = &p->t->tracks.v[x->track].series.v[x->series];
		int r;

		if (s->mean) {
			add_up(s, &x->feed.out, x->scale);
			continue;
		}
		r = track_series_fill(s, &x->feed.out);
		if (r < 0)
			return r;
		rescale(s, p->t->points, x->scale);
	}
	return 0;
}

/* As many as there were ticks, as the file may hold, and as were asked for. */
static size_t count_points(const struct plan *p, const struct verdict *v, size_t most)
{
	double hz = v->run->hz > 0.01 && v->run->hz < 1000 ? v->run->hz : 10;
	double ticks = ceil((double)(p->t->to_ns - p->t->from_ns) / 1e9 * hz);
	size_t series = 4; /* steps and loss */
	size_t n = most && most < TIMELINE_POINTS ? most : TIMELINE_POINTS;

	for (size_t i = 0; i < p->t->tracks.n; i++)
		series += p->t->tracks.v[i].series.n;
	if (n > NUMBERS_MOST / (3 * series))
		n = NUMBERS_MOST / (3 * series);
	if (n < POINTS_LEAST)
		n = POINTS_LEAST;
	if (ticks < (double)n)
		n = ticks < 1 ? 1 : (size_t)ticks;
	return n;
}

int timeline_tracks(const struct window *w, const struct verdict *v, size_t points,
		    struct timeline *t)
{
	auto_done(plan) struct plan p = { .t = t, .w = w };
	int r = plan_tracks(&p, v);

	t->points = count_points(&p, v, points);
	if (r == 0)
		r = read_all(&p, (t->to_ns - t->from_ns) / (int64_t)t->points);
	return r == 0 ? fill(&p) : r;
}
