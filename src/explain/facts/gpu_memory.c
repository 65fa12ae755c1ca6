/* SPDX-License-Identifier: MIT
 *
 * Memory of GPUs: how full those of the job became, and how much of it nobody seems to have.
 */
#include "explain/fact.h"
#include "explain/ledger/phases.h"
#include "explain/scene.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Contexts and page tables are not all charged to a process. */
static const double ghost_least = 0.5 * 1073741824;

/* Memory the job and others had at most on one unit; NAN when it is not known of one of them. */
static void owners(const struct scene *s, size_t row, double *ret_job, double *ret_others,
		   bool *ret_any_others)
{
	*ret_job = *ret_others = 0;
	*ret_any_others = false;
	for (size_t i = 0; i < s->gpus.processes.n; i++) {
		const struct gpu_process_row *p = &s->gpus.processes.v[i];

		if (p->gpu != row)
			continue;
		*(p->job ? ret_job : ret_others) += p->memory_peak;
		*ret_any_others |= !p->job;
	}
}

struct fill {
	double peak, swing, room;
};

/* After the first tenth of the run: what a framework takes at its start says nothing. */
static bool fill_of(const struct scene *s, const struct gpu_row *g, struct fill *ret)
{
	struct window w = *s->whole;
	struct series_stat st;
	double room = g->memory_total - (isfinite(g->reserved) ? g->reserved : 0);

	w.from_ns += (w.to_ns - w.from_ns) / 10;
	if (!(room > 0) || window_stat(&w, M_GPU_MEM_USED, g->id, &st) < 0)
		return false;
	*ret = (struct fill){ st.max / room, (st.max - st.min) / room, room };
	return true;
}

/* Is it the job that fills it? */
static enum gpu_use filled_by_job(const struct scene *s, size_t row)
{
	const struct gpu_row *g = &s->gpus.rows.v[row];
	double job, others;
	bool any_others;

	owners(s, row, &job, &others, &any_others);
	if (g->use != GPU_USE_YES)
		return GPU_USE_UNKNOWN;
	if (isfinite(job))
		return job >= 0.5 * g->memory_peak ? GPU_USE_YES
		       : isfinite(others)          ? GPU_USE_NO
						   : GPU_USE_UNKNOWN;
	return any_others ? GPU_USE_UNKNOWN : GPU_USE_YES;
}

static void full(const struct scene *s, struct facts *f)
{
	struct fill most = { .peak = -1 };
	const struct gpu_row *which = NULL, *dark = NULL;
	char label[48];

	for (size_t i = 0; i < s->gpus.rows.n; i++) {
		const struct gpu_row *g = &s->gpus.rows.v[i];
		struct fill x;

		if (!gpu_is_unit(g) || g->tag.unified || g->use == GPU_USE_NO)
			continue;
		if (!fill_of(s, g, &x)) {
			dark = dark ? dark : g;
			continue;
		}
		/* Room to spare is room to spare, whoever has the rest. */
		if (x.peak >= 0.95 && filled_by_job(s, i) != GPU_USE_YES) {
			if (filled_by_job(s, i) == GPU_USE_UNKNOWN)
				dark = g;
			continue;
		}
		if (x.peak > most.peak) {
			most = x;
			which = g;
		}
	}
	if (dark && most.peak < 0.95) {
		fact_absent(f, FACT_GPU_FILL, "%s: %s", gpu_label(dark, label, sizeof(label)),
			    isnan(dark->memory_used) || isnan(dark->memory_total)
				? "its memory is not known"
				: "whose memory it is is not known");
		return;
	}
	if (!which) {
		fact_set(f, FACT_GPU_FILL, 0);
		return;
	}
	fact_set(f, FACT_GPU_FILL, most.peak);
	fact_set_subject(f, FACT_GPU_FILL, which->id, gpu_label(which, label, sizeof(label)));
	fact_set(f, FACT_GPU_FILL_SWING, most.swing);
	fact_set(f, FACT_GPU_FILL_ROOM, most.room);
}

/* How frameworks take memory: by the frames of the training thread, and by who marks its steps. */
static const struct {
	const char *file, *marker;
	bool grows;
} frameworks[] = {
	{ "torch/", "torch", true },
	{ "mxnet/", "mxnet", true },
	{ "tensorflow/", "tensorflow", false },
	{ "jax/", "jax", false },
};

/* Has its critical thread a frame of this library? */
static bool has_frames(const struct activity *a, const char *file)
{
	const struct act_thread *t = a->critical >= 0 ? &a->threads.v[a->critical] : NULL;

	for (size_t k = t ? t->row : 0; t && k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];
		const struct place *p =
		    r->leaf && !r->importing ? stack_book_find_place(a->book, r->leaf) : NULL;

		if (p && p->file && phase_file(file, p->file))
			return true;
	}
	return false;
}

static void grows(const struct scene *s, struct facts *f)
{
	const char *marker =
	    s->whole->ops->step_source ? s->whole->ops->step_source(s->whole->src) : NULL;
	bool some = false, all = false;
	const char *name = "";
	int n = 0;

	for (size_t i = 0; i < sizeof(frameworks) / sizeof(frameworks[0]); i++) {
		if (!(marker && strcmp(marker, frameworks[i].marker) == 0) &&
		    !has_frames(&s->activity, frameworks[i].file))
			continue;
		*(frameworks[i].grows ? &some : &all) = true;
		name = frameworks[i].marker;
		n++;
	}
	if (!n) {
		fact_absent(f, FACT_GPU_FILL_GROWS, "which framework trains is not known");
		return;
	}
	fact_set(f, FACT_GPU_FILL_GROWS, !all);
	fact_set_subject(f, FACT_GPU_FILL_GROWS, 0, n == 1 ? name : "");
}

/* In use, less what its processes have: on average and at the end, so that neither a process that was
 * just leaving nor one that came between two readings counts. NAN: not known. */
static double unowned(const struct scene *s, size_t row)
{
	const struct gpu_row *g = &s->gpus.rows.v[row];
	double mean = g->memory_steady, last = g->memory_last;

	for (size_t i = 0; i < s->gpus.processes.n; i++) {
		const struct gpu_process_row *p = &s->gpus.processes.v[i];

		if (p->gpu != row && s->gpus.rows.v[p->gpu].parent != (int)row)
			continue;
		/* Before the window: no part of its mean. */
		if (!p->gone_ns || p->gone_ns > s->steady.from_ns)
			mean -= p->memory_steady;
		last -= p->memory_last;
	}
	return isfinite(mean) && isfinite(last) ? fmin(mean, last) : (double)NAN;
}

static void ghosts(const struct scene *s, struct facts *f)
{
	const struct gpu_row *which = NULL, *dark = NULL;
	double most = 0;
	const char *why = "";
	char label[48];

	for (size_t i = 0; i < s->gpus.rows.n; i++) {
		const struct gpu_row *g = &s->gpus.rows.v[i];
		double v;

		if (g->replaced || g->partition >= 0 || g->tag.unified ||
		    (g->use == GPU_USE_NO && g->mask != GPU_MASK_LEAVES))
			continue;
		v = unowned(s, i);
		if (v <= ghost_least)
			continue;
		if (isnan(v) || !g->listed || g->hidden || isnan(g->reserved)) {
			dark = g;
			why = isnan(g->memory_used) ? "its memory is not known"
			      : g->hidden  ? "processes of other containers are not visible here"
			      : !g->listed ? "its driver does not list the processes on it"
			      : isnan(v)   ? "memory of the processes on it is not known"
					   : "what its driver keeps for itself is not known";
		} else if (v > most) {
			most = v;
			which = g;
		}
	}
	if (!which && dark) {
		fact_absent(f, FACT_GPU_GHOST, "%s: %s", gpu_label(dark, label, sizeof(label)),
			    why);
		return;
	}
	fact_set(f, FACT_GPU_GHOST, most);
	if (!which)
		return;
	fact_set_subject(f, FACT_GPU_GHOST, which->id, gpu_label(which, label, sizeof(label)));
	fact_set(f, FACT_GPU_GHOST_FILL, which->memory_peak / which->memory_total);
}

static void dead(const struct scene *s, struct facts *f)
{
	const struct gpu_process_row *largest = NULL;
	double most = -1;
	bool unclear = false;
	char who[64];

	for (size_t i = 0; i < s->gpus.processes.n; i++) {
		const struct gpu_process_row *p = &s->gpus.processes.v[i];
		double v = isfinite(p->memory_last) ? p->memory_last : 0;

		unclear |= p->unclear;
		if (p->dead && v > most) {
			most = v;
			largest = p;
		}
	}
	if (!largest && unclear) {
		fact_absent(f, FACT_GPU_DEAD, "%s: %s", metrics[M_PROC_STATE].name,
			    window_why_absent(s->whole, M_PROC_STATE, ID_JOB));
		return;
	}
	fact_set(f, FACT_GPU_DEAD, largest ? most : 0);
	if (!largest)
		return;
	snprintf(who, sizeof(who), "%.24s (pid %lld) on GPU %d", largest->name,
		 (long long)largest->pid, s->gpus.rows.v[largest->gpu].index);
	fact_set_subject(f, FACT_GPU_DEAD, largest->id, who);
}

static void compute(const struct scene *s, struct facts *f)
{
	if (!s->gpus.rows.n)
		return;
	full(s, f);
	grows(s, f);
	ghosts(s, f);
	dead(s, f);
}

const struct fact_source gpu_memory_facts = { "gpu_memory", compute };
