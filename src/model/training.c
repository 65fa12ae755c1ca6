/* SPDX-License-Identifier: MIT */
#include "model/training.h"

#include "model/name_set.h"
#include "model/step_usage.h"

#include <math.h>

/* One wait of more than 11 days is a mistake. */
#define WAIT_MOST_S 1e6

struct taking {
	struct training *t;
	const struct frame *f;
	const struct training_sink *sink;
	void *arg;
};

void training_done(struct training *t)
{
	for (size_t i = 0; i < t->trainers.n; i++)
		vec_done(&t->trainers.v[i].open);
	vec_done(&t->trainers);
	map_done(&t->by_entity);
}

static void forget_gone(struct training *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->trainers.n; i++) {
		struct trainer *tr = &t->trainers.v[i];

		if (tr->gone) {
			map_del(&t->by_entity, tr->entity);
			vec_done(&tr->open);
			continue;
		}
		/* The key is there: nothing is allocated. */
		map_put(&t->by_entity, tr->entity, (uint32_t)kept);
		t->trainers.v[kept++] = *tr;
	}
	t->trainers.n = kept;
}

static struct trainer *find(const struct training *t, uint32_t entity)
{
	uint32_t at;

	return map_get(&t->by_entity, entity, &at) ? &t->trainers.v[at] : NULL;
}

static struct trainer *find_or_add(struct training *t, uint32_t entity)
{
	struct trainer *tr = find(t, entity);

	if (tr)
		return tr;
	if (t->trainers.n >= TRAINING_PROCESSES)
		forget_gone(t);
	if (t->trainers.n >= TRAINING_PROCESSES)
		return NULL;
	tr = vec_push(&t->trainers);
	if (!tr)
		return NULL;
	if (!map_put(&t->by_entity, entity, (uint32_t)(t->trainers.n - 1))) {
		t->trainers.n--;
		return NULL;
	}
	*tr = (struct trainer){ .entity = entity, .wait_ns = -1 };
	return tr;
}

static void next_step(struct trainer *tr, int64_t t_ns)
{
	tr->since_ns = t_ns;
	tr->wait_ns = -1;
	tr->micro = 0;
}

static int end_step(const struct taking *k, struct trainer *tr, const struct frame_mark *m)
{
	struct window_step s = { .rank = m->rank,
				 .entity = m->entity,
				 .number = m->number,
				 .begin_ns = m->t_ns,
				 .end_ns = m->t_ns,
				 .loss = m->value,
				 .data_wait = NAN };

	if (tr->since_ns && tr->since_ns < m->t_ns)
		s.begin_ns = tr->since_ns;
	if (tr->wait_ns >= 0)
		s.data_wait = (double)tr->wait_ns / 1e9;
	/* Those that did not end it, and the one that did. */
	s.micro = tr->micro ? tr->micro + 1 : 0;
	tr->number = m->number;
	next_step(tr, m->t_ns);
	return k->sink->step(k->arg, &s);
}

static int close_phase(const struct taking *k, struct trainer *tr, size_t at, int64_t t_ns)
{
	struct open_phase p = tr->open.v[at];

	tr->open.n--;
	memmove(tr->open.v + at, tr->open.v + at + 1, (tr->open.n - at) * sizeof(*tr->open.v));
	if (p.between && --tr->between == 0)
		next_step(tr, t_ns);
	return k->sink->phase_end(k->arg, p.id, t_ns);
}

/* The innermost of that name: threads may close theirs out of order. */
static int end_phase(const struct taking *k, struct trainer *tr, const struct frame_mark *m)
{
	uint64_t name = name_hash(frame_text(k->f, m->name));

	for (size_t i = tr->open.n; i-- > 0;)
		if (tr->open.v[i].name == name)
			return close_phase(k, tr, i, m->t_ns);
	return 0;
}

static int begin_phase(const struct taking *k, struct trainer *tr, const struct frame_mark *m)
{
	const char *text = frame_text(k->f, m->name);
	uint64_t name = name_hash(text);
	struct open_phase *p;
	int r = 0;

	/* It begins again, and marks were lost meanwhile: so its end was among them. */
	for (size_t i = tr->open.n; i-- > 0;)
		if (tr->open.v[i].name == name && tr->open.v[i].doubt_ns)
			r = close_phase(k, tr, i, tr->open.v[i].doubt_ns);
	if (tr->open.n >= TRAINING_DEPTH)
		return r;
	p = vec_push(&tr->open);
	if (!p)
		return -ENOMEM;
	*p = (struct open_phase){ .name = name,
				  .id = ++k->t->phases,
				  .between = phase_is_aside(text) };
	tr->between += p->between;
	return k->sink->phase_begin(
	    k->arg, p->id,
	    &(struct window_phase){ .name = text, .entity = m->entity, .begin_ns = m->t_ns });
}

static void add_wait(struct trainer *tr, const struct frame_mark *m)
{
	int64_t ns;

	if (!(m->value >= 0 && m->value <= WAIT_MOST_S))
		return;
	ns = llround(m->value * 1e9);
	if (!tr->since_ns && ns < m->t_ns)
		tr->since_ns = m->t_ns - ns;
	tr->wait_ns = (tr->wait_ns > 0 ? tr->wait_ns : 0) + ns;
}

static void lose(struct trainer *tr, int64_t t_ns)
{
	next_step(tr, 0);
	for (size_t i = 0; i < tr->open.n; i++)
		if (!tr->open.v[i].doubt_ns)
			tr->open.v[i].doubt_ns = t_ns;
}

static struct window_scalar scalar_of(const struct taking *k, const struct trainer *tr,
				      const struct frame_mark *m)
{
	return (struct window_scalar){ .name = frame_text(k->f, m->name),
				       .entity = m->entity,
				       .rank = m->rank,
				       .t_ns = m->t_ns,
				       .step = tr->number,
				       .value = m->value };
}

static int take(const struct taking *k, struct trainer *tr, const struct frame_mark *m)
{
	struct window_scalar s = scalar_of(k, tr, m);

	switch (m->type) {
	case SAID_STEP:
		return end_step(k, tr, m);
	case SAID_SCALAR:
		return k->sink->scalar(k->arg, &s);
	case SAID_SETTING:
		return k->sink->setting(k->arg, &s);
	case SAID_EPOCH:
		s.name = "epoch";
		s.value = (double)m->number;
		return k->sink->scalar(k->arg, &s);
	case SAID_PHASE_BEGIN:
		return begin_phase(k, tr, m);
	case SAID_PHASE_END:
		return end_phase(k, tr, m);
	case SAID_DATA_WAIT:
		if (!tr->between) /* an evaluation waits for its own */
			add_wait(tr, m);
		return 0;
	case SAID_MICRO_STEP:
		tr->micro += !tr->between && tr->micro < UINT32_MAX - 1;
		return 0;
	case SAID_SOURCE:
		return k->sink->source(k->arg, &s);
	case SAID_LOST:
		lose(tr, m->t_ns);
		return 0;
	default:
		return 0;
	}
}

/* The first sign of work begins the first step. */
static bool is_work(enum mark_type type)
{
	return type == SAID_MICRO_STEP || type == SAID_EPOCH || type == SAID_PHASE_BEGIN ||
	       type == SAID_PHASE_END;
}

int training_frame(struct training *t, const struct frame *f, const struct training_sink *sink,
		   void *arg)
{
	struct taking k = { .t = t, .f = f, .sink = sink, .arg = arg };
	int r = 0;

	for (size_t i = 0; i < f->marks.n; i++) {
		const struct frame_mark *m = &f->marks.v[i];
		struct trainer *tr = find_or_add(t, m->entity);
		int q = tr ? take(&k, tr, m) : -ENOMEM;

		if (tr && !tr->since_ns && is_work(m->type))
			tr->since_ns = m->t_ns;
		r = r < 0 ? r : q;
	}
	for (size_t i = 0; i < f->lives.n && t->trainers.n; i++) {
		const struct life *l = &f->lives.v[i];
		struct trainer *tr = l->change == LIFE_GONE ? find(t, l->id) : NULL;

		if (tr)
			tr->gone = true;
	}
	return r;
}

int64_t training_open_end(const struct run_info *run, const struct entity *e, int64_t begin_ns)
{
	int64_t end = e ? e->gone_ns : 0;

	if (!end && run->state != RUN_GOING)
		end = run->ended_mono_ns;
	return end && end < begin_ns ? begin_ns : end;
}

#define ORDER(x, y) ((x) < (y) ? -1 : (x) > (y))

int training_step_order(const void *a, const void *b)
{
	const struct window_step *x = a, *y = b;
	int r = ORDER(x->end_ns, y->end_ns);

	r = r ? r : ORDER(x->entity, y->entity);
	return r ? r : ORDER(x->number, y->number);
}

int training_phase_order(const void *a, const void *b)
{
	const struct window_phase *x = a, *y = b;
	int r = ORDER(x->begin_ns, y->begin_ns);

	return r ? r : ORDER(x->entity, y->entity);
}

int training_scalar_order(const void *a, const void *b)
{
	const struct window_scalar *x = a, *y = b;
	int r = ORDER(x->t_ns, y->t_ns);

	return r ? r : ORDER(x->entity, y->entity);
}
