/* SPDX-License-Identifier: MIT */
#include "fleet/render.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/num.h"
#include "base/text.h"
#include "explain/cause.h"
#include "explain/page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is shown of each kind: the dearest; the rest is counted, and in the JSON. */
enum { RUNS_SHOWN = 20, SLOW_SHOWN = 6, SUSPECTS_SHOWN = 4, IDLE_SHOWN = 6, WASTE_SHOWN = 8 };
enum { RANKS_SHOWN = 16, UNKNOWN_SHOWN = 3, NUMBERS_SHOWN = 6, PLAIN_WEIGHT = 1 };

const struct fleet_gpu *fleet_gpu_of(const struct fleet *f, uint32_t rank)
{
	const struct fleet_run *run = &f->runs.v[f->ranks.v[rank].run];

	for (size_t i = 0; i < run->holds; i++) {
		const struct fleet_hold *h = &f->holds.v[f->hold_order[run->hold_from + i]];

		if (h->rank == rank)
			return &f->gpus.v[h->gpu];
	}
	return NULL;
}

void fleet_rank_names(const struct fleet *f, const uint32_t *ranks, size_t n, struct buf *out)
{
	size_t shown = 0, at = 0;

	if (!n || f->ranks.v[ranks[0]].rank < 0) {
		buf_str(out, "its process");
		return;
	}
	buf_str(out, n > 1 ? "ranks" : "rank");
	while (at < n && shown < NUMBERS_SHOWN) {
		int32_t first = f->ranks.v[ranks[at]].rank;
		size_t run = 1;

		while (at + run < n && f->ranks.v[ranks[at + run]].rank == first + (int32_t)run)
			run++;
		buf_printf(out, "%s %d", shown ? "," : "", (int)first);
		if (run > 1)
			buf_printf(out, "-%d", (int)(first + (int32_t)run - 1));
		at += run;
		shown++;
	}
	if (at < n)
		buf_printf(out, " and %zu more", n - at);
}

static const char *run_title(const struct fleet_run *r, char *buf, size_t size)
{
	if (r->name[0])
		snprintf(buf, size, "%s (run %s)", r->name, r->id);
	else
		snprintf(buf, size, "run %s", r->id);
	return buf;
}

/* 0.31, 3.1, 31, 31,415 */
static const char *two_digits(double v, char *buf, size_t size)
{
	if (v >= 9.95)
		return num_count(v, buf, size);
	snprintf(buf, size, "%.2g", v);
	return buf;
}

static const char *figure(double v, const char *(*write)(double, char *, size_t), char *buf,
			  size_t size)
{
	if (isfinite(v))
		return write(v, buf, size);
	snprintf(buf, size, "-");
	return buf;
}

/* "3.1 GPU-hours", or that they are not known. */
static const char *hours(double v, char *buf, size_t size)
{
	char number[32];

	if (isfinite(v))
		snprintf(buf, size, "%s GPU-hours", two_digits(v, number, sizeof(number)));
	else
		snprintf(buf, size, "GPU-hours not known");
	return buf;
}

static void put_head(struct page *p, const struct ask *a, const char *engine)
{
	const struct fleet_judged *j = &a->judged;
	double lost = j->lost_straggler + j->lost_hung + j->lost_idle;
	char window[32], all[48], s[48], h[48], i[48];

	page_add(p, PLAIN_WEIGHT, PAGE_BOLD, "Fleet",
		 "%zu run%s on %zu node%s: %zu ranks, %zu GPUs held, in the last %s, as %s has it",
		 a->fleet.runs.n, a->fleet.runs.n == 1 ? "" : "s", a->fleet.nodes.n,
		 a->fleet.nodes.n == 1 ? "" : "s", j->ranks, j->gpus,
		 num_seconds(a->fleet.window_s, window, sizeof(window)), engine);
	if (lost > 0)
		page_add(p, PLAIN_WEIGHT, PAGE_WARN, "Lost",
			 "%.0f %% of %s: %s to stragglers, %s to runs that hang, %s to "
			 "GPUs held idle",
			 100 * lost / j->gpu_hours, hours(j->gpu_hours, all, sizeof(all)),
			 hours(j->lost_straggler, s, sizeof(s)), hours(j->lost_hung, h, sizeof(h)),
			 hours(j->lost_idle, i, sizeof(i)));
	else if (j->gpu_hours > 0)
		page_add(p, PLAIN_WEIGHT, PAGE_GOOD, "Lost",
			 "nothing of %s to stragglers, hangs or idle GPUs that is known",
			 hours(j->gpu_hours, all, sizeof(all)));
}

static void put_suspect(struct page *p, const struct ask *a, const struct fleet_judged_run *r,
			const struct fleet_suspect *s)
{
	const struct fleet *f = &a->fleet;
	const struct fleet_gpu *g = fleet_gpu_of(f, s->worst);
	const struct cause *c = s->cause ? cause_find(s->cause) : NULL;
	auto_done(buf) struct buf names = { 0 }, where = { 0 };
	char own[32], step[32], others[32];

	fleet_rank_names(f, a->judged.members.v + s->members_from, s->members, &names);
	buf_printf(&where, "%s on %s", buf_text(&names), f->nodes.v[s->node].name);
	if (s->members == 1 && g && g->index[0])
		buf_printf(&where, ", GPU %s", g->index);
	if (s->hung)
		page_add(p, PLAIN_WEIGHT, PAGE_PLAIN, "", "%s is what it waits for",
			 buf_text(&where));
	else
		page_add(p, PLAIN_WEIGHT, PAGE_PLAIN, "",
			 "%s: own work %s%s in a step of %s, the others %s", buf_text(&where),
			 num_seconds(s->own_s, own, sizeof(own)), s->members > 1 ? " at worst" : "",
			 num_seconds(r->step_s, step, sizeof(step)),
			 num_seconds(s->others_s, others, sizeof(others)));
	if (c)
		page_add(p, PLAIN_WEIGHT, PAGE_WARN, "", "  %s: %s", c->id, c->text);
	else if (!s->hung && !s->evidence_n)
		page_add(p, PLAIN_WEIGHT, PAGE_DIM, "",
			 "  why is not known: nothing sets it apart");
	for (size_t i = 0; i < s->evidence_n; i++)
		page_add(p, PLAIN_WEIGHT, PAGE_PLAIN, "", "  %s", s->evidence[i].text);
}

static void put_suspects(struct page *p, const struct ask *a, const struct fleet_judged_run *r)
{
	for (size_t i = 0; i < r->suspects && i < SUSPECTS_SHOWN; i++)
		put_suspect(p, a, r, &a->judged.suspects.v[r->suspects_from + i]);
	if (r->suspects > SUSPECTS_SHOWN)
		page_add(p, PLAIN_WEIGHT, PAGE_DIM, "", "and on %zu more nodes",
			 r->suspects - SUSPECTS_SHOWN);
}

static void put_slow(struct page *p, const struct ask *a)
{
	size_t shown = 0;
	char title[260], cost[48], share[16];

	for (size_t i = 0; i < a->judged.runs.n && shown < SLOW_SHOWN; i++) {
		const struct fleet_judged_run *r = &a->judged.runs.v[i];

		if (!(r->lost_share > 0))
			continue;
		page_add(p, PLAIN_WEIGHT, PAGE_BOLD, shown ? "" : "Slow",
			 "%s: a straggler costs %s of every step: %s",
			 run_title(&a->fleet.runs.v[r->run], title, sizeof(title)),
			 num_percent(r->lost_share, share, sizeof(share)),
			 hours(r->lost_gpu_hours, cost, sizeof(cost)));
		put_suspects(p, a, r);
		shown++;
	}
	if (a->judged.straggling > shown)
		page_add(p, PLAIN_WEIGHT, PAGE_DIM, "", "and %zu more runs with stragglers",
			 a->judged.straggling - shown);
}

static void put_hung(struct page *p, const struct ask *a)
{
	size_t shown = 0;
	char title[260], quiet[32], limit[32], cost[48];

	for (size_t i = 0; i < a->judged.runs.n && shown < SLOW_SHOWN; i++) {
		const struct fleet_judged_run *r = &a->judged.runs.v[i];

		if (r->state != FLEET_HUNG)
			continue;
		page_add(p, PLAIN_WEIGHT, PAGE_BOLD, shown ? "" : "Hung",
			 "%s: no step for %s (told after %s): %s so far",
			 run_title(&a->fleet.runs.v[r->run], title, sizeof(title)),
			 num_seconds(r->quiet_s, quiet, sizeof(quiet)),
			 num_seconds(r->quiet_limit_s, limit, sizeof(limit)),
			 hours(r->hung_gpu_hours, cost, sizeof(cost)));
		put_suspects(p, a, r);
		if (r->unknown[0])
			page_add(p, PLAIN_WEIGHT, PAGE_DIM, "", "%s", r->unknown);
		shown++;
	}
	if (a->judged.hung > shown)
		page_add(p, PLAIN_WEIGHT, PAGE_DIM, "", "and %zu more runs that hang",
			 a->judged.hung - shown);
}

static void put_idle(struct page *p, const struct ask *a)
{
	const struct fleet_judged *j = &a->judged;
	size_t n = j->idle.n;
	char memory[32], title[260];

	if (!n)
		return;
	page_add(p, PLAIN_WEIGHT, PAGE_BOLD, "Idle",
		 "%zu GPU%s held by runs and never busier than 1 %%", n, n == 1 ? "" : "s");
	for (size_t i = 0; i < n && i < IDLE_SHOWN; i++) {
		const struct fleet_idle *x = &j->idle.v[i];
		const struct fleet_gpu *g = &a->fleet.gpus.v[x->gpu];

		page_add(p, PLAIN_WEIGHT, PAGE_PLAIN, "", "%s, GPU %s: %s of memory, by %s",
			 a->fleet.nodes.v[g->node].name, g->index[0] ? g->index : g->uuid,
			 num_bytes(x->memory, memory, sizeof(memory)),
			 run_title(&a->fleet.runs.v[x->run], title, sizeof(title)));
	}
	if (n > IDLE_SHOWN)
		page_add(p, PLAIN_WEIGHT, PAGE_DIM, "", "and %zu more", n - IDLE_SHOWN);
}

static void put_waste(struct page *p, const struct ask *a)
{
	const struct fleet_judged *j = &a->judged;
	char cost[16], lost[24];

	if (!j->waste.n)
		return;
	page_add(p, PLAIN_WEIGHT, PAGE_BOLD, "Causes", "%-30s %5s %6s %8s  %s", "by verdicts",
		 "runs", "nodes", "at worst", "GPU-hours");
	for (size_t i = 0; i < j->waste.n && i < WASTE_SHOWN; i++) {
		const struct fleet_waste *w = &j->waste.v[i];

		page_add(p, PLAIN_WEIGHT, PAGE_PLAIN, "", "%-30.30s %5zu %6zu %8s  %s", w->cause,
			 w->runs, w->nodes, num_percent(w->worst_cost, cost, sizeof(cost)),
			 figure(w->gpu_hours, two_digits, lost, sizeof(lost)));
	}
	if (j->waste.n > WASTE_SHOWN)
		page_add(p, PLAIN_WEIGHT, PAGE_DIM, "", "and %zu more", j->waste.n - WASTE_SHOWN);
}

static void put_runs(struct page *p, const struct ask *a)
{
	const struct fleet_judged *j = &a->judged;
	char step[24], wait[16], lost[16];

	if (!j->runs.n)
		return;
	page_add(p, PLAIN_WEIGHT, PAGE_BOLD, "Runs", "%-26s %-7s %6s %5s %8s %6s %6s", "id",
		 "state", "ranks", "GPUs", "step", "wait", "lost");
	for (size_t i = 0; i < j->runs.n && i < RUNS_SHOWN; i++) {
		const struct fleet_judged_run *r = &j->runs.v[i];
		double share = r->state == FLEET_HUNG ? 1 : r->lost_share;

		page_add(p, PLAIN_WEIGHT, PAGE_PLAIN, "", "%-26.26s %-7s %6zu %5zu %8s %6s %6s",
			 a->fleet.runs.v[r->run].id, fleet_state_name(r->state), r->ranks, r->gpus,
			 figure(r->step_s, num_seconds, step, sizeof(step)),
			 figure(r->wait_median, num_percent, wait, sizeof(wait)),
			 share > 0 || r->known > 1 ? num_percent(share, lost, sizeof(lost)) : "-");
	}
	if (j->runs.n > RUNS_SHOWN)
		page_add(p, PLAIN_WEIGHT, PAGE_DIM, "", "and %zu more: --json has them all",
			 j->runs.n - RUNS_SHOWN);
}

static void put_unknown(struct page *p, const struct ask *a)
{
	size_t shown = 0, more = 0;

	for (size_t i = 0; i < a->judged.runs.n; i++) {
		const struct fleet_judged_run *r = &a->judged.runs.v[i];

		if (!r->unknown[0] || r->state == FLEET_HUNG)
			continue;
		if (shown == UNKNOWN_SHOWN) {
			more++;
			continue;
		}
		page_add(p, PLAIN_WEIGHT, PAGE_DIM, shown ? "" : "Unknown", "%s: %s",
			 a->fleet.runs.v[r->run].id, r->unknown);
		shown++;
	}
	if (more)
		page_add(p, PLAIN_WEIGHT, PAGE_DIM, "", "and the like of %zu more runs", more);
	if (a->undetailed)
		page_add(p, PLAIN_WEIGHT, PAGE_DIM, "",
			 "of %zu runs the reasons were not asked for: --run ID does",
			 a->undetailed);
}

static int by_own(const void *a, const void *b, void *arg)
{
	const struct fleet *f = arg;
	double x = fleet_own_s(&f->ranks.v[*(const uint32_t *)a]);
	double y = fleet_own_s(&f->ranks.v[*(const uint32_t *)b]);

	if (!isfinite(x) || !isfinite(y))
		return isfinite(y) - isfinite(x);
	return (x < y) - (x > y);
}

static void put_rank(struct page *p, const struct fleet *f, uint32_t at)
{
	const struct fleet_rank *r = &f->ranks.v[at];
	const struct fleet_gpu *g = fleet_gpu_of(f, at);
	double all = r->own + r->comm;
	char name[16] = "-", own[24], wait[16], data[24], steps[24];

	if (r->rank >= 0)
		snprintf(name, sizeof(name), "%d", (int)r->rank);
	page_add(p, PLAIN_WEIGHT, PAGE_PLAIN, "", "%6s %-22.22s %4.4s %9s %6s %9s %8s", name,
		 f->nodes.v[r->node].name, g ? g->index : "-",
		 figure(fleet_own_s(r), num_seconds, own, sizeof(own)),
		 figure(all > 0 ? r->comm / all : NAN, num_percent, wait, sizeof(wait)),
		 figure(r->steps > 0 ? r->data / r->steps : NAN, num_seconds, data, sizeof(data)),
		 figure(r->steps, num_count, steps, sizeof(steps)));
}

/* The ranks of the one run that was asked for, those with the most work of their own first. */
static void put_ranks(struct page *p, const struct ask *a)
{
	const struct fleet *f = &a->fleet;
	uint32_t *order = malloc((f->ranks.n + 1) * sizeof(*order));
	size_t n = 0;

	if (!order)
		return;
	for (size_t i = 0; i < f->ranks.n; i++)
		if (fleet_rank_live(f, &f->ranks.v[f->rank_order[i]]))
			order[n++] = f->rank_order[i];
	qsort_r(order, n, sizeof(*order), by_own, (void *)(uintptr_t)f);
	page_add(p, PLAIN_WEIGHT, PAGE_BOLD, "Ranks", "%6s %-22s %4s %9s %6s %9s %8s", "rank",
		 "node", "GPU", "own work", "wait", "data", "steps");
	for (size_t i = 0; i < n && i < RANKS_SHOWN; i++)
		put_rank(p, f, order[i]);
	if (n > RANKS_SHOWN)
		page_add(p, PLAIN_WEIGHT, PAGE_DIM, "",
			 "and %zu more with less work of their own: --json has them all",
			 n - RANKS_SHOWN);
	free(order);
}

void fleet_text(const struct ask *a, const struct fleet_page *look, struct buf *out)
{
	__attribute__((cleanup(page_done))) struct page p = { .width =
								  look->width ? look->width : 80 };

	put_head(&p, a, look->engine);
	put_slow(&p, a);
	put_hung(&p, a);
	put_idle(&p, a);
	put_waste(&p, a);
	put_runs(&p, a);
	if (look->one_run)
		put_ranks(&p, a);
	put_unknown(&p, a);
	page_write(&p, 0, look->color, out);
}
