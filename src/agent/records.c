/* SPDX-License-Identifier: MIT */
#include "agent/records.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text.h"
#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

enum {
	COST_TIMES = 100, /* a look that cost 30 ms of CPU is followed by 3 s of rest... */
	LOOK_REST_S = 15, /* ...but no more, so that the end of a run is seen in time */
	JUDGE_REST_S = 600,
	FAILURES_MOST = 5, /* then it is left alone: not ours, or gone */
	KEPT_S = 120,      /* what one that ended has told; its run is forgotten before */
	STACK_BYTES = 1 << 20,
	LEFT_OUT_MOST = 4096,
};

struct followed {
	struct record_news news; /* published: under the lock */
	struct record_cursor cursor;
	int64_t look_due_ns, judge_due_ns;
	int64_t ended_ns;
	unsigned failures;
	bool looked_at, forgotten;
};

/* Freed by whoever leaves last: a thread that hangs in a file is not waited for. */
struct records {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct records_options options;
	VEC(struct followed *) rows;
	uint64_t next_serial;
	struct map left_out; /* keys of those that were counted as dropped */
	double dropped;
	bool stop, running;
};

static void free_followed(struct followed *f)
{
	vec_done(&f->news.groups);
	free(f);
}

static void free_records(struct records *r)
{
	for (size_t i = 0; i < r->rows.n; i++)
		free_followed(r->rows.v[i]);
	vec_done(&r->rows);
	map_done(&r->left_out);
	pthread_cond_destroy(&r->wake);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* Copied, so that the file is read with no lock held. */
static int copy_news(struct record_news *dst, const struct record_news *src)
{
	*dst = *src;
	dst->groups.v = NULL;
	dst->groups.cap = 0;
	dst->groups.n = 0;
	if (!vec_reserve(&dst->groups, src->groups.n + 1))
		return -ENOMEM;
	if (src->groups.n)
		memcpy(dst->groups.v, src->groups.v, src->groups.n * sizeof(*src->groups.v));
	dst->groups.n = src->groups.n;
	return 0;
}

static bool recorder_lives(const struct record_news *n)
{
	return kill(n->recorder, 0) == 0 || errno != ESRCH;
}

static int64_t rest(int64_t least, int64_t cost, int64_t most_s)
{
	int64_t ns = cost * COST_TIMES > least ? cost * COST_TIMES : least;

	return ns > most_s * NS_PER_S && least < most_s * NS_PER_S ? most_s * NS_PER_S : ns;
}

/* Called with the lock held, which is let go meanwhile. */
static void look_at(struct records *r, struct followed *f)
{
	const struct records_options *o = &r->options;
	int64_t begin = clock_mono_ns(), cpu = clock_thread_cpu_ns();
	bool judge = o->judge_ns && begin >= f->judge_due_ns;
	struct record_cursor cursor = f->cursor;
	struct record_news news;
	int got;

	f->look_due_ns = begin + o->look_ns;
	if (copy_news(&news, &f->news) < 0)
		return; /* without memory: later */
	f->looked_at = true;
	pthread_mutex_unlock(&r->lock);
	cursor.judge_cpu_ns = 0;
	got = record_look(&news, &cursor, judge, o->judge_ns > 0);
	cpu = clock_thread_cpu_ns() - cpu - cursor.judge_cpu_ns;
	if (got == 0)
		f->failures = 0;
	/* A file that cannot be read and whose recorder has gone tells nothing any more. */
	if (got < 0 && (++f->failures >= FAILURES_MOST || !recorder_lives(&news)))
		news.ended = true;
	pthread_mutex_lock(&r->lock);
	f->looked_at = false;
	if (cursor.judge_cpu_ns)
		f->judge_due_ns = begin + rest(o->judge_ns, cursor.judge_cpu_ns, JUDGE_REST_S);
	f->look_due_ns = begin + rest(o->look_ns, cpu, LOOK_REST_S);
	f->cursor = cursor;
	vec_done(&f->news.groups);
	f->news = news;
	if (news.ended)
		f->ended_ns = clock_mono_ns();
}

static void sweep(struct records *r)
{
	int64_t now = clock_mono_ns();

	for (size_t i = 0; i < r->rows.n; i++) {
		struct followed *f = r->rows.v[i];

		if (f->ended_ns && now - f->ended_ns > KEPT_S * NS_PER_S)
			f->forgotten = true;
		if (!f->forgotten || f->looked_at)
			continue;
		free_followed(f);
		r->rows.v[i--] = r->rows.v[--r->rows.n];
	}
}

/* One that is due, NULL: none; *ret_next when the next one is. */
static struct followed *next_due(struct records *r, int64_t now, int64_t *ret_next)
{
	*ret_next = now + r->options.look_ns;
	for (size_t i = 0; i < r->rows.n; i++) {
		struct followed *f = r->rows.v[i];

		if (f->news.ended || f->forgotten)
			continue;
		if (f->look_due_ns <= now)
			return f;
		if (f->look_due_ns < *ret_next)
			*ret_next = f->look_due_ns;
	}
	return NULL;
}

static void *follow(void *arg)
{
	struct records *r = arg;

	pthread_mutex_lock(&r->lock);
	while (!r->stop) {
		int64_t next;
		struct followed *f = next_due(r, clock_mono_ns(), &next);
		struct timespec until;

		if (f) {
			look_at(r, f);
			continue;
		}
		sweep(r);
		until = (struct timespec){ .tv_sec = next / NS_PER_S, .tv_nsec = next % NS_PER_S };
		pthread_cond_timedwait(&r->wake, &r->lock, &until);
	}
	r->running = false;
	pthread_mutex_unlock(&r->lock);
	free_records(r);
	return NULL;
}

int records_open(const struct records_options *o, struct records **ret, struct err *e)
{
	struct records *r = calloc(1, sizeof(*r));
	pthread_condattr_t attr;
	int got;

	if (!r)
		return err_set(e, -ENOMEM, "out of memory");
	r->options = *o;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->wake, &attr);
	pthread_condattr_destroy(&attr);
	if (o->thread) {
		r->running = true;
		got = thread_start(NULL, STACK_BYTES, follow, r);
		if (got < 0) {
			free_records(r);
			return err_set(e, got, "cannot start a thread");
		}
	}
	*ret = r;
	return 0;
}

void records_close(struct records *r)
{
	bool running;

	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	running = r->running;
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	if (!running)
		free_records(r);
}

/* Of a folder that is asked for by another name than the kernel's own (a link) nothing is found. */
static bool is_below(const char *path, const char *folder)
{
	size_t n = folder ? strlen(folder) : 0;

	while (n > 1 && folder[n - 1] == '/')
		n--;
	return !folder || (strncmp(path, folder, n) == 0 && path[n] == '/');
}

/* Once for each: they are offered again and again. */
static void leave_out(struct records *r, pid_t recorder, const char *path)
{
	uint64_t key = map_mix((uint64_t)recorder);
	uint32_t known;

	for (const char *p = path; *p; p++)
		key = map_mix(key ^ (unsigned char)*p);
	if (map_get(&r->left_out, key, &known))
		return;
	if (r->left_out.n >= LEFT_OUT_MOST)
		map_clear(&r->left_out);
	if (map_put(&r->left_out, key, 1))
		r->dropped++;
}

bool records_offer(struct records *r, pid_t recorder, uid_t uid, const char *path, bool here)
{
	struct followed **slot, *f;
	size_t same = 0;
	bool ok = true;

	if (!is_below(path, r->options.folder))
		return true;
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->rows.n; i++) {
		if (r->rows.v[i]->news.recorder == recorder &&
		    strcmp(r->rows.v[i]->news.path, path) == 0)
			goto out;
		same += r->rows.v[i]->news.uid == uid;
	}
	slot = r->rows.n < RECORDS_MAX && same < view_share(uid, RECORDS_MAX) ? vec_push(&r->rows)
									      : NULL;
	f = slot ? calloc(1, sizeof(*f)) : NULL;
	if (slot && !f)
		r->rows.n--;
	ok = f != NULL;
	if (!f) {
		leave_out(r, recorder, path);
		goto out;
	}
	*slot = f;
	f->news.serial = ++r->next_serial;
	f->news.recorder = recorder;
	f->news.uid = uid;
	f->news.offered = true;
	f->news.here = here;
	text_copy(f->news.path, sizeof(f->news.path), path);
	pthread_cond_signal(&r->wake);
out:
	pthread_mutex_unlock(&r->lock);
	return ok;
}

double records_dropped(struct records *r)
{
	double dropped;

	pthread_mutex_lock(&r->lock);
	dropped = r->dropped;
	pthread_mutex_unlock(&r->lock);
	return dropped;
}

void records_forget(struct records *r, uint64_t serial)
{
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->rows.n; i++)
		if (r->rows.v[i]->news.serial == serial)
			r->rows.v[i]->forgotten = true;
	if (!r->running)
		sweep(r);
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
}

void records_each(struct records *r, void (*fn)(const struct record_news *n, void *arg), void *arg)
{
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->rows.n; i++)
		if (!r->rows.v[i]->forgotten)
			fn(&r->rows.v[i]->news, arg);
	pthread_mutex_unlock(&r->lock);
}

void records_look(struct records *r)
{
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->rows.n; i++)
		if (!r->rows.v[i]->news.ended && !r->rows.v[i]->forgotten)
			look_at(r, r->rows.v[i]);
	pthread_mutex_unlock(&r->lock);
}
