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

static inline void set_up(struct set_up *s)
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
