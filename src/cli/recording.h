/* SPDX-License-Identifier: MIT
 *
 * What `run` and `attach` share: the description of a new run, the recorder's life around it, and
 * the words at its end.
 */
#ifndef SPOTTER_CLI_RECORDING_H
#define SPOTTER_CLI_RECORDING_H

#include "base/err.h"
#include "engine/recorder.h"

struct buf;

struct recording_options {
	const char *name, *out;
	double hz, budget;
	double stacks; /* looks at stacks a second; 0: none */
	uint64_t max_size;
	bool quiet;
	bool glances;     /* somebody will ask for them */
	const char *nvml; /* --nvml */
};

#define RECORDING_DEFAULTS                                                    \
	{                                                                     \
		.hz = 10, .stacks = 50, .budget = 0.01, .max_size = 256 << 20 \
	}

struct recording {
	struct recording_options options;
	struct run_info run;
	struct store_place place;
	const char *marks; /* folder of rings for the program, NULL: none */
	struct recorder *recorder;
	bool color; /* of the words at the end */
	unsigned width;
	struct err problem; /* why there is no recorder */
};

/* Fills run and place: who, what, where, and whether it can be written. argv is what the run is
 * called after. Nothing is started. */
int recording_prepare(struct recording *rec, char *const *argv, struct err *e);
/* Starts the recorder on this job. A failure is kept in rec->problem and shown at the end: the
 * program goes on without a record. */
void recording_start(struct recording *rec, struct job_spec job, pid_t supervisor);
/* Ends the record and puts the verdict, where the record is, and what went wrong into words. False
 * when there is no record. */
bool recording_stop(struct recording *rec, struct buf *words);
void recording_done(struct recording *rec);

#endif
