/* SPDX-License-Identifier: MIT
 *
 * What the verdict says about steps and ranks.
 */
#include "base/json.h"
#include "base/num.h"
#include "explain/fact.h"
#include "explain/page.h"
#include "explain/render.h"

#include <math.h>
#include <stdio.h>

/* "6.3 a second", "one every 12.3 s" */
const char *step_rate_text(double hz, char *buf, size_t size)
{
	char a[32];

	if (hz >= 99.5)
		snprintf(buf, size, "%s a second", num_count(round(hz), a, sizeof(a)));
	else if (hz >= 1)
		snprintf(buf, size, "%.1f a second", hz);
	else
		snprintf(buf, size, "one every %s", num_seconds(1 / hz, a, sizeof(a)));
	return buf;
}

static void ranks_text(const struct steps *s, char *buf, size_t size)
{
	double slow = INFINITY, fast = 0;
	char a[48];

	buf[0] = '\0';
	if (s->ranks < 2)
		return;
	for (size_t i = 0; i < s->groups.n; i++) {
		if (s->groups.v[i].rank < 0 || !isfinite(s->groups.v[i].rate_hz))
			continue;
		slow = fmin(slow, s->groups.v[i].rate_hz);
		fast = fmax(fast, s->groups.v[i].rate_hz);
	}
	/* Ranks that wait for each other go alike. */
	if (fast > 1.05 * slow)
		snprintf(buf, size, "; %d ranks, the slowest %s", s->ranks,
			 step_rate_text(slow, a, sizeof(a)));
	else
		snprintf(buf, size, "; %d ranks", s->ranks);
}

/* "about 61 steps, about 2.1 a second: nobody marks them, seen by what repeats" */
static void render_inferred(struct page *p, const struct steps_inferred *x)
{
	char count[32], rate[48], all[64] = "";

	if (!(x->rate_hz > 0))
		return;
	if (isfinite(x->count))
		snprintf(all, sizeof(all), "about %s steps, ",
			 num_count(round(x->count), count, sizeof(count)));
	page_add(p, W_STEPS, PAGE_PLAIN, "Steps",
		 "%sabout %s; inferred: nobody marks them, but the loop repeats", all,
		 step_rate_text(x->rate_hz, rate, sizeof(rate)));
}

void render_steps(struct page *p, const struct verdict *v, bool all)
{
	const struct step_group *g = steps_lead(&v->steps);
	char count[32], rate[48] = "", a[32], b[32], spread[96] = "", ranks[96];

	if (!g) {
		render_inferred(p, &v->steps.inferred);
		return;
	}
	if (isfinite(g->rate_hz) && g->rate_hz > 0) {
		char text[40];

		snprintf(rate, sizeof(rate), ", %s",
			 step_rate_text(g->rate_hz, text, sizeof(text)));
	}
	if (isfinite(g->p95_s))
		snprintf(spread, sizeof(spread), " (median %s, 95 %% under %s)",
			 num_seconds(g->median_s, a, sizeof(a)),
			 num_seconds(g->p95_s, b, sizeof(b)));
	else if (isfinite(g->median_s))
		snprintf(spread, sizeof(spread), " (median %s)",
			 num_seconds(g->median_s, a, sizeof(a)));
	ranks_text(&v->steps, ranks, sizeof(ranks));
	page_add(p, W_STEPS, PAGE_PLAIN, "Steps", "%s %s%s%s%s%s%s",
		 num_count((double)g->count, count, sizeof(count)),
		 g->count == 1 ? "step" : "steps", rate, spread, v->steps.marker[0] ? ", by " : "",
		 v->steps.marker, ranks);
	if (!all)
		return;
	if (isfinite(g->data_wait))
		page_add(p, W_DETAIL, PAGE_PLAIN, "", "the loop waited for data for %s of it",
			 num_percent(g->data_wait, a, sizeof(a)));
	if (g->aside >= 0.005)
		page_add(p, W_DETAIL, PAGE_PLAIN, "",
			 "evaluation and checkpoints took %s of the time from step %llu on",
			 num_percent(g->aside, a, sizeof(a)), (unsigned long long)v->steps.first);
	if (isfinite(g->last_loss))
		page_add(p, W_DETAIL, PAGE_PLAIN, "", "loss %.4g at first, %.4g at last",
			 g->first_loss, g->last_loss);
}

static void inferred_json(struct json *j, const struct steps *s)
{
	json_key_begin(j, "steps", '{');
	if (isfinite(s->inferred.count))
		json_key_int(j, "count", llround(s->inferred.count));
	json_key_num(j, "rate_hz", fact_round(s->inferred.rate_hz));
	json_key_num(j, "median_s", fact_round(s->inferred.median_s));
	json_key_str(j, "source", steps_source(s));
	json_end(j, '}');
}

void render_steps_json(struct json *j, const struct verdict *v)
{
	const struct step_group *g = steps_lead(&v->steps);

	if (!g) {
		if (steps_source(&v->steps))
			inferred_json(j, &v->steps);
		return;
	}
	json_key_begin(j, "steps", '{');
	json_key_int(j, "count", (int64_t)g->count);
	json_key_num(j, "rate_hz", fact_round(g->rate_hz));
	json_key_num(j, "median_s", fact_round(g->median_s));
	json_key_num(j, "p95_s", fact_round(g->p95_s));
	json_key_str(j, "source", steps_source(&v->steps));
	json_key_str(j, "marker", v->steps.marker[0] ? v->steps.marker : NULL);
	json_key_int(j, "warm_up", (int64_t)v->steps.warm_up);
	json_key_num(j, "data_wait_share", fact_round(g->data_wait));
	json_key_num(j, "aside_share", fact_round(g->aside));
	json_key_num(j, "first_loss", g->first_loss);
	json_key_num(j, "last_loss", g->last_loss);
	json_end(j, '}');
}

void render_ranks_json(struct json *j, const struct verdict *v)
{
	const char *host = v->run->machine.hostname;

	if (!v->steps.ranks)
		return;
	json_key_begin(j, "ranks", '[');
	for (size_t i = 0; i < v->steps.groups.n; i++) {
		const struct step_group *g = &v->steps.groups.v[i];

		if (g->rank < 0)
			continue;
		json_begin(j, '{');
		json_key_int(j, "rank", g->rank);
		json_key_str(j, "host", g->node[0] ? g->node : host[0] ? host : NULL);
		if (g->pid > 0)
			json_key_int(j, "pid", g->pid);
		json_key_int(j, "steps", (int64_t)g->count);
		json_key_num(j, "rate_hz", fact_round(g->rate_hz));
		json_key_num(j, "median_s", fact_round(g->median_s));
		json_key_num(j, "data_wait_share", fact_round(g->data_wait));
		json_key_num(j, "own_work_s", fact_round(g->own_work_s));
		json_key_num(j, "comm_wait_s", fact_round(g->comm_wait_s));
		json_end(j, '}');
	}
	json_end(j, ']');
}
