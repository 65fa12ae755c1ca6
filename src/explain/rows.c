/* SPDX-License-Identifier: MIT */
#include "explain/rows.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "explain/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Told again when it changes: of a program that changes it all the time, the first ones. */
enum { SETTINGS_MAX = 500, SETTING_VALUES = 4 };

static int by_cpu(const void *a, const void *b)
{
	const struct process_row *x = a, *y = b;
	double dx = isnan(x->cpu_s) ? -1 : x->cpu_s, dy = isnan(y->cpu_s) ? -1 : y->cpu_s;

	if (dx != dy)
		return dx < dy ? 1 : -1;
	return x->entity->id < y->entity->id ? -1 : 1;
}

static double delta_or_nan(const struct window *w, enum metric_id m, uint32_t id)
{
	double v = NAN;

	window_delta(w, m, id, &v);
	return v;
}

size_t process_rows(const struct window *w, struct process_row **ret)
{
	const struct entity_table *all = window_entities(w);
	struct process_row *rows = calloc(all->rows.n + 1, sizeof(*rows));
	size_t n = 0;

	*ret = rows;
	for (size_t i = 0; rows && i < all->rows.n; i++) {
		const struct entity *e = &all->rows.v[i];
		int64_t end = e->gone_ns ? e->gone_ns : w->to_ns;
		double peak = NAN;

		if (e->kind != ENTITY_PROC)
			continue;
		window_max(w, M_PROC_RSS, e->id, &peak);
		rows[n++] =
		    (struct process_row){ .entity = e,
					  .cpu_s = delta_or_nan(w, M_PROC_CPU, e->id),
					  .lived_s = ((double)end - (double)e->born_ns) / 1e9,
					  .rss_peak = peak,
					  .read = delta_or_nan(w, M_PROC_READ_BYTES, e->id),
					  .written = delta_or_nan(w, M_PROC_WRITTEN_BYTES, e->id) };
	}
	if (n)
		qsort(rows, n, sizeof(*rows), by_cpu);
	return n;
}

static bool same_event(const struct window_event *a, const struct window_event *b)
{
	return a->kind == EVENT_STACKS && b->kind == EVENT_STACKS && a->text && b->text &&
	       strcmp(a->text, b->text) == 0;
}

size_t event_rows(const struct window *w, struct event_row *ret, size_t max, size_t *ret_left)
{
	size_t n = 0, shown = 0;
	const struct window_event *events = w->ops->events(w->src, &n);

	*ret_left = 0;
	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < shown && !same_event(&events[i], ret[k].event))
			k++;
		if (k < shown)
			ret[k].times++;
		else if (shown < max)
			ret[shown++] = (struct event_row){ &events[i], 1 };
		else
			++*ret_left;
	}
	return shown;
}

static bool same_setting(const struct window_scalar *a, const struct window_scalar *b)
{
	return a->name && b->name && a->entity == b->entity && strcmp(a->name, b->name) == 0;
}

static void list_values(const struct window_scalar *v, size_t first, size_t n, struct buf *out)
{
	size_t shown = 0;

	for (size_t i = first; i < n; i++) {
		bool said = false;

		if (!same_setting(&v[i], &v[first]))
			continue;
		for (size_t k = first; k < i && !said; k++)
			said = v[k].value == v[i].value && same_setting(&v[k], &v[first]);
		if (said)
			continue;
		if (shown++ == SETTING_VALUES) {
			buf_str(out, ", ...");
			return;
		}
		buf_printf(out, "%s%.6g", shown > 1 ? ", " : "", v[i].value);
	}
}

size_t setting_rows(const struct window *w, const struct steps *s, struct setting_row *ret,
		    size_t max)
{
	const struct step_group *lead = steps_lead(s);
	size_t n = 0, rows = 0;
	const struct window_scalar *v = w->ops->settings ? w->ops->settings(w->src, &n) : NULL;

	n = n < SETTINGS_MAX ? n : SETTINGS_MAX;
	for (size_t i = 0; i < n && rows < max; i++) {
		auto_done(buf) struct buf values = { 0 };
		bool said = false;

		if (!v[i].name || (lead && v[i].entity != lead->entity))
			continue;
		for (size_t k = 0; k < i && !said; k++)
			said = same_setting(&v[k], &v[i]);
		if (said)
			continue;
		list_values(v, i, n, &values);
		text_safe_copy(ret[rows].name, sizeof(ret[rows].name), v[i].name);
		text_copy(ret[rows].values, sizeof(ret[rows].values), buf_text(&values));
		rows++;
	}
	return rows;
}
