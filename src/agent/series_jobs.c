/* SPDX-License-Identifier: MIT
 *
 * Families of runs, of ranks, and of ranks on GPUs.
 */
#include "agent/series.h"

#include <math.h>
#include <stdio.h>

static void begin_run(struct series_walk *w, enum family_id id, size_t run)
{
	walk_begin(w, &families[id]);
	w->sample.start_ms = 0;
	walk_label(w, "run_id", w->view->runs.v[run].id);
}

/* number: room for the text of the rank, which the label points to. */
static void begin_rank(struct series_walk *w, enum family_id id, const struct view_rank *r,
		       char number[16])
{
	begin_run(w, id, r->run);
	w->sample.start_ms = r->start_ms;
	number[0] = '\0';
	if (r->rank >= 0)
		snprintf(number, 16, "%d", r->rank);
	walk_label(w, "rank", number);
}

static bool put_runs(struct series_walk *w)
{
	const struct agent_view *v = w->view;
	bool more = true;

	for (size_t i = 0; more && i < v->runs.n; i++) {
		const struct view_run *r = &v->runs.v[i];
		char world[16] = "";

		if (r->world > 0)
			snprintf(world, sizeof(world), "%d", r->world);
		begin_run(w, FAMILY_RUN, i);
		walk_label(w, "name", r->name);
		walk_label(w, "source", run_source_name(r->source));
		walk_label(w, "framework", r->framework);
		walk_label(w, "world_size", world);
		more = walk_put(w, 1);
	}
	for (size_t i = 0; more && i < v->runs.n; i++) {
		begin_run(w, FAMILY_RUN_UP, i);
		more = walk_put(w, v->runs.v[i].up);
	}
	for (size_t i = 0; more && i < v->runs.n; i++) {
		begin_run(w, FAMILY_RUN_START, i);
		more = walk_put(w, v->runs.v[i].start_s);
	}
	return more;
}

static bool put_findings(struct series_walk *w, enum family_id id)
{
	const struct agent_view *v = w->view;

	for (size_t i = 0; i < v->findings.n; i++) {
		const struct view_finding *f = &v->findings.v[i];

		begin_run(w, id, f->run);
		walk_label(w, "cause", f->cause);
		if (id == FAMILY_VERDICT)
			walk_label(w, "family", f->family);
		if (!walk_put(w, id == FAMILY_VERDICT        ? 1
				 : id == FAMILY_VERDICT_COST ? f->cost
							     : f->confidence))
			return false;
	}
	return true;
}

/* One number a rank. */
static double rank_value(const struct view_rank *r, enum family_id id)
{
	const struct view_steps *s = &r->steps;

	switch (id) {
	case FAMILY_STEPS:
		return r->has_steps ? (double)s->count : NAN;
	case FAMILY_LAST_STEP:
		return r->has_steps ? s->last_s : NAN;
	case FAMILY_LOSS:
		return r->has_steps ? s->loss : NAN;
	case FAMILY_DATA_WAIT:
		return r->has_steps ? s->data_wait : NAN;
	case FAMILY_COMM_WAIT:
		return r->has_steps ? s->comm_wait : NAN;
	case FAMILY_OWN_WORK:
		return r->has_steps ? s->own_work : NAN;
	default:
		return 1; /* FAMILY_RANK */
	}
}

static bool put_ranks(struct series_walk *w, enum family_id id)
{
	const struct agent_view *v = w->view;
	char rank[16], local[16];

	for (size_t i = 0; i < v->ranks.n; i++) {
		const struct view_rank *r = &v->ranks.v[i];

		begin_rank(w, id, r, rank);
		if (id == FAMILY_RANK && r->local_rank >= 0) {
			snprintf(local, sizeof(local), "%d", r->local_rank);
			walk_label(w, "local_rank", local);
		}
		if (!walk_put(w, rank_value(r, id)))
			return false;
	}
	return true;
}

/* "+Inf" and "1.0", as OpenMetrics writes them; the old format takes any text. */
static const char *bound_text(size_t i, char text[24])
{
	if (i == STEP_BOUNDS)
		return "+Inf";
	snprintf(text, 24, step_bounds[i] == floor(step_bounds[i]) ? "%.1f" : "%g", step_bounds[i]);
	return text;
}

static bool put_buckets(struct series_walk *w, const struct view_rank *r, char rank[16])
{
	uint64_t sum = 0;
	char bound[24];

	for (size_t i = 0; i <= STEP_BOUNDS; i++) {
		begin_rank(w, FAMILY_STEP_TIME, r, rank);
		w->sample.name = "spotter_step_duration_seconds_bucket";
		w->sample.part = SERIES_BUCKET;
		walk_label(w, "le", bound_text(i, bound));
		sum += r->steps.bucket[i];
		if (!walk_put(w, (double)sum))
			return false;
	}
	begin_rank(w, FAMILY_STEP_TIME, r, rank);
	w->sample.name = "spotter_step_duration_seconds_sum";
	w->sample.part = SERIES_SUM;
	if (!walk_put(w, r->steps.seconds))
		return false;
	w->sample.name = "spotter_step_duration_seconds_count";
	w->sample.part = SERIES_COUNT;
	return walk_put(w, (double)r->steps.timed);
}

static bool put_histograms(struct series_walk *w)
{
	const struct agent_view *v = w->view;
	char rank[16];
	bool more = true;

	for (size_t i = 0; more && i < v->ranks.n; i++)
		if (v->ranks.v[i].has_steps && v->ranks.v[i].steps.timed)
			more = put_buckets(w, &v->ranks.v[i], rank);
	return more;
}

static bool put_ledgers(struct series_walk *w)
{
	const struct agent_view *v = w->view;

	for (size_t i = 0; i < v->ledger.n; i++) {
		const struct view_ledger *l = &v->ledger.v[i];
		char rank[16] = "";

		if (l->rank >= 0)
			snprintf(rank, sizeof(rank), "%d", l->rank);
		begin_run(w, FAMILY_LEDGER, l->run);
		w->sample.start_ms = l->start_ms;
		walk_label(w, "rank", rank);
		walk_label(w, "ledger", l->ledger);
		walk_label(w, "state", l->state);
		if (!walk_put(w, l->seconds))
			return false;
	}
	return true;
}

/* A role that never had a process is not there. */
static double use_value(const struct view_role_use *u, enum family_id id)
{
	switch (id) {
	case FAMILY_PROCESSES:
		return u->processes || u->cpu_user > 0 ? u->processes : NAN;
	case FAMILY_PROCESS_RSS:
		return u->processes ? u->rss : NAN;
	case FAMILY_PROCESS_READ:
		return u->read;
	case FAMILY_PROCESS_WRITTEN:
		return u->written;
	default:
		return NAN;
	}
}

static bool put_use(struct series_walk *w, enum family_id id)
{
	const struct agent_view *v = w->view;
	bool more = true;
	char rank[16];

	for (size_t i = 0; more && i < v->ranks.n; i++) {
		for (int role = 0; more && role < VIEW_ROLES; role++) {
			const struct view_role_use *u = &v->ranks.v[i].use[role];

			begin_rank(w, id, &v->ranks.v[i], rank);
			walk_label(w, "role", view_role_name((enum view_role)role));
			if (id != FAMILY_PROCESS_CPU) {
				more = walk_put(w, use_value(u, id));
				continue;
			}
			walk_label(w, "mode", "user");
			more = walk_put(w, u->cpu_user);
			w->sample.labels[w->sample.n_labels - 1].value = "system";
			more = more && walk_put(w, u->cpu_system);
		}
	}
	return more;
}

static bool put_holds(struct series_walk *w, enum family_id id)
{
	const struct agent_view *v = w->view;
	char rank[16];

	for (size_t i = 0; i < v->holds.n; i++) {
		const struct view_hold *h = &v->holds.v[i];
		const struct view_thing *t = &v->things.v[h->gpu];

		begin_rank(w, id, &v->ranks.v[h->rank], rank);
		w->sample.start_ms = 0;
		walk_label(w, "gpu", t->gpu);
		walk_label(w, "partition", t->partition);
		walk_label(w, "gpu_uuid", t->uuid);
		if (!walk_put(w, id == FAMILY_RANK_GPU          ? 1
				 : id == FAMILY_RANK_GPU_MEMORY ? h->memory
								: h->busy))
			return false;
	}
	return true;
}

bool series_jobs_each(struct series_walk *w)
{
	static const enum family_id of_ranks[] = { FAMILY_RANK, FAMILY_STEPS };
	static const enum family_id also_of_ranks[] = { FAMILY_LAST_STEP, FAMILY_LOSS,
							FAMILY_DATA_WAIT, FAMILY_COMM_WAIT,
							FAMILY_OWN_WORK };
	static const enum family_id of_use[] = { FAMILY_PROCESSES, FAMILY_PROCESS_CPU,
						 FAMILY_PROCESS_RSS, FAMILY_PROCESS_READ,
						 FAMILY_PROCESS_WRITTEN };
	bool more = put_runs(w);

	for (enum family_id id = FAMILY_VERDICT; more && id <= FAMILY_VERDICT_SURE; id++)
		more = put_findings(w, id);
	for (size_t i = 0; more && i < sizeof(of_ranks) / sizeof(of_ranks[0]); i++)
		more = put_ranks(w, of_ranks[i]);
	more = more && put_histograms(w);
	for (size_t i = 0; more && i < sizeof(also_of_ranks) / sizeof(also_of_ranks[0]); i++)
		more = put_ranks(w, also_of_ranks[i]);
	more = more && put_ledgers(w);
	for (size_t i = 0; more && i < sizeof(of_use) / sizeof(of_use[0]); i++)
		more = put_use(w, of_use[i]);
	for (enum family_id id = FAMILY_RANK_GPU; more && id <= FAMILY_RANK_GPU_BUSY; id++)
		more = put_holds(w, id);
	return more;
}
