/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "agent/discover.h"
#include "base/auto.h"

struct machine_of {
	struct job_env env[16];
	struct disc_proc procs[16];
	size_t n;
	struct disc_ranks ranks;
};

/* parent: place; rank -1: none; run NULL: none. Gives the place of the new one. */
static int add(struct machine_of *m, int parent, const char *name, const char *cmdline, int rank,
	       const char *run)
{
	struct job_env *e = &m->env[m->n];

	assert_true(m->n < 16);
	job_env_none(e);
	if (rank >= 0) {
		e->rank = rank;
		e->world = 8;
		e->local_rank = rank % 4;
		e->rank_source = RANK_TORCH;
	}
	if (run) {
		e->source = SOURCE_TORCHELASTIC;
		snprintf(e->run_id, sizeof(e->run_id), "%s", run);
	}
	m->procs[m->n] = (struct disc_proc){ .parent = parent,
					     .name = name,
					     .cmdline = cmdline,
					     .env = e,
					     .rank_hint = -1,
					     .identity = 1000 + m->n };
	return (int)m->n++;
}

static void find(struct machine_of *m)
{
	assert_int_equal(discover(m->procs, m->n, &m->ranks), 0);
}

static void done(struct machine_of *m)
{
	vec_done(&m->ranks.v);
}

/* A torchrun with two ranks, one of which has workers; and what has nothing to do with it. */
static void torchrun(void **state)
{
	struct machine_of m = { .n = 0 };
	int init = add(&m, -1, "systemd", "/sbin/init", -1, NULL);
	int launcher = add(&m, init, "python3", "python3 torchrun train.py", -1, NULL);
	int a = add(&m, launcher, "pt_main_thread", "python3 train.py", 0, "abc");
	int b = add(&m, launcher, "pt_main_thread", "python3 train.py", 1, "abc");
	int worker = add(&m, a, "pt_data_worker", "python3 train.py", 0, "abc");
	int forked = add(&m, a, "python3", "python3 train.py", 0, "abc");
	int tracker =
	    add(&m, a, "python3", "python3 -c from multiprocessing.resource_tracker", 0, "abc");
	int shell = add(&m, worker, "sh", "sh -c true", 0, "abc");
	int other = add(&m, init, "sshd", "sshd", -1, NULL);

	(void)state;
	m.procs[launcher].framework = "torch";
	m.procs[a].framework = m.procs[b].framework = m.procs[forked].framework = "torch";
	find(&m);
	assert_int_equal(m.ranks.v.n, 2);
	assert_int_equal(m.procs[launcher].rank, -1);
	assert_int_equal(m.procs[init].rank, -1);
	assert_int_equal(m.procs[other].rank, -1);
	assert_string_equal(m.ranks.v.v[0].run_id, "abc");
	assert_int_equal(m.ranks.v.v[m.procs[a].rank].rank, 0);
	assert_int_equal(m.ranks.v.v[m.procs[b].rank].rank, 1);
	assert_int_equal(m.ranks.v.v[m.procs[b].rank].local_rank, 1);
	assert_string_equal(m.ranks.v.v[0].framework, "torch");
	for (int i = worker; i <= shell; i++)
		assert_int_equal(m.procs[i].rank, m.procs[a].rank);
	assert_int_equal(m.procs[a].role, VIEW_TRAINER);
	assert_int_equal(m.procs[worker].role, VIEW_DATALOADER);
	assert_int_equal(m.procs[forked].role, VIEW_DATALOADER);
	assert_int_equal(m.procs[tracker].role, VIEW_OTHER);
	assert_int_equal(m.procs[shell].role, VIEW_OTHER);
	done(&m);
}

/* Ranks that nobody gave an id are of one run if one launcher started them. */
static void run_ids(void **state)
{
	struct machine_of m = { .n = 0 };
	int launcher = add(&m, -1, "python3", "python3 torchrun a.py", -1, NULL);
	int a = add(&m, launcher, "python3", "a.py", 0, NULL);
	int b = add(&m, launcher, "python3", "a.py", 1, NULL);
	int alone = add(&m, -1, "python3", "b.py", -1, NULL);
	int recorded = add(&m, -1, "python3", "c.py", -1, NULL);
	int below = add(&m, recorded, "python3", "c.py", 2, NULL);

	(void)state;
	m.procs[launcher].framework = m.procs[alone].framework = "torch";
	m.procs[recorded].record = "20261115-211209-4f3a";
	find(&m);
	assert_string_equal(m.ranks.v.v[m.procs[a].rank].run_id,
			    m.ranks.v.v[m.procs[b].rank].run_id);
	assert_int_equal(m.ranks.v.v[m.procs[a].rank].source, SOURCE_PROCESS);
	assert_string_equal(m.ranks.v.v[m.procs[alone].rank].run_id, "p-00000000000003eb");
	/* the program of a record, with a rank below it, is its launcher */
	assert_int_equal(m.procs[recorded].rank, -1);
	assert_string_equal(m.ranks.v.v[m.procs[below].rank].run_id, "20261115-211209-4f3a");
	assert_int_equal(m.ranks.v.v[m.procs[below].rank].source, SOURCE_SPOTTER);
	done(&m);
}

/* What makes a training: and a screen, a shell in a pod or Spotter itself is none. */
static void evidence(void **state)
{
	struct machine_of m = { .n = 0 };
	int gpu = add(&m, -1, "solver", "./solver", -1, NULL);
	int screen = add(&m, -1, "Xorg", "Xorg", -1, NULL);
	int pod = add(&m, -1, "nginx", "nginx", -1, "some-pod");
	int only = add(&m, -1, "make", "make", 0, NULL);
	int own = add(&m, -1, "spotter", "spotter run", 3, "abc");
	int keeper = add(&m, own, "spotter-sample", "spotter run", 3, "abc");
	int spawned =
	    add(&m, gpu, "python3", "python3 -c from multiprocessing.spawn import", -1, NULL);

	(void)state;
	m.env[only].world = 1;
	m.procs[gpu].gpu = m.procs[screen].gpu = m.procs[spawned].gpu = true;
	find(&m);
	assert_int_equal(m.ranks.v.n, 1);
	assert_int_equal(m.procs[gpu].rank, 0);
	assert_int_equal(m.ranks.v.v[0].rank, -1);
	assert_int_equal(m.procs[screen].rank, -1);
	assert_int_equal(m.procs[pod].rank, -1);
	assert_int_equal(m.procs[own].rank, -1);
	assert_int_equal(m.procs[keeper].rank, -1);
	assert_int_equal(m.procs[only].rank, -1);
	/* a process on a GPU is no loader, however it was started */
	assert_int_equal(m.procs[spawned].rank, 0);
	assert_int_equal(m.procs[spawned].role, VIEW_TRAINER);
	done(&m);
}

/* Ranks that only the program itself knew of, by the marks it makes. */
static void ranks_by_marks(void **state)
{
	struct machine_of m = { .n = 0 };
	int main_ = add(&m, -1, "python3", "python3 spawn.py", -1, NULL);
	int a = add(&m, main_, "python3", "spawn_main", -1, NULL);
	int b = add(&m, main_, "python3", "spawn_main", -1, NULL);

	(void)state;
	m.procs[main_].framework = m.procs[a].framework = m.procs[b].framework = "torch";
	find(&m);
	assert_int_equal(m.ranks.v.n, 1);
	m.procs[a].rank_hint = 0;
	m.procs[b].rank_hint = 1;
	find(&m);
	assert_int_equal(m.ranks.v.n, 2);
	assert_int_equal(m.procs[main_].rank, -1);
	assert_string_equal(m.ranks.v.v[0].run_id, m.ranks.v.v[1].run_id);
	done(&m);
}

/* A table that goes round in circles, or points out of itself, ends nothing. */
static void circles(void **state)
{
	struct machine_of m = { .n = 0 };

	(void)state;
	add(&m, 1, "a", "", 0, "x");
	add(&m, 0, "b", "", 1, "x");
	add(&m, 2, "c", "", 2, "x");
	add(&m, 99, "d", "", 3, "x");
	find(&m);
	assert_int_equal(m.ranks.v.n, 4);
	m.n = 0;
	find(&m);
	assert_int_equal(m.ranks.v.n, 0);
	done(&m);
}

static void frameworks(void **state)
{
	static const struct {
		const char *maps, *name;
	} rows[] = {
		{ "7f0 r-xp 00 08:01 1 /usr/lib/python3/torch/lib/libtorch_cpu.so\n", "torch" },
		{ "7f0 r-xp 00 08:01 1 /usr/lib/libtorchaudio.so\n", NULL },
		{ "7f0 r-xp 00 08:01 1 /x/tensorflow/libtensorflow_framework.so.2\n",
		  "tensorflow" },
		{ "7f0 r-xp 00 08:01 1 /x/jaxlib/xla_extension.so\n", "jax" },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *name = framework_in(rows[i].maps, strlen(rows[i].maps));

		if (rows[i].name)
			assert_string_equal(name, rows[i].name);
		else
			assert_null(name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(torchrun), cmocka_unit_test(run_ids),
		cmocka_unit_test(evidence), cmocka_unit_test(ranks_by_marks),
		cmocka_unit_test(circles),  cmocka_unit_test(frameworks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
