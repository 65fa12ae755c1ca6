/* SPDX-License-Identifier: MIT
 *
 * libspotter: what a program calls, in front of its ring. Whatever goes wrong, the program does not notice: no
 * output, no signal, no change of errno; without a ring each call is one load and a return.
 */
#include "mark/ring.h"

#pragma GCC visibility push(default)
#include "spotter.h"
#pragma GCC visibility pop

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define SAME(kind) _Static_assert((int)SPOTTER_##kind == (int)MARK_##kind, "one number, two names")
SAME(STEP);
SAME(SCALAR);
SAME(PHASE_BEGIN);
SAME(PHASE_END);
SAME(DATA_WAIT);
SAME(MICRO_STEP);
SAME(EPOCH);
SAME(SETTING);
SAME(SOURCE);

/* A library has one state for the process it is in. */
static struct {
	_Atomic(struct ring *) ring; /* NULL: not tried yet; NO_RING: tried, there is none */
	_Atomic uint64_t steps;      /* counted by spotter_step() */
	_Atomic bool told_source;
} self;

#define NO_RING ((struct ring *)&self)

/* Several threads may come here at once. None waits: all of them open the same ring, the first publishes
 * it, the others let go of theirs. */
static struct ring *first_mark(void)
{
	const char *folder = secure_getenv("SPOTTER_MARKS");
	struct ring *seen = NULL, *made = NULL;
	int kept = errno, cancel;

	if (folder && *folder) {
		/* open() is a place where a thread may be cancelled; a mark is not. */
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		made = ring_create(folder);
		pthread_setcancelstate(cancel, NULL);
	}
	if (!made)
		made = NO_RING;
	/* A ring is better than none: another thread's attempt may have failed meanwhile. */
	while (!atomic_compare_exchange_weak(&self.ring, &seen, made)) {
		if (!seen || (seen == NO_RING && made != NO_RING))
			continue;
		if (made != NO_RING)
			ring_forget(made);
		break;
	}
	errno = kept;
	return atomic_load(&self.ring);
}

/* The ring of this process, or NULL. */
static inline struct ring *ring_of_self(void)
{
	struct ring *r = atomic_load_explicit(&self.ring, memory_order_acquire);

	if (__builtin_expect(!r, 0))
		r = first_mark();
	return r == NO_RING ? NULL : r;
}

static inline int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static void put_step(struct ring *r, uint64_t step, double loss)
{
	int64_t now = now_ns();

	if (!atomic_load_explicit(&self.told_source, memory_order_relaxed) &&
	    !atomic_exchange(&self.told_source, true))
		ring_put(r, MARK_SOURCE, ring_name(r, "api"), 0, 0, now);
	ring_put(r, MARK_STEP, 0, step, loss, now);
}

void spotter_step(double loss)
{
	struct ring *r = ring_of_self();

	if (r)
		put_step(r, atomic_fetch_add_explicit(&self.steps, 1, memory_order_relaxed) + 1,
			 loss);
}

void spotter_step_number(uint64_t step, double loss)
{
	struct ring *r = ring_of_self();

	if (!r)
		return;
	atomic_store_explicit(&self.steps, step, memory_order_relaxed);
	put_step(r, step, loss);
}

static void put_named(enum mark_kind kind, const char *name, double value, uint64_t number,
		      int64_t t_ns)
{
	struct ring *r = ring_of_self();
	uint32_t id = r ? ring_name(r, name) : 0;

	if (id)
		ring_put(r, kind, id, number, value, t_ns ? t_ns : now_ns());
}

void spotter_scalar(const char *name, double value)
{
	put_named(MARK_SCALAR, name, value, 0, 0);
}

void spotter_phase_begin(const char *name)
{
	put_named(MARK_PHASE_BEGIN, name, 0, 0, 0);
}

void spotter_phase_end(const char *name)
{
	put_named(MARK_PHASE_END, name, 0, 0, 0);
}

void spotter_data_wait(uint64_t ns)
{
	struct ring *r = ring_of_self();

	if (r)
		ring_put(r, MARK_DATA_WAIT, 0, ns, 0, now_ns());
}

int spotter_active(void)
{
	return ring_of_self() != NULL;
}

void spotter_mark(uint32_t kind, const char *name, uint64_t number, double value, int64_t t_ns)
{
	struct ring *r;

	switch (kind) {
	case MARK_SCALAR:
	case MARK_PHASE_BEGIN:
	case MARK_PHASE_END:
	case MARK_SETTING:
	case MARK_SOURCE:
		put_named((enum mark_kind)kind, name, value, number, t_ns);
		break;
	case MARK_STEP:
	case MARK_DATA_WAIT:
	case MARK_MICRO_STEP:
	case MARK_EPOCH:
		r = ring_of_self();
		if (r)
			ring_put(r, (enum mark_kind)kind, 0, number, value, t_ns ? t_ns : now_ns());
		break;
	default:
		break;
	}
}

/* Counts from 1 again: another recorder, or another process. */
static struct ring *start_afresh(void)
{
	struct ring *r = atomic_exchange(&self.ring, NULL);

	atomic_store(&self.steps, 0);
	atomic_store(&self.told_source, false);
	return r == NO_RING ? NULL : r;
}

void spotter_reset(void)
{
	int kept = errno;

	ring_close(start_afresh());
	errno = kept;
}

/* The ring is the parent's. */
static void in_child(void)
{
	int kept = errno;

	ring_forget(start_afresh());
	errno = kept;
}

/* When it is loaded, and not at the first mark: a thread could fork between the two. (getpid() in each mark
 * would do as well, and is a system call since glibc 2.25.) */
__attribute__((constructor)) static void begin(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

__attribute__((destructor)) static void end(void)
{
	struct ring *r = atomic_load(&self.ring);

	if (r != NO_RING)
		ring_end(r);
}
