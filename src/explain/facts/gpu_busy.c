/* SPDX-License-Identifier: MIT
 *
 * How busy the GPUs are that the job works on. A second of work for the busiest of them cannot be done
 * in less, so the share of time it is busy bounds what anything else can gain.
 */
#include "explain/fact.h"
#include "explain/scene.h"

#include <math.h>

/* A GPU with less is not one the job works on (as gpu.working). */
static const double works_least = 0.01;

struct busy {
	const struct gpu_row *most, *least, *dark;
};

static bool may_be_the_jobs(const struct gpu_row *g, enum gpu_use use)
{
	return gpu_is_unit(g) && g->use == use && (use == GPU_USE_YES || g->mask != GPU_MASK_HIDES);
}

static struct busy look(const struct gpus *gpus, enum gpu_use use)
{
	struct busy b = { 0 };

	for (size_t i = 0; i < gpus->rows.n; i++) {
		const struct gpu_row *g = &gpus->rows.v[i];

		if (!may_be_the_jobs(g, use))
			continue;
		if (isnan(g->busy_steady) || g->busy_at_least) {
			b.dark = g;
			continue;
		}
		if (!b.most || g->busy_steady > b.most->busy_steady)
			b.most = g;
		if (g->busy_steady >= works_least &&
		    (!b.least || g->busy_steady < b.least->busy_steady))
			b.least = g;
	}
	return b;
}

static void compute(const struct scene *s, struct facts *f)
{
	struct busy b = look(&s->gpus, GPU_USE_YES);
	char label[48];

	/* Whose processes are on them is not known: then any that the job may use. */
	if (!b.most && !b.dark)
		b = look(&s->gpus, GPU_USE_UNKNOWN);
	if (b.dark) {
		fact_absent(f, FACT_GPU_BUSY, "%s: how busy it was is not known",
			    gpu_label(b.dark, label, sizeof(label)));
		fact_absent_like(f, FACT_GPU_BUSY_LEAST, FACT_GPU_BUSY);
		return;
	}
	fact_set(f, FACT_GPU_BUSY, b.most ? fmin(1, b.most->busy_steady) : 0);
	fact_set(f, FACT_GPU_BUSY_LEAST, b.least ? fmin(1, b.least->busy_steady) : 0);
	if (b.most) {
		fact_set_subject(f, FACT_GPU_BUSY, b.most->id,
				 gpu_label(b.most, label, sizeof(label)));
		fact_set(f, FACT_GPU_FILLED, b.most->sm_active);
	}
	if (b.least)
		fact_set_subject(f, FACT_GPU_BUSY_LEAST, b.least->id,
				 gpu_label(b.least, label, sizeof(label)));
}

const struct fact_source gpu_busy_facts = { "gpu_busy", compute };
