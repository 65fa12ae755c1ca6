/* SPDX-License-Identifier: MIT
 *
 * Steps that took unusually long, and what was different in them; what the scalars did.
 */
#include "explain/steps.h"

#include "base/buf.h"
#include "base/num.h"
#include "base/text.h"
#include "model/step_usage.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* Half as long again: a step that is 10 % longer than the others is one of them. */
static const double slow_least = 1.5;
/* A part of the excess below which a difference does not explain it. */
static const double part_least = 0.1;

enum { NAMES_MAX = 8 };

static double overlap(int64_t a0, int64_t a1, int64_t b0, int64_t b1)
{
	int64_t from = a0 > b0 ? a0 : b0, to = a1 < b1 ? a1 : b1;

	return to > from ? (double)(to - from) / 1e9 : 0;
}

static void say(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	if (b->len)
		buf_str(b, "; ");
	va_start(ap, fmt);
	buf_vprintf(b, fmt, ap);
	va_end(ap);
}

struct phase_sum {
	const char *name;
	double seconds;
};

/* A phase that began before the step and ended behind it (an epoch, "train") is no difference. */
static void say_phases(const struct window *w, const struct window_step *s, double least,
		       struct buf *b)
{
	struct phase_sum sums[NAMES_MAX];
	size_t n = 0, known = 0, k;
	const struct window_phase *p = w->ops->phases ? w->ops->phases(w->src, &n) : NULL;

	for (size_t i = 0; i < n; i++) {
		int64_t to = p[i].end_ns ? p[i].end_ns : w->to_ns;
		double part = overlap(p[i].begin_ns, to, s->begin_ns, s->end_ns);

		if (p[i].entity != s->entity || part <= 0 || !p[i].name ||
		    (p[i].begin_ns <= s->begin_ns && to >= s->end_ns))
			continue;
		for (k = 0; k < known && strcmp(sums[k].name, p[i].name) != 0; k++)
			;
		if (k == known && known < NAMES_MAX)
			sums[known++] = (struct phase_sum){ p[i].name, 0 };
		if (k < known)
			sums[k].seconds += part;
	}
	for (k = 0; k < known; k++) {
		char name[64], a[32];

		if (sums[k].seconds >= least)
			say(b, "%s of it in phase %s", num_seconds(sums[k].seconds, a, sizeof(a)),
			    text_safe_copy(name, sizeof(name), sums[k].name));
	}
}

static void say_wait(const struct step_group *g, const struct window_step *s, double least,
		     struct buf *b)
{
	double usual = isfinite(g->median_wait) ? g->median_wait : 0;
	char a[32], c[32];

	if (s->data_wait - usual >= least)
		say(b, "waited %s for data (usually %s)", num_seconds(s->data_wait, a, sizeof(a)),
		    num_seconds(usual, c, sizeof(c)));
}

static uint32_t first_thread(const struct window *w, const struct step_group *g)
{
	const struct entity_table *t = window_entities(w);

	for (size_t i = 0; i < t->rows.n; i++)
		if (t->rows.v[i].kind == ENTITY_THREAD && t->rows.v[i].parent == g->entity &&
		    t->rows.v[i].key == g->pid)
			return t->rows.v[i].id;
	return 0;
}

static void say_queue(const struct window *w, const struct window *in, const struct step_group *g,
		      double least, struct buf *b)
{
	uint32_t thread = first_thread(w, g);
	double now, usual = 0;
	char a[32];

	if (!thread || !window_delta(in, M_THREAD_RUN_DELAY, thread, &now))
		return;
	if (window_delta(w, M_THREAD_RUN_DELAY, thread, &usual))
		usual *= window_seconds(in) / window_seconds(w);
	if (now - usual >= least)
		say(b, "its main thread was ready and waited %s for a CPU",
		    num_seconds(now, a, sizeof(a)));
}

static void say_faults(const struct window *w, const struct window *in, const struct step_group *g,
		       struct buf *b)
{
	double now, usual = 0;
	char a[32];

	if (!window_delta(in, M_PROC_MAJOR_FAULTS, g->entity, &now))
		return;
	if (window_delta(w, M_PROC_MAJOR_FAULTS, g->entity, &usual))
		usual *= window_seconds(in) / window_seconds(w);
	/* A fault is 0.1 ms of an SSD, 10 ms of a disk: fewer are not felt. */
	if (now >= 100 && now >= 2 * usual)
		say(b, "%s page faults waited for a disk", num_count(now, a, sizeof(a)));
}

static void say_clock(const struct window *w, const struct step_usage *u,
		      const struct window_step *s, struct buf *b)
{
	const struct entity_table *t = window_entities(w);
	double sum = 0, v;
	unsigned n = 0;

	for (size_t i = 0; u->gpus && i < t->rows.n; i++)
		if (t->rows.v[i].kind == ENTITY_GPU && step_on_gpu(w, s->entity, t->rows.v[i].id) &&
		    window_mean(w, M_GPU_CLOCK_SM, t->rows.v[i].id, &v)) {
			sum += v;
			n++;
		}
	if (n && u->gpu_clock < 0.9 * sum / n)
		say(b, "GPU clock %.0f MHz (usually %.0f)", u->gpu_clock / 1e6, sum / n / 1e6);
}

static void say_events(const struct window *w, const struct window_step *s, struct buf *b)
{
	size_t n = 0, said = 0;
	const struct window_event *e = w->ops->events(w->src, &n);

	for (size_t i = 0; i < n && said < 2; i++) {
		char text[80];

		if (e[i].t_ns <= s->begin_ns || e[i].t_ns > s->end_ns ||
		    e[i].kind == EVENT_STACKS || e[i].kind == EVENT_NOTE ||
		    e[i].kind == EVENT_GOVERNOR)
			continue;
		said++;
		say(b, "%s: %s", event_kind_name(e[i].kind),
		    text_safe_copy(text, sizeof(text), e[i].text ? e[i].text : ""));
	}
}

void step_differs(const struct window *w, const struct step_group *g, const struct window_step *s,
		  char *buf, size_t size)
{
	double seconds = ((double)s->end_ns - (double)s->begin_ns) / 1e9, least;
	struct window in = *w;
	struct step_usage u;
	struct buf b;

	buf_init(&b, 2048);
	least = isfinite(g->median_s) && seconds > g->median_s
		    ? (seconds - g->median_s) * part_least
		    : seconds * part_least;
	say_phases(w, s, least, &b);
	say_wait(g, s, least, &b);
	if (step_usage(w, s, &u)) {
		in.from_ns = s->begin_ns;
		in.to_ns = s->end_ns;
		say_queue(w, &in, g, least, &b);
		say_faults(w, &in, g, &b);
		say_clock(w, &u, s, &b);
	}
	say_events(w, s, &b);
	text_safe_copy(buf, size, buf_text(&b));
	buf_done(&b);
}

size_t steps_slowest(const struct window *w, const struct steps *s, struct slow_step *ret,
		     size_t max)
{
	size_t all = 0, n = 0;
	const struct window_step *x = w->ops->steps ? w->ops->steps(w->src, &all) : NULL;

	for (size_t i = 0; i < all; i++) {
		const struct step_group *g;
		double seconds = ((double)x[i].end_ns - (double)x[i].begin_ns) / 1e9;
		size_t at;

		if (!step_in(w, &x[i]) || x[i].begin_ns < s->from_ns || !(seconds > 0))
			continue;
		if (n == max && seconds <= ret[n - 1].seconds)
			continue;
		g = steps_group(s, x[i].entity);
		if (!g || !(g->median_s > 0) || g->steady < STEPS_STEADY_LEAST ||
		    seconds < slow_least * g->median_s)
			continue;
		n += n < max;
		for (at = n - 1; at > 0 && ret[at - 1].seconds < seconds; at--)
			ret[at] = ret[at - 1];
		ret[at] = (struct slow_step){ .step = &x[i],
					      .seconds = seconds,
					      .times = seconds / g->median_s };
	}
	for (size_t i = 0; i < n; i++)
		step_differs(w, steps_group(s, ret[i].step->entity), ret[i].step, ret[i].what,
			     sizeof(ret[i].what));
	return n;
}

static void add_value(struct scalar_sum *x, double v, uint64_t step)
{
	if (!isfinite(v))
		return;
	if (!x->n++)
		x->first = x->least = x->most = v;
	x->last = v;
	x->least = fmin(x->least, v);
	x->most = fmax(x->most, v);
	x->last_step = step;
}

static struct scalar_sum *sum_of(struct scalar_sum *v, size_t *n, size_t max, const char *name,
				 int32_t rank)
{
	char safe[64];

	text_safe_copy(safe, sizeof(safe), name);
	for (size_t i = 0; i < *n; i++)
		if (v[i].rank == rank && strcmp(v[i].name, safe) == 0)
			return &v[i];
	if (*n == max)
		return NULL;
	v[*n] = (struct scalar_sum){ .rank = rank };
	text_copy(v[*n].name, sizeof(v[*n].name), safe);
	return &v[(*n)++];
}

/* Of the process that stands for the run only: ranks say the same, or a share of it. */
size_t scalars_sum(const struct window *w, const struct steps *s, struct scalar_sum *ret,
		   size_t max)
{
	const struct step_group *lead = steps_lead(s);
	size_t n_steps = 0, n_scalars = 0, n = 0;
	const struct window_step *x = w->ops->steps ? w->ops->steps(w->src, &n_steps) : NULL;
	const struct window_scalar *y =
	    w->ops->scalars ? w->ops->scalars(w->src, &n_scalars) : NULL;

	for (size_t i = 0; i < n_steps; i++) {
		struct scalar_sum *sum;

		if (!lead || x[i].entity != lead->entity || !isfinite(x[i].loss))
			continue;
		sum = sum_of(ret, &n, max, "loss", x[i].rank);
		if (sum)
			add_value(sum, x[i].loss, x[i].number);
	}
	for (size_t i = 0; i < n_scalars; i++) {
		struct scalar_sum *sum;

		if ((lead && y[i].entity != lead->entity) || !y[i].name || !isfinite(y[i].value))
			continue;
		sum = sum_of(ret, &n, max, y[i].name, y[i].rank);
		if (sum)
			add_value(sum, y[i].value, y[i].step);
	}
	return n;
}
