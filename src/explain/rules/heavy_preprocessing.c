/* SPDX-License-Identifier: MIT
 *
 * heavy_preprocessing: the training waits for its loader, and the workers have all the cores there are:
 * each batch costs too much CPU time (decoding, augmenting), and more workers would only share.
 *
 * Not to be taken for it: cores that other programs use (cpu_neighbour), a quota (cpu_quota), cores that
 * are free (too_few_workers), workers that wait for storage; and work that has a name of its own and a fix of
 * its own: unpacking, tokenising, Python loops, many small files.
 *
 * Gain: a step takes the CPU time of its batch and the training's own, shared by the cores. Decoding with a
 * faster library or to a smaller size makes it 2 to 5 times as fast by most reports; a transform may become anything: in five
 * programs nobody had tried it was 3 times to far more than 10. Nobody can know without trying, so the interval is wide, and
 * what it would be if that part cost nothing is said as well.
 */
#include "explain/loading.h"

#include "base/num.h"
#include "explain/pipeline.h"
#include "explain/reading.h"

#include <math.h>
#include <stdio.h>

static const double busy_least = 0.5, queued_busy_least = 0.75,
		    others_most = 0.5; /* shares, cores */
static const double storage_most = 0.3, named_least = 0.4, full_least = 0.85;

/* What the workers do that could be done faster or beforehand: decoding, or another function that has more of their
 * time, by as much as samples tell. */
static enum fact_id largest(const struct facts *f)
{
	const struct fact *decode = &f->v[FACT_LOAD_DECODE];

	return decode->known && decode->value >= 0.2 &&
		       decode->high >= fact_or(f, FACT_LOAD_PLACE, 0)
		   ? FACT_LOAD_DECODE
		   : FACT_LOAD_PLACE;
}

static double then(const struct facts *f, enum loading_case c, double times)
{
	double share = fmin(1, fact_or(f, largest(f), 0.5)), now, after;
	struct pipeline p;

	if (!loading_pipeline(f, c, &p))
		return 1;
	now = pipeline_step(&p);
	p.make_cpu *= 1 - share * (1 - 1 / times);
	after = pipeline_step(&p);
	return loading_played(f, c, now, after);
}

static enum answer cores_are_full(const struct facts *f, struct opinion *o)
{
	double used, allowed;
	enum answer ready = answer_or(
	    rule_at_least(f, FACT_LOADER_BUSY, 0.8, o),
	    answer_and(rule_at_least(f, FACT_LOADER_BUSY, busy_least, o),
		       rule_at_least(f, FACT_LOADER_QUEUED,
				     queued_busy_least - fact_or(f, FACT_LOADER_BUSY, 0), o)));

	if (!fact_value(f, FACT_CORES_USED, &used) || !fact_value(f, FACT_CORES_ALLOWED, &allowed))
		return answer_and(rule_at_least(f, FACT_CORES_USED, 0, o),
				  rule_at_least(f, FACT_CORES_ALLOWED, 0, o));
	/* what helping threads burn while they wait for work is there for another worker */
	if (f->v[FACT_CORES_SPINNING].known)
		used -= f->v[FACT_CORES_SPINNING].low;
	return answer_and(ready, used >= full_least * allowed ? ANSWER_YES : ANSWER_NO);
}

/* Work that has a rule of its own. */
static enum answer has_a_name(const struct facts *f, struct opinion *o)
{
	enum answer a = answer_or(rule_at_least(f, FACT_LOAD_DECOMPRESS, named_least, o),
				  rule_at_least(f, FACT_LOAD_TOKENIZE, named_least, o));

	/* a line that opens a file and decodes all of it counts as both */
	if (fact_or(f, FACT_LOAD_DECODE, 0) < named_least)
		a = answer_or(a, reading_small_files(f, o));
	return answer_or(a, rule_at_least(f, FACT_LOAD_PYTHON, named_least, o));
}

static void say(struct finding *x, const struct facts *f)
{
	double now = fmax(1, round(fact_or(f, FACT_LOADER_WORKERS, 1)));
	bool decode = largest(f) == FACT_LOAD_DECODE;
	char a[24], b[24];

	snprintf(x->title, sizeof(x->title),
		 "a batch costs too much CPU time: the workers use every core, and %s waits %s of "
		 "its time",
		 loading_program(f), num_percent(fact_or(f, FACT_TIME_DATA_WAIT, 0), a, sizeof(a)));
	loading_because_held_up(x, f);
	rule_because(x, f, FACT_LOADER_BUSY, "its %.0f worker%s on a CPU %s of the time", now,
		     now > 1.5 ? "s are" : " is",
		     num_percent(f->v[FACT_LOADER_BUSY].value, a, sizeof(a)));
	rule_because(x, f, FACT_CORES_USED, "the job uses %s of %s cores",
		     num_cores(f->v[FACT_CORES_USED].value, a, sizeof(a)),
		     num_cores(f->v[FACT_CORES_ALLOWED].value, b, sizeof(b)));
	if (decode)
		rule_because(x, f, FACT_LOAD_DECODE,
			     "%s of the time of loading is decoding, most at %s",
			     num_percent(f->v[FACT_LOAD_DECODE].value, a, sizeof(a)),
			     f->v[FACT_LOAD_DECODE].text);
	else
		loading_because_place(x, f, "most of their CPU time is");
	rule_where(x, f, largest(f));
	snprintf(x->fix, sizeof(x->fix), "%s",
		 decode ? "decode less: store the pictures at the size that is used, use a faster "
			  "decoder (torchvision.io, turbojpeg, Pillow-SIMD), decode on the GPU, or "
			  "keep what was decoded"
			: "prepare the data once and keep it, move transforms to the GPU, or use "
			  "faster ones");
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer a = answer_and(loading_holds_up(f, o),
				   rule_at_least(f, FACT_LOADER_WORKERS, loading_workers_least, o));
	bool decode;

	if (a != ANSWER_YES)
		return a;
	a = answer_and(cores_are_full(f, o),
		       answer_not(rule_at_least(f, FACT_LOADER_STORAGE, storage_most, o)));
	a = answer_and(a, answer_not(rule_at_least(f, FACT_CORES_OTHERS, others_most, o)));
	a = answer_and(a, answer_not(has_a_name(f, o)));
	if (a == ANSWER_YES)
		a = loading_is_for_training(f, o);
	if (a != ANSWER_YES)
		return a;
	say(x, f);
	decode = largest(f) == FACT_LOAD_DECODE;
	rule_gain_of_time(x, then(f, LOADING_BEST, decode ? 10 : INFINITY),
			  then(f, LOADING_LIKELY, decode ? 4 : 8), then(f, LOADING_WORST, 1.3));
	rule_gain_drifts(x, loading_cpu_part(f));
	rule_gain_at_most(x, then(f, LOADING_BEST, INFINITY));
	snprintf(x->then, sizeof(x->then), "%s",
		 1 / x->speedup > loading_gpu_floor(f, LOADING_LIKELY) + 0.01
		     ? "the cores it may use"
		     : "GPU-bound");
	x->note = loading_of_one_rank(f) || loading_waits_for_starts(f);
	x->confidence = 0.7;
	return ANSWER_YES;
}

const struct rule heavy_preprocessing_rule = { .cause = "heavy_preprocessing",
					       .needs_s = 5,
					       .check = check };
