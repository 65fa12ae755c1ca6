/* SPDX-License-Identifier: MIT */
#include "engine/recorder.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/scan.h"
#include "base/thread.h"
#include "engine/governor.h"
#include "engine/queue.h"
#include "engine/sampler.h"
#include "engine/stack_pace.h"
#include "record/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	STACK_BYTES = 256 << 10,
	SELF_EVERY_MS = 1000,
	SETTLE_S = 2,      /* cost of starting up is not the governor's business */
	SHARE_SECONDS = 3, /* what sampling costs is a mean over about so many */
	SAVED_S = 2,
	LOOK_MS = 100,
	POP_MS = 1000,
};

/* Of the whole budget: what sampling must leave to the reading of stacks. What sampling does not use
 * of its part is theirs too. */
static const double stacks_part = 0.2;
/* Of the whole budget: what they are let come near to. */
static const double stacks_goal = 0.95;

struct recorder {
	struct host host;
	struct sampler *sampler;
	struct queue queue;
	pthread_t sampler_thread, writer_thread;

	/* Between the caller and the sampler thread. */
	pthread_mutex_t lock;
	pthread_cond_t wake, looked;
	bool stop;
	unsigned looks_wanted, looks_done;
	struct glance glance;

	/* The sampler thread's own. */
	double hz, budget;
	bool stacks, glances;
	pid_t supervisor;
	struct governor governor;
	bool governed;
	int64_t started_ns, self_due_ns;
	int64_t shared_ns,
	    shared_cpu_ns; /* when stacks were last told their share; CPU of the others */
	double others;     /* share of a core they take; below 0: not known yet */
	uint64_t ticks, skipped;
	double left_out; /* ticks the governor's rate is short of the asked one */
	struct host_file statm;

	/* The writer thread's own until it is joined. */
	struct run_info run;
	struct store_place place;
	struct record_options record;
	struct record_writer *writer;
	struct err error;
};

static int64_t own_cpu_ns(const struct recorder *r)
{
	int64_t cpu = clock_self_cpu_ns();
	int64_t other = r->supervisor ? clock_pid_cpu_ns(r->supervisor) : 0;

	return cpu + (other > 0 ? other : 0) + sampler_helpers_cpu_ns(r->sampler);
}

/* "5236 1789 1510 ..." in pages: the second is what is resident. */
static void put_own_rss(struct recorder *r, struct frame *f)
{
	char text[128];
	ssize_t n = host_read(&r->host, &r->statm, "proc/self/statm", text, sizeof(text));
	struct scan s = scan_of(text, n > 0 ? (size_t)n : 0);
	uint64_t pages;

	if (scan_skip(&s, 1) && scan_u64(&s, &pages))
		frame_put(f, M_SELF_RSS, ID_SELF,
			  (int64_t)(pages * (uint64_t)r->host.page_bytes / 1024) +
			      sampler_helpers_rss_bytes(r->sampler) / 1024);
}

/* What sampling and writing leave to the stacks, and what all of them are to make up for. The first second
 * is their start, and says nothing about the next one. */
static void share_budget(struct recorder *r, int64_t now_ns, int64_t cpu_ns)
{
	int64_t since = now_ns - r->shared_ns, others = cpu_ns - sampler_stacks_cpu_ns(r->sampler);
	double goal = stacks_goal * r->budget, share;
	struct stack_allowance a;

	if (!r->stacks || r->budget <= 0 || (r->shared_ns && since < NS_PER_S / 2))
		return;
	if (r->shared_ns > r->started_ns + NS_PER_S / 2) {
		share = (double)(others - r->shared_cpu_ns) / (double)since;
		r->others = r->others < 0 ? share : r->others + (share - r->others) / SHARE_SECONDS;
	}
	r->shared_ns = now_ns;
	r->shared_cpu_ns = others;
	a.share = r->others < 0 ? goal / 2 : goal - r->others;
	a.share = a.share < stacks_part * r->budget ? stacks_part * r->budget : a.share;
	a.debt_ns = cpu_ns - (int64_t)(goal * (double)(now_ns - r->started_ns));
	/* What was saved in an hour is not to be spent in a minute. */
	if (a.debt_ns < -(int64_t)(goal * SAVED_S * 1e9))
		a.debt_ns = -(int64_t)(goal * SAVED_S * 1e9);
	sampler_allow_stacks(r->sampler, &a);
}

static void govern(struct recorder *r, struct frame *f, int64_t cpu_ns)
{
	double before = r->governed ? governor_hz(&r->governor) : r->hz;
	double own = r->stacks ? (1 - stacks_part) * r->budget : r->budget;

	cpu_ns -= sampler_stacks_cpu_ns(r->sampler);

	if (!r->governed) {
		if (f->mono_ns - r->started_ns < SETTLE_S * NS_PER_S)
			return;
		governor_init(&r->governor, r->hz, own, f->mono_ns, cpu_ns);
		r->governed = true;
		return;
	}
	if (!governor_feed(&r->governor, f->mono_ns, cpu_ns))
		return;
	sampler_set_thrift(r->sampler, governor_thrift(&r->governor));
	frame_event(f, EVENT_GOVERNOR, ID_SELF, governor_hz(&r->governor),
		    "sampling %s to %g a second: own cost was %.2f %% of one core, budget %.2f %%",
		    governor_hz(&r->governor) < before ? "lowered" : "raised",
		    governor_hz(&r->governor), r->governor.share * 100, own * 100);
}

/* Once a second, and on the last look: what Spotter itself costs. */
static void put_self(struct recorder *r, struct frame *f, bool now)
{
	int64_t cpu_ns;

	if (!now && f->mono_ns < r->self_due_ns)
		return;
	r->self_due_ns = f->mono_ns + SELF_EVERY_MS * NS_PER_MS;
	cpu_ns = own_cpu_ns(r);
	share_budget(r, f->mono_ns, cpu_ns);
	govern(r, f, cpu_ns);
	put_own_rss(r, f);
	frame_put(f, M_SELF_CPU, ID_SELF, cpu_ns);
	frame_put(f, M_SELF_TICK_TIME, ID_SELF, clock_thread_cpu_ns());
	frame_put(f, M_SELF_TICKS, ID_SELF, (int64_t)r->ticks);
	frame_put(f, M_SELF_SKIPPED, ID_SELF, (int64_t)(r->skipped + (uint64_t)r->left_out));
	frame_put(f, M_SELF_RATE, ID_SELF,
		  (int64_t)((r->governed ? governor_hz(&r->governor) : r->hz) * 1000));
}

static void take_glance(struct recorder *r, const struct frame *f)
{
	if (!r->glances)
		return;
	pthread_mutex_lock(&r->lock);
	glance_frame(&r->glance, f);
	pthread_mutex_unlock(&r->lock);
}

void recorder_glance(struct recorder *r, struct glance *ret)
{
	pthread_mutex_lock(&r->lock);
	*ret = r->glance;
	pthread_mutex_unlock(&r->lock);
}

static void tick(struct recorder *r, bool last)
{
	struct frame *f = queue_take(&r->queue);

	if (!f) {
		r->skipped++;
		return;
	}
	r->ticks++;
	/* Those the governor left out since the tick before. */
	r->left_out += r->governed ? r->hz / governor_hz(&r->governor) - 1 : 0;
	if (last)
		sampler_all_due(r->sampler);
	sampler_tick(r->sampler, f);
	put_self(r, f, last || r->ticks == 1);
	take_glance(r, f);
	queue_push(&r->queue, f);
}

/* Sleeps until the tick is due, until a look is wanted, or until told to stop (then true). */
static bool wait_until(struct recorder *r, int64_t due_ns, bool *ret_look)
{
	struct timespec ts = { .tv_sec = due_ns / NS_PER_S, .tv_nsec = due_ns % NS_PER_S };
	bool stop;
	int e = 0;

	pthread_mutex_lock(&r->lock);
	while (!r->stop && r->looks_wanted == r->looks_done && !e)
		e = pthread_cond_timedwait(&r->wake, &r->lock, &ts);
	*ret_look = r->looks_wanted != r->looks_done;
	stop = r->stop;
	pthread_mutex_unlock(&r->lock);
	return stop;
}

static void look_done(struct recorder *r)
{
	pthread_mutex_lock(&r->lock);
	r->looks_done = r->looks_wanted;
	pthread_cond_broadcast(&r->looked);
	pthread_mutex_unlock(&r->lock);
}

static int64_t period_ns(const struct recorder *r)
{
	return (int64_t)(1e9 / (r->governed ? governor_hz(&r->governor) : r->hz));
}

static void *sampler_main(void *arg)
{
	struct recorder *r = arg;
	int64_t due = clock_mono_ns();
	bool look = false;

	pthread_setname_np(pthread_self(), "spotter-sample");
	r->started_ns = due;
	for (;;) {
		bool stop = wait_until(r, due, &look);
		int64_t now = clock_mono_ns();

		if (stop && !look)
			break;
		tick(r, look);
		if (look) {
			look_done(r);
			continue;
		}
		due += period_ns(r);
		now = clock_mono_ns();
		if (due < now) { /* late by a period or more: those ticks are gone */
			int64_t missed = (now - due) / period_ns(r) + 1;

			r->skipped += (uint64_t)missed;
			due += missed * period_ns(r);
		}
	}
	queue_close(&r->queue);
	return NULL;
}

static void *writer_main(void *arg)
{
	struct recorder *r = arg;

	pthread_setname_np(pthread_self(), "spotter-write");
	if (record_create(r->place.path, &r->run, &r->record, &r->writer, &r->error) < 0)
		r->writer = NULL;
	while (!queue_drained(&r->queue)) {
		struct frame *f = queue_pop(&r->queue, POP_MS * NS_PER_MS);

		if (!f)
			continue;
		/* An error is in the health and in the backlog; sampling goes on. */
		if (r->writer)
			(void)record_frame(r->writer, f);
		queue_return(&r->queue, f);
	}
	return NULL;
}

static void recorder_free(struct recorder *r)
{
	sampler_close(r->sampler);
	host_file_close(&r->statm);
	host_close(&r->host);
	queue_done(&r->queue);
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->wake);
	pthread_cond_destroy(&r->looked);
	run_info_done(&r->run);
	free(r);
}

static int init_locks(struct recorder *r)
{
	pthread_condattr_t attr;
	int e;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	e = pthread_mutex_init(&r->lock, NULL);
	e = e ? e : pthread_cond_init(&r->wake, &attr);
	e = e ? e : pthread_cond_init(&r->looked, &attr);
	pthread_condattr_destroy(&attr);
	return e ? -e : queue_init(&r->queue);
}

static int start_threads(struct recorder *r, struct err *e)
{
	int error = thread_start(&r->writer_thread, STACK_BYTES, writer_main, r);

	if (error < 0)
		return err_set(e, error, "cannot start the writer thread");
	error = thread_start(&r->sampler_thread, STACK_BYTES, sampler_main, r);
	if (error < 0) {
		queue_close(&r->queue);
		pthread_join(r->writer_thread, NULL);
		if (r->writer)
			record_abandon(r->writer);
		return err_set(e, error, "cannot start the sampler thread");
	}
	return 0;
}

int recorder_start(const struct recorder_options *o, struct recorder **ret, struct err *e)
{
	struct recorder *r = calloc(1, sizeof(*r));
	struct sampler_options so = { .job = o->job,
				      .nvml = o->nvml,
				      .marks = o->marks,
				      .stacks_hz = o->stacks_hz,
				      .stacks_budget = stacks_goal / 2 * o->budget };
	int error;

	if (!r)
		return err_set(e, -ENOMEM, "out of memory");
	r->statm.fd = -1;
	r->host.root = r->host.base = -1;
	r->hz = o->hz;
	r->budget = o->budget;
	r->stacks = o->stacks_hz > 0;
	r->glances = o->glances;
	r->others = -1;
	r->supervisor = o->supervisor;
	r->place = *o->place;
	r->record = o->record;
	error = init_locks(r);
	if (error < 0) {
		free(r);
		return err_set(e, error, "cannot create locks");
	}
	error = run_info_copy(&r->run, o->run);
	if (error >= 0)
		error = host_open(&r->host, NULL, e);
	if (error >= 0)
		error = sampler_open(&r->host, &so, &r->sampler, e);
	if (error >= 0)
		error = start_threads(r, e);
	if (error < 0) {
		recorder_free(r);
		return err_set(e, error, "cannot start the recorder");
	}
	*ret = r;
	return 0;
}

void recorder_look(struct recorder *r)
{
	int64_t until = clock_mono_ns() + LOOK_MS * NS_PER_MS;
	struct timespec ts = { .tv_sec = until / NS_PER_S, .tv_nsec = until % NS_PER_S };
	int e = 0;

	pthread_mutex_lock(&r->lock);
	r->looks_wanted++;
	pthread_cond_signal(&r->wake);
	while (r->looks_done != r->looks_wanted && !e)
		e = pthread_cond_timedwait(&r->looked, &r->lock, &ts);
	pthread_mutex_unlock(&r->lock);
}

/* The file is still open for writing here: the reader comes as any other would. */
static int explain_run(struct recorder *r, const struct render_style *style, struct buf *out,
		       struct err *e)
{
	struct record *record = NULL;
	struct verdict verdict = { 0 };
	struct window whole;
	struct buf json;
	int error = record_open_writing(r->place.path, &record, e);

	if (error < 0)
		return error;
	whole = record_window(record, 0, 0);
	error = explain(&whole, &verdict);
	if (error >= 0) {
		buf_init(&json, 0);
		render_json(&verdict, &json);
		if (buf_ok(&json))
			record_set_verdict(r->writer, buf_text(&json));
		buf_done(&json);
		if (out)
			render_text(&verdict, style, out);
	}
	verdict_done(&verdict);
	record_close(record);
	return error;
}

static void finish_record(struct recorder *r, struct run_info *run,
			  const struct render_style *style, struct buf *out,
			  struct recorder_end *ret)
{
	struct err e = { 0 };
	int error;
	char why[80];

	record_set_run(r->writer, run);
	error = record_flush(r->writer);
	if (error >= 0)
		(void)explain_run(r, style, out, &e);
	record_health(r->writer, &ret->health);
	error = record_finish(r->writer, run);
	if (error < 0)
		snprintf(ret->problem, sizeof(ret->problem), "the record is incomplete: %s",
			 err_name(error, why, sizeof(why)));
	else if (e.code)
		snprintf(ret->problem, sizeof(ret->problem), "%s", e.text);
	snprintf(ret->path, sizeof(ret->path), "%s", r->place.path);
	e = (struct err){ 0 };
	if (!r->place.final[0])
		return;
	if (store_settle(&r->place, &e) < 0)
		snprintf(ret->problem, sizeof(ret->problem), "%s", e.text);
	else
		snprintf(ret->path, sizeof(ret->path), "%s", r->place.final);
}

void recorder_stop(struct recorder *r, struct run_info *run, const struct render_style *style,
		   struct buf *out, struct recorder_end *ret)
{
	*ret = (struct recorder_end){ 0 };
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->sampler_thread, NULL);
	pthread_join(r->writer_thread, NULL);
	run->level = sampler_level(r->sampler);
	if (r->writer)
		finish_record(r, run, style, out, ret);
	else
		snprintf(ret->problem, sizeof(ret->problem), "%s", r->error.text);
	recorder_free(r);
}
