/* SPDX-License-Identifier: MIT
 *
 * shm_full: /dev/shm, through which loader workers hand over their batches, had no room left: a process that
 * touches a page it cannot have dies by SIGBUS, a call that asks for it fails, or all wait for ever.
 *
 * Not to be taken for it: a /dev/shm that is full while the job goes on, whoever fills it; and a SIGBUS for
 * another reason (a mapped file that was cut short): where /dev/shm was not seen full, it cannot be told.
 *
 * There is no speed-up to predict: the run can finish.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <stdio.h>
#include <string.h>

static const double full_least = 0.9;  /* it is read every few seconds only */
static const double brim_least = 0.98; /* while it stands still */
static const double hang_least = 20, hang_share_least = 0.2;

static enum answer died(const struct facts *f, struct opinion *o)
{
	enum answer bus = rule_at_least(f, FACT_RUN_SIGBUS, 1, o);
	enum answer full = rule_at_least(f, FACT_SHM_FILL, full_least, o);
	char a[24];

	if (bus == ANSWER_YES && full == ANSWER_NO)
		return rule_cannot_tell(
		    o,
		    "a process died by SIGBUS, but /dev/shm was never seen more "
		    "than %s full: it is read every few seconds",
		    num_percent(f->v[FACT_SHM_FILL].value, a, sizeof(a)));
	return answer_and(bus, full);
}

/* Without a signal that was seen: it failed by itself, or stood still, while there was no room, and there are
 * workers that need it. What a hook heard of another exception clears it. */
static enum answer starved(const struct facts *f, struct opinion *o)
{
	bool by_signal = strncmp(f->v[FACT_RUN_FAILED].text, "SIG", 3) == 0;
	enum answer failed = by_signal ? ANSWER_NO
				       : answer_and(rule_at_least(f, FACT_RUN_FAILED, 1, o),
						    rule_at_least(f, FACT_SHM_FILL, full_least, o));
	enum answer hung = answer_and(rule_at_least(f, FACT_HANG, hang_least, o),
				      rule_at_least(f, FACT_HANG_SHARE, hang_share_least, o));
	enum answer a;

	if (f->v[FACT_RUN_SHARED_MEMORY].known)
		failed = ANSWER_NO;
	a = answer_or(failed,
		      answer_and(hung, rule_at_least(f, FACT_SHM_FILL_LAST, brim_least, o)));
	if (a != ANSWER_YES)
		return a;
	return rule_at_least(f, FACT_LOADER_WORKERS, loading_workers_least, o);
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	bool said = fact_or(f, FACT_RUN_SHARED_MEMORY, 0) >= 1;
	enum answer bus = died(f, o), r = said ? ANSWER_YES : answer_or(bus, starved(f, o));
	bool hung = fact_or(f, FACT_HANG, 0) >= hang_least;
	const char *who = f->v[FACT_RUN_SIGBUS].text;
	char a[24], b[24];

	if (r != ANSWER_YES)
		return r;
	num_bytes(fact_or(f, FACT_SHM_SIZE, 0), b, sizeof(b));
	if (bus == ANSWER_YES)
		snprintf(x->title, sizeof(x->title), "/dev/shm (%s) was full: %s died by SIGBUS", b,
			 who[0] ? who : "a process of the job");
	else
		snprintf(x->title, sizeof(x->title), "/dev/shm%s%s%s was full: the run %s",
			 f->v[FACT_SHM_SIZE].known ? " (" : "", f->v[FACT_SHM_SIZE].known ? b : "",
			 f->v[FACT_SHM_SIZE].known ? ")" : "", hung ? "stood still" : "failed");
	if (said)
		rule_because(x, f, FACT_RUN_SHARED_MEMORY, "the exception that ended it says so");
	if (bus == ANSWER_YES)
		rule_because(x, f, FACT_RUN_SIGBUS,
			     "processes of the job that died by SIGBUS: %.0f",
			     f->v[FACT_RUN_SIGBUS].value);
	rule_because(x, f, FACT_SHM_FILL, "%s of %s of /dev/shm were seen in use",
		     num_percent(f->v[FACT_SHM_FILL].value, a, sizeof(a)), b);
	if (hung)
		rule_because(x, f, FACT_HANG, "it did nothing in its last %s",
			     num_seconds(f->v[FACT_HANG].value, a, sizeof(a)));
	if (said)
		rule_where_ended(x, f);
	if (f->v[FACT_LOADER_MADE].known)
		rule_where(x, f, FACT_LOADER_MADE);
	rule_because(x, f, FACT_LOADER_WORKERS, "%.0f loader workers hand over batches through it",
		     fact_or(f, FACT_LOADER_WORKERS, 0));
	snprintf(
	    x->fix, sizeof(x->fix),
	    "give it more room (docker run --shm-size=8g or --ipc=host; Kubernetes: an emptyDir "
	    "with medium Memory on /dev/shm), or need less: fewer workers, a smaller "
	    "prefetch_factor; rm what dead programs left there");
	x->cost = 1;
	x->confidence = said || bus == ANSWER_YES ? 0.95 : 0.6;
	snprintf(x->then, sizeof(x->then), "the run can finish");
	return ANSWER_YES;
}

const struct rule shm_full_rule = { .cause = "shm_full", .needs_s = 0, .check = check };
