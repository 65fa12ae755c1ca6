/* SPDX-License-Identifier: MIT
 *
 * The parts of the verdict for people, and what keeps their place when there is room for few lines.
 */
#ifndef SPOTTER_EXPLAIN_RENDER_H
#define SPOTTER_EXPLAIN_RENDER_H

#include "explain/verdict.h"

struct json;
struct page;

/* Several findings: each a little lighter; and what to do about the first, and what that gains, matters more
 * than the same of the others. */
enum { W_LATER = 100 };
enum weight {
	W_HEAD = 1000,
	W_STEPS = 960,
	W_VERDICT = 950,
	W_FIX = 900,
	W_GAIN = 890,
	W_AT = 875,
	W_CPU = 850,
	W_GPU = 840,
	W_TIME = 820,
	W_TOGETHER = 810,
	W_CALLED = 800,
	W_MEMORY = 750,
	W_BECAUSE = 600,
	W_LEVEL = 550,
	W_WHERE = 500,
	W_OTHERS = 450,
	W_DISK = 400,
	W_NOTE = 350,
	W_COST = 300,
	W_UNKNOWN = 250,
	W_DETAIL = 200,
};

enum { TIME_LINES_MAX = 32 };

/* render_steps.c; nothing when the training said nothing */
/* "1,204 steps, 6.3 a second (median 158 ms, 95 % under 171 ms), by torch" */
void render_steps(struct page *p, const struct verdict *v, bool all);
/* "steps": {...}, and "ranks": [...] */
void render_steps_json(struct json *j, const struct verdict *v);
void render_ranks_json(struct json *j, const struct verdict *v);
/* "6.3 a second", "one every 12.3 s" */
const char *step_rate_text(double hz, char *buf, size_t size);

/* render_ledger.c */
/* "waiting for data"; the state itself when it is a new one. */
const char *time_state_words(const struct verdict *v, const char *state);
/* The lines of the time ledger that have a share, the largest first: how many. */
size_t time_ledger_sorted(const struct verdict *v, const struct ledger_line **ret, size_t max);
/* "main thread of python3, pid 4711" */
const char *time_ledger_thread(const struct verdict *v, char *buf, size_t size);
/* "61 % waiting for data, 22 % framework code, ...": the time ledger on a line, the largest first; `all`
 * with what is below 1 %, and how sure it is. */
void render_time(struct page *p, const struct verdict *v, bool all);
/* "main 5.1 cores, 4 loader workers 1.2, ...": the CPU ledger on a line. */
void render_where(struct page *p, const struct verdict *v);
/* The CPU ledger as a table. */
void render_cpu(struct page *p, const struct verdict *v);

#endif
