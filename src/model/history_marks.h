/* SPDX-License-Identifier: MIT
 *
 * What the training said in the recent past: the part of a history that keeps it. The same frames give
 * the same steps, phases and scalars as the reader of a run file gives.
 */
#ifndef SPOTTER_MODEL_HISTORY_MARKS_H
#define SPOTTER_MODEL_HISTORY_MARKS_H

#include "model/name_set.h"
#include "model/training.h"

/* Kept at most; when there are more the older half goes. */
enum {
	HISTORY_STEPS = 1 << 16,
	HISTORY_SCALARS = 1 << 16,
	HISTORY_PHASES = 1 << 12,
	HISTORY_SETTINGS = 1 << 10,
};

struct history_phase {
	uint32_t id; /* rising */
	struct window_phase is;
};

/* {0} is empty. */
struct history_marks {
	struct training training;
	struct name_set names;
	VEC(struct window_step) steps;
	VEC(struct window_scalar) scalars, settings;
	VEC(struct history_phase) phases;
	VEC(struct window_phase) shown; /* phases as they were given out last */
	/* Who marks steps: the last that said so. */
	const char *source;
	int64_t source_ns;
	uint32_t source_entity;
	bool unsorted; /* steps and scalars */
};

void history_marks_done(struct history_marks *h);
/* Takes the marks of a frame: 0 or -ENOMEM. */
int history_marks_frame(struct history_marks *h, const struct frame *f);
/* Forgets steps and scalars of before this time, phases that ended before it. */
void history_marks_forget(struct history_marks *h, int64_t before_ns);

/* As in window_ops. */
const struct window_step *history_steps(struct history_marks *h, size_t *ret_n);
const struct window_scalar *history_scalars(struct history_marks *h, size_t *ret_n);
const struct window_scalar *history_settings(struct history_marks *h, size_t *ret_n);
const struct window_phase *history_phases(struct history_marks *h,
					  const struct entity_table *entities,
					  const struct run_info *run, size_t *ret_n);

#endif
