/* SPDX-License-Identifier: MIT
 *
 * Series as a graph needs them: one value a stretch of time, all stretches equally long and the last of
 * them ending at the right edge. Rates of counters, means of gauges; NAN where nothing is known.
 */
#ifndef SPOTTER_TUI_LINE_H
#define SPOTTER_TUI_LINE_H

#include "model/window.h"

/* Two a column: graphs of up to 320 columns. */
enum { LINE_POINTS = 640, LINE_GPUS = 16 };

enum line_id {
	LINE_CPU,    /* cores: of the job, or of the machine */
	LINE_MEMORY, /* bytes: of a job its proportional memory, or see at_most */
	LINE_READ,   /* bytes a second, all disks of the machine */
	LINE_WRITTEN,
	LINE_STEPS,    /* a second, of the first rank that marks any */
	LINE_LOSS,     /* mean of the steps that said it, of the same rank */
	LINE_ALL_GPUS, /* share busy, mean over GPUs */
	LINE_GPU,      /* share busy of each, in the order given */
	LINE_IDS = LINE_GPU + LINE_GPUS,
};

struct line {
	bool any;
	bool at_most; /* LINE_MEMORY: pages that processes share are counted for each of them */
	float v[LINE_POINTS]; /* the last ends at right_ns */
};

struct line_spec {
	int64_t right_ns, step_ns;
	bool job;
	const uint32_t *gpus; /* entities */
	size_t n_gpus;
};

/* lines: LINE_IDS of them. w: all that is known; 0 or -errno. */
int lines_take(const struct window *w, const struct line_spec *spec, struct line *lines);

#endif
