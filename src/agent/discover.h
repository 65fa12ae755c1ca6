/* SPDX-License-Identifier: MIT
 *
 * Which processes are a training, and which rank of which run: a table of processes in, ranks out. Pure.
 *
 * A process trains when it has a GPU context, a framework loaded, a rank by its environment, or a record of Spotter. Children
 * inherit the environment, so the topmost process with one identity is the rank, and all below it belong to it. One that
 * trains, has no GPU, and has ranks below it is their launcher (torchrun imports torch): it is no rank of its own.
 */
#ifndef SPOTTER_AGENT_DISCOVER_H
#define SPOTTER_AGENT_DISCOVER_H

#include "agent/environ.h"

struct disc_proc {
	int parent;          /* place in the table, -1: none that is known */
	const char *name;    /* comm, foreign text */
	const char *cmdline; /* arguments, foreign text */
	const struct job_env *env;
	bool gpu;              /* the driver lists it */
	const char *framework; /* loaded, NULL: none seen */
	const char *record;    /* it is the program of the record with this id, NULL */
	int32_t rank_hint;     /* rank as it marks its steps with, -1 */
	uint64_t identity;     /* boot, pid and start as one number */

	/* found out */
	int rank; /* place in ranks, -1: it is none of a training */
	enum view_role role;
};

struct disc_rank {
	int root; /* place in the table */
	char run_id[RUN_ID_SIZE];
	enum run_source source;
	int32_t rank, local_rank, world;
	const char *framework; /* "" not known */
};

struct disc_ranks {
	VEC(struct disc_rank) v;
};

/* 0 or -ENOMEM. */
int discover(struct disc_proc *procs, size_t n, struct disc_ranks *ret);

/* "torch", by what is mapped: the text of /proc/PID/maps; NULL: none. */
const char *framework_in(const char *maps, size_t n);

#endif
