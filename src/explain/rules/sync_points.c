/* SPDX-License-Identifier: MIT
 *
 * sync_points: the training asks the device for a value in every step (.item(), .cpu(), print(loss)) and waits;
 * meanwhile it prepares nothing, so that afterwards the device waits for it.
 *
 * Not to be taken for it: a device that is busy all the time: there the wait only shows how long it works, and
 * without it the training would wait elsewhere; a device that is idle because the training waits for data, saves,
 * logs, evaluates or the like. Data that the thread loads itself would overlap as well, but
 * that has a cause of its own: only the rest of the idle time is promised here.
 *
 * Gain: what training thread and device do would overlap: the longer of both, instead of their sum. So not the
 * wait itself is won but the time the device is idle, at most, less what it is so for something else.
 */
#include "explain/loading.h"
#include "explain/stall.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double wait_least = 0.10, idle_least = 0.13, other_most = 0.5, comm_least = 0.05;
/* Of the waiting: with more to load, that is what is to be mended. */
static const double load_most = 2;
/* Of the work of its own: what is done where the value is read; and that work, as loop_overhead has it. */
static const double for_own_least = 0.6, own_least = 0.1;

/* What a training may be about while the device is idle, each with a name of its own. */
static const enum fact_id others[] = { FACT_TIME_DATA_WAIT, FACT_TIME_DATA_LOAD,
				       FACT_TIME_COMM_WAIT, FACT_DOING_CHECKPOINT,
				       FACT_DOING_LOG,      FACT_DOING_UPLOAD,
				       FACT_DOING_COMPILE,  FACT_DOING_START_WORKERS,
				       FACT_DOING_GC,       FACT_DOING_EVALUATE };
enum { OTHERS = sizeof(others) / sizeof(others[0]) };

/* What of its time it is about one of these, at least. Only what excludes each other is added up: garbage is collected
 * in the midst of anything, workers are started while data is waited for, a checkpoint may wait for other ranks. */
static double about_others(const struct facts *f)
{
	double data = f->v[FACT_TIME_DATA_WAIT].value +
		      fmin(f->v[FACT_TIME_DATA_LOAD].value, f->v[FACT_DOING_START_WORKERS].value);
	double rest = f->v[FACT_DOING_CHECKPOINT].value + f->v[FACT_DOING_LOG].value;

	rest = fmax(rest, f->v[FACT_TIME_COMM_WAIT].value);
	rest = fmax(rest, f->v[FACT_DOING_UPLOAD].value);
	rest = fmax(rest, f->v[FACT_DOING_COMPILE].value);
	rest = fmax(rest, f->v[FACT_DOING_EVALUATE].value);
	return fmax(data + rest,
		    fmax(f->v[FACT_DOING_START_WORKERS].value, f->v[FACT_DOING_GC].value));
}

/* The device and the loader have to do what they do now. */
static double left(const struct facts *f, enum loading_case c, double share)
{
	return fmax(stall_then(f, c, fmax(share, 0)), loading_supply_floor(f, c));
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	const struct fact *w = &f->v[FACT_DOING_READ_BACK];
	double idle, load = f->v[FACT_TIME_DATA_LOAD].value;
	char a[24];
	enum answer r = answer_and(rule_at_least(f, FACT_DOING_READ_BACK, wait_least, o),
				   rule_at_least(f, FACT_DEVICE_IDLE, idle_least, o));

	r = answer_and(
	    r, answer_and(rule_at_least(f, FACT_GPU_BUSY, 0.01, o),
			  answer_not(rule_at_least(f, FACT_GPU_BUSY, loading_gpu_busy, o))));
	for (int i = 0; i < OTHERS; i++)
		r = answer_and(r, rule_at_least(f, others[i], 0, o));
	if (r != ANSWER_YES)
		return r;
	/* While the device is idle the training mostly waits for data, say: that is what to fix. */
	idle = f->v[FACT_DEVICE_IDLE].value;
	if (about_others(f) > other_most * idle || load > load_most * w->value)
		return ANSWER_NO;
	num_percent(w->value, a, sizeof(a));
	rule_where(x, f, FACT_DOING_READ_BACK);
	snprintf(x->title, sizeof(x->title),
		 "the training stops for a value of the GPU in each step: %s of its time%s%s", a,
		 w->place ? ", at " : "", w->text);
	rule_because(x, f, FACT_DOING_READ_BACK, "%s of the time of %s is waiting for a value%s%s",
		     a, loading_thread(f), w->place ? ", most at " : "", w->text);
	rule_because(x, f, FACT_DEVICE_IDLE, "%s has nothing to do %s of the time",
		     f->v[FACT_GPU_BUSY].text, num_percent(idle, a, sizeof(a)));
	snprintf(x->fix, sizeof(x->fix),
		 "keep values on the GPU and read them every so many steps (loss.detach(), add up, "
		 "then one .item())");
	snprintf(x->edit, sizeof(x->edit), "total += loss.detach()  # total.item() every 50 steps");
	/* what the device is idle for while data is loaded is the loading's (no_workers) */
	rule_gain_of_time(x, left(f, LOADING_BEST, w->high),
			  left(f, LOADING_LIKELY, fmin(w->value * 0.9, idle - load)),
			  left(f, LOADING_WORST, fmin(w->low, idle - load) * 0.3));
	rule_gain_drifts(x, 1);
	snprintf(x->then, sizeof(x->then), "%s", stall_next(f, 1 / x->speedup));
	/* Ranks that exchange on the CPU need what the device made: that wait is part of the exchange. And who reads a value
	 * to compute with it gains by computing less often (loop_overhead), which spares the waiting, too. */
	x->note = f->v[FACT_TIME_COMM_WAIT].value >= comm_least ||
		  fact_or(f, FACT_RANKS_COMM, 0) >= comm_least ||
		  (fact_or(f, FACT_READ_FOR_OWN, 0) >= for_own_least &&
		   f->v[FACT_DOING_OWN].value >= own_least);
	x->confidence = 0.75;
	return ANSWER_YES;
}

const struct rule sync_points_rule = {
	.cause = "sync_points", .needs_s = 5, .check = check, .about_gpus = true
};
