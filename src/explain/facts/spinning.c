/* SPDX-License-Identifier: MIT
 *
 * Cores that are used for nothing: the helping threads of a math library (OpenBLAS, OpenMP) look for work in a
 * loop for some time after they had any, with OpenBLAS about 20 ms, with others up to 200 ms. A training
 * that calls them now and then sees a core full that anybody else may have.
 *
 * They can be of use only while a thread of the program is inside of such a call, and for that it lets go of
 * the GIL (NumPy, torch and ctypes do). So no more of their time can be work than other threads of the process
 * spend neither with the GIL nor waiting for it, nor idle; what is above that they spin. It is a lower bound:
 * NumPy lets go of the GIL also for what it computes itself. At L3 their native code says it: they yield, or
 * are in the runtime itself.
 */
#include "explain/facts/stacked.h"
#include "explain/place.h"

#include <math.h>
#include <string.h>

/* Below this it may be error of the samples. */
static const double cores_least = 0.1;

/* Threads of OpenBLAS and OpenMP are called as their process is. Those of TensorFlow, XLA and torch's autograd
 * have names, and work on while the program is in Python. */
static bool helps(const struct act_thread *t, const struct act_thread *critical)
{
	if (t == critical || t->first)
		return false;
	return t->role == ROLE_BLAS_THREADS ||
	       (t->role == ROLE_FRAMEWORK_THREADS && t->name && critical->name &&
		strcmp(t->name, critical->name) == 0);
}

/* Could it be inside of a call that others help with? What waits may be, but not for the GIL, for something to do, or for
 * what is known to be somewhere else: the device, its data, other ranks, a file. A thread without Python that waits is
 * one that helps others; not so the main one of a program without any. */
static bool may_ask_for_help(const struct act_row *r, bool python)
{
	if (r->on_cpu)
		return !(r->flags & STACK_GIL);
	if (r->kind == WAIT_GIL || !python)
		return false;
	return r->unknown ||
	       !(r->state == TIME_IDLE || r->state == TIME_GPU_WAIT || r->state == TIME_DATA_WAIT ||
		 r->state == TIME_COMM_WAIT || r->state == TIME_TRANSFER || r->state == TIME_IO);
}

/* Fewer samples with native code say nothing about a share. */
enum { NATIVE_LEAST = 20 };
enum { ROWS_ASKED = 64 };

struct helpers {
	double run, n; /* seconds, threads */
	double yield;  /* seconds of run: of those that yield while they look for work */
	bool openmp;   /* some are a runtime's that does not */
	double spins, works,
	    samples;     /* seconds of samples with a known native function; their number */
	double nameless; /* the same, somewhere in OpenBLAS */
};

static bool is_openmp(const struct place *p)
{
	static const char *const runtimes[] = { "libgomp", "libiomp5", "libomp." };
	const char *base = place_file_name(p);

	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (strncmp(base, runtimes[i], strlen(runtimes[i])) == 0)
			return true;
	return false;
}

/* "sched_yield", or what an OpenMP runtime does itself: it looks for work. */
static bool is_spin(const struct place *p)
{
	return is_openmp(p) || strcmp(p->function, "sched_yield") == 0 ||
	       strcmp(p->function, "__sched_yield") == 0;
}

/* Threads of OpenBLAS call sched_yield() until they sleep: whoever has work is let through. Where it was built with OpenMP
 * they are that runtime's, which spin for themselves. */
static bool is_yielding(const struct activity *a, const struct act_thread *t)
{
	uint32_t places[STACK_DEPTH_MAX];
	bool found = false;

	/* the longest come first: what it mostly does is among them */
	for (size_t k = t->row; k < t->row + t->n_rows && k < t->row + ROWS_ASKED; k++) {
		size_t n = stack_book_walk(a->book, a->rows.v[k].node, places, STACK_DEPTH_MAX);

		for (size_t i = 0; i < n; i++) {
			const struct place *p = stack_book_find_place(a->book, places[i]);

			if (!p || p->kind != PLACE_NATIVE)
				continue;
			if (is_openmp(p))
				return false;
			found |= strstr(p->file, "openblas") != NULL;
		}
	}
	return found;
}

static void add_helper(struct helpers *h, const struct activity *a, const struct act_thread *t)
{
	if (!isfinite(t->run))
		return;
	h->run += t->run;
	h->n++;
	h->yield += is_yielding(a, t) ? t->run : 0;
	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];
		const struct place *p = stack_book_find_place(a->book, r->native);

		if (!r->on_cpu || !p || !p->function || !p->file)
			continue;
		h->openmp |= is_openmp(p);
		if (is_spin(p))
			h->spins += r->seconds;
		else if (p->function[0])
			h->works += r->seconds;
		else if (strstr(p->file, "openblas"))
			h->nameless += r->seconds;
		h->samples += p->function[0] ? r->count : 0;
	}
}

/* Seconds. The kernel's accounts have what the samples on a CPU stand for. */
static double asks(const struct activity *a, const struct act_thread *t, bool main)
{
	double on = 0, computes = 0, waits = 0;
	bool python = main || stacked_has_python(a, t);

	if (t->role == ROLE_COMM_THREADS)
		return 0;

	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];

		on += r->on_cpu ? r->seconds : 0;
		if (may_ask_for_help(r, python))
			*(r->on_cpu ? &computes : &waits) += r->seconds;
	}
	if (isfinite(t->run))
		computes = on > 0 ? computes / on * t->run : t->run;
	return fmin(t->alive, computes + waits + (isfinite(t->queue) ? t->queue : 0) +
				  (python ? fmax(0, t->unaccounted) : 0));
}

/* The loop in which a thread of OpenBLAS waits has no symbol, and half of that waiting is in it, the other half in the kernel's
 * sched_yield() (125 samples to 120 of a helper with hardly any work). What is above that may be anything. */
static double spins_of(const struct helpers *h)
{
	double spins = h->spins, all = h->spins + h->works;

	if (!h->openmp) {
		spins += fmin(h->nameless, h->spins);
		all += h->nameless;
	}
	return all > 0 ? spins / all : 0;
}

struct spun {
	double likely, least; /* seconds */
	double yields;        /* of the likely ones */
	bool dark;            /* helpers ran, and what they run was hardly ever seen */
};

/* In one process, by its main thread. */
static struct spun spun_in(const struct activity *a, const struct act_thread *main, double allowed)
{
	double asked = 0, most, spun, seen;
	struct helpers h = { 0 };

	for (size_t i = 0; i < a->threads.n; i++) {
		const struct act_thread *t = &a->threads.v[i];

		if (t->process == main->process && helps(t, main))
			add_helper(&h, a, t);
		else if (t->process == main->process)
			asked += asks(a, t, t == main);
	}
	/* Who asks works along: there is a core less for those who help. */
	most = isfinite(allowed) ? fmax(1, allowed - 1) : h.n;
	spun = fmax(0, h.run - fmin(h.n, most) * asked);
	seen = h.samples >= NATIVE_LEAST ? h.run * spins_of(&h) : 0;
	spun = spun >= cores_least * main->alive ? spun : 0;
	seen = fmax(spun, seen);
	seen = seen >= cores_least * main->alive ? seen : 0;
	return (struct spun){ .likely = seen,
			      .least = spun,
			      .yields = h.run > 0 ? seen * h.yield / h.run : 0,
			      .dark = h.samples < NATIVE_LEAST && !h.openmp &&
				      h.run >= cores_least * main->alive };
}

/* Is it computing, as far as is known? What waits for the device, for other ranks or for data spins for that. */
static bool is_computing(const struct act_row *r)
{
	return r->on_cpu && !r->unknown &&
	       (r->state == TIME_DISPATCH || r->state == TIME_PYTHON || r->state == TIME_DATA_LOAD);
}

/* The critical thread itself, at the end of each part it has shared out: as long as its slowest helper takes, which may have
 * no CPU at all. Only runtimes of OpenMP, which do not give way. It has let go of the GIL for that, and the interpreter, whose
 * native code is not told, never does: so shares are taken of the time without. */
static void spins_itself(const struct activity *a, const struct act_thread *t, struct facts *f)
{
	double spins = 0, seen = 0, on = 0, without = 0, share, error;
	uint32_t samples = 0;

	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];
		const struct place *p = stack_book_find_place(a->book, r->native);

		on += r->on_cpu && !r->unknown ? r->seconds : 0;
		if (!is_computing(r) || r->flags & STACK_GIL)
			continue;
		without += r->seconds;
		if (!p || !p->file)
			continue;
		seen += r->seconds;
		spins += is_openmp(p) ? r->seconds : 0;
		samples += r->count;
	}
	if (samples < NATIVE_LEAST || !(seen > 0) || !isfinite(t->run) || !(t->alive > 0)) {
		fact_absent(f, FACT_MAIN_SPINS, "too little native code was seen (level L3)");
		return;
	}
	share = spins / seen;
	error = activity_error(share, samples);
	/* of wall time */
	on = without / on * fmin(t->run, t->alive) / t->alive;
	fact_set_range(f, FACT_MAIN_SPINS, share * on, fmax(0, share - error) * on,
		       fmin(1, share + error) * on);
}

/* Processes whose helpers are asked for: the critical thread's, those of other ranks, which may have come one after another,
 * and loader workers. */
static bool is_main_of_one(const struct scene *s, const struct act_thread *t)
{
	if (!t->first || !(t->alive > 0))
		return false;
	return t->role == ROLE_MAIN || stacked_is_worker(s, t);
}

static void compute(const struct scene *s, struct facts *f)
{
	const struct activity *a = &s->activity;
	const char *why;
	const struct act_thread *critical = stacked_critical(a, &why);
	struct spun sum = { 0 };

	if (!critical || !(s->seconds > 0)) {
		why = critical ? "nothing was recorded" : why;
		fact_absent(f, FACT_CORES_SPINNING, "%s", why);
		fact_absent(f, FACT_CORES_YIELDED, "%s", why);
		fact_absent(f, FACT_MAIN_SPINS, "%s", why);
		return;
	}
	spins_itself(a, critical, f);
	for (size_t i = 0; i < a->threads.n; i++) {
		const struct act_thread *t = &a->threads.v[i];
		struct spun x;

		if (t != critical && (t->process == critical->process || !is_main_of_one(s, t)))
			continue;
		x = spun_in(a, t, fact_or(f, FACT_CORES_ALLOWED, NAN));
		sum.likely += x.likely;
		sum.least += x.least;
		/* who yields to whom is asked of the training's own helpers alone */
		if (t != critical && t->role != ROLE_MAIN)
			continue;
		sum.yields += x.yields;
		sum.dark |= x.dark;
	}
	/* nobody knows then whether they spin, and how they wait */
	if (sum.dark)
		fact_absent(f, FACT_CORES_YIELDED,
			    "too little native code of helping threads was seen (level L3)");
	else
		fact_set(f, FACT_CORES_YIELDED, sum.yields / s->seconds);
	fact_set_range(f, FACT_CORES_SPINNING, sum.likely / s->seconds, sum.least / s->seconds,
		       NAN);
}

const struct fact_source spinning_facts = { "spinning", compute };
