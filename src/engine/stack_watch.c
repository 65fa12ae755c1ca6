/* SPDX-License-Identifier: MIT */
#include "engine/stack_watch.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/thread.h"
#include "engine/stack_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	THREAD_STACK_BYTES = 512 << 10,
	FIND_PAUSE_MS = 8, /* between two searches for interpreters of 2 ms */
	TELL_MS = 950,     /* a hand-over a second */
	FLUSH_MS = 30,     /* how long the last one is waited for */
};

struct stack_watch {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake, told;

	/* Between the two threads. */
	bool stop, flush;
	bool news; /* a process was born */
	struct stack_allowance allowance;
	VEC(struct life) lives; /* to be learnt */
	int64_t wall_ns, boot_ns;
	struct frame ready; /* handed over, not yet taken */
	bool full;
	int64_t cpu_ns;
	int level;

	/* The stack thread's own. */
	struct stack_pace pace;
	uint64_t random;
	struct stack_tally tally;
	struct stack_job job;
	struct frame next;
	uint64_t missed;
	int64_t found_ns;
	int64_t told_ns;

	struct frame taken; /* the sampler's own */
};

/* xorshift64*: good enough never to beat with anything. */
static double random_share(struct stack_watch *w)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return (double)((w->random * 0x2545f4914f6cdd1dull) >> 11) / 9007199254740992.0;
}

/* Between half and one and a half periods. */
static int64_t jittered_ns(struct stack_watch *w)
{
	return (int64_t)(1e9 / w->pace.hz_now * (0.5 + random_share(w)));
}

static void put_self(struct stack_watch *w, struct frame *f, int64_t cpu_ns)
{
	const struct stack_counts *c = &w->job.counts;

	frame_put(f, M_SELF_STACKS, ID_SELF, (int64_t)c->samples);
	frame_put(f, M_SELF_STACKS_READ, ID_SELF, (int64_t)c->complete);
	frame_put(f, M_SELF_STACKS_PARTIAL, ID_SELF, (int64_t)c->partial);
	frame_put(f, M_SELF_STACKS_UNPROVEN, ID_SELF, (int64_t)c->unproven);
	frame_put(f, M_SELF_STACKS_MISSED, ID_SELF, (int64_t)w->missed);
	frame_put(f, M_SELF_STACKS_TIME, ID_SELF, cpu_ns);
	frame_put(f, M_SELF_STACKS_RATE, ID_SELF, (int64_t)(w->pace.hz_now * 1000));
}

/* Under the lock. What the sampler has not taken yet goes with the next hand-over. */
static void hand_over(struct stack_watch *w, int64_t now_ns, int64_t cpu_ns)
{
	struct frame swap;

	if (w->full)
		return;
	frame_begin(&w->next, now_ns, 0);
	stack_tally_tell(&w->tally, now_ns, &w->next);
	stack_job_tell(&w->job, &w->next);
	put_self(w, &w->next, cpu_ns);
	swap = w->ready;
	w->ready = w->next;
	w->next = swap;
	w->full = true;
	w->told_ns = now_ns;
}

/* Births and ends the sampler has told of. */
static void learn(struct stack_watch *w)
{
	for (size_t i = 0; i < w->lives.n; i++)
		stack_job_life(&w->job, &w->lives.v[i], w->wall_ns, w->boot_ns);
	w->lives.n = 0;
	w->news = false;
}

/* Sleeps until due; true: to stop. A hand-over that is wanted now is made at once. */
static bool wait_until(struct stack_watch *w, int64_t due_ns)
{
	struct timespec ts = { .tv_sec = due_ns / NS_PER_S, .tv_nsec = due_ns % NS_PER_S };
	int e = 0;

	while (!w->stop && !w->flush && !w->news && !e)
		e = pthread_cond_timedwait(&w->wake, &w->lock, &ts);
	if (w->flush) {
		hand_over(w, clock_mono_ns(), clock_thread_cpu_ns());
		w->flush = false;
		pthread_cond_broadcast(&w->told);
	}
	return w->stop;
}

/* One look, and what it cost decides when the next one is: since_ns, the CPU time of this thread behind the
 * one before; waking up, learning and handing over count, finding interpreters does not. Returns it as it is
 * behind this one. */
static int64_t look(struct stack_watch *w, int64_t now_ns, int64_t since_ns,
		    const struct stack_allowance *a)
{
	double before = w->pace.hz_now;
	int64_t finding_ns = stack_job_attach(&w->job, now_ns, a->share), end_ns;

	/* The clock again: an attachment takes milliseconds. */
	stack_job_look(&w->job, clock_mono_ns());
	end_ns = clock_thread_cpu_ns();
	stack_pace_look(&w->pace, end_ns - since_ns - finding_ns);
	stack_pace_govern(&w->pace, now_ns, a, w->job.followers);
	w->job.stride = w->pace.stride;
	/* The next sample stands for the time since this one, by whichever clock that is longer. */
	w->job.period_ns = (int64_t)(1e9 / (before < w->pace.hz_now ? before : w->pace.hz_now));
	return end_ns;
}

/* Workers start all at once and may be gone in a second, while looks are rare in a job that is dear: they are
 * found between two looks. Returns what it cost, CPU time. */
static int64_t find_between(struct stack_watch *w, int64_t now_ns, double share)
{
	w->found_ns = now_ns;
	return stack_job_attach(&w->job, now_ns, share);
}

/* The next look, or the next process to be tried, with pauses. */
static int64_t soonest(const struct stack_watch *w, int64_t due_ns)
{
	int64_t try = stack_job_next_try(&w->job), least = w->found_ns + FIND_PAUSE_MS * NS_PER_MS;

	try = try < least ? least : try;
	return try < due_ns ?
	try : due_ns
		;
}

static void *watch_main(void *arg)
{
	struct stack_watch *w = arg;
	int64_t due = clock_mono_ns(), cpu = 0;

	pthread_setname_np(pthread_self(), "spotter-stacks");
	w->told_ns = w->tally.from_ns = due;
	pthread_mutex_lock(&w->lock);
	while (!wait_until(w, soonest(w, due))) {
		struct stack_allowance allowance = w->allowance;
		int64_t now;

		learn(w);
		pthread_mutex_unlock(&w->lock);
		now = clock_mono_ns();
		if (now < due) {
			cpu += find_between(w, now, allowance.share);
			pthread_mutex_lock(&w->lock);
			continue;
		}
		cpu = look(w, now, cpu, &allowance);
		due += jittered_ns(w);
		now = clock_mono_ns();
		if (due < now) { /* late: what was due meanwhile is gone */
			w->missed += (uint64_t)((double)(now - due) * w->pace.hz_now / 1e9) + 1;
			due = now + jittered_ns(w);
		}
		pthread_mutex_lock(&w->lock);
		w->cpu_ns = cpu;
		if (stack_job_level(&w->job) > w->level)
			w->level = stack_job_level(&w->job);
		if (now - w->told_ns >= TELL_MS * NS_PER_MS)
			hand_over(w, now, cpu);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void watch_free(struct stack_watch *w)
{
	stack_job_close(&w->job);
	stack_tally_done(&w->tally);
	frame_done(&w->ready);
	frame_done(&w->next);
	frame_done(&w->taken);
	vec_done(&w->lives);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->wake);
	pthread_cond_destroy(&w->told);
	free(w);
}

int stack_watch_start(const struct stack_watch_options *o, struct stack_watch **ret, struct err *e)
{
	struct stack_watch *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;
	int r;

	if (!w)
		return err_set(e, -ENOMEM, "out of memory");
	stack_pace_init(&w->pace, o->hz);
	w->allowance.share = o->budget;
	w->level = 1;
	w->random = (uint64_t)clock_mono_ns() * 2 + 1;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, &attr);
	pthread_cond_init(&w->told, &attr);
	pthread_condattr_destroy(&attr);
	r = stack_job_open(&w->job, &w->tally, o->hz);
	if (r >= 0)
		r = thread_start(&w->thread, THREAD_STACK_BYTES, watch_main, w);
	if (r < 0) {
		watch_free(w);
		return err_set(e, r, "cannot start the thread that reads stacks");
	}
	*ret = w;
	return 0;
}

void stack_watch_stop(struct stack_watch *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	watch_free(w);
}

/* Under the lock: lives of processes and threads, without their texts. */
static void pass_lives(struct stack_watch *w, const struct frame *f)
{
	for (size_t i = 0; i < f->lives.n; i++) {
		const struct life *l = &f->lives.v[i];
		struct life *copy;

		if (l->kind != ENTITY_PROC && l->kind != ENTITY_THREAD)
			continue;
		copy = vec_push(&w->lives);
		if (copy)
			*copy = *l;
		w->news |= copy && l->kind == ENTITY_PROC;
	}
	if (w->news)
		pthread_cond_signal(&w->wake);
	w->wall_ns = f->wall_ns;
	w->boot_ns = clock_boot_ns();
}

static void flush(struct stack_watch *w)
{
	int64_t until = clock_mono_ns() + FLUSH_MS * NS_PER_MS;
	struct timespec ts = { .tv_sec = until / NS_PER_S, .tv_nsec = until % NS_PER_S };
	int e = 0;

	w->flush = true;
	pthread_cond_signal(&w->wake);
	while (w->flush && !e)
		e = pthread_cond_timedwait(&w->told, &w->lock, &ts);
}

void stack_watch_tick(struct stack_watch *w, struct frame *f, bool last)
{
	bool took = false;

	pthread_mutex_lock(&w->lock);
	if (last && !w->full)
		flush(w);
	if (w->full) {
		struct frame swap = w->taken;

		w->taken = w->ready;
		w->ready = swap;
		w->full = false;
		took = true;
	}
	pass_lives(w, f);
	pthread_mutex_unlock(&w->lock);
	if (took)
		stack_frame_append(f, &w->taken);
}

void stack_watch_allow(struct stack_watch *w, const struct stack_allowance *a)
{
	pthread_mutex_lock(&w->lock);
	w->allowance = *a;
	pthread_mutex_unlock(&w->lock);
}

int64_t stack_watch_cpu_ns(struct stack_watch *w)
{
	int64_t cpu;

	pthread_mutex_lock(&w->lock);
	cpu = w->cpu_ns;
	pthread_mutex_unlock(&w->lock);
	return cpu;
}

int stack_watch_level(struct stack_watch *w)
{
	int level;

	pthread_mutex_lock(&w->lock);
	level = w->level;
	pthread_mutex_unlock(&w->lock);
	return level;
}
