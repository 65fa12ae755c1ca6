/* SPDX-License-Identifier: MIT */
#include "agent/series.h"

#include "model/metric_family.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const struct series_family families[FAMILIES] = {
#define FAMILY(id, name_, type_, unit_, otel_, help_) \
	{ .name = name_,                              \
	  .type = SERIES_##type_,                     \
	  .unit = unit_,                              \
	  .opentelemetry = otel_,                     \
	  .help = help_ },
#include "agent/families.def"
#undef FAMILY
};

/* Of processes, jobs and control groups the families of ranks tell. */
static const uint32_t things = METRIC_KIND(ENTITY_HOST) | METRIC_KIND(ENTITY_DISK) |
			       METRIC_KIND(ENTITY_NIC) | METRIC_KIND(ENTITY_MOUNT) |
			       METRIC_KIND(ENTITY_GPU) | METRIC_KIND(ENTITY_SELF);

void walk_begin(struct series_walk *w, const struct series_family *f)
{
	w->sample = (struct series_sample){ .family = f,
					    .name = f->name,
					    .time_ms = w->view->time_ms,
					    .start_ms = w->view->start_ms };
	walk_label(w, "node", w->view->node);
}

void walk_label(struct series_walk *w, const char *name, const char *value)
{
	struct series_sample *s = &w->sample;

	if (value && value[0] && s->n_labels < SERIES_LABELS_MAX)
		s->labels[s->n_labels++] = (struct series_label){ name, value };
}

bool walk_put(struct series_walk *w, double value)
{
	if (!isfinite(value))
		return true;
	w->sample.value = value;
	return w->fn(&w->sample, w->arg);
}

static void label_thing(struct series_walk *w, const struct view_thing *t)
{
	walk_label(w, t->kind == ENTITY_MOUNT ? "mountpoint" : "device", t->device);
	walk_label(w, "gpu", t->gpu);
	walk_label(w, "partition", t->partition);
	walk_label(w, "gpu_uuid", t->uuid);
}

static void label_metric(struct series_walk *w, enum metric_id id)
{
	struct series_label l;

	if (metric_family_label(id, &l))
		walk_label(w, l.name, l.value);
}

static bool put_metric(struct series_walk *w, const struct series_family *f, int id)
{
	const struct agent_view *v = w->view;

	for (size_t i = 0; i < v->values.n; i++) {
		const struct view_value *x = &v->values.v[i];

		if (x->metric != (enum metric_id)id || x->thing >= v->things.n)
			continue;
		walk_begin(w, f);
		/* The kernel and the driver count since their own beginning. */
		if (metrics[id].entity != ENTITY_SELF)
			w->sample.start_ms = 0;
		label_thing(w, &v->things.v[x->thing]);
		label_metric(w, x->metric);
		if (!walk_put(w, x->value))
			return false;
	}
	return true;
}

static bool put_gpu_info(struct series_walk *w)
{
	const struct agent_view *v = w->view;

	for (size_t i = 0; i < v->things.n; i++) {
		const struct view_thing *t = &v->things.v[i];

		if (t->kind != ENTITY_GPU)
			continue;
		walk_begin(w, &families[FAMILY_GPU]);
		label_thing(w, t);
		walk_label(w, "name", t->name);
		walk_label(w, "vendor", t->vendor);
		walk_label(w, "driver", t->driver);
		walk_label(w, "pci_bus_id", t->pci);
		walk_label(w, "simulated", t->simulated ? "true" : "");
		if (!walk_put(w, 1))
			return false;
	}
	return true;
}

static bool put_agent(struct series_walk *w)
{
	const struct agent_view *v = w->view;
	const struct {
		const char *kind;
		double value;
	} dropped[] = { { "run", v->dropped_runs },
			{ "rank", v->dropped_ranks },
			{ "device", v->dropped_things },
			{ "record", v->dropped_records } };
	bool more = true;
	size_t up = 0;

	for (size_t i = 0; i < v->runs.n; i++)
		up += v->runs.v[i].up;
	walk_begin(w, &families[FAMILY_BUILD]);
	walk_label(w, "version", v->version);
	more = walk_put(w, 1);
	walk_begin(w, &families[FAMILY_NODE]);
	walk_label(w, "kernel", v->machine.kernel);
	walk_label(w, "cpu_model", v->machine.cpu_model);
	more = more && walk_put(w, 1);
	walk_begin(w, &families[FAMILY_AGENT_RUNS]);
	more = more && walk_put(w, (double)up);
	for (size_t i = 0; more && i < sizeof(dropped) / sizeof(dropped[0]); i++) {
		walk_begin(w, &families[FAMILY_AGENT_DROPPED]);
		walk_label(w, "kind", dropped[i].kind);
		more = walk_put(w, dropped[i].value);
	}
	walk_begin(w, &families[FAMILY_AGENT_HIDDEN]);
	more = more && walk_put(w, v->unreadable);
	walk_begin(w, &families[FAMILY_AGENT_RECORDS]);
	return more && walk_put(w, v->records);
}

bool agent_series_each(const struct agent_view *v, series_fn fn, void *arg)
{
	struct series_walk w = { .view = v, .fn = fn, .arg = arg };
	struct metric_families own;
	bool more = put_agent(&w) && series_jobs_each(&w) && put_gpu_info(&w);

	metric_families(things, &own);
	for (size_t i = 0; more && i < own.n; i++)
		for (int id = 1; more && id < METRICS; id++)
			if (strcmp(metrics[id].prometheus, own.v[i].name) == 0)
				more = put_metric(&w, &own.v[i], id);
	return more;
}
