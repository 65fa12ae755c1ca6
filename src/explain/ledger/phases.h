/* SPDX-License-Identifier: MIT
 *
 * Which part of a training a stack belongs to. One table of frames says it (phases.c): where a call of
 * a framework, a convention of plain programs or a driver's symbol means something, it has a row
 * there. What a phase means for the time ledger depends on what the thread was doing meanwhile
 * (running, waiting and for what): a second, smaller table.
 */
#ifndef SPOTTER_EXPLAIN_LEDGER_PHASES_H
#define SPOTTER_EXPLAIN_LEDGER_PHASES_H

#include "explain/activity.h"
#include "model/stacks.h"

enum phase {
	PHASE_NONE,
	PHASE_USER, /* the framework calls the user's code again: nothing outside of it counts */
	PHASE_LOADER_WAIT, /* takes a batch that others made */
	PHASE_QUEUE_GET, /* takes something that others made: data, if it is the training that waits */
	PHASE_LOAD,      /* makes a batch */
	PHASE_LOAD_GUESS, /* other programs do it as well: frameworks' frames inside of it say it
			     better, and alone it is no sign of a training */
	PHASE_WORKER,     /* serves somebody who makes batches, or waits to be asked */
	PHASE_WORK_WAIT,  /* a worker that waits to be asked */
	PHASE_PIN,
	PHASE_TRANSFER,
	PHASE_DISPATCH,
	PHASE_ENGINE, /* dispatch by the framework's own threads while this one waits for them */
	PHASE_COMPILE,
	PHASE_POOL,   /* native: a pool of threads of this process computes */
	PHASE_DRIVER, /* native: the GPU's driver, what for is not known */
	PHASE_HOST,   /* native: no device is involved, whatever the line says */
	PHASE_DEVICE_SYNC,
	PHASE_COMM,
	PHASE_CHECKPOINT,
	PHASE_LOG,
	PHASE_LAUNCH, /* waits for the processes it started */
	PHASE_JOIN,   /* waits for threads it started */
	PHASES,
};

enum phase_by {
	PHASE_BY_FRAME, /* function and file of a Python frame */
	PHASE_BY_LINE, /* text of the innermost Python line: C functions have no frame of their own */
	PHASE_BY_NATIVE, /* symbol and library */
};

/* Alternatives of a text are parted by '|', and '*' stands for anything. A name with a dot is compared
 * with as many parts of the qualified name; where only the bare name is known (before Python 3.11), with
 * that, if the row has a file. A file that ends with '/' is a folder anywhere in the path. */
struct phase_rule {
	enum phase phase;
	enum phase_by by;
	const char
	    *file; /* end of the path; native: of the library's name, the beginning; "" any */
	const char *name; /* function or, of a line, a piece of its text; "" any */
};

extern const struct phase_rule phase_rules[];
extern const size_t n_phase_rules;

/* The first row that holds, -1: none. With BY_LINE only rows of lines, otherwise those of its kind. */
int phase_match(const struct place *p, bool by_line);
/* A stack in `outer` calls `inner`: the phase from there on inwards. The outermost counts, but for
 * what a table says. */
enum phase phase_step(enum phase outer, enum phase inner, enum phase_by by);
/* What a thread does that is in this phase and does this. False: the phase does not say. `theirs`: it is
 * not the first thread of a process that trains, so that it waits for work, not for data. */
bool phase_state(enum phase p, enum wait_kind kind, bool theirs, enum time_state *ret);
/* Is it a row about data that only a training has: a framework's loader, batches, datasets? Files that
 * are read and pools that work are anybody's. */
bool phase_is_training(const struct phase_rule *r);
const char *phase_name(enum phase p);
/* Does a row of a table hold for this place? by_line: only rows of lines can, otherwise those of its kind.
 * A line that is a comment is no line of code (the file has changed): nothing holds. */
bool phase_holds(enum phase_by by, const char *file, const char *name, const struct place *p,
		 bool by_line);

/* Does a pattern with '*' hold for all of a text? */
bool phase_glob(const char *pattern, size_t n, const char *text, size_t len);
/* Does the text of a row (alternatives, file or name) hold for this one? */
bool phase_file(const char *file, const char *path);
bool phase_function(const char *names, const char *function, bool bare_too);

#endif
