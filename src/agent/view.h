/* SPDX-License-Identifier: MIT
 *
 * What the agent knows of its machine at one moment, as plain data: the trainings, their ranks, and the latest value of
 * everything else that is measured. series.h turns it into samples. Numbers that are not known are NAN, texts "".
 *
 * Texts are safe to show (base/text.h): names of processes and values of environments come from anybody.
 */
#ifndef SPOTTER_AGENT_VIEW_H
#define SPOTTER_AGENT_VIEW_H

#include "base/vec.h"
#include "model/metric.h"
#include "model/run.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	VIEW_RUNS_MAX = 64,    /* of one machine; what is beyond is counted */
	VIEW_RANKS_MAX = 256,  /* of one machine, over all runs */
	VIEW_THINGS_MAX = 512, /* disks, networks, mounts and GPUs */
	VIEW_FINDINGS_MAX = 8, /* of one run */
	VIEW_LEDGER_MAX = 40,  /* of one record */
	RUN_ID_SIZE = 128,
};

/* How many of `all` places one user may have: root and we ourselves any, others half. */
size_t view_share(uid_t uid, size_t all);

/* What a process of a rank is for, as far as it shows from outside. */
enum view_role { VIEW_TRAINER, VIEW_DATALOADER, VIEW_OTHER, VIEW_ROLES };

/* Where the id of a run is from, in the order in which they are asked. */
enum run_source {
	SOURCE_NONE,
	SOURCE_GIVEN,        /* $SPOTTER_RUN_ID */
	SOURCE_TORCHELASTIC, /* torchrun */
	SOURCE_SLURM,
	SOURCE_KUBERNETES,
	SOURCE_MPI,
	SOURCE_SPOTTER, /* the id of its record */
	SOURCE_PROCESS, /* made from the first process: the same as long as that lives */
	RUN_SOURCES,
};

struct view_run {
	char id[RUN_ID_SIZE];
	char name[96]; /* of its program: "train.py" */
	enum run_source source;
	const char *framework; /* "torch", "tensorflow", "jax", "mxnet"; "" not known */
	int32_t world;         /* ranks it has over all machines; -1: not known */
	bool up;
	double start_s; /* since 1970 */
};

/* Upper ends of the buckets of step times in seconds; the one behind the last has none. */
enum { STEP_BOUNDS = 17 };
extern const double step_bounds[STEP_BOUNDS];

struct view_steps {
	uint64_t count; /* of all steps */
	uint64_t timed; /* of those with a known beginning, which are in the buckets, each in one */
	uint64_t bucket[STEP_BOUNDS + 1];
	double seconds;   /* their sum */
	double data_wait; /* NAN: nobody said */
	double loss, last_s;
	double comm_wait, own_work; /* NAN: no stacks to tell */
};

struct view_role_use {
	int processes;
	double cpu_user, cpu_system, rss, read, written;
};

struct view_rank {
	size_t run;
	int32_t rank, local_rank; /* -1: not known */
	int64_t start_ms;         /* its counters count since then */
	bool has_steps;
	struct view_steps steps;
	struct view_role_use use[VIEW_ROLES];
};

/* A rank on a GPU. */
struct view_hold {
	size_t rank, gpu; /* gpu: in things */
	double memory, busy;
};

struct view_ledger {
	size_t run;
	int32_t rank;       /* -1: of the run */
	const char *ledger; /* "time", "cpu" */
	char state[32];
	double seconds;
	int64_t start_ms;
};

struct view_finding {
	size_t run;
	const char *cause, *family; /* family "": of a healthy run */
	double cost, confidence;    /* NAN with a healthy run */
};

/* A disk, a network, a mount, a GPU; the machine and Spotter itself, which have no labels. */
struct view_thing {
	enum entity_kind kind;
	char device[64];    /* disk, network; mounts: where */
	char gpu[12];       /* index */
	char partition[12]; /* of a partition */
	char uuid[96];
	char name[96], vendor[16], driver[48], pci[24]; /* GPU */
	bool simulated;
};

struct view_value {
	enum metric_id metric;
	size_t thing;
	double value;
};

struct agent_view {
	int64_t time_ms;  /* wall clock of the tick */
	int64_t start_ms; /* of the agent */
	char node[65];
	char version[24];
	struct machine machine;
	VEC(struct view_run) runs;
	VEC(struct view_rank) ranks;
	VEC(struct view_hold) holds;
	VEC(struct view_ledger) ledger;
	VEC(struct view_finding) findings;
	VEC(struct view_thing) things;
	VEC(struct view_value) values;
	double dropped_runs, dropped_ranks, dropped_things, dropped_records;
	double unreadable; /* processes */
	double records;
};

/* Empties it and keeps its memory. */
void agent_view_reset(struct agent_view *v);
void agent_view_done(struct agent_view *v);

const char *view_role_name(enum view_role r);   /* "dataloader" */
const char *run_source_name(enum run_source s); /* "slurm" */
/* A step of this many seconds; negative: its beginning is not known. */
void view_steps_add(struct view_steps *s, double seconds);
/* A sum of what is known of it: NAN adds nothing, and is what a sum of nothing is. */
void view_add_known(double *sum, double v);
/* One more process of a rank, as of one that was started again: its steps come to those before it, so that nothing
 * counts backwards; loss and time of the last step are those of the one that went on last. */
void view_rank_add_steps(struct view_rank *r, const struct view_steps *s);
/* `now` without what was in it before; loss and time of the last step are now's. */
struct view_steps view_steps_since(const struct view_steps *now, const struct view_steps *before);

#endif
