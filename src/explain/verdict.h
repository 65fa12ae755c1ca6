/* SPDX-License-Identifier: MIT
 *
 * The verdict: everything `spotter why` says, as data (DESIGN section 5). explain() fills it from a
 * window; render_text and render_json show it. Absent numbers are NAN and never printed.
 */
#ifndef SPOTTER_EXPLAIN_VERDICT_H
#define SPOTTER_EXPLAIN_VERDICT_H

#include "base/vec.h"
#include "model/finding.h"
#include "model/window.h"

struct buf;

struct ledger_line {
	char role[32]; /* CPU ledger: role; time ledger: state */
	int processes, threads;
	double cores, seconds, share;
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
};

struct cannot_tell {
	const char *cause;
	char why[160];
};

struct overhead {
	double cpu_share_of_core, rss_bytes;
	double samples, samples_skipped;
};

struct verdict {
	const struct run_info *run; /* borrowed from the window */
	int64_t from_ns, to_ns;     /* the steady window */
	char window_why[96];
	int level;
	struct usage usage;            /* over the whole run */
	double cpu_seconds, cpu_cores; /* CPU ledger: what the kernel charged, over the window */
	VEC(struct ledger_line) cpu;
	double cpu_unaccounted;       /* share, may be slightly negative */
	VEC(struct finding) findings; /* ranked by gain */
	VEC(struct finding) notes;
	VEC(struct cannot_tell) blind;
	bool healthy;      /* nothing was found... */
	bool judged;       /* ...though the run was long enough to be judged */
	const char *limit; /* "cpu_bound", "data"...; NULL unknown */
	struct overhead overhead;
};

/* 0 or -errno. `whole` is the whole run; the steady window is chosen inside. */
int explain(const struct window *whole, struct verdict *ret);
void verdict_done(struct verdict *v);

struct render_style {
	bool color;
	unsigned max_lines; /* 0: no limit; 12 at the end of `run` */
	unsigned width;     /* 0: 100 */
};
/* For people. */
void render_text(const struct verdict *v, const struct render_style *style, struct buf *out);
/* {"schema": "spotter.verdict/1", ...} */
void render_json(const struct verdict *v, struct buf *out);

#endif
