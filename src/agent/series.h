/* SPDX-License-Identifier: MIT
 *
 * The agent's view as samples: what /metrics shows and what is pushed. Pure; the table of families is families.def and, for
 * what any machine has, model/metrics.def.
 */
#ifndef SPOTTER_AGENT_SERIES_H
#define SPOTTER_AGENT_SERIES_H

#include "agent/view.h"
#include "model/series.h"

enum family_id {
#define FAMILY(id, ...) FAMILY_##id,
#include "agent/families.def"
#undef FAMILY
	FAMILIES
};

extern const struct series_family families[FAMILIES];

/* All samples, family by family. False when fn stopped the walk. */
bool agent_series_each(const struct agent_view *v, series_fn fn, void *arg);

/* Parts of the walk (series_jobs.c); both series.c's own. */
struct series_walk {
	const struct agent_view *view;
	series_fn fn;
	void *arg;
	struct series_sample sample; /* being made */
};
void walk_begin(struct series_walk *w, const struct series_family *f);
void walk_label(struct series_walk *w, const char *name, const char *value); /* "" or NULL: none */
/* A value that is not known (NAN) makes no sample. False: stop. */
bool walk_put(struct series_walk *w, double value);
bool series_jobs_each(struct series_walk *w);

#endif
