/* SPDX-License-Identifier: MIT */
#include "model/history_marks.h"

#include <stdlib.h>
#include <string.h>

/* Drops the first n of an array. */
#define DROP(a, count)                                                             \
	do {                                                                       \
		size_t gone_ = (count);                                            \
                                                                                   \
		(a)->n -= gone_;                                                   \
		if (gone_ && (a)->n)                                               \
			memmove((a)->v, (a)->v + gone_, (a)->n * sizeof(*(a)->v)); \
	} while (0)

void history_marks_done(struct history_marks *h)
{
	training_done(&h->training);
	name_set_done(&h->names);
	vec_done(&h->steps);
	vec_done(&h->scalars);
	vec_done(&h->settings);
	vec_done(&h->phases);
	vec_done(&h->shown);
}

static int add_step(void *arg, const struct window_step *s)
{
	struct history_marks *h = arg;
	struct window_step *x;

	if (h->steps.n >= HISTORY_STEPS)
		DROP(&h->steps, HISTORY_STEPS / 2);
	x = vec_push(&h->steps);
	if (!x)
		return -ENOMEM;
	*x = *s;
	h->unsorted = true;
	return 0;
}

static int add_scalar(void *arg, const struct window_scalar *s)
{
	struct history_marks *h = arg;
	const char *name = name_set_add(&h->names, s->name);
	struct window_scalar *x;

	if (h->scalars.n >= HISTORY_SCALARS)
		DROP(&h->scalars, HISTORY_SCALARS / 2);
	x = name ? vec_push(&h->scalars) : NULL;
	if (!x)
		return -ENOMEM;
	*x = *s;
	x->name = name;
	h->unsorted = true;
	return 0;
}

static int add_setting(void *arg, const struct window_scalar *s)
{
	struct history_marks *h = arg;
	const char *name = name_set_add(&h->names, s->name);
	struct window_scalar *x;

	if (h->settings.n >= HISTORY_SETTINGS)
		DROP(&h->settings, HISTORY_SETTINGS / 2);
	x = name ? vec_push(&h->settings) : NULL;
	if (!x)
		return -ENOMEM;
	*x = *s;
	x->name = name;
	h->unsorted = true;
	return 0;
}

static int begin_phase(void *arg, uint32_t id, const struct window_phase *p)
{
	struct history_marks *h = arg;
	const char *name = name_set_add(&h->names, p->name);
	struct history_phase *x;

	if (h->phases.n >= HISTORY_PHASES)
		DROP(&h->phases, HISTORY_PHASES / 2);
	x = name ? vec_push(&h->phases) : NULL;
	if (!x)
		return -ENOMEM;
	*x = (struct history_phase){ .id = id, .is = *p };
	x->is.name = name;
	return 0;
}

static int end_phase(void *arg, uint32_t id, int64_t t_ns)
{
	struct history_marks *h = arg;

	/* Mostly one of the last. */
	for (size_t i = h->phases.n; i-- > 0 && h->phases.v[i].id >= id;)
		if (h->phases.v[i].id == id)
			h->phases.v[i].is.end_ns = t_ns;
	return 0;
}

static int note_source(void *arg, const struct window_scalar *s)
{
	struct history_marks *h = arg;
	const char *name = name_set_add(&h->names, s->name);

	if (!name)
		return -ENOMEM;
	if (s->t_ns < h->source_ns || (s->t_ns == h->source_ns && s->entity < h->source_entity))
		return 0;
	h->source = name;
	h->source_ns = s->t_ns;
	h->source_entity = s->entity;
	return 0;
}

int history_marks_frame(struct history_marks *h, const struct frame *f)
{
	static const struct training_sink sink = {
		.step = add_step,
		.phase_begin = begin_phase,
		.phase_end = end_phase,
		.scalar = add_scalar,
		.setting = add_setting,
		.source = note_source,
	};

	return training_frame(&h->training, f, &sink, h);
}

static void sort(struct history_marks *h)
{
	if (!h->unsorted)
		return;
	if (h->steps.n)
		qsort(h->steps.v, h->steps.n, sizeof(*h->steps.v), training_step_order);
	if (h->scalars.n)
		qsort(h->scalars.v, h->scalars.n, sizeof(*h->scalars.v), training_scalar_order);
	if (h->settings.n)
		qsort(h->settings.v, h->settings.n, sizeof(*h->settings.v), training_scalar_order);
	h->unsorted = false;
}

void history_marks_forget(struct history_marks *h, int64_t before_ns)
{
	size_t steps = 0, scalars = 0, phases = 0;

	while (steps < h->steps.n && h->steps.v[steps].end_ns < before_ns)
		steps++;
	while (scalars < h->scalars.n && h->scalars.v[scalars].t_ns < before_ns)
		scalars++;
	while (phases < h->phases.n && h->phases.v[phases].is.end_ns &&
	       h->phases.v[phases].is.end_ns < before_ns)
		phases++;
	/* When half of them are past, so that each is moved once on average. */
	if (steps * 2 > h->steps.n)
		DROP(&h->steps, steps);
	if (scalars * 2 > h->scalars.n)
		DROP(&h->scalars, scalars);
	if (phases * 2 > h->phases.n)
		DROP(&h->phases, phases);
}

const struct window_step *history_steps(struct history_marks *h, size_t *ret_n)
{
	sort(h);
	*ret_n = h->steps.n;
	return h->steps.v;
}

const struct window_scalar *history_scalars(struct history_marks *h, size_t *ret_n)
{
	sort(h);
	*ret_n = h->scalars.n;
	return h->scalars.v;
}

const struct window_scalar *history_settings(struct history_marks *h, size_t *ret_n)
{
	sort(h);
	*ret_n = h->settings.n;
	return h->settings.v;
}

const struct window_phase *history_phases(struct history_marks *h,
					  const struct entity_table *entities,
					  const struct run_info *run, size_t *ret_n)
{
	h->shown.n = 0;
	*ret_n = 0;
	if (!vec_reserve(&h->shown, h->phases.n + 1))
		return NULL;
	for (size_t i = 0; i < h->phases.n; i++) {
		const struct entity *e = entity_find(entities, h->phases.v[i].is.entity);
		struct window_phase *p = &h->shown.v[h->shown.n++];

		*p = h->phases.v[i].is;
		if (!p->end_ns)
			p->end_ns = training_open_end(run, e, p->begin_ns);
	}
	qsort(h->shown.v, h->shown.n, sizeof(*h->shown.v), training_phase_order);
	*ret_n = h->shown.n;
	return h->shown.v;
}
