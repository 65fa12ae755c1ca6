/* SPDX-License-Identifier: MIT
 *
 * exposed_communication: exchanging gradients takes time in which no rank computes.
 *
 * Not to be taken for it: waiting for a rank that is late. What even the latest rank waits is the exchange; of
 * ranks that are late in turn that is too much, and only their steps tell how much.
 *
 * Gain: a part of the exchange can run beside the computing (buckets), be smaller (16 bits) or rarer
 * (accumulation). Ranks that exchange on the CPU wait for their device first; where they exchange more rarely, host and
 * device work beside each other in the steps between, down to what the longer of both has to do.
 */
#include "explain/loading.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double sure_least = 1.1; /* times as fast */
static const double transfer_least = 0.05, device_least = 0.05;
static const double before_least =
    0.1; /* of its time: waiting for the device, whose result is to be exchanged */

static const struct {
	const char *library, *fix, *edit;
} words[] = {
	{ "torch",
	  "hide it behind the backward pass (DistributedDataParallel with larger or smaller "
	  "buckets), "
	  "exchange 16 bits, or exchange every k-th step (no_sync); on GPUs use the nccl backend",
	  "DistributedDataParallel(model, bucket_cap_mb=50, gradient_as_bucket_view=True)" },
	{ "horovod",
	  "fuse small tensors, exchange 16 bits, or accumulate gradients over some steps",
	  "hvd.DistributedOptimizer(opt, compression=hvd.Compression.fp16, "
	  "backward_passes_per_step=4)" },
	{ "deepspeed", "overlap it with the backward pass, or accumulate gradients over some steps",
	  "\"zero_optimization\": {\"overlap_comm\": true}, \"gradient_accumulation_steps\": 4" },
	{ "mpi4py",
	  "exchange arrays without pickling and without waiting (Iallreduce), in few calls",
	  "request = comm.Iallreduce(MPI.IN_PLACE, gradients)  # compute on, then request.Wait()" },
};

static void fix(struct finding *x, const struct facts *f)
{
	const char *library = f->v[FACT_RANKS_LIBRARY].text;

	snprintf(x->fix, sizeof(x->fix),
		 "exchange while computing (buckets), fewer bytes (16 bits), or less often "
		 "(accumulate gradients over some steps)");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].library, library) == 0) {
			snprintf(x->fix, sizeof(x->fix), "%s", words[i].fix);
			snprintf(x->edit, sizeof(x->edit), "%s", words[i].edit);
		}
}

/* One rank alone, or ranks that wait on the device: who waits for whom does not show. */
static enum answer is_seen(const struct facts *f, struct opinion *o)
{
	enum answer ranks = rule_at_least(f, FACT_RANKS, 2, o);
	enum answer comm = rule_at_least(f, FACT_RANKS_COMM, transfer_least, o);

	if (ranks == ANSWER_NO && comm == ANSWER_YES)
		return rule_cannot_tell(o,
					"this rank waits for others that are not in this record");
	if (ranks == ANSWER_YES && comm == ANSWER_NO &&
	    f->v[FACT_RANKS_WAITING].value >= device_least)
		return rule_cannot_tell(
		    o, "the ranks wait for the device: whether for its work or for other ranks "
		       "does not show in stacks");
	return answer_and(ranks, comm);
}

/* What a second takes when host and device no longer wait for each other: the longer of both. Collectives that stacks show are
 * on the host, so what they exchange has to be waited for before. */
static double beside(const struct facts *f, enum loading_case c)
{
	double device, comm;

	if (!fact_value(f, FACT_TIME_GPU_WAIT, &device) ||
	    !fact_value(f, FACT_TIME_COMM_WAIT, &comm) || device < before_least ||
	    fact_or(f, FACT_GPU_BUSY, 0) < before_least)
		return 1;
	return fmax(fmax(1 - device - comm, loading_gpu_floor(f, c)), loading_least_left);
}

static void gain(struct finding *x, const struct facts *f, const struct fact *t)
{
	double best = fmax(1 - t->high, loading_least_left), likely = 1 - 0.8 * t->value;

	/* a tenth that may as well be nothing is worth a word, not an alarm */
	x->note = 1 / likely < sure_least && 0.2 * t->low < 0.01;
	/* Some cures do both, some only the first: half way, as a ratio. What else is waited for the device for (.item()) stays, and
	 * the less is exchanged the more of the waiting may be that. */
	best = fmin(best, fmax(beside(f, LOADING_BEST), 1 - 2 * t->value));
	likely = fmin(likely, fmax(sqrt(likely * beside(f, LOADING_LIKELY)), 1 - 1.5 * t->value));
	rule_gain_of_time(x, best, likely, 1 - 0.2 * t->low);
	snprintf(x->then, sizeof(x->then), "the work of the ranks");
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	const struct fact *t = &f->v[FACT_RANKS_TRANSFER];
	enum answer a = is_seen(f, o);
	char b[24];

	/* a lone rank has no transfer that could be told from waiting */
	if (a != ANSWER_YES ||
	    (a = rule_at_least(f, FACT_RANKS_TRANSFER, transfer_least, o)) != ANSWER_YES)
		return a;
	rule_where(x, f, FACT_RANKS_TRANSFER);
	snprintf(x->title, sizeof(x->title),
		 "the ranks exchange data while none of them computes: %s of the time%s%s",
		 num_percent(t->value, b, sizeof(b)), t->place ? ", at " : "", t->text);
	rule_because(x, f, FACT_RANKS_TRANSFER,
		     "even the rank that waits least is in collectives %s of its time%s%s",
		     num_percent(t->value, b, sizeof(b)), t->place ? ", most of it at " : "",
		     t->text);
	rule_because(x, f, FACT_RANKS_COMM, "the one that waits most, %s",
		     num_percent(f->v[FACT_RANKS_COMM].value, b, sizeof(b)));
	if (!f->v[FACT_RANKS_DATA_UNEVEN].known)
		finding_because(x, fact_infos[FACT_RANKS_TRANSFER].name, t->low, "ratio",
				"ranks that are late in turn may be part of it: %s",
				"their steps are not known");
	rule_because(x, f, FACT_RANKS, "%.0f ranks here", f->v[FACT_RANKS].value);
	fix(x, f);
	gain(x, f, t);
	x->confidence = f->v[FACT_RANKS_DATA_UNEVEN].known ? 0.7 : 0.55;
	return ANSWER_YES;
}

const struct rule exposed_communication_rule = { .cause = "exposed_communication",
						 .needs_s = 5,
						 .check = check };
