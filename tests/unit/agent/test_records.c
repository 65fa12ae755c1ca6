/* SPDX-License-Identifier: MIT
 *
 * Following a record while it is written: every step is counted, once, and the end is seen.
 */
#include "../unit.h"

#include "agent/records.h"
#include "base/clock.h"
#include "base/err.h"
#include "model/frame.h"
#include "record/writer.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define START (5000 * NS_PER_S)
#define TICK  (100 * NS_PER_MS)

struct set_up {
	char folder[200], path[256];
	struct run_info run;
	struct record_writer *writer;
	struct frame frame;
	int64_t t_ns;
	uint64_t number;
};

static void set_up(struct set_up *s)
{
	const char *top = getenv("TMPDIR");
	struct err e = { 0 };

	*s = (struct set_up){ .t_ns = START,
			      .run = { .id = "20261115-211209-4f3a",
				       .name = "small",
				       .started_mono_ns = START,
				       .started_wall_ns = 1700000000 * NS_PER_S,
				       .pid = 4000,
				       .state = RUN_GOING,
				       .rusage_cpu_ns = -1,
				       .rusage_maxrss_bytes = -1 } };
	snprintf(s->folder, sizeof(s->folder), "%s/spotter-agent-XXXXXX",
		 top && top[0] ? top : "/tmp");
	assert_non_null(mkdtemp(s->folder));
	snprintf(s->path, sizeof(s->path), "%s/run.spot", s->folder);
	assert_int_equal(record_create(s->path, &s->run, NULL, &s->writer, &e), 0);
}

static void tear_down(struct set_up *s)
{
	char name[300];
	static const char *const files[] = { "", "-wal", "-shm" };

	record_abandon(s->writer);
	frame_done(&s->frame);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", s->path, files[i]);
		unlink(name);
	}
	rmdir(s->folder);
}

/* A tick in which two processes have done this many steps of 10 ms each, 2 ms of which waited for data. */
static void steps(struct set_up *s, unsigned n)
{
	bool first = s->t_ns == START;

	s->t_ns += TICK;
	frame_begin(&s->frame, s->t_ns, s->run.started_wall_ns + (s->t_ns - START));
	for (uint32_t who = 0; who < 2; who++) {
		if (first)
			frame_life(&s->frame,
				   &(struct life){ .change = LIFE_BORN,
						   .id = 20 + who,
						   .kind = ENTITY_PROC,
						   .key = 4000 + who,
						   .start_ns = START },
				   "python3", "train.py");
		for (unsigned i = 0; i < n; i++) {
			struct frame_mark m = { .t_ns = s->t_ns - TICK + (i + 1) * 10 * NS_PER_MS,
						.entity = 20 + who,
						.rank = (int32_t)who };

			m.type = SAID_DATA_WAIT;
			m.value = 0.002;
			frame_mark(&s->frame, &m, NULL);
			m.type = SAID_STEP;
			m.number = s->number + i + 1;
			m.value = 1.0 / (double)m.number;
			frame_mark(&s->frame, &m, NULL);
		}
	}
	s->number += n;
	assert_int_equal(record_frame(s->writer, &s->frame), 0);
	assert_int_equal(record_flush(s->writer), 0);
}

static void every_step_once(void **state)
{
	struct record_news news = { .serial = 1 };
	struct record_cursor cursor = { 0 };
	struct set_up s;

	(void)state;
	set_up(&s);
	snprintf(news.path, sizeof(news.path), "%s", s.path);
	assert_int_equal(record_look(&news, &cursor, false, false), 0);
	assert_int_equal(news.groups.n, 0);
	assert_string_equal(news.id, "20261115-211209-4f3a");
	assert_int_equal(news.pid, 4000);
	for (unsigned i = 1; i <= 5; i++) {
		steps(&s, i);
		assert_int_equal(record_look(&news, &cursor, false, false), 0);
		/* and again: there is nothing new */
		assert_int_equal(record_look(&news, &cursor, false, false), 0);
		assert_int_equal(news.groups.n, 2);
		assert_int_equal(news.groups.v[0].steps.count, i * (i + 1) / 2);
	}
	assert_int_equal(news.groups.v[1].rank, 1);
	assert_int_equal(news.groups.v[1].pid, 4001);
	assert_true(near(news.groups.v[1].steps.loss, 1.0 / 15, 1e-9));
	assert_true(near(news.groups.v[1].steps.data_wait, 15 * 0.002, 1e-6));
	assert_true(near(news.groups.v[1].steps.last_s, 1700000000 + 0.45, 1e-9));
	assert_true(isnan(news.groups.v[1].steps.comm_wait));
	assert_false(news.ended);
	/* the last ones are written with the end */
	steps(&s, 4);
	s.run.state = RUN_ENDED;
	s.run.ended_mono_ns = s.t_ns;
	assert_int_equal(record_finish(s.writer, &s.run), 0);
	s.writer = NULL;
	assert_int_equal(record_look(&news, &cursor, false, false), 0);
	assert_int_equal(news.groups.v[0].steps.count, 19);
	assert_true(news.ended);
	vec_done(&news.groups);
	tear_down(&s);
}

static void take(const struct record_news *n, void *arg)
{
	struct record_news *ret = arg;

	ret->serial += n->serial;
	ret->pid = n->pid;
	ret->ended = n->ended;
}

/* Without a thread, as --once has it. */
static void a_few_of_them(void **state)
{
	struct records *r;
	struct err e = { 0 };
	struct record_news seen = { 0 };
	struct set_up s;

	(void)state;
	set_up(&s);
	steps(&s, 3);
	assert_int_equal(
	    records_open(&(struct records_options){ .look_ns = 1, .folder = s.folder }, &r, &e), 0);
	assert_true(records_offer(r, getpid(), s.path, true));
	assert_true(records_offer(r, getpid(), s.path, true));
	/* not in the folder that was asked for */
	assert_true(records_offer(r, getpid(), "/elsewhere/run.spot", true));
	records_look(r);
	records_each(r, take, &seen);
	assert_int_equal(seen.serial, 1);
	assert_int_equal(seen.pid, 4000);
	assert_false(seen.ended);
	records_forget(r, 1);
	seen = (struct record_news){ 0 };
	records_each(r, take, &seen);
	assert_int_equal(seen.serial, 0);
	records_close(r);
	tear_down(&s);
}

/* What cannot be read, of a recorder that is gone, is over. */
static void unreadable(void **state)
{
	struct records *r;
	struct err e = { 0 };
	struct record_news seen = { 0 };

	(void)state;
	assert_int_equal(records_open(&(struct records_options){ .look_ns = 1 }, &r, &e), 0);
	assert_true(records_offer(r, 0x3fffffff, "/nowhere/at/all.spot", true));
	records_look(r);
	records_each(r, take, &seen);
	assert_true(seen.ended);
	assert_int_equal(seen.pid, 0);
	records_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_step_once),
		cmocka_unit_test(a_few_of_them),
		cmocka_unit_test(unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
