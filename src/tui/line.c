/* SPDX-License-Identifier: MIT */
#include "tui/line.h"

#include "base/auto.h"
#include "base/clock.h"

#include <math.h>

enum { KEYS_MAX = 96 };
/* Proportional memory is read every five seconds, and told where that of every process is known: a value
 * may stand for so long, and for longer in one part of so many. Of a few values the first, of a program
 * that is just starting, would be a large part. */
static const int64_t pss_fresh_ns = 12 * NS_PER_S;
enum { PSS_STALE_PART = 5, PSS_VALUES_LEAST = 12 };

/* One series on its way into a line. */
struct feed {
	enum line_id line; /* LINE_IDS: of none */
	double sign;
	bool counter;
	bool any;
	unsigned values;
	int64_t t_ns;     /* of the last point */
	double held;      /* what it was then */
	int64_t stale_ns; /* time without a value, or with one that was read long ago */
	double sum[LINE_POINTS], seconds[LINE_POINTS];
};

struct feeds {
	const struct line_spec *spec;
	int64_t left_ns, from_ns; /* from_ns: what is known begins */
	struct series_key keys[KEYS_MAX];
	struct feed *v[KEYS_MAX];
	size_t n;
	int failed;
};

static void add(struct feeds *f, enum line_id line, double sign, enum metric_id m, uint32_t entity)
{
	struct feed *x;

	if (f->n == KEYS_MAX)
		return;
	x = calloc(1, sizeof(*x));
	if (!x) {
		f->failed = -ENOMEM;
		return;
	}
	*x =
	    (struct feed){ .line = line, .sign = sign, .counter = metrics[m].kind == KIND_COUNTER };
	f->keys[f->n] = (struct series_key){ m, entity };
	f->v[f->n++] = x;
}

static void feeds_done(struct feeds *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->v[i]);
}

/* Something that went on at this rate from a to b. */
static void spread(const struct feeds *f, struct feed *x, int64_t a, int64_t b, double rate)
{
	int64_t step = f->spec->step_ns;
	long first;

	a = a < f->left_ns ? f->left_ns : a;
	b = b > f->spec->right_ns ? f->spec->right_ns : b;
	if (b <= a || !isfinite(rate))
		return;
	first = (long)((a - f->left_ns) / step);
	for (long i = first; i < LINE_POINTS && f->left_ns + i * step < b; i++) {
		int64_t from = f->left_ns + i * step, to = from + step;
		double seconds = (double)((to < b ? to : b) - (from > a ? from : a)) / 1e9;

		x->sum[i] += rate * seconds;
		x->seconds[i] += seconds;
	}
}

/* The next value is of this moment. */
static void add_stale(const struct feeds *f, struct feed *x, int64_t t_ns)
{
	int64_t old = t_ns - (x->any ? x->t_ns : f->from_ns), fresh = x->any ? pss_fresh_ns : 0;

	if (old > fresh)
		x->stale_ns += old - fresh;
}

static bool take_point(size_t key, const struct point *p, void *arg)
{
	struct feeds *f = arg;
	struct feed *x = f->v[key];
	int64_t from = p->from_ns < p->t_ns ? p->from_ns : p->t_ns;

	add_stale(f, x, from);
	if (x->counter) {
		if (x->any && p->t_ns > x->t_ns)
			spread(f, x, x->t_ns, p->t_ns,
			       fmax(0, counter_growth(x->held, p->value)) /
				   ((double)(p->t_ns - x->t_ns) / 1e9));
		x->held = p->value;
	} else {
		if (x->any)
			spread(f, x, x->t_ns, from, x->held);
		spread(f, x, from, p->t_ns, p->value);
		x->held = p->last;
	}
	x->any = true;
	x->values++;
	x->t_ns = p->t_ns;
	return true;
}

static void ask_machine(struct feeds *f, const struct entity_table *all)
{
	bool plain_disk = false;

	for (size_t i = 0; i < all->rows.n; i++)
		plain_disk |= all->rows.v[i].kind == ENTITY_DISK &&
			      strncmp(all->rows.v[i].name, "dm-", 3) != 0 &&
			      strncmp(all->rows.v[i].name, "md", 2) != 0;
	for (size_t i = 0; i < all->rows.n; i++) {
		const struct entity *e = &all->rows.v[i];

		/* Disks made of others would count twice. */
		if (e->kind != ENTITY_DISK || (plain_disk && (strncmp(e->name, "dm-", 3) == 0 ||
							      strncmp(e->name, "md", 2) == 0)))
			continue;
		add(f, LINE_READ, 1, M_DISK_READ, e->id);
		add(f, LINE_WRITTEN, 1, M_DISK_WRITTEN, e->id);
	}
}

static void ask(struct feeds *f, const struct window *w)
{
	static const enum metric_id cpu[] = { M_CPU_USER, M_CPU_NICE, M_CPU_SYSTEM, M_CPU_IRQ,
					      M_CPU_SOFTIRQ };

	if (f->spec->job) {
		add(f, LINE_CPU, 1, M_JOB_CPU, ID_JOB);
		add(f, LINE_MEMORY, 1, M_JOB_RSS, ID_JOB);
		add(f, LINE_IDS, 1, M_JOB_PSS, ID_JOB);
		add(f, LINE_IDS, 1, M_JOB_PROCESSES, ID_JOB);
	} else {
		for (size_t i = 0; i < ARRAY_LEN(cpu); i++)
			add(f, LINE_CPU, 1, cpu[i], ID_HOST);
		add(f, LINE_MEMORY, 1, M_MEM_TOTAL, ID_HOST);
		add(f, LINE_MEMORY, -1, M_MEM_AVAILABLE, ID_HOST);
	}
	for (size_t i = 0; i < f->spec->n_gpus && i < LINE_GPUS; i++)
		add(f, LINE_GPU + (enum line_id)i, 1, M_GPU_BUSY, f->spec->gpus[i]);
	ask_machine(f, window_entities(w));
}

/* What held at the end of a gauge holds on until its thing ends, or what is known does. */
static void hold(struct feeds *f, const struct window *w)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct entity *e = entity_find(window_entities(w), f->keys[i].entity);
		int64_t end = w->to_ns;

		if (e && e->gone_ns && e->gone_ns < end)
			end = e->gone_ns;
		add_stale(f, f->v[i], w->to_ns);
		if (!f->v[i]->counter && f->v[i]->any)
			spread(f, f->v[i], f->v[i]->t_ns, end, f->v[i]->held);
	}
}

static struct feed *feed_of(const struct feeds *f, enum metric_id m)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->keys[i].metric == m && f->keys[i].entity == ID_JOB)
			return f->v[i];
	return NULL;
}

/* Were there ever several of them? So also where nobody counted. */
static bool are_several(const struct feed *processes)
{
	for (size_t k = 0; processes->any && k < LINE_POINTS; k++)
		if (processes->sum[k] > 1.001 * processes->seconds[k])
			return true;
	return !processes->any;
}

/* Resident memory counts a page for each process that has it: of several, proportional memory is drawn
 * where it was read often enough. */
static void choose_memory(const struct feeds *f, int64_t to_ns, struct line *line)
{
	struct feed *rss = feed_of(f, M_JOB_RSS), *pss = feed_of(f, M_JOB_PSS);
	const struct feed *processes = feed_of(f, M_JOB_PROCESSES);

	if (!rss || !pss || !processes || !are_several(processes))
		return;
	if (pss->values >= PSS_VALUES_LEAST &&
	    pss->stale_ns <= (to_ns - f->from_ns) / PSS_STALE_PART) {
		rss->line = LINE_IDS;
		pss->line = LINE_MEMORY;
	} else {
		line->at_most = true;
	}
}

static void fill(const struct feeds *f, struct line *lines)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct feed *x = f->v[i];
		struct line *l = &lines[x->line];

		for (size_t k = 0; x->line < LINE_IDS && x->any && k < LINE_POINTS; k++) {
			double v = x->sign * x->sum[k] / x->seconds[k];

			if (!(x->seconds[k] > 0))
				continue;
			l->v[k] = isnan(l->v[k]) ? (float)v : l->v[k] + (float)v;
			l->any = true;
		}
	}
}

static void fill_all_gpus(const struct line_spec *spec, struct line *lines)
{
	struct line *all = &lines[LINE_ALL_GPUS];

	for (size_t k = 0; k < LINE_POINTS; k++) {
		double sum = 0;
		int n = 0;

		for (size_t i = 0; i < spec->n_gpus && i < LINE_GPUS; i++) {
			if (isnan(lines[LINE_GPU + i].v[k]))
				continue;
			sum += lines[LINE_GPU + i].v[k];
			n++;
		}
		all->v[k] = n ? (float)(sum / n) : NAN;
		all->any |= n > 0;
	}
}

/* Steps of the process that marked the first: ranks march in step. Between the first and the last of
 * them no step is a rate of 0. */
static void fill_steps(const struct feeds *f, const struct window *w, struct line *line,
		       struct line *loss)
{
	size_t n = 0;
	const struct window_step *s = w->ops->steps ? w->ops->steps(w->src, &n) : NULL;
	double per = 1e9 / (double)f->spec->step_ns;
	unsigned said[LINE_POINTS] = { 0 };

	if (!n)
		return;
	for (size_t k = 0; k < LINE_POINTS; k++) {
		int64_t from = f->left_ns + (int64_t)k * f->spec->step_ns;

		if (from + f->spec->step_ns > s[0].begin_ns && from < w->to_ns)
			line->v[k] = 0;
	}
	for (size_t i = 0; i < n; i++) {
		int64_t at = (s[i].end_ns - f->left_ns - 1) / f->spec->step_ns;

		if (s[i].entity != s[0].entity || s[i].end_ns <= f->left_ns ||
		    s[i].end_ns > f->spec->right_ns)
			continue;
		line->v[at] = (isnan(line->v[at]) ? 0 : line->v[at]) + (float)per;
		line->any = true;
		if (!isfinite(s[i].loss))
			continue;
		loss->v[at] = said[at] ? loss->v[at] + (float)s[i].loss : (float)s[i].loss;
		said[at]++;
		loss->any = true;
	}
	for (size_t k = 0; k < LINE_POINTS; k++)
		if (said[k])
			loss->v[k] /= (float)said[k];
	/* A loss holds until the next one is told. */
	for (size_t k = 1, from = 0; k < LINE_POINTS; k++) {
		if (!said[k])
			continue;
		for (size_t i = from + 1; said[from] && i < k; i++)
			loss->v[i] = loss->v[from];
		from = k;
	}
}

int lines_take(const struct window *w, const struct line_spec *spec, struct line *lines)
{
	struct feeds *f = calloc(1, sizeof(*f));
	struct window all = *w;
	int r;

	if (!f)
		return -ENOMEM;
	for (int i = 0; i < LINE_IDS; i++) {
		lines[i].any = lines[i].at_most = false;
		for (size_t k = 0; k < LINE_POINTS; k++)
			lines[i].v[k] = NAN;
	}
	f->spec = spec;
	f->left_ns = spec->right_ns - LINE_POINTS * spec->step_ns;
	if (f->left_ns > all.from_ns)
		all.from_ns = f->left_ns;
	if (spec->right_ns < all.to_ns)
		all.to_ns = spec->right_ns;
	f->from_ns = all.from_ns;
	ask(f, w);
	r = f->failed;
	if (r == 0 && f->n && all.to_ns > all.from_ns)
		r = window_each_of(&all, f->keys, f->n, spec->step_ns, take_point, f);
	if (r == -ENODATA)
		r = 0;
	if (r == 0) {
		hold(f, &all);
		choose_memory(f, all.to_ns, &lines[LINE_MEMORY]);
		fill(f, lines);
		fill_all_gpus(spec, lines);
		fill_steps(f, &all, &lines[LINE_STEPS], &lines[LINE_LOSS]);
	}
	feeds_done(f);
	free(f);
	return r;
}
