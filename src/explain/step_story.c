/* SPDX-License-Identifier: MIT */
#include "explain/step_story.h"

#include "base/num.h"
#include "explain/render.h"
#include "explain/scene.h"
#include "model/gpu_tag.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Stacks are counted a second at a time. Of a step that is shorter than this, most of what was counted
 * is its neighbours'. */
static const double stacks_least = 2;

static int by_rank(const void *x, const void *y)
{
	const struct window_step *a = *(const struct window_step *const *)x;
	const struct window_step *b = *(const struct window_step *const *)y;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

size_t step_find(const struct window *w, const struct steps *s, uint64_t number,
		 const struct window_step **ret, size_t max)
{
	size_t all = 0, n = 0;
	const struct window_step *x = w->ops->steps ? w->ops->steps(w->src, &all) : NULL;

	for (size_t i = 0; i < all && n < max; i++)
		if (x[i].number == number && step_in(w, &x[i]) && steps_group(s, x[i].entity))
			ret[n++] = &x[i];
	if (n)
		qsort(ret, n, sizeof(*ret), by_rank);
	return n;
}

static const struct window_step *step_before(const struct window *w, const struct window_step *s)
{
	const struct window_step *found = NULL;
	size_t all = 0;
	const struct window_step *x = w->ops->steps(w->src, &all);

	for (size_t i = 0; i < all && &x[i] != s; i++)
		if (x[i].entity == s->entity && step_in(w, &x[i]))
			found = &x[i];
	return found;
}

static double mean_or_nan(const struct window *w, enum metric_id m, uint32_t id)
{
	double v;

	return window_mean(w, m, id, &v) ? v : NAN;
}

static void find_gpus(const struct window *w, const struct window *in, struct step_story *x)
{
	const struct entity_table *t = window_entities(w);

	for (size_t i = 0; i < t->rows.n && x->n_gpus < STORY_GPUS; i++) {
		const struct entity *e = &t->rows.v[i];
		struct story_gpu *g = &x->gpus[x->n_gpus];

		if (e->kind != ENTITY_GPU || !step_on_gpu(in, x->step->entity, e->id))
			continue;
		*g = (struct story_gpu){
			.index = e->key < GPU_PARTITION_KEY
				     ? (int)e->key
				     : (int)(e->key / GPU_PARTITION_KEY % 1000000) - 1,
			.partition =
			    e->key < GPU_PARTITION_KEY ? -1 : (int)(e->key % GPU_PARTITION_KEY),
			.name = e->name,
			.busy = mean_or_nan(in, M_GPU_BUSY, e->id),
			.memory = mean_or_nan(in, M_GPU_MEM_USED, e->id),
			.power = mean_or_nan(in, M_GPU_POWER, e->id),
			.clock = mean_or_nan(in, M_GPU_CLOCK_SM, e->id),
			.usual_clock = mean_or_nan(w, M_GPU_CLOCK_SM, e->id),
		};
		x->n_gpus++;
	}
}

/* The critical thread, if it is of this process, or its first one. */
static const struct act_thread *thread_of(const struct activity *a, uint32_t process)
{
	uint32_t at;

	if (a->critical >= 0 && a->threads.v[a->critical].process == process)
		return &a->threads.v[a->critical];
	return map_get(&a->first, process, &at) ? &a->threads.v[at] : NULL;
}

static int find_states(const struct window *w, struct step_story *x)
{
	const struct act_thread *t;
	const struct entity *e;
	struct scene s = { 0 };
	int r;

	if (x->seconds < stacks_least) {
		snprintf(x->why_no_states, sizeof(x->why_no_states),
			 "the step is too short for it: stacks are counted a second at a time");
		return 0;
	}
	r = scene_open(&s, w, x->step->begin_ns, x->step->end_ns);
	t = r == 0 && s.activity.any ? thread_of(&s.activity, x->step->entity) : NULL;
	e = t ? entity_find(window_entities(w), t->id) : NULL;
	if (e && t->samples && t->alive > 0) {
		for (int i = 0; i < TIME_STATES; i++)
			x->state[i] = t->state[i] / t->alive;
		x->unaccounted = t->unaccounted / t->alive;
		x->samples = t->samples;
		x->tid = e->key;
	} else {
		snprintf(x->why_no_states, sizeof(x->why_no_states), "no stacks of its thread");
	}
	scene_done(&s);
	return r;
}

int step_story(const struct window *w, const struct steps *s, const struct window_step *step,
	       struct step_story *ret)
{
	struct window in = *w;

	*ret = (struct step_story){ .window = w,
				    .step = step,
				    .before = step_before(w, step),
				    .group = steps_group(s, step->entity),
				    .seconds = step_seconds(w, step, false) };
	if (!ret->group)
		return -EINVAL;
	if (!isfinite(ret->seconds)) {
		snprintf(ret->why_no_states, sizeof(ret->why_no_states),
			 "when the step began is not known");
		return 0;
	}
	ret->aside = ret->seconds - step_seconds(w, step, true);
	in.from_ns = step->begin_ns;
	in.to_ns = step->end_ns;
	ret->has_usage = step_usage(w, step, &ret->usage);
	if (ret->has_usage)
		find_gpus(w, &in, ret);
	step_differs(w, ret->group, step, ret->differs, sizeof(ret->differs));
	return find_states(w, ret);
}

void slow_step_state(const struct window *w, const struct steps *s, struct slow_step *slow)
{
	struct step_story story;
	int most = 0;
	char share[24];

	if (slow->what[0] || step_story(w, s, slow->step, &story) < 0 || !story.tid)
		return;
	for (int i = 1; i < TIME_STATES; i++)
		most = story.state[i] > story.state[most] ? i : most;
	snprintf(slow->what, sizeof(slow->what), "its thread: %s %s",
		 num_percent(story.state[most], share, sizeof(share)),
		 time_state_words(NULL, time_state_name((enum time_state)most)));
}
