/* SPDX-License-Identifier: MIT
 *
 * What one step used, from the samples that were taken during it. A step that is shorter than two
 * sample periods has none: what its neighbours used is not its own.
 */
#ifndef SPOTTER_MODEL_STEP_USAGE_H
#define SPOTTER_MODEL_STEP_USAGE_H

#include "model/window.h"

/* Numbers that are not known are NAN. */
struct step_usage {
	double cores;  /* CPU of the job; of a rank: its process and those it started */
	double memory; /* bytes, mean of the same */
	unsigned gpus; /* the process was on so many, as the driver lists it: */
	double gpu_busy, gpu_clock;   /* mean of them */
	double gpu_memory, gpu_power; /* sum over them: the devices', whoever else uses them */
};

/* Time between two samples around then, in seconds. */
double step_sample_period(const struct window *w);
/* A series that has a value for every tick: switches of the machine, of which there always are some
 * (ID_HOST); without them the number of ticks (ID_SELF), which is told once a second. */
enum metric_id step_tick_metric(const struct window *w);
/* False: the step is too short, or its times make no sense; *ret is then all NAN. */
bool step_usage(const struct window *w, const struct window_step *s, struct step_usage *ret);
/* Is this process on this GPU, as far as the driver says? */
bool step_on_gpu(const struct window *w, uint32_t process, uint32_t gpu);

/* Spoken of during training but no part of a step: evaluation, checkpoints. Foreign text. */
bool phase_is_aside(const char *name);

#endif
