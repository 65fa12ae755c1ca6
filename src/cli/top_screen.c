/* SPDX-License-Identifier: MIT */
#include "cli/top_screen.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/judge.h"
#include "cli/live.h"
#include "cli/nvml.h"
#include "record/reader.h"
#include "record/store.h"
#include "tui/tui.h"

#include <errno.h>
#include <limits.h>

/* How far back one can go: ten minutes of a job, five of the machine, at a tick a second. */
enum { POINTS_JOB = 600, POINTS_MACHINE = 300, STACKS_HZ = 50 };
/* Looking for hours must not be felt: what reading stacks may cost, of one core. */
static const double stacks_budget = 0.01;

/* One of the two is open. */
struct subject {
	struct tui_source source;
	struct live live;
	struct record *record;
};

static int live_more(struct tui_source *s)
{
	struct subject *x = s->arg;
	int r = live_tick(&x->live);

	if (r == -ESRCH) {
		s->live = false;
		s->ended = true;
		return 0;
	}
	if (x->live.pid)
		history_run(x->live.history)->level = sampler_level(x->live.sampler);
	return r;
}

static struct window live_all(struct tui_source *s)
{
	return live_window(&((struct subject *)s->arg)->live, 0);
}

static int record_more(struct tui_source *s)
{
	struct subject *x = s->arg;
	int r = record_refresh(x->record);

	if (record_run(x->record)->state != RUN_GOING) {
		s->live = false;
		s->ended = true;
	}
	return r;
}

static struct window record_all(struct tui_source *s)
{
	return record_window(((struct subject *)s->arg)->record, 0, 0);
}

static int open_live(struct subject *x, pid_t pid, const struct top_screen *o, struct err *e)
{
	struct live_options lo = { .pid = pid,
				   .nvml = nvml_path(o->nvml),
				   .hz = (double)NS_PER_S / (double)o->every_ns,
				   .stacks_hz = pid ? STACKS_HZ : 0,
				   .stacks_budget = stacks_budget,
				   .points = pid ? POINTS_JOB : POINTS_MACHINE };

	x->source = (struct tui_source){ .arg = x,
					 .job = pid != 0,
					 .live = true,
					 .can_open = pid == 0,
					 .every_ns = o->every_ns,
					 .tick = live_more,
					 .window = live_all };
	return live_open(&x->live, &lo, e);
}

static int open_record(struct subject *x, const char *path, const struct top_screen *o,
		       struct err *e)
{
	int r = record_open(path, &x->record, e);

	if (r < 0)
		return r;
	x->source = (struct tui_source){ .arg = x,
					 .job = true,
					 .replay = true,
					 .live = record_run(x->record)->state == RUN_GOING,
					 .every_ns = o->every_ns,
					 .tick = record_more,
					 .window = record_all };
	return 0;
}

/* A run that is called like the number of a process is meant before the process, as in `why`. */
static int open_word(struct subject *x, const struct top_screen *o, struct err *e)
{
	char path[PATH_MAX];
	struct err not_found = { 0 };
	int64_t pid;

	if (!o->word)
		return open_live(x, 0, o, e);
	if (store_find(o->word, path, sizeof(path), &not_found) == 0)
		return open_record(x, path, o, e);
	if (num_parse_i64(o->word, &pid) && pid > 0 && pid <= INT_MAX)
		return open_live(x, (pid_t)pid, o, e);
	*e = not_found;
	return e->code;
}

/* A process that is being recorded need not be read a second time, and its record knows its steps. */
static bool find_recording(pid_t pid, char *path, size_t size)
{
	struct store_list list = { 0 };
	struct err e = { 0 };
	bool found = false;

	if (store_list(&list, &e) < 0)
		return false;
	for (size_t i = list.rows.n; !found && i-- > 0;) {
		struct record *r;

		if (list.rows.v[i].problem[0] || list.rows.v[i].state != RUN_GOING ||
		    record_open(list.rows.v[i].path, &r, &e) < 0)
			continue;
		found = record_run(r)->pid == pid && record_run(r)->state == RUN_GOING &&
			text_copy(path, size, list.rows.v[i].path);
		record_close(r);
	}
	store_list_done(&list);
	return found;
}

static void close_subject(struct subject *x)
{
	if (x->record)
		record_close(x->record);
	else
		live_close(&x->live);
	*x = (struct subject){ .live = { .host = { .root = -1, .base = -1 } } };
}

/* The machine, a process chosen there, the machine again... */
static int walk(struct tui *t, struct subject *x, const struct top_screen *o, struct err *e)
{
	bool from_machine = !o->word;
	char path[PATH_MAX];

	for (;;) {
		struct tui_end end;
		int r = tui_watch(t, &x->source, &end);

		if (r < 0 || (!end.open_pid && !end.leave))
			return r;
		close_subject(x);
		if (end.open_pid && find_recording((pid_t)end.open_pid, path, sizeof(path)))
			r = open_record(x, path, o, e);
		else
			r = open_live(x, (pid_t)end.open_pid, o, e);
		if (r == -ESRCH && end.open_pid) { /* it has ended meanwhile */
			*e = (struct err){ 0 };
			close_subject(x);
			r = open_live(x, 0, o, e);
		}
		if (r < 0)
			return r;
		x->source.can_leave = from_machine && x->source.job;
	}
}

int top_screen(struct cli *cli, const struct top_screen *o)
{
	struct tui_options to = { .color = o->color, .ascii = o->ascii };
	struct subject x = { .live = { .host = { .root = -1, .base = -1 } } };
	struct err e = { 0 };
	struct tui *t = NULL;
	char why[80];
	int r = open_word(&x, o, &e);

	if (x.record)
		judge_say_remark(cli, o->word, x.record);
	if (r == 0)
		r = tui_open(&to, &t, &e);
	if (t) {
		r = walk(t, &x, o, &e);
		tui_close(t);
	}
	close_subject(&x);
	if (r == 0)
		return EXIT_OK;
	if (!e.code)
		err_set(&e, r, "cannot go on: %s", err_name(r, why, sizeof(why)));
	cli_fail(cli, &e);
	return !t && r == -ENOTSUP ? -1 : EXIT_FAILED;
}
