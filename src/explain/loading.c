/* SPDX-License-Identifier: MIT */
#include "explain/loading.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double gpu_floor(const struct facts *f)
{
	return fact_or(f, FACT_GPU_BUSY, 0);
}

/* Where the cores are the bound it is off by this: who is put off by whom is not modelled. Measured with
 * torch's loader on full cores: 14 to 18 %. */
static const double strain[] = {
	[LOADING_BEST] = 1, [LOADING_LIKELY] = 1.1, [LOADING_WORST] = 1.25
};
/* What a further process gets of a core, against those the job has. */
static const double turn[] = { [LOADING_BEST] = 1, [LOADING_LIKELY] = 0.7, [LOADING_WORST] = 0 };

/* The cores nobody uses. On a full machine a further process gets its turn all the same: as the training
 * thread does, which has a CPU for a part of the time it wants one. */
static double cores_floor(const struct facts *f, enum loading_case c, double more)
{
	double used, unused, allowed, run = fact_or(f, FACT_TIME_RUNNING, 0);
	double ready = run + fact_or(f, FACT_TIME_QUEUED, 0), share = ready > 0 ? run / ready : 0;

	if (!fact_value(f, FACT_CORES_USED, &used) || !fact_value(f, FACT_CORES_FREE, &unused) ||
	    !fact_value(f, FACT_CORES_ALLOWED, &allowed) || used <= 0)
		return 0;
	unused = fmax(unused, fmin(allowed - used, turn[c] * more * share));
	return used / (used + unused) * strain[c];
}

double loading_floor(const struct facts *f, enum loading_case c, double more)
{
	return fmin(1, fmax(gpu_floor(f), cores_floor(f, c, more)));
}

const char *loading_then(const struct facts *f, double then, double more, const char *otherwise)
{
	if (then > loading_floor(f, LOADING_LIKELY, more) + 0.01)
		return otherwise;
	return gpu_floor(f) >= cores_floor(f, LOADING_LIKELY, more) ? "GPU-bound"
								    : "the cores it may use";
}

double loading_wall_per_cpu(const struct facts *f)
{
	double run = fact_or(f, FACT_TIME_RUNNING, 0);

	return run > 0.01 ? (run + fact_or(f, FACT_TIME_QUEUED, 0)) / run : 1;
}

/* Around the number of workers. */
static const struct {
	const char *framework, *before, *after, *edit, *edit_after;
} words[] = {
	{ "torch", "give the DataLoader ",
	  " (and persistent_workers=True, so that they outlive an epoch)",
	  "DataLoader(..., num_workers=", ", persistent_workers=True)" },
	{ "tf.data", "let tf.data map with ", " in parallel (or AUTOTUNE) and prefetch",
	  "ds.map(f, num_parallel_calls=", ").prefetch(tf.data.AUTOTUNE)" },
	{ "keras", "let the dataset load in ", ", as processes",
	  "PyDataset(workers=", ", use_multiprocessing=True)" },
	{ "gluon", "give gluon's DataLoader ", "", "gluon.data.DataLoader(..., num_workers=", ")" },
	{ "paddle", "give the DataLoader ", "", "paddle.io.DataLoader(..., num_workers=", ")" },
	{ "pool", "give the pool ", ", and ask it for the next batches ahead",
	  "multiprocessing.Pool(", ").imap(load, indices)" },
};

void loading_fix_workers(struct finding *x, const struct facts *f, int n, bool more)
{
	const char *name = f->v[FACT_LOADER_FRAMEWORK].text, *s = n > 1 ? "s" : "";

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i].framework, name) != 0)
			continue;
		snprintf(x->fix, sizeof(x->fix), "%s%d worker%s%s", words[i].before, n, s,
			 words[i].after);
		snprintf(x->edit, sizeof(x->edit), "%s%d%s", words[i].edit, n, words[i].edit_after);
		return;
	}
	if (more)
		snprintf(x->fix, sizeof(x->fix), "load in %d worker%s: there are cores for them", n,
			 s);
	else
		snprintf(
		    x->fix, sizeof(x->fix),
		    "load in %d worker process%s that keep%s a few batches ahead "
		    "(multiprocessing.Pool.imap, concurrent.futures, a framework's DataLoader)",
		    n, n > 1 ? "es" : "", n > 1 ? "" : "s");
}
