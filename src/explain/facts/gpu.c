/* SPDX-License-Identifier: MIT
 *
 * Which GPUs are the job's, which it works on, and who else is on them. A GPU is the job's when its
 * environment names it (CUDA_VISIBLE_DEVICES and the like) or one of its processes is on it; that it
 * is merely in the machine says nothing.
 */
#include "base/num.h"
#include "explain/fact.h"
#include "explain/scene.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A driver counts a kernel of its own now and then. */
static const double idle_most = 0.01;
/* Less was seen than a start-up takes; unless steps say that it is over. */
static const double settled_least_s = 20;
static const size_t settled_steps = 10;

static const char too_short[] = "watched for less than 20 s, and fewer than ten steps were seen";

static void list_add(char *list, size_t size, const struct gpu_row *g)
{
	size_t n = strlen(list);

	if (g->partition < 0)
		snprintf(list + n, size - n, "%s%d", n ? ", " : "", g->index);
	else
		snprintf(list + n, size - n, "%s%d:%d", n ? ", " : "", g->index, g->partition);
}

/* Is what was seen behind the start? A GPU that is not used yet may be used soon. */
static bool is_settled(const struct scene *s)
{
	const struct window_step *x;
	size_t n = 0, steps = 0;

	if (s->seconds >= settled_least_s)
		return true;
	x = s->whole->ops->steps ? s->whole->ops->steps(s->whole->src, &n) : NULL;
	for (size_t i = 0; i < n; i++)
		steps += x[i].begin_ns >= s->steady.from_ns && x[i].end_ns <= s->steady.to_ns;
	return steps >= settled_steps;
}

/* Whoever may use them: those a mask hides from the job are among them. */
static void set_free(const struct scene *s, struct facts *f)
{
	double n = 0;
	bool dark = false;

	for (size_t i = 0; i < s->gpus.rows.n; i++) {
		const struct gpu_row *g = &s->gpus.rows.v[i];

		if (!gpu_is_unit(g) || !gpu_is_fit(g) || g->end != GPU_END_NONE)
			continue;
		if (isnan(g->busy_steady) || (g->busy_at_least && g->busy_steady < idle_most))
			dark = true;
		else
			n += g->busy_steady < idle_most;
	}
	if (!n && dark)
		fact_absent(f, FACT_GPU_FREE, "how busy each GPU was is not known");
	else
		fact_set(f, FACT_GPU_FREE, n);
}

static void count(const struct scene *s, struct facts *f)
{
	double n = 0, units = 0, fit = 0, used = 0;
	const struct gpu_row *unknown = NULL;
	char label[48];

	for (size_t i = 0; i < s->gpus.rows.n; i++) {
		const struct gpu_row *g = &s->gpus.rows.v[i];

		n += g->partition < 0 && !g->replaced;
		units += gpu_is_unit(g);
		fit += g->partition < 0 && !g->replaced && gpu_is_fit(g);
		used += !g->parts && g->use == GPU_USE_YES;
		if (g->use == GPU_USE_UNKNOWN)
			unknown = g;
	}
	fact_set(f, FACT_GPU_COUNT, n);
	fact_set(f, FACT_GPU_UNITS, units);
	fact_set(f, FACT_GPU_FIT, fit);
	set_free(s, f);
	fact_set(f, FACT_GPU_WATCHED, s->seconds);
	fact_set(f, FACT_GPU_SETTLED, is_settled(s));
	if (unknown && !used)
		fact_absent(f, FACT_GPU_USED, "%s: %s", gpu_label(unknown, label, sizeof(label)),
			    unknown->hidden ? "whose processes are on it is not visible here"
					    : "its driver does not list the processes on it");
	else
		fact_set(f, FACT_GPU_USED, used);
}

/* The recorder says once what a mask leaves: "CUDA_VISIBLE_DEVICES=0,1 leaves 2 of 8 GPUs to the
 * job". */
static void masked(const struct scene *s, struct facts *f)
{
	size_t n, hidden = 0, units = 0;
	const struct window_event *e = s->whole->ops->events(s->whole->src, &n);

	for (size_t i = 0; i < s->gpus.rows.n; i++) {
		units += gpu_is_unit(&s->gpus.rows.v[i]);
		hidden +=
		    gpu_is_unit(&s->gpus.rows.v[i]) && s->gpus.rows.v[i].mask == GPU_MASK_HIDES;
	}
	fact_set(f, FACT_GPU_MASKED, units && hidden == units);
	for (size_t i = n; i-- > 0;) {
		char variable[64];

		if (e[i].kind != EVENT_LIMIT || !e[i].text || !strstr(e[i].text, "GPUs to the job"))
			continue;
		snprintf(variable, sizeof(variable), "%.*s",
			 (int)(strstr(e[i].text, " leaves ") ? strcspn(e[i].text, " ") : 0),
			 e[i].text);
		fact_set_subject(f, FACT_GPU_MASKED, 0, variable);
		return;
	}
}

static void code(const struct scene *s, struct facts *f)
{
	const struct member *first = scene_member(s, s->gpus.code_first);

	if (s->gpus.code < 0) {
		fact_absent(f, FACT_GPU_CODE, "%s: %s", metrics[M_PROC_GPU_CODE].name,
			    window_why_absent(s->whole, M_PROC_GPU_CODE, ID_JOB));
		return;
	}
	fact_set(f, FACT_GPU_CODE, s->gpus.code);
	if (first)
		fact_set_subject(f, FACT_GPU_CODE, first->id, first->name);
}

/* One GPU alone cannot be idle beside another of the job's. */
static void set_idle(struct facts *f, double own, bool dark, const char *list)
{
	if (f->v[FACT_GPU_SETTLED].value < 1 || dark)
		fact_absent(f, FACT_GPU_IDLE, "%s",
			    dark ? "how busy each GPU was is not known" : too_short);
	else
		fact_set(f, FACT_GPU_IDLE, own);
	fact_set_subject(f, FACT_GPU_IDLE, 0, list);
}

static void idle(const struct scene *s, struct facts *f)
{
	double working = 0, own = 0, open = 0, unused = 0, spare = 0;
	char own_list[64] = "", unused_list[64] = "", label[48];
	const struct gpu_row *dark = NULL, *spare_dark = NULL, *whose = NULL;
	int mine = 0;

	for (size_t i = 0; i < s->gpus.rows.n; i++) {
		const struct gpu_row *g = &s->gpus.rows.v[i];

		if (!gpu_is_unit(g) || !gpu_is_fit(g) ||
		    (g->mask == GPU_MASK_HIDES && g->use != GPU_USE_YES))
			continue;
		mine += g->use != GPU_USE_NO || g->mask == GPU_MASK_LEAVES;
		if (isnan(g->busy_steady) || g->busy_at_least) {
			if (g->use == GPU_USE_YES && g->busy_steady >= idle_most)
				working++;
			else if (g->use != GPU_USE_NO || g->mask == GPU_MASK_LEAVES)
				dark = g;
			else if (!g->others)
				spare_dark = g;
		} else if (g->busy_steady >= idle_most) {
			working += g->use == GPU_USE_YES;
			whose = g->use == GPU_USE_UNKNOWN ? g : whose;
		} else if (g->end != GPU_END_NONE) {
			continue; /* nobody can be told to use one that does not answer */
		} else if (g->use == GPU_USE_YES || g->mask == GPU_MASK_LEAVES) {
			own++;
			open += g->use == GPU_USE_YES;
			list_add(own_list, sizeof(own_list), g);
		} else {
			unused++;
			spare += g->listed && !g->others && !g->hidden;
			list_add(unused_list, sizeof(unused_list), g);
		}
	}
	if (!working && (dark || whose))
		fact_absent(f, FACT_GPU_WORKING, "%s: %s",
			    gpu_label(dark ? dark : whose, label, sizeof(label)),
			    dark ? "how busy it was is not known"
				 : "whose processes are on it is not known");
	else
		fact_set(f, FACT_GPU_WORKING, working);
	set_idle(f, own, !own && dark && mine > 1, own_list);
	fact_set(f, FACT_GPU_IDLE_OPEN, open);
	if (f->v[FACT_GPU_SETTLED].value < 1)
		fact_absent(f, FACT_GPU_UNUSED, "%s", too_short);
	else if (!unused && spare_dark)
		fact_absent(f, FACT_GPU_UNUSED, "how busy each GPU was is not known");
	else
		fact_set(f, FACT_GPU_UNUSED, unused);
	fact_set_subject(f, FACT_GPU_UNUSED, 0, unused_list);
	if (f->v[FACT_GPU_UNUSED].known)
		fact_set(f, FACT_GPU_SPARE, spare);
	else
		fact_absent_like(f, FACT_GPU_SPARE, FACT_GPU_UNUSED);
}

/* Who is on one GPU or partition. */
struct company {
	double others, others_busy, job_busy, memory, most; /* job_busy: NAN */
	bool busy_unknown, mps;
	const struct gpu_process_row *busiest;
};

/* A driver numbers all processes alike: where it named one of ours by a number that is known here, a number that is
 * nobody's here is no other one of ours. */
static bool names_ours(const struct scene *s, size_t row)
{
	for (size_t i = 0; i < s->gpus.processes.n; i++) {
		const struct gpu_process_row *p = &s->gpus.processes.v[i];

		if (p->gpu == row && p->job && p->pid > 0)
			return true;
	}
	return false;
}

static struct company company_of(const struct scene *s, size_t row)
{
	struct company c = { .most = -1, .job_busy = NAN };
	bool strangers = names_ours(s, row);

	for (size_t i = 0; i < s->gpus.processes.n; i++) {
		const struct gpu_process_row *p = &s->gpus.processes.v[i];

		if (p->gpu != row || (p->pid <= 0 && !strangers) ||
		    (p->gone_ns && p->gone_ns <= s->steady.from_ns))
			continue;
		if (p->job) {
			if (isfinite(p->busy_steady))
				c.job_busy = fmax(0, c.job_busy) + p->busy_steady;
			continue;
		}
		/* It does no work of its own; its clients do. */
		if (strncmp(p->name, "nvidia-cuda-mps", 15) == 0) {
			c.mps = true;
			continue;
		}
		c.others++;
		c.memory += isfinite(p->memory_steady) ? p->memory_steady : 0;
		if (isnan(p->busy_steady)) {
			c.busy_unknown = true;
			c.busiest = c.busiest ? c.busiest : p;
			continue;
		}
		c.others_busy += p->busy_steady;
		if (p->busy_steady > c.most) {
			c.most = p->busy_steady;
			c.busiest = p;
		}
	}
	return c;
}

static void set_company(const struct scene *s, struct facts *f, size_t row, const struct company *c)
{
	const struct gpu_row *g = &s->gpus.rows.v[row];
	char label[48], who[64] = "";

	if (c->busiest && c->busiest->pid > 0)
		snprintf(who, sizeof(who), "%.30s (pid %lld)", c->busiest->name,
			 (long long)c->busiest->pid);
	else if (c->busiest)
		snprintf(who, sizeof(who), "%.30s (not visible here)", c->busiest->name);
	fact_set(f, FACT_GPU_OTHERS, c->others);
	fact_set_subject(f, FACT_GPU_OTHERS, c->busiest ? c->busiest->id : 0, who);
	fact_set(f, FACT_GPU_OTHERS_MEMORY, c->memory);
	fact_set(f, FACT_GPU_MPS, c->mps);
	if (isfinite(c->job_busy))
		fact_set(f, FACT_GPU_JOB_BUSY, fmin(1, c->job_busy));
	gpu_label(g, label, sizeof(label));
	if (c->busy_unknown)
		fact_absent(f, FACT_GPU_OTHERS_BUSY, "%.24s is on %s too; how busy it is: %s",
			    c->busiest->name, label,
			    window_why_absent(s->whole, M_GPU_PROC_BUSY, c->busiest->id));
	else
		fact_set(f, FACT_GPU_OTHERS_BUSY, fmin(1, c->others_busy));
	fact_set_subject(f, FACT_GPU_OTHERS_BUSY, g->id, label);
}

/* Of the GPUs the job uses, the one others use most. Partitions have their own units: who is on
 * another one of the same GPU is not in the way. */
static void shared(const struct scene *s, struct facts *f)
{
	struct company worst = { 0 };
	size_t worst_row = 0;
	bool any = false;
	const struct gpu_row *hidden = NULL;
	char label[48], share[24];

	for (size_t i = 0; i < s->gpus.rows.n; i++) {
		const struct gpu_row *g = &s->gpus.rows.v[i];
		struct company c;

		if (!gpu_is_unit(g) || g->use == GPU_USE_NO)
			continue;
		if (g->use == GPU_USE_UNKNOWN || g->hidden)
			hidden = g;
		if (g->use == GPU_USE_UNKNOWN)
			continue;
		c = company_of(s, i);
		if (!any || c.others_busy > worst.others_busy ||
		    (c.others_busy == worst.others_busy && c.others > worst.others)) {
			worst = c;
			worst_row = i;
			any = true;
		}
	}
	if (any)
		set_company(s, f, worst_row, &worst);
	/* A stranger's pid that cannot be read may also be one of ours. */
	if (hidden && (!any || !worst.others)) {
		gpu_label(hidden, label, sizeof(label));
		if (hidden->hidden_busy >= idle_most)
			fact_absent(
			    f, FACT_GPU_OTHERS,
			    "%s: a process not visible here kept it busy %s of the time", label,
			    num_percent(fmin(1, hidden->hidden_busy), share, sizeof(share)));
		else
			fact_absent(f, FACT_GPU_OTHERS,
				    "%s: whose processes are on it is not known", label);
	} else if (!any) {
		fact_set(f, FACT_GPU_OTHERS, 0);
	}
}

static void compute(const struct scene *s, struct facts *f)
{
	count(s, f);
	if (!s->gpus.rows.n)
		return;
	masked(s, f);
	code(s, f);
	idle(s, f);
	shared(s, f);
}

const struct fact_source gpu_facts = { "gpu", compute };
