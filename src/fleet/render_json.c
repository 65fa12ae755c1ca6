/* SPDX-License-Identifier: MIT */
#include "fleet/render.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"

#include <math.h>

static void put_time(struct json *j, const char *key, double s)
{
	char text[40];

	/* Beyond the year 9999 it is no time. */
	if (!isfinite(s) || s <= 0 || s > 253402300799.0)
		return;
	clock_iso((int64_t)(s < 9e9 ? s * 1e9 : 9e18), text, sizeof(text));
	json_key_str(j, key, text);
}

static void put_text(struct json *j, const char *key, const char *text)
{
	json_key_str(j, key, text[0] ? text : NULL);
}

static void put_gpu(struct json *j, const struct fleet *f, const struct fleet_gpu *g)
{
	json_key_str(j, "node", f->nodes.v[g->node].name);
	put_text(j, "index", g->index);
	put_text(j, "partition", g->partition);
	put_text(j, "uuid", g->uuid);
}

static void put_evidence(struct json *j, const struct fleet_suspect *s)
{
	json_key_begin(j, "evidence", '[');
	for (size_t i = 0; i < s->evidence_n; i++) {
		const struct fleet_evidence *e = &s->evidence[i];

		json_begin(j, '{');
		json_key_str(j, "text", e->text);
		put_text(j, "metric", e->metric);
		json_key_num(j, "value", e->value);
		json_key_num(j, "others", e->others);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_suspect(struct json *j, const struct ask *a, const struct fleet_suspect *s)
{
	const struct fleet *f = &a->fleet;
	const struct fleet_gpu *g = fleet_gpu_of(f, s->worst);

	json_begin(j, '{');
	json_key_str(j, "node", f->nodes.v[s->node].name);
	json_key_begin(j, "ranks", '[');
	for (size_t i = 0; i < s->members; i++) {
		int32_t rank = f->ranks.v[a->judged.members.v[s->members_from + i]].rank;

		if (rank >= 0)
			json_int(j, rank);
	}
	json_end(j, ']');
	if (f->ranks.v[s->worst].rank >= 0)
		json_key_int(j, "worst_rank", f->ranks.v[s->worst].rank);
	if (g) {
		json_key_begin(j, "gpu", '{');
		put_gpu(j, f, g);
		json_end(j, '}');
	}
	json_key_num(j, "own_work_s", s->own_s);
	json_key_num(j, "others_own_work_s", s->others_s);
	json_key_str(j, "cause", s->cause);
	put_evidence(j, s);
	json_end(j, '}');
}

static void put_suspects(struct json *j, const struct ask *a, const struct fleet_judged_run *r)
{
	json_key_begin(j, "suspects", '[');
	for (size_t i = 0; i < r->suspects; i++)
		put_suspect(j, a, &a->judged.suspects.v[r->suspects_from + i]);
	json_end(j, ']');
}

static void put_ranks(struct json *j, const struct fleet *f, const struct fleet_run *run)
{
	json_key_begin(j, "rank_list", '[');
	for (size_t i = 0; i < run->ranks; i++) {
		const struct fleet_rank *r = &f->ranks.v[f->rank_order[run->rank_from + i]];
		double own = fleet_own_s(r);

		if (!fleet_rank_live(f, r))
			continue;
		json_begin(j, '{');
		if (r->rank >= 0)
			json_key_int(j, "rank", r->rank);
		json_key_str(j, "node", f->nodes.v[r->node].name);
		json_key_num(j, "steps", r->steps);
		json_key_num(j, "step_s", fleet_step_s(r));
		json_key_num(j, "own_work_s", own);
		json_key_num(j, "comm_wait_s", fleet_step_s(r) - own);
		json_key_num(j, "data_wait_s", r->steps > 0 ? r->data / r->steps : NAN);
		put_time(j, "last_step", r->last_step_s);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_steps(struct json *j, const struct fleet *f, const struct fleet_judged_run *r)
{
	json_key_begin(j, "steps", '{');
	json_key_num(j, "rate_hz", r->rate_hz);
	json_key_num(j, "mean_s", r->step_s);
	json_key_num(j, "own_work_median_s", r->own_median_s);
	json_key_num(j, "own_work_max_s", r->own_max_s);
	json_key_num(j, "own_work_next_s", r->own_next_s);
	json_key_num(j, "data_wait_median_s", r->data_median_s);
	json_key_num(j, "wait_least", r->wait_least);
	json_key_num(j, "wait_median", r->wait_median);
	put_time(j, "last", f->now_s - r->quiet_s);
	json_key_num(j, "since_last_s", r->quiet_s);
	json_end(j, '}');
}

static void put_run(struct json *j, const struct ask *a, const struct fleet_judged_run *r)
{
	const struct fleet *f = &a->fleet;
	const struct fleet_run *run = &f->runs.v[r->run];

	json_begin(j, '{');
	json_key_str(j, "id", run->id);
	put_text(j, "name", run->name);
	put_text(j, "framework", run->framework);
	put_text(j, "id_source", run->source);
	json_key_str(j, "state", fleet_state_name(r->state));
	put_time(j, "started", run->start_s);
	json_key_num(j, "seen_s", r->seen_s);
	if (run->world > 0)
		json_key_int(j, "world_size", run->world);
	json_key_int(j, "ranks", (int64_t)r->ranks);
	json_key_int(j, "ranks_known", (int64_t)r->known);
	json_key_int(j, "nodes", (int64_t)r->nodes);
	json_key_int(j, "gpus", (int64_t)r->gpus);
	put_steps(j, f, r);
	if (r->lost_share > 0) {
		json_key_begin(j, "straggler", '{');
		json_key_num(j, "cost", r->lost_share);
		json_key_num(j, "gpu_hours", r->lost_gpu_hours);
		put_suspects(j, a, r);
		json_end(j, '}');
	}
	if (r->state == FLEET_HUNG) {
		json_key_begin(j, "hung", '{');
		json_key_num(j, "seconds", r->quiet_s);
		json_key_num(j, "limit_s", r->quiet_limit_s);
		json_key_num(j, "gpu_hours", r->hung_gpu_hours);
		put_suspects(j, a, r);
		json_end(j, '}');
	}
	json_key_int(j, "idle_gpus", (int64_t)r->idle_gpus);
	put_text(j, "cannot_tell", r->unknown);
	put_ranks(j, f, run);
	json_end(j, '}');
}

static void put_idle(struct json *j, const struct ask *a)
{
	json_key_begin(j, "idle_gpus", '[');
	for (size_t i = 0; i < a->judged.idle.n; i++) {
		const struct fleet_idle *x = &a->judged.idle.v[i];
		const struct fleet_gpu *g = &a->fleet.gpus.v[x->gpu];

		json_begin(j, '{');
		json_key_str(j, "run", a->fleet.runs.v[x->run].id);
		if (a->fleet.ranks.v[x->rank].rank >= 0)
			json_key_int(j, "rank", a->fleet.ranks.v[x->rank].rank);
		put_gpu(j, &a->fleet, g);
		json_key_num(j, "busy_max", g->busy_max);
		json_key_num(j, "memory_bytes", x->memory);
		json_key_num(j, "gpu_hours", x->gpu_hours);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_waste(struct json *j, const struct ask *a)
{
	json_key_begin(j, "verdicts", '[');
	for (size_t i = 0; i < a->judged.waste.n; i++) {
		const struct fleet_waste *w = &a->judged.waste.v[i];

		json_begin(j, '{');
		json_key_str(j, "cause", w->cause);
		json_key_int(j, "runs", (int64_t)w->runs);
		json_key_int(j, "nodes", (int64_t)w->nodes);
		json_key_num(j, "gpu_hours", w->gpu_hours);
		json_key_num(j, "worst_cost", w->worst_cost);
		json_key_str(j, "worst_run", a->fleet.runs.v[w->worst_run].id);
		json_key_num(j, "confidence", w->confidence);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_totals(struct json *j, const struct ask *a)
{
	const struct fleet_judged *t = &a->judged;

	json_key_begin(j, "totals", '{');
	json_key_int(j, "runs", (int64_t)t->runs.n);
	json_key_int(j, "running", (int64_t)t->running);
	json_key_int(j, "hung", (int64_t)t->hung);
	json_key_int(j, "silent", (int64_t)t->silent);
	json_key_int(j, "straggling", (int64_t)t->straggling);
	json_key_int(j, "ranks", (int64_t)t->ranks);
	json_key_int(j, "nodes", (int64_t)a->fleet.nodes.n);
	json_key_int(j, "gpus_held", (int64_t)t->gpus);
	json_key_num(j, "gpu_hours", t->gpu_hours);
	json_key_begin(j, "lost_gpu_hours", '{');
	json_key_num(j, "straggler", t->lost_straggler);
	json_key_num(j, "hung", t->lost_hung);
	json_key_num(j, "idle", t->lost_idle);
	json_end(j, '}');
	json_end(j, '}');
}

void fleet_json(const struct ask *a, const char *engine, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_begin(&j, '{');
	json_key_str(&j, "schema", "spotter.fleet/1");
	json_key_str(&j, "engine", engine);
	put_time(&j, "at", a->fleet.now_s);
	json_key_num(&j, "window_s", a->fleet.window_s);
	json_key_begin(&j, "asked", '{');
	json_key_int(&j, "queries", (int64_t)a->queries);
	json_key_num(&j, "seconds", a->seconds);
	json_key_int(&j, "bytes", (int64_t)a->bytes);
	json_key_int(&j, "series", (int64_t)a->series);
	json_key_int(&j, "series_odd", (int64_t)(a->odd + a->fleet.odd));
	json_key_int(&j, "runs_without_details", (int64_t)a->undetailed);
	put_text(&j, "warning", a->warning);
	json_end(&j, '}');
	put_totals(&j, a);
	json_key_begin(&j, "runs", '[');
	for (size_t i = 0; i < a->judged.runs.n; i++)
		put_run(&j, a, &a->judged.runs.v[i]);
	json_end(&j, ']');
	put_idle(&j, a);
	put_waste(&j, a);
	json_end(&j, '}');
	buf_char(out, '\n');
}
