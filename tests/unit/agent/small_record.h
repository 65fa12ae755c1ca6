/* SPDX-License-Identifier: MIT
 *
 * A record that goes on, in a folder of its own.
 */
#ifndef SPOTTER_TEST_SMALL_RECORD_H
#define SPOTTER_TEST_SMALL_RECORD_H

#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/frame.h"
#include "record/writer.h"

#include <stdio.h>
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

static inline void set_up_as(struct set_up *s, const char *id, int64_t pid)
{
	const char *top = getenv("TMPDIR");
	struct err e = { 0 };

	*s = (struct set_up){ .t_ns = START,
			      .run = { .name = "small",
				       .started_mono_ns = START,
				       .started_wall_ns = 1700000000 * NS_PER_S,
				       .pid = pid,
				       .state = RUN_GOING,
				       .rusage_cpu_ns = -1,
				       .rusage_maxrss_bytes = -1 } };
	snprintf(s->run.id, sizeof(s->run.id), "%s", id);
	snprintf(s->folder, sizeof(s->folder), "%s/spotter-agent-XXXXXX",
		 top && top[0] ? top : "/tmp");
	assert_non_null(mkdtemp(s->folder));
	snprintf(s->path, sizeof(s->path), "%s/run.spot", s->folder);
	assert_int_equal(record_create(s->path, &s->run, NULL, &s->writer, &e), 0);
}

static inline void set_up(struct set_up *s)
{
	set_up_as(s, "20261115-211209-4f3a", 4000);
}

/* A tick in which two processes have done this many steps of 10 ms each, 2 ms of which waited for data. */
static inline void steps(struct set_up *s, unsigned n)
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

/* Its run ended, and so does it. */
static inline void finish(struct set_up *s)
{
	s->run.state = RUN_ENDED;
	s->run.ended_mono_ns = s->t_ns;
	assert_int_equal(record_finish(s->writer, &s->run), 0);
	s->writer = NULL;
}

static inline void tear_down(struct set_up *s)
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

#endif
