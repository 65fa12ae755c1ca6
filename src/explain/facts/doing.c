/* SPDX-License-Identifier: MIT
 *
 * What the critical thread is about, by topic: how much of its time goes into checkpoints, logs, waiting for
 * values of the device and so on, and the line of the program it comes from.
 */
#include "explain/facts/evaluates.h"
#include "explain/facts/stacked.h"
#include "explain/ledger/topics.h"
#include "explain/steps.h"

#include <math.h>
#include <string.h>

struct doing {
	double seconds;
	struct heat heat,
	    forwards; /* forwards: of orders to a device, without those of backward passes */
};

#define BIT TOPIC_BIT

static bool is_getting_data(const struct act_row *r)
{
	return r->state == TIME_DATA_LOAD || r->state == TIME_DATA_WAIT;
}

static bool none_of(const struct act_row *r, uint32_t topics)
{
	return !(r->topics & topics);
}

/* Handing out a model to several GPUs: copies and calls. Waiting for what they compute is none of it. */
static bool hands_out(const struct act_row *r)
{
	return r->topics & BIT(TOPIC_DATA_PARALLEL) &&
	       (r->state == TIME_TRANSFER || (r->on_cpu && r->state != TIME_GPU_WAIT));
}

/* The same by hand: a function called "gather" may do anything, so only what it copies is that. */
static bool hands_out_by_name(const struct act_row *r)
{
	return r->topics & BIT(TOPIC_HAND_OUT) && !(r->topics & BIT(TOPIC_DATA_PARALLEL)) &&
	       r->state == TIME_TRANSFER;
}

/* parallel: one process works on several GPUs, so what looks like handing out is that, and no other cause. */
static bool about(const struct act_row *r, enum fact_id id, bool parallel)
{
	uint32_t t = r->topics;
	bool data = is_getting_data(r), device = r->state == TIME_GPU_WAIT;
	bool shared_out = parallel && t & (BIT(TOPIC_DATA_PARALLEL) | BIT(TOPIC_HAND_OUT));

	switch (id) {
	case FACT_DOING_CHECKPOINT:
		return t & BIT(TOPIC_CHECKPOINT) && !data;
	case FACT_DOING_LOG: /* print(loss) waits for the device: that is no logging */
		return t & BIT(TOPIC_LOG) && !data && !device && none_of(r, BIT(TOPIC_CHECKPOINT));
	case FACT_DOING_UPLOAD:
		return t & BIT(TOPIC_UPLOAD) && !data && !device;
	case FACT_DOING_PROGRESS:
		return t & BIT(TOPIC_PROGRESS) && !data && !device &&
		       (r->on_cpu || r->state == TIME_IO);
	case FACT_DOING_EVALUATE:
		return t & BIT(TOPIC_EVALUATE);
	case FACT_DOING_COMPILE:
		return t & BIT(TOPIC_COMPILE) && !data;
	case FACT_DOING_READ_BACK: /* what a checkpoint copies is part of the checkpoint */
		return device && t & BIT(TOPIC_READ_BACK) && none_of(r, BIT(TOPIC_CHECKPOINT)) &&
		       !shared_out;
	case FACT_DOING_COPY_IN:
		return (r->state == TIME_TRANSFER || (device && t & BIT(TOPIC_COPY_IN))) &&
		       !shared_out;
	case FACT_DOING_SPIN:
		return device && r->on_cpu;
	case FACT_DOING_START_WORKERS:
		return t & BIT(TOPIC_START_WORKERS);
	case FACT_DOING_DATA_PARALLEL:
		return hands_out(r);
	case FACT_DOING_HAND_OUT:
		return hands_out_by_name(r);
	case FACT_DOING_GC: /* what imports make is looked through once */
		return t & BIT(TOPIC_GC) && !r->importing;
	case FACT_DOING_OWN:
		return r->state == TIME_PYTHON && r->on_cpu && !r->importing &&
		       none_of(r, TOPICS_NAMED);
	case FACT_DISPATCH_LINE:
		return r->state == TIME_DISPATCH;
	case FACT_DOING_WATCH:
		return r->state == TIME_PYTHON && r->on_cpu && t & BIT(TOPIC_WATCH) &&
		       none_of(r, TOPICS_NAMED);
	case FACT_DOING_IDLE:
		return r->state == TIME_IDLE;
	default:
		return false;
	}
}

/* "os.fsync(f.fileno())", "os.replace(part, path)" */
static bool settles_file(const struct place *p)
{
	return p && p->source &&
	       (strstr(p->source, "fsync(") || strstr(p->source, ".flush(") ||
		strstr(p->source, "os.replace(") || strstr(p->source, "os.rename("));
}

static bool note_savers(const struct activity *a, const struct act_thread *t, struct map *savers)
{
	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];
		const struct place *p = stack_book_find_place(a->book, r->place);

		if (p && r->topics & BIT(TOPIC_CHECKPOINT) && !map_put(savers, place_code(p), 1))
			return false;
	}
	return true;
}

/* Who writes a checkpoint and sees it onto the disk is not logging then. */
static struct act_row seen_as(const struct activity *a, const struct act_row *r,
			      const struct map *savers)
{
	const struct place *p = stack_book_find_place(a->book, r->place);
	struct act_row x = *r;
	uint32_t one;

	if (settles_file(p) && map_get(savers, place_code(p), &one))
		x.topics |= BIT(TOPIC_CHECKPOINT);
	return x;
}

/* Of the orders, those given forwards: less is no line to be changed. */
static const double forwards_least = 0.15;

/* "loss.backward()": it does once more, in the other direction, what other lines have written. */
static bool goes_back(const struct place *p)
{
	return p && p->source &&
	       (strstr(p->source, ".backward(") || strstr(p->source, "autograd.grad("));
}

/* The hottest line; of orders to a device one that says what is to be done, if there is any. */
static uint32_t hottest(const struct doing *d)
{
	double top;

	return heat_top(d->forwards.seconds >= forwards_least * d->heat.seconds ? &d->forwards
										: &d->heat,
			&top);
}

/* Of an evaluation the line that evaluates, and not what the model does for it. */
static uint32_t line_of(enum fact_id id, const struct evaluates *e, const struct act_row *r)
{
	uint32_t line = id == FACT_DOING_EVALUATE ? evaluates_line(e, r) : 0;

	if (line)
		return line;
	return r->place ? r->place : r->leaf;
}

/* Samples tell shares of what is known; what is not is left out on both sides. */
static void share_of(const struct activity *a, const struct act_thread *t, enum fact_id id,
		     const struct map *savers, struct facts *f)
{
	struct doing d = { 0 };
	struct evaluates evaluates = { 0 };
	double known = 0, share, error;
	uint32_t place;

	if (id == FACT_DOING_EVALUATE)
		evaluates_open(&evaluates, a, t);
	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];
		struct act_row x = seen_as(a, r, savers);

		if (r->unknown)
			continue;
		known += r->seconds;
		if (!about(&x, id, fact_or(f, FACT_GPU_DRIVEN, 0) >= 2))
			continue;
		d.seconds += r->seconds;
		heat_add(&d.heat, a->book, line_of(id, &evaluates, r), r->seconds);
		if (id == FACT_DISPATCH_LINE && r->place &&
		    !goes_back(stack_book_find_place(a->book, r->place)))
			heat_add(&d.forwards, a->book, r->place, r->seconds);
	}
	share = known > 0 ? d.seconds / known : 0;
	error = activity_error(share, t->samples);
	fact_set_range(f, id, share, fmax(0, share - error), fmin(1, share + error));
	place = hottest(&d);
	if (place)
		fact_set_place(f, id, place);
	evaluates_done(&evaluates);
	heat_done(&d.heat);
	heat_done(&d.forwards);
}

static bool is_below(const struct activity *a, const struct act_row *r, uint64_t function)
{
	uint32_t places[STACK_DEPTH_MAX];
	size_t n = stack_book_walk(a->book, r->node, places, STACK_DEPTH_MAX);

	for (size_t i = 0; i < n; i++) {
		const struct place *p = stack_book_find_place(a->book, places[i]);

		if (p && place_code(p) == function)
			return true;
	}
	return false;
}

/* A hook that reads what the model said and computes with it (a metric) waits for the device for the sake of that. Not
 * so the loop itself, which has the model's work below it as well. */
static void read_for(const struct activity *a, const struct act_thread *t, struct facts *f)
{
	const struct place *p = stack_book_find_place(a->book, f->v[FACT_DOING_READ_BACK].place);
	double own = 0, below = 0, model = 0;

	for (size_t k = t->row; p && k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];
		bool mine = !r->unknown && about(r, FACT_DOING_OWN, false);

		own += mine ? r->seconds : 0;
		if (r->unknown || (!mine && r->state != TIME_DISPATCH) ||
		    !is_below(a, r, place_code(p)))
			continue;
		*(mine ? &below : &model) += r->seconds;
	}
	fact_set(f, FACT_READ_FOR_OWN, own > 0 && model < 0.1 * below ? below / own : 0);
}

/* The last word of the program before the end of the window; NAN: none. */
static double setting(const struct scene *s, uint32_t process, const char *name)
{
	const struct window_scalar *v;
	double value = NAN;
	size_t n = 0;

	v = s->whole->ops->settings ? s->whole->ops->settings(s->whole->src, &n) : NULL;
	for (size_t i = 0; i < n; i++)
		if (v[i].entity == process && v[i].t_ns <= s->steady.to_ns &&
		    strcmp(v[i].name, name) == 0)
			value = v[i].value;
	return value;
}

static void settings(const struct scene *s, const struct act_thread *t, struct facts *f)
{
	double pins = setting(s, t->process, "dataloader.pin_memory");
	double stay = setting(s, t->process, "dataloader.persistent_workers");

	for (size_t i = 0; i < s->activity.threads.n; i++)
		if (s->activity.threads.v[i].role == ROLE_PIN_THREAD)
			pins = 1;
	fact_absent(f, FACT_LOADER_PINS, "what the program set was not heard");
	fact_absent_like(f, FACT_LOADER_PERSISTENT, FACT_LOADER_PINS);
	if (isfinite(pins))
		fact_set(f, FACT_LOADER_PINS, pins != 0);
	if (isfinite(stay))
		fact_set(f, FACT_LOADER_PERSISTENT, stay != 0);
}

static void step_length(const struct scene *s, const struct act_thread *t, struct facts *f)
{
	const struct window_step *v;
	size_t n = 0, steps = 0;

	v = s->whole->ops->steps ? s->whole->ops->steps(s->whole->src, &n) : NULL;
	for (size_t i = 0; i < n; i++)
		steps += v[i].entity == t->process && step_in(&s->steady, &v[i]);
	if (steps >= STEPS_P95_LEAST && s->seconds > 0)
		fact_set(f, FACT_STEP_SECONDS, s->seconds / (double)steps);
	else
		fact_absent(f, FACT_STEP_SECONDS, "too few steps were marked");
}

static void compute(const struct scene *s, struct facts *f)
{
	const struct activity *a = &s->activity;
	const char *why;
	const struct act_thread *t = stacked_critical(a, &why);
	struct map savers = { 0 };

	/* without memory they are told apart less well */
	if (t && !note_savers(a, t, &savers))
		map_done(&savers);
	for (int id = FACT_DOING_CHECKPOINT; id <= FACT_DOING_IDLE; id++) {
		if (t)
			share_of(a, t, (enum fact_id)id, &savers, f);
		else
			fact_absent(f, (enum fact_id)id, "%s", why);
	}
	map_done(&savers);
	if (f->v[FACT_GPU_BUSY].known)
		fact_set(f, FACT_DEVICE_IDLE, 1 - f->v[FACT_GPU_BUSY].value);
	else
		fact_absent_like(f, FACT_DEVICE_IDLE, FACT_GPU_BUSY);
	if (t) {
		step_length(s, t, f);
		read_for(a, t, f);
		settings(s, t, f);
		return;
	}
	fact_absent(f, FACT_STEP_SECONDS, "%s", why);
	fact_absent(f, FACT_READ_FOR_OWN, "%s", why);
	fact_absent(f, FACT_LOADER_PINS, "%s", why);
	fact_absent(f, FACT_LOADER_PERSISTENT, "%s", why);
}

const struct fact_source doing_facts = { "doing", compute };
