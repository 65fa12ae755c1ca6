/* SPDX-License-Identifier: MIT
 *
 * Bytes the job's processes fetched from and sent to storage (not from the page cache).
 */
#include "explain/fact.h"
#include "explain/scene.h"

#include <math.h>
#include <string.h>

/* A sum that leaves somebody out is no sum. Those that ended before they were read do not count. */
static bool is_refused(const struct scene *s, enum metric_id metric)
{
	for (size_t i = 0; i < s->members.n; i++) {
		const struct member *m = &s->members.v[i];
		double v = metric == M_PROC_READ_BYTES ? m->read : m->written;

		if (!isfinite(v) && strcmp(window_why_absent(s->whole, metric, m->id),
					   gap_why_name(GAP_NO_PERMISSION)) == 0)
			return true;
	}
	return false;
}

static void compute(const struct scene *s, struct facts *f)
{
	double read = NAN, written = NAN;

	for (size_t i = 0; i < s->members.n; i++) {
		const struct member *m = &s->members.v[i];

		if (isfinite(m->read))
			read = isfinite(read) ? read + m->read : m->read;
		if (isfinite(m->written))
			written = isfinite(written) ? written + m->written : m->written;
	}
	fact_absent(f, FACT_USAGE_READ, "%s: %s", metrics[M_PROC_READ_BYTES].name,
		    window_why_absent(s->whole, M_PROC_READ_BYTES, ID_JOB));
	if (is_refused(s, M_PROC_READ_BYTES))
		fact_absent(f, FACT_USAGE_READ, "%s of some processes: no permission",
			    metrics[M_PROC_READ_BYTES].name);
	else
		fact_set(f, FACT_USAGE_READ, read);
	fact_absent(f, FACT_USAGE_WRITTEN, "%s: %s", metrics[M_PROC_WRITTEN_BYTES].name,
		    window_why_absent(s->whole, M_PROC_WRITTEN_BYTES, ID_JOB));
	if (is_refused(s, M_PROC_WRITTEN_BYTES))
		fact_absent(f, FACT_USAGE_WRITTEN, "%s of some processes: no permission",
			    metrics[M_PROC_WRITTEN_BYTES].name);
	else
		fact_set(f, FACT_USAGE_WRITTEN, written);
}

const struct fact_source storage_facts = { "storage", compute };
