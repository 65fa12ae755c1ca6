/* SPDX-License-Identifier: MIT */
#include "cli/run_push.h"

#include "agent/run_view.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	EVERY_S = 5,
	JUDGE_S = 60, /* between two verdicts */
	REST = 20,    /* times the CPU time of a look: a twentieth of a core at most */
	NICENESS = 5, /* of the thread that looks */
	ENVIRONMENT_MAX = 1 << 20,
};

struct run_push {
	struct push *push;
	/* The thread's own. */
	struct run_view view;
	int64_t every_ns, judged_ns;
	char from[PATH_MAX]; /* the record: path, as of the last wait */

	pthread_mutex_t lock;
	pthread_cond_t news;
	char path[PATH_MAX];
	bool held, ending, ended;
	unsigned owners; /* the thread, and who started it */
};

static void run_push_free(struct run_push *p)
{
	run_view_done(&p->view);
	pthread_cond_destroy(&p->news);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* One owner less; the lock is held, and is not any more. */
static void leave(struct run_push *p)
{
	bool last = --p->owners == 0;

	pthread_mutex_unlock(&p->lock);
	if (last)
		run_push_free(p);
}

static void look(struct run_push *p, bool last)
{
	int64_t now = clock_mono_ns();
	bool judge = last || now - p->judged_ns >= JUDGE_S * NS_PER_S;

	if (judge)
		p->judged_ns = now;
	if (run_view_look(&p->view, p->from, judge) < 0)
		return; /* the file is not there yet; what was told before is old */
	(void)run_view_each(&p->view, push_take, p->push);
	push_flush(p->push);
}

/* True at the end of the run. */
static bool wait_due(struct run_push *p, int64_t until_ns)
{
	struct timespec until = { .tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S };
	bool ending;

	pthread_mutex_lock(&p->lock);
	while (!p->ending) {
		if (p->held)
			pthread_cond_wait(&p->news, &p->lock);
		else if (pthread_cond_timedwait(&p->news, &p->lock, &until) == ETIMEDOUT &&
			 !p->held)
			break;
	}
	ending = p->ending;
	text_copy(p->from, sizeof(p->from), p->path);
	pthread_mutex_unlock(&p->lock);
	return ending;
}

static void *push_main(void *arg)
{
	struct run_push *p = arg;
	int64_t due = clock_mono_ns() + p->every_ns;

	/* Of this thread only: a peculiarity of Linux. */
	(void)setpriority(PRIO_PROCESS, 0, NICENESS);
	while (!wait_due(p, due)) {
		int64_t cpu = clock_thread_cpu_ns(), now;

		look(p, false);
		cpu = clock_thread_cpu_ns() - cpu;
		now = clock_mono_ns();
		due += p->every_ns;
		if (due < now) /* the disk took its time */
			due = now + p->every_ns;
		if (due < now + REST * cpu)
			due = now + REST * cpu;
	}
	look(p, true);
	pthread_mutex_lock(&p->lock);
	p->ended = true;
	pthread_cond_broadcast(&p->news);
	leave(p);
	return NULL;
}

/* Whose rank this is of which run: what the launcher told us is what it told the program. */
static void read_environment(struct job_env *ret)
{
	auto_done(buf) struct buf text = { .max = ENVIRONMENT_MAX };

	for (char **e = environ; e && *e; e++)
		buf_put(&text, *e, strlen(*e) + 1);
	job_env_none(ret);
	if (buf_ok(&text))
		job_env_read(buf_text(&text), text.len, ret);
}

static struct run_push *run_push_new(const struct pushing_options *o, const struct recording *rec)
{
	struct run_push *p = calloc(1, sizeof(*p));
	pthread_condattr_t monotonic;

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&p->news, &monotonic);
	pthread_condattr_destroy(&monotonic);
	p->every_ns = o->every_ns ? o->every_ns : EVERY_S * NS_PER_S;
	p->judged_ns = clock_mono_ns();
	p->owners = 2;
	text_copy(p->path, sizeof(p->path), rec->place.path);
	read_environment(&p->view.env);
	return p;
}

struct run_push *run_push_start(const struct pushing_options *o, const struct recording *rec,
				struct err *e)
{
	struct run_push *p;
	struct push_resource who = { .host = rec->run.machine.hostname, .run_id = rec->run.id };
	int error;

	if (!pushing_wanted(o) || !rec->recorder)
		return NULL;
	p = run_push_new(o, rec);
	if (!p) {
		err_set(e, -ENOMEM, "out of memory");
		return NULL;
	}
	if (p->view.env.source != SOURCE_NONE)
		who.run_id = p->view.env.run_id;
	error = pushing_open(o, &who, &p->push, e);
	if (!error)
		error = thread_start(NULL, 0, push_main, p);
	if (error < 0) {
		if (p->push)
			push_close(p->push, 0, NULL);
		run_push_free(p);
		err_set(e, error, "cannot start a thread");
		return NULL;
	}
	return p;
}

void run_push_hold(struct run_push *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->held = true;
	pthread_cond_broadcast(&p->news);
	pthread_mutex_unlock(&p->lock);
}

static void say_end(const struct push_stats *s, struct buf *words)
{
	uint64_t lost = 0;
	const char *why;

	for (size_t i = 0; i < PUSH_DROPS; i++)
		lost += s->dropped_samples[i];
	if (!lost)
		return;
	buf_printf(words, "spotter: %llu of %llu samples were not pushed", (unsigned long long)lost,
		   (unsigned long long)s->taken_samples);
	/* What was taken later does not explain what is missing. */
	why = s->problem[0] ? s->problem : s->refused;
	if (why[0])
		buf_printf(words, ": %s", why);
	buf_str(words, "\n");
}

void run_push_stop(struct run_push *p, const struct recording *rec, int64_t bound_ns,
		   struct buf *words)
{
	struct push_stats stats[PUSH_ADDRESSES_MAX] = { 0 };
	int64_t deadline = clock_mono_ns() + bound_ns, left;
	struct timespec until = { .tv_sec = deadline / NS_PER_S, .tv_nsec = deadline % NS_PER_S };
	bool ended;

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	if (rec->place.final[0])
		text_copy(p->path, sizeof(p->path), rec->place.final);
	p->ending = true;
	pthread_cond_broadcast(&p->news);
	while (!p->ended && pthread_cond_timedwait(&p->news, &p->lock, &until) == 0)
		;
	ended = p->ended;
	if (ended) { /* nobody else has it any more */
		left = deadline - clock_mono_ns();
		push_close(p->push, left > 0 ? left : 0, stats);
		say_end(&stats[0], words);
	} else {
		buf_str(words, "spotter: the end of the run was not pushed: the record is still "
			       "being read\n");
	}
	leave(p);
}
