/* SPDX-License-Identifier: MIT
 *
 * python_loop_preprocessing: the CPU time of loading is the program's own Python code, line by line,
 * where a library would do it in C.
 *
 * Not to be taken for it: a line that calls into C (its native leaf says so; without one, its text: see
 * facts/preprocess.c), libraries' code, and loading that holds nobody up: then it is a note, for the
 * cores it burns.
 *
 * Gain: Amdahl. A part a of loading becomes s times as fast: 10 times is likely, 3 is little, and no
 * time at all the bound, which is said as such. Where the training loads itself that is a part of its own time.
 * Where it waits for workers, a step takes as long as they need, down to what the training takes itself.
 */
#include "explain/loading.h"

#include "base/num.h"
#include "explain/place.h"
#include "explain/reading.h"

#include <math.h>
#include <stdio.h>

static const double python_least = 0.3;   /* of the CPU time of loading */
static const double loading_least = 0.03; /* cores */
static const double likely = 10, little = 3;

static void say(struct finding *x, const struct facts *f)
{
	const struct fact *py = &f->v[FACT_LOAD_PYTHON];
	bool workers = f->v[FACT_LOADER_WORKERS].value >= loading_workers_least;
	char a[24], b[24];

	rule_where(x, f, FACT_LOAD_PYTHON);
	snprintf(x->title, sizeof(x->title),
		 "data is prepared by Python code line by line: %s of the CPU time of loading%s%s",
		 num_percent(py->value, a, sizeof(a)), py->place ? ", at " : "", py->text);
	rule_because(x, f, FACT_LOAD_PYTHON,
		     "%s of the CPU time of loading is Python code, with what it calls for single "
		     "elements%s%.60s",
		     num_percent(py->value, a, sizeof(a)), x->where.function[0] ? ", most in " : "",
		     x->where.function);
	rule_because(x, f, FACT_LOAD_CPU, "loading uses %s cores, in %s",
		     num_cores(f->v[FACT_LOAD_CPU].value, a, sizeof(a)),
		     workers ? "workers" : loading_thread(f));
	if (workers)
		rule_because(x, f, FACT_TIME_DATA_WAIT, "%s waits for data %s of its time",
			     loading_program(f),
			     num_percent(fact_or(f, FACT_TIME_DATA_WAIT, 0), b, sizeof(b)));
	else
		rule_because(x, f, FACT_TIME_DATA_LOAD, "loading is %s of the time of %s",
			     num_percent(f->v[FACT_TIME_DATA_LOAD].value, b, sizeof(b)),
			     loading_thread(f));
	snprintf(x->fix, sizeof(x->fix),
		 "do it for whole arrays or batches at once (numpy, torch, cv2, Pillow, "
		 "__getitems__), compile the loop (numba, Cython), or prepare the data once and "
		 "keep it");
}

static bool same_function(const struct facts *f, enum fact_id a, enum fact_id b)
{
	const struct place *p = f->book ? stack_book_find_place(f->book, f->v[a].place) : NULL;
	const struct place *q = f->book ? stack_book_find_place(f->book, f->v[b].place) : NULL;

	return p && q && place_function(p) == place_function(q);
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	const struct fact *py = &f->v[FACT_LOAD_PYTHON];
	enum answer a = answer_and(rule_at_least(f, FACT_LOAD_CPU, loading_least, o),
				   rule_at_least(f, FACT_LOAD_PYTHON, python_least, o));

	if (a != ANSWER_NO || py->high >= 2 * python_least) {
		enum answer used = loading_is_for_training(f, o);

		if (used != ANSWER_YES)
			return answer_and(a == ANSWER_NO ? ANSWER_CANNOT_TELL : a, used);
	}
	/* Lines that may or may not call into C decide: only a native leaf would tell. */
	if (a == ANSWER_NO && f->v[FACT_LOAD_CPU].known && f->v[FACT_LOAD_PYTHON].known &&
	    f->v[FACT_LOAD_CPU].value >= loading_least && py->high >= 2 * python_least)
		return rule_cannot_tell(o, "whether its lines or C code they call take the time "
					   "is known from native stacks only (level L3)");
	if (a != ANSWER_YES)
		return a;
	/* That has a name and a fix of its own; so has a loop that mostly opens files. */
	a = answer_not(rule_at_least(f, FACT_LOAD_TOKENIZE, fmax(0.3, 0.7 * py->value), o));
	if (same_function(f, FACT_LOAD_FILES, FACT_LOAD_PYTHON))
		a = answer_and(
		    a, answer_not(answer_and(rule_at_least(f, FACT_LOAD_FILES, py->value, o),
					     reading_small_files(f, o))));
	a = answer_and(a, answer_and(rule_at_least(f, FACT_GPU_BUSY, 0, o),
				     rule_at_least(f, FACT_LOADER_WORKERS, 0, o)));
	a = answer_and(a, rule_at_least(f, FACT_TIME_DATA_WAIT, 0, o));
	if (f->v[FACT_LOADER_WORKERS].known &&
	    f->v[FACT_LOADER_WORKERS].value >= loading_workers_least)
		a = answer_and(a, rule_at_least(f, FACT_LOADER_BUSY, 0, o));
	if (a != ANSWER_YES)
		return a;
	say(x, f);
	rule_gain_of_time(
	    x, loading_stage_faster(f, LOADING_BEST, py->high, INFINITY, loading_wall_per_cpu(f)),
	    loading_stage_faster(f, LOADING_LIKELY, py->value, likely, loading_wall_per_cpu(f)),
	    loading_stage_faster(f, LOADING_WORST, py->low, little, 1));
	rule_gain_drifts(x, loading_cpu_part(f));
	rule_gain_at_most(x, 1 / x->high);
	if (x->speedup > 1)
		snprintf(x->then, sizeof(x->then), "%s",
			 1 / x->speedup > loading_gpu_floor(f, LOADING_LIKELY) + 0.01
			     ? "its own work"
			     : "GPU-bound");
	x->note = loading_of_one_rank(f) || loading_waits_for_few(f);
	x->confidence = fact_or(f, FACT_LOAD_NATIVE, 0) > 0.5 ? 0.85 : 0.6;
	return ANSWER_YES;
}

const struct rule python_loop_preprocessing_rule = { .cause = "python_loop_preprocessing",
						     .needs_s = 5,
						     .check = check };
