/* SPDX-License-Identifier: MIT
 *
 * From when to when each GPU was read, and what ended it. A record keeps only changes, so it is the
 * ends of entities, gaps and events that say so, not how old the last value is.
 */
#include "explain/gpus.h"
#include "explain/scene.h"
#include "model/xid.h"

#include <stdlib.h>

/* Ends of things and of the run may differ by a tick of a slow recorder. */
static const int64_t edge_ns = 2000000000;

/* One that has just been lost may be no entity any more; then the text says which: "XID 79 on GPU 1:
 * ...". Of several with its number the newest that was there. */
const struct gpu_row *gpus_row_of(const struct gpus *g, const struct window_event *e)
{
	const struct gpu_row *found = NULL;
	const char *at = e->text ? strstr(e->text, "GPU ") : NULL;
	char *end = NULL;
	long index = at ? strtol(at + 4, &end, 10) : -1;

	for (size_t i = 0; i < g->rows.n; i++) {
		const struct gpu_row *x = &g->rows.v[i];

		if (x->id == e->entity)
			return x;
		if (at && end != at + 4 && x->partition < 0 && x->index == index &&
		    (!found || x->born_ns <= e->t_ns))
			found = x;
	}
	return found;
}

bool gpu_came_back(const struct window_event *e)
{
	return e->text && strstr(e->text, "came back after");
}

/* "GPUs are read no more: 5 helpers have hung or died in driver calls" */
void gpus_find_unread(struct gpus *g, const struct scene *s)
{
	static const char words[] = "GPUs are read no more: ";
	size_t n;
	const struct window_event *e = s->whole->ops->events(s->whole->src, &n);

	for (size_t i = 0; i < n; i++) {
		if (e[i].kind != EVENT_GPU_HELPER || !e[i].text ||
		    strncmp(e[i].text, words, sizeof(words) - 1) != 0)
			continue;
		g->unread_ns = e[i].t_ns;
		g->unread_why = e[i].text + sizeof(words) - 1;
	}
}

/* A helper that was given up may still come to its end and is taken back. */
static bool read_after(const struct scene *s, const struct gpu_row *x, int64_t t_ns)
{
	struct window rest = *s->whole;
	struct series_stat st;

	rest.from_ns = t_ns + edge_ns;
	return rest.from_ns < rest.to_ns && window_stat(&rest, M_GPU_AGE, x->id, &st) == 0 &&
	       st.n > 0;
}

void gpu_take_span(const struct gpus *g, const struct scene *s, struct gpu_row *x)
{
	int64_t from = x->born_ns > s->whole->from_ns ? x->born_ns : s->whole->from_ns;
	int64_t to = x->gone_ns && x->gone_ns < s->whole->to_ns ? x->gone_ns : s->whole->to_ns;
	int64_t without = 0;
	size_t n;
	const struct window_gap *gap = s->whole->ops->gaps(s->whole->src, &n);

	if (g->unread_ns && g->unread_ns < to && !read_after(s, x, g->unread_ns))
		to = g->unread_ns;
	for (size_t i = 0; i < n; i++) {
		int64_t a = gap[i].from_ns > from ? gap[i].from_ns : from, b = gap[i].to_ns;

		if (gap[i].metric != M_GPU_AGE || gap[i].why != GAP_STALE ||
		    gap[i].entity != x->id || a >= to)
			continue;
		if (!b || b >= to)
			to = a;
		else if (b > a)
			without += b - a;
	}
	x->until_ns = to;
	x->seen_s = to - from > without ? (double)(to - from - without) / 1e9 : 0;
}

/* What happened to it since it was there; a later event says more. */
static enum gpu_end told(const struct gpus *g, const struct scene *s, const struct gpu_row *x)
{
	size_t n;
	const struct window_event *e = s->whole->ops->events(s->whole->src, &n);
	enum gpu_end end = GPU_END_NONE;

	for (size_t i = 0; i < n; i++) {
		const struct gpu_row *about;

		if (e[i].t_ns < x->born_ns ||
		    (e[i].kind != EVENT_GPU_LOST && e[i].kind != EVENT_GPU_HANG &&
		     (e[i].kind != EVENT_XID || e[i].value != XID_OFF_THE_BUS)))
			continue;
		about = gpus_row_of(g, &e[i]);
		if (!about || about->index != x->index)
			continue;
		if (e[i].kind != EVENT_GPU_HANG)
			end = GPU_END_LOST;
		else if (end != GPU_END_LOST)
			end = gpu_came_back(&e[i]) ? GPU_END_NONE : GPU_END_HUNG;
	}
	return end;
}

void gpus_take_ends(struct gpus *g, const struct scene *s)
{
	for (size_t i = 0; i < g->rows.n; i++) {
		struct gpu_row *x = &g->rows.v[i];
		enum gpu_end why;

		if (x->replaced || x->until_ns >= s->whole->to_ns)
			continue;
		why = told(g, s, x);
		if (why != GPU_END_NONE)
			x->end = why;
		else if (x->until_ns <= s->whole->to_ns - edge_ns)
			x->end = GPU_END_UNREAD;
	}
}
