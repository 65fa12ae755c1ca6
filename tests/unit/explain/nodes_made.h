/* SPDX-License-Identifier: MIT
 *
 * Records of one training on four machines with two ranks each, from scenarios: the same numbers of
 * processes on each, clocks that differ, and one rank that is late.
 */
#ifndef SPOTTER_TESTS_NODES_MADE_H
#define SPOTTER_TESTS_NODES_MADE_H

#include "scenario.h"

#include "base/buf.h"
#include "base/err.h"
#include "record/writer.h"

#include <sqlite3.h>
#include <stdlib.h>

enum { NODES = 4, RANKS_EACH = 2 };

/* What one rank does with its time. */
enum rank_does { RANK_FINE, RANK_LATE_DATA, RANK_SLOW /* on a GPU that gets hot */ };

/* Wall clocks against the first machine's, in seconds. */
static const double node_clock[NODES] = { 0, 1.203, -40, 0.004 };

static void put_rank(struct buf *text, unsigned local, int rank, enum rank_does does)
{
	unsigned thread = 300 + local, process = 200 + local;
	double cpu = does == RANK_SLOW ? 36 : 24;

	buf_printf(text, "thread.cpu@%u 0 %g\nthread.run_delay@%u 0 0.1\nproc.cpu@%u 0 %g\n",
		   thread, cpu, thread, process, cpu);
	buf_printf(text, "does %u 4 running 0.60\n", thread);
	if (does == RANK_SLOW)
		buf_printf(text, "does %u 72 running 0.30\n", thread);
	buf_printf(text, "does %u 6 poll %g on pipe\n", thread,
		   does == RANK_LATE_DATA ? 0.35 : 0.05);
	buf_printf(text, "does %u 70 socket %g\n", thread, does == RANK_FINE ? 0.35 : 0.05);
	buf_printf(text, "steps 90 every 0.4 from 2 of %u rank %d wait %g source torch\n", process,
		   rank, does == RANK_LATE_DATA ? 0.14 : 0.02);
}

static void play_frame(const struct frame *f, void *arg)
{
	if (record_frame(arg, f) < 0)
		fail();
}

/* As if it were of another boot: made in one process they all are of this one. */
static void set_boot(const char *path, unsigned node)
{
	char sql[120];
	sqlite3 *db = NULL;

	snprintf(sql, sizeof(sql), "UPDATE run SET boot_id = 'boot-%u', recorder_namespace = %u",
		 node, 4026531836u);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* The record of one machine; `who` does it, the other ranks are fine. */
static void make_node(const char *path, const char *scenarios, unsigned node, int who,
		      enum rank_does does)
{
	struct record_writer *writer = NULL;
	struct scenario s = { 0 };
	struct buf text = { 0 };
	struct err e = { 0 };

	buf_str(&text, "run 40\nexit 0\ninclude ranks-2.inc\n");
	buf_printf(&text, "job.cpu 0 %g\ncpu.user 1000 1048\n",
		   does == RANK_SLOW && who / RANKS_EACH == (int)node ? 60.1 : 48.1);
	buf_printf(&text,
		   "gpu 50 0 H100\ngpu.busy@50 0.9\ngpu.processes@50 1\n"
		   "gpuproc 60 50 1000 python3\nevent note 200 12.5 of machine %u\n",
		   node);
	if (does == RANK_SLOW && who / RANKS_EACH == (int)node)
		buf_str(&text, "gpu.clock_sm@50 0:1755e6 9.9:1755e6 10:510e6 40:510e6\n"
			       "gpu.clock_sm_max@50 1980e6\ngpu.temperature@50 0:60 10:91 40:92\n"
			       "gpu.slow.heat@50 0:0 9.9:0 10:1 40:1\ngpu.slow.heat_hw@50 0\n"
			       "gpu.slow.brake@50 0\ngpu.slow.hw@50 0\ngpu.slow.power@50 0\n");
	for (unsigned i = 0; i < RANKS_EACH; i++) {
		int rank = (int)(node * RANKS_EACH + i);

		put_rank(&text, i, rank, rank == who ? does : RANK_FINE);
	}
	assert_true(buf_ok(&text));
	snprintf(s.path, sizeof(s.path), "%s/made.scn", scenarios);
	scenario_parse(&s, buf_text(&text));
	snprintf(s.run.id, sizeof(s.run.id), "20260101-12000%u-abcd", node);
	snprintf(s.run.machine.hostname, sizeof(s.run.machine.hostname), "node%u", node);
	s.run.started_wall_ns += (int64_t)(node_clock[node] * 1e9);
	s.run.started_mono_ns += node * 7777777777ll; /* each boots when it likes */
	s.run.ended_mono_ns += node * 7777777777ll;
	if (record_create(path, &s.run, &(struct record_options){ 0 }, &writer, &e) < 0)
		fail_msg("%s", e.text);
	scenario_each(&s, M_NONE, 0, play_frame, writer);
	assert_int_equal(record_finish(writer, &s.run), 0);
	set_boot(path, node);
	buf_done(&text);
	scenario_done(&s);
}

static void make_nodes(const char *folder, const char *scenarios, int who, enum rank_does does)
{
	char path[512];

	for (unsigned i = 0; i < NODES; i++) {
		snprintf(path, sizeof(path), "%s/node%u.spot", folder, i);
		make_node(path, scenarios, i, who, does);
	}
}

#endif
