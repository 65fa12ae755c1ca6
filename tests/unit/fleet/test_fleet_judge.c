/* SPDX-License-Identifier: MIT
 *
 * Hand-made fleets: who is named, who is not, and what it costs.
 */
#include "../unit.h"

#include "fleet/answer.h"
#include "fleet/judge.h"
#include "fleet/query.h"

#include <math.h>
#include <stdlib.h>

#define NOW    1763280000.0
#define WINDOW 600.0
#define STEPS  1000.0

static const struct query *asking(enum query_of of, size_t offset)
{
	for (size_t i = 0; i < queries_n; i++)
		if (queries[i].of == of && queries[i].offset == offset)
			return &queries[i];
	fail();
	return NULL;
}

static void give(struct fleet *f, const struct query *q, struct fleet_sample s)
{
	for (int i = 0; i < FLEET_LABELS; i++)
		if (!s.labels[i])
			s.labels[i] = "";
	if (isfinite(s.value)) /* as answer.c has it */
		assert_int_equal(fleet_take(f, q, &s), 0);
}

#define PUT(f, OF, type, field, number, ...)              \
	give(f, asking(OF, offsetof(struct type, field)), \
	     (struct fleet_sample){ .value = number, .labels = { __VA_ARGS__ } })

static void begin(struct fleet *f)
{
	fleet_begin(f, WINDOW);
	PUT(f, OF_NOW, fleet, now_s, NOW, [LABEL_NODE] = "");
}

/* A rank whose step is `own` and then `comm` seconds, with a GPU; NAN: not known. */
static void rank(struct fleet *f, const char *run, const char *node, int number, double own,
		 double comm)
{
	char r[16], gpu[16];

	snprintf(r, sizeof(r), "%d", number);
	snprintf(gpu, sizeof(gpu), "%d", number % 8);
#define LABELS [LABEL_RUN] = run, [LABEL_NODE] = node, [LABEL_RANK] = r
	PUT(f, OF_PLACE, fleet_place, up, 1, LABELS);
	PUT(f, OF_PLACE, fleet_place, here, 1, LABELS);
	PUT(f, OF_RANK, fleet_rank, info, 1, LABELS);
	PUT(f, OF_RANK, fleet_rank, steps, STEPS, LABELS);
	PUT(f, OF_RANK, fleet_rank, steps_timed, STEPS, LABELS);
	PUT(f, OF_RANK, fleet_rank, step_seconds, STEPS * (own + comm), LABELS);
	PUT(f, OF_RANK, fleet_rank, own, STEPS * own, LABELS);
	PUT(f, OF_RANK, fleet_rank, comm, STEPS * comm, LABELS);
	PUT(f, OF_RANK, fleet_rank, last_step_s, NOW - 0.2, LABELS);
	PUT(f, OF_HOLD, fleet_hold, info, 1, LABELS, [LABEL_GPU] = gpu);
	PUT(f, OF_RUN, fleet_run, moves, 3, LABELS);
#undef LABELS
}

static void judge(struct fleet *f, struct fleet_judged *j)
{
	assert_int_equal(fleet_order(f), 0);
	assert_int_equal(fleet_judge(f, j), 0);
}

static void end(struct fleet *f, struct fleet_judged *j)
{
	fleet_judged_done(j);
	fleet_done(f);
}

/* Eight ranks of 0.1 s, a percent apart. */
static void eight(struct fleet *f, double slow5, double slow6)
{
	for (int i = 0; i < 8; i++) {
		double own = 0.1 + 0.001 * ((i * 5) % 3 - 1);

		own = i == 5 ? slow5 : i == 6 ? slow6 : own;
		rank(f, "7", i < 4 ? "a" : "b", i, own, 0.17 - own);
	}
}

static void nobody(void **state)
{
	struct fleet_judged j;
	struct fleet f;

	(void)state;
	begin(&f);
	eight(&f, 0.101, 0.1);
	judge(&f, &j);
	assert_int_equal(j.runs.n, 1);
	assert_int_equal(j.runs.v[0].ranks, 8);
	assert_int_equal(j.runs.v[0].known, 8);
	assert_int_equal(j.runs.v[0].nodes, 2);
	assert_int_equal(j.runs.v[0].gpus, 8);
	assert_int_equal(j.suspects.n, 0);
	assert_true(j.runs.v[0].lost_share == 0);
	assert_int_equal(j.runs.v[0].state, FLEET_RUNNING);
	/* Everybody waits 40 % of the time, and nobody is to blame: that is said. */
	assert_non_null(strstr(j.runs.v[0].unknown, "every rank waits"));
	end(&f, &j);
}

static void one(void **state)
{
	struct fleet_judged j;
	struct fleet f;

	(void)state;
	begin(&f);
	eight(&f, 0.16, 0.1);
	judge(&f, &j);
	assert_int_equal(j.suspects.n, 1);
	assert_int_equal(f.ranks.v[j.suspects.v[0].worst].rank, 5);
	assert_int_equal(j.suspects.v[0].members, 1);
	assert_true(near(j.suspects.v[0].own_s, 0.16, 1e-9));
	assert_true(near(j.suspects.v[0].others_s, 0.1, 0.02));
	/* 0.16 against 0.101, the slowest of the others, in a step of 0.17; 8 GPUs for 10 minutes. */
	assert_true(near(j.runs.v[0].lost_share, 0.059 / 0.17, 1e-6));
	assert_true(near(j.runs.v[0].lost_gpu_hours, 0.059 / 0.17 * 8 / 6, 1e-6));
	assert_true(near(j.lost_straggler, j.runs.v[0].lost_gpu_hours, 1e-9));
	assert_null(j.suspects.v[0].cause); /* nothing is known of it */
	end(&f, &j);
}

static void two_equal(void **state)
{
	struct fleet_judged j;
	struct fleet f;

	(void)state;
	begin(&f);
	eight(&f, 0.16, 0.16);
	judge(&f, &j);
	assert_int_equal(j.suspects.n, 1); /* on one node: one matter */
	assert_int_equal(j.suspects.v[0].members, 2);
	assert_int_equal(f.ranks.v[j.members.v[0]].rank, 5);
	assert_int_equal(f.ranks.v[j.members.v[1]].rank, 6);
	assert_true(near(j.runs.v[0].lost_share, 0.059 / 0.17, 1e-6));
	end(&f, &j);
	begin(&f);
	for (int i = 0; i < 4; i++) /* half of them, on two nodes */
		rank(&f, "7", i < 2 ? "a" : "b", i, i % 2 ? 0.16 : 0.1, i % 2 ? 0.001 : 0.061);
	judge(&f, &j);
	assert_int_equal(j.suspects.n, 2);
	assert_int_equal(j.runs.v[0].suspects, 2);
	assert_string_equal(f.nodes.v[j.suspects.v[1].node].name, "b");
	end(&f, &j);
}

static void few_ranks(void **state)
{
	struct fleet_judged j;
	struct fleet f;

	(void)state;
	begin(&f);
	rank(&f, "7", "a", 0, 0.1, 0.07);
	rank(&f, "7", "a", 1, 0.169, 0.001);
	rank(&f, "8", "b", 0, 0.1, 0.01);
	rank(&f, "8", "b", 1, 0.107,
	     0.003);                   /* a difference, but of two nobody knows what is usual */
	rank(&f, "9", "c", 0, 0.1, 0); /* alone: nobody waits for it */
	judge(&f, &j);
	assert_int_equal(j.suspects.n, 1);
	assert_int_equal(f.ranks.v[j.suspects.v[0].worst].rank, 1);
	assert_string_equal(f.runs.v[j.suspects.v[0].run].id, "7");
	for (size_t i = 0; i < j.runs.n; i++)
		assert_string_equal(j.runs.v[i].unknown, "");
	end(&f, &j);
}

static void wide_scatter_is_chance(void **state)
{
	struct fleet_judged j;
	struct fleet f;

	(void)state;
	begin(&f);
	for (int i = 0; i < 16; i++)
		rank(&f, "7", "a", i, 0.1 + 0.005 * ((i * 7) % 16), 0.1 - 0.005 * ((i * 7) % 16));
	judge(&f, &j);
	assert_int_equal(j.suspects.n, 0);
	end(&f, &j);
}

static void missing_ranks(void **state)
{
	struct fleet_judged j;
	struct fleet f;

	(void)state;
	begin(&f);
	give(&f, asking(OF_RUN_INFO, 0),
	     (struct fleet_sample){ .value = 1,
				    .labels = { [LABEL_RUN] = "7",
						[LABEL_NODE] = "a",
						[LABEL_WORLD_SIZE] = "16",
						[LABEL_NAME] = "train.py" } });
	eight(&f, 0.1, 0.1);
	judge(&f, &j);
	assert_int_equal(j.suspects.n, 0);
	assert_non_null(strstr(j.runs.v[0].unknown, "8 of 16 ranks"));
	assert_non_null(strstr(j.runs.v[0].unknown, "is not among them"));
	end(&f, &j);
}

static void not_known(void **state)
{
	struct fleet_judged j;
	struct fleet f;

	(void)state;
	begin(&f);
	for (int i = 0; i < 4;
	     i++) /* steps are known, waits are not: the longest step is no sign */
		rank(&f, "7", "a", i, NAN, i == 2 ? 0.2 : 0.1);
	for (int i = 0; i < 8; i++)
		rank(&f, "8", "b", i, i == 1 ? NAN : i == 3 ? 0.16 : 0.1, i == 3 ? 0.001 : 0.06);
	judge(&f, &j);
	assert_int_equal(j.suspects.n, 1);
	assert_int_equal(f.ranks.v[j.suspects.v[0].worst].rank, 3);
	assert_string_equal(f.runs.v[j.runs.v[0].run].id, "8"); /* what costs comes first */
	assert_int_equal(j.runs.v[0].known, 7);
	assert_int_equal(j.runs.v[1].known, 0);
	assert_non_null(strstr(j.runs.v[1].unknown, "not known"));
	end(&f, &j);
}

static void few_steps_say_nothing(void **state)
{
	struct fleet_judged j;
	struct fleet f;

	(void)state;
	begin(&f);
	eight(&f, 0.16, 0.1);
	for (size_t i = 0; i < f.ranks.n; i++)
		f.ranks.v[i].steps = f.ranks.v[i].steps_timed = 3;
	judge(&f, &j);
	assert_int_equal(j.suspects.n, 0);
	assert_int_equal(j.runs.v[0].known, 0);
	end(&f, &j);
}

static void a_run_that_moved(void **state)
{
	struct fleet_judged j;
	struct fleet f;

	(void)state;
	begin(&f);
	eight(&f, 0.101, 0.1);
	rank(&f, "7", "old", 3, 0.2, 0.001); /* where it was before it was started again */
	for (size_t i = 0; i < f.places.n; i++)
		if (strcmp(f.nodes.v[f.places.v[i].node].name, "old") == 0)
			f.places.v[i].here = NAN;
	judge(&f, &j);
	assert_int_equal(j.suspects.n, 0);
	assert_int_equal(j.runs.v[0].ranks, 8);
	assert_int_equal(j.runs.v[0].nodes, 2);
	assert_int_equal(j.runs.v[0].gpus, 8);
	end(&f, &j);
}

/* Two ranks whose last step was so many seconds ago. */
static void quiet(struct fleet *f, const char *run, double ago, double step, double moves)
{
	rank(f, run, "a", 0, step / 2, step / 2);
	rank(f, run, "a", 1, step / 2, step / 2);
	PUT(f, OF_RUN, fleet_run, mean_step_s, step, [LABEL_RUN] = run);
	for (size_t i = 0; i < f->ranks.n; i++)
		if (strcmp(f->runs.v[f->ranks.v[i].run].id, run) == 0)
			f->ranks.v[i].last_step_s = NOW - ago;
	f->runs.v[f->runs.n - 1].moves = moves;
}

static enum fleet_state state_of(const struct fleet *f, const struct fleet_judged *j,
				 const char *id)
{
	for (size_t i = 0; i < j->runs.n; i++)
		if (strcmp(f->runs.v[j->runs.v[i].run].id, id) == 0)
			return j->runs.v[i].state;
	fail();
	return FLEET_STATES;
}

static void hung(void **state)
{
	struct fleet_judged j;
	struct fleet f;

	(void)state;
	begin(&f);
	quiet(&f, "short", 30, 0.5, 0); /* ten steps, but no minute */
	quiet(&f, "hung", 300, 0.5, 0);
	quiet(&f, "long", 300, 40, 0);   /* 400 s are its ten steps */
	quiet(&f, "clock", 300, 0.5, 4); /* its clock is wrong: its counters move */
	quiet(&f, "future", -300, 0.5, 0);
	quiet(&f, "never", NAN, 0.5, 0);
	judge(&f, &j);
	assert_int_equal(state_of(&f, &j, "hung"), FLEET_HUNG);
	assert_int_equal(state_of(&f, &j, "short"), FLEET_RUNNING);
	assert_int_equal(state_of(&f, &j, "long"), FLEET_RUNNING);
	assert_int_equal(state_of(&f, &j, "clock"), FLEET_RUNNING);
	assert_int_equal(state_of(&f, &j, "future"), FLEET_RUNNING);
	assert_int_equal(state_of(&f, &j, "never"), FLEET_RUNNING);
	assert_int_equal(j.hung, 1);
	assert_true(near(j.runs.v[0].hung_gpu_hours, 2 * 300.0 / 3600, 1e-6));
	assert_true(near(j.lost_hung, 2 * 300.0 / 3600, 1e-6));
	assert_non_null(strstr(j.runs.v[0].unknown, "not known"));
	end(&f, &j);
}

static void lately(struct fleet *f, const char *run, int number, const char *state, double seconds)
{
	char r[16];

	snprintf(r, sizeof(r), "%d", number);
	PUT(f, OF_LEDGER, fleet_ledger, lately, seconds, [LABEL_RUN] = run, [LABEL_NODE] = "a",
	    [LABEL_RANK] = r, [LABEL_STATE] = state);
}

static void whom_the_others_wait_for(void **state)
{
	struct fleet_judged j;
	struct fleet f;

	(void)state;
	begin(&f);
	for (int i = 0; i < 8; i++) {
		rank(&f, "7", "a", i, 0.1, 0.01);
		lately(&f, "7", i, "comm_wait", i == 5 ? 1 : 119);
		lately(&f, "7", i, "io", i == 5 ? 119 : 1);
		f.ranks.v[i].last_step_s = NOW - 200;
		f.ranks.v[i].steps_ever = i == 5 ? 41 : 42;
	}
	f.runs.v[0].moves = 0;
	judge(&f, &j);
	assert_int_equal(j.runs.v[0].state, FLEET_HUNG);
	assert_int_equal(j.suspects.n, 1);
	assert_int_equal(f.ranks.v[j.suspects.v[0].worst].rank, 5);
	assert_non_null(strstr(j.suspects.v[0].evidence[0].text, "41 steps, others 42"));
	assert_non_null(strstr(j.suspects.v[0].evidence[1].text, "in io 99 %"));
	fleet_judged_done(&j);
	for (int i = 0; i < 8; i++) /* where it is tells as well */
		f.ranks.v[i].steps_ever = 42;
	judge(&f, &j);
	assert_int_equal(j.suspects.n, 1);
	assert_int_equal(f.ranks.v[j.suspects.v[0].worst].rank, 5);
	fleet_judged_done(&j);
	/* All in the same place: it is not a rank. */
	for (int i = 0; i < 8; i++) {
		f.ledgers.v[f.ranks.v[i].ledger_from + TIME_COMM_WAIT].lately = 119;
		f.ledgers.v[f.ranks.v[i].ledger_from + TIME_IO].lately = 1;
	}
	judge(&f, &j);
	assert_int_equal(j.suspects.n, 0);
	assert_non_null(strstr(j.runs.v[0].unknown, "stands out"));
	end(&f, &j);
}

static void ended_and_silent(void **state)
{
	struct fleet_judged j;
	struct fleet f;

	(void)state;
	begin(&f);
	quiet(&f, "ended", 300, 0.5, 0);
	quiet(&f, "silent", 300, 0.5, 0);
	for (size_t i = 0; i < f.places.n; i++) {
		f.places.v[i].here = NAN;
		f.places.v[i].up = strcmp(f.runs.v[f.places.v[i].run].id, "silent") == 0;
	}
	judge(&f, &j);
	assert_int_equal(state_of(&f, &j, "ended"), FLEET_ENDED);
	assert_int_equal(state_of(&f, &j, "silent"), FLEET_SILENT);
	end(&f, &j);
}

static void gpu(struct fleet *f, int number, double busy, double memory)
{
	char r[16], g[16];

	snprintf(r, sizeof(r), "%d", number);
	snprintf(g, sizeof(g), "%d", number % 8);
	PUT(f, OF_GPU, fleet_gpu, busy_max, busy, [LABEL_NODE] = "a", [LABEL_GPU] = g);
	PUT(f, OF_HOLD, fleet_hold, memory,
	    memory, [LABEL_RUN] = "7", [LABEL_NODE] = "a", [LABEL_RANK] = r, [LABEL_GPU] = g);
}

static void idle_gpus(void **state)
{
	struct fleet_judged j;
	struct fleet f;

	(void)state;
	begin(&f);
	for (int i = 0; i < 6; i++)
		rank(&f, "7", "a", i, 0.1, 0.001);
	gpu(&f, 0, 0.93, 4e10);
	gpu(&f, 1, 0, 4e10);
	gpu(&f, 2, 0.02, 4e10); /* a little, but something */
	gpu(&f, 3, NAN, 4e10);  /* nobody knows */
	gpu(&f, 4, 0, NAN);
	gpu(&f, 5, 0, 0); /* nothing is held */
	judge(&f, &j);
	assert_int_equal(j.idle.n, 1);
	assert_string_equal(f.gpus.v[j.idle.v[0].gpu].index, "1");
	assert_true(near(j.lost_idle, 1.0 / 6, 1e-6));
	fleet_judged_done(&j);
	f.runs.v[0].start_s = NOW - 100; /* it has just begun */
	judge(&f, &j);
	assert_int_equal(j.idle.n, 0);
	end(&f, &j);
}

static void verdict(struct fleet *f, const char *run, const char *node, const char *cause,
		    double cost)
{
	PUT(f, OF_VERDICT, fleet_verdict, info, 1, [LABEL_RUN] = run, [LABEL_NODE] = node,
	    [LABEL_CAUSE] = cause, [LABEL_FAMILY] = "input");
	PUT(f, OF_VERDICT, fleet_verdict, cost,
	    cost, [LABEL_RUN] = run, [LABEL_NODE] = node, [LABEL_CAUSE] = cause);
}

static void worst_verdicts(void **state)
{
	struct fleet_judged j;
	struct fleet f;

	(void)state;
	begin(&f);
	eight(&f, 0.1, 0.1); /* four ranks and GPUs on each of a and b */
	rank(&f, "8", "c", 0, 0.1, 0);
	verdict(&f, "7", "a", "no_workers", 0.5);
	verdict(&f, "7", "b", "no_workers", 0.25);
	verdict(&f, "8", "c", "no_workers", 0.6);
	verdict(&f, "8", "c", "slow_storage", 0.9);
	verdict(&f, "8", "c", "gpu_bound", NAN);
	verdict(&f, "8", "c", "tokenization", 7); /* no share of anything */
	judge(&f, &j);
	assert_int_equal(j.waste.n, 2);
	assert_string_equal(j.waste.v[0].cause, "no_workers");
	assert_true(near(j.waste.v[0].gpu_hours, (4 * 0.5 + 4 * 0.25 + 0.6) / 6, 1e-6));
	assert_int_equal(j.waste.v[0].runs, 2);
	assert_int_equal(j.waste.v[0].nodes, 3);
	assert_true(j.waste.v[0].worst_cost == 0.6);
	assert_string_equal(f.runs.v[j.waste.v[0].worst_run].id, "8");
	assert_string_equal(j.waste.v[1].cause, "slow_storage");
	end(&f, &j);
}

static void ledger(struct fleet *f, const char *node, int number, const char *state, double seconds)
{
	char r[16];

	snprintf(r, sizeof(r), "%d", number);
	PUT(f, OF_LEDGER, fleet_ledger, seconds, seconds, [LABEL_RUN] = "7", [LABEL_NODE] = node,
	    [LABEL_RANK] = r, [LABEL_STATE] = state);
}

static void cause_gpu(void **state)
{
	struct fleet_judged j;
	struct fleet f;

	(void)state;
	begin(&f);
	eight(&f, 0.16, 0.1);
	for (int i = 0; i < 8; i++) {
		struct fleet_gpu *g = &f.gpus.v[f.holds.v[i].gpu];

		ledger(&f, i < 4 ? "a" : "b", i, "gpu_wait", i == 5 ? 94 : 59);
		ledger(&f, i < 4 ? "a" : "b", i, "comm_wait", i == 5 ? 6 : 41);
		g->clock_hz = i == 5 ? 1.2e9 : 1.98e9;
		g->held[HELD_HEAT] = i == 5 ? 580 : 1;
	}
	judge(&f, &j);
	assert_int_equal(j.suspects.n, 1);
	assert_string_equal(j.suspects.v[0].cause, "gpu_throttled");
	assert_int_equal(j.suspects.v[0].evidence_n, 3);
	assert_non_null(strstr(j.suspects.v[0].evidence[0].text, "gpu_wait"));
	assert_non_null(strstr(j.suspects.v[0].evidence[1].text, "temperature"));
	assert_non_null(strstr(j.suspects.v[0].evidence[2].text, "1200 MHz"));
	fleet_judged_done(&j);
	/* All of them are as hot: that is no difference. */
	for (int i = 0; i < 8; i++) {
		f.gpus.v[f.holds.v[i].gpu].clock_hz = 1.2e9;
		f.gpus.v[f.holds.v[i].gpu].held[HELD_HEAT] = 580;
	}
	judge(&f, &j);
	assert_string_equal(j.suspects.v[0].cause, "compute_straggler");
	end(&f, &j);
}

static void cause_data(void **state)
{
	struct fleet_judged j;
	struct fleet f;

	(void)state;
	begin(&f);
	eight(&f, 0.16, 0.16);
	for (int i = 0; i < 8; i++) {
		ledger(&f, i < 4 ? "a" : "b", i, "gpu_wait", 59);
		ledger(&f, i < 4 ? "a" : "b", i, "data_wait", i == 5 || i == 6 ? 36 : 1);
	}
	judge(&f, &j);
	assert_string_equal(j.suspects.v[0].cause, "input_straggler");
	fleet_judged_done(&j);
	verdict(&f, "7", "b", "slow_storage", 0.4);
	f.nodes.v[1].io_wait = 0.7; /* b */
	f.nodes.v[0].io_wait = 0.01;
	judge(&f, &j);
	assert_string_equal(f.nodes.v[1].name, "b");
	assert_string_equal(j.suspects.v[0].cause, "slow_storage");
	assert_non_null(strstr(j.suspects.v[0].evidence[1].text, "a disk 70 %"));
	fleet_judged_done(&j);
	/* A verdict that other nodes have as well is not what sets this one apart. */
	verdict(&f, "7", "a", "slow_storage", 0.4);
	judge(&f, &j);
	assert_string_equal(j.suspects.v[0].cause, "input_straggler");
	end(&f, &j);
}

static void an_empty_fleet(void **state)
{
	struct fleet_judged j;
	struct fleet f;

	(void)state;
	begin(&f);
	judge(&f, &j);
	assert_int_equal(j.runs.n, 0);
	assert_true(j.gpu_hours == 0);
	end(&f, &j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody),
		cmocka_unit_test(one),
		cmocka_unit_test(two_equal),
		cmocka_unit_test(few_ranks),
		cmocka_unit_test(wide_scatter_is_chance),
		cmocka_unit_test(missing_ranks),
		cmocka_unit_test(not_known),
		cmocka_unit_test(few_steps_say_nothing),
		cmocka_unit_test(a_run_that_moved),
		cmocka_unit_test(hung),
		cmocka_unit_test(whom_the_others_wait_for),
		cmocka_unit_test(ended_and_silent),
		cmocka_unit_test(idle_gpus),
		cmocka_unit_test(worst_verdicts),
		cmocka_unit_test(cause_gpu),
		cmocka_unit_test(cause_data),
		cmocka_unit_test(an_empty_fleet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
