/* SPDX-License-Identifier: MIT
 *
 * From what the user named (a run, or the number of a process) to a verdict; `why` and `report`
 * differ only in how much of it they show.
 */
#ifndef SPOTTER_CLI_JUDGE_H
#define SPOTTER_CLI_JUDGE_H

#include "cli/live.h"
#include "explain/verdict.h"

struct cli;
struct err;
struct record;

struct judged {
	struct record *record; /* NULL when a live process was looked at */
	struct live live;
	bool is_live;
	struct window window;
	struct verdict verdict;
};

/* A part of a run, nanoseconds since it began; 0, 0: all of it. */
struct judge_part {
	int64_t from_ns, to_ns;
};

/* word: RUN, PID or NULL (the last run). A run that is called like the number wins over a process.
 * duration_ns: how long to look at a process. */
int judge(struct cli *cli, const char *word, int64_t duration_ns, struct judged *ret,
	  struct err *e);
/* The same for a part of a run; of a process that runs now there is no part to be had: -EINVAL. */
int judge_part(struct cli *cli, const char *word, int64_t duration_ns, struct judge_part part,
	       struct judged *ret, struct err *e);
void judged_done(struct judged *j);

/* Opens a record and says what of it cannot be seen: one that another user could harm us by is read without its log. */
int judge_open(const struct cli *cli, const char *path, struct record **ret, struct err *e);
void judge_say_remark(const struct cli *cli, const char *path, struct record *r);

#endif
