/* SPDX-License-Identifier: MIT
 *
 * Which rank of which run a process is, by its environment: what torchrun, Slurm, Kubernetes and MPI tell their tasks.
 * First match wins: a torchrun within a Slurm job knows better. Anybody can put anything into an environment.
 */
#ifndef SPOTTER_AGENT_ENVIRON_H
#define SPOTTER_AGENT_ENVIRON_H

#include "agent/view.h"

/* Who gave it its rank, the one who knows best first. */
enum rank_source { RANK_NONE, RANK_TORCH, RANK_MPI, RANK_SLURM, RANK_KUBERNETES };

struct job_env {
	enum rank_source rank_source;
	int32_t rank, local_rank, world; /* -1: not said */
	bool pod;                        /* of Kubernetes: with a host name of its own */
	enum run_source source;          /* SOURCE_NONE: it names no run */
	char run_id[RUN_ID_SIZE];        /* safe to show; "" with SOURCE_NONE */
};

/* The n bytes of /proc/PID/environ: "NAME=value" each with a NUL behind it. */
void job_env_read(const char *text, size_t n, struct job_env *ret);
/* Of a process that says nothing. */
void job_env_none(struct job_env *ret);

#endif
