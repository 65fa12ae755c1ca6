/* SPDX-License-Identifier: MIT
 *
 * gpu_shared: a program outside of the job runs kernels on a GPU the job uses, or several trainings of the job
 * itself run theirs on the same one. The driver gives them turns, so each waits for the other.
 *
 * Not to be taken for it: programs that only have a context or memory there (a desktop, a notebook
 * that idles), other partitions of the same GPU (MIG), and sharing on purpose through MPS: a note. A note as well are
 * trainings of the job on a GPU that has time left, unless their threads wait longer for it than their own kernels
 * take: one that is busy elsewhere loses little, and sharing is what such a GPU is for.
 *
 * Gain: while their kernels run, ours wait, if we have any to run. They had the share o of the time;
 * of what they left we used j/(1-o), and as often we wanted it while they had it: w = o * j/(1-o), at
 * most o. Nothing is won where kernels fit side by side or never met: from 1 to 1/(1-o). Among trainings of the
 * job that is what each of them gains with a GPU of its own.
 */
#include "explain/rule.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

static const double others_least = 0.05;
/* Among trainings of the job: how busy a GPU is full, and share of time each waits for the others' kernels. */
static const double full_least = 0.85, wait_least = 0.1;
static const double alone_full = 0.9; /* share of time a GPU is busy that is the limit */

static void say(struct finding *x, const struct facts *f, double others)
{
	double n = f->v[FACT_GPU_OTHERS].value;
	char a[32], b[32];

	snprintf(x->title, sizeof(x->title), "%.24s is shared: %.50s%s kept it busy %s of the time",
		 f->v[FACT_GPU_OTHERS_BUSY].text, f->v[FACT_GPU_OTHERS].text,
		 n > 1.5 ? " and others" : "", num_percent(others, a, sizeof(a)));
	rule_because(x, f, FACT_GPU_OTHERS_BUSY, "kernels of other programs ran %s of the time",
		     num_percent(others, a, sizeof(a)));
	rule_because(x, f, FACT_GPU_JOB_BUSY, "the job's own ran %s of the time",
		     num_percent(f->v[FACT_GPU_JOB_BUSY].value, b, sizeof(b)));
	rule_because(x, f, FACT_GPU_OTHERS, "other programs on it: %.0f", n);
	rule_because(x, f, FACT_GPU_OTHERS_MEMORY, "they have %s of its memory",
		     num_bytes(f->v[FACT_GPU_OTHERS_MEMORY].value, a, sizeof(a)));
	snprintf(x->fix, sizeof(x->fix),
		 "give the job a GPU of its own: CUDA_VISIBLE_DEVICES, an exclusive allocation "
		 "(Slurm --gres, Kubernetes nvidia.com/gpu) or compute mode (nvidia-smi -c 3), or "
		 "run one after the other");
}

static void say_siblings(struct finding *x, const struct facts *f, double others)
{
	double n = f->v[FACT_GPU_SIBLINGS].value, wait = fact_or(f, FACT_GPU_SIBLINGS_WAIT, 0);
	bool full = fact_or(f, FACT_GPU_SIBLINGS_UNIT, 0) >= full_least;
	const char *gpu = f->v[FACT_GPU_SIBLINGS].text;
	char a[32];

	x->note = !full && wait < wait_least;
	snprintf(x->title, sizeof(x->title),
		 "%.24s is shared by %.0f trainings of this job: each finds it busy %s of the time",
		 gpu, n, num_percent(others, a, sizeof(a)));
	rule_because(x, f, FACT_GPU_SIBLINGS, "%.0f processes of the job train on %s", n, gpu);
	rule_because(x, f, FACT_GPU_SIBLINGS_BUSY, "kernels of the others run %s of the time",
		     num_percent(others, a, sizeof(a)));
	rule_because(x, f, FACT_GPU_SIBLINGS_UNIT, "it is busy %s of the time",
		     num_percent(fact_or(f, FACT_GPU_SIBLINGS_UNIT, 0), a, sizeof(a)));
	if (wait >= wait_least)
		rule_because(x, f, FACT_GPU_SIBLINGS_WAIT,
			     "each waits for it %s of the time beyond what its own kernels take",
			     num_percent(wait, a, sizeof(a)));
	snprintf(x->fix, sizeof(x->fix),
		 "%sgive each training a GPU of its own (CUDA_VISIBLE_DEVICES for each process, "
		 "cuda:LOCAL_RANK for ranks)%s",
		 x->note ? "nothing as long as it has time left; to have none wait, " : "",
		 full ? ", or run one after the other: together they get no more done than the "
			"GPU can"
		      : "");
}

/* w of the text above, as a speedup; job: NAN not known, then the middle of the range. */
static void gain(struct finding *x, double others, double job)
{
	x->has_gain = true;
	x->low = 1;
	x->high = 1 / (1 - others);
	x->speedup =
	    isfinite(job) ? 1 / (1 - others * fmin(1, fmax(job, 0) / (1 - others))) : sqrt(x->high);
	x->cost = 1 - 1 / x->speedup;
	/* What it had of the GPU, of the time that is left. */
	snprintf(x->then, sizeof(x->then), "%s",
		 isfinite(job) && job * x->speedup >= alone_full ? "GPU-bound" : "its own work");
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	double others, n;
	enum answer foreign = rule_at_least(f, FACT_GPU_OTHERS, 1, o), own, a;

	if (foreign == ANSWER_YES)
		foreign = rule_at_least(f, FACT_GPU_OTHERS_BUSY, others_least, o);
	own = answer_and(rule_at_least(f, FACT_GPU_SIBLINGS, 2, o),
			 rule_at_least(f, FACT_GPU_SIBLINGS_BUSY, others_least, o));
	a = answer_or(foreign, own);
	if (a != ANSWER_YES)
		return a;
	if (foreign == ANSWER_YES) {
		others = fmin(f->v[FACT_GPU_OTHERS_BUSY].value, 0.95);
		say(x, f, others);
		gain(x, others, fact_or(f, FACT_GPU_JOB_BUSY, NAN));
	} else {
		n = f->v[FACT_GPU_SIBLINGS].value;
		others = fmin(f->v[FACT_GPU_SIBLINGS_BUSY].value, 0.95);
		say_siblings(x, f, others);
		if (x->note)
			x->cost = NAN;
		else
			gain(x, others, others / (n - 1));
	}
	x->confidence = 0.6;
	x->note |= fact_or(f, FACT_GPU_MPS, 0) > 0.5;
	return ANSWER_YES;
}

const struct rule gpu_shared_rule = {
	.cause = "gpu_shared", .needs_s = 5, .check = check, .about_gpus = true
};
