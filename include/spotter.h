/* SPDX-License-Identifier: MIT
 *
 * Tell Spotter what your training is doing: steps, loss, phases. For C and C++; link with -lspotter.
 *
 *	while (...) {
 *		spotter_phase_begin("evaluate");
 *		...
 *		spotter_phase_end("evaluate");
 *		spotter_step(loss);
 *	}
 *
 * Under `spotter run` these go into a ring in shared memory that the recorder reads. They never block,
 * never fail and never allocate after the first call of a thread; a mark costs under 100 ns. Without a
 * recorder every one of them does nothing. A ring that is full loses its oldest marks, and the record
 * says how many. All of them may be called from any thread, and from a forked child.
 */
#ifndef SPOTTER_H
#define SPOTTER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A step has ended. loss: NAN when there is none. Steps are counted from 1. */
void spotter_step(double loss);
/* The same with a number of your own: of a run that was resumed, say. */
void spotter_step_number(uint64_t step, double loss);
/* A number that is not per step: accuracy, learning rate... name: at most 63 bytes; at most 1000 names a
 * process. */
void spotter_scalar(const char *name, double value);
/* Phases may nest; an end without a begin is ignored. */
void spotter_phase_begin(const char *name);
void spotter_phase_end(const char *name);
/* Time the loop waited for data in this step, in nanoseconds. */
void spotter_data_wait(uint64_t ns);
/* 1 when a recorder listens. */
int spotter_active(void);

/* For bindings of other languages: any mark with one call. name: NULL where the kind has none. t_ns: of
 * CLOCK_MONOTONIC, 0 is now. */
enum spotter_kind {
	SPOTTER_STEP = 1,        /* number, value: loss or NAN */
	SPOTTER_SCALAR = 2,      /* name, value */
	SPOTTER_PHASE_BEGIN = 3, /* name */
	SPOTTER_PHASE_END = 4,   /* name */
	SPOTTER_DATA_WAIT = 5,   /* number: ns waited, ending now */
	SPOTTER_MICRO_STEP = 6,  /* a batch that did not end a step */
	SPOTTER_EPOCH = 7,       /* number */
	SPOTTER_SETTING = 8,     /* name, value: what the program set */
	SPOTTER_SOURCE = 9       /* name: who marks steps, "torch", "keras"...; once */
};
void spotter_mark(uint32_t kind, const char *name, uint64_t number, double value, int64_t t_ns);
/* $SPOTTER_MARKS has changed (a recorder was started or ended beside a program that lives on): the next
 * mark looks at it again. */
void spotter_reset(void);
/* For the Python package, which alone knows what to give here: a function that CPython calls directly. */
void *spotter_python(const void *const *functions, const char *name);

#ifdef __cplusplus
}
#endif

#endif
