/* SPDX-License-Identifier: MIT
 *
 * What Spotter itself cost.
 */
#include "explain/fact.h"
#include "explain/scene.h"

static bool total(const struct scene *s, enum metric_id m, double *ret)
{
	struct series_stat st;

	if (window_stat(s->whole, m, ID_SELF, &st) < 0)
		return false;
	/* The counters began with the run, a moment before they were first read. */
	*ret = s->covers_run ? st.last : st.delta;
	return true;
}

static void compute(const struct scene *s, struct facts *f)
{
	static const struct {
		enum fact_id fact;
		enum metric_id metric;
	} rows[] = { { FACT_OVERHEAD_CPU, M_SELF_CPU },
		     { FACT_OVERHEAD_SAMPLES, M_SELF_TICKS },
		     { FACT_OVERHEAD_SKIPPED, M_SELF_SKIPPED } };
	double v;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (total(s, rows[i].metric, &v))
			fact_set(f, rows[i].fact, v);
		else
			fact_absent(f, rows[i].fact, "%s: %s", metrics[rows[i].metric].name,
				    window_why_absent(s->whole, rows[i].metric, ID_SELF));
	}
	if (fact_value(f, FACT_OVERHEAD_CPU, &v) && s->whole_seconds > 0)
		fact_set(f, FACT_OVERHEAD_CPU, v / s->whole_seconds);
	if (window_max(s->whole, M_SELF_RSS, ID_SELF, &v))
		fact_set(f, FACT_OVERHEAD_RSS, v);
	else
		fact_absent(f, FACT_OVERHEAD_RSS, "%s: %s", metrics[M_SELF_RSS].name,
			    window_why_absent(s->whole, M_SELF_RSS, ID_SELF));
}

const struct fact_source overhead_facts = { "overhead", compute };
