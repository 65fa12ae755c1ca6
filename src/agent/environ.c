/* SPDX-License-Identifier: MIT */
#include "agent/environ.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { NUMBER_MOST = 10000000, VALUE_MOST = 256 };

/* Everything that is looked for, in the order of `names`. */
enum name {
	SPOTTER_RUN_ID,
	TORCHELASTIC_RUN_ID,
	RANK,
	LOCAL_RANK,
	WORLD_SIZE,
	SLURM_JOB_ID,
	SLURM_JOBID,
	SLURM_STEP_ID,
	SLURM_STEPID,
	SLURM_PROCID,
	SLURM_LOCALID,
	SLURM_NTASKS,
	OMPI_COMM_WORLD_RANK,
	OMPI_COMM_WORLD_LOCAL_RANK,
	OMPI_COMM_WORLD_SIZE,
	PMIX_RANK,
	PMIX_NAMESPACE,
	PMI_RANK,
	PMI_SIZE,
	PMI_JOBID,
	MPI_LOCALRANKID,
	MV2_COMM_WORLD_RANK,
	MV2_COMM_WORLD_LOCAL_RANK,
	MV2_COMM_WORLD_SIZE,
	OMPI_MCA_ess_base_jobid,
	KUBERNETES_SERVICE_HOST,
	POD_NAME,
	HOSTNAME,
	JOB_NAME,
	JOB_COMPLETION_INDEX,
	NAMES,
};

#define NAME(x) [x] = #x
static const char *const names[NAMES] = {
	NAME(SPOTTER_RUN_ID),
	NAME(TORCHELASTIC_RUN_ID),
	NAME(RANK),
	NAME(LOCAL_RANK),
	NAME(WORLD_SIZE),
	NAME(SLURM_JOB_ID),
	NAME(SLURM_JOBID),
	NAME(SLURM_STEP_ID),
	NAME(SLURM_STEPID),
	NAME(SLURM_PROCID),
	NAME(SLURM_LOCALID),
	NAME(SLURM_NTASKS),
	NAME(OMPI_COMM_WORLD_RANK),
	NAME(OMPI_COMM_WORLD_LOCAL_RANK),
	NAME(OMPI_COMM_WORLD_SIZE),
	NAME(PMIX_RANK),
	NAME(PMIX_NAMESPACE),
	NAME(PMI_RANK),
	NAME(PMI_SIZE),
	NAME(PMI_JOBID),
	NAME(MPI_LOCALRANKID),
	NAME(MV2_COMM_WORLD_RANK),
	NAME(MV2_COMM_WORLD_LOCAL_RANK),
	NAME(MV2_COMM_WORLD_SIZE),
	NAME(OMPI_MCA_ess_base_jobid),
	NAME(KUBERNETES_SERVICE_HOST),
	NAME(POD_NAME),
	NAME(HOSTNAME),
	NAME(JOB_NAME),
	NAME(JOB_COMPLETION_INDEX),
};

struct values {
	const char *v[NAMES]; /* NULL: not there; else a NUL ends it within the text */
};

static void take(const char *text, size_t n, struct values *ret)
{
	const char *end = text + n;

	*ret = (struct values){ 0 };
	for (const char *p = text; p < end;) {
		const char *stop = memchr(p, '\0', (size_t)(end - p));
		const char *equal;

		if (!stop) /* cut off: its value may be half of one */
			return;
		equal = memchr(p, '=', (size_t)(stop - p));
		for (int i = 0; equal && i < NAMES; i++) {
			size_t len = strlen(names[i]);

			/* The first one counts, as for getenv(). */
			if (!ret->v[i] && (size_t)(equal - p) == len &&
			    memcmp(p, names[i], len) == 0)
				ret->v[i] = equal + 1;
		}
		p = stop + 1;
	}
}

/* A plain number without a sign, as the launchers write it; -1: none. */
static int32_t number(const struct values *e, enum name name)
{
	const char *p = e->v[name];
	int32_t v = 0;

	if (!p || !*p)
		return -1;
	for (; *p; p++) {
		if (*p < '0' || *p > '9' || v > NUMBER_MOST / 10)
			return -1;
		v = v * 10 + (*p - '0');
	}
	return v;
}

static const char *text_of(const struct values *e, enum name name, enum name other)
{
	const char *a = e->v[name], *b = other < NAMES ? e->v[other] : NULL;

	return a && *a ? a : b && *b ? b : NULL;
}

static void take_rank(const struct values *e, struct job_env *ret)
{
	static const struct {
		enum rank_source source;
		enum name rank, local, world;
	} sources[] = {
		{ RANK_TORCH, RANK, LOCAL_RANK, WORLD_SIZE },
		{ RANK_MPI, OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_LOCAL_RANK,
		  OMPI_COMM_WORLD_SIZE },
		{ RANK_MPI, MV2_COMM_WORLD_RANK, MV2_COMM_WORLD_LOCAL_RANK, MV2_COMM_WORLD_SIZE },
		{ RANK_MPI, PMI_RANK, MPI_LOCALRANKID, PMI_SIZE },
		{ RANK_MPI, PMIX_RANK, MPI_LOCALRANKID, NAMES },
		{ RANK_SLURM, SLURM_PROCID, SLURM_LOCALID, SLURM_NTASKS },
	};

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		int32_t rank = number(e, sources[i].rank), world = -1;

		if (sources[i].world < NAMES)
			world = number(e, sources[i].world);
		/* RANK is a word many use; with WORLD_SIZE it is what we take it for. */
		if (rank < 0 || (sources[i].source == RANK_TORCH && world <= rank))
			continue;
		ret->rank_source = sources[i].source;
		ret->rank = rank;
		ret->local_rank = number(e, sources[i].local);
		/* srun --mpi=pmix: the rank is in PMIX_RANK, that on the machine in Slurm's own */
		if (ret->local_rank < 0 && number(e, SLURM_PROCID) == rank)
			ret->local_rank = number(e, SLURM_LOCALID);
		ret->world = world > rank ? world : -1;
		return;
	}
	ret->rank = e->v[KUBERNETES_SERVICE_HOST] ? number(e, JOB_COMPLETION_INDEX) : -1;
	if (ret->rank >= 0)
		ret->rank_source = RANK_KUBERNETES;
}

/* Cuts "-NUMBER" off; false: there is none. */
static bool cut_number(char *name)
{
	size_t n = strlen(name), at = n;

	while (at && name[at - 1] >= '0' && name[at - 1] <= '9')
		at--;
	if (at == n || at < 2 || name[at - 1] != '-')
		return false;
	name[at - 1] = '\0';
	return true;
}

/* The job of a pod: "resnet-worker-3" and "resnet-master-0" (training operators) are of "resnet", so is "resnet-3"
 * of an indexed job. Any other pod is a job of its own. */
static void job_of_pod(const struct values *e, const char *pod, char *ret, size_t size)
{
	static const char *const roles[] = { "-worker", "-master", "-launcher", "-chief", "-ps" };
	char name[VALUE_MOST];

	text_copy(name, sizeof(name), pod);
	if (cut_number(name)) {
		for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
			size_t n = strlen(name), m = strlen(roles[i]);

			if (n > m && strcmp(name + n - m, roles[i]) == 0) {
				name[n - m] = '\0';
				text_copy(ret, size, name);
				return;
			}
		}
		if (e->v[JOB_COMPLETION_INDEX]) {
			text_copy(ret, size, name);
			return;
		}
	}
	text_copy(ret, size, pod);
}

static void take_run(const struct values *e, struct job_env *ret)
{
	char id[VALUE_MOST] = "";
	const char *text, *step;

	if ((text = text_of(e, SPOTTER_RUN_ID, NAMES))) {
		ret->source = SOURCE_GIVEN;
		text_copy(id, sizeof(id), text);
	} else if ((text = text_of(e, TORCHELASTIC_RUN_ID, NAMES)) && strcmp(text, "none") != 0) {
		/* torchrun's own word where nobody named the run */
		ret->source = SOURCE_TORCHELASTIC;
		text_copy(id, sizeof(id), text);
	} else if ((text = text_of(e, SLURM_JOB_ID, SLURM_JOBID))) {
		ret->source = SOURCE_SLURM;
		step = text_of(e, SLURM_STEP_ID, SLURM_STEPID);
		snprintf(id, sizeof(id), "%.64s%s%.64s", text, step ? "." : "", step ? step : "");
	} else if (e->v[KUBERNETES_SERVICE_HOST] && ((text = text_of(e, JOB_NAME, NAMES)) ||
						     (text = text_of(e, POD_NAME, HOSTNAME)))) {
		ret->source = SOURCE_KUBERNETES;
		job_of_pod(e, text, id, sizeof(id));
	} else if ((text = text_of(e, PMIX_NAMESPACE, OMPI_MCA_ess_base_jobid)) ||
		   (text = text_of(e, PMI_JOBID, NAMES))) {
		ret->source = SOURCE_MPI;
		text_copy(id, sizeof(id), text);
	}
	text_safe_copy(ret->run_id, sizeof(ret->run_id), id);
	if (!ret->run_id[0])
		ret->source = SOURCE_NONE;
}

void job_env_none(struct job_env *ret)
{
	*ret = (struct job_env){ .rank = -1, .local_rank = -1, .world = -1 };
}

void job_env_read(const char *text, size_t n, struct job_env *ret)
{
	struct values e;

	job_env_none(ret);
	take(text, n, &e);
	ret->pod = e.v[KUBERNETES_SERVICE_HOST] != NULL;
	take_rank(&e, ret);
	take_run(&e, ret);
}
