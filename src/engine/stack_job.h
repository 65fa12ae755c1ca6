/* SPDX-License-Identifier: MIT
 *
 * The job as the stack sampler sees it: its processes and threads, told by the lives of the sampler's
 * frames, and what is needed to look into each: the Python reader, the wait reader, the native reader.
 * All of it is the stack thread's own.
 */
#ifndef SPOTTER_ENGINE_STACK_JOB_H
#define SPOTTER_ENGINE_STACK_JOB_H

#include "base/map.h"
#include "base/vec.h"
#include "engine/source_text.h"
#include "engine/stack_leaf.h"
#include "engine/stack_pace.h"
#include "engine/stack_tally.h"
#include "stack/native/native.h"
#include "stack/py/py.h"
#include "stack/wait/wait.h"

/* Native callers inside of a Python line. Further out it is the line that counts. */
enum { STACK_NATIVE_DEPTH = 24 };

/* A frame of a Python stack, and the node of it with all that called it. */
struct stack_step {
	uint64_t frame; /* code << 32 | offset */
	uint32_t node;
};

struct stack_thread {
	pid_t tid;
	uint32_t entity;
	int64_t seen_ns; /* last sample; 0: none yet */
	struct wait_state state;
	struct stack_row row; /* of the last sample */
	bool ran;             /* seen on a CPU at the last look */
	bool fresh;           /* not looked at yet */
	bool watched;         /* by perf */
	int64_t asked_ns;     /* its native stack was asked for: when; 0: not */
	int64_t ran_ns;       /* when it was last seen on a CPU */
	/* With the native callers of its last wait inside of its Python stack: good while pc, sp and run
	 * time stand still, and that stack does. */
	uint64_t pc, sp, run_ns;
	uint32_t callers_of, callers; /* nodes */
	bool nameless;                /* not all have their names yet */
	uint8_t returns; /* times it came back to that wait, and they were not looked for */
	/* Its last Python stack, outermost first: most of it is the same at the next look, and is not
	 * looked up again. */
	VEC(struct stack_step) steps;
};

/* How a process is read, told once in an event. */
enum stack_access {
	ACCESS_UNKNOWN,
	ACCESS_WAITS,   /* no Python in it: waits and native callers */
	ACCESS_PYTHON,  /* Python stacks too */
	ACCESS_REFUSED, /* nothing but /proc */
	ACCESS_FOREIGN, /* a Python we cannot read: waits only */
};

struct stack_proc {
	pid_t pid;
	pid_t
	    via; /* whose number its memory is read by: its own, or, once its first thread has ended,
		    * that of another thread of it */
	uint32_t entity, parent;
	int64_t started_ns; /* wall clock, ns */
	struct py_process *py;
	struct wait_process *wait;
	struct native_process *native;
	struct py_stacks stacks;
	struct map places; /* code << 32 | offset -> place of the book */
	int64_t from_ns;   /* too young before that to be looked at */
	int64_t try_ns,
	    again_ns; /* next attempt to find a Python in it, and how long to wait then */
	enum stack_access access, told;
	bool told_no_leaf;
	char why[724];            /* why not better, what to do */
	int64_t period_ns;        /* between two looks at it, on average */
	int64_t period_before_ns; /* the same when it was last looked at */
	int64_t cpu_ns;           /* of its clock at the last look; -1: none yet */
	bool gone, refused;
	bool leads;          /* looked at every time (stack_lead.c) */
	bool rests;          /* for some seconds it has done nothing */
	unsigned rested;     /* seconds of that */
	int64_t cpu_then_ns; /* of its clock when that was last asked */
	unsigned children;
	unsigned looks;      /* at its Python: the first few come at once, it may not live long */
	unsigned leaf_looks; /* since it was last asked for a native leaf */
	bool asked_perf;     /* whether its first thread may be sampled was tried */
	VEC(struct stack_thread) threads; /* the first is the process's own */
};

struct stack_counts {
	uint64_t samples, complete, partial, unproven;
};

struct stack_job {
	VEC(struct stack_proc *) procs;
	struct map by_entity; /* process entity -> place in procs */
	struct map by_pid;
	struct wait_job *waits;
	bool pids_changed;
	struct native_shared *shared; /* what the native readers have in common; NULL: nothing */
	struct native_perf *perf;     /* NULL: off */
	struct source_text *source;
	struct stack_tally *tally;
	struct stack_counts counts;
	struct py_counts gone_counts; /* of processes that were let go */
	bool joined;                  /* a sampled native leaf was had */
	struct py_stacks again;       /* the second look of a pair around a native sample */
	uint32_t leaf_turn;           /* which thread of a process is asked for its native leaf */
	bool asked;                   /* somebody was, in this look */
	int64_t leaf_ns;              /* when it was armed */
	struct stack_leaves leaves;
	bool told_no_leaf, told_no_callers;
	int64_t period_ns; /* of the clock now */
	/* Those that do not lead (loader workers, mostly, which are many and alike) take turns: each is
	 * looked at every `stride` times. */
	unsigned stride, turn;
	size_t followers;
	int64_t lead_ns; /* when it was last asked who does anything */
	int64_t swept_ns;
	struct stack_purse purse; /* for finding interpreters */
};

int stack_job_open(struct stack_job *j, struct stack_tally *tally, double hz);
void stack_job_close(struct stack_job *j);
/* One life of a frame, copied. */
void stack_job_life(struct stack_job *j, const struct life *l, int64_t wall_ns, int64_t boot_ns);
/* Looks for Python in processes that are due, for 2 ms or one. share: of a core, for all of stacks;
 * 0: any. Returns the CPU time it took, ns. */
int64_t stack_job_attach(struct stack_job *j, int64_t now_ns, double share);
/* When the next process is to be tried; INT64_MAX: none, or nothing is left for it now. */
int64_t stack_job_next_try(const struct stack_job *j);
/* What is known of its interpreter holds no longer. */
void stack_job_unlearn(struct stack_job *j, struct stack_proc *p);
/* Its memory is not to be had by the number it was read by: by another thread's, if there is one. */
void stack_job_lost(struct stack_job *j, struct stack_proc *p, int64_t now_ns);
/* The readers of a process were refused, or work: what the record should say about it, once. */
void stack_job_tell(struct stack_job *j, struct frame *f);
/* 1, 2, 3: what could be observed so far. */
int stack_job_level(const struct stack_job *j);

/* stack_look.c: one sample of every thread of the job, added to the tally. */
void stack_job_look(struct stack_job *j, int64_t now_ns);

#endif
