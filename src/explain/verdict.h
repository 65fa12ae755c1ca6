/* SPDX-License-Identifier: MIT
 *
 * The verdict: everything `spotter why` says, as data (DESIGN section 5). explain() fills it from a
 * window; render_text and render_json show it. Absent numbers are NAN and never printed.
 */
#ifndef SPOTTER_EXPLAIN_VERDICT_H
#define SPOTTER_EXPLAIN_VERDICT_H

#include "base/vec.h"
#include "explain/steps.h"
#include "model/finding.h"
#include "model/window.h"

struct buf;

enum { LEDGER_TOP = 5 };

/* Where the CPU time of a role went. */
struct ledger_top {
	char function[100], file[200]; /* safe to show */
	int line;                      /* 0: not known */
	double share;                  /* of the role's CPU time */
};

struct ledger_line {
	char role[32]; /* CPU ledger: role; time ledger: state */
	int processes, threads;
	double cores, seconds, share;
	struct ledger_top top[LEDGER_TOP];
	size_t n_top;
};

/* What a thread is for, by its stacks in the window. */
struct thread_role {
	uint32_t thread, process; /* entities */
	bool first;               /* the first thread of its process */
	const char *role;         /* "loader_worker" */
};

struct usage_gpu_process {
	int64_t pid;   /* 0: not known here */
	char name[32]; /* safe to show */
	int job;       /* 1 of the job, 0 another program's, -1 not known */
	double memory; /* mean while it was there */
	double busy;   /* share of that time its kernels ran */
};

/* A GPU or, behind it, its partitions. Device figures are the device's, whoever uses it: none is ever
 * copied onto a process. Means over the time it was read, but memory_peak and temperature: the highest
 * seen. */
struct usage_gpu {
	int index, partition; /* as the driver counts; partition -1: a whole GPU */
	char uuid[96], name[96], vendor[16], profile[32];
	bool simulated;
	bool unified;       /* its memory is the machine's */
	bool listed;        /* the driver's list of its processes was read, may it be empty */
	double seen;        /* seconds it was read for; NAN: nine tenths of the run or more */
	const char *state;  /* "lost", "hung", "not read": its readings ended early; NULL */
	double until;       /* ...this many seconds after the start */
	bool is_shell;      /* it has partitions, and work runs in those only */
	int allowed;        /* by the job's environment: 1, 0, -1 it says nothing */
	int job;            /* a process of the job was on it: 1, 0, -1 not known */
	bool busy_at_least; /* summed up from its processes: the driver has no figure */
	double busy, sm_active, memory_used, memory_peak, memory_total, power, energy, temperature;
	double clock, clock_max;
	char held[48]; /* what held its clocks in the window: "temperature 31 %", "" */
	size_t first_process, n_processes; /* in gpu_processes; the largest first */
	size_t left_out;                   /* more that are not listed */
};

struct usage {
	double cores_used, cores_allowed, cores_machine, steal;
	int threads_per_core;  /* 0: unknown */
	const char *cpu_limit; /* "affinity", "quota", "machine" */
	double memory_used, memory_peak, memory_allowed;
	const char *memory_limit; /* "cgroup", "machine" */
	bool memory_at_most;      /* pages that processes share are counted for each of them */
	double others_cores;      /* what everything else on the machine used meanwhile */
	double read_bytes, written_bytes; /* storage, over the run */
	VEC(struct usage_gpu) gpus;       /* those the job uses or is given first */
	VEC(struct usage_gpu_process) gpu_processes;
};

struct cannot_tell {
	const char *cause;
	char why[160];
};

struct overhead {
	double cpu_share_of_core, rss_bytes;
	double samples, samples_skipped;
	double stack_samples, stack_unproven, stack_partial; /* NAN: stacks were not read */
};

struct verdict {
	const struct run_info *run; /* borrowed from the window */
	int64_t from_ns, to_ns;     /* the steady window */
	char window_why[96];
	struct steps steps;
	/* Wall time of the window by steps of the process the time ledger is about; NAN: the window
	 * was not chosen by steps. */
	double step_wall_s;
	int level;
	struct usage usage;            /* over the whole run */
	double cpu_seconds, cpu_cores; /* CPU ledger: what the kernel charged, over the window */
	VEC(struct ledger_line) cpu;
	double cpu_unaccounted; /* share, may be slightly negative */
	/* Time ledger: where the wall time of the critical thread went, over the window. */
	int64_t time_pid, time_tid; /* 0: no stacks of it */
	char time_name[64];         /* of the thread's process, safe to show */
	bool time_native; /* that thread runs no Python: what is in no state is its native code */
	VEC(struct ledger_line) time;
	double time_unaccounted; /* share */
	double time_error;       /* half the 95 % interval of the largest share, by its samples */
	VEC(struct thread_role) roles;
	char level_why[420]; /* why not higher, and what to do; "" when it is as high as it gets */
	bool level_refused;  /* ...it was refused, and something can be done about it */
	VEC(struct finding) findings; /* ranked by gain */
	VEC(struct finding) notes;
	/* With all findings mended, when there are several: not their sum. NAN otherwise. */
	double together, together_low, together_high;
	VEC(struct cannot_tell) blind;
	bool healthy;      /* nothing was found... */
	bool judged;       /* ...though the run was long enough to be judged */
	const char *limit; /* "cpu_bound", "data"...; NULL unknown */
	struct overhead overhead;
	struct facts *facts; /* all that the rules were told; without its book of stacks */
};

/* 0 or -errno. `whole` is the whole run; the steady window is chosen inside. */
int explain(const struct window *whole, struct verdict *ret);
void verdict_done(struct verdict *v);

struct render_style {
	bool color;
	unsigned max_lines; /* 0: no limit; 12 at the end of `run` */
	unsigned width;     /* 0: 100 */
	bool no_tables;     /* of ledgers: whoever asks shows them elsewhere */
};
/* The line about GPUs: "0.37 of 1 GPU busy (...), ..."; nothing without a GPU. */
void usage_gpus_text(const struct usage *u, struct buf *out);
/* "A100-SXM4-80GB MIG 3g.40gb": the name, with the profile of a partition unless it has it already. */
const char *usage_gpu_name(const struct usage_gpu *g, char *buf, size_t size);
/* "until 2.9 s: hangs", "3.0 s only"; "" when it was read throughout. */
const char *usage_gpu_read(const struct usage_gpu *g, char *buf, size_t size);
/* For people. */
void render_text(const struct verdict *v, const struct render_style *style, struct buf *out);
/* All facts, one a row: what the verdict rests on. render_facts.c */
void render_facts(const struct verdict *v, struct buf *out);
/* {"schema": "spotter.facts/1", "facts": {"cores.used": {...}}} */
void render_facts_json(const struct verdict *v, struct buf *out);
/* To be pasted where people talk. */
void render_markdown(const struct verdict *v, struct buf *out);
/* {"schema": "spotter.verdict/1", ...} */
void render_json(const struct verdict *v, struct buf *out);

#endif
