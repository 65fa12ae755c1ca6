/* SPDX-License-Identifier: MIT
 *
 * What the job's threads did in the steady window, from stacks: read once for a scene, each sample given
 * a state (DESIGN: time ledger), each thread a role (CPU ledger). Ledgers and facts go over these rows.
 *
 * A thread's samples are weighed against the kernel's own accounts of it: the states on a CPU add up to
 * the time it ran, cpu_queue is its run delay, and the states of waiting share the rest. What samples
 * do not tell is unaccounted.
 *
 * Where to add: a phase is a row in ledger/phases.c, a role a row in ledger/roles.c.
 */
#ifndef SPOTTER_EXPLAIN_ACTIVITY_H
#define SPOTTER_EXPLAIN_ACTIVITY_H

#include "base/map.h"
#include "base/vec.h"
#include "explain/place.h"

struct scene;

/* In the order they are shown. Names: time_state_name(). */
enum time_state {
	TIME_DATA_WAIT,    /* blocked on the loader, or taking what it made */
	TIME_DATA_LOAD,    /* loading or transforming in this thread itself */
	TIME_TRANSFER,     /* host-device copies */
	TIME_DISPATCH,     /* framework code on the CPU */
	TIME_PYTHON,       /* other code on the CPU */
	TIME_GPU_WAIT,     /* blocked or spinning on the device */
	TIME_COMM_WAIT,    /* collectives */
	TIME_IO,           /* checkpoints, logs */
	TIME_CPU_QUEUE,    /* runnable, not running */
	TIME_MEMORY_STALL, /* faults, swap, reclaim */
	TIME_LOCK_WAIT,    /* GIL, locks */
	TIME_IDLE,         /* asleep, or waiting for events, a child, a terminal */
	TIME_OTHER,
	TIME_STATES,
};

enum cpu_role {
	ROLE_MAIN,
	ROLE_LOADER_WORKER,
	ROLE_PIN_THREAD,
	ROLE_BLAS_THREADS,
	ROLE_COMM_THREADS,
	ROLE_SPIN_WAIT, /* CPU time of any role that was spent spinning on the device */
	ROLE_FRAMEWORK_THREADS,
	ROLE_TOKENIZER_THREADS,
	ROLE_CHILD,
	ROLE_KERNEL_SIDE,
	ROLE_OTHER,
	ROLES,
};

const char *time_state_name(enum time_state s); /* "data_wait" */
const char *cpu_role_name(enum cpu_role r);     /* "loader_worker" */

/* Samples of one thread that are alike, over the whole window. */
struct act_row {
	uint32_t node, peer;
	uint8_t kind, on, flags; /* enum wait_kind, stack_flag */
	bool on_cpu;             /* running; queued as well where nothing tells the two apart */
	bool unknown;            /* tells nothing: unaccounted */
	bool matched;            /* a row of the phase table said so, not the kind of wait alone */
	bool sure;      /* of loading: frames that only a training has, not what any program does */
	bool pooled;    /* the work of a pool that serves anybody */
	bool importing; /* a module is being imported */
	bool trains;    /* inside of a function that is called as trainings are */
	bool teaches;   /* of these: by its text arrays go down a gradient in it */
	uint8_t phase;  /* enum phase, PHASE_NONE: no row of the table */
	enum time_state state;
	uint32_t topics;      /* TOPIC_BIT() of what its frames are about */
	uint32_t text_topics; /* of these: by the text of the program */
	uint32_t
	    place; /* where: innermost Python place that is the user's own (no library), 0: none */
	uint32_t leaf;   /* innermost Python place, 0: none */
	uint32_t native; /* innermost native place, 0: none */
	uint32_t count;
	double seconds;            /* what the samples stand for */
	int64_t first_ns, last_ns; /* the slices of time they are in */
};

struct act_thread {
	uint32_t id, process; /* entities */
	const char *name;     /* foreign text, borrowed */
	bool first;           /* the first thread of its process */
	bool by_hand;         /* it trains with arrays alone, without a framework */
	bool
	    computes; /* a helper that is given parts of the training itself: it learns, and loads nothing */
	enum cpu_role role;
	size_t row, n_rows; /* in activity.rows, the longest first */
	uint32_t samples;
	double covered;    /* seconds its samples stand for */
	double alive;      /* seconds of the window in which it was there */
	double run, queue; /* seconds on a CPU and queued for one, by the kernel; NAN not known */
	double state[TIME_STATES]; /* seconds, weighed as said above */
	double unaccounted;        /* seconds; state and this add up to alive */
	double
	    gil_wait; /* seconds of the above (lock_wait or else) in which it waited for the GIL */
	double gil_held; /* seconds on a CPU with the GIL held; with `run`: the rest had none */
};

struct activity {
	bool any;            /* stacks were recorded in the window */
	const char *why_not; /* otherwise */
	VEC(struct act_row) rows;
	VEC(struct act_thread) threads;
	struct map by_id; /* thread entity -> place in threads */
	struct map first; /* process entity -> place in threads of its first thread */
	int critical;     /* the thread training waits for: place in threads, -1: none */
	uint64_t samples, unproven, partial;
	const struct stack_book *book;
};

/* Fills s->activity from the steady window; scene_open() calls it behind its census. 0 or -errno. */
int activity_open(struct scene *s);
void activity_done(struct activity *a);
/* Is it a frame of the machinery of imports? */
bool activity_imports(const struct place *p);
/* Samples of a binomial share: half the width of its 95 % interval (Wilson), at least what one sample is
 * worth. For facts with intervals. */
double activity_error(double share, double samples);

#endif
