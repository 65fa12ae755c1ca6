/* SPDX-License-Identifier: MIT
 *
 * Ranks against each other. In synchronous training all take the same time for a step: whoever waits least for
 * the others is the one they wait for, and what even that one waits is the exchange itself.
 */
#include "explain/facts/ranks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Whose frames communicate, by their files. */
static const struct {
	const char *file, *library;
} libraries[] = {
	{ "torch/distributed/", "torch" }, { "torch/nn/parallel/", "torch" },
	{ "horovod/", "horovod" },         { "deepspeed/", "deepspeed" },
	{ "mpi4py/", "mpi4py" },           { "tensorflow/", "tensorflow" },
};

/* Two seconds of samples of each rank: with fewer, only what is far beyond chance is told. */
static const uint32_t samples_enough = 100;
static const double beyond_chance = 0.02;
/* Of a step: ranks whose ends of it are no farther apart go in step. */
static const double together_most = 0.1;

/* A share of one rank against the others'. */
struct spread {
	const struct rank *top;
	double most, next, others; /* the most, the second, the mean of all but the most */
};

static double own(const struct rank *r)
{
	return r->own;
}

static double data(const struct rank *r)
{
	return r->data;
}

static struct spread spread_of(const struct ranks *r, double (*of)(const struct rank *))
{
	struct spread x = { .next = -1 };
	double sum = 0;

	for (size_t i = 0; i < r->v.n; i++) {
		const struct rank *k = &r->v.v[i];

		sum += of(k);
		if (!x.top || of(k) > x.most) {
			x.next = x.top ? x.most : x.next;
			x.most = of(k);
			x.top = k;
		} else if (of(k) > x.next) {
			x.next = of(k);
		}
	}
	x.others = (sum - x.most) / (double)(r->v.n - 1);
	return x;
}

/* Mean of a figure over all ranks but one. */
static double of_others(const struct ranks *r, const struct rank *but, size_t offset)
{
	double sum = 0, v;

	for (size_t i = 0; i < r->v.n; i++) {
		if (&r->v.v[i] == but)
			continue;
		memcpy(&v, (const char *)&r->v.v[i] + offset, sizeof(v));
		sum += v;
	}
	return sum / (double)(r->v.n - 1);
}

#define OTHERS(r, but, what) of_others(r, but, offsetof(struct rank, what))

enum row_kind { ROW_DATA, ROW_WORK, ROW_COMM };

static bool is_kind(const struct act_row *x, enum row_kind kind)
{
	bool is_data = x->state == TIME_DATA_WAIT || x->state == TIME_DATA_LOAD;

	if (kind == ROW_COMM)
		return x->state == TIME_COMM_WAIT;
	return kind == ROW_DATA ? is_data : !is_data && x->state != TIME_COMM_WAIT;
}

static void add_heat(struct heat *h, const struct activity *a, const struct rank *r,
		     enum row_kind kind, double weight)
{
	const struct act_thread *t = r->t;

	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *x = &a->rows.v[k];
		uint32_t place = x->place ? x->place : x->leaf;

		if (!x->unknown && place && is_kind(x, kind) && t->covered > 0)
			heat_add(h, a->book, place, weight * x->seconds / t->covered);
	}
}

/* The line that takes longer in this rank than in the others, most of all. */
static void place_of(const struct activity *a, const struct ranks *r, const struct rank *top,
		     enum row_kind kind, struct facts *f, enum fact_id id)
{
	struct heat h = { 0 };
	double over;
	uint32_t place;

	for (size_t i = 0; i < r->v.n; i++)
		add_heat(&h, a, &r->v.v[i], kind,
			 &r->v.v[i] == top ? 1 : -1 / (double)(r->v.n - 1));
	place = heat_top(&h, &over);
	if (place && over > 0)
		fact_set_place(f, id, place);
	heat_done(&h);
}

/* Who waits for workers is late for what those do. Only the critical rank's are known by line. */
static void place_in_workers(const struct activity *a, const struct rank *late, struct facts *f)
{
	const struct fact *load = &f->v[FACT_LOAD_PLACE];

	if (a->critical >= 0 && a->threads.v[a->critical].process == late->process && load->known &&
	    load->place && load->value >= 0.5 &&
	    fact_or(f, FACT_TIME_DATA_WAIT, 0) > fact_or(f, FACT_TIME_DATA_LOAD, 0))
		fact_set_place(f, FACT_RANKS_DATA_LATE, load->place);
}

/* How far a rank is from the mean of the others by chance alone: with two ranks at 95 %. Of many one is far off
 * more easily, and it is the one that is farthest: z of Bonferroni's interval is about sqrt(1.96^2 + 2 ln n),
 * within 4 % up to a thousand ranks. */
static double error_of(const struct ranks *r, const struct rank *top)
{
	double n = (double)(r->v.n - 1), z = 1.96;

	return hypot(top->error, OTHERS(r, top, error) / sqrt(n)) * sqrt(1 + 2 * log(n) / (z * z));
}

static void set_late(struct facts *f, enum fact_id id, double v, double error)
{
	fact_set_range(f, id, v, v - error, v + error);
}

static void set_name(struct facts *f, enum fact_id id, const struct rank *r)
{
	char name[96];

	fact_set_subject(f, id, r->process, rank_name(r, name, sizeof(name)));
}

/* Who is late, and is it computing or its data? */
static void late(const struct activity *a, const struct ranks *r, struct facts *f)
{
	struct spread o = spread_of(r, own), d = spread_of(r, data);
	double more = o.most - o.others, data_more = o.top->data - OTHERS(r, o.top, data);
	double aside = o.top->aside - OTHERS(r, o.top, aside);
	double waits;

	set_late(f, FACT_RANKS_LATE, more, error_of(r, o.top));
	set_name(f, FACT_RANKS_LATE, o.top);
	fact_set(f, FACT_RANKS_LATE_NEXT, o.most - o.next);
	fact_set(f, FACT_RANKS_LATE_WORK, fmax(0, more - fmax(0, data_more) - fmax(0, aside)));
	place_of(a, r, o.top, ROW_WORK, f, FACT_RANKS_LATE_WORK);
	fact_set(f, FACT_RANKS_LATE_QUEUED, fmax(0, o.top->queued - OTHERS(r, o.top, queued)));

	waits = OTHERS(r, d.top, comm) + OTHERS(r, d.top, device) - d.top->comm - d.top->device;
	set_late(f, FACT_RANKS_DATA, d.most, d.top->error);
	set_name(f, FACT_RANKS_DATA, d.top);
	set_late(f, FACT_RANKS_DATA_LATE, d.most - d.others, error_of(r, d.top));
	place_of(a, r, d.top, ROW_DATA, f, FACT_RANKS_DATA_LATE);
	place_in_workers(a, d.top, f);
	fact_set(f, FACT_RANKS_DATA_NEXT, d.most - d.next);
	fact_set(f, FACT_RANKS_DATA_AWAITED, waits);
}

static const char *library_of(const struct activity *a, const struct ranks *r)
{
	for (size_t i = 0; i < r->v.n; i++) {
		const struct act_thread *t = r->v.v[i].t;

		for (size_t k = t->row; k < t->row + t->n_rows; k++) {
			const struct act_row *x = &a->rows.v[k];
			const struct place *p = x->state == TIME_COMM_WAIT && x->leaf
						    ? stack_book_find_place(a->book, x->leaf)
						    : NULL;

			for (size_t j = 0;
			     p && p->file && j < sizeof(libraries) / sizeof(libraries[0]); j++)
				if (strstr(p->file, libraries[j].file))
					return libraries[j].library;
		}
	}
	return "";
}

/* Ranks that are put off by other threads for a CPU are late in turn: each delay has this mean, and by chance the
 * longest of n is their mean times the n-th harmonic number. What is above the mean, a rank waits. */
static double waits_for_queued(const struct ranks *r, double *ret_queued)
{
	double queued = 0, harmonic = 0;

	for (size_t i = 0; i < r->v.n; i++) {
		queued += r->v.v[i].queued / (double)r->v.n;
		harmonic += 1 / (double)(i + 1);
	}
	*ret_queued = queued;
	return queued * (harmonic - 1);
}

/* What even the latest rank waits is the exchange, but for ranks that are late in turn: each waits for
 * another then, and all for about as long. Where steps do not tell, that may be all of it. */
static void transfer(const struct activity *a, const struct ranks *r,
		     const struct ranks_steps *steps, struct facts *f)
{
	const struct rank *least = &r->v.v[0];
	double queued, in_turn = waits_for_queued(r, &queued), error, v, low;
	struct heat h = { 0 };
	const char *library = library_of(a, r);
	uint32_t place;

	for (size_t i = 0; i < r->v.n; i++) {
		least = r->v.v[i].comm < least->comm ? &r->v.v[i] : least;
		add_heat(&h, a, &r->v.v[i], ROW_COMM, 1);
	}
	error = activity_error(least->comm, least->t->samples);
	if (isfinite(steps->uneven)) {
		/* the latest rank's own part of it is no waiting of that rank */
		v = f->v[FACT_RANKS_DATA_LATE].value * (double)(r->v.n - 1) / (double)r->v.n;
		in_turn += fmax(0, steps->uneven - fmax(0, v));
	}
	v = fmax(0, least->comm - in_turn);
	low = isfinite(steps->uneven) ? fmax(0, v - error - queued) : 0;
	fact_set_range(f, FACT_RANKS_TRANSFER, v, low, fmin(1, v + error));
	place = heat_top(&h, &error);
	if (place)
		fact_set_place(f, FACT_RANKS_TRANSFER, place);
	heat_done(&h);
	fact_set(f, FACT_RANKS_LIBRARY, library[0] != '\0');
	fact_set_subject(f, FACT_RANKS_LIBRARY, 0, library);
}

static void waits(const struct ranks *r, struct facts *f)
{
	double comm = 0, any = 0;

	for (size_t i = 0; i < r->v.n; i++) {
		comm = fmax(comm, r->v.v[i].comm);
		any = fmax(any, r->v.v[i].comm + r->v.v[i].device);
	}
	fact_set(f, FACT_RANKS_COMM, comm);
	fact_set(f, FACT_RANKS_WAITING, any);
}

static void absent(struct facts *f, int from, int to, const char *why)
{
	for (int id = from; id <= to; id++)
		fact_absent(f, (enum fact_id)id, "%s", why);
}

static void all_absent(struct facts *f, int from, const char *why)
{
	absent(f, from, FACT_RANKS_LIBRARY, why);
}

static uint32_t samples_least_of(const struct ranks *r)
{
	uint32_t least = UINT32_MAX;

	for (size_t i = 0; i < r->v.n; i++)
		least = r->v.v[i].t->samples < least ? r->v.v[i].t->samples : least;
	return least;
}

static void set_steps(struct facts *f, const struct ranks_steps *steps)
{
	fact_absent(
	    f, FACT_RANKS_DATA_UNEVEN,
	    "the ranks' waits for data are not known step by step: whether they are late in "
	    "turn cannot be seen");
	fact_absent_like(f, FACT_RANKS_DATA_SAME, FACT_RANKS_DATA_UNEVEN);
	fact_absent_like(f, FACT_RANKS_APART, FACT_RANKS_DATA_UNEVEN);
	if (!isfinite(steps->uneven))
		return;
	fact_set(f, FACT_RANKS_DATA_UNEVEN, steps->uneven);
	fact_set(f, FACT_RANKS_DATA_SAME, steps->same);
	fact_set(f, FACT_RANKS_APART, steps->apart);
}

/* Where stacks do not say whose data is late, marks do, of loaders they know: exactly. Ranks that end each step
 * together wait for each other: the less one waits for data, the longer for the rest. */
static void late_by_marks(const struct ranks_steps *steps, struct facts *f)
{
	double late = steps->most - steps->others;

	if (!isfinite(steps->uneven) || f->v[FACT_RANKS_DATA_LATE].known)
		return;
	fact_set(f, FACT_RANKS_DATA, steps->most);
	set_name(f, FACT_RANKS_DATA, steps->top);
	fact_set(f, FACT_RANKS_DATA_LATE, late);
	fact_set(f, FACT_RANKS_DATA_NEXT, steps->most - steps->next);
	if (steps->apart <= together_most)
		fact_set(f, FACT_RANKS_DATA_AWAITED, fmax(0, late - steps->apart));
}

/* In order of their numbers. */
static bool is_numbered(const struct ranks *r)
{
	for (size_t i = 0; i < r->v.n; i++)
		if (r->v.v[i].number < 0 || (i && r->v.v[i].number == r->v.v[i - 1].number))
			return false;
	return true;
}

static void side_by_side(const struct scene *s, const struct ranks *r, struct facts *f)
{
	static const char too_few[] = "too few stacks of the ranks were recorded";
	struct ranks_steps steps = { .uneven = NAN, .same = NAN };

	fact_set(f, FACT_RANKS, (double)r->v.n);
	if (r->v.n > 1)
		(void)ranks_by_step(s, r, &steps); /* out of memory: not known */
	if (r->why_not[0]) {
		all_absent(f, FACT_RANKS + 1, r->why_not);
		fact_set(f, FACT_RANKS_NUMBERED, is_numbered(r));
		if (isfinite(steps.uneven))
			set_steps(f, &steps);
		late_by_marks(&steps, f);
		return;
	}
	all_absent(f, FACT_RANKS + 1, "a single rank was seen here");
	waits(r, f);
	if (r->v.n < 2)
		return;
	late(&s->activity, r, f);
	fact_set(f, FACT_RANKS_NUMBERED, is_numbered(r));
	set_steps(f, &steps);
	transfer(&s->activity, r, &steps, f);
	if (samples_least_of(r) >= samples_enough)
		return;
	/* with few samples: is somebody late all the same? do all exchange all the same? */
	if (f->v[FACT_RANKS_LATE].low <= beyond_chance &&
	    f->v[FACT_RANKS_DATA_LATE].low <= beyond_chance)
		absent(f, FACT_RANKS_LATE, FACT_RANKS_DATA_AWAITED, too_few);
	late_by_marks(&steps, f);
	if (f->v[FACT_RANKS_TRANSFER].value -
		activity_error(f->v[FACT_RANKS_TRANSFER].value, samples_least_of(r)) <=
	    beyond_chance)
		absent(f, FACT_RANKS_TRANSFER, FACT_RANKS_TRANSFER, too_few);
}

/* By stacks, or where those do not show two ranks, by who marks steps. */
static void take(const struct scene *s, struct ranks *ret)
{
	const struct activity *a = &s->activity;
	struct ranks marked = { 0 };

	if (a->any && ranks_take(s, ret) == 0 && ret->v.n > 1)
		return;
	if (ranks_take_marked(s, &marked) < 0 || marked.v.n < 2) {
		ranks_done(&marked);
		return;
	}
	ranks_done(ret);
	*ret = marked;
	snprintf(ret->why_not, sizeof(ret->why_not), "%s",
		 a->any       ? "too few stacks of the ranks were recorded"
		 : a->why_not ? a->why_not
			      : "no stacks were recorded");
}

static void compute(const struct scene *s, struct facts *f)
{
	const struct activity *a = &s->activity;
	struct ranks r = { 0 };

	take(s, &r);
	if (r.v.n)
		side_by_side(s, &r, f);
	else if (!a->any)
		all_absent(f, FACT_RANKS, a->why_not ? a->why_not : "no stacks were recorded");
	else
		all_absent(f, FACT_RANKS, "the ranks of the job could not be told apart");
	ranks_done(&r);
}

const struct fact_source ranks_facts = { "ranks", compute };
