/* SPDX-License-Identifier: MIT */
#include "agent/run_view.h"

#include "agent/agent.h"
#include "agent/series.h"
#include "base/clock.h"
#include "base/text.h"
#include "model/metric_family.h"
#include "record/reader.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FRESH_S = 15 }; /* what was read rarely (proportional memory) is as old as that */

struct keys {
	struct run_view *run;
	VEC(struct series_key) key;
	VEC(size_t) thing; /* of each key: place in view.things; the job's: -1 */
	VEC(double) value;
};

static void keys_done(struct keys *k)
{
	vec_done(&k->key);
	vec_done(&k->thing);
	vec_done(&k->value);
}

/* All that is measured of such a thing and has a name outside. */
static int add_keys(struct keys *k, enum entity_kind kind, uint32_t entity, size_t thing)
{
	for (int m = 1; m < METRICS; m++) {
		struct series_key *key;
		size_t *of;
		double *value;

		if (metrics[m].entity != kind || !metrics[m].prometheus[0])
			continue;
		key = vec_push(&k->key);
		of = vec_push(&k->thing);
		value = vec_push(&k->value);
		if (!key || !of || !value)
			return -ENOMEM;
		*key = (struct series_key){ .metric = (enum metric_id)m, .entity = entity };
		*of = thing;
		*value = NAN;
	}
	return 0;
}

static bool take_point(size_t key, const struct point *p, void *arg)
{
	struct keys *k = arg;

	k->value.v[key] = p->last;
	return true;
}

static int take_gpus(struct keys *k, const struct entity_table *t)
{
	struct agent_view *v = &k->run->view;

	for (size_t i = 0; i < t->rows.n && v->things.n < VIEW_THINGS_MAX; i++) {
		const struct entity *e = &t->rows.v[i];
		struct view_thing *x;

		if (e->kind != ENTITY_GPU || e->gone_ns)
			continue;
		x = vec_push(&v->things);
		if (!x)
			return -ENOMEM;
		x->kind = ENTITY_GPU;
		agent_describe_gpu(e, x);
		if (add_keys(k, ENTITY_GPU, e->id, v->things.n - 1) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int take_values(struct run_view *r, struct record *record)
{
	struct window w = record_window(record, 0, 0);
	struct keys k = { .run = r };
	int error = take_gpus(&k, window_entities(&w));

	for (int m = 0; m < METRICS; m++)
		r->job[m] = NAN;
	if (!error)
		error = add_keys(&k, ENTITY_JOB, ID_JOB, (size_t)-1);
	if (w.from_ns < w.to_ns - FRESH_S * NS_PER_S)
		w.from_ns = w.to_ns - FRESH_S * NS_PER_S;
	if (!error)
		(void)window_each_of(&w, k.key.v, k.key.n, 0, take_point, &k);
	for (size_t i = 0; !error && i < k.key.n; i++) {
		struct view_value *v;

		if (k.thing.v[i] == (size_t)-1) {
			r->job[k.key.v[i].metric] = k.value.v[i];
			continue;
		}
		v = vec_push(&r->view.values);
		if (v)
			*v = (struct view_value){ k.key.v[i].metric, k.thing.v[i], k.value.v[i] };
		else
			error = -ENOMEM;
	}
	keys_done(&k);
	return error;
}

static struct view_rank *rank_row(struct run_view *r, int32_t rank)
{
	struct agent_view *v = &r->view;
	struct view_rank *row;

	for (size_t i = 0; i < v->ranks.n; i++)
		if (v->ranks.v[i].rank == rank)
			return &v->ranks.v[i];
	row = v->ranks.n < VIEW_RANKS_MAX ? vec_push(&v->ranks) : NULL;
	if (!row)
		return NULL;
	row->rank = rank;
	row->local_rank = rank == r->env.rank ? r->env.local_rank : -1;
	row->start_ms = r->news.since_ms;
	for (int i = 0; i < VIEW_ROLES; i++)
		row->use[i] = (struct view_role_use){
			.cpu_user = NAN, .cpu_system = NAN, .rss = NAN, .read = NAN, .written = NAN
		};
	return row;
}

/* Who says no rank has that of the environment. */
static int32_t rank_of(const struct run_view *r, int32_t said)
{
	return said >= 0 ? said : r->env.rank;
}

static int take_ranks(struct run_view *r)
{
	for (size_t i = 0; i < r->news.groups.n; i++) {
		const struct record_group *g = &r->news.groups.v[i];
		struct view_rank *row = rank_row(r, rank_of(r, g->rank));

		if (!row)
			return -ENOMEM;
		view_rank_add_steps(row, &g->steps);
	}
	return r->news.groups.n || rank_row(r, r->env.rank) ? 0 : -ENOMEM;
}

/* Where there is one rank only, the run is its. -1: of the run. */
static int32_t rank_of_pid(const struct run_view *r, int64_t pid)
{
	for (size_t i = 0; pid && i < r->news.groups.n; i++)
		if (r->news.groups.v[i].pid == pid)
			return rank_of(r, r->news.groups.v[i].rank);
	return r->view.ranks.n == 1 ? r->view.ranks.v[0].rank : -1;
}

static struct view_ledger *ledger_row(struct run_view *r, const struct record_line *l, int32_t rank)
{
	struct agent_view *v = &r->view;
	struct view_ledger *row;

	for (size_t i = 0; i < v->ledger.n; i++) {
		row = &v->ledger.v[i];
		if (row->rank == rank && strcmp(row->ledger, l->ledger) == 0 &&
		    strcmp(row->state, l->state) == 0)
			return row;
	}
	row = vec_push(&v->ledger);
	if (!row)
		return NULL;
	row->rank = rank;
	row->ledger = l->ledger;
	row->start_ms = r->news.since_ms;
	text_copy(row->state, sizeof(row->state), l->state);
	return row;
}

static int take_verdict(struct run_view *r)
{
	for (size_t i = 0; i < r->news.n_ledger; i++) {
		const struct record_line *l = &r->news.ledger[i];
		struct view_ledger *row = ledger_row(r, l, rank_of_pid(r, l->pid));

		if (!row)
			return -ENOMEM;
		row->seconds += l->seconds;
	}
	for (size_t i = 0; i < r->news.n_findings; i++) {
		struct view_finding *f = vec_push(&r->view.findings);

		if (!f)
			return -ENOMEM;
		*f = r->news.findings[i];
		f->run = 0;
	}
	return 0;
}

static int take_run(struct run_view *r, const struct run_info *run)
{
	struct agent_view *v = &r->view;
	struct view_run *row = vec_push(&v->runs);
	bool named = r->env.source != SOURCE_NONE;

	if (!row)
		return -ENOMEM;
	text_safe_copy(v->node, sizeof(v->node), run->machine.hostname);
	v->time_ms = clock_wall_ns() / NS_PER_MS;
	v->start_ms = run->started_wall_ns / NS_PER_MS;
	text_copy(row->id, sizeof(row->id), named ? r->env.run_id : r->news.id);
	text_copy(row->name, sizeof(row->name), r->news.name);
	row->source = named ? r->env.source : SOURCE_SPOTTER;
	row->framework = "";
	row->world = r->env.world;
	row->up = !r->news.ended;
	row->start_s = (double)run->started_wall_ns / 1e9;
	return 0;
}

int run_view_look(struct run_view *r, const char *path, bool judge)
{
	struct record *record;
	int error;

	if (!text_copy(r->news.path, sizeof(r->news.path), path))
		return -ENAMETOOLONG;
	error = record_look(&r->news, &r->cursor, judge, judge);
	if (error < 0)
		return error;
	error = record_open_writing(path, &record, NULL);
	if (error < 0)
		return error;
	agent_view_reset(&r->view);
	error = take_run(r, record_run(record));
	if (!error)
		error = take_ranks(r);
	if (!error)
		error = take_verdict(r);
	if (!error)
		error = take_values(r, record);
	record_close(record);
	return error;
}

struct only_ours {
	series_fn fn;
	void *arg;
	bool first;
};

/* With a recorder a rank all of a machine have the run and the GPUs under the same labels, and who takes what is pushed
 * refuses a second writer: it is the first of them that tells. Without a number on its machine that is rank 0; a pod has
 * a host name of its own, so its rank is the first there. Who has no rank is alone. */
static bool is_first(const struct job_env *e)
{
	if (e->local_rank >= 0)
		return e->local_rank == 0;
	return e->rank <= 0 || e->pod;
}

static bool has_label(const struct series_sample *s, const char *name)
{
	for (size_t i = 0; i < s->n_labels; i++)
		if (strcmp(s->labels[i].name, name) == 0)
			return true;
	return false;
}

/* What has neither a run nor a GPU is the machine's, or an agent's: others may tell of that. */
static bool pass(const struct series_sample *s, void *arg)
{
	const struct only_ours *o = arg;

	if (!has_label(s, "rank") &&
	    (!o->first || (!has_label(s, "run_id") && !has_label(s, "gpu"))))
		return true;
	return o->fn(s, o->arg);
}

/* Of a recorder that has several ranks below it, the job is all of them. */
static bool put_job(const struct run_view *r, series_fn fn, void *arg)
{
	struct series_walk w = { .view = &r->view, .fn = fn, .arg = arg };
	int32_t only = r->view.ranks.n == 1 ? r->view.ranks.v[0].rank : -1;
	struct metric_families own;
	bool more = true;
	char rank[16] = "";

	if (only >= 0)
		snprintf(rank, sizeof(rank), "%d", only);
	metric_families(METRIC_KIND(ENTITY_JOB), &own);
	for (size_t i = 0; more && i < own.n; i++) {
		for (int m = 1; more && m < METRICS; m++) {
			if (metrics[m].entity != ENTITY_JOB ||
			    strcmp(metrics[m].prometheus, own.v[i].name) != 0)
				continue;
			walk_begin(&w, &own.v[i]);
			walk_label(&w, "run_id", r->view.runs.v[0].id);
			walk_label(&w, "rank", rank);
			more = walk_put(&w, r->job[m]);
		}
	}
	return more;
}

bool run_view_each(const struct run_view *r, series_fn fn, void *arg)
{
	struct only_ours o = { fn, arg, is_first(&r->env) };

	if (!r->view.runs.n)
		return true; /* nothing was read yet */
	return agent_series_each(&r->view, pass, &o) && put_job(r, pass, &o);
}

void run_view_done(struct run_view *r)
{
	agent_view_done(&r->view);
	vec_done(&r->news.groups);
}
