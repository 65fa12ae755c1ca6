/* SPDX-License-Identifier: MIT */
#include "web/serve_desk.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "base/thread.h"
#include "web/serve_make.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

/* How often what is looked at is looked for again, and how long making it must be made up for: 19 parts of
 * rest on one of work. Headlines of the list, which are made once, may take a quarter of a core. */
enum { EVERY_MS = 1000, REST = 19, SUMMARY_REST = 3 };
/* Many headlines are shown a few at a time. */
enum { SHOW_MS = 300 };
/* The program that is watched comes first: a third of the weight of others where cores are scarce. */
enum { NICENESS = 5 };
enum { CLOSE_S = 3 };
/* Stories of runs that nobody has open: somebody may go back to one. */
enum { KEPT = 12 };

/* All but `holds` and `used_ns` is written by the desk's thread; all is guarded by the lock, but for path
 * and stamp, which only that thread knows. */
struct item {
	char run[SERVE_ID_MOST + 1]; /* "" the list */
	bool there;
	unsigned holds;  /* by viewers and requests */
	int64_t used_ns; /* when one was last taken or left */
	int64_t next_ns; /* not to be made before */
	unsigned status;
	uint64_t made; /* how often it was looked for */
	uint64_t version;
	struct paper *paper;
	bool live;
	char why[200];
	char path[PATH_MAX];
	struct record_stamp stamp;
};

struct desk {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	bool stop, running;
	int event_fd;
	uint64_t last_version;
	struct item items[DESK_ITEMS];
	/* the desk's thread alone */
	struct shelf shelf;
	int64_t summary_ns; /* no headline before */
	int64_t shown_ns;   /* when the list last was */
	bool unshown;       /* a headline was made since */
	bool resting;       /* for the headline that was made */
};

static void give_back(struct paper *p)
{
	if (p && --p->users == 0)
		free(p);
}

static void say_new(struct desk *d)
{
	uint64_t one = 1;

	(void)!write(d->event_fd, &one, sizeof(one));
}

static struct paper *paper_make(const char *event, uint64_t version, const struct buf *json)
{
	auto_done(buf) struct buf head = { 0 };
	struct paper *p;

	buf_printf(&head, "id: %llu\nevent: %s\ndata: ", (unsigned long long)version, event);
	p = buf_ok(&head) && buf_ok(json) ? malloc(sizeof(*p) + head.len + json->len + 2) : NULL;
	if (!p)
		return NULL;
	p->users = 1;
	p->json = head.len;
	p->json_n = json->len;
	p->n = head.len + json->len + 2;
	memcpy(p->text, head.data, head.len);
	memcpy(p->text + head.len, buf_text(json), json->len);
	memcpy(p->text + head.len + json->len, "\n\n", 2);
	return p;
}

/* What was made takes the place of what was there; unless it is the same. */
static void publish(struct desk *d, struct item *it, int error, bool live, const struct buf *json,
		    const char *why)
{
	const struct paper *old = it->paper;
	unsigned status = error == 0 ? 200 : error == -ENOENT ? 404 : 500;
	char words[sizeof(it->why)];
	struct paper *p;

	text_safe_copy(words, sizeof(words), why);
	if (error < 0 && it->status == status && strcmp(it->why, words) == 0)
		return;
	if (error == 0 && old && old->json_n == json->len && it->live == live &&
	    memcmp(old->text + old->json, buf_text(json), json->len) == 0)
		return;
	p = error == 0 ? paper_make(it->run[0] ? "run" : "runs", d->last_version + 1, json) : NULL;
	give_back(it->paper);
	it->paper = p;
	it->version = ++d->last_version;
	it->live = p && live;
	it->status = error == 0 && !p ? 500 : status;
	text_copy(it->why, sizeof(it->why), error == 0 && !p ? "out of memory" : words);
}

/* The desk's thread makes one item: without the lock, which it has before and behind. */
static void make_run(struct desk *d, struct item *it)
{
	auto_done(buf) struct buf json = { 0 };
	struct record_stamp stamp;
	struct err e = { 0 };
	bool live = false, known = it->status != 0, was_live = it->live;
	int r = 0;

	pthread_mutex_unlock(&d->lock);
	if (!it->path[0] || !record_stamp_of(it->path, &stamp)) {
		it->path[0] = '\0';
		r = serve_find(it->run, it->path, sizeof(it->path), &e);
		known = false;
		if (r == 0)
			(void)record_stamp_of(it->path, &stamp);
	}
	/* Nothing was written to it, and nobody does. */
	known = r == 0 && known && !was_live && record_stamp_same(&stamp, &it->stamp);
	if (r == 0 && !known) {
		r = serve_story(it->path, &live, &json, &e);
		/* The first reader may have closed what its recorder could not. */
		(void)record_stamp_of(it->path, &stamp);
	}
	pthread_mutex_lock(&d->lock);
	if (known)
		return;
	if (r == 0)
		it->stamp = stamp;
	else
		it->path[0] = '\0';
	publish(d, it, r, live, &json, e.text);
}

/* The list, and then one headline after the other. */
static void make_list(struct desk *d, struct item *it, int64_t now)
{
	auto_done(buf) struct buf json = { 0 };
	struct err e = { 0 };
	int r;

	pthread_mutex_unlock(&d->lock);
	r = shelf_read(&d->shelf, &e);
	if (r == 0)
		shelf_json(&d->shelf, &json);
	pthread_mutex_lock(&d->lock);
	d->shown_ns = now;
	d->unshown = false;
	/* There may be new runs in it. */
	if (!d->resting)
		d->summary_ns = now;
	publish(d, it, r, true, &json, e.text);
}

static void make_headline(struct desk *d, struct item *list)
{
	auto_done(buf) struct buf json = { 0 };
	int64_t begin = clock_mono_ns(), used = clock_thread_cpu_ns(), next;
	bool made, show;

	pthread_mutex_unlock(&d->lock);
	made = shelf_summarise(&d->shelf, begin, &next);
	d->unshown |= made;
	show = d->unshown && (!made || begin - d->shown_ns > SHOW_MS * NS_PER_MS);
	if (show)
		shelf_json(&d->shelf, &json);
	used = clock_thread_cpu_ns() - used;
	pthread_mutex_lock(&d->lock);
	d->resting = made;
	d->summary_ns = made ? clock_mono_ns() + SUMMARY_REST * used : next;
	if (!show)
		return;
	d->unshown = false;
	d->shown_ns = begin;
	publish(d, list, 0, true, &json, "");
	say_new(d);
}

static struct item *first_due(struct desk *d)
{
	struct item *best = NULL;

	for (size_t i = 0; i < DESK_ITEMS; i++) {
		struct item *it = &d->items[i];

		if (it->there && it->holds && (!best || it->next_ns < best->next_ns))
			best = it;
	}
	return best;
}

static void make_item(struct desk *d, struct item *it, int64_t now)
{
	int64_t used = clock_thread_cpu_ns(), rest;

	it->holds++; /* it stays where it is while it is made */
	if (it->run[0])
		make_run(d, it);
	else
		make_list(d, it, now);
	it->holds--;
	used = clock_thread_cpu_ns() - used;
	rest = used * REST > EVERY_MS * NS_PER_MS ? used * REST : EVERY_MS * NS_PER_MS;
	it->next_ns = clock_mono_ns() + rest;
	it->made++;
	say_new(d);
}

static void wait_until(struct desk *d, int64_t when_ns)
{
	struct timespec t = { .tv_sec = when_ns / NS_PER_S, .tv_nsec = when_ns % NS_PER_S };

	if (when_ns == INT64_MAX)
		(void)pthread_cond_wait(&d->wake, &d->lock);
	else
		(void)pthread_cond_timedwait(&d->wake, &d->lock, &t);
}

static void *desk_main(void *arg)
{
	struct desk *d = arg;
	struct item *list = &d->items[0];

	/* Of this thread only: a peculiarity of Linux. */
	(void)setpriority(PRIO_PROCESS, 0, NICENESS);
	pthread_mutex_lock(&d->lock);
	while (!d->stop) {
		int64_t now = clock_mono_ns(), when = INT64_MAX;
		struct item *it = first_due(d);

		if (it && it->next_ns <= now) {
			make_item(d, it, now);
			continue;
		}
		when = it ? it->next_ns : INT64_MAX;
		if (list->holds && list->status == 200 && d->summary_ns <= now) {
			make_headline(d, list);
			continue;
		}
		if (list->holds && list->status == 200 && d->summary_ns < when)
			when = d->summary_ns;
		wait_until(d, when);
	}
	d->running = false;
	pthread_cond_broadcast(&d->wake);
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

int desk_open(struct desk **ret, struct err *e)
{
	struct desk *d = calloc(1, sizeof(*d));
	pthread_condattr_t monotonic;
	char why[80];
	int r;

	if (!d)
		return err_set(e, -ENOMEM, "out of memory");
	d->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = d->event_fd < 0 ? -errno : 0;
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&d->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	/* A browser may still know a number of a server that was here before. */
	d->last_version = (uint64_t)(clock_wall_ns() / NS_PER_MS);
	d->items[0].there = true;
	d->running = r == 0;
	if (r == 0)
		r = thread_start(&d->thread, 0, desk_main, d);
	if (r < 0) {
		if (d->event_fd >= 0)
			close(d->event_fd);
		free(d);
		return err_set(e, r, "cannot start: %s", err_name(r, why, sizeof(why)));
	}
	*ret = d;
	return 0;
}

void desk_close(struct desk *d)
{
	int64_t end = clock_mono_ns() + CLOSE_S * NS_PER_S;
	bool running;

	pthread_mutex_lock(&d->lock);
	d->stop = true;
	pthread_cond_broadcast(&d->wake);
	while (d->running && clock_mono_ns() < end)
		wait_until(d, end);
	running = d->running;
	pthread_mutex_unlock(&d->lock);
	/* Within a record on storage that hangs: the process ends without it. */
	if (running)
		return;
	pthread_join(d->thread, NULL);
	for (size_t i = 0; i < DESK_ITEMS; i++)
		give_back(d->items[i].paper);
	shelf_done(&d->shelf);
	close(d->event_fd);
	pthread_cond_destroy(&d->wake);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

int desk_fd(const struct desk *d)
{
	return d->event_fd;
}

void desk_heard(struct desk *d)
{
	uint64_t n;

	(void)!read(d->event_fd, &n, sizeof(n));
}

/* The one of this run, else one that is free (of those that nobody looks at, a few are kept), else the one that was not looked at for longest. */
static struct item *item_for(struct desk *d, const char *run)
{
	struct item *oldest = NULL, *free_one = NULL;
	size_t kept = 0;

	if (!*run)
		return &d->items[0];
	for (size_t i = 1; i < DESK_ITEMS; i++)
		if (d->items[i].there && strcmp(d->items[i].run, run) == 0)
			return &d->items[i];
	for (size_t i = 1; i < DESK_ITEMS; i++) {
		struct item *it = &d->items[i];

		if (!it->there && !free_one)
			free_one = it;
		if (!it->there || it->holds)
			continue;
		kept++;
		if (!oldest || it->used_ns < oldest->used_ns)
			oldest = it;
	}
	return free_one && kept < KEPT ? free_one : oldest;
}

int desk_take(struct desk *d, const char *run)
{
	struct item *it;
	int at = -EBUSY;

	pthread_mutex_lock(&d->lock);
	it = item_for(d, run);
	if (it) {
		if (!it->there || strcmp(it->run, run) != 0) {
			give_back(it->paper);
			memset(it, 0, sizeof(*it));
			text_copy(it->run, sizeof(it->run), run);
			it->there = true;
		}
		it->holds++;
		it->used_ns = clock_mono_ns();
		at = (int)(it - d->items);
		pthread_cond_broadcast(&d->wake);
	}
	pthread_mutex_unlock(&d->lock);
	return at;
}

void desk_leave(struct desk *d, int item)
{
	pthread_mutex_lock(&d->lock);
	d->items[item].holds--;
	d->items[item].used_ns = clock_mono_ns();
	pthread_mutex_unlock(&d->lock);
}

void desk_look(struct desk *d, int item, struct desk_view *ret)
{
	const struct item *it = &d->items[item];

	pthread_mutex_lock(&d->lock);
	*ret = (struct desk_view){ .status = it->status,
				   .version = it->version,
				   .paper = it->paper,
				   .live = it->live,
				   .made = it->made,
				   .fresh = it->status && clock_mono_ns() < it->next_ns };
	text_copy(ret->why, sizeof(ret->why), it->why);
	if (ret->paper)
		ret->paper->users++;
	pthread_mutex_unlock(&d->lock);
}

void desk_give_back(struct desk *d, struct paper *p)
{
	pthread_mutex_lock(&d->lock);
	give_back(p);
	pthread_mutex_unlock(&d->lock);
}
