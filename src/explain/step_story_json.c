/* SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "explain/fact.h"
#include "explain/step_story.h"

#include <math.h>

static double since_start(const struct step_story *x, int64_t t_ns)
{
	return ((double)t_ns - (double)window_run(x->window)->started_mono_ns) / 1e9;
}

static void put_lists(struct json *j, const struct step_story *x)
{
	const struct window_ops *ops = x->window->ops;
	size_t n = 0;
	const struct window_scalar *s = ops->scalars ? ops->scalars(x->window->src, &n) : NULL;
	const struct window_phase *f;
	const struct window_event *e;

	json_key_begin(j, "scalars", '[');
	for (size_t i = 0; i < n; i++) {
		if (s[i].entity != x->step->entity || s[i].step != x->step->number)
			continue;
		json_begin(j, '{');
		json_key_str(j, "name", s[i].name);
		json_key_num(j, "value", s[i].value);
		json_end(j, '}');
	}
	json_end(j, ']');
	n = 0;
	f = ops->phases ? ops->phases(x->window->src, &n) : NULL;
	json_key_begin(j, "phases", '[');
	for (size_t i = 0; i < n; i++) {
		if (f[i].entity != x->step->entity || f[i].begin_ns >= x->step->end_ns ||
		    (f[i].end_ns && f[i].end_ns <= x->step->begin_ns))
			continue;
		json_begin(j, '{');
		json_key_str(j, "name", f[i].name);
		json_key_num(j, "from_s", since_start(x, f[i].begin_ns));
		if (f[i].end_ns)
			json_key_num(j, "to_s", since_start(x, f[i].end_ns));
		json_end(j, '}');
	}
	json_end(j, ']');
	e = ops->events(x->window->src, &n);
	json_key_begin(j, "events", '[');
	for (size_t i = 0; i < n; i++) {
		if (e[i].t_ns <= x->step->begin_ns || e[i].t_ns > x->step->end_ns)
			continue;
		json_begin(j, '{');
		json_key_num(j, "t", since_start(x, e[i].t_ns));
		json_key_str(j, "kind", event_kind_name(e[i].kind));
		json_key_str(j, "text", e[i].text);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_usage(struct json *j, const struct step_story *x)
{
	if (!x->has_usage)
		return;
	json_key_num(j, "cpu_cores", fact_round(x->usage.cores));
	json_key_num(j, "memory_bytes", x->usage.memory);
	if (!x->n_gpus)
		return;
	json_key_begin(j, "gpus", '[');
	for (size_t i = 0; i < x->n_gpus; i++) {
		const struct story_gpu *g = &x->gpus[i];

		json_begin(j, '{');
		json_key_int(j, "index", g->index);
		if (g->partition >= 0)
			json_key_int(j, "partition", g->partition);
		json_key_str(j, "name", g->name);
		json_key_num(j, "busy", fact_round(g->busy));
		json_key_num(j, "memory_used_bytes", g->memory);
		json_key_num(j, "power_w", fact_round(g->power));
		json_key_num(j, "clock_hz", fact_round(g->clock));
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_states(struct json *j, const struct step_story *x)
{
	if (!x->tid) {
		json_key_str(j, "states_why_not", x->why_no_states);
		return;
	}
	json_key_int(j, "tid", x->tid);
	json_key_begin(j, "states", '[');
	for (int i = 0; i < TIME_STATES; i++) {
		if (!(x->state[i] > 0))
			continue;
		json_begin(j, '{');
		json_key_str(j, "state", time_state_name((enum time_state)i));
		json_key_num(j, "share", fact_round(x->state[i]));
		json_end(j, '}');
	}
	json_end(j, ']');
	json_key_num(j, "unaccounted", fact_round(x->unaccounted));
}

void step_story_json(const struct step_story *x, struct json *j)
{
	json_begin(j, '{');
	json_key_int(j, "step", (int64_t)x->step->number);
	if (x->step->rank >= 0)
		json_key_int(j, "rank", x->step->rank);
	if (x->group->pid > 0)
		json_key_int(j, "pid", x->group->pid);
	if (x->group->node[0])
		json_key_str(j, "host", x->group->node);
	if (isfinite(x->seconds))
		json_key_num(j, "from_s", since_start(x, x->step->begin_ns));
	json_key_num(j, "to_s", since_start(x, x->step->end_ns));
	json_key_num(j, "seconds", x->seconds);
	json_key_num(j, "aside_s", x->aside);
	json_key_num(j, "median_s", fact_round(x->group->median_s));
	json_key_num(j, "times_median", fact_round(x->seconds / x->group->median_s));
	json_key_num(j, "data_wait_s", x->step->data_wait);
	if (x->step->micro)
		json_key_int(j, "batches", x->step->micro);
	json_key_num(j, "loss", x->step->loss);
	put_usage(j, x);
	put_states(j, x);
	put_lists(j, x);
	json_key_str(j, "differs", x->differs[0] ? x->differs : NULL);
	json_end(j, '}');
}
