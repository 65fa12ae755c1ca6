/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "agent/environ.h"
#include "base/auto.h"

/* Words with a blank between them become "A=1\0B=2\0". */
static struct job_env of(const char *words)
{
	char text[512];
	struct job_env e;
	size_t n = strlen(words);

	assert_true(n + 1 < sizeof(text));
	memcpy(text, words, n + 1);
	for (size_t i = 0; i < n; i++)
		if (text[i] == ' ')
			text[i] = '\0';
	job_env_read(text, n ? n + 1 : 0, &e);
	return e;
}

static void identities(void **state)
{
	static const struct {
		const char *words, *run_id;
		enum run_source source;
		int rank, local, world;
	} rows[] = {
		{ "", "", SOURCE_NONE, -1, -1, -1 },
		{ "PATH=/bin HOME=/root", "", SOURCE_NONE, -1, -1, -1 },
		/* torchrun */
		{ "TORCHELASTIC_RUN_ID=abc RANK=5 LOCAL_RANK=1 WORLD_SIZE=8", "abc",
		  SOURCE_TORCHELASTIC, 5, 1, 8 },
		/* ... that nobody gave an id */
		{ "TORCHELASTIC_RUN_ID=none RANK=0 LOCAL_RANK=0 WORLD_SIZE=2", "", SOURCE_NONE, 0,
		  0, 2 },
		/* ... within Slurm */
		{ "TORCHELASTIC_RUN_ID=none RANK=3 LOCAL_RANK=3 WORLD_SIZE=8 SLURM_JOB_ID=77 "
		  "SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=2",
		  "77.0", SOURCE_SLURM, 3, 3, 8 },
		{ "SLURM_JOB_ID=77 SLURM_STEP_ID=2 SLURM_PROCID=9 SLURM_LOCALID=1 SLURM_NTASKS=16",
		  "77.2", SOURCE_SLURM, 9, 1, 16 },
		{ "SLURM_JOBID=77", "77", SOURCE_SLURM, -1, -1, -1 },
		{ "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_SIZE=4 "
		  "PMIX_NAMESPACE=prterun-n1-99@1",
		  "prterun-n1-99@1", SOURCE_MPI, 2, 0, 4 },
		{ "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1", "", SOURCE_NONE, 1, 1, 2 },
		/* pods of operators and of indexed jobs; any other is a job of its own */
		{ "KUBERNETES_SERVICE_HOST=10.0.0.1 HOSTNAME=bert-worker-3 RANK=4 WORLD_SIZE=5",
		  "bert", SOURCE_KUBERNETES, 4, -1, 5 },
		{ "KUBERNETES_SERVICE_HOST=10.0.0.1 POD_NAME=bert-2 JOB_COMPLETION_INDEX=2", "bert",
		  SOURCE_KUBERNETES, 2, -1, -1 },
		{ "KUBERNETES_SERVICE_HOST=10.0.0.1 HOSTNAME=web-7", "web-7", SOURCE_KUBERNETES, -1,
		  -1, -1 },
		{ "HOSTNAME=bert-worker-3", "", SOURCE_NONE, -1, -1, -1 },
		/* whoever names it knows best */
		{ "SPOTTER_RUN_ID=mine SLURM_JOB_ID=77", "mine", SOURCE_GIVEN, -1, -1, -1 },
		/* RANK alone is a word as any other, and 9 of 8 is none */
		{ "RANK=1", "", SOURCE_NONE, -1, -1, -1 },
		{ "RANK=9 WORLD_SIZE=8", "", SOURCE_NONE, -1, -1, -1 },
		{ "RANK=-1 WORLD_SIZE=8", "", SOURCE_NONE, -1, -1, -1 },
		{ "RANK=1x WORLD_SIZE=8", "", SOURCE_NONE, -1, -1, -1 },
		{ "RANK=99999999999999999999 WORLD_SIZE=99999999999999999999", "", SOURCE_NONE, -1,
		  -1, -1 },
		/* the first one counts, as for getenv(); names are whole */
		{ "SLURM_JOB_ID=1 SLURM_JOB_ID=2 XSLURM_JOB_ID=3", "1", SOURCE_SLURM, -1, -1, -1 },
		{ "SLURM_JOB_ID=", "", SOURCE_NONE, -1, -1, -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct job_env e = of(rows[i].words);

		if (strcmp(e.run_id, rows[i].run_id) != 0 || e.source != rows[i].source ||
		    e.rank != rows[i].rank || e.local_rank != rows[i].local ||
		    e.world != rows[i].world)
			fail_msg("'%s': run '%s' by %s, rank %d, local %d, of %d", rows[i].words,
				 e.run_id, run_source_name(e.source), e.rank, e.local_rank,
				 e.world);
	}
}

static void pods(void **state)
{
	(void)state;
	assert_true(
	    of("KUBERNETES_SERVICE_HOST=10.0.0.1 SPOTTER_RUN_ID=mine RANK=1 WORLD_SIZE=2").pod);
	assert_false(of("RANK=1 WORLD_SIZE=2").pod);
}

/* srun --mpi=pmix; the second is below a launcher of its own, which counts otherwise. */
static void local_rank_by_slurm(void **state)
{
	struct job_env e = of("PMIX_RANK=3 SLURM_PROCID=3 SLURM_LOCALID=1 SLURM_JOB_ID=7");

	(void)state;
	assert_int_equal(e.rank, 3);
	assert_int_equal(e.local_rank, 1);
	e = of("PMIX_RANK=3 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_JOB_ID=7");
	assert_int_equal(e.rank, 3);
	assert_int_equal(e.local_rank, -1);
}

static void hostile(void **state)
{
	static char text[4096];
	struct job_env e;

	(void)state;
	/* control characters and bytes that are no UTF-8 */
	memcpy(text, "SPOTTER_RUN_ID=a\n\x1b[2J\xff", 23);
	job_env_read(text, 23, &e);
	assert_string_equal(e.run_id, "a??[2J?");
	/* without its NUL it may be half of a value */
	memcpy(text, "SLURM_JOB_ID=12", 15);
	job_env_read(text, 15, &e);
	assert_int_equal(e.source, SOURCE_NONE);
	/* longer than any id: cut, and whole characters only */
	memset(text, 'x', sizeof(text));
	memcpy(text, "TORCHELASTIC_RUN_ID=", 20);
	text[sizeof(text) - 1] = '\0';
	job_env_read(text, sizeof(text), &e);
	assert_int_equal(e.source, SOURCE_TORCHELASTIC);
	assert_int_equal(strlen(e.run_id), RUN_ID_SIZE - 1);
	/* nothing but NULs and signs */
	memset(text, 0, sizeof(text));
	job_env_read(text, sizeof(text), &e);
	assert_int_equal(e.source, SOURCE_NONE);
	memset(text, '=', sizeof(text));
	job_env_read(text, sizeof(text), &e);
	assert_int_equal(e.source, SOURCE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identities),
		cmocka_unit_test(pods),
		cmocka_unit_test(local_rank_by_slurm),
		cmocka_unit_test(hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
