/* SPDX-License-Identifier: MIT
 *
 * The agent over a captured machine (tests/roots/agent-jobs): what it finds, and that its counters only grow.
 */
#include "../unit.h"

#include "agent/agent.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "model/frame.h"

#include <math.h>
#include <stdlib.h>

static struct agent *open_root(const char *root)
{
	struct err e = { 0 };
	struct agent *a = NULL;

	if (agent_open(&(struct agent_options){ .root = root, .once = true }, &a, &e) < 0)
		fail_msg("%s: %s", root, e.text);
	return a;
}

/* The number behind this name and these labels; NAN: no such line. */
static double value(struct agent *a, const char *series)
{
	auto_done(buf) struct buf out = { 0 };
	const char *at;

	agent_expose(a, EXPOSITION_TEXT, &out);
	at = strstr(buf_text(&out), series);
	while (at && at > out.data && at[-1] != '\n')
		at = strstr(at + 1, series);
	return at ? strtod(at + strlen(series), NULL) : NAN;
}

#define RANK0 "{node=\"n12\",run_id=\"abc\",rank=\"0\""
#define CPU   "spotter_process_cpu_seconds_total"
#define NEAR(series, v)                                                          \
	do {                                                                     \
		double got_ = value(a, series);                                  \
		if (!near(got_, v, 1e-9))                                        \
			fail_msg("%s is %g, not %g", series, got_, (double)(v)); \
	} while (0)

static void finds_jobs(void **state)
{
	struct agent *a = open_root(ROOTS "/agent-jobs");

	(void)state;
	assert_int_equal(agent_tick(a), 0);
	NEAR("spotter_agent_runs{node=\"n12\"}", 2);
	NEAR("spotter_run_info{node=\"n12\",run_id=\"abc\",name=\"train.py\",source="
	     "\"torchelastic\","
	     "framework=\"torch\",world_size=\"2\"}",
	     1);
	NEAR("spotter_run_info{node=\"n12\",run_id=\"77.0\",name=\"python3\",source=\"slurm\","
	     "world_size=\"8\"}",
	     1);
	NEAR("spotter_rank_info{node=\"n12\",run_id=\"77.0\",rank=\"5\",local_rank=\"1\"}", 1);
	/* its first process started 11 s after boot */
	NEAR("spotter_run_start_time_seconds{node=\"n12\",run_id=\"abc\"}", 1699999011);
	NEAR(CPU RANK0 ",role=\"trainer\",mode=\"user\"}", 10);
	NEAR(CPU RANK0 ",role=\"dataloader\",mode=\"user\"}", 4);
	NEAR("spotter_rank_processes" RANK0 ",role=\"dataloader\"}", 1);
	NEAR("spotter_process_read_bytes_total" RANK0 ",role=\"trainer\"}", 4096);
	agent_close(a);
}

static void counters_grow(void **state)
{
	struct agent *a = open_root(ROOTS "/agent-jobs");

	(void)state;
	assert_int_equal(agent_tick(a), 0);
	assert_true(agent_advance(a));
	assert_int_equal(agent_tick(a), 0);
	NEAR(CPU RANK0 ",role=\"trainer\",mode=\"user\"}", 20);
	/* a worker ended and another one came */
	NEAR(CPU RANK0 ",role=\"dataloader\",mode=\"user\"}", 4.6);
	NEAR("spotter_rank_processes" RANK0 ",role=\"dataloader\"}", 1);
	/* ended: for a minute its last figures stay */
	assert_true(agent_advance(a));
	assert_int_equal(agent_tick(a), 0);
	NEAR("spotter_run_up{node=\"n12\",run_id=\"abc\"}", 0);
	NEAR("spotter_run_up{node=\"n12\",run_id=\"77.0\"}", 1);
	NEAR("spotter_agent_runs{node=\"n12\"}", 1);
	NEAR(CPU RANK0 ",role=\"trainer\",mode=\"user\"}", 20);
	assert_true(isnan(value(a, "spotter_process_resident_memory_bytes" RANK0)));
	/* then it is as if it had never been */
	assert_true(agent_advance(a));
	assert_int_equal(agent_tick(a), 0);
	assert_true(isnan(value(a, "spotter_run_up{node=\"n12\",run_id=\"abc\"}")));
	assert_true(isnan(value(a, CPU RANK0)));
	NEAR("spotter_run_up{node=\"n12\",run_id=\"77.0\"}", 1);
	assert_false(agent_advance(a));
	agent_close(a);
}

static void names_in_view(const struct agent_view *v, void *arg)
{
	*(size_t *)arg = v->ranks.n;
	for (size_t i = 0; i < v->values.n; i++)
		assert_true(isfinite(v->values.v[i].value));
}

/* What any machine has, and nothing of what this one lacks. */
static void plain_machine(void **state)
{
	struct agent *a = open_root(ROOTS "/host-plain");
	size_t ranks = 99;

	(void)state;
	assert_int_equal(agent_tick(a), 0);
	agent_with_view(a, names_in_view, &ranks);
	assert_int_equal(ranks, 0);
	assert_false(isnan(value(a, "spotter_node_memory_total_bytes")));
	assert_false(isnan(value(a, "spotter_node_cpu_seconds_total")));
	assert_false(isnan(value(a, "spotter_node_pressure_io_waiting_seconds_total")));
	assert_true(isnan(value(a, "spotter_gpu_info")));
	assert_true(isnan(value(a, "spotter_self_cpu_seconds_total")));
	agent_close(a);
}

/* Frames of somewhere else, and processes of the captured machine: nothing of it is measured. */
static void replays(void **state)
{
	struct agent_options o = {
		.root = ROOTS "/agent-jobs", .node = "n7", .replay = true, .once = true
	};
	struct frame f = { 0 };
	struct err e = { 0 };
	struct agent *a = NULL;

	(void)state;
	assert_int_equal(agent_open(&o, &a, &e), 0);
	frame_begin(&f, 5000 * NS_PER_S, 1700000100 * NS_PER_S);
	frame_life(&f, &(struct life){ .change = LIFE_BORN, .id = ID_HOST, .kind = ENTITY_HOST },
		   "n7", "");
	frame_life(&f,
		   &(struct life){ .change = LIFE_BORN,
				   .id = 20,
				   .kind = ENTITY_PROC,
				   .key = 102,
				   .start_ns = 4990 * NS_PER_S },
		   "python3", "train.py");
	frame_put(&f, M_PSI_IO_SOME, ID_HOST, 250000);
	assert_int_equal(agent_replay(a, &f), 0);
	NEAR("spotter_agent_runs{node=\"n7\"}", 1);
	NEAR("spotter_rank_info{node=\"n7\",run_id=\"abc\",rank=\"1\",local_rank=\"1\"}", 1);
	NEAR("spotter_run_start_time_seconds{node=\"n7\",run_id=\"abc\"}", 1700000090);
	NEAR("spotter_node_pressure_io_waiting_seconds_total{node=\"n7\"}", 0.25);
	assert_true(isnan(value(a, "spotter_node_memory_total_bytes")));
	agent_close(a);
	frame_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_jobs),
		cmocka_unit_test(counters_grow),
		cmocka_unit_test(plain_machine),
		cmocka_unit_test(replays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
