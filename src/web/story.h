/* SPDX-License-Identifier: MIT
 *
 * A run as the data of a page, schema spotter.report/1: the verdict as `spotter why --json` has it, and
 * behind it all that is drawn or listed. Times are seconds since the run began; unknown is null in an
 * array and an absent key elsewhere; numbers have few digits, as the file shall be small.
 */
#ifndef SPOTTER_WEB_STORY_H
#define SPOTTER_WEB_STORY_H

#include "web/flame.h"
#include "web/timeline.h"

struct buf;
struct json;

/* How much of it: each level has half as many points and frames as the one before. */
enum { STORY_LEVELS = 4 };

struct story {
	const struct window *window; /* borrowed, as is the verdict */
	const struct verdict *verdict;
	unsigned level;
	struct timeline timeline;
	struct flame flame;
};

/* 0 or -errno. */
int story_take(const struct window *w, const struct verdict *v, unsigned level, struct story *ret);
void story_done(struct story *s);
/* All of it as one line of JSON. Out of memory shows as !buf_ok(out). */
void story_json(const struct story *s, struct buf *out);
/* The name of the run and its arguments made safe to show, and cut where they are long. */
struct run_info;
int story_run(const struct run_info *run, struct run_info *ret);

/* The parts: "steps" and "slow_steps"; processes, machine, settings, docs. */
void story_steps(const struct story *s, struct json *j);
void story_rows(const struct story *s, struct json *j);

/* A number with so many significant digits; null where it is not finite. */
void story_number(struct json *j, double v, int digits);
void story_key_number(struct json *j, const char *key, double v); /* four; not finite: nothing */

#endif
